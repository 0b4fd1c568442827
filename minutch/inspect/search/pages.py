"""Makes the pages of `serve`: search, cached, anchors, history; they work without scripts. Pure:
results in, HTML out.

Whatever comes from the web is text here, with a direction of its own (`bdi`); a stored page is only
ever shown in a frame (see `app`). Only http, https and ftp become links.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlencode, urlsplit

from minutch.inspect.search.crawlfiles import Event, Stored
from minutch.inspect.search.results import Hit, Piece, Results
from minutch.records.links import Inlink
from minutch.terminal import counted
from minutch.web.htmlbuilder import Child, Markup, element, joined

PER_PAGE: Final = 10
MOST_PAGES: Final = 1000
MOST_ANCHORS: Final = 1000
_NEAR: Final = 3
"""Pages that are linked on both sides of the one that is shown."""
SCHEMES: Final = frozenset(("http", "https", "ftp"))
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

e = element


def page(title: str, *content: Child, query: str = "", host: str = "") -> str:
    """Returns a whole page: the search box, and what is below it."""
    head = e(
        "head",
        e("meta", charset="utf-8"),
        e("title", title),
        e("meta", name="viewport", content="width=device-width, initial-scale=1"),
        e("meta", name="color-scheme", content="light dark"),
        e("link", rel="stylesheet", href="style.css"),
        e("link", rel="icon", href="data:,"),
    )
    skip = e("a", "Skip to content", class_="skip", href="#content")
    body = e("body", skip, _header(query, host), e("main", *content, id="content", tabindex="-1"))
    return f"<!DOCTYPE html>\n{e('html', head, body, lang='en')}\n"


def _header(query: str, host: str) -> Markup:
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
    kept = e("input", type="hidden", name="host", value=host) if host else None
    form = e(
        "form",
        e("label", "Search", for_="q"),
        box,
        kept,
        e("button", "Search"),
        role="search",
        action="./",
    )
    return e("header", e("a", "minutch", class_="brand", href="./"), form)


# -- search ----------------------------------------------------------------------------------------


def start(documents: int) -> str:
    """Returns the page without a query."""
    examples = (
        "words of a page",
        '"words in a row"',
        "title:word",
        "host:example.org",
        "date:2024",
        "-without",
    )
    tips = e("ul", *(e("li", e("code", example)) for example in examples), class_="tips")
    return page(
        "Search",
        e("h1", "Search"),
        e("p", f"{counted(documents, 'documents')}. A query can have:"),
        tips,
    )


def found(query: str, host: str, number: int, results: Results, milliseconds: float) -> str:
    """Returns a page of hits; `number` counts from 1."""
    if not results.hits:
        return page(
            f"{query} – nothing found",
            e("h1", "Nothing found"),
            *_nothing(query, host),
            query=query,
            host=host,
        )
    first = (number - 1) * PER_PAGE + 1
    last = first + len(results.hits) - 1
    said = f"{first:,} to {last:,} of {counted(results.count, 'pages')}, {milliseconds:.0f} ms"
    hits = e("ol", *(_hit(hit, query) for hit in results.hits), class_="hits", start=str(first))
    content = e(
        "div", e("p", said, class_="count"), hits, _paging(query, host, number, results.count)
    )
    facet = _hosts(query, host, results.hosts)
    heading = e("h1", "Results for ", e("bdi", query), class_="quiet")
    return page(
        f"{query} – page {number}",
        heading,
        e("div", content, facet, class_="columns"),
        query=query,
        host=host,
    )


def _nothing(query: str, host: str) -> list[Markup]:
    lines = [e("p", "No page has all of this: ", e("bdi", query))]
    if host:
        lines.append(e("p", e("a", "Search on all hosts", href=_search(query))))
    return lines


def _hit(hit: Hit, query: str) -> Markup:
    shown = hit.title or hit.url
    more = e(
        "p",
        *(
            e(
                "a",
                name,
                e("span", f" of {shown}", class_="hidden"),
                href=_about(name, hit.url, query),
            )
            for name in VIEWS
        ),
        class_="more",
    )
    snippet = e("p", *map(_piece, hit.snippet), class_="snippet", dir="auto")
    heading = e("h2", _link(hit.url, e("bdi", shown)))
    return e("li", heading, e("p", e("bdi", hit.url), class_="url"), snippet, more)


def _piece(piece: Piece) -> Markup:
    words, is_found = piece
    return e("mark", words) if is_found else joined(words)


def _hosts(query: str, host: str, hosts: Sequence[tuple[str, int]]) -> Markup | None:
    """Lists the hosts of all hits, to choose one of them."""
    if not hosts:
        return None
    items = [
        e("li", e("a", "All hosts", href=_search(query), aria_current=None if host else "true"))
    ]
    for name, count in hosts:
        current = "true" if name == host else None
        label = joined(e("bdi", name), " ", e("span", f"{count:,}", class_="number"))
        items.append(e("li", e("a", label, href=_search(query, name), aria_current=current)))
    return e("nav", e("h2", "Hosts"), e("ul", *items), class_="hosts", aria_label="Hosts")


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


def _encoded(values: dict[str, str]) -> str:
    return urlencode(values, errors="replace")


def _link(url: str, label: Child, **attributes: str) -> Markup:
    """Makes a link to another site; a text that is no address of the web stays text."""
    try:
        scheme = urlsplit(url).scheme.lower()
    except ValueError:
        scheme = ""
    if scheme not in SCHEMES:
        return joined(label)
    return e("a", label, href=url, rel="noopener noreferrer nofollow", **attributes)


# -- behind a hit ----------------------------------------------------------------------------------

VIEWS: Final = ("cached", "anchors", "history")


def _view(view: str, url: str, query: str, *content: Child) -> str:
    """Returns a page about one URL, with links to the others."""
    items = [
        e(
            "li",
            e(
                "a",
                name,
                href=_about(name, url, query),
                aria_current="page" if name == view else None,
            ),
        )
        for name in VIEWS
    ]
    tabs = e("nav", e("ul", *items), class_="views", aria_label="About this page")
    address = e("p", _link(url, e("bdi", url)), class_="url")
    return page(
        f"{view.capitalize()}: {url}",
        e("h1", view.capitalize()),
        address,
        tabs,
        *content,
        query=query,
    )


def cached(url: str, query: str, stored: Stored | None) -> str:
    """Returns the page that shows the stored page in a frame."""
    if stored is None:
        return _view(
            "cached", url, query, e("p", "No segment of this crawl holds the content of this page.")
        )
    when = joined("Fetched ", _time(stored.fetched)) if stored.fetched is not None else "Stored"
    kind = (
        f"the text of a page of the type {stored.original_type}"
        if stored.is_text_only
        else stored.original_type
    )
    off = "Scripts, forms and links of the page are off."
    said = e("p", when, f", in segment {stored.segment}; {kind}. {off}")
    source = f"raw?{_encoded({'url': url})}"
    frame = e(
        "iframe",
        src=source,
        sandbox="",
        title="The stored page",
        referrerpolicy="no-referrer",
        tabindex="0",
    )
    return _view("cached", url, query, said, frame)


def anchors(url: str, query: str, links: Sequence[Inlink]) -> str:
    """Returns the page that lists the links to a page."""
    if not links:
        return _view("anchors", url, query, e("p", "The crawl knows no link to this page."))
    rows = [
        e(
            "tr",
            e("td", e("bdi", link.anchor or "–")),
            e("td", _link(link.from_url, e("bdi", link.from_url))),
        )
        for link in links[:MOST_ANCHORS]
    ]
    count = f"{counted(len(links), 'links')} to this page"
    shown = f"; the first {MOST_ANCHORS:,} are shown" if len(links) > MOST_ANCHORS else ""
    return _view(
        "anchors", url, query, e("p", f"{count}{shown}."), _table("Links", ("Text", "From"), rows)
    )


def history(url: str, query: str, events: Sequence[Event]) -> str:
    """Returns the page that lists the records of a URL."""
    if not events:
        return _view(
            "history", url, query, e("p", "Neither the crawldb nor a segment knows this URL.")
        )
    return _view(
        "history",
        url,
        query,
        _table("Records", _COLUMNS, [_event(event) for event in events], "records"),
    )


_COLUMNS: Final = (
    "Where",
    "Status",
    "Time",
    "Modified",
    "Score",
    "Signature",
    "Interval",
    "Parse",
    "More",
)


def _event(event: Event) -> Markup:
    is_db = event.where == "crawldb"
    more = [e("li", e("bdi", f"{key}: {value}")) for key, value in event.metadata.items()]
    cells = (
        event.where if is_db else f"segment {event.where}",
        event.status,
        joined("next ", _time(event.time)) if is_db else _time(event.time),
        _time(event.modified) if event.modified > 0 else "–",
        f"{event.score:g}",
        e("code", event.signature) if event.signature else "–",
        _duration(event.interval),
        e("bdi", event.parsed) if event.parsed else "–",
        e("ul", *more) if more else "–",
    )
    return e("tr", e("th", cells[0], scope="row"), *(e("td", cell) for cell in cells[1:]))


def _table(
    name: str, columns: Sequence[str], rows: Sequence[Markup], kind: str | None = None
) -> Markup:
    head = e("thead", e("tr", *(e("th", column, scope="col") for column in columns)))
    table = e("table", e("caption", name, class_="hidden"), head, e("tbody", *rows), class_=kind)
    return e("div", table, class_="wide", tabindex="0", role="region", aria_label=name)


def problem(title: str, sentence: str) -> str:
    """Returns the page for an error."""
    return page(title, e("h1", title), e("p", sentence))


def _time(ms: int) -> Markup:
    """Shows a time in UTC, or its number if calendars do not reach it."""
    try:
        found = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return joined(f"{ms} ms")
    day, clock = f"{found:%Y-%m-%d}", f"{found:%H:%M:%S}"
    return e("time", e("span", day), " ", e("span", clock), " UTC", datetime=f"{day}T{clock}Z")


def _duration(seconds: int) -> str:
    """Shows a fetch interval."""
    days, rest = divmod(seconds, 86400)
    return (
        f"{days:,} day{'' if days == 1 else 's'}"
        if days and not rest
        else str(timedelta(seconds=seconds))
    )
