"""Collects the links of parses as numbers while these are read for other columns: reading them
again, or holding their URLs, would cost more than all else.

A link to a known URL is the place of that URL, 4 bytes; its anchor is kept where the URL is one of
those that somebody has to be told of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.cycle.segment.store import Segment
from minutch.hadoop.formats.batch import string_column
from minutch.inspect.query.columns import Mask, Places
from minutch.inspect.query.parses import ParsesTable
from minutch.inspect.query.table import SqlColumn
from minutch.kernels import links as kernels
from minutch.kernels.arrow import from_series
from minutch.records.parsedata_columns import ParseTable
from minutch.work.tables.frame import decode_keys

RECORD = "record"
"""The column of `LinkedParses` that numbers them."""
Numbers = npt.NDArray[np.int32]


class _Links(NamedTuple):
    """Links of records with numbers from `first` on: how many each has, to which places, and the
    `anchors` (String) of those to what is told of.
    """

    first: int
    counts: Numbers
    to: Numbers
    anchors: pl.Series


class UrlPlaces:
    """Finds URLs among `urls`, whose places are their rows; of equal ones the last."""

    def __init__(self, urls: pl.Series) -> None:
        self.table = kernels.new_url_slots(len(urls))
        kernels.put_urls(from_series(urls).column, self.table)

    def of(self, urls: pl.Series) -> Numbers:
        """Returns the places of URLs; -1 where one is none of those, or null."""
        places = np.empty(len(urls), np.int32)
        kernels.find_urls(from_series(urls.fill_null("")).column, self.table, places)
        return places


class LinkCollector:
    """A collector of links to URLs with places. `told` are those whose links have anchors."""

    def __init__(self, places: UrlPlaces, told: Mask) -> None:
        self._places, self._told = places, told
        self._lock, self._size = Lock(), 0
        self._found: list[_Links] = []

    def add(self, table: ParseTable) -> pl.Series:
        """Adds the links of records; returns the numbers of these. Raises FormatError."""
        # Metadata of links, or damage, which the second way names.
        counts, to, anchors = self._read(table) or self._read_one_by_one(table)
        with self._lock:
            # Threads read pieces side by side: numbers go by who is done first.
            first, self._size = self._size, self._size + len(table)
            self._found.append(_Links(first, counts, to, anchors))
        return pl.int_range(first, first + len(table), dtype=pl.UInt32, eager=True)

    def _read(self, table: ParseTable) -> tuple[Numbers, Numbers, pl.Series] | None:
        """Returns how many links records have, to what, and anchors; None if kernels can't."""
        own = table.outlink_counts()
        most = int(own.sum())
        counts, to = np.empty(len(table), np.int32), np.empty(most, np.int32)
        at, length, sizes = (
            np.empty(most, np.int64),
            np.empty(most, np.int32),
            np.zeros(2, np.int64),
        )
        found = kernels.FoundLinks(counts, to, at, length)
        links_at = np.ascontiguousarray(table.places["links_at"].to_numpy())
        wanted = self._places.table, self._told, kernels.new_record_links(int(own.max(initial=0)))
        if not kernels.find_links(table.buffer, links_at, *wanted, found, sizes):
            return None
        count, told = sizes.tolist()
        anchors = string_column("anchor", table.buffer, at[:told], length[:told])
        # Copies: a view would keep the whole buffer of inflated records.
        return counts, to[:count].copy(), decode_keys(anchors) + ""

    def _read_one_by_one(self, table: ParseTable) -> tuple[Numbers, Numbers, pl.Series]:
        links = table.outlinks()
        to = self._places.of(links["to_url"])
        links = links.filter(pl.Series(to >= 0, dtype=pl.Boolean))
        counts = np.bincount(links["row"].to_numpy(), minlength=len(table)).astype(np.int32)
        to = to[to >= 0]
        anchors = links["anchor"].filter(pl.Series(self._told[to], dtype=pl.Boolean))
        return counts, to, decode_keys(anchors) + ""

    def of(self, records: npt.NDArray[np.bool_]) -> Iterator[tuple[Places, Numbers]]:
        """Yields the links of the records of a mask, some at a time: records and places."""
        for links in self._found:
            record, is_wanted = _records_of(links, records)
            yield record[is_wanted], links.to[is_wanted]

    def told(self, records: npt.NDArray[np.bool_]) -> pl.DataFrame:
        """Returns those of the links of the records of a mask that have anchors: `record`, `to` (a
        place), `anchor`.
        """
        frames = [pl.DataFrame(schema={"record": pl.UInt32, "to": pl.Int32, "anchor": pl.String})]
        for links in self._found:
            if not len(links.anchors):
                continue
            record, is_wanted = _records_of(links, records)
            is_told = self._told[links.to]
            frame = pl.DataFrame(
                {
                    "record": record[is_told].astype(np.uint32),
                    "to": links.to[is_told],
                    "anchor": links.anchors,
                }
            )
            frames.append(frame.filter(pl.Series(is_wanted[is_told], dtype=pl.Boolean)))
        return pl.concat(frames)


def _records_of(
    links: _Links, records: npt.NDArray[np.bool_]
) -> tuple[Places, npt.NDArray[np.bool_]]:
    """Returns the record of each link, and whether it is one of a mask."""
    every = np.arange(links.first, links.first + len(links.counts))
    return np.repeat(every, links.counts), np.repeat(records[every], links.counts)


class LinkedParses(ParsesTable):
    """The parses of segments with numbers, by which a collector has their links."""

    piece_size = 16 << 20
    """Since all are read: what columns cost by the frame is a quarter of that of all links."""
    columns: ClassVar = {
        **ParsesTable.columns,
        RECORD: SqlColumn(pl.UInt32(), lambda rows: rows.field(RECORD)),
    }

    def __init__(self, segments: Sequence[Segment], collector: LinkCollector) -> None:
        super().__init__(segments)
        self._collector = collector

    @property
    def of_data(self) -> Mapping[str, Callable[[ParseTable], pl.Series]]:
        """Makes the columns that are made of parse_data alone."""
        return {**super().of_data, RECORD: self._collector.add}
