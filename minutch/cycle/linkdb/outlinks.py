"""Reads the links of parsed pages, inverted, straight from the zlib streams of parse_data.

A kernel takes a stretch of the file apart and leaves out what the hosts decide; `rules` does the
rest. What it does not know (damage, metadata of links with values of unusual classes, records that
unpack to very much) is read in the plain way, as tables of OUTLINKS_SCHEMA, which names the error
if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from mmap import mmap
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from minutch.cycle.linkdb.rules import Hosts, LinkRules
from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch, keys_of
from minutch.job import Counters
from minutch.kernels import inlinks as kernels
from minutch.kernels.arrow import from_series, to_series
from minutch.kernels.clibrary import decompressor, libdeflate
from minutch.kernels.deflate import Decompressor
from minutch.kernels.native import Slices
from minutch.records.links_columns import decode_outlinks
from minutch.records.parsedata import ParseData
from minutch.work.tables.parallel import ordered
from minutch.work.tables.recordfiles import LINKS_SPAN
from minutch.work.tables.spans import FileSpan, InputSplit, places_of, spans_together
from minutch.work.tables.zlibvalues import MOST, MOST_AT_A_TIME

_RECORD_ROOM: Final = 1 << 20
_TYPICAL_RATIO: Final = 16
_LINK: Final = 8
"""Room for what streams hold, and bytes of streams for a link at the least; what is not used is
never touched.
"""
_NO_ROOM: Final = 2
_NO_ROOM_FOR_RECORD: Final = 1


class Found(NamedTuple):
    """The links (LINKS_SCHEMA) of some pages."""

    links: pl.DataFrame
    pages: int
    counters: Counters


class InvertedLinks(NamedTuple):
    """Links from the kernel: LINKS_SCHEMA, how hosts compare, how many were read, left out."""

    table: pl.DataFrame
    hosts: Hosts
    read: int
    left_out: int


def scan_links(split: InputSplit, rules: LinkRules) -> Iterator[Found]:
    """Yields the counting links of parse_data parts, in order, by all cores, or FormatError."""

    def read(group: Sequence[FileSpan]) -> list[Found]:
        full = [(file, span) for _, file, span in group if span and span.start < span.end]
        streams = (file.streams(span) for file, span in full)
        known = [batch for batch in streams if batch is not None]
        if known and len(known) == len(full):
            batch = Batch.joined(known)
            links = inflated_links(batch, rules.unwanted)
            if links is not None:
                counters = Counters()
                return [Found(rules.choose(*links, counters), batch.size, counters)]
        return [
            found(file.path, batch)
            for _, file, span in group
            if span is not None
            for batch in file.batches(span)
        ]

    def found(path: Path, batch: Batch) -> Found:
        counters = Counters()
        try:
            return Found(rules.apply(decode_outlinks(batch), counters), batch.size, counters)
        except FormatError as exc:
            raise exc.within(path) from exc

    groups = spans_together(places_of(split), ParseData.class_name, span_size=LINKS_SPAN)
    for several in ordered(read, groups, leave=True):
        yield from several


def inflated_links(batch: Batch, unwanted: int) -> InvertedLinks | None:
    """Returns the links of pages whose values are zlib streams, without those between `unwanted`
    hosts (see the kernel).

    None for records that the kernel does not know, or which hold too much.
    """
    size = int(batch.value_len.sum(dtype=np.int64)) + 1024
    pages, state = from_series(keys_of(batch)), np.zeros(5, np.int64)
    scratch = np.empty(_RECORD_ROOM, np.uint8)
    # Not by NumPy, which asks for huge pages: clearing those costs more.
    out = np.frombuffer(mmap(-1, size * _TYPICAL_RATIO), np.uint8)
    views = [np.empty((size // _LINK, 4), np.int32) for _ in range(3)]
    hosts = np.empty(size // _LINK, np.int8)
    function = libdeflate().zlib_decompress_ex
    with decompressor() as inflate:
        streams = Slices(batch.values, batch.value_at, batch.value_len)
        stored = streams, pages.column, unwanted, Decompressor(inflate, function)
        while code := kernels.spread(
            *stored, scratch, kernels.LinkColumns(out, views[0], views[1], views[2], hosts), state
        ):
            _, rows, _, _, used = state.tolist()
            if code == _NO_ROOM_FOR_RECORD and len(scratch) <= MOST:
                scratch = np.empty(4 * len(scratch), np.uint8)
            elif code == _NO_ROOM and len(out) < MOST_AT_A_TIME:
                out = np.concatenate((out[:used], np.empty(len(out) * 2 - used, np.uint8)))
                views = [
                    np.concatenate((some[:rows], np.empty((3 * len(some), 4), np.int32)))
                    for some in views
                ]
                hosts = np.concatenate((hosts[:rows], np.empty(3 * len(hosts), np.int8)))
            else:
                return None
    _, rows, read, left_out, used = state.tolist()
    columns = [
        to_series(name, some[:rows], [out[:used]])
        for name, some in zip(("key", "from_url", "anchor"), views, strict=True)
    ]
    return InvertedLinks(pl.DataFrame(columns), hosts[:rows], read, left_out)
