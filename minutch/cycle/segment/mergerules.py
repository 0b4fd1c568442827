"""Decides which records stay when segments are merged. Pure: no I/O.

Of the records of a URL the one of the newest segment stays, and of several in it the first; newer
is what has the greater name. In crawl_fetch only results count, not that a fetch is to be repeated
or that nothing was modified. In crawl_parse the newest signature stays, and of the links all of the
newest segment that has some.

Source: org.apache.nutch.segment.SegmentMerger.SegmentMergerReducer.reduce.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from minutch.cycle.segment.store import CRAWL_FETCH, CRAWL_PARSE
from minutch.records.crawldatum import (
    STATUS_DB_MAX,
    STATUS_FETCH_MAX,
    STATUS_FETCH_NOTMODIFIED,
    STATUS_FETCH_RETRY,
    STATUS_PARSE_FAILED,
    STATUS_SIGNATURE,
)
from minutch.work.tables.merge import has_repeats, sort_by_key
from minutch.work.tables.shuffle import split

MERGE_SCHEMA = pl.Schema(
    {
        "key": pl.Binary(),
        # how new the segment is: its number among the names, in ascending order
        "rank": pl.UInt32(),
        "status": pl.UInt8(),  # of a CrawlDatum; 0 for other records
        "value": pl.Binary(),
    }
)

Tables = Mapping[str, pl.DataFrame]
"""Records of MERGE_SCHEMA by the folder of the segment they belong to, sorted by key."""


def results(table: pl.DataFrame, folder: str) -> pl.DataFrame:
    """Returns the records of a folder that count."""
    if folder != CRAWL_FETCH:
        return table
    status = pl.col("status")
    is_result = (status > STATUS_DB_MAX) & (status <= STATUS_FETCH_MAX) | (
        status == STATUS_PARSE_FAILED
    )
    return table.filter(is_result, ~status.is_in([STATUS_FETCH_RETRY, STATUS_FETCH_NOTMODIFIED]))


def newest(frames: Sequence[pl.DataFrame], folder: str) -> pl.DataFrame:
    """Returns the records that stay of a folder, sorted by key. Frames and the rows of a key come
    newest first.
    """
    table = results(sort_by_key(pl.concat(frames)), folder)
    if folder == CRAWL_PARSE:
        return _signatures_and_links(table)
    return _first(table)


def _first(table: pl.DataFrame) -> pl.DataFrame:
    return (
        table.unique("key", keep="first", maintain_order=True)
        if has_repeats(table["key"])
        else table
    )


def _signatures_and_links(table: pl.DataFrame) -> pl.DataFrame:
    """Returns the newest signature of each key, then the links of its newest segment that has
    some.
    """
    signatures = _first(table.filter(pl.col("status") == STATUS_SIGNATURE))
    links = table.filter(pl.col("status") != STATUS_SIGNATURE)
    if links["rank"].n_unique() > 1:
        links = links.filter(pl.col("rank") == pl.col("rank").first().over("key"))
    return sort_by_key(pl.concat([signatures, links]))


@dataclass(frozen=True)
class Piece:
    """The records of one part of one slice: all of them, or the next ones. `slice` is None where
    there are none.
    """

    part: int
    slice: int | None
    tables: Tables


class Slices:
    """Cuts a merged segment into parts by the hash of the URL, and these into slices of about
    `size` URLs together.

    As in Nutch the URLs of a part are counted from 1, and each slice begins with a multiple of its
    size: the first one has a URL less than the others. 0 makes no slices.
    """

    def __init__(self, size: int, parts: int) -> None:
        self._parts = parts
        self._size = max(1, size // parts) if size > 0 else 0
        self._counts = [0] * parts

    def cut(self, tables: Tables, keys: pl.Series) -> Iterator[Piece]:
        """Yields the pieces of the next range of keys; `keys` are all of them, sorted, each
        once.
        """
        split_tables = {folder: split(table, self._parts) for folder, table in tables.items()}
        for part, own in enumerate(split(keys.to_frame("key"), self._parts)):
            mine = {folder: found[part] for folder, found in split_tables.items()}
            if self._size:
                yield from self._cut_part(part, mine, own["key"])
            elif any(map(len, mine.values())):
                yield Piece(part, None, mine)

    def _cut_part(self, part: int, tables: Tables, keys: pl.Series) -> Iterator[Piece]:
        count = self._counts[part]
        end = self._counts[part] = count + len(keys)
        while count < end:
            number = (count + 1) // self._size
            following = min(end, (number + 1) * self._size - 1)  # URLs up to the end of this slice
            bound = bytes(keys[len(keys) - (end - following)]) if following < end else None
            piece = {
                folder: table if bound is None else _below(table, bound)
                for folder, table in tables.items()
            }
            tables = {folder: table[len(piece[folder]) :] for folder, table in tables.items()}
            yield Piece(part, number, piece)
            count = following


def _below(table: pl.DataFrame, bound: bytes) -> pl.DataFrame:
    return table[: table["key"].search_sorted(bound, side="left")]
