"""Writes WARC files while pages are fetched: each page before the fetch log says it is done.

    <segment>/_fetch/warc/minutch-<segment>-PP-NNNNN.warc.gz    while fetching; PP numbers the log
    <segment>/warc/                                             when all is done

A frame of the log says where in which file its records lie. After a kill or a power cut the log is
cut back behind the last frame whose records are whole, and the file behind them: so what was not
finished is fetched again, and nothing stands in the files twice. Files are on the medium before the
log is.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from isal import isal_zlib

from minutch.clock import Clock
from minutch.cycle.fetch.results.fetchlog import (
    AppendFile,
    Frame,
    Part,
    WarcCapture,
    cut,
    positions,
)
from minutch.cycle.fetch.settings import WarcSettings
from minutch.cycle.segment.store import WARC, Segment
from minutch.hadoop.formats.writables import Text
from minutch.records.metadata import RESPONSE_CODE_KEY, RESPONSE_HEADERS_KEY
from minutch.warc.pagewriter import (
    NOT_MODIFIED,
    status_of,
    write_fetch_data,
    write_page,
    write_request,
    write_revisit,
)
from minutch.warc.warcfile import V1_1, Output, WarcFiles, crawler_info, local_host, uri_of
from minutch.work.tables.install import sync_path

FOLDER: Final = "warc"

_PLACE: Final = struct.Struct(">QQ")
_CODE: Final = Text(RESPONSE_CODE_KEY)
_NEWEST: Final = 10_000
"""Frames at the end of a log whose records are looked at: far more than are written between two
syncs.
"""
_CHUNK: Final = 1 << 20
_GZIP: Final = 31
_NOT_GZIP: Final[Any] = isal_zlib.error


# -- files -----------------------------------------------------------------------------------------


class _File(AppendFile):
    """A file that takes the records of a page in one write: all of them, or none."""

    def __init__(self, path: Path, size: int = 0) -> None:
        super().__init__(path, size)
        self._waiting: list[bytes] = []

    def write(self, data: bytes, /) -> None:
        self._waiting.append(data)

    def flush(self) -> None:
        """Writes what waits."""
        data, self._waiting = b"".join(self._waiting), []
        super().write(data)

    def close(self) -> None:
        self.flush()
        super().close()


@dataclass
class PageArchive:
    """The WARC files of one process of a fetch; the first is opened for the first page."""

    segment: Segment
    folder: Path
    share: int
    settings: WarcSettings
    clock: Clock
    info: Mapping[str, str] = field(init=False)
    _files: WarcFiles = field(init=False)
    _open: _File | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.info = crawler_info(self.settings.crawler, *local_host(), V1_1)
        last = _names(self.segment, self.folder, self.share)[-1:]
        self._files = WarcFiles(
            self._begin,
            compress=True,
            limit=self.settings.limit,
            info=lambda: (self.clock.now(), self.info),
            number=_number(last[0]) + 1 if last else 0,
            level=self.settings.level,
            version=V1_1,
        )
        if last and (self.folder / last[0]).exists():
            self._open = _File(self.folder / last[0], (self.folder / last[0]).stat().st_size)
            self._files.go_on(last[0], self._open, self._open.size)

    def _begin(self, number: int) -> tuple[str, Output]:
        self.folder.mkdir(exist_ok=True)
        name = f"{_prefix(self.segment, self.share)}{number:05}.warc.gz"
        self._open = _File(self.folder / name)
        sync_path(self.folder)
        sync_path(self.folder.parent)
        return name, self._open

    def keep(self, frame: Frame) -> None:
        """Writes what was visited, and says in the frame where. Raises StoreError."""
        captures, frame.captures = frame.captures, []
        if not captures:
            return
        # May begin a new file: so `_open` is looked at afterwards.
        self._files.begin_page()
        file = self._open
        assert file is not None
        start = self._files.size
        for each in captures:
            write_capture(self._files, each)
        file.flush()
        frame.add(Part.WARC, self._files.name, _PLACE.pack(start, self._files.size))

    def sync(self) -> None:
        """Brings what was written onto the medium (safe from another thread)."""
        file = self._open
        if file is not None:
            file.sync()

    def close(self) -> None:
        """Syncs and closes."""
        self._files.close()
        self._open = None


def write_capture(files: WarcFiles, capture: WarcCapture) -> None:
    """The records of an answer; none for a URL that is no URI, which a warning names."""
    target = uri_of(capture.url)
    if target is None:
        return
    code = None
    if target.startswith(("http:", "https:")):
        kept = capture.content.metadata.get(RESPONSE_HEADERS_KEY) or ""
        code = (
            status_of(kept) or status_of(f"HTTP/1.1 {capture.datum.metadata.get(_CODE, '')}") or 200
        )
    time, content = capture.time, capture.content
    if capture.profile:
        page = write_revisit(
            files, time, target, content, capture.original, profile=capture.profile, code=code
        )
    else:
        digest = "" if capture.original is None else capture.original.digest
        page = write_page(files, time, target, content, code=code, digest=digest)
    write_request(files, time, target, content, page)
    write_fetch_data(
        files,
        time,
        target,
        capture.datum,
        None,
        page,
        answer=content if capture.profile == NOT_MODIFIED else None,
    )


def _prefix(segment: Segment, share: int) -> str:
    return f"minutch-{segment.name}-{share:02}-"


def _number(name: str) -> int:
    return int(name.removesuffix(".warc.gz").rpartition("-")[2])


def _names(segment: Segment, folder: Path, share: int) -> list[str]:
    """Returns the files of a process, in the order in which they were written."""
    pattern = f"{_prefix(segment, share)}*.warc.gz"
    return sorted(
        {path.name for each in (folder, segment.path / WARC) for path in each.glob(pattern)},
        key=_number,
    )


# -- after a kill, and at the end ------------------------------------------------------------------


class _Position(NamedTuple):
    """The position of a frame's WARC records; `frame` is the offset of the frame in the log."""

    frame: int
    name: str
    start: int
    end: int


def number_of(log: Path) -> int:
    """Returns the number that a log has, and the WARC files that belong to it."""
    return int(log.name.rpartition("-")[2])


def reconcile(segment: Segment, work: Path, logs: list[Path]) -> None:
    """Makes logs and WARC files of a broken fetch agree: cuts off what is only in one of them, or
    not whole.
    """
    folder = work / FOLDER
    for log in logs:
        found = _whole(folder, segment.path / WARC, log)
        share = number_of(log)
        last = found[-1] if found else None
        for name in _names(segment, folder, share):
            path = folder / name
            # No frame speaks of these files.
            if last is None or _number(name) > _number(last.name):
                path.unlink(missing_ok=True)
            elif name == last.name and path.exists():
                os.truncate(path, last.end)


def _positions(log: Path) -> Iterator[_Position]:
    with log.open("rb") as file:
        for _, found, frame in positions(log):
            for entry in found:
                if entry.part is Part.WARC:
                    file.seek(entry.offset)
                    yield _Position(
                        frame, entry.key.decode(), *_PLACE.unpack(file.read(entry.length))
                    )


def _whole(folder: Path, finished: Path, log: Path) -> list[_Position]:
    """Returns the positions of the newest frames, after the log was cut at the first whose records
    can't be read.

    What was not on the medium when power failed may be lost in any order. So the warcinfo record,
    too, is looked at, with the first frame of its file.
    """
    found = [*deque(_positions(log), maxlen=_NEWEST)]
    ends = {found[0].name: found[0].start} if len(found) == _NEWEST else {}
    for number, position in enumerate(found):
        if not _is_whole(folder, finished, position._replace(start=ends.get(position.name, 0))):
            cut(log, position.frame)
            return found[:number]
        ends[position.name] = position.end
    return found


def _is_whole(folder: Path, finished: Path, position: _Position) -> bool:
    """Tells whether the records at a position can be read; those of finished files can."""
    path = folder / position.name
    if not path.exists():
        return (finished / position.name).exists()
    if path.stat().st_size < position.end:
        return False
    with path.open("rb") as file:
        file.seek(position.start)
        return _members_are_whole(lambda: file.read(min(_CHUNK, position.end - file.tell())))


def _members_are_whole(read: Callable[[], bytes]) -> bool:
    """Tells whether `read` gives gzip members and nothing else."""
    inflater = isal_zlib.decompressobj(wbits=_GZIP)
    fresh = True
    try:
        while data := read():
            while data:
                inflater.decompress(data)
                # Each record is a gzip member of its own (WARC 1.1, Annex D).
                fresh, data = inflater.eof, inflater.unused_data
                if fresh:
                    inflater = isal_zlib.decompressobj(wbits=_GZIP)
    except _NOT_GZIP:
        return False
    return fresh


def finish(segment: Segment, work: Path) -> None:
    """Moves the files into the segment."""
    folder, target = work / FOLDER, segment.path / WARC
    paths = sorted(folder.glob("*.warc.gz"))
    if not paths:
        return
    target.mkdir(exist_ok=True)
    for path in paths:
        path.rename(target / path.name)
    sync_path(target)
    sync_path(segment.path)
    folder.rmdir()
