"""Names files and folders of a store: a file system of Hadoop (hdfs://, s3a://).

    HadoopPath("hdfs://name:8020/crawl") / "crawldb"     str() gives hdfs://name:8020/crawl/crawldb

Files are read in ranges (`open("rb")`, `read_range`) and written whole: a
file that is being written stays on this machine until it is closed.

Where a rename copies file by file (s3a and the like), folders are moved by a journal:

    <folder>/.journal := JSON {"owner": the process that is at it, as in a lock,
                               "moves": [[source, target], ...]}     what is left to do, in this
                               order

The folder is a database, or a segment. Sources and targets are paths below the folder above it;
without a target, the source is removed. The journal is one file, there or not. Once it is written,
all that is to come is complete: whoever goes on does the rest, file by file, each of which may be
done again. In between the folder is not whole: nobody may read it, and readers of segments look for
the journal first.
"""

# mypy: disable-error-code="override"
# HadoopPath has the methods of Path without their rarer options.

from __future__ import annotations

import errno
import io
import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import total_ordering
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, Any, Final, NamedTuple, cast

from minutch import strictjson
from minutch.annexes.stores import hadoop
from minutch.errors import StoreError
from minutch.paths import SCHEME, Move, StorePath
from minutch.work.tables.lock import Owner
from minutch.work.tables.parallel import for_each

JOURNAL: Final = ".journal"
_AT_A_TIME: Final = 16
"""Files that are moved side by side: the store copies them, and each takes it a while."""


def _begin_moves(folder: StorePath, moves: Iterable[Move]) -> None:
    """Makes these moves, for `folder` or in it. Raises FileExistsError if it has a journal."""
    own = Owner.current().content.decode().strip()
    pending = PendingMoves(
        own, [(_name(folder, source), _name(folder, target)) for source, target in moves]
    )
    (folder / JOURNAL).create(pending.text.encode())
    _do(folder, pending)


def resume_moves(folder: StorePath, *, if_abandoned: bool = False) -> None:
    """Makes the moves that a journal has left; does nothing without one. Nobody else may be working
    on it: `if_abandoned`, nothing is done unless the process that began is gone.
    """
    pending = _read(folder / JOURNAL)
    if pending is not None and (pending.is_abandoned or not if_abandoned):
        _do(folder, pending)


def _has_journal(folder: StorePath) -> bool:
    """Returns whether a folder has a journal."""
    return (folder / JOURNAL).exists()


def require_no_moves(folder: StorePath, hint: str) -> None:
    """Raises StoreError where a folder has a journal."""
    pending = _read(folder / JOURNAL)
    if pending is not None:
        raise StoreError(
            f"{folder} is not whole: process {pending.owner} is, or was, putting its files in"
            f" place; {hint}"
        )


class PendingMoves(NamedTuple):
    """The moves that a journal records."""

    owner: str
    moves: Sequence[tuple[str, str]]

    @property
    def text(self) -> str:
        """Returns the text of the journal."""
        return json.dumps(self._asdict())

    @property
    def is_abandoned(self) -> bool:
        """True if its process certainly no longer runs."""
        owner = Owner.parse(self.owner)
        return owner is not None and (owner == Owner.current() or owner.is_gone())


def _do(folder: StorePath, pending: PendingMoves) -> None:
    while pending.moves:
        source, target = (folder.parent / name if name else None for name in pending.moves[0])
        assert source is not None
        if target is not None:
            for_each(_move, list(_files(source, target)), _AT_A_TIME)
        source.remove_tree()
        pending = pending._replace(moves=pending.moves[1:])
        if pending.moves:
            (folder / JOURNAL).write_text(pending.text, encoding="utf-8")
    (folder / JOURNAL).unlink()


def _name(folder: StorePath, path: StorePath | None) -> str:
    return "" if path is None else "/".join(path.parts[len(folder.parts) - 1 :])


def _read(journal: StorePath) -> PendingMoves | None:
    try:
        found = strictjson.loads(journal.read_text(encoding="utf-8"))
        moves = [
            (_checked(str(source)), _checked(str(target)) if target else "")
            for source, target in found["moves"]
        ]
        return PendingMoves(str(found["owner"]), moves)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as exc:
        raise StoreError(
            f"{journal}: expected JSON with owner and moves, found something else ({exc})"
        ) from exc


def _checked(name: str) -> str:
    """Returns a path that leads down from the folder above. Raises ValueError for any other."""
    if not all(part.strip(".") for part in name.split("/")):
        raise ValueError(f"a path that leads elsewhere: {name!r}")
    return name


def _files(source: StorePath, target: StorePath) -> Iterator[tuple[StorePath, StorePath]]:
    """Yields the files of a folder, of which some may be in place already, and their places."""
    if not source.is_dir():
        return
    target.mkdir(exist_ok=True)
    for path in source.iterdir():
        if path.is_dir():
            yield from _files(path, target / path.name)
        else:
            yield path, target / path.name


def _move(places: tuple[StorePath, StorePath]) -> None:
    source, target = places
    source.replace(target)


_READ_AHEAD: Final = 1 << 17
_NO_RENAME: Final = ("s3a", "s3", "s3n", "gs", "wasb", "wasbs", "oss", "cosn", "obs", "swift")


@total_ordering
class HadoopPath(StorePath):
    """The path of a file or folder in a store."""

    __slots__ = ("_pure",)

    def __init__(self, uri: str) -> None:
        if not SCHEME.match(uri):
            raise ValueError(f"expected SCHEME://HOST/PATH, found {uri!r}")
        self._pure = PurePosixPath(uri)

    # -- the name

    def __str__(self) -> str:
        return str(self._pure).replace(":/", "://", 1)

    def __repr__(self) -> str:
        return f"HadoopPath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HadoopPath) and self._pure == other._pure

    def __lt__(self, other: HadoopPath) -> bool:
        return self._pure < other._pure

    def __hash__(self) -> int:
        return hash(self._pure)

    def __reduce__(self) -> tuple[Any, ...]:
        return HadoopPath, (str(self),)

    def __truediv__(self, name: str | PurePath) -> HadoopPath:
        return self._with(self._pure / name)

    def _with(self, pure: PurePosixPath) -> HadoopPath:
        return HadoopPath(str(pure).replace(":/", "://", 1))

    @property
    def parts(self) -> tuple[str, ...]:
        """Scheme, host and names: `hdfs:`, `name:8020`, `crawl`."""
        return self._pure.parts

    @property
    def name(self) -> str:
        """The last part."""
        return self._pure.name

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return self._pure.stem

    @property
    def suffix(self) -> str:
        """The end of the name, from its last dot on."""
        return self._pure.suffix

    @property
    def parent(self) -> HadoopPath:
        """The folder above; the root's is the root."""
        return self if len(self.parts) <= 2 else self._with(self._pure.parent)

    @property
    def parents(self) -> tuple[HadoopPath, ...]:
        """All folders above, nearest first."""
        return tuple(map(self._with, [*self._pure.parents][: len(self.parts) - 2]))

    def with_name(self, name: str) -> HadoopPath:
        """The path of another name in the same folder."""
        return self._with(self._pure.with_name(name))

    def relative_to(self, folder: HadoopPath) -> PurePosixPath:
        """The name of this path in a folder above it. Raises ValueError if that is not above it."""
        return self._pure.relative_to(folder._pure)

    def is_absolute(self) -> bool:
        """True: a URI does not depend on the working directory."""
        return True

    def absolute(self) -> HadoopPath:
        """The same path."""
        return self

    @property
    def scheme(self) -> str:
        """The URI's scheme: `hdfs`, `s3a` …"""
        return self.parts[0].removesuffix(":")

    @property
    def renames(self) -> bool:
        """True if the store renames a folder in one step; others copy its files one by one."""
        return self.scheme not in _NO_RENAME

    @property
    def scratch(self) -> Path:
        """A folder on this machine for files in transit, that of all stores."""
        return Path(hadoop.scratch())

    @property
    def _uri(self) -> str:
        return str(self) if len(self.parts) > 2 else f"{self}/"

    # -- reading folders

    def _look(self) -> hadoop.FileStatus | None:
        try:
            return hadoop.look(self._uri)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def exists(self) -> bool:
        """Returns whether there is a file or folder."""
        return self._look() is not None

    def is_dir(self) -> bool:
        """Returns whether there is a folder."""
        found = self._look()
        return found is not None and found.is_folder

    def is_file(self) -> bool:
        """Returns whether there is a file."""
        found = self._look()
        return found is not None and not found.is_folder

    def is_symlink(self) -> bool:
        """Returns False: no store that is read here has links."""
        return False

    def stat(self) -> os.stat_result:
        """Kind, size and time of the last change; the rest is zero. Raises FileNotFoundError."""
        found = hadoop.look(self._uri)
        mode = stat.S_IFDIR | 0o755 if found.is_folder else stat.S_IFREG | 0o644
        seconds = found.modified // 1000
        return os.stat_result((mode, 0, 0, 1, 0, 0, found.size, seconds, seconds, seconds))

    def iterdir(self) -> Iterator[HadoopPath]:
        """Yields what a folder contains."""
        for status in hadoop.list_folder(self._uri):
            yield self / status.name

    def glob(self, pattern: str) -> Iterator[HadoopPath]:
        """Yields what a folder contains under names that match a pattern without slashes."""
        if self.is_dir():
            yield from (path for path in self.iterdir() if fnmatchcase(path.name, pattern))

    def rglob(self, pattern: str) -> Iterator[HadoopPath]:
        """Like `glob`, in the folders below as well."""
        for status in hadoop.list_folder(self._uri):
            path = self / status.name
            if fnmatchcase(status.name, pattern):
                yield path
            if status.is_folder:
                yield from path.rglob(pattern)

    # -- changing folders

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Makes a folder. Stores that have folders only as parts of names need no parent."""
        if not exist_ok and self.exists():
            raise FileExistsError(errno.EEXIST, "File exists", str(self))
        if not parents and self.renames and not self.parent.exists():
            raise FileNotFoundError(errno.ENOENT, "No such folder", str(self.parent))
        hadoop.make_folder(self._uri)

    def rename(self, target: HadoopPath) -> HadoopPath:
        """Renames a file or folder. Raises FileExistsError if the target exists."""
        _require_store(target)
        hadoop.rename(self._uri, str(target))
        return target

    def replace(self, target: HadoopPath) -> HadoopPath:
        """Renames a file over another, in two steps: for a moment there is neither."""
        _require_store(target)
        hadoop.delete(str(target))
        return self.rename(target)

    def unlink(self, missing_ok: bool = False) -> None:
        """Removes a file."""
        if not hadoop.delete(self._uri) and not missing_ok:
            raise FileNotFoundError(errno.ENOENT, "No such file", str(self))

    def rmdir(self) -> None:
        """Removes an empty folder."""
        if next(self.iterdir(), None) is not None:
            raise OSError(errno.ENOTEMPTY, "Directory not empty", str(self))
        hadoop.delete(self._uri)

    def remove_tree(self) -> None:
        """Removes a file, or a folder with its contents, if it exists."""
        hadoop.delete(self._uri, tree=True)

    begin_moves = _begin_moves
    resume_moves = resume_moves
    has_moves = _has_journal
    require_no_moves = require_no_moves

    # -- files

    def create(self, content: bytes) -> None:
        """Writes a new file in one step. Raises FileExistsError."""
        hadoop.create(self._uri, content)

    def read_range(self, start: int, end: int) -> bytearray:
        """Reads the bytes from `start` to before `end`, or to the end of the file."""
        file = hadoop.Ranges(self._uri)
        try:
            return file.read(start, end)
        finally:
            file.close()

    def read_bytes(self) -> bytes:
        """Reads a file."""
        with self.open("rb") as file:
            return cast(bytes, file.read())

    def write_bytes(self, data: bytes) -> int:
        """Writes a file and returns its size."""
        with self.open("wb") as file:
            return file.write(data)

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        """Reads a file of text."""
        with self.open("r", -1, encoding, errors) as file:
            return cast(str, file.read())

    def write_text(
        self,
        data: str,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> int:
        """Writes a file of text and returns its length in characters."""
        with self.open("w", -1, encoding, errors, newline) as file:
            return file.write(data)

    def open(
        self,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """Opens a file to be read, or to be written whole."""
        kind = mode.replace("b", "").replace("t", "")
        raw: io.RawIOBase
        binary: Any
        if kind == "r":
            raw = _FileReader(self._uri)
            binary = raw if buffering == 0 else io.BufferedReader(raw)
        elif kind in ("w", "x"):
            if kind == "x" and self.exists():
                raise FileExistsError(errno.EEXIST, "File exists", str(self))
            raw = _FileWriter(self._uri)
            binary = raw if buffering == 0 else io.BufferedWriter(raw)
        else:
            message = f"files are read or written whole, not opened as {mode!r}"
            raise OSError(errno.EOPNOTSUPP, message, str(self))
        if "b" in mode:
            return cast(IO[Any], binary)
        return io.TextIOWrapper(binary, encoding, errors, newline)


def _require_store(path: object) -> None:
    """Raises TypeError for a path of this machine: no file is renamed into a store."""
    if not isinstance(path, HadoopPath):
        raise TypeError(f"expected the path of a store, found {path!r}")


class _FileReader(io.RawIOBase):
    """A file of a store, read in ranges."""

    def __init__(self, uri: str) -> None:
        self._ranges = hadoop.Ranges(uri)
        self._at = 0
        self._held, self._held_at = bytearray(), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._ranges.size)[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        data = self._next(len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _next(self, size: int) -> bytearray:
        """Returns up to `size` bytes; a short read fetches those that follow as well."""
        if size >= _READ_AHEAD:
            return self._ranges.read(self._at, self._at + size)
        if not self._held_at <= self._at < self._held_at + len(self._held):
            self._held = self._ranges.read(self._at, self._at + _READ_AHEAD)
            self._held_at = self._at
        start = self._at - self._held_at
        return self._held[start : start + size]

    def readall(self) -> bytes:
        data = self._ranges.read(self._at, self._ranges.size)
        self._at += len(data)
        return bytes(data)

    def close(self) -> None:
        if not self.closed:
            self._ranges.close()
        super().close()


class _FileWriter(io.FileIO):
    """A file of a store: on this machine until it is closed."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._file = hadoop.new_file()
        super().__init__(self._file, "w")

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        hadoop.upload(self._file, self._uri)
