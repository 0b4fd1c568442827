"""A Path on a file system of Hadoop: the part of pathlib that databases and segments need.

    StorePath("hdfs://name:8020/crawl") / "crawldb"     str() gives hdfs://name:8020/crawl/crawldb

Files are read in ranges (`open("rb")`, `read_range`) and written whole: what is written lies on
this machine until it is closed. What a store lacks raises OSError: appending, links, modes. `os`,
`shutil` and `mmap` know nothing of stores.
"""

from __future__ import annotations

import io
import os
import re
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PosixPath
from typing import IO, Any, Final, Self, TypeGuard, cast

from minutch.errors import ConfigError
from minutch.hadoop.stores import hadoop

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/]*)")
_READ_AHEAD: Final = 1 << 17
_NO_RENAME: Final = ("s3a", "s3", "s3n", "gs", "wasb", "wasbs", "oss", "cosn", "obs", "swift")


def as_path(text: str | Path) -> Path:
    """The path that a word names: on this machine, or with a scheme on a file system of Hadoop.
    Raises ConfigError.
    """
    if isinstance(text, Path):
        return text
    found = _SCHEME.match(text)
    if found is None:
        return Path(text)
    if found[1] == "file":
        return Path(text[found.end() :] or "/")
    if not found[2]:
        raise ConfigError(f"{text} names no host or bucket: expected {found[1]}://HOST/PATH")
    return StorePath(text)


def is_local(path: Path) -> bool:
    """Whether a path is one of this machine."""
    return not isinstance(path, StorePath)


def copies(path: Path) -> TypeGuard[StorePath]:
    """Whether a folder of this file system is renamed by copying its files, one by one."""
    return isinstance(path, StorePath) and not path.renames


def near(path: Path) -> Path:
    """A folder on this machine for what a job keeps for itself: the path, or a folder beside all
    stores.
    """
    return path if is_local(path) else Path(hadoop.scratch())


def remove_tree(path: StorePath) -> None:
    """Remove a folder or file and all that is in it, if there is something."""
    hadoop.delete(str(path), tree=True)


class StorePath(PosixPath):
    """See above. All that it knows is in its parts, `hdfs:`, `name:8020`, `crawl`, so that it may
    travel.
    """

    def __str__(self) -> str:
        text = super().__str__()
        return text.replace(":/", "://", 1) if self.is_absolute() else text

    def __repr__(self) -> str:
        return f"StorePath({str(self)!r})"

    def __fspath__(self) -> str:
        return str(self)

    @property
    def scheme(self) -> str:
        """`hdfs`, `s3a` ..."""
        return self.parts[0].removesuffix(":")

    @property
    def renames(self) -> bool:
        """Whether its file system renames a folder in one step; others copy file by file."""
        return self.scheme not in _NO_RENAME

    def is_absolute(self) -> bool:
        return bool(self.parts) and self.parts[0].endswith(":")

    def absolute(self) -> Self:
        return self

    def resolve(self, strict: bool = False) -> Self:
        return self

    # -- looking

    def _look(self) -> hadoop.Entry | None:
        if len(self.parts) < 2:
            return None
        try:
            return hadoop.look(self._uri)
        except (FileNotFoundError, NotADirectoryError):
            return None

    @property
    def _uri(self) -> str:
        return str(self) if len(self.parts) > 2 else f"{self}/"

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        return self._look() is not None

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        found = self._look()
        return found is not None and found.is_folder

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        found = self._look()
        return found is not None and not found.is_folder

    def is_symlink(self) -> bool:
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        found = hadoop.look(self._uri)
        mode = stat.S_IFDIR | 0o755 if found.is_folder else stat.S_IFREG | 0o644
        seconds = found.modified / 1000
        return os.stat_result((mode, 0, 0, 1, 0, 0, found.size, *(int(seconds),) * 3))

    lstat = stat

    def iterdir(self) -> Iterator[Self]:  # type: ignore[override]
        for entry in hadoop.entries(self._uri):
            yield self / entry.name

    def glob(self, pattern: str, **_: Any) -> Iterator[Self]:  # type: ignore[override]
        """Of names in this folder; `pattern` has no slash."""
        if self.is_dir():
            yield from (path for path in self.iterdir() if fnmatchcase(path.name, str(pattern)))

    def rglob(self, pattern: str, **_: Any) -> Iterator[Self]:  # type: ignore[override]
        for entry in hadoop.entries(self._uri):
            path = self / entry.name
            if fnmatchcase(entry.name, str(pattern)):
                yield path
            if entry.is_folder:
                yield from path.rglob(pattern)

    # -- changing

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        if not exist_ok and self.exists():
            raise FileExistsError(17, "File exists", str(self))
        if (
            not parents and self.renames and not self.parent.exists()
        ):  # others have no folders but in names
            raise FileNotFoundError(2, "No such folder", str(self.parent))
        hadoop.make_folder(self._uri)

    def rename(self, target: str | os.PathLike[str]) -> Self:
        hadoop.rename(self._uri, str(target))
        return type(self)(target)

    def replace(self, target: str | os.PathLike[str]) -> Self:
        """In two steps: for a moment there is neither."""
        hadoop.delete(str(target))
        return self.rename(target)

    def unlink(self, missing_ok: bool = False) -> None:
        if not hadoop.delete(self._uri) and not missing_ok:
            raise FileNotFoundError(2, "No such file", str(self))

    def rmdir(self) -> None:
        if next(self.iterdir(), None) is not None:
            raise OSError(39, "Directory not empty", str(self))
        hadoop.delete(self._uri)

    def create(self, content: bytes) -> None:
        """Make a new file. Raises FileExistsError."""
        hadoop.create(self._uri, content)

    # -- files

    def read_range(self, start: int, end: int) -> bytearray:
        """The bytes from `start` to before `end`, or to the end of the file."""
        file = hadoop.Ranges(self._uri)
        try:
            return file.read(start, end)
        finally:
            file.close()

    def open(  # type: ignore[override]
        self,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        kind = mode.replace("b", "").replace("t", "")
        raw: io.RawIOBase
        if kind == "r":
            raw = _Reading(self._uri)
            binary: Any = raw if buffering == 0 else io.BufferedReader(raw)
        elif kind in ("w", "x"):
            if kind == "x" and self.exists():
                raise FileExistsError(17, "File exists", str(self))
            raw = _Writing(self._uri)
            binary = raw if buffering == 0 else io.BufferedWriter(raw)
        else:
            raise OSError(95, f"files are read or written whole, not opened as {mode!r}", str(self))
        if "b" in mode:
            return cast(IO[Any], binary)
        return cast(IO[Any], io.TextIOWrapper(binary, encoding, errors, newline))


class _Reading(io.RawIOBase):
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
        """Up to `size` bytes; a read of few looks for what comes after them, too."""
        if size >= _READ_AHEAD:
            return self._ranges.read(self._at, self._at + size)
        if not self._held_at <= self._at < self._held_at + len(self._held):
            self._held, self._held_at = (
                self._ranges.read(self._at, self._at + _READ_AHEAD),
                self._at,
            )
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


class _Writing(io.FileIO):
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
