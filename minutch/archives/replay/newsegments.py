"""Writes visits to new segments: the first visit to each URL goes into the first segment, the
second visit into the second segment, and so on.

So a segment has each URL once, as after a fetch, and no visit is lost; `mergesegs` merges them into
one, with the newest visits. Records go to a fetch log, which is sorted on disk at the end, as in a
fetch. All segments of an import appear at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from minutch.conf import Configuration
from minutch.cycle.fetch.components import FetchComponents
from minutch.cycle.fetch.results.closing import close_segment, stored_codec
from minutch.cycle.fetch.results.fetchlog import FetchLog, Frame, Part
from minutch.cycle.fetch.results.recorder import Recorder
from minutch.cycle.fetch.session import make_recorder
from minutch.cycle.fetch.settings import FetchSettings
from minutch.cycle.segment.places import place_together, segment_name
from minutch.cycle.segment.store import Segment
from minutch.work.tables.install import NEW, make_directory, mark_success, remove, work_folder

MOST: Final = 200
"""Maximum number of segments, all of which are open at the same time."""
_LOG: Final = "_fetch"
_PARTS: Final = (Part.FETCH, Part.CONTENT)


@dataclass(slots=True)
class NewSegment:
    """A segment that is being written."""

    segment: Segment
    recorder: Recorder
    log: FetchLog
    pages: int = 0

    def add(self, frame: Frame) -> None:
        """Adds the records of a visit."""
        self.log.append(frame)
        self.pages += 1


class NewSegments:
    """The segments that are being written, in a work folder beside their destination."""

    def __init__(self, work: Path, parent: Path, conf: Configuration, now: int) -> None:
        self.work, self._parent, self._conf, self._now = work, parent, conf, now
        settings = FetchSettings.from_conf(conf, now)
        self._settings = replace(settings, parse=False, store_content=True)
        self._components = FetchComponents(conf)
        self._names = _free_names(parent, now)
        self._segments: list[NewSegment] = []

    def __len__(self) -> int:
        return len(self._segments)

    def number(self, number: int) -> NewSegment | None:
        """Returns the segment of a number, which counts from 0; None if that is too high."""
        if number >= MOST:
            return None
        while len(self._segments) <= number:
            self._segments.append(self._make(next(self._names)))
        return self._segments[number]

    def _make(self, name: str) -> NewSegment:
        segment = Segment(self.work / name)
        (segment.path / _LOG).mkdir(parents=True)
        recorder = make_recorder(name, self._settings, self._components)
        codec = stored_codec(self._settings.form.compression)
        return NewSegment(segment, recorder, FetchLog(segment.path / _LOG / "log-0", codec))

    def finish(self, job: str, counters: Mapping[str, int]) -> list[Path]:
        """Closes all segments and moves them to their destination, recorded as the result of `job`;
        returns their paths in order.
        """
        for each in self._segments:
            each.log.close()
            close_segment(each.segment, [each.log.path], _PARTS, self._settings.form, 0)
            remove(each.segment.path / _LOG)
            mark_success(self._conf, each.segment.path)
        return place_together(self.work, self._parent, job, counters)

    def discard(self) -> None:
        """Closes open files; the work folder is removed with its contents."""
        for each in self._segments:
            each.log.close()


@contextmanager
def new_segments(parent: Path, conf: Configuration, now: int) -> Iterator[NewSegments]:
    """Opens new segments in `parent`, named after `now` (ms) and the following seconds. They remain
    only if `finish` is called.
    """
    make_directory(parent)
    with work_folder(parent, NEW) as work:
        segments = NewSegments(work, parent, conf, now)
        try:
            yield segments
        finally:
            segments.discard()


def _free_names(parent: Path, now: int) -> Iterator[str]:
    time = datetime.fromtimestamp(now / 1000)
    while True:
        name = segment_name(int(time.timestamp() * 1000))
        if not (parent / name).exists():
            yield name
        time += timedelta(seconds=1)
