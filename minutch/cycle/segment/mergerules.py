"""Decides which records stay when segments are merged. Pure: no I/O.

A record is as new as the visit it comes from: the fetch of its URL in its segment, by the time of
that. Where the segment has no fetch of the URL, as for links, it is as new as the segment, by the
time of its last fetch; of equal times the greater name decides.

    newest      Nutch's rule. Of each kind of record of a URL the newest stays, and of several of a
                visit the first. In crawl_fetch only results count, not that a fetch is to be
                repeated or that nothing was modified. In crawl_parse the newest signature stays,
                and of the links all of the newest segment that has some.
    layered     for segments that take the place of others, so that whoever asks for the newest word
                on a URL gets the same answer as before. Whole visits stay: the last one; the last
                that is not to be repeated, the last that is not that nothing was modified, the last
                that is neither; the last that succeeded; the last whose parse did; the last with a
                content, and with a parse.
                The first of these goes into the main layer, the next into one above it, a segment
                of its own, which readers take for newer, the others into a third: so no segment has
                two words on a URL, but for one that has four.

Of a URL that is gone or a redirect in the CrawlDb, and was so before `limit`, the last visit's
fetch alone stays; of one that is not in the CrawlDb any more, nothing from before `limit`, but for
files of hosts, such as robots.txt.

Source: org.apache.nutch.segment.SegmentMerger.SegmentMergerReducer.reduce, whose newer segment is
that with the greater name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    CRAWL_GENERATE,
    CRAWL_PARSE,
    PARSE_DATA,
)
from minutch.records.crawldatum import (
    STATUS_DB_GONE,
    STATUS_DB_MAX,
    STATUS_DB_ORPHAN,
    STATUS_DB_REDIR_PERM,
    STATUS_DB_REDIR_TEMP,
    STATUS_FETCH_MAX,
    STATUS_FETCH_NOTMODIFIED,
    STATUS_FETCH_RETRY,
    STATUS_FETCH_SUCCESS,
    STATUS_LINKED,
    STATUS_PARSE_FAILED,
    STATUS_SIGNATURE,
)
from minutch.urls.robots import HOST_FILES
from minutch.work.tables.frame import has_repeats, sort_by_key
from minutch.work.tables.shuffle import split

MERGE_SCHEMA = pl.Schema(
    {
        "key": pl.Binary(),
        # how new the segment is: its number among all, in ascending order
        "rank": pl.UInt32(),
        "status": pl.UInt8(),  # of a CrawlDatum; 0 for other records
        "time": pl.Int64(),  # its fetch time (ms); 0 for other records
        "value": pl.Binary(),
    }
)
LAYERS: Final = 3
_VISIT: Final = ["key", "rank"]
_NO_RESULTS: Final = [STATUS_FETCH_RETRY, STATUS_FETCH_NOTMODIFIED]
_OVER: Final = [STATUS_DB_GONE, STATUS_DB_REDIR_PERM, STATUS_DB_REDIR_TEMP, STATUS_DB_ORPHAN]
"""Statuses of entries whose pages are of no use any more."""

_OF_VISIT: Final = {
    CRAWL_GENERATE: pl.lit(False),
    CRAWL_FETCH: pl.col("status") != STATUS_LINKED,
    CRAWL_PARSE: pl.col("status") != STATUS_LINKED,
}
"""Folder -> which of its records belong to a visit of their URL; of other folders all do."""

Tables = Mapping[str, pl.DataFrame]
"""Records of MERGE_SCHEMA by the folder of the segment they belong to, sorted by key."""


def is_fetch() -> pl.Expr:
    """Returns True for CrawlDatums that hold the result of a fetch."""
    status = pl.col("status")
    # CrawlDatum.hasFetchStatus, and pages that nothing could parse.
    return (status > STATUS_DB_MAX) & (status <= STATUS_FETCH_MAX) | (status == STATUS_PARSE_FAILED)


def results(table: pl.DataFrame, folder: str) -> pl.DataFrame:
    """Returns the records of a folder that count."""
    if folder != CRAWL_FETCH:
        return table
    return table.filter(is_fetch(), ~pl.col("status").is_in(_NO_RESULTS))


def together(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Returns the records of frames as one table of `Tables`."""
    return sort_by_key(pl.concat(frames))


def newest(tables: Tables, times: Sequence[int]) -> Tables:
    """Returns the records that stay, by Nutch's rule; `times` are the segments' (ms), by rank."""
    fetched = _fetched(tables)
    found = {}
    for folder, table in tables.items():
        ordered = _by_time(results(table, folder), fetched, times)
        found[folder] = _signatures_and_links(ordered) if folder == CRAWL_PARSE else _first(ordered)
    return found


def _fetched(tables: Tables) -> pl.DataFrame:
    """Returns the visits with a fetch, `key`, `rank`, and the time of each, `at`."""
    fetches = tables.get(CRAWL_FETCH, pl.DataFrame(schema=MERGE_SCHEMA)).filter(is_fetch())
    return fetches.group_by(_VISIT).agg(at=pl.col("time").max())


def _by_time(
    table: pl.DataFrame, fetched: pl.DataFrame, times: Sequence[int], *, oldest: bool = False
) -> pl.DataFrame:
    """Returns a table with the rows of each key ordered by the times of their visits: newest first,
    or `oldest`; those of a visit as they were.
    """
    # Most keys are in one segment: nothing to order.
    if not has_repeats(table["key"]):
        return table
    known = table.join(fetched, on=_VISIT, how="left", maintain_order="left")
    of_segment = pl.Series(times, dtype=pl.Int64).gather(table["rank"])
    known = known.with_columns(
        pl.coalesce("at", of_segment.alias("at")),
        # A number for each key, which sorts faster than the key and keeps the order of keys.
        nth=(pl.col("key") != pl.col("key").shift()).cum_sum().fill_null(0),
    )
    descending = [False, not oldest, not oldest]
    return known.sort("nth", "at", "rank", descending=descending, maintain_order=True).drop(
        "nth", "at"
    )


def _first(table: pl.DataFrame) -> pl.DataFrame:
    return (
        table.unique("key", keep="first", maintain_order=True)
        if has_repeats(table["key"])
        else table
    )


def _signatures_and_links(table: pl.DataFrame) -> pl.DataFrame:
    """Returns the newest signature of each key, then the links of its newest segment with any."""
    signatures = _first(table.filter(pl.col("status") == STATUS_SIGNATURE))
    links = _newest_links(table.filter(pl.col("status") != STATUS_SIGNATURE))
    return sort_by_key(pl.concat([signatures, links]))


def _newest_links(links: pl.DataFrame) -> pl.DataFrame:
    """Returns the links to each key that its newest segment with some has."""
    if links["rank"].n_unique() > 1:
        return links.filter(pl.col("rank") == pl.col("rank").max().over("key"))
    return links


@dataclass(frozen=True)
class RecordVerdicts:
    """What the CrawlDb says of the keys of `Tables`: `entries` are its entries, `key`, `status` and
    when each was fetched last, `last` (ms).
    """

    entries: pl.DataFrame
    limit: int
    """When a URL must have been gone, or fetched last, for its records to go (ms)."""


def layered(
    tables: Tables,
    times: Sequence[int],
    is_parsed: Callable[[pl.DataFrame], pl.Series],
    verdicts: RecordVerdicts | None = None,
) -> list[Tables]:
    """Returns the records that stay, in LAYERS: those of the main one, of the one above it, ...

    `is_parsed` tells of records of parse_data which parses succeeded.
    """
    visits, fetched = _kept(tables, times, is_parsed), _fetched(tables)
    if verdicts is not None:
        visits = _judged(visits, verdicts)
    # The nth visit of a key, from the oldest.
    layer = pl.int_range(pl.len()).over("key").clip(upper_bound=LAYERS - 1)
    visits = visits.with_columns(layer=layer)
    layers: list[dict[str, pl.DataFrame]] = [{} for _ in range(LAYERS)]
    for folder, table in tables.items():
        of_visit = _OF_VISIT.get(folder, pl.lit(True))
        own = table.filter(of_visit).join(visits, on=_VISIT, how="inner", maintain_order="left")
        if folder != CRAWL_FETCH:
            own = own.filter(~pl.col("is_bare"))
        own = _by_time(own, fetched, times, oldest=True)
        others = _of_links(table.filter(~of_visit), times, verdicts)
        for number, found in enumerate(layers):
            found[folder] = own.filter(layer=number).select(*MERGE_SCHEMA)
        if len(others):
            mine = pl.concat([layers[0][folder], others])
            # Links as they would be read from the old segments: one after the other.
            mine = mine.sort("rank", maintain_order=True) if len(own) else mine
            layers[0][folder] = sort_by_key(mine)
    return list(layers)


def _kept(
    tables: Tables, times: Sequence[int], is_parsed: Callable[[pl.DataFrame], pl.Series]
) -> pl.DataFrame:
    """Returns the visits that stay: `key`, `rank`, the time `at`; a key's oldest first."""
    empty = pl.DataFrame(schema=MERGE_SCHEMA)
    success = pl.col("status") == STATUS_FETCH_SUCCESS
    known: Mapping[str, Mapping[str, pl.Expr]] = {
        CRAWL_FETCH: {
            "is_fetched": pl.lit(True),
            "is_success": success,
            "is_answered": pl.col("status") != STATUS_FETCH_RETRY,
            "is_other": pl.col("status") != STATUS_FETCH_NOTMODIFIED,
            "is_result": ~pl.col("status").is_in(_NO_RESULTS),
        },
        CRAWL_PARSE: {"is_success": success},
        CONTENT: {"has_content": pl.lit(True)},
        PARSE_DATA: {"has_parse": pl.lit(True)},
    }
    names = list(dict.fromkeys(name for flags in known.values() for name in flags))
    found = [
        tables.get(folder, empty)
        .filter(_OF_VISIT.get(folder, pl.lit(True)))
        .select(*_VISIT, *(flags.get(name, pl.lit(False)).alias(name) for name in names))
        for folder, flags in known.items()
    ]
    visits = pl.concat(found).group_by(_VISIT).agg(pl.col(names).any())
    visits = visits.join(_fetched(tables), on=_VISIT, how="left")
    of_segment = pl.Series(times, dtype=pl.Int64).gather(visits["rank"])
    visits = visits.with_columns(pl.coalesce("at", of_segment.alias("at")))
    visits = visits.sort("key", "at", "rank")
    if has_repeats(visits["key"]):
        parses = tables.get(PARSE_DATA, empty).filter(pl.col("key").is_duplicated())
        ended = parses.select(_VISIT).filter(is_parsed(parses))
        # For each question a reader may ask, the visit that would answer it.
        last = [visits.filter(name) for name in names]
        last.append(visits.join(ended, on=_VISIT, how="semi", maintain_order="left"))
        kept = pl.concat([each.unique("key", keep="last", maintain_order=True) for each in last])
        visits = visits.join(kept, on=_VISIT, how="semi", maintain_order="left")
    return visits.select(*_VISIT, "at", is_bare=pl.lit(False))


def _judged(visits: pl.DataFrame, verdicts: RecordVerdicts) -> pl.DataFrame:
    """Returns the visits that the CrawlDb leaves."""
    known = visits.join(verdicts.entries, on="key", how="left", maintain_order="left")
    over = pl.col("status").is_in(_OVER) & (pl.col("last") < verdicts.limit)
    # A later visit may have found the page again; the CrawlDb does not know of it yet.
    over = (over & (pl.col("at") <= pl.col("last"))).fill_null(False)
    is_last = pl.col("key") != pl.col("key").shift(-1).fill_null(b"")
    unknown = pl.col("status").is_null() & (pl.col("at") < verdicts.limit)
    for file in HOST_FILES:  # no entry has them, and pages that are kept go with them
        unknown &= ~pl.col("key").bin.ends_with(file.encode())
    return known.filter(~unknown, ~over | is_last).select(*_VISIT, "at", is_bare=over)


def _of_links(
    table: pl.DataFrame, times: Sequence[int], verdicts: RecordVerdicts | None
) -> pl.DataFrame:
    """Returns the records that stay of those that belong to no visit."""
    found = _newest_links(table)
    if verdicts is None:
        return found
    at = pl.Series(times, dtype=pl.Int64).gather(found["rank"])
    known = found["key"].is_in(verdicts.entries["key"].implode())
    return found.filter(known | (at >= verdicts.limit))


@dataclass(frozen=True)
class SegmentPiece:
    """The records of one part of one slice: all of them, or the next ones. `slice` is None where
    there are none.
    """

    part: int
    slice: int | None
    tables: Tables


class SegmentSlices:
    """Cuts a merged segment into parts by the hash of the URL, and these into slices of about
    `size` URLs together.

    As in Nutch the URLs of a part are counted from 1, and each slice begins with a multiple of its
    size: the first one has a URL less than the others. 0 makes no slices.
    """

    def __init__(self, size: int, parts: int) -> None:
        self._parts = parts
        self._size = max(1, size // parts) if size > 0 else 0
        self._counts = [0] * parts

    def cut(self, tables: Tables, keys: pl.Series) -> Iterator[SegmentPiece]:
        """Yields the pieces of the next range of keys; `keys` are all of them, sorted, unique."""
        split_tables = {folder: split(table, self._parts) for folder, table in tables.items()}
        for part, own in enumerate(split(keys.to_frame("key"), self._parts)):
            mine = {folder: found[part] for folder, found in split_tables.items()}
            if self._size:
                yield from self._cut_part(part, mine, own["key"])
            elif any(map(len, mine.values())):
                yield SegmentPiece(part, None, mine)

    def _cut_part(self, part: int, tables: Tables, keys: pl.Series) -> Iterator[SegmentPiece]:
        count = self._counts[part]
        end = self._counts[part] = count + len(keys)
        while count < end:
            # SegmentMerger counts from 1, so the first slice has a URL less.
            number = (count + 1) // self._size
            following = min(end, (number + 1) * self._size - 1)  # URLs up to the end of this slice
            bound = bytes(keys[len(keys) - (end - following)]) if following < end else None
            piece = {
                folder: table if bound is None else _below(table, bound)
                for folder, table in tables.items()
            }
            tables = {folder: table[len(piece[folder]) :] for folder, table in tables.items()}
            yield SegmentPiece(part, number, piece)
            count = following


def _below(table: pl.DataFrame, bound: bytes) -> pl.DataFrame:
    return table[: table["key"].search_sorted(bound, side="left")]
