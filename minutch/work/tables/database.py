"""A database directory as Nutch keeps it: partitions under `current`, a lock, and a safe way to
replace it.

    <db>/current/part-r-NNNNN/{data,index}      part-NNNNN in databases of older Nutch
    <db>/old/…                                  the one before
    <db>/.locked                                see `lock`

CrawlDb, LinkDb and HostDb are this with their own records (`RecordDatabase`). A database that
shares its folder with others has a name of its own instead of `current`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from minutch import processwide
from minutch.conf import Settings, made_by, prop
from minutch.errors import StoreError
from minutch.hadoop.formats.javahash import partition
from minutch.hadoop.formats.javaio import DataInput, encode_text, encode_vlong
from minutch.hadoop.formats.mapfile import DATA, INDEX, INDEX_INTERVAL, MapFileReader
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import TEXT
from minutch.paths import as_path, is_local
from minutch.work.tables import install
from minutch.work.tables.compression import Compression, output_compression
from minutch.work.tables.lock import lock

if TYPE_CHECKING:
    import polars as pl

_PART = re.compile(r"part-(?:[rm]-)?(\d{5,})")
_SAMPLE = 64
"""Keys that show whether a part is a hash partition."""
_ENTRIES = 1000
"""Entries of an index that show how many records a part has, within a little."""
_AT_A_TIME = 16
"""Parts of a store that are looked into side by side."""

T = TypeVar("T")


def part_name(index: int) -> str:
    """Returns the name of a part, as Hadoop's FileOutputFormat names a reducer's output."""
    return f"part-r-{index:05d}"


def part_paths(directory: Path) -> list[Path]:
    """Lists the part files or directories in `directory`, in the order of their numbers."""
    found = [
        (int(match[1]), path)
        for path in directory.iterdir()
        if (match := _PART.fullmatch(path.name))
    ]
    return [path for _, path in sorted(found)]


def data_file(path: Path) -> Path:
    """Returns the file that holds the records of `path`: `data` of a MapFile, else itself."""
    return path / DATA if path.is_dir() else path


def are_partitions(files: Sequence[Path], parts: int) -> bool:
    """Returns True if files of records are the partitions of a job that makes `parts`, judging each
    file by its first keys.
    """
    return len(files) == parts and all(
        _each(lambda file: _belongs(file[1], file[0], parts), [*enumerate(files)])
    )


def is_partitioned(db: Database, parts: int) -> bool:
    """Returns True if a database is partitioned as a job with `parts` does it, or is empty."""
    files = [data_file(path) for path in db.parts()]
    return not files or are_partitions(files, parts)


def _belongs(path: Path, part: int, parts: int) -> bool:
    if parts == 1:
        return True
    with SequenceFileReader(path) as reader:
        if reader.key_class != TEXT:
            return False
        keys = [DataInput(key).read_text_bytes() for key, _ in islice(reader.stored(), _SAMPLE)]
    # 64 keys that fit by chance, with two parts: one case in 2 to the 64th.
    return all(partition(key, parts) == part for key in keys)


def record_estimate(parts: Iterable[Path]) -> int:
    """Estimates the number of records in these MapFiles; for progress."""
    return sum(_each(lambda file: _records(file[1]), [*enumerate(parts)]))


def _each(look: Callable[[tuple[int, Path]], T], files: Sequence[tuple[int, Path]]) -> Iterable[T]:
    """Calls `look` on each file: in order, or in a remote store, which is slow, in parallel."""
    if all(is_local(path) for _, path in files):
        return map(look, files)
    from minutch.work.tables.parallel import for_each

    return for_each(look, files, _AT_A_TIME)


def _records(part: Path) -> int:
    """Counted where there are few, else by the index: 128 records an entry, and the last ones."""
    if not (part / INDEX).is_file():
        return 0
    with SequenceFileReader(part / INDEX) as reader:
        positions = [int.from_bytes(value, "big") for _, value in islice(reader, _ENTRIES)]
    if len(positions) < 2:  # fewer than 256 records
        with SequenceFileReader(part / DATA) as reader:
            return sum(1 for _ in reader)
    # Extrapolated from the bytes per entry of those that were read.
    first, last, size = positions[0], positions[-1], (part / DATA).stat().st_size
    return (len(positions) - 1) * INDEX_INTERVAL * (size - first) // (last - first)


@dataclass(frozen=True, slots=True)
class OutputSettings(Settings):
    """The settings by which a job writes a database."""

    compression: Compression = made_by(output_compression)
    keep_old: bool = prop("db.preserve.backup")
    """Whether the database that is replaced stays as `old`."""


class Database:
    """The database at `path`, which need not exist yet."""

    name: str = install.CURRENT
    """The directory of the partitions."""

    def __init__(self, path: str | Path) -> None:
        self.path = as_path(path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    @property
    def current(self) -> Path:
        """The directory of the partitions. Where an interrupted replacement left none, whichever of
        old and new is whole.
        """
        current = self.path / self.name
        if not current.exists():
            # Readers hold no lock: they take what `recover` would put in its place.
            for path in install.beside(self.path, self.name):
                if path.exists():
                    return path
        return current

    def exists(self) -> bool:
        """Returns True if there is a database to read."""
        return self.current.is_dir()

    def parts(self) -> list[Path]:
        """Returns the directories of the partitions, in order; none without a database."""
        return part_paths(self.current) if self.exists() else []

    def estimate(self) -> int:
        """Estimates the number of records; 0 where there is no database."""
        return record_estimate(self.parts())

    def require_parts(self) -> list[Path]:
        """Returns `parts`. Raises StoreError where the database does not exist."""
        if not self.exists():
            raise StoreError(f"Input path does not exist: {self.path / self.name}")
        return self.parts()

    def require_class(self, value_class: str) -> None:
        """Raises FormatError if the database holds other records, for jobs that read it late."""
        for part in self.parts()[:1]:
            file = data_file(part)
            with SequenceFileReader(file) as reader:
                reader.header.require(value_class, file)

    def lookup(self, url: str) -> bytes | None:
        """Returns the serialized record of `url` by the MapFile's index; None if there is none."""
        from minutch.hadoop.formats.javahash import partition

        key = encode_text(url)
        parts = self.require_parts()
        # Hadoop's partition first, then the others: the files may be partitioned otherwise.
        home = partition(key, len(parts)) if parts else 0
        for part in [*parts[home : home + 1], *parts[:home], *parts[home + 1 :]]:
            with MapFileReader(part) as reader:
                value = reader.get(encode_vlong(len(key)) + key)
            if value is not None:
                return value
        return None

    @contextmanager
    def lock(self, force: bool = False, *, wait: float | None = None) -> Iterator[Path]:
        """Holds the database's lock, after clearing away whatever a killed job left behind.

        Waits for another's for `wait` seconds, by default minutch.lock.wait. Raises LockedError;
        `force` goes past any other's lock.
        """
        wait = processwide.settings().lock_wait if wait is None else wait
        made = not self.path.exists()
        install.make_directory(self.path)
        try:
            with lock(self.path, force, wait) as path:
                # With the lock held, work folders can only be left over.
                install.recover(self.path)
                yield path
        except BaseException:
            if made:
                with suppress(OSError):  # there is something in it
                    # A job that failed leaves no empty database behind.
                    self.path.rmdir()
            raise

    @contextmanager
    def replacement(self, *, keep_old: bool) -> Iterator[Path]:
        """Yields a new, empty directory for the next database; it becomes `current` at the end, or
        goes away on an error.

        The caller holds the lock. `keep_old` keeps the database that is replaced as `old` (else
        that goes too).
        """
        new = install.new_directory(self.path)
        try:
            yield new
            install.install(self.path, new, keep_old=keep_old, name=self.name)
        except BaseException:
            install.discard(self.path, new)
            raise


class RecordDatabase(Database, Generic[T]):
    """A database of records by URL, or by host, which are looked up and gone through as in a
    mapping. All raise StoreError if there is no database, FormatError for damage.
    """

    def record(self, value: bytes) -> T:
        """Makes a record of its bytes."""
        raise NotImplementedError

    def scan_part(self, index: int) -> Iterator[pl.DataFrame]:
        """Returns a partition in tables, at least one."""
        raise NotImplementedError

    def get(self, key: str) -> T | None:
        """Returns the record of `key` or None."""
        value = self.lookup(key)
        return None if value is None else self.record(value)

    def __getitem__(self, key: str) -> T:
        record = self.get(key)
        if record is None:
            raise KeyError(key)
        return record

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.lookup(key) is not None

    def __len__(self) -> int:
        return sum(
            len(rows) for index in range(len(self.parts())) for rows in self.scan_part(index)
        )

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self.items())

    def items(self) -> Iterator[tuple[str, T]]:
        """Yields all keys with their records, part by part."""
        for part in self.parts():
            with SequenceFileReader(data_file(part)) as reader:
                for key, value in reader:
                    yield DataInput(key).read_text(), self.record(value)
