"""Checks the part files of one folder: checksums, records, order, repeated keys, partition,
indexes.

Keys and records are read as columns; of records without columns (Content, ParseText) each is
decoded by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import gcd
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from minutch.cycle.linkdb.store import LinkDb
from minutch.errors import ChecksumError, FormatError
from minutch.hadoop.formats.batch import Batch, string_column
from minutch.hadoop.formats.checksum import crc_path, verify_file
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.mapfile import DATA, INDEX, MapFileReader
from minutch.hadoop.formats.registry import Writable, lookup
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.inspect.fsck.problems import Problem, Remedy
from minutch.records import crawldatum_columns, hostdatum_columns
from minutch.records import webgraph as webgraph_columns
from minutch.records.crawldatum import CrawlDatum
from minutch.records.hostdatum import HostDatum
from minutch.records.links_columns import decode_inlinks, decode_outlinks
from minutch.records.parsedata import ParseData
from minutch.records.webgraph import LinkDatum, Node
from minutch.terminal import agreeing, counted
from minutch.work.tables import spans
from minutch.work.tables.database import data_file, part_paths
from minutch.work.tables.frame import first_out_of_order
from minutch.work.tables.shuffle import partition_of
from minutch.work.tables.spannedfile import SpannedFile

_ALL: Final = 1 << 31
"""As many parts as hashes, so that the part of a key is its hash."""
_ENOUGH: Final = 64
"""Keys that do not all belong to the same parts by chance."""
Check = Callable[[Batch], object]


@dataclass
class _Order:
    """A check of keys in turn: they ascend, do not repeat, and belong to this part."""

    path: Path
    folder: Path
    part: int
    parts: int
    ascends: bool
    distinct: bool
    rows: int = 0
    last: bytes | None = None
    step: int = 0
    """The greatest common divisor of the distances of the hashes from the part's number."""

    def take(self, keys: pl.Series) -> Iterator[Problem]:
        """Yields the problems of some more keys."""
        if not len(keys):
            return
        if self.ascends:
            yield from self._order(keys)
        if self.parts > 1:
            wrong = (partition_of(keys, self.parts) != self.part).arg_true()
            if len(wrong):
                belong = agreeing(len(wrong), "belong")
                what = (
                    f"{counted(len(wrong), 'keys')} {belong} to other parts than {self.part} of"
                    f" {self.parts}"
                )
                yield self._problem(what, keys[wrong[0]], Remedy.REWRITE)
        self.rows += len(keys)
        self.last = keys[-1]
        if self.step != self.parts:
            hashes = partition_of(keys, _ALL).to_numpy().astype(np.int64)
            self.step = gcd(self.step, int(np.gcd.reduce(hashes - self.part)))

    def _order(self, keys: pl.Series) -> Iterator[Problem]:
        if self.last is not None:
            keys = pl.concat([pl.Series([self.last], dtype=pl.Binary), keys])
        row = first_out_of_order(keys)
        if row >= 0:
            yield self._problem("keys out of order", keys[row], Remedy.REWRITE)
        elif self.distinct:
            again = (keys == keys.shift()).fill_null(False).arg_true()
            if len(again):
                yield self._problem(
                    f"{counted(len(again), 'keys')} {agreeing(len(again), 'come')} twice, only the"
                    " last one counts",
                    keys[again[0]],
                    Remedy.DROP,
                )

    def _problem(self, what: str, key: bytes, remedy: Remedy) -> Problem:
        return Problem(self.path, what, remedy, key=key, folder=self.folder)


def check_folder(
    folder: Path,
    *,
    map_files: bool,
    distinct: bool,
    check: Check | None = None,
    known: Callable[[], Iterator[pl.Series]] | None = None,
) -> Iterator[Problem]:
    """Yields the problems of the parts in `folder`; values are decoded by `check`, or as their
    class asks.

    `map_files`: sorted, partitioned by key, with indexes. `distinct`: no key comes twice. `known`
    yields keys that may belong to it. Where all keys are those of the first parts of a larger
    number, the others are missing, if a known key belongs to them: URLs that count their hosts and
    pages alike may have hashes with a common divisor.
    """
    paths = part_paths(folder)
    if distinct and not paths:
        yield Problem(folder, "there is no part in it")
    if [int(path.name.rpartition("-")[2]) for path in paths] != list(range(len(paths))):
        yield Problem(folder, f"parts are missing: found {', '.join(path.name for path in paths)}")
        return
    parts = len(paths) if map_files else 1
    orders = [
        _Order(path, folder, number, parts, map_files, distinct)
        for number, path in enumerate(paths)
    ]
    for path, order in zip(paths, orders, strict=True):
        yield from _check_part(path, order, check)
    whole = gcd(*(order.step for order in orders))
    is_suspect = distinct and whole > len(paths) and sum(order.rows for order in orders) >= _ENOUGH
    if is_suspect and known is not None and _are_missing(known(), len(paths), whole):
        yield Problem(folder, f"parts are missing: found {len(paths)} of {whole}, by the keys")


def _are_missing(known: Iterator[pl.Series], found: int, whole: int) -> bool:
    return any((partition_of(keys, whole) >= found).any() for keys in known if len(keys))


def check_linkdb(db: LinkDb, known: Callable[[], Iterator[pl.Series]]) -> Iterator[Problem]:
    """Yields the problems of a LinkDb's parts; `known` as in `check_folder`."""
    try:
        layout = db.layout
    except FormatError as exc:  # by the records of one layout, found again below
        yield Problem(db.current, str(exc))
        return
    check = partial(decode_inlinks, layout=layout)
    yield from check_folder(db.current, map_files=True, distinct=True, check=check, known=known)


def _check_part(path: Path, order: _Order, check: Check | None) -> Iterator[Problem]:
    data = data_file(path)
    if not data.is_file():
        yield Problem(data, "missing: its records are lost")
        return
    sums = _damaged_sums(data)
    problems = list(_check_records(data, order, check, verified=sums is None))
    unreadable = any(
        problem.remedy is Remedy.DROP and problem.offset is not None for problem in problems
    )
    if sums is not None and not unreadable:
        yield Problem(data, sums.what_is_wrong, Remedy.CHECKSUMS, sums.offset, folder=order.folder)
    yield from problems
    if path.is_dir() and not problems and sums is None:  # otherwise it shows after the repair
        yield from _check_index(path)


@dataclass
class _Sums:
    what_is_wrong: str
    offset: int | None


def _damaged_sums(path: Path) -> _Sums | None:
    """Returns the problem of a file's checksums; None if there is none."""
    if not crc_path(path).exists():
        return _Sums("no checksums", None)
    try:
        verify_file(path)
    except ChecksumError as exc:
        return _Sums(f"{exc.what}: expected {exc.expected}, found {exc.found}", exc.offset)
    return None


def _check_records(
    data: Path, order: _Order, check: Check | None, *, verified: bool
) -> Iterator[Problem]:
    """Yields problems of keys and values; with wrong checksums, records are read one by one."""
    try:
        for keys in _scanned(data, check) if verified else _read_one_by_one(data):
            yield from order.take(keys)
    except FormatError as exc:
        what = (
            f"{exc.what}: expected {exc.expected}, found {exc.found}"
            if exc.expected is not None
            else exc.what
        )
        yield Problem(
            data,
            f"records can't be read: {what}",
            Remedy.DROP,
            exc.offset or 0,
            folder=order.folder,
        )


def _scanned(data: Path, check: Check | None) -> Iterator[pl.Series]:
    """Yields the keys of a file, in columns, after decoding the values."""
    value_class = SpannedFile(data).value_class
    decode_values = check or _CHECKS.get(value_class) or partial(_decode_each, lookup(value_class))

    def decode(batch: Batch) -> pl.DataFrame:
        decode_values(batch)
        return pl.DataFrame([string_column("key", batch.keys, batch.key_at, batch.key_len)])

    for table in spans.scan(data, value_class, decode):
        yield table["key"]


def _decode_each(value_type: type[Writable], batch: Batch) -> None:
    for row in range(batch.size):
        value_type.from_bytes(batch.value(row))


def _read_one_by_one(data: Path) -> Iterator[pl.Series]:
    with SequenceFileReader(data, verify=False) as reader:
        value_type = reader.value_type
        for key, value in reader:
            try:
                value_type.from_bytes(value)
                url = DataInput(key).read_text_bytes()
            except FormatError as exc:
                raise exc.at(data, reader.position) from exc
            yield pl.Series("key", [url], dtype=pl.Binary)


_CHECKS: dict[str, Check] = {
    CrawlDatum.class_name: crawldatum_columns.decode,
    ParseData.class_name: decode_outlinks,
    HostDatum.class_name: hostdatum_columns.decode,
    LinkDatum.class_name: webgraph_columns.decode_link_data,
    Node.class_name: webgraph_columns.decode_nodes,
}


def _check_index(path: Path) -> Iterator[Problem]:
    """Yields a problem if an entry of a MapFile's index does not point at its key."""
    index = path / INDEX
    if not index.exists():
        yield Problem(index, "missing", Remedy.INDEX, folder=path)
        return
    sums = _damaged_sums(index)
    if sums is not None:
        yield Problem(index, sums.what_is_wrong, Remedy.INDEX, sums.offset, folder=path)
        return
    try:
        with MapFileReader(path) as reader:
            entries = reader.index_entries()
        with SequenceFileReader(path / DATA) as data:
            for key, position in entries:
                data.seek(position)
                found = next(iter(data), (b"", b""))[0]
                if found != key:
                    url = DataInput(key).read_text_bytes()
                    yield Problem(
                        index,
                        f"there is another key at {position} of data",
                        Remedy.INDEX,
                        key=url,
                        folder=path,
                    )
                    return
    except FormatError as exc:
        yield Problem(index, f"can't be used: {exc.what}", Remedy.INDEX, exc.offset, folder=path)
