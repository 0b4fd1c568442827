"""Does tasks of kernels by NumPy and Polars, as fast as these can."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from minutch.hadoop.formats.batch import Batch
from minutch.kernels.arrow import to_series
from minutch.kernels.simhash import _GOLDEN, _OFFSET, _PRIME

_INLINE = 12
"""Bytes of a string that stands in its view."""
_CRAWL_DATUM = np.dtype(
    [
        ("version", "u1"),
        ("status", "u1"),
        ("fetch_time", ">i8"),
        ("retries", "i1"),
        ("fetch_interval", ">i4"),
        ("score", ">f4"),
        ("modified_time", ">i8"),
        ("signature", "i1"),
    ]
)
_NUMBERS = ("status", "fetch_time", "modified_time", "retries", "fetch_interval", "score")


def joined(column: pl.Series) -> tuple[Any, Any]:
    """Returns the bytes of a column's strings one after the other, and where each begins and the
    last ends.
    """
    array = column.cast(pl.Binary).to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64)[array.offset :][: len(array) + 1]
    return np.frombuffer(data or b"", np.uint8), bounds


def java_hashes(column: pl.Series, *, backwards: bool = False) -> Any:
    """Returns 31 * h + byte for all bytes of each string, byte number by byte number."""
    data, bounds = joined(column)
    order = np.argsort(bounds[:-1] - bounds[1:], kind="stable")
    at, size = bounds[:-1][order], (bounds[1:] - bounds[:-1])[order]
    places = at + size - 1 if backwards else at
    signed, found = data.view(np.int8), np.ones(len(at), np.int32)
    left = np.searchsorted(-size, -np.arange(1, int(size.max(initial=0)) + 1), side="right")
    for number, count in enumerate(left.tolist()):
        step = places[:count] + (-number if backwards else number)
        found[:count] *= 31
        found[:count] += signed[step]
    if backwards:
        found = np.where(size < 128, 31 * found + size, 31 * (31 * found + size) - 113)
    hashes = np.empty(len(at), np.int32)
    hashes[order] = found.astype(np.int32)
    return hashes


def views_of(buffer: Any, at: Any, length: Any) -> Any:
    """Returns Arrow's views of strings at offsets of a buffer."""
    padded = np.concatenate((buffer, np.zeros(_INLINE, np.uint8)))
    heads = np.lib.stride_tricks.sliding_window_view(padded, _INLINE)[at]
    heads *= np.arange(_INLINE) < length[:, None]
    views = np.empty((len(at), 4), np.int32)
    views[:, 0], views[:, 1:] = length, heads.view("<i4")
    long = np.flatnonzero(length > _INLINE)
    views[long, 2], views[long, 3] = 0, at[long]
    return views


def strings_at(name: str, buffer: Any, at: Any, length: Any, least: int = 0) -> pl.Series:
    """Returns a column of strings at offsets of a buffer; those shorter than `least` are null."""
    column = to_series(name, views_of(buffer, at, np.maximum(length, 0)), [buffer])
    if not least:
        return column
    return pl.select(pl.when(pl.Series(length >= least)).then(column)).to_series().alias(name)


def crawl_data(batch: Batch, names: tuple[str, ...] = _NUMBERS, *, whole: bool = True) -> Any:
    """Returns a table of CrawlDatums; not `whole`: the numbers alone, with the values."""
    values, at, length = batch.values, batch.value_at, batch.value_len
    size = _CRAWL_DATUM.itemsize
    fixed = np.lib.stride_tricks.sliding_window_view(values, size)[at].view(_CRAWL_DATUM)[:, 0]
    assert (fixed["version"] == 7).all(), "records of version 7"
    native = [_CRAWL_DATUM[name].newbyteorder("=") for name in names]
    numbers = [
        pl.Series(name, fixed[name].astype(kind)) for name, kind in zip(names, native, strict=True)
    ]
    key = strings_at("key", batch.keys, batch.key_at, batch.key_len)
    if not whole:
        return pl.DataFrame([key, *numbers, strings_at("value", values, at, length)])
    signature = np.maximum(fixed["signature"], 0).astype(np.int64)
    flag = at + size + signature
    assert (values[flag] == (length > size + signature + 1)).all(), "what a flag says is there"
    metadata = length - size - signature - 1
    return pl.DataFrame(
        [
            key,
            *numbers,
            strings_at("signature", values, at + size, signature, 1),
            strings_at("metadata", values, flag + 1, metadata, 1),
        ]
    )


def encoded_crawl_data(rows: pl.DataFrame) -> pl.Series:
    """Returns the serialized CrawlDatum of each row."""
    fixed = np.empty(len(rows), _CRAWL_DATUM)
    fixed["version"], fixed["signature"] = 7, rows["signature"].bin.size().fill_null(0)
    for name in _NUMBERS:
        fixed[name] = rows[name]
    size, data = fixed.itemsize, fixed.view(np.uint8)
    heads = strings_at("head", data, size * np.arange(len(rows)), np.full(len(rows), size))
    flag = pl.when(pl.col("metadata").is_null()).then(pl.lit(b"\0")).otherwise(pl.lit(b"\1"))
    signature, metadata = (pl.col(name).fill_null(b"") for name in ("signature", "metadata"))
    return rows.select(heads + signature + flag + metadata).to_series().alias("value")


def text(column: pl.Expr) -> pl.Expr:
    """Returns strings of at most 127 bytes as Texts: each with its length before it."""
    letters = pl.Series([bytes((i,)) for i in range(128)])
    return pl.lit(letters).gather(column.bin.size()) + column


def big_endian(values: pl.Series) -> pl.Series:
    """Returns numbers as their bytes, the highest first."""
    numbers = values.to_numpy()
    data = numbers.astype(numbers.dtype.newbyteorder(">")).view(np.uint8)
    size = numbers.itemsize
    return strings_at(
        values.name, data, size * np.arange(len(numbers)), np.full(len(numbers), size)
    )


def gathered(data: Any, at: Any, length: Any) -> tuple[Any, Any]:
    """Returns strings at offsets of a buffer, one after the other, and their new offsets."""
    out_at = np.cumsum(length, dtype=np.int64) - length
    return data[np.repeat(at - out_at, length) + np.arange(int(length.sum()))], out_at


def _mixed(value: Any) -> Any:
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return value ^ (value >> np.uint64(31))


def simhash(content: str, table: Any, shingle: int) -> int | None:
    """Returns the SimHash of a text without characters that are words of their own."""
    units = table[np.frombuffer(content.encode("utf-16-le", "surrogatepass"), np.uint16)]
    inside = np.concatenate(([False], units > 0, [False]))
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    at, size = edges[::2], edges[1::2] - edges[::2]
    if not len(at):
        return None
    order = np.argsort(-size, kind="stable")
    words = np.full(len(at), _OFFSET, np.uint64)
    left = np.searchsorted(-size[order], -np.arange(1, int(size.max()) + 1), side="right")
    for number, count in enumerate(left.tolist()):
        words[:count] ^= units[at[order[:count]] + number]
        words[:count] *= np.uint64(_PRIME)
    hashes = np.empty_like(words)
    hashes[order] = _mixed(words)
    width = min(shingle, len(hashes))
    runs = np.zeros(len(hashes) - width + 1, np.uint64)
    for number in range(width):
        word = hashes[number : len(hashes) - width + 1 + number]
        runs = _mixed(runs * np.uint64(_PRIME) + word + np.uint64(_GOLDEN))
    different = np.unique(np.maximum(runs, np.uint64(1)))
    bits = np.unpackbits(different.view(np.uint8), bitorder="little").reshape(-1, 64)
    most = 2 * bits.sum(axis=0, dtype=np.int64) > len(different)
    return int.from_bytes(np.packbits(most, bitorder="little").tobytes(), "little")


def sweep(by_key: Any, rows: Any, bits: int, blocked: Any, leaders: Any) -> None:
    """Does what the kernel `simhash.sweep` does, for all pairs at a distance at once."""
    order, keys, words = by_key
    for step in range(1, len(order)):
        same = keys[step:] == keys[:-step]
        if not same.any():
            break
        pairs = np.flatnonzero(same & (np.bitwise_count(words[step:] ^ words[:-step]) <= bits))
        row, other = order[step:][pairs], order[:-step][pairs]
        counts = rows.undecided[row] & (rows.ranks[row] != rows.ranks[other])
        if len(rows.groups):
            counts &= rows.groups[row] == rows.groups[other]
        row, other = row[counts].astype(np.int64), other[counts].astype(np.int64)
        kept = rows.kept[other]
        none = np.iinfo(np.int64).max
        found = np.where(leaders < 0, none, leaders)
        np.minimum.at(found, row[kept], other[kept])
        leaders[:] = np.where(found == none, -1, found)
        blocked[row[rows.undecided[other] & ~kept]] = True
