"""What becomes of a URL when a segment is merged into the CrawlDb: every change of status has its home here.

    what the segment has       status before          status after
    fetch_success              any                    db_fetched, or db_notmodified if the signature is the old one
    fetch_notmodified          any                    db_notmodified
    fetch_redir_temp, _perm    any                    db_redir_temp, db_redir_perm
    fetch_retry                any                    db_unfetched, or db_gone after db.fetch.retry.max retries
    fetch_gone                 any                    db_gone
    parse_failed               any                    db_parse_failed
    linked                     none                   db_unfetched (nothing at all without additions)
    linked                     any                    as before, with a new score
    nothing of these           any                    as before

and db_unfetched wherever a successful fetch leaves an interval beyond db.fetch.interval.max. Of several fetches the
latest counts, of several old entries too; of the links only the db.update.max.inlinks with the *lowest* scores (which
is what Nutch's priority queue keeps), handed to the scoring filters highest first.

Tables in and out are sorted by key, and all rows of a key are in them. When and with which interval a page is fetched
again is decided in `schedule`, the score by the scoring filters.
Matched: org.apache.nutch.crawl.CrawlDbReducer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from minutch.conf import Configuration
from minutch.crawldb import rawmap, schedule, scoring
from minutch.crawldb.groups import first_of_key, has_ties, keep_latest, lowest_scores, merge_sorted
from minutch.crawldb.schedule import AbstractFetchSchedule, fetch_schedule
from minutch.errors import FormatError
from minutch.formats.javaio import decode_text
from minutch.job import Counters
from minutch.plugin.chains import ScoringFilters
from minutch.records import crawldatum as status
from minutch.records.metadata import GENERATE_TIME_KEY
from minutch.tables.frame import CRAWLDB_SCHEMA

log = logging.getLogger(__name__)

ADDITIONS_PROPERTY: Final = "db.update.additions.allowed"
NOT_ADDED: Final = "not in the CrawlDb, additions not allowed"
NO_FETCH_NO_OLD: Final = "neither fetched, linked to nor in the CrawlDb"

_GENERATE_TIME: Final = rawmap.text_key(GENERATE_TIME_KEY)
_COLUMNS: Final = CRAWLDB_SCHEMA.names()

# Status codes are signed bytes in Nutch, so those above 0x7f count as below zero.
_IS_DB = (pl.col("status") <= status.STATUS_DB_MAX) | (pl.col("status") > 0x7F)
_IS_FETCH = ~_IS_DB & ((pl.col("status") <= status.STATUS_FETCH_MAX) | (pl.col("status") == status.STATUS_PARSE_FAILED))
_SUCCESSES: Final = {
    status.STATUS_FETCH_SUCCESS: status.STATUS_DB_FETCHED,
    status.STATUS_FETCH_REDIR_TEMP: status.STATUS_DB_REDIR_TEMP,
    status.STATUS_FETCH_REDIR_PERM: status.STATUS_DB_REDIR_PERM,
    status.STATUS_FETCH_NOTMODIFIED: status.STATUS_DB_NOTMODIFIED,
}


@dataclass(frozen=True)
class Rules:
    """The settings of an update."""

    schedule: AbstractFetchSchedule
    scoring: ScoringFilters
    retry_max: int
    max_interval: int  # s
    max_inlinks: int
    additions: bool

    @classmethod
    def from_conf(cls, conf: Configuration) -> Rules:
        """As CrawlDbReducer.setup reads them."""
        return cls(
            fetch_schedule(conf),
            ScoringFilters(conf),
            conf.get_int("db.fetch.retry.max", 3),
            conf.get_int("db.fetch.interval.max", 0),
            conf.get_int("db.update.max.inlinks", 10000),
            conf.get_boolean(ADDITIONS_PROPERTY, True),
        )


class Batch(NamedTuple):
    """The URLs of which a segment says something: one row each, row for row.

    `new` is the fetch, or the first link; `old` has null everywhere where there was no entry; `signature` comes from
    the parse or the fetch; `parsed` is metadata from the parse.
    """

    new: pl.DataFrame
    old: pl.DataFrame
    signature: pl.Series
    parsed: pl.Series

    def filter(self, mask: pl.Series) -> Batch:
        """The rows where `mask` is true."""
        return Batch(
            self.new.filter(mask), self.old.filter(mask), self.signature.filter(mask), self.parsed.filter(mask)
        )

    @property
    def has_old(self) -> pl.Series:
        """Where there was an entry."""
        return self.old["status"].is_not_null()

    @property
    def previous(self) -> tuple[pl.Series, pl.Series, pl.Series]:
        """Fetch time and modified time before (0 where there was no entry), and the fetch time now."""
        old = self.old
        return old["fetch_time"].fill_null(0), old["modified_time"].fill_null(0), self.new["fetch_time"]


def update(old: pl.DataFrame, segment: pl.DataFrame, rules: Rules, now: int) -> tuple[pl.DataFrame, Counters]:
    """The CrawlDb after `segment` (rows of crawl_fetch and crawl_parse) is merged into `old`; and what happened.

    The counters have one count per URL, by the status with which it leaves or the reason why it does not.
    Raises FormatError for a fetch status that no Nutch writes.
    """
    old, segment = _sort_out(old, segment)
    old, counters = keep_latest(old), Counters()
    links = lowest_scores(segment.filter(pl.col("status") == status.STATUS_LINKED), rules.max_inlinks)
    new = _latest_news(segment, links)
    at = _positions(new["key"], old["key"])
    if not rules.additions:
        known = at.is_not_null()
        counters.add(NOT_ADDED, len(new) - int(known.sum()))
        new, at = new.filter(known), at.filter(known)
    _count_lost(segment, new, old, rules, counters)
    result = _transit(_batch(new, old, at, segment), rules, now, counters)
    result = scoring.updated_scores(result, _gather(old, at), links, rules.scoring, counters)
    result = _without_generate_time(result)
    rest = scoring.orphaned_scores(_rest(old, at), rules.scoring, counters)
    merged = merge_sorted(rest, result)
    _count_statuses(merged, counters)
    return merged, counters


def order_matters(segment: pl.DataFrame) -> bool:
    """Whether the result depends on the order of rows of one key: which of equal fetches or links comes first."""
    kinds = segment.with_columns(kind=pl.when(_IS_FETCH).then(pl.lit(0, pl.UInt8)).otherwise("status"))
    last = pl.col("status").is_in([status.STATUS_SIGNATURE, status.STATUS_PARSE_META])
    return (
        has_ties(kinds.filter(_IS_FETCH), "kind", "fetch_time")
        or has_ties(kinds.filter(pl.col("status") == status.STATUS_LINKED).drop("fetch_time"), "score")
        or has_ties(kinds.filter(last).select("key", "kind", "signature", "metadata"), "kind")
    )


# -- taking the input apart ----------------------------------------------------------------------------------------


def _sort_out(old: pl.DataFrame, segment: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Entries by their status rather than by the file they come from, as in Nutch."""
    strays = old.filter(~_IS_DB), segment.filter(_IS_DB)
    if not any(map(len, strays)):
        return old, segment
    return (
        pl.concat([old.filter(_IS_DB), strays[1]]).sort("key", maintain_order=True),
        pl.concat([strays[0], segment.filter(~_IS_DB)]).sort("key", maintain_order=True),
    )


def _latest_news(segment: pl.DataFrame, links: pl.DataFrame) -> pl.DataFrame:
    """One row per URL: the latest fetch, else the link with the highest score of those kept."""
    fetched = keep_latest(segment.filter(_IS_FETCH))
    if links.is_empty():
        return fetched
    linked = first_of_key(links).select(_COLUMNS)
    if len(fetched):
        linked = linked.join(fetched.select("key"), on="key", how="anti", maintain_order="left")
    return merge_sorted(linked, fetched)


def _positions(keys: pl.Series, table_keys: pl.Series) -> pl.Series:
    """The row of each of `keys` in the table, null where it is not there."""
    table = table_keys.to_frame("key").with_row_index("at")
    return keys.to_frame("key").join(table, on="key", how="left", maintain_order="left")["at"]


def _gather(table: pl.DataFrame, at: pl.Series) -> pl.DataFrame:
    """The rows at positions `at`; all null where the position is."""
    return table.select(pl.all().gather(pl.lit(at)))


def _batch(new: pl.DataFrame, old: pl.DataFrame, at: pl.Series, segment: pl.DataFrame) -> Batch:
    def last(kind: int, column: str) -> pl.Series:
        """`column` of the last row of `kind` of each URL, null where there is none."""
        table = segment.filter(pl.col("status") == kind).select("key", column).unique("key", keep="last")
        if table.is_empty():
            return pl.Series(column, [None], dtype=pl.Binary).new_from_index(0, len(new))
        return new.select("key").join(table, on="key", how="left", maintain_order="left")[column]

    signature = last(status.STATUS_SIGNATURE, "signature")
    signature = signature.zip_with(signature.is_not_null(), new["signature"])
    return Batch(new, _gather(old, at), signature, last(status.STATUS_PARSE_META, "metadata"))


def _rest(old: pl.DataFrame, at: pl.Series) -> pl.DataFrame:
    """The old entries of which the segment says nothing."""
    untouched = np.ones(len(old), np.bool_)
    untouched[at.drop_nulls().to_numpy()] = False
    return old.filter(pl.Series(untouched))


# -- the transitions -----------------------------------------------------------------------------------------------


def _transit(batch: Batch, rules: Rules, now: int, counters: Counters) -> pl.DataFrame:
    """The new entries, in the order of the batch."""
    kinds = batch.new["status"]
    _check_statuses(batch.new)
    parts = []
    for kind, step in _STEPS.items():
        mask = kinds == kind
        if mask.any():
            result = step(batch.filter(mask), rules, now, counters).select(_COLUMNS)
            parts.append(result.with_columns(row=mask.arg_true()))
    if not parts:
        return batch.new
    return parts[0].drop("row") if len(parts) == 1 else pl.concat(parts).sort("row").drop("row")


def _linked(batch: Batch, rules: Rules, now: int, counters: Counters) -> pl.DataFrame:
    """A link was found: known pages stay as they are, a new one is to be fetched."""
    known = batch.has_old
    added = batch.new.filter(~known)
    added = rules.schedule.initialize_schedule_columns(added, now)
    added = added.with_columns(status=pl.lit(status.STATUS_DB_UNFETCHED, pl.UInt8))
    added = scoring.initial_scores(added, rules.scoring, counters)
    return merge_sorted(batch.old.filter(known), added.select(_COLUMNS))


def _success(batch: Batch, rules: Rules, now: int, counters: Counters) -> pl.DataFrame:
    """A page was fetched, redirects, or is the same as before."""
    fetched = batch.new["status"]
    state = _modification(batch)
    frame = _with_old_knowledge(batch, batch.parsed)
    frame = rules.schedule.set_fetch_schedule_columns(frame, *batch.previous, batch.new["modified_time"], state)
    same = state == schedule.STATUS_NOTMODIFIED
    own_signature = batch.old["signature"].zip_with(batch.has_old, frame["signature"])
    frame = frame.with_columns(
        status=fetched.replace_strict(_SUCCESSES, return_dtype=pl.UInt8).set(same, status.STATUS_DB_NOTMODIFIED),
        modified_time=batch.previous[1].zip_with(same, frame["modified_time"]),
        signature=own_signature.zip_with(same, batch.signature),
    )
    too_long = frame["fetch_interval"] > rules.max_interval
    if not too_long.any():
        return frame
    forced = rules.schedule.force_refetch_columns(frame.filter(too_long), False, now)
    return merge_sorted(frame.filter(~too_long), forced.select(frame.columns))


def _modification(batch: Batch) -> pl.Series:
    """Whether the page changed, as the fetcher or the signature says: STATUS_UNKNOWN, _MODIFIED or _NOTMODIFIED.

    A redirect has no content to compare.
    """
    kinds, old = batch.new["status"], batch.old["signature"]
    comparable = (kinds == status.STATUS_FETCH_SUCCESS) & old.is_not_null() & batch.signature.is_not_null()
    same = (comparable & (old == batch.signature).fill_null(False)) | (kinds == status.STATUS_FETCH_NOTMODIFIED)
    state = pl.zeros(len(kinds), pl.Int8, eager=True)
    return state.set(comparable, schedule.STATUS_MODIFIED).set(same, schedule.STATUS_NOTMODIFIED)


def _retry(batch: Batch, rules: Rules, now: int, counters: Counters) -> pl.DataFrame:
    """The fetch failed for now: try again, until there were too many retries."""
    frame = rules.schedule.set_page_retry_schedule_columns(_with_old_signature(batch), *batch.previous)
    again = frame["retries"] < rules.retry_max
    frame = frame.with_columns(status=pl.lit(status.STATUS_DB_UNFETCHED, pl.UInt8))
    if again.all():
        return frame
    gone = frame.filter(~again).with_columns(status=pl.lit(status.STATUS_DB_GONE, pl.UInt8))
    gone = rules.schedule.set_page_gone_schedule_columns(gone, *batch.filter(~again).previous)
    return merge_sorted(frame.filter(again), gone.select(frame.columns))


def _gone(batch: Batch, rules: Rules, now: int, counters: Counters) -> pl.DataFrame:
    return _lost(batch, rules, status.STATUS_DB_GONE)


def _parse_failed(batch: Batch, rules: Rules, now: int, counters: Counters) -> pl.DataFrame:
    return _lost(batch, rules, status.STATUS_DB_PARSE_FAILED)


def _lost(batch: Batch, rules: Rules, new_status: int) -> pl.DataFrame:
    """There is no page any more, or none that can be read."""
    frame = _with_old_signature(batch).with_columns(status=pl.lit(new_status, pl.UInt8))
    return rules.schedule.set_page_gone_schedule_columns(frame, *batch.previous)


_STEPS: Final[dict[int, Callable[[Batch, Rules, int, Counters], pl.DataFrame]]] = {
    status.STATUS_LINKED: _linked,
    status.STATUS_FETCH_SUCCESS: _success,
    status.STATUS_FETCH_REDIR_TEMP: _success,
    status.STATUS_FETCH_REDIR_PERM: _success,
    status.STATUS_FETCH_NOTMODIFIED: _success,
    status.STATUS_FETCH_RETRY: _retry,
    status.STATUS_FETCH_GONE: _gone,
    status.STATUS_PARSE_FAILED: _parse_failed,
}
"""Status of the news of a URL -> what becomes of it."""


def _check_statuses(new: pl.DataFrame) -> None:
    unknown = new.filter(~pl.col("status").is_in(list(_STEPS)))
    if len(unknown):
        url, code = unknown.select("key", "status").row(0)
        raise FormatError(
            f"status of a fetch that no Nutch writes, in a segment's entry for {decode_text(url)}", found=code
        )


def _with_old_signature(batch: Batch) -> pl.DataFrame:
    frame = _with_old_knowledge(batch)
    return frame.with_columns(signature=batch.old["signature"].zip_with(batch.has_old, frame["signature"]))


def _with_old_knowledge(batch: Batch, *overlays: pl.Series) -> pl.DataFrame:
    """The fetch, with what only the old entry knows: metadata, and the modified time if the fetch has none."""
    new, old = batch.new, batch.old
    keep = ((old["modified_time"] > 0) & (new["modified_time"] == 0)).fill_null(False)
    return new.with_columns(
        modified_time=old["modified_time"].zip_with(keep, new["modified_time"]),
        metadata=_merge_metadata(new["metadata"], old["metadata"], *overlays),
    )


def _merge_metadata(new: pl.Series, old: pl.Series, *overlays: pl.Series) -> pl.Series:
    """The fetch's metadata, the old entry's where the fetch has none of that key, then the overlays."""
    needed = old.is_not_null()
    for overlay in overlays:
        needed |= overlay.is_not_null()
    if not needed.any():
        return new
    columns = (column.filter(needed) for column in (new, old, *overlays))
    merged = [rawmap.merge(n, o, n if o else None, *others) for n, o, *others in zip(*columns, strict=True)]
    return new.scatter(needed.arg_true(), pl.Series(merged, dtype=pl.Binary))


def _without_generate_time(frame: pl.DataFrame) -> pl.DataFrame:
    """Nutch's `_ngt_`, which marks an entry as generated, does not outlive the update."""
    metadata = frame["metadata"]
    marked = metadata.bin.contains(_GENERATE_TIME).fill_null(False)
    if not marked.any():
        return frame
    cleaned = [rawmap.without(data, _GENERATE_TIME) for data in metadata.filter(marked)]
    return frame.with_columns(metadata=metadata.scatter(marked.arg_true(), pl.Series(cleaned, dtype=pl.Binary)))


# -- counting ------------------------------------------------------------------------------------------------------


def _count_lost(segment: pl.DataFrame, new: pl.DataFrame, old: pl.DataFrame, rules: Rules, counters: Counters) -> None:
    """Count and report what leads nowhere: a signature without a fetch and an entry, a status of another kind."""
    others = segment.filter(~_IS_FETCH & (pl.col("status") != status.STATUS_LINKED))
    strange = others.filter(~pl.col("status").is_in([status.STATUS_SIGNATURE, status.STATUS_PARSE_META]))
    for key, code in strange.select("key", "status").iter_rows():
        log.warning("unknown status %d in an entry for %s", code, decode_text(key))
    lone = others.select("key").unique().join(new.select("key"), on="key", how="anti")
    lone = lone.join(old.select("key"), on="key", how="anti")
    if lone.is_empty():
        return
    if not rules.additions:
        linked = segment.filter(_IS_FETCH | (pl.col("status") == status.STATUS_LINKED)).select("key")
        counters.add(NOT_ADDED, len(lone.join(linked, on="key", how="anti")))
        return
    counters.add(NO_FETCH_NO_OLD, len(lone))
    for (key,) in lone.iter_rows():
        log.warning("neither fetched, linked to nor in the CrawlDb: %s", decode_text(key))


def _count_statuses(frame: pl.DataFrame, counters: Counters) -> None:
    for code, count in frame["status"].value_counts().sort("status").iter_rows():
        counters.add(status.status_name(code), count)
