"""Names and places of segments: of one alone, or of all that one job makes at once.

    <segments>/yyyyMMddHHmmss/          a segment in its place
    <segments>/.import-…/<name>/        a whole segment that is yet to be moved there
    <segments>/.import-…/import.json    := JSON {"job": what has made them, "counters": {name:
                                        count}}

A job that makes several writes them in one work folder, whose rename to such a name (`workfolders`
has it in full) makes all of them part of the crawl. Then each is moved, and in the end the folder
goes. Where the process was killed in between, `segments_in` finds the rest in the folder; the next
job that makes segments so, or repairs, moves it. By the record the same job, run again, knows that
it is done.
"""

from __future__ import annotations

import errno
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from minutch import strictjson
from minutch.hadoop.stores import copies
from minutch.work.tables import journal
from minutch.work.tables.install import left_over, own_name, remove, sync_path, sync_tree

log = logging.getLogger(__name__)

PREFIX: Final = ".import-"
RECORD: Final = "import.json"
TIME_FORMAT: Final = "%Y%m%d%H%M%S"


def segment_name(ms: int) -> str:
    """Returns the name of a segment made at `ms`: local time, as Nutch's."""
    return datetime.fromtimestamp(ms / 1000).strftime(TIME_FORMAT)


def time_of(name: str) -> datetime | None:
    """Returns the time that a segment is called after, or a slice of one; None where it is none."""
    try:
        return datetime.strptime(name.partition("-")[0], TIME_FORMAT)
    except ValueError:
        return None


def name_of(name: str) -> str:
    """Returns a name without the number of a slice; empty where it is no time."""
    return "" if time_of(name) is None else name.partition("-")[0]


def name_before(name: str) -> str:
    """Returns the name that is a second less than another; empty where that is no time."""
    time = time_of(name)
    return "" if time is None else (time - timedelta(seconds=1)).strftime(TIME_FORMAT)


def place_segment(directory: Path, parent: Path, now: int) -> Path:
    """Renames a complete segment to the first free name from `now` (ms) on."""
    return _place(directory, parent, datetime.fromtimestamp(now / 1000))


def _place(directory: Path, parent: Path, time: datetime) -> Path:
    while True:
        path = parent / time.strftime(TIME_FORMAT)
        if not path.exists():
            try:
                if not (copies(directory) and copies(path)):
                    return directory.rename(path)
                journal.begin(path, [(directory, path)])
                return path
            except OSError as exc:
                if exc.errno not in {errno.EEXIST, errno.ENOTEMPTY}:  # another's, made meanwhile
                    raise
        time += timedelta(seconds=1)


def place_together(work: Path, parent: Path, job: str, counters: Mapping[str, int]) -> list[Path]:
    """Moves all segments in the folder `work`, which is in `parent`, to their places; returns
    these.

    `job` tells the jobs apart that make segments in `parent`, `counters` is what came of this one.
    """
    (work / RECORD).write_text(json.dumps({"job": job, "counters": counters}), encoding="utf-8")
    sync_tree(work)
    folder = work.rename(own_name(parent, PREFIX))
    sync_path(parent)
    places = _move(folder, parent)
    remove(folder)
    return places


def finish_others(parent: Path, job: str = "") -> dict[str, int] | None:
    """Moves what killed processes left to be moved; returns the counters of `job` if it was among
    that.

    Several may do so at once: who gives a folder the name of its own process has it for itself.
    """
    found = None
    for left in left_over(parent, PREFIX):
        with suppress(FileNotFoundError):  # another process was faster
            folder = left.rename(own_name(parent, PREFIX))
            for path in _move(folder, parent):
                log.info("%s, which a job that was stopped has made, is in its place", path)
            made_by, counters = _read(folder / RECORD)
            found = counters if made_by == job else found
            remove(folder)
    return found


def waiting(parent: Path) -> list[Path]:
    """Returns the folders of killed processes in `parent` with segments that are whole, and not all
    in their places.
    """
    return left_over(parent, PREFIX)


def segments_of(folder: Path) -> list[Path]:
    """Returns the segments in such a folder, in the order of their names; none where it is gone."""
    return sorted(path for path in folder.glob("*") if path.is_dir())


def _move(folder: Path, parent: Path) -> list[Path]:
    places = [
        _place(path, parent, datetime.strptime(path.name, TIME_FORMAT))
        for path in segments_of(folder)
    ]
    sync_path(parent)
    return places


def _read(record: Path) -> tuple[str, dict[str, int]]:
    """Returns the job and its counters; without a name if the record can't be read: its segments
    are whole in any case.
    """
    try:
        data = strictjson.loads(record.read_text(encoding="utf-8"))
        return str(data["job"]), {str(name): int(count) for name, count in data["counters"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
        log.warning("%s can't be read, so the same job makes its segments again: %s", record, exc)
        return "", {}
