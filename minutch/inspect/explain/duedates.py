"""Finds out how an entry got its date, by repeating updatedb's steps on the records of the segment
behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from minutch.cycle.crawldb.transitions import UpdateSettings
from minutch.cycle.crawldb.updatesteps import ExplainedUpdate, explain_update
from minutch.cycle.segment.store import CRAWL_FETCH, CRAWL_GENERATE, CRAWL_PARSE, Segment
from minutch.errors import FormatError
from minutch.inspect.explain.facts import DueDate, Visit
from minutch.inspect.explain.visits import FETCHED
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum


@dataclass(frozen=True, slots=True)
class EntryOrigin:
    """The segment that led to an entry, and updatedb's steps there; `pending` are segments with a
    later fetch.
    """

    segment: str
    replayed: ExplainedUpdate | None
    pending: tuple[tuple[str, ExplainedUpdate], ...] = ()
    """Segments that updatedb has not brought in yet, and what would become of the entry."""


def origin_of(
    url: str,
    entry: CrawlDatum | None,
    segments: Sequence[Segment],
    visits: Iterable[Visit],
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
