"""Typed facts that `explain` finds: the one form of an answer, for people and for JSON. No I/O

Times are ms since the epoch, intervals s, delays ms, sizes bytes. Empty text and None mean that
there is none, or that nobody knows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from minutch import strictjson
from minutch.cycle.crawldb.schedule import ScheduleStep
from minutch.terminal import counted

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
_MOST_UNITS: Final = 2


@dataclass(frozen=True, slots=True)
class NormalForm:
    """The result of the normalizers in some scopes: `url` is None if they drop the URL or it is
    none (`error`).

    `changed_by` names the normalizers that changed it, with file and line of their rules where they
    say so.
    """

    scopes: tuple[str, ...]
    url: str | None
    error: str = ""
    changed_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """The answer of a URL filter, and the rule that decided: file, line and text, if known."""

    filter: str
    passed: bool
    rule: str


@dataclass(frozen=True, slots=True)
class RobotsFacts:
    """The robots.txt for the URL; `verdict` is the fetcher's: fetch, denied, delay_too_long.

    There is no verdict if no robots.txt is kept: the host is asked when the URL is fetched, and
    `note` says so. `line` (from 1) and `rule` are the line that decided; 0 if none is about the
    URL.
    """

    verdict: str | None
    note: str = ""
    url: str = ""
    code: int | None = None
    fetched: int | None = None
    expires: int | None = None
    line: int = 0
    rule: str = ""
    crawl_delay: int | None = None
    agents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The fetcher's treatment of the URL's host: queue, pauses, what keeps it from asking."""

    queue: str | None
    queue_mode: str
    protocol: str | None
    delay: int
    threads: int
    busy_until: int | None = None
    back_off: int = 0
    max_exceptions: int = -1
    addresses: tuple[str, ...] = ()
    refused_address: str = ""
    """Why the address guard refuses it."""
    max_count: int = -1
    known: str = ""
    """The HostDb's record, in words."""


@dataclass(frozen=True, slots=True)
class FetchVerdict:
    """The outcome of a fetch now, before its request: `reason` is a word, `text` a sentence."""

    asks: bool
    reason: str
    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class EntryFacts:
    """The entry in the CrawlDb. `why` gives the reason for its status."""

    status: str
    meaning: str
    why: str
    fetch_time: int
    modified_time: int | None
    fetch_interval: int
    retries: int
    max_retries: int
    score: float
    signature: str | None
    metadata: dict[str, str]


@dataclass(frozen=True, slots=True)
class DueDate:
    """The origin of the entry's date: `steps`, or a `note` why the files at hand do not tell."""

    due: int
    schedule: str
    segment: str = ""
    steps: tuple[ScheduleStep, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class RedirectHop:
    """A page that a redirect led to, and its status in the same segment."""

    url: str
    status: str


@dataclass(frozen=True, slots=True)
class SegmentVisit:
    """The records of the URL in one segment. `state` is listed (not fetched yet), fetched, skipped,
    or linked (a redirect's target).
    """

    segment: str
    state: str
    time: int | None = None
    status: str = ""
    protocol: str = ""
    reason: str = ""
    code: int | None = None
    size: int | None = None
    content_type: str = ""
    digest: str = ""
    response_ms: int | None = None
    redirects: tuple[RedirectHop, ...] = ()
    headers: dict[str, str] = field(default_factory=dict)
    parse: str = ""
    title: str = ""
    robots: str = ""
    """Robots directives of the page, a header's too; with noindex it has no title and no text."""
    outlinks: int | None = None
    in_crawldb: bool | None = None
    """True if the CrawlDb's entry comes from this visit or a later one."""


@dataclass(frozen=True, slots=True)
class ReferringLink:
    """A page that links to the URL, its anchor text, and the first segment with the link."""

    from_url: str
    anchor: str
    segment: str = ""


@dataclass(frozen=True, slots=True)
class ReferringSegment:
    """A segment with links or redirects to the URL: their number, the score they bring."""

    segment: str
    links: int
    score: float
    seen_as: str = "link"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Links that pages had and segments have not: one of them may lead to the URL."""

    pages_cut: int = 0
    """Pages with more links than were kept (db.max.outlinks.per.page)."""
    kept: int = 0
    """The most links that were kept of one of them."""
    pages_external: int = 0
    """Pages of other hosts whose links to other hosts were left out (db.ignore.external.links)."""


@dataclass(frozen=True, slots=True)
class Referrers:
    """The pages that lead to the URL: the LinkDb has `total` links, some of them are in `links`;
    `found` are the segments with links.

    `looked` is True if the segments' links were searched; `redirects` are pages that redirect to
    it.
    """

    total: int
    links: tuple[ReferringLink, ...]
    found: tuple[ReferringSegment, ...] = ()
    redirects: tuple[ReferringLink, ...] = ()
    looked: bool = True
    left_out: LeftOut = LeftOut()
    """Counted where no link was found."""


@dataclass(frozen=True, slots=True)
class Score:
    """The score, the part that comes from links in segments, the rest, the deciding filters."""

    score: float
    from_links: float
    rest: float
    filters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GenerateVerdict:
    """The decision of generate on the URL now: `reason` is its counter, `text` a sentence, `remedy`
    what would change it.

    `place` is the URL's rank among the `candidates` that are due, from 1.
    """

    taken: bool
    reason: str
    text: str
    remedy: str = ""
    place: int | None = None
    candidates: int | None = None


@dataclass(frozen=True, slots=True)
class MissingEntry:
    """The reason why a URL has no entry in the CrawlDb: `reason` is a word, `text` a sentence,
    `remedy` what would add it.
    """

    reason: str
    text: str
    remedy: str


@dataclass(frozen=True, slots=True)
class UseFacts:
    """What the site says about uses of the newest parse: the words, where they stand, to whom they
    are said (`rights` in SQL).
    """

    uses: tuple[str, ...]
    verdict: str
    mechanism: str
    statement: str
    source: str
    agent: str


@dataclass(frozen=True, slots=True)
class TwinFacts:
    """What became of a page's canonical link: the URL that it names, the page of which it is marked
    as a twin, and both in a sentence.
    """

    names: str | None
    original: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The whole answer. `url` is what was looked up: as given, or its normal form if known."""

    url: str
    given: str
    crawl: str
    now: int
    forms: tuple[NormalForm, ...]
    filters: tuple[FilterAnswer, ...]
    entry: EntryFacts | None
    unknown: MissingEntry | None
    due: DueDate | None
    generate: GenerateVerdict | None
    fetch: FetchVerdict
    robots: RobotsFacts
    host: HostFacts
    visits: tuple[SegmentVisit, ...]
    leads: Referrers
    score: Score | None
    duplicates: tuple[str, ...]
    """URLs with the same signature, the one that is kept first."""
    rights: tuple[UseFacts, ...] = ()
    twin: TwinFacts | None = None


@dataclass(frozen=True, slots=True)
class OverviewLine:
    """One answer about a whole crawl: a count, its subject (`name`: a counter, a status, a host),
    and a sentence.

    `more` is the command that shows more.
    """

    count: int
    name: str
    text: str
    more: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A property that is not at its default: its value as it may be shown, and where it is set."""

    name: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The answers about a whole crawl, by question."""

    crawl: str
    now: int
    urls: int
    segments: int
    next_due: int | None
    left: tuple[OverviewLine, ...]
    next: tuple[OverviewLine, ...]
    last: tuple[OverviewLine, ...]
    cut: tuple[OverviewLine, ...]
    slow: tuple[OverviewLine, ...]
    growing: tuple[OverviewLine, ...]
    settings: tuple[Setting, ...] = ()
    """What is set beyond defaults and profile; the profile itself, unless it is Nutch's."""


# Writes dates and time spans in words. Pure: no I/O


def iso(ms: int) -> str:
    """Returns ISO 8601 in UTC, to the millisecond; beyond the year 9999 the number of ms."""
    try:
        return (
            (_EPOCH + timedelta(milliseconds=ms))
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z")
        )
    except OverflowError:
        return str(ms)


def date(ms: int) -> str:
    """Returns a date such as `2026-11-22 18:59:32 UTC`."""
    return (
        f"{iso(ms)[:19].replace('T', ' ')} UTC" if iso(ms).endswith("Z") else f"{ms} ms after 1970"
    )


def interval(seconds: float) -> str:
    """Returns `30 days`, `1 day 12 hours`, `90 seconds`: at most two units."""
    left, words = round(abs(seconds)), []
    for size, name in _UNITS:
        count, left = divmod(left, size)
        if count:
            words.append(counted(count, f"{name}s"))
        if len(words) == _MOST_UNITS:
            break
    return " ".join(words) or "0 seconds"


def seen_from(ms: int, now: int) -> str:
    """Returns the date and its distance from now: `2026-12-22 18:59:32 UTC, in 30 days`."""
    far = interval((ms - now) / 1000)
    return f"{date(ms)}, in {far}" if ms > now else f"{date(ms)}, {far} ago"


# Writes facts as JSON: the same names, times in ISO 8601, everything else with its type. Pure: no
# I/O

TIMES: Final = frozenset(
    {
        "now",
        "time",
        "due",
        "fetch_time",
        "modified_time",
        "fetched",
        "expires",
        "busy_until",
        "next_due",
    }
)
"""Fields that hold ms since the epoch, wherever they are."""


def to_json(facts: Any) -> str:
    """Returns a dataclass as ASCII text, whatever pages have put into it."""
    return strictjson.dumps(_plain(facts), indent=2)


def _plain(value: Any, name: str = "") -> Any:
    if is_dataclass(value):
        return {
            field.name: _plain(getattr(value, field.name), field.name) for field in fields(value)
        }
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if name in TIMES and isinstance(value, int):
        return iso(value)
    return value
