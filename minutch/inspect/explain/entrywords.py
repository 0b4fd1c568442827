"""Describes an entry of the CrawlDb in words: its status, the reason for it, its score. Pure: no
I/O"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from minutch.cycle.fetch.decisions import http_code
from minutch.hadoop.formats.javahash import float32
from minutch.inspect.explain.facts import EntryFacts, LeftOut, ReferringSegment, Score
from minutch.inspect.explain.visits import protocol_status, why
from minutch.records import crawldatum as status
from minutch.records import protocol
from minutch.records.crawldatum import CrawlDatum
from minutch.terminal import counted

MEANINGS: Final = {
    status.STATUS_DB_UNFETCHED: "known, and to be fetched",
    status.STATUS_DB_FETCHED: "fetched, and fetched again when it is due",
    status.STATUS_DB_GONE: "given up for now: it is tried again, at longer and longer intervals",
    status.STATUS_DB_REDIR_TEMP: "redirects to another page for now; asked again when it is due",
    status.STATUS_DB_REDIR_PERM: "has moved to another page; asked again when it is due",
    status.STATUS_DB_NOTMODIFIED: "fetched again and found to be the same",
    status.STATUS_DB_DUPLICATE: (
        "fetched, but its content is that of another page, which stands for both in the index"
    ),
    status.STATUS_DB_ORPHAN: (
        "no page has linked to it for long (scoring-orphan); not fetched again"
    ),
    status.STATUS_DB_PARSE_FAILED: (
        "fetched, but nothing could parse it (parser.delete.failed.parse)"
    ),
}

_FETCHED: Final = (
    status.STATUS_DB_FETCHED,
    status.STATUS_DB_NOTMODIFIED,
    status.STATUS_DB_DUPLICATE,
)
_MOVED: Final = (status.STATUS_DB_REDIR_TEMP, status.STATUS_DB_REDIR_PERM)


def entry_of(datum: CrawlDatum, max_retries: int, proxy: str = "") -> EntryFacts:
    """Describes an entry; `max_retries` is db.fetch.retry.max."""
    return EntryFacts(
        status=datum.status_name,
        meaning=MEANINGS.get(datum.status, "a status that Nutch does not know"),
        why=_why(datum, max_retries, proxy),
        fetch_time=datum.fetch_time,
        modified_time=datum.modified_time or None,
        fetch_interval=datum.fetch_interval,
        retries=datum.retries,
        max_retries=max_retries,
        score=datum.score,
        signature=datum.signature.hex() if datum.signature else None,
        metadata={str(key): str(value) for key, value in datum.metadata.items()},
    )


def _why(datum: CrawlDatum, max_retries: int, proxy: str) -> str:
    ended = protocol_status(datum)
    failure = why(datum, proxy)
    if datum.status in _MOVED:
        return (
            f"it redirects to {ended.message}"
            if ended is not None and ended.message
            else "it redirects"
        )
    if datum.status in _FETCHED:
        code = http_code(datum)
        return f"HTTP {code}" if code else ""
    if datum.status == status.STATUS_DB_GONE and datum.retries >= max_retries:
        return (
            f"{datum.retries} failures in a row (db.fetch.retry.max={max_retries}), the last:"
            f" {failure or 'unknown'}"
        )
    if datum.status == status.STATUS_DB_UNFETCHED:
        return _unfetched(datum, ended, failure)
    return (
        f"refused by {failure}"
        if ended is not None and ended.code == protocol.ROBOTS_DENIED
        else failure
    )


def _unfetched(datum: CrawlDatum, ended: protocol.ProtocolStatus | None, failure: str) -> str:
    if failure and ended is not None and ended.code == protocol.NOTFETCHING:
        return f"not asked for in the last round: {failure}"
    if datum.retries:
        times = (
            "failed once"
            if datum.retries == 1
            else f"failed {datum.retries} times in a row, the last time"
        )
        return f"{times}: {failure or 'unknown'}"
    if ended is not None and ended.is_success:
        return "fetched, but its interval is beyond db.fetch.interval.max: it counts as new"
    return failure or "never fetched"


def score_of(
    datum: CrawlDatum, found: Iterable[ReferringSegment], filters: Iterable[object]
) -> Score:
    """Returns the score, and what is known of its sources."""
    gained = 0.0
    for place in found:
        gained = float32(gained + place.score)
    names = tuple(type(each).__name__ for each in filters)
    return Score(datum.score, gained, float32(datum.score - gained), names)


def left_out_words(left_out: LeftOut) -> Iterator[str]:
    """Yields in words which links are not known."""
    if left_out.pages_cut:
        yield (
            f"{counted(left_out.pages_cut, 'pages')} had more links than the"
            f" {left_out.kept:,} that were kept (db.max.outlinks.per.page)"
        )
    if left_out.pages_external:
        yield (
            f"{counted(left_out.pages_external, 'pages')} had links to other hosts, which were left"
            " out (db.ignore.external.links)"
        )
