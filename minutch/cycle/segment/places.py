"""Names and places of segments: of one alone, of all those that one job makes, and of those that
have taken the place of others.

    <segments>/yyyyMMddHHmmss/          a segment in its place
    <segments>/.import-…/<name>/        a whole segment that is yet to be moved there
    <segments>/.import-…/import.json    := JSON {"job": what has made them, "counters": {name:
                                        count}}
    <segments>/<name>/.replaces         := JSON {"segments": [names], "above": [name], "since": ms,
                                        "checked": ms or null, "pages": count}
    <segments>/<name>/.above            := name of the segment that it is placed with
    <segments>/<name>/.began            := (URL LF)*, what the first of all segments had fetched,
                                        once that is replaced: where the crawl began

A job that makes several writes them in one work folder, whose rename to such a name (`install` has
it in full) makes all of them part of the crawl. Then each is moved, and in the end the folder goes.
Where the process was killed in between, `segments_in` finds the rest in the folder; the next job
that makes segments so, or repairs, moves it. By the record the same job, run again, knows that it
is done.

A merged segment replaces those that it names, and the one rename that puts it in its place is the
moment at which readers see it instead of them (`visible`): never both, never neither. If it has a
layer above it (`mergerules.layered`), that was placed before, with a record that names nothing, and
is not seen until then; it loses its `.above` afterwards. So whoever is killed between two files
leaves the old segments or the new ones, and `settle` clears away the rest.

What is replaced stays where it is for a while, for programs that have found it before: Nutch, too,
which sees both and by their names takes the right one. Then it goes (`retire`), unless somebody
still holds it. `Hold` is that of a reader: the lock of a byte for each name, in the folder of the
segments itself, shared by all readers and gone with their process. "checked" is when the CrawlDb
was asked which records may go, "pages" how many have a fetch.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from minutch import strictjson
from minutch.paths import copies
from minutch.work.tables.install import NEW, left_over, own_name, remove, sync_path, sync_tree

log = logging.getLogger(__name__)

PREFIX: Final = ".import-"
RECORD: Final = "import.json"
TIME_FORMAT: Final = "%Y%m%d%H%M%S"
REPLACES: Final = ".replaces"
ABOVE: Final = ".above"
BEGAN: Final = ".began"
_LONGEST_NAME: Final = 255
_FLOCK: Final = struct.Struct("hhqqi4x")
"""struct flock: type, whence, start, length, pid."""


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
                    # Fails where something is: two processes can't get the same name.
                    return directory.rename(path)
                path.begin_moves([(directory, path)])
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
    # The moment from which the job is done, whatever happens to this process.
    folder = work.rename(own_name(parent, PREFIX))
    sync_path(parent)
    places = _move(folder, parent)
    remove(folder)
    return places


def finish_others(parent: Path, job: str = "") -> dict[str, int] | None:
    """Moves what killed processes left to be moved; returns the counters of `job` if it was one of
    them.

    Several processes may do so at once: the one that renames a folder after itself has it to
    itself.
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
    """Returns dead processes' folders in `parent` with whole segments not all in their places."""
    return left_over(parent, PREFIX)


def segments_of(folder: Path) -> list[Path]:
    """Returns the segments in such a folder, in the order of their names; none if it is gone."""
    return sorted(path for path in folder.glob("*") if path.is_dir())


def _move(folder: Path, parent: Path) -> list[Path]:
    places = [
        _place(path, parent, datetime.strptime(path.name, TIME_FORMAT))
        for path in segments_of(folder)
    ]
    sync_path(parent)
    return places


def _read(record: Path) -> tuple[str, dict[str, int]]:
    """Returns the job and its counters, or no name if the record is unreadable (but whole)."""
    try:
        data = strictjson.loads(record.read_text(encoding="utf-8"))
        return str(data["job"]), {str(name): int(count) for name, count in data["counters"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
        log.warning("%s can't be read, so the same job makes its segments again: %s", record, exc)
        return "", {}


@dataclass(frozen=True, slots=True)
class Replaces:
    """The record of a segment that has replaced others."""

    segments: Sequence[str] = ()
    above: Sequence[str] = ()
    since: int = 0
    checked: int | None = None
    pages: int = 0

    @classmethod
    def of(cls, segment: Path) -> Replaces | None:
        """Returns the record of a segment; None if it has none, or one that can't be read."""
        path = segment / REPLACES
        try:
            found = strictjson.loads(path.read_text(encoding="utf-8"))
            return cls(
                [_name(str(name)) for name in found["segments"]],
                [_name(str(name)) for name in found["above"]],
                int(found["since"]),
                None if found["checked"] is None else int(found["checked"]),
                int(found["pages"]),
            )
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, KeyError, TypeError) as exc:
            log.warning(
                "%s can't be read (%s): the segments that %s has replaced count with it, until they"
                " are merged again",
                path,
                exc,
                segment.name,
            )
            return None

    def write(self, segment: Path) -> None:
        """Writes it into a segment, whole or not at all."""
        fresh = segment / f"{REPLACES}.new"
        record = {name: getattr(self, name) for name in self.__slots__}
        fresh.write_text(json.dumps(record), encoding="utf-8")
        # On disk before the rename, or the name may be there without the contents.
        sync_path(fresh)
        fresh.replace(segment / REPLACES)
        sync_path(segment)


def _name(found: str) -> str:
    """Returns the name of a folder beside others. Raises ValueError for what leads elsewhere."""
    if not found.strip(".") or {"/", "\0"} & {*found} or len(found.encode()) > _LONGEST_NAME:
        raise ValueError(f"no name of a segment: {found[:80]!r}")
    return found


def began_with(segment: Path) -> list[str] | None:
    """Returns the URLs that the crawl began with, if a segment has replaced its first one."""
    try:
        return (segment / BEGAN).read_text("utf-8", "replace").split("\n")[:-1]
    except (FileNotFoundError, NotADirectoryError):
        return None


def visible(found: Iterable[Path]) -> list[Path]:
    """Returns those of the entries of a folder of segments that readers are to see."""
    by_name = {path.name: path for path in found}
    records = {name: record for name, path in by_name.items() if (record := Replaces.of(path))}
    hidden = {name for record in records.values() for name in record.segments}
    for name, path in by_name.items():
        main = _main_of(path)
        # Half of a replacement: the old segments are still what counts.
        if main is not None and main not in by_name:
            hidden.add(name)
    for name, record in records.items():
        for above in record.above:  # it may have come while the folder was read
            path = by_name[name].with_name(above)
            if above not in by_name and path.is_dir():
                by_name[above] = path
    return [path for name, path in by_name.items() if name not in hidden]


def _main_of(segment: Path) -> str | None:
    """Returns the name of the segment that this one is placed with; None if it is in its place."""
    try:
        return (segment / ABOVE).read_text("utf-8", "replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None


def place(work: Path, folder: Path, main: str, above: Sequence[str], record: Replaces) -> None:
    """Moves the segment `main` in `work`, and those `above` it, into `folder`, where they replace
    the segments that `record` names from then on. What is in `work` is on disk.
    """
    replace(record, above=above).write(work / main)
    for name in above:
        # An empty record: compaction knows a layer by it.
        Replaces().write(work / name)
        (work / name / ABOVE).write_text(f"{main}\n", encoding="utf-8")
        sync_path(work / name / ABOVE)
        sync_path(work / name)
        (work / name).rename(folder / name)
    sync_path(folder)
    # The moment at which readers see it in place of the others; what is above is there already.
    (work / main).rename(folder / main)
    sync_path(folder)
    for name in above:
        # Not needed any more; `settle` does so after a kill.
        (folder / name / ABOVE).unlink()


def settle(folder: Path) -> None:
    """Finishes what a killed process left of `place`; only the holder of the lock may call it."""
    for path in _segments(folder):
        main = _main_of(path)
        if main is not None and (folder / main).is_dir():
            (path / ABOVE).unlink()
        elif main is not None:
            _take_away(path)


def retire(folder: Path, before: int) -> list[str]:
    """Removes the segments that were replaced `before` that time (ms) and that nobody holds;
    returns their names. Only the holder of the lock may call it.
    """
    gone = []
    for path in _segments(folder):
        record = Replaces.of(path)
        if record is None or not record.segments or record.since > before:
            continue
        there = [name for name in record.segments if (folder / name).is_dir()]
        left = [name for name in there if is_held(folder, name)]
        for name in there:
            if name not in left:
                _take_away(folder / name)
                gone.append(name)
        if path.is_dir() and len(left) < len(record.segments):
            sync_path(folder)  # a name in a record hides whatever gets that name
            replace(record, segments=left).write(path)
    return gone


def _segments(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.iterdir() if not path.name.startswith((".", "_")) and path.is_dir()
    )


def _take_away(path: Path) -> None:
    """Removes a segment, which is none any more from the first moment on."""
    aside = own_name(path.parent, NEW)
    # A half-removed segment would be read as a whole one.
    path.rename(aside)
    remove(aside)


class Hold:
    """Keeps segments on disk as long as it lives, even when they are replaced.

    Where the file system has no such locks, nothing holds them but the time that they stay anyway.
    """

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        self._descriptor = -1
        with suppress(OSError):
            self._descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            for name in names:
                # Open file description locks: gone with the descriptor, and no other close in the
                # process drops them.
                lock = _lock(fcntl.F_RDLCK, name)
                fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, lock)

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process holds nothing."""
        return type(None), ()


def is_held(folder: Path, name: str) -> bool:
    """Tells whether a reader in this or another process of this machine holds a segment."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # Asks whether a writer's lock would be refused, without taking it.
        found = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _lock(fcntl.F_WRLCK, name))
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return bool(_FLOCK.unpack(found)[0] != fcntl.F_UNLCK)


def _lock(kind: int, name: str) -> bytes:
    # An offset that fits into off_t; two names with the same one are held longer than needed.
    at = int.from_bytes(sha256(name.encode()).digest()[:7], "big")
    return _FLOCK.pack(kind, os.SEEK_SET, at, 1, 0)
