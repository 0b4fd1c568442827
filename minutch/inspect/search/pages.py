"""Makes the pages of `serve`: home, search, cached, anchors, history; they work without scripts.
Pure: results in, HTML out.

Whatever comes from the web is text here (`minutch.web.cells`); a stored page is only ever shown in
a frame (see `app`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from minutch.inspect.search.crawlfiles import Event, Stored
from minutch.inspect.search.results import NEWEST, Hit, Results
from minutch.inspect.search.snippets import Piece
from minutch.records.links import Inlink
from minutch.terminal import counted
from minutch.web import cells, frame
from minutch.web.cells import Column
from minutch.web.frame import Child, Markup, element, joined

PER_PAGE: Final = 10
MOST_PAGES: Final = 1000
MOST_ANCHORS: Final = 1000
_NEAR: Final = 3
"""Pages that are linked on both sides of the one that is shown."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
POLICY: Final = frame.policy("", "frame-src 'self'; form-action 'self'; frame-ancestors 'none'")

e = element


def page(title: str, *content: Child, query: str = "", host: str = "") -> str:
    """Returns a whole page: the search box, the title as heading, and what is below it."""
    box = e(
        "input",
        type="search",
        name="q",
        id="q",
        value=query,
        maxlength="1000",
        autocomplete="off",
        spellcheck="false",
        autofocus=not query,
    )
    form = e(
        "form",
        e("a", "minutch", class_="brand", href="./"),
        e("label", "Search", for_="q", class_="hidden"),
        box,
        e("input", type="hidden", name="host", value=host) if host else None,
        e("button", "Search"),
        role="search",
        action="./",
    )
    return frame.page(title, [form], [e("h1", cells.words(title)), *content])


# -- search ----------------------------------------------------------------------------------------

EXAMPLES: Final = (
    "words of a page",
    '"words in a row"',
    "title:word",
    "host:example.org",
    "date:2024",
    "-without",
)


@dataclass(frozen=True)
class Home:
    """What the first page says of a crawl."""

    crawl: str
    documents: int
    segments: int
    host_count: int
    hosts: Sequence[tuple[str, int]]
    """Those with the most documents."""
    newest: Sequence[Hit]
    has_report: bool


def home(crawl: Home) -> str:
    """Returns the page without a query."""
    last = crawl.newest[0].time(NEWEST) if crawl.newest else None
    figures = [
        ("documents", cells.count(crawl.documents)),
        ("hosts", cells.count(crawl.host_count)),
        ("segments", cells.count(crawl.segments)),
        ("newest page (UTC)", _day(last)),
    ]
    links = [e("a", "Changes between visits", href="changes")]
    links += [e("a", "Report of the crawl", href="report")] if crawl.has_report else []
    newest = [_hit(hit, "", "h3") for hit in crawl.newest]
    content = frame.section("newest", "Newest pages", e("ol", *newest, class_="hits"))
    hosts = _hosts("*", "", crawl.hosts, "Hosts") if crawl.hosts else None
    tips = e("ul", *(e("li", e("code", example)) for example in EXAMPLES), class_="tips")
    return page(
        crawl.crawl,
        frame.tiles(figures),
        frame.navigation("About this crawl", links),
        e("div", content, hosts, class_="columns") if newest else None,
        frame.section("queries", "A query can have", tips),
    )


def _day(when: datetime | None) -> Markup:
    if when is None:
        return cells.moment(None)
    clock = e("small", f"{when:%H:%M}")
    return e("time", f"{when:%Y-%m-%d}", clock, datetime=f"{when:%Y-%m-%dT%H:%M:%SZ}")


def found(query: str, host: str, number: int, results: Results, milliseconds: float) -> str:
    """Returns a page of hits; `number` counts from 1."""
    first = (number - 1) * PER_PAGE + 1
    last = first + len(results.hits) - 1
    said = f"{first:,} to {last:,} of {counted(results.count, 'pages')}, {milliseconds:.0f} ms"
    hits = e("ol", *(_hit(hit, query) for hit in results.hits), class_="hits", start=str(first))
    content = e(
        "section",
        e("p", said, class_="quiet count"),
        _notes(results),
        hits,
        _paging(query, host, number, results.count),
        aria_label="Results",
    )
    hosts = _hosts(query, host, results.hosts, "By host")
    title = f"Results for {query}" + (f" – page {number}" if number > 1 else "")
    return page(title, e("div", content, hosts, class_="columns"), query=query, host=host)


def _notes(results: Results) -> Markup:
    return joined(*(e("p", e("bdi", note)) for note in results.notes))


def nothing(query: str, host: str, results: Results, suggestions: Sequence[tuple[str, int]]) -> str:
    """Returns the page of a query that finds nothing."""
    there = f"None of the {counted(results.documents, 'documents')} has all of this"
    where = joined(" on the host ", e("bdi", host)) if host else None
    tried = [
        e("li", e("a", e("bdi", other), counted(count, "pages"), href=_search(other)))
        for other, count in suggestions
    ]
    if host:
        tried.append(e("li", e("a", "The same on all hosts", href=_search(query))))
    tried.append(e("li", e("a", "All pages, the home page", href="./")))
    return page(
        f"Nothing found for {query}",
        e(
            "section",
            e("p", there, where, ": ", e("bdi", query)),
            _notes(results),
            aria_label="Results",
        ),
        frame.section("instead", "Instead", e("ul", *tried, class_="plain")),
        query=query,
        host=host,
    )


def _hit(hit: Hit, query: str, heading: str = "h2") -> Markup:
    shown = hit.title or hit.url
    links = [
        e("a", name, e("span", f" of {shown}", class_="hidden"), href=_about(name, hit.url, query))
        for name in VIEWS
    ]
    times = (("fetched", hit.time(NEWEST)), ("modified", hit.time("lastModified")))
    facts = [e("span", said, " ", cells.moment(when)) for said, when in times if when]
    facts += [e("span", hit.kind)] if hit.kind else []
    return e(
        "li",
        e(heading, cells.address(hit.url, e("bdi", shown))),
        e("p", e("bdi", hit.url), class_="url"),
        e("p", *map(_piece, hit.snippet), class_="snippet", dir="auto") if hit.snippet else None,
        e("p", *facts, *links, class_="more"),
    )


def _piece(piece: Piece) -> Markup:
    words, is_found = piece
    return e("mark", words) if is_found else joined(words)


def _hosts(query: str, host: str, hosts: Sequence[tuple[str, int]], title: str) -> Markup | None:
    """Lists the hosts of all hits, to choose one of them."""
    if not hosts:
        return None
    items = [
        e(
            "li",
            e(
                "a",
                e("bdi", name),
                e("span", f"{count:,}", class_="number"),
                href=_search(query, name),
                aria_current="true" if name == host else None,
            ),
        )
        for name, count in hosts
    ]
    every = e("li", e("a", "All hosts", href=_search(query))) if host else None
    return frame.section("hosts", title, e("ul", every, *items, class_="plain hosts"))


def _paging(query: str, host: str, number: int, count: int) -> Markup | None:
    last = min(MOST_PAGES, -(-count // PER_PAGE))
    if last <= 1:
        return None
    near = range(max(1, number - _NEAR), min(last, number + _NEAR) + 1)
    items = []
    if number > 1:
        items.append(e("li", e("a", "Previous", href=_search(query, host, number - 1), rel="prev")))
    for one in near:
        current = "page" if one == number else None
        label = joined(e("span", "Page ", class_="hidden"), f"{one:,}")
        items.append(e("li", e("a", label, href=_search(query, host, one), aria_current=current)))
    if number < last:
        items.append(e("li", e("a", "Next", href=_search(query, host, number + 1), rel="next")))
    return e("nav", e("ul", *items), class_="paging", aria_label="Pages of results")


def _search(query: str, host: str = "", number: int = 1) -> str:
    values = (
        {"q": query}
        | ({"host": host} if host else {})
        | ({"page": str(number)} if number > 1 else {})
    )
    return f"./?{_encoded(values)}"


def _about(view: str, url: str, query: str) -> str:
    return f"{view}?{_encoded({'url': url, 'q': query})}"


def history_of(url: str) -> str:
    """Returns the address of the page that tells what has become of a URL."""
    return _about("history", url, "")


def _encoded(values: dict[str, str]) -> str:
    return urlencode(values, errors="replace")


# -- behind a hit ----------------------------------------------------------------------------------

VIEWS: Final = ("cached", "anchors", "history")


@dataclass(frozen=True)
class About:
    """The page that a view is about, and the query that led to it."""

    url: str
    title: str
    query: str


def _view(view: str, about: About, *content: Child) -> str:
    """Returns a page about one URL, with links to the others."""
    links = [
        e(
            "a",
            name.capitalize(),
            href=_about(name, about.url, about.query),
            aria_current="page" if name == view else None,
        )
        for name in VIEWS
    ]
    return page(
        about.title or about.url,
        e("p", cells.address(about.url), class_="url"),
        frame.navigation("About this page", links),
        frame.section(view, view.capitalize(), *content),
        query=about.query,
    )


def cached(about: About, stored: Stored | None) -> str:
    """Returns the page that shows the stored page in a frame."""
    if stored is None:
        return _view(
            "cached", about, e("p", "No segment of this crawl holds the content of this page.")
        )
    when = joined("Fetched ", _time(stored.fetched)) if stored.fetched is not None else "Stored"
    kind = (
        f"the text of a page of the type {stored.original_type}"
        if stored.is_text_only
        else stored.original_type
    )
    off = "Scripts, forms and links of the page are off."
    said = e("p", when, f", in segment {stored.segment}; {kind}. {off}", class_="said")
    shown = e(
        "iframe",
        src=f"raw?{_encoded({'url': about.url})}",
        sandbox="",
        title="The stored page",
        referrerpolicy="no-referrer",
        tabindex="0",
    )
    return _view("cached", about, said, shown)


def anchors(about: About, links: Sequence[Inlink]) -> str:
    """Returns the page that lists the links to a page."""
    if not links:
        return _view("anchors", about, e("p", "The crawl knows no link to this page."))
    rows = [{"anchor": link.anchor, "from": link.from_url} for link in links[:MOST_ANCHORS]]
    many = f"{counted(len(links), 'links')} to this page"
    shown = f"; the first {MOST_ANCHORS:,} are shown" if len(links) > MOST_ANCHORS else ""
    columns = [cells.text("Text", "anchor"), cells.url("From", "from")]
    table = cells.table("Links", rows, columns, stacked=True)
    return _view("anchors", about, e("p", f"{many}{shown}."), table)


def history(about: About, events: Sequence[Event]) -> str:
    """Returns the page that tells what has become of a URL, round by round."""
    if not events:
        return _view("history", about, e("p", "Neither the crawldb nor a segment knows this URL."))
    rows = [{"event": event} for event in events]
    return _view("history", about, cells.table("Records", rows, _HISTORY, stacked=True))


def _when(event: Event) -> Child:
    return joined(None if event.segment else "next ", _time(event.time))


def _what(event: Event) -> Child:
    why = joined(": ", cells.words(event.why)) if event.why else None
    code = joined(", ", cells.code(event.code)) if event.code and not why else None
    took = f" in {event.response_ms} ms" if event.response_ms and event.segment else None
    return joined(cells.status(event.status), why, code, took)


def _where(event: Event) -> str:
    return f"segment {event.segment}" if event.segment else "crawldb"


def _more(event: Event) -> Markup:
    shown: list[Child] = []
    if event.parsed:
        shown.append(cells.words(event.parsed))
    if event.modified > 0:
        shown.append(joined("last change ", _time(event.modified)))
    if event.interval:
        shown.append(f"fetched every {cells.span(event.interval)}")
    shown.append(f"score {event.score:.4g}")
    if event.listed.isascii() and event.listed.isdigit() and len(event.listed) < len("9" * 16):
        shown.append(joined("on the fetch list ", _time(int(event.listed))))
    if event.signature:
        shown.append(joined("signature ", e("bdi", event.signature)))
    shown += [cells.words(f"{key}: {value}") for key, value in event.metadata.items()]
    return cells.several(shown)


_HISTORY: Final = (
    Column("When (UTC)", lambda row: _when(row["event"])),
    Column("What", lambda row: _what(row["event"])),
    Column("Where", lambda row: _where(row["event"])),
    Column("More", lambda row: _more(row["event"])),
)


def problem(title: str, sentence: str) -> str:
    """Returns the page for an error."""
    return page(title, e("p", sentence))


def _time(ms: int) -> Markup:
    """Shows a time in UTC, or its number if calendars do not reach it."""
    try:
        return cells.moment(_EPOCH + timedelta(milliseconds=ms))
    except OverflowError:
        return joined(f"{ms} ms after 1970")
