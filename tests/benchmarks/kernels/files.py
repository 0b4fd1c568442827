"""Rows of kernels over the bytes of files: records found, sums, streams, whole files written."""

from __future__ import annotations

import zlib
from itertools import count, pairwise
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np
import polars as pl
from deflate import zlib_compress
from isal import isal_zlib

from minutch.hadoop.formats.batch import Batch, Places, Stretch
from minutch.hadoop.formats.checksum import chunk_sums
from minutch.hadoop.formats.javaio import encode_vlong
from minutch.hadoop.formats.mapfile import MapFileWriter
from minutch.hadoop.formats.sequencewriter import TEXT
from minutch.kernels import sequencefile
from minutch.records import crawldatum_columns
from minutch.records import crawldatum_columns as crawldata
from minutch.work.tables.database import data_file
from minutch.work.tables.frame import sort_by_key
from minutch.work.tables.keyranges import SortedPart
from minutch.work.tables.recordfiles import CRAWL_DATUM, CrawlDataWriter, pack, unpack
from minutch.work.tables.spannedfile import Span, SpannedFile, find_plain
from minutch.work.tables.zlibvalues import deflated, inflated
from tests.benchmarks.kernels.made import Made
from tests.benchmarks.kernels.rows import Row, Ways, plain, rows_of
from tests.benchmarks.kernels.vectors import big_endian, crawl_data, encoded_crawl_data

ROWS: list[Row] = []
row = rows_of(ROWS)

_INTS = Struct(">ii").unpack_from
_SYNC = b"sixteen bytes..."


def _sums(data: Any, chunk: int = 512) -> bytes:
    """Returns the CRCs of all chunks, by ISA-L."""
    view, crc32 = memoryview(data), isal_zlib.crc32
    found = [crc32(view[at : at + chunk]) for at in range(0, len(view), chunk)]
    return np.array(found, ">u4").tobytes()


def _whole_stretch(path: Path) -> Stretch:
    """Returns the records of a file that is not compressed."""
    file = SpannedFile(data_file(path), span_size=1 << 40)
    (span,) = file.spans()
    stretch = file.stretch(span)
    assert stretch is not None, "a file with records"
    return stretch


def _walked(stretch: Stretch) -> Batch:
    """Finds the records of a stretch by a loop in Python, the checksums by ISA-L."""
    first = stretch.start // stretch.chunk
    data = stretch.data[first * stretch.chunk : stretch.end]
    whole = len(data) // stretch.chunk * stretch.chunk
    expected = stretch.sums[4 * first :][: 4 * (whole // stretch.chunk)].tobytes()
    assert _sums(data[:whole], stretch.chunk) == expected
    view, at = memoryview(stretch.data), stretch.start
    places: list[tuple[int, int, int, int]] = []
    while at < stretch.end:
        length, key_length = _INTS(view, at)
        if length == -1:
            at += sequencefile.MARKER_SIZE
            continue
        text = at + 9
        if view[at + 8] > 127:
            text += 255 - view[at + 8] - 112 + 1
        value, end = at + 8 + key_length, at + 8 + length
        places.append((text, value - text, value, end - value))
        at = end
    table = np.array(places, np.int64).T
    at_, sizes = np.ascontiguousarray(table[::2]), table[1::2].astype(np.int32)
    return Batch(stretch.data, at_[0], sizes[0], stretch.data, at_[1], sizes[1])


@row("sequencefile.walk", by="Python: a loop over the records, sums by ISA-L")
def find_records_of_a_file(made: Made) -> Ways:
    stretch = _whole_stretch(made.crawldb)
    return Ways(lambda: find_plain(stretch), lambda: _walked(stretch))


@row("crawldatum.scan", by="Python: a loop over the records; NumPy: fields of gathered bytes")
def decode_crawl_data_of_a_file(made: Made) -> Ways:
    stretch = _whole_stretch(made.crawldb)
    names = (crawldatum_columns.KEY, *crawldatum_columns.FIELDS)

    def by_kernel() -> pl.DataFrame:
        found = crawldatum_columns.scan(stretch, names)
        assert found is not None, "records of version 7"
        return pl.DataFrame([found.column(name) for name in names])

    return Ways(by_kernel, lambda: crawl_data(_walked(stretch)))


@row("crawldatum.scan_plain", by="Python: a loop over the records; NumPy: fields of gathered bytes")
def decode_some_fields_of_a_file(made: Made) -> Ways:
    stretch = _whole_stretch(made.crawldb)
    return Ways(
        lambda: crawldatum_columns.scan_packed(stretch),
        lambda: crawl_data(_walked(stretch), ("status", "fetch_time", "score"), whole=False),
    )


@row("sequencefile.blocks_having", by="Python: bytes.find block by block, sums by ISA-L")
def find_blocks_with_a_word(made: Made) -> Ways:
    part = SortedPart(made.crawldb, CRAWL_DATUM)
    words = [bytes(made.ordered[len(made.ordered) // 3])[7:], b"no such word"]
    wanted = np.ones(len(part.bounds) - 1, np.bool_)
    stretch = part.file.stretch(Span(int(part.bounds[0]), int(part.bounds[-1])))
    assert stretch is not None, "a file with records"
    bounds = (part.bounds - part.bounds[0] + stretch.start).tolist()

    def by_python() -> list[bool]:
        size = stretch.chunk
        data, found = stretch.data[: stretch.end].tobytes(), []
        for low, high in pairwise(bounds):
            first, last = low // size, high // size
            sums = stretch.sums[4 * first : 4 * last].tobytes()
            assert _sums(stretch.data[first * size : last * size], size) == sums
            found.append(any(data.find(word, low, high) >= 0 for word in words))
        return found

    return Ways(lambda: part.having(0, wanted, words), by_python)


@row("sequencefile.make_sums", by="ISA-L: crc32, chunk by chunk")
def make_checksums(made: Made) -> Ways:
    data = made.batch.values
    return Ways(lambda: chunk_sums(data.data), lambda: _sums(data))


@row("sequencefile.first_bad_sum", by="ISA-L: crc32, chunk by chunk")
def compare_checksums(made: Made) -> Ways:
    data = made.batch.values
    sums = np.frombuffer(chunk_sums(data.data), np.uint8)
    stretch = Stretch(data, 0, len(data), np.zeros(20, np.uint8), sums, 512)
    return Ways(lambda: stretch.is_whole, lambda: _sums(data) == sums.tobytes())


def _values(found: Batch | list[bytes]) -> list[bytes]:
    return [found.value(at) for at in range(found.size)] if isinstance(found, Batch) else found


def _unpacked(found: Batch | list[bytes]) -> list[bytes]:
    return [zlib.decompress(stream) for stream in _values(found)]


@row("deflate.deflate", by="libdeflate through Python, record by record")
def compress_records(made: Made) -> Ways:
    batch, records = made.batch, made.records
    return Ways(
        lambda: deflated(batch),
        lambda: [zlib_compress(record, 1) for record in records],
        _unpacked,
    )


@row("deflate.inflate", by="zlib, record by record")
def unpack_records(made: Made) -> Ways:
    packed = deflated(made.batch)
    streams = [packed.value(number) for number in range(packed.size)]
    return Ways(
        lambda: inflated(packed), lambda: [zlib.decompress(one) for one in streams], _values
    )


@row(
    "sequencefile.lay_out",
    "sequencefile.index_entries",
    by="Python: record by record, sums by ISA-L",
)
def write_a_map_file(made: Made) -> Ways:
    rows = sort_by_key(made.rows)
    keys, values = rows["key"].to_list(), pack(rows)["value"].to_list()
    syncs, number = {"sync": _SYNC, "index_sync": _SYNC}, count()

    def read(path: Path) -> list[bytes]:
        return [(path / name).read_bytes() for name in ("data", ".data.crc")]

    def by_kernel() -> list[bytes]:
        path = made.folder / f"{next(number)}"
        with CrawlDataWriter(path, **syncs) as writer:
            writer.write(rows)
        return read(path)

    def by_python() -> list[bytes]:
        path = made.folder / f"{next(number)}"
        with MapFileWriter(path, TEXT, CRAWL_DATUM, **syncs) as writer:
            for key, value in zip(keys, values, strict=True):
                writer.append_raw(encode_vlong(len(key)) + key, value)
        return read(path)

    return Ways(by_kernel, by_python)


@row("crawldatum.copy_scored", "sequencefile.put_in", by="Polars: bin.slice, concat, gather")
def patch_packed_records(made: Made) -> Ways:
    table = pack(sort_by_key(made.rows))
    size = len(table)
    replaced, added = np.arange(0, size, 10), np.arange(5, size, 10)
    scored = np.arange(1, size, 3)
    scores = pl.Series("score", np.linspace(0, 1, len(scored), dtype=np.float32))
    new = table[added].with_columns(pl.col("key") + pl.lit(b"~"))
    rows = pl.concat([table[replaced], new]).sort("key")
    known = rows["key"].is_in(table["key"].implode()).to_numpy()
    before = table["key"].search_sorted(rows["key"], "left").cast(pl.Int64).to_numpy()
    at = np.where(known, before, -1)
    entries = unpack(rows)

    def by_kernel() -> list[Places]:
        return list(crawldata.patched_records(table, entries, at, before, scored, scores))

    def by_polars() -> list[pl.DataFrame]:
        old = table["value"].gather(scored).to_frame()
        value = pl.col("value").bin
        changed = old.select(value.slice(0, 15) + big_endian(scores) + value.slice(19))
        crawl = table.select("key", value=table["value"].scatter(scored, changed.to_series()))
        order = np.arange(size)
        order[at[known]] = size + np.flatnonzero(known)
        order = np.insert(order, before[~known], size + np.flatnonzero(~known))
        new = rows.select("key", encoded_crawl_data(entries))
        return [pl.concat([crawl, new])[order]]

    def pairs(found: list[Places] | list[pl.DataFrame]) -> list[tuple[bytes, bytes]]:
        rows = [plain(one) if isinstance(one, Places) else one.rows() for one in found]
        return [pair for some in rows for pair in some]

    return Ways(by_kernel, by_polars, pairs)


@row("sequencefile.vints", by="Python: a loop over the bytes")
def read_lengths_of_a_block(made: Made) -> Ways:
    lengths = (np.arange(made.count) * 7919 % 1000).astype(np.int32)
    data = np.frombuffer(b"".join(encode_vlong(int(length)) for length in lengths), np.uint8)
    out = np.empty(made.count, np.int32)

    def by_kernel() -> np.ndarray:
        assert sequencefile.vints(data, out), "VInts"
        return out

    def by_python() -> list[int]:
        found, source = [], data.tobytes()
        at, append, decode = 0, found.append, int.from_bytes
        while at < len(source):
            first = source[at]
            at += 1
            if first > 127:
                size = 144 - first
                first, at = decode(source[at : at + size], "big"), at + size
            append(first)
        return found

    return Ways(by_kernel, by_python)


@row("sequencefile.strip_lengths", by="NumPy: lengths of one byte, of two, of three")
def strip_lengths_of_texts(made: Made) -> Ways:
    texts = [encode_vlong(len(key)) + key for key in made.keys]
    batch = Batch.of(texts, texts)

    def by_kernel() -> tuple[np.ndarray, np.ndarray]:
        at, length = batch.key_at.copy(), batch.key_len.copy()
        assert sequencefile.strip_lengths(batch.keys, at, length), "Texts"
        return at, length

    def by_numpy() -> tuple[np.ndarray, np.ndarray]:
        data, at = batch.keys, batch.key_at
        first = data[at]
        size, more = first.astype(np.int32), np.zeros(len(at), np.int32)
        for number in (1, 2):
            long = np.flatnonzero(first == 144 - number)
            size[long], more[long] = 0, number
            for byte in range(number):
                size[long] = 256 * size[long] + data[at[long] + byte + 1]
        assert (size + more + 1 == batch.key_len).all(), "Texts"
        return at + more + 1, size

    return Ways(by_kernel, by_numpy)
