"""Decides whether generate would take a URL now and, if not, why, by generate's own steps on the
one entry.

    due      filters, schedule, mark of another list, expression, status, score, interval: on a
             table of one row
    select   malformed, the limits of hosts, topN: there all pages that are due compete, so the
             CrawlDb is gone through, but only where places are limited at all

`remedy` says what would have to change; it speaks of the reason that generate counts, others may
stand behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.crawldb.transitions import UpdateSettings
from minutch.cycle.crawldb.updatesteps import ExplainedUpdate, explain_update
from minutch.cycle.fetchlist import due, select
from minutch.cycle.fetchlist.selector import Selector
from minutch.cycle.segment.store import CRAWL_FETCH, CRAWL_GENERATE, CRAWL_PARSE, Segment
from minutch.errors import FormatError
from minutch.hadoop.formats.javaio import encode_text
from minutch.hadoop.formats.writables import LongWritable, Text
from minutch.inspect.explain.facts import (
    DueDate,
    FilterAnswer,
    GenerateVerdict,
    SegmentVisit,
    date,
    interval,
    seen_from,
)
from minutch.inspect.explain.visits import FETCHED
from minutch.job import Counters
from minutch.records import crawldatum as status
from minutch.records import crawldatum_columns
from minutch.records.crawldatum import CrawlDatum, status_name
from minutch.records.metadata import GENERATE_TIME_KEY
from minutch.terminal import counted
from minutch.urls.parts import host_of
from minutch.urls.patterns import DOUBTS

TAKEN: Final = select.SELECTED
_MS_PER_DAY: Final = 86_400_000
_GENERATED: Final = Text(GENERATE_TIME_KEY)


@dataclass(frozen=True, slots=True)
class Classified:
    """Entries by what generate does with them: `left` by reason, and the codes of those that are
    due.

    `due` are the tables of all that compete; `codes` has a segment's number (from 1) or why there
    is no place (`select.WHY`) for each of their rows.
    """

    left: dict[str, pl.DataFrame]
    due: list[pl.DataFrame]
    codes: NDArray[np.int64]

    def reasons(self) -> dict[bytes, str]:
        """Returns each entry's key with the name of the counter that counts it in generate."""
        found = {key: reason for reason, table in self.left.items() for key in table["key"]}
        keys = pl.concat([table["key"] for table in self.due])
        found |= {
            key: select.WHY.get(code, TAKEN)
            for key, code in zip(keys, self.codes.tolist(), strict=True)
        }
        return found


def classify(frame: pl.DataFrame, selector: Selector, db: CrawlDb | None = None) -> Classified:
    """Classifies the entries of `frame`: alone, or among all entries of `db`."""
    mine = selector.due_in(frame, with_others=True)
    if mine.entries.is_empty():
        return Classified(mine.left_out, [mine.entries], np.zeros(0, np.int64))
    everyone = [mine] if db is None else selector.find_due(db)
    tables = [found.entries for found in everyone]
    return Classified(
        mine.left_out, tables, selector.selection(tables).segments_of(tables, Counters())
    )


def generate_verdict(
    url: str, datum: CrawlDatum, selector: Selector, db: CrawlDb, filters: Sequence[FilterAnswer]
) -> GenerateVerdict:
    """Decides what generate would do with a URL's entry. `filters` are the filters' answers."""
    selector.survey(db)
    found = classify(
        crawldatum_columns.to_frame([(url, datum)]), selector, db if selector.is_limited else None
    )
    if found.left:
        ((reason, left),) = found.left.items()
        return _WORDS[reason](_Case(url, datum, selector, filters, left))
    return _among(url, found, selector)


def _among(url: str, found: Classified, selector: Selector) -> GenerateVerdict:
    """Decides if an entry that is due gets a place among all that are."""
    table = pl.concat([table.select("key", "sort") for table in found.due])
    at = (table["key"].is_in([encode_text(url)])).arg_true()
    if not len(at):
        return GenerateVerdict(False, due.NOT_DUE, "the CrawlDb has changed meanwhile", "ask again")
    ranks = np.concatenate([select.ranks_in(one) for one in found.due])
    place = int(np.count_nonzero(ranks < ranks[at[0]])) + 1
    code, value = int(found.codes[at[0]]), float(table["sort"][int(at[0])])
    if code <= select.NO_PLACE:
        return _NO_PLACE[code](url, value, place, len(table), selector)
    text = f"it is due, and there is no limit (sort value {value:g})"
    if selector.is_limited:
        text = (
            f"it is due, and gets a place (number {place:,} of {len(table):,} by its sort value"
            f" {value:g})"
        )
    return GenerateVerdict(True, TAKEN, text, place=place, candidates=len(table))


@dataclass(frozen=True, slots=True)
class _Case:
    """An entry that is left out, as it is in the CrawlDb, and the row that was left out."""

    url: str
    datum: CrawlDatum
    selector: Selector
    filters: Sequence[FilterAnswer]
    left: pl.DataFrame

    @property
    def now(self) -> int:
        return self.selector.conditions.now


def _filtered(case: _Case) -> GenerateVerdict:
    rule = next((asked for asked in case.filters if not asked.passed), None)
    by = (
        "the URL filters reject it"
        if rule is None
        else f"{rule.filter} rejects it: {rule.rule or 'no rule is named'}"
    )
    return GenerateVerdict(
        False, due.FILTERED, by, "change that rule, or generate with -noFilter (`crawl` does)"
    )


def _not_due(case: _Case) -> GenerateVerdict:
    when = int(case.left["fetch_time"][0])
    days = -(-(when - case.now) // _MS_PER_DAY)
    text = f"it is not due before {seen_from(when, case.selector.now)}"
    more = case.selector.options.add_days + days
    return GenerateVerdict(False, due.NOT_DUE, text, f"wait, or generate with -adddays {more}")


def _waiting(case: _Case) -> GenerateVerdict:
    mark = case.datum.metadata.get(_GENERATED)
    generated = mark.value if isinstance(mark, LongWritable) else 0
    until = due.awaited_until(generated, case.selector.conditions)
    text = (
        f"it is in the fetch list of {date(generated)}, whose results are awaited until"
        f" {date(until)} (crawl.gen.delay)"
    )
    return GenerateVerdict(
        False, due.WAITING, text, "fetch that segment and run updatedb with it, or wait"
    )


def _expression(case: _Case) -> GenerateVerdict:
    values = case.datum.variables(case.url)
    shown = ", ".join(
        f"{name}={values[name]!r}" for name in ("status", "score", "interval", "retries")
    )
    text = f"the expression {case.selector.options.expression} is not true for it ({shown})"
    return GenerateVerdict(False, due.EXPRESSION, text, "generate with another -expr, or without")


def _status(case: _Case) -> GenerateVerdict:
    wanted = status_name(case.selector.conditions.status)
    text = f"it is {case.datum.status_name}, and generate.restrict.status wants {wanted}"
    return GenerateVerdict(False, due.STATUS, text, "clear generate.restrict.status")


def _low_score(case: _Case) -> GenerateVerdict:
    value, least = float(case.left["sort"][0]), case.selector.conditions.min_score
    text = f"its sort value {value:g} is below generate.min.score={least:g}"
    return GenerateVerdict(
        False, due.LOW_SCORE, text, "more links to it, or a lower generate.min.score"
    )


def _interval(case: _Case) -> GenerateVerdict:
    most = case.selector.conditions.min_interval
    text = (
        f"its fetch interval ({interval(case.datum.fetch_interval)}) is above"
        f" generate.min.interval={most}"
    )
    return GenerateVerdict(
        False, due.INTERVAL, text, "a shorter interval, or -1 for generate.min.interval"
    )


def _pattern(case: _Case) -> GenerateVerdict:
    patterns = case.selector.conditions.patterns
    assert patterns is not None, "nothing else leaves out entries for this reason"
    name, doubt, is_suspect, counts = patterns.group_of(case.url)
    given = f"{counts['new']:,} new pages of {counted(counts['asked'], 'requests')}"
    shared = ", shared with others like it on the host" if counts["shared"] else ""
    what = f"the pattern {name}"
    if doubt:
        what = f"what names call {doubt} on {name}, little of which is new elsewhere ({DOUBTS}),"
    if is_suspect:
        what += (
            ", as far as only repeats lead there, codes alone tell it from what was asked for, or"
            " little is known of its parameters' names,"
        )
    text = (
        f"{what} has given {given}, and finds {counts['growth']:.1f} more by request:"
        f" {counts['allowed']:,} a round{shared}; {counts['waiting']:,} wait"
        " (generate.pattern.budget)"
    )
    return GenerateVerdict(
        False, due.PATTERN, text, "more rounds, or a higher generate.pattern.budget; -1: no limit"
    )


_WORDS: Final[dict[str, Callable[[_Case], GenerateVerdict]]] = {
    due.FILTERED: _filtered,
    due.NOT_DUE: _not_due,
    due.WAITING: _waiting,
    due.EXPRESSION: _expression,
    due.STATUS: _status,
    due.LOW_SCORE: _low_score,
    due.INTERVAL: _interval,
    due.PATTERN: _pattern,
}


def _malformed(
    url: str, value: float, place: int, total: int, selector: Selector
) -> GenerateVerdict:
    text = (
        "it is due, but what the normalizers of generate_host_count make of it is no URL with a"
        " host"
    )
    return GenerateVerdict(
        False, select.MALFORMED, text, "mend the URL or the normalizers' rules", place, total
    )


def _over_limit(
    url: str, value: float, place: int, total: int, selector: Selector
) -> GenerateVerdict:
    text = (
        f"it is due, but better pages of its host take all places that {host_of(url)} has"
        " (generate.max.count)"
    )
    remedy = "more rounds, a higher generate.max.count, or -maxNumSegments"
    return GenerateVerdict(False, select.OVER_LIMIT, text, remedy, place, total)


def _beyond(url: str, value: float, place: int, total: int, selector: Selector) -> GenerateVerdict:
    most = selector.options.top_n * selector.options.max_segments
    text = (
        f"it is due, but number {place:,} of {total:,} by its sort value {value:g}; there are"
        f" {most:,} places (-topN)"
    )
    return GenerateVerdict(
        False, select.NOT_IN_TOP, text, f"more rounds, or -topN {place}", place, total
    )


_NO_PLACE: Final[dict[int, Callable[[str, float, int, int, Selector], GenerateVerdict]]] = {
    select.IS_MALFORMED: _malformed,
    select.IS_OVER_LIMIT: _over_limit,
    select.NO_PLACE: _beyond,
}


# Finds out how an entry got its date, by repeating updatedb's steps on the records of the segment
# behind it.


@dataclass(frozen=True, slots=True)
class EntryOrigin:
    """The segment that led to an entry, updatedb's steps, and `pending` segments fetched later."""

    segment: str
    replayed: ExplainedUpdate | None
    pending: tuple[tuple[str, ExplainedUpdate], ...] = ()
    """Segments that updatedb has not brought in yet, and what would become of the entry."""


def origin_of(
    url: str,
    entry: CrawlDatum | None,
    segments: Sequence[Segment],
    visits: Iterable[SegmentVisit],
    settings: UpdateSettings,
    now: int,
) -> EntryOrigin:
    """Finds the segment that the entry comes from, beginning with the latest one."""
    visited = {visit.segment for visit in visits if visit.state == FETCHED}
    pending: list[tuple[str, ExplainedUpdate]] = []
    mine = [segment for segment in segments if segment.name in visited]
    for place in reversed(range(len(mine))):
        segment = mine[place]
        replayed = replay_last(url, mine[: place + 1], settings, now)
        if replayed is None:
            continue
        if entry is not None and replayed.led_to(entry):
            return EntryOrigin(segment.name, replayed, tuple(reversed(pending)))
        pending.append((segment.name, replayed))
    return EntryOrigin(
        "", None, () if entry is not None and _was_fetched(entry) else tuple(reversed(pending))
    )


def replay_last(
    url: str, segments: Sequence[Segment], settings: UpdateSettings, now: int
) -> ExplainedUpdate | None:
    """Repeats what updatedb does with the last segment's records of a URL and the entry in its
    fetch list.

    A redirect's target need not be in the list: then the entry is what the earlier segments made of
    it.
    """
    *earlier, segment = segments
    before = next(iter(_data(segment, CRAWL_GENERATE, url)), None)
    if before is None and earlier:
        replayed = replay_last(url, earlier, settings, now)
        before = None if replayed is None else replayed.entry
    found = [*_data(segment, CRAWL_FETCH, url), *_data(segment, CRAWL_PARSE, url)]
    try:
        return explain_update(url, before, found, settings, now) if found else None
    except FormatError:
        return None  # a status that no Nutch writes: updatedb says so


def _data(segment: Segment, folder: str, url: str) -> Iterator[CrawlDatum]:
    for datum in segment.get(folder, url) if segment.has(folder) else ():
        if isinstance(datum, CrawlDatum):
            yield datum


def _was_fetched(entry: CrawlDatum) -> bool:
    """Returns True if the entry has been through a fetch, as far as it tells."""
    return entry.status != status.STATUS_DB_UNFETCHED or entry.retries > 0


def due_date(entry: CrawlDatum, origin: EntryOrigin, settings: UpdateSettings) -> DueDate:
    """Describes how the entry got its date."""
    schedule = type(settings.schedule).__name__
    if origin.replayed is not None:
        return DueDate(entry.fetch_time, schedule, origin.segment, origin.replayed.steps)
    if _was_fetched(entry):
        note = (
            "no segment at hand led to this date: it is gone, or updatedb ran with other settings,"
            " or by hand"
        )
        return DueDate(entry.fetch_time, schedule, note=note)
    return DueDate(
        entry.fetch_time,
        schedule,
        note="due from the time when it was injected, or found by a link",
    )
