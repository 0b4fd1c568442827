"""Decides the status of a URL when a segment is merged into the CrawlDb: every change of status is
decided here.

    what the segment has       status before          status after
    fetch_success              any                    db_fetched, or db_notmodified if the signature
                               is the old one
    fetch_notmodified          any                    db_notmodified
    fetch_redir_temp, _perm    any                    db_redir_temp, db_redir_perm
    fetch_retry                any                    db_unfetched, or db_gone after
                               db.fetch.retry.max retries
    fetch_gone                 any                    db_gone
    parse_failed               any                    db_parse_failed
    linked                     none                   db_unfetched (nothing at all without
                               additions)
    linked                     any                    as before, with a new score
    nothing of these           any                    as before

and db_unfetched wherever a successful fetch leaves an interval beyond db.fetch.interval.max. A page
that was fetched and not parsed (cut off, or no parser for its type) has its old signature still,
and so is db_notmodified to Nutch; with db.update.unparsed.keeps.interval=true it is db_fetched, and
nothing is said of whether it changed. Tables in and out are packed and sorted by key, and all rows
of a key are in them. When and with which interval a page is fetched again is decided in `schedule`,
the score by the scoring filters. Source: org.apache.nutch.crawl.CrawlDbReducer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from minutch.conf import Configuration, Settings, made_by, prop
from minutch.cycle.crawldb import schedule, scoring
from minutch.cycle.crawldb.matching import Ints, merge_sorted
from minutch.cycle.crawldb.schedule import AbstractFetchSchedule, fetch_schedule
from minutch.cycle.crawldb.updates import (
    Codes,
    FetchRecords,
    Updates,
    inlinked,
    is_fetch,
    split_by_status,
    untouched,
)
from minutch.errors import FormatError
from minutch.hadoop.formats.javaio import decode_text
from minutch.job import Counters
from minutch.plugin.chains import ScoringFilters
from minutch.records import crawldatum as status
from minutch.records import rawmap, validators
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA, resealed
from minutch.records.metadata import GENERATE_TIME_KEY
from minutch.records.metadata_columns import with_all, with_defaults
from minutch.work.tables.frame import has_repeats
from minutch.work.tables.recordfiles import Patched, pack, take, unpack

log = logging.getLogger(__name__)

ADDITIONS_PROPERTY: Final = "db.update.additions.allowed"
NOT_ADDED: Final = "not in the CrawlDb, additions not allowed"
NO_FETCH_NO_OLD: Final = "neither fetched, linked to nor in the CrawlDb"

_GENERATE_TIME: Final = rawmap.text_key(GENERATE_TIME_KEY)
_COLUMNS: Final = CRAWLDB_SCHEMA.names()
_STATUSES: Final = 256  # codes that a byte can hold
_REPORTED: Final = 10  # URLs that are named in a message

_CONFIRMS: Final = (status.STATUS_FETCH_NOTMODIFIED, status.STATUS_FETCH_RETRY)
"""What leaves the copy of a page as the last that is known of it."""
_SUCCESSES: Final = {
    status.STATUS_FETCH_SUCCESS: status.STATUS_DB_FETCHED,
    status.STATUS_FETCH_REDIR_TEMP: status.STATUS_DB_REDIR_TEMP,
    status.STATUS_FETCH_REDIR_PERM: status.STATUS_DB_REDIR_PERM,
    status.STATUS_FETCH_NOTMODIFIED: status.STATUS_DB_NOTMODIFIED,
}


def _needs_parse(conf: Configuration, name: str) -> bool:
    """Unless the fetcher signs a page not parsed; else it keeps the fetch list's signature."""
    signs = conf.get_boolean("fetcher.signature") or conf.get_boolean("fetcher.parse")
    return conf.get_boolean(name) and not signs


@dataclass(frozen=True)
class UpdateSettings(Settings):
    """The settings of an update."""

    schedule: AbstractFetchSchedule = made_by(fetch_schedule)
    scoring: ScoringFilters = made_by(ScoringFilters)
    retry_max: int = prop("db.fetch.retry.max")
    max_interval: int = prop("db.fetch.interval.max")  # s
    max_inlinks: int = prop("db.update.max.inlinks")
    additions: bool = prop(ADDITIONS_PROPERTY)
    needs_parse: bool = prop("db.update.unparsed.keeps.interval", _needs_parse)
    """Whether only a parse can tell that a page has not changed."""


def update(
    old: pl.DataFrame, segment: pl.DataFrame, settings: UpdateSettings, now: int
) -> tuple[Patched, Counters]:
    """Merges `segment` (rows of crawl_fetch and crawl_parse) into `old`; returns the entries and
    counts.

    The counters have one count per URL, by the status with which it leaves or the reason why it
    does not. Raises FormatError for a fetch status that no Nutch writes.
    """
    # Nutch tells entries from updates by their status alone, whichever file they lie in.
    old, segment = split_by_status(old, segment)
    if has_repeats(old["key"]):  # a database of another program, or of two merged by hand
        # of entries of a key the latest counts, of equally late ones the first
        by_time = old.sort("key", "fetch_time", descending=[False, True], maintain_order=True)
        old = by_time.unique("key", keep="first", maintain_order=True)
    counters = Counters()
    updates = Updates(segment, old["key"], settings.max_inlinks)
    known = updates.at >= 0
    # Signatures and parse metadata alone make no entry.
    urls = np.flatnonzero(updates.row >= 0)
    if not settings.additions:
        counters.add(NOT_ADDED, int((~known).sum()))
        urls = urls[known[urls]]
    else:
        _report_lost(updates, counters)
    scored, scores = _scored(updates, urls, old, settings)
    # Known pages that only get a new score are copied; the others are taken apart.
    others = np.ones(len(updates.at), np.bool_)
    others[scored] = False
    urls = urls[others[urls]]
    before = take(old, updates.at[urls])
    result = _transit(updates, urls, before, settings, now, counters)
    result = scoring.updated_scores(
        result, before, inlinked(updates, urls), settings.scoring, counters
    )
    # After the filters, as in CrawlDbReducer.
    result = _without_generate_time(result)
    if scoring.sees_orphans(settings.scoring):
        mask = untouched(old, updates.at[urls])
        # Only then do entries matter that nothing happened to.
        old = pack(scoring.orphaned_scores(unpack(old), mask, settings.scoring, counters))
    patched = Patched(
        old, result, updates.at[urls], updates.before[urls], updates.at[scored], scores
    )
    _count_statuses(patched, counters)
    return patched, counters


def _scored(
    updates: Updates, urls: Ints, old: pl.DataFrame, settings: UpdateSettings
) -> tuple[Ints, pl.Series]:
    """Returns the known pages among `urls` that only get new scores from links; and these."""
    chosen = urls[~updates.fetched[urls] & (updates.at[urls] >= 0)]
    entries = old.select(pl.col("score", "value").gather(pl.lit(pl.Series(updates.at[chosen]))))
    # Their mark has to go: such entries are written anew.
    marked = entries["value"].bin.contains(_GENERATE_TIME)
    if marked.any():
        entries, chosen = entries.filter(~marked), chosen[~marked.to_numpy()]
    scores = None
    if len(chosen):
        scores = scoring.linked_scores(
            entries["score"], inlinked(updates, chosen), settings.scoring
        )
    return (urls[:0], entries["score"].clear()) if scores is None else (chosen, scores)


# -- the transitions -------------------------------------------------------------------------------


def _transit(
    updates: Updates,
    urls: Ints,
    old: pl.DataFrame,
    settings: UpdateSettings,
    now: int,
    counters: Counters,
) -> pl.DataFrame:
    """Returns the new entries of `urls`, in order, with old scores; `old` row for row."""
    fetched = updates.fetched[urls]
    known = ~fetched & (updates.at[urls] >= 0)
    new = urls[~fetched & ~known]
    parts = [
        (urls[known], old.filter(pl.Series(known))),  # pages that are known stay as they are
        (new, _added(unpack(updates.segment[updates.row[new]]), settings, now, counters)),
    ]
    parts += _transit_fetched(
        urls[fetched], updates, old.filter(pl.Series(fetched)), settings, now, counters
    )
    parts = [(numbers, frame) for numbers, frame in parts if len(numbers)]
    if not parts:
        return old.clear()
    if len(parts) == 1:
        return parts[0][1]
    # Of each URL; that of URLs without an entry is not looked at.
    row = np.empty(len(updates.row), np.uint32)
    # Parts come by kind of change: back into the order of the keys.
    row[np.concatenate([numbers for numbers, _ in parts])] = np.arange(len(urls), dtype=np.uint32)
    return pl.concat([frame.select(_COLUMNS) for _, frame in parts], rechunk=True)[
        pl.Series(row[urls])
    ]


def _transit_fetched(
    urls: Ints,
    updates: Updates,
    old: pl.DataFrame,
    settings: UpdateSettings,
    now: int,
    counters: Counters,
) -> list[tuple[Ints, pl.DataFrame]]:
    """Returns the new entries of fetched URLs, one table per transition."""
    pages = updates.fetched_pages(urls, old)
    kinds = pages.new["status"].to_numpy()
    _check_statuses(pages.new, kinds)  # before anything is decided
    parts = []
    for step, codes in _STEPS.items():
        mask = np.isin(kinds, codes)
        if mask.any():
            # Pages are often all of a kind; Polars would copy them.
            mine = pages if mask.all() else pages.filter(pl.Series(mask))
            parts.append((urls[mask], step(mine, settings, now)))
    return parts


def _added(
    frame: pl.DataFrame, settings: UpdateSettings, now: int, counters: Counters
) -> pl.DataFrame:
    """Returns new pages, found through links, to be fetched."""
    frame = settings.schedule.initialize_schedule_columns(frame, now)
    frame = frame.with_columns(status=pl.lit(status.STATUS_DB_UNFETCHED, pl.UInt8))
    return scoring.initial_scores(frame, settings.scoring, counters)


def _success(pages: FetchRecords, settings: UpdateSettings, now: int) -> pl.DataFrame:
    """Returns the entries of pages that were fetched, redirect, or are unchanged."""
    fetched = pages.new["status"]
    state = modification(pages, settings.needs_parse)
    frame = with_old_metadata(pages, pages.parsed)
    frame = settings.schedule.set_fetch_schedule_columns(
        frame, *pages.previous, pages.new["modified_time"], state
    )
    # An unchanged page keeps the time at which it was modified, and its signature.
    same = state == schedule.STATUS_NOTMODIFIED
    own_signature = pages.old["signature"].zip_with(pages.has_old, frame["signature"])
    frame = frame.with_columns(
        status=fetched.replace_strict(_SUCCESSES, return_dtype=pl.UInt8).set(
            same, status.STATUS_DB_NOTMODIFIED
        ),
        modified_time=pages.previous[1].zip_with(same, frame["modified_time"]),
        signature=own_signature.zip_with(same, pages.signature),
    )
    too_long = frame["fetch_interval"] > settings.max_interval
    if too_long.any():
        # CrawlDbReducer: interval beyond db.fetch.interval.max.
        forced = settings.schedule.force_refetch_columns(frame.filter(too_long), False, now)
        frame = merge_sorted(frame.filter(~too_long), forced.select(frame.columns))
    return _sealed(frame, pages, settings)


def modification(pages: FetchRecords, needs_parse: bool) -> pl.Series:
    """Returns STATUS_UNKNOWN, _MODIFIED or _NOTMODIFIED for each page, by the fetcher's status or
    the signature.

    A redirect has no content to compare, and where `needs_parse` a page that was not parsed has no
    signature.
    """
    kinds, old = pages.new["status"], pages.old["signature"]
    # Only contents can be compared: both of them, and not those of redirects.
    comparable = (
        (kinds == status.STATUS_FETCH_SUCCESS) & old.is_not_null() & pages.signature.is_not_null()
    )
    if needs_parse:
        comparable &= pages.is_parsed
    same = (comparable & (old == pages.signature).fill_null(False)) | (
        kinds == status.STATUS_FETCH_NOTMODIFIED
    )
    state = pl.zeros(len(kinds), pl.Int8, eager=True)
    return state.set(comparable, schedule.STATUS_MODIFIED).set(same, schedule.STATUS_NOTMODIFIED)


def _retry(pages: FetchRecords, settings: UpdateSettings, now: int) -> pl.DataFrame:
    """Returns entries whose fetch failed for now: tried again, up to the number of retries."""
    frame = settings.schedule.set_page_retry_schedule_columns(
        _with_old_signature(pages), *pages.previous
    )
    again = frame["retries"] < settings.retry_max  # counted with this failure
    frame = frame.with_columns(status=pl.lit(status.STATUS_DB_UNFETCHED, pl.UInt8))
    if not again.all():
        gone = frame.filter(~again).with_columns(status=pl.lit(status.STATUS_DB_GONE, pl.UInt8))
        gone = settings.schedule.set_page_gone_schedule_columns(
            gone, *pages.filter(~again).previous
        )
        frame = merge_sorted(frame.filter(again), gone.select(frame.columns))
    return _sealed(frame, pages, settings)


def _gone(pages: FetchRecords, settings: UpdateSettings, now: int) -> pl.DataFrame:
    return _lost(pages, settings, status.STATUS_DB_GONE)


def _parse_failed(pages: FetchRecords, settings: UpdateSettings, now: int) -> pl.DataFrame:
    return _lost(pages, settings, status.STATUS_DB_PARSE_FAILED)


def _lost(pages: FetchRecords, settings: UpdateSettings, new_status: int) -> pl.DataFrame:
    """Returns the entries of pages that are gone, or can't be parsed."""
    frame = _with_old_signature(pages).with_columns(status=pl.lit(new_status, pl.UInt8))
    frame = settings.schedule.set_page_gone_schedule_columns(frame, *pages.previous)
    return _sealed(frame, pages, settings)


_STEPS: Final[dict[Callable[[FetchRecords, UpdateSettings, int], pl.DataFrame], list[int]]] = {
    _success: list(_SUCCESSES),
    _retry: [status.STATUS_FETCH_RETRY],
    _gone: [status.STATUS_FETCH_GONE],
    _parse_failed: [status.STATUS_PARSE_FAILED],
}
"""Transition -> the statuses of the fetch that it applies to."""


def _check_statuses(new: pl.DataFrame, kinds: Codes) -> None:
    unknown = ~np.isin(kinds, [code for codes in _STEPS.values() for code in codes])
    if unknown.any():
        url, code = new.select("key", "status").row(int(unknown.argmax()))
        raise FormatError(
            f"status of a fetch that no Nutch writes, in a segment's entry for {decode_text(url)}",
            found=code,
        )


def _with_old_signature(pages: FetchRecords) -> pl.DataFrame:
    frame = with_old_metadata(pages)
    return frame.with_columns(
        signature=pages.old["signature"].zip_with(pages.has_old, frame["signature"])
    )


def with_old_metadata(pages: FetchRecords, *overlays: pl.Series) -> pl.DataFrame:
    """Returns the fetch with the old entry's metadata, and its modified time if it has none."""
    new, old = pages.new, pages.old
    keep = ((old["modified_time"] > 0) & (new["modified_time"] == 0)).fill_null(False)
    return new.with_columns(
        modified_time=old["modified_time"].zip_with(keep, new["modified_time"]),
        metadata=_merge_metadata(new["metadata"], old["metadata"], *overlays),
    )


def _merge_metadata(new: pl.Series, old: pl.Series, *overlays: pl.Series) -> pl.Series:
    """Returns the fetch's metadata with the old entry's as defaults, then the overlays on top."""
    if (known := old.is_not_null()).any():
        # Where one side is empty the other is the answer, and no map is touched.
        both = known & new.is_not_null()
        merged = with_defaults(new.filter(both), old.filter(both))
        new = new.zip_with(~known | both, old).scatter(both.arg_true(), merged)
    for overlay in overlays:
        if (over := overlay.is_not_null()).any():
            put = with_all(new.filter(over), overlay.filter(over))
            new = new.scatter(over.arg_true(), put)
    return new


def _sealed(frame: pl.DataFrame, pages: FetchRecords, settings: UpdateSettings) -> pl.DataFrame:
    """Seals the validators of pages to their new entries: a parse's own, or those of the entry
    before where the fetch failed for now or found the page not modified, unless the copy is older
    than db.fetch.interval.max. All others go.
    """
    # Nothing to seal where no validators are stored.
    marked = frame["metadata"].bin.contains(validators.RAW_KEY).fill_null(False)
    if not marked.any():
        return frame
    old, new = pages.old, pages.new
    stays = frame["status"].is_in(validators.HELD) & frame["signature"].is_not_null()
    fetched = stays & (new["status"] == status.STATUS_FETCH_SUCCESS) & pages.is_parsed
    was = old["status"].is_in(validators.HELD) & old["signature"].is_not_null()
    # A failure to be retried says nothing against the copy.
    confirmed = stays & was & new["status"].is_in(_CONFIRMS) & ~pages.is_parsed
    of_parse = pl.Series([None], dtype=pl.Int64)
    entries = frame.select(
        "key",
        "metadata",
        "signature",
        "fetch_time",
        is_held=fetched | confirmed.fill_null(False),
        known_signature=old["signature"].zip_with(confirmed, frame["signature"]),
        known_time=old["fetch_time"].zip_with(confirmed, of_parse),
        oldest=new["fetch_time"] // 1000 - settings.max_interval,
    )
    sealed = resealed(entries.filter(marked))
    return frame.with_columns(metadata=frame["metadata"].scatter(marked.arg_true(), sealed))


def _without_generate_time(frame: pl.DataFrame) -> pl.DataFrame:
    """Nutch's `_ngt_`, which marks an entry as generated, does not outlive the update."""
    metadata = frame["metadata"]
    marked = metadata.bin.contains(_GENERATE_TIME).fill_null(False)
    if not marked.any():
        return frame
    cleaned = [rawmap.without(data, _GENERATE_TIME) for data in metadata.filter(marked)]
    return frame.with_columns(
        metadata=metadata.scatter(marked.arg_true(), pl.Series(cleaned, dtype=pl.Binary))
    )


# -- counting --------------------------------------------------------------------------------------


def _report_lost(updates: Updates, counters: Counters) -> None:
    """Counts rows without effect: a signature without fetch or entry, an unknown status."""
    codes = updates.segment["status"].to_numpy()
    found = np.flatnonzero(np.bincount(codes, minlength=_STATUSES)).astype(np.uint8)
    used = [status.STATUS_LINKED, status.STATUS_SIGNATURE, status.STATUS_PARSE_META]
    # Told by a count of codes, so that rows are rarely searched.
    odd = found[~np.isin(found, used) & ~is_fetch(found)]
    strange = (
        updates.segment.filter(pl.col("status").is_in(odd.tolist()))
        if len(odd)
        else updates.segment.clear()
    )
    for key, code in strange.select("key", "status").head(_REPORTED).iter_rows():
        log.warning("unknown status %d in an entry for %s", code, decode_text(key))
    lost = np.flatnonzero((updates.row < 0) & (updates.at < 0))
    if not len(lost):
        return
    counters.add(NO_FETCH_NO_OLD, len(lost))
    rows = np.searchsorted(updates.group, lost[:_REPORTED])
    for key in updates.segment["key"].gather(rows):
        log.warning("%s: %s", NO_FETCH_NO_OLD, decode_text(key))


def _count_statuses(patched: Patched, counters: Counters) -> None:
    def counted(codes: Codes) -> Ints:
        return np.bincount(codes, minlength=_STATUSES)

    before = patched.table["status"].to_numpy()
    # By difference, without a look at the entries that stay.
    replaced = before[patched.at[patched.at >= 0]]
    counts = counted(before) - counted(replaced) + counted(patched.rows["status"].to_numpy())
    for code in np.flatnonzero(counts).tolist():
        counters.add(status.status_name(code), int(counts[code]))
