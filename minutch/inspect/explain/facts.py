"""What `explain` finds out about a URL, as plain typed values: the answer's one shape, for people
and for JSON. No I/O

Times are ms since the epoch, intervals s, delays ms, sizes bytes. Empty text and None mean that
there is none, or that nobody knows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from minutch.cycle.crawldb.schedule import Step


@dataclass(frozen=True, slots=True)
class NormalForm:
    """What the normalizers make of the URL in some scopes: `url`, None where they drop it or it is
    no URL (`error`).

    `changed_by` names the normalizers that changed it.
    """

    scopes: tuple[str, ...]
    url: str | None
    error: str = ""
    changed_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A URL filter that was asked, and the rule that decided: its file, line and text, as far as
    the filter tells.
    """

    filter: str
    passed: bool
    rule: str


@dataclass(frozen=True, slots=True)
class Robots:
    """What is known of robots.txt for the URL; `verdict` is the fetcher's: fetch, denied,
    delay_too_long.

    Without a verdict nothing is kept of it: the host is asked when the URL is fetched, and `note`
    says so. `line` (from 1) and `rule` are the line that decided, 0 where none speaks of the URL.
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
class Host:
    """How the fetcher treats the URL's host: its queue, pauses, and what keeps it from asking at
    all.
    """

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
    """What the HostDb says."""


@dataclass(frozen=True, slots=True)
class FetchVerdict:
    """What a fetch would do with the URL now, before it sends a request: `reason` is a word, `text`
    says it all.
    """

    asks: bool
    reason: str
    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """The CrawlDb's entry. `why` says how it came to its status."""

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
    """How the entry's date came about: `steps`, or a `note` why the files at hand don't tell."""

    due: int
    schedule: str
    segment: str = ""
    steps: tuple[Step, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Hop:
    """A page that a redirect led to, and what became of it in the same segment."""

    url: str
    status: str


@dataclass(frozen=True, slots=True)
class Visit:
    """What one segment has of the URL. `state` is listed (not fetched yet), fetched, skipped, or
    linked (a target).
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
    redirects: tuple[Hop, ...] = ()
    headers: dict[str, str] = field(default_factory=dict)
    parse: str = ""
    title: str = ""
    outlinks: int | None = None
    in_crawldb: bool | None = None
    """Whether the entry of the CrawlDb is as this visit, or a later one, has left it."""


@dataclass(frozen=True, slots=True)
class Link:
    """A page that links to the URL, with which words, and the first segment that has the link."""

    from_url: str
    anchor: str
    segment: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """Where a segment's links or redirects lead to the URL: how often, and what score they bring in
    all.
    """

    segment: str
    links: int
    score: float
    seen_as: str = "link"


@dataclass(frozen=True, slots=True)
class Leads:
    """Who leads to the URL: `total` links by the LinkDb, some of them in `links`; the segments that
    found it.

    `looked` says whether the segments' links were gone through; `redirects` are pages that redirect
    to it.
    """

    total: int
    links: tuple[Link, ...]
    found: tuple[Found, ...] = ()
    redirects: tuple[Link, ...] = ()
    looked: bool = True


@dataclass(frozen=True, slots=True)
class Score:
    """The score, what links in segments brought of it, the rest, and the filters that decide."""

    score: float
    from_links: float
    rest: float
    filters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GenerateVerdict:
    """Whether generate would take the URL now: `reason` is its counter, `text` says it, `remedy`
    what changes it.

    `place` is the URL's place among the `candidates` that are due, from 1.
    """

    taken: bool
    reason: str
    text: str
    remedy: str = ""
    place: int | None = None
    candidates: int | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """Why a URL has no entry in the CrawlDb: `reason` is a word, `text` says it, `remedy` what
    would bring it in.
    """

    reason: str
    text: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """All of it. `url` is the URL that was looked up: as given, or its normal form where that one
    is known.
    """

    url: str
    given: str
    crawl: str
    now: int
    forms: tuple[NormalForm, ...]
    filters: tuple[Asked, ...]
    entry: Entry | None
    unknown: Unknown | None
    due: DueDate | None
    generate: GenerateVerdict | None
    fetch: FetchVerdict
    robots: Robots
    host: Host
    visits: tuple[Visit, ...]
    leads: Leads
    score: Score | None
    duplicates: tuple[str, ...]
    """URLs with the same signature, the one that is kept first."""


@dataclass(frozen=True, slots=True)
class Line:
    """One answer about a whole crawl: how many, of what (`name` in a word: a counter, a status, a
    host), in words.

    `more` is the command that shows more.
    """

    count: int
    name: str
    text: str
    more: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The answers for a whole crawl, by question."""

    crawl: str
    now: int
    urls: int
    segments: int
    next_due: int | None
    left: tuple[Line, ...]
    next: tuple[Line, ...]
    last: tuple[Line, ...]
    slow: tuple[Line, ...]
    growing: tuple[Line, ...]
