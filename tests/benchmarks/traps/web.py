"""A web of traps and of honest sites, each a host; a page is a function of its URL.

A site answers a path with a query. `Page.content` says what a reader would call the same page: a
request is well spent if it is the first that has honest content. Trap pages have none.

    catalogue  forum  wiki  languages  blog  plain     sites that end, with all kinds of queries
    calendar  facets  session  sessions  relative  soft*  maze  tarpit  noise  mirror*    traps
                                                       beside some honest pages each

Numbers are drawn from the hash of the URL: the same web everywhere, whatever is asked for first.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

_WORDS: Final = re.findall(
    r"\w+",
    "amber basin cedar delta ember fable grove haven inlet jetty kiosk ledge maple north ocean"
    " plume quarry ridge stone thorn upper vivid wharf xenon yield zebra acorn birch cloud dune",
)


@dataclass(frozen=True)
class Page:
    """An answer."""

    text: str = ""
    links: tuple[str, ...] = ()
    content: str | None = None
    """The name of honest content."""
    location: str = ""
    """The target of a redirect."""
    canonical: str = ""
    status: int = 200


NOT_FOUND: Final = Page("Not found", status=404)
Site = Callable[[str, dict[str, str]], Page]


def text_of(seed: str, count: int) -> str:
    return " ".join(random.Random(seed).choices(_WORDS, k=count))


def honest_page(site: str, name: str, *links: str, canonical: str = "") -> Page:
    return Page(text_of(f"{site} {name}", 60), links, f"{site} {name}", canonical=canonical)


def some_of(seed: str, most: int, count: int) -> list[int]:
    """Returns numbers below `most`, small ones more often."""
    draw = random.Random(seed)
    return [int(most * draw.random() ** 2) for _ in range(count)]


def number_in(path: str, pattern: str, most: int) -> int | None:
    found = re.fullmatch(pattern, path)
    number = int(found[1]) if found else most
    return number if number < most else None


# -- honest sites ----------------------------------------------------------------------------------


def catalogue(size: int) -> Site:
    """Lists of 20 items each; items link to others."""

    def site(path: str, query: dict[str, str]) -> Page:
        if path == "/":
            return honest_page("catalogue", "home", "/list?page=1")
        number = int(query.get("page", query.get("id", "0")))
        if path == "/list" and 1 <= number <= size // 20:
            items = [f"/item?id={(number - 1) * 20 + at}" for at in range(20)]
            pages = [
                f"/list?page={other}"
                for other in (number - 1, number + 1)
                if 1 <= other <= size // 20
            ]
            return honest_page("catalogue", f"list {number}", *items, *pages, "/")
        if path == "/item" and number < size:
            return honest_page(
                "catalogue",
                f"item {number}",
                "/",
                *(f"/item?id={n}" for n in some_of(f"i{number}", size, 3)),
            )
        return NOT_FOUND

    return site


def forum(size: int) -> Site:
    """Boards, whose pages list threads; long threads have pages."""
    boards = 8

    def site(path: str, query: dict[str, str]) -> Page:
        page = int(query.get("page", "1"))
        if path == "/":
            return honest_page("forum", "home", *(f"/board/{board}" for board in range(boards)))
        board = number_in(path, r"/board/(\d+)", boards)
        if board is not None and (page - 1) * 10 < size // boards:
            threads = range((page - 1) * 10, min(page * 10, size // boards))
            more = [f"/board/{board}?page={page + 1}"] if page * 10 < size // boards else []
            links = [f"/thread/{board * (size // boards) + at}-{_WORDS[at % 30]}" for at in threads]
            return honest_page("forum", f"board {board} {page}", "/", *links, *more)
        thread = number_in(path, r"/thread/(\d+)-\w+", size)
        if thread is not None and page <= 1 + thread % 3:
            more = [f"{path}?page={page + 1}"] if page <= thread % 3 else []
            return honest_page("forum", f"thread {thread} {page}", "/", *more)
        return NOT_FOUND

    return site


def wiki(size: int) -> Site:
    """Articles with twelve links each; histories with three old versions each."""

    def name(number: int) -> str:
        return f"{_WORDS[number % 30].title()}_{_WORDS[number // 30 % 30]}_{number // 900}"

    numbers = {name(number): number for number in range(size)}

    def site(path: str, query: dict[str, str]) -> Page:
        if path == "/":
            return honest_page("wiki", "home", "/wiki/Amber_amber_0")
        number = numbers.get(path.removeprefix("/wiki/"))
        if number is not None:
            links = [
                f"/wiki/{name(n)}" for n in [*some_of(f"w{number}", size, 11), (number + 1) % size]
            ]
            return honest_page(
                "wiki", f"page {number}", *links, f"/w?title={name(number)}&action=history"
            )
        title = numbers.get(query.get("title", ""))
        if path == "/w" and title is not None:
            if query.get("action") == "history":
                old = [f"/w?title={name(title)}&oldid={4 * title + at}" for at in range(3)]
                return honest_page("wiki", f"history {title}", *old)
            return honest_page("wiki", f"old {query.get('oldid')}", f"/wiki/{name(title)}")
        return NOT_FOUND

    return site


def languages(size: int) -> Site:
    """The same pages in four languages, which link to each other."""
    tongues = ("en", "de", "fr", "el")

    def site(path: str, query: dict[str, str]) -> Page:
        if path == "/":
            return honest_page("languages", "home", *(f"/{tongue}/0" for tongue in tongues))
        found = re.fullmatch(r"/(en|de|fr|el)/(\d+)", path)
        if found and (number := int(found[2])) < size // 4:
            next_ones = [
                f"/{found[1]}/{n}" for n in (2 * number + 1, 2 * number + 2) if n < size // 4
            ]
            return honest_page(
                "languages", path, *(f"/{tongue}/{number}" for tongue in tongues), *next_ones
            )
        return NOT_FOUND

    return site


def blog(size: int) -> Site:
    """Posts with slugs under their month; the home page and archives by month list them."""

    def month(number: int) -> str:
        return f"/{2010 + number // 96}/{number // 8 % 12 + 1:02}/"

    def slug(number: int) -> str:
        return month(number) + "-".join(text_of(f"slug {number}", 3).split()) + f"-{number}"

    def site(path: str, query: dict[str, str]) -> Page:
        if path == "/":
            return honest_page("blog", "home", *(month(at) for at in range(0, size, 8)))
        at = next((n for n in range(0, size, 8) if month(n) == path), None)
        if at is not None:
            return honest_page("blog", path, *(slug(n) for n in range(at, min(at + 8, size))))
        number = number_in(path, r".*-(\d+)", size)
        return (
            honest_page("blog", f"post {number}", "/")
            if number is not None and path == slug(number)
            else NOT_FOUND
        )

    return site


def plain(size: int, name: str) -> Site:
    """Pages in many folders: a tree."""

    def path_of(number: int) -> str:
        parts = []
        while number:
            parts.append(_WORDS[number % 30])
            number = (number - 1) // 5
        return "/" + "/".join(reversed(parts))

    paths = {path_of(number): number for number in range(size)}

    def site(path: str, query: dict[str, str]) -> Page:
        number = None if query else paths.get(path)
        if number is None:
            return NOT_FOUND
        links = [path_of(n) for n in range(5 * number + 1, min(5 * number + 6, size))]
        return honest_page(name, path, *links, "/")

    return site


# -- traps, beside a plain site --------------------------------------------------------------------


def beside_pages(honest: Site, entry: str, trap: Site) -> Site:
    """A site whose pages link to a trap, which answers all that is not its own."""

    def site(path: str, query: dict[str, str]) -> Page:
        page = honest(path, query)
        if page.status != 200:
            return trap(path, query)
        return Page(page.text, (*page.links, entry), page.content)

    return site


def beside(name: str, size: int, entry: str, trap: Site) -> Site:
    """A plain site beside a trap."""
    return beside_pages(plain(size, name), entry, trap)


def calendar(path: str, query: dict[str, str]) -> Page:
    """Months for ever, whose days are pages, too."""
    if path == "/day":
        return Page(f"No events on {query.get('date')}", ("/",))
    if path != "/calendar":
        return NOT_FOUND
    year, month = int(query.get("year", "2024")), int(query.get("month", "1"))
    months = [
        (year + (month + step - 1) // 12, (month + step - 1) % 12 + 1) for step in (-12, -1, 1, 12)
    ]
    days = [f"/day?date={year}-{month:02}-{day:02}" for day in range(1, 29)]
    links = [f"/calendar?year={y}&month={m}" for y, m in months]
    return Page(f"Events in {month} {year}: none", (*links, *days))


_FACETS: Final = {
    "color": ("red", "blue", "green"),
    "size": ("s", "m", "l"),
    "brand": ("a", "b", "c"),
    "price": ("10", "50", "90"),
    "sort": ("up", "down", "new"),
    "view": ("list", "grid", "table"),
}


def facets(path: str, query: dict[str, str]) -> Page:
    """A search by any of six parameters, whose order and view don't change what is found."""
    if path != "/search" or not set(query) <= set(_FACETS):
        return NOT_FOUND
    links = []
    for name, values in _FACETS.items():
        for value in values:
            chosen = {**query, name: value}
            links.append("/search?" + "&".join(f"{key}={chosen[key]}" for key in chosen))
    found = sorted((key, value) for key, value in query.items() if key not in ("sort", "view"))
    seed = str(found[:2])  # few products: most further filters find nothing else
    return Page("Found " + text_of(seed, 30), tuple(links))


def _session(path: str, salt: str) -> str:
    return f"{random.Random(path + salt).getrandbits(128):032x}"


def sessions_in_path(size: int) -> Site:
    """Each page's links have a session of their own in the path."""

    def site(path: str, query: dict[str, str]) -> Page:
        sid = _session(path, "path")
        if path == "/":
            return honest_page("session", "home", f"/s/{sid}/page/0")
        number = number_in(path, r"/s/[0-9a-f]{32}/page/(\d+)", size)
        if number is None:
            return NOT_FOUND
        links = [f"/s/{sid}/page/{n % size}" for n in (number + 1, 2 * number, 3 * number + 1)]
        return honest_page("session", f"page {number}", *links)

    return site


def sessions_in_query(size: int) -> Site:
    """Each page's links have a session of their own in the query."""

    def site(path: str, query: dict[str, str]) -> Page:
        sid = _session(path + query.get("sid", ""), "query")
        number = 0 if path == "/" else number_in(path, r"/page/(\d+)", size)
        if number is None:
            return NOT_FOUND
        links = [f"/page/{n % size}?sid={sid}" for n in (number + 1, 2 * number, 3 * number + 1)]
        return honest_page("sessions", f"page {number}", *links)

    return site


def relative(path: str, query: dict[str, str]) -> Page:
    """Relative links that lead ever deeper into five pages."""
    if not path.startswith("/docs/"):
        return NOT_FOUND
    last = path.rstrip("/").rpartition("/")[2]
    base = path if path.endswith("/") else path + "/"
    return Page(
        f"Chapter {last}",
        tuple(f"{base}{name}/" for name in ("intro", "usage", "notes", "api", "faq")),
    )


def soft404(kind: str) -> Site:
    """200 for what is not there: always the same text, with the address in it, a search's
    suggestions, a redirect home, or one to an error page.
    """

    def site(path: str, query: dict[str, str]) -> Page:
        if path == "/error":
            return Page("Sorry, there is nothing here.", ("/",))
        dead = tuple(
            f"/{text_of(f'{path}{kind}{n}', 2).replace(' ', '-')}-{n}.html" for n in range(6)
        )
        if kind == "same":
            return Page("Sorry, this page was not found.", dead)
        if kind == "echo":
            return Page(f"Sorry, {path} was not found.", dead)
        if kind == "suggestions":
            return Page("Perhaps you look for: " + text_of(path, 12), dead)
        return Page(location="/" if kind == "home" else "/error", status=302)

    return site


def maze(path: str, query: dict[str, str]) -> Page:
    """Random text, and links deeper into it, in a folder of its own."""
    if not path.startswith("/maze/"):
        return NOT_FOUND
    names = (text_of(f"{path} {n}", 3).split() for n in range(8))
    return Page(
        text_of(path, 80), tuple(f"/maze/{a}/{b}/{c}{n}" for n, (a, b, c) in enumerate(names))
    )


def tarpit(path: str, query: dict[str, str]) -> Page:
    """Random text at random paths of the host."""
    draw = random.Random(path)
    names = (draw.choices(_WORDS, k=draw.randint(3, 5)) for _ in range(8))
    return Page(
        text_of(path, 80), tuple(f"/{'/'.join(name)}-{draw.choice(_WORDS)}" for name in names)
    )


def noise(path: str, query: dict[str, str]) -> Page:
    """Random text behind a code in the query."""
    code = query.get("t", "")
    codes = (f"{random.Random(f'{code} {n}').getrandbits(64):016x}" for n in range(8))
    links = tuple(f"/t?t={new}" for new in codes)
    return Page(text_of(code, 80), links) if path == "/t" else NOT_FOUND


SOFT: Final = ("same", "echo", "suggestions", "home", "error")


def sites(size: int) -> dict[str, Site]:
    """Returns the web by name: honest sites of about `size` pages, others of a tenth."""
    few = max(20, size // 10)
    mirror = plain(few, "mirror")
    web: dict[str, Site] = {
        "catalogue": catalogue(size),
        "forum": forum(size // 2),
        "wiki": wiki(size // 5),
        "languages": languages(size),
        "blog": blog(size),
        "plain": plain(size, "plain"),
        "calendar": beside("calendar", few, "/calendar", calendar),
        "facets": beside("facets", few, "/search", facets),
        "session": sessions_in_path(few),
        "sessions": sessions_in_query(few),
        "relative": beside("relative", few, "/docs/", relative),
        "maze": beside("maze", few, "/maze/a/b/c", maze),
        "tarpit": beside("tarpit", few, "/amber-zebra", tarpit),
        "noise": beside("noise", few, "/t?t=0", noise),
        "mirror": mirror,
        "mirror1": mirror,
        "mirror2": mirror,
    }
    for kind in SOFT:
        web[f"soft{kind}"] = beside(f"soft{kind}", few, f"/old-{kind}.html", soft404(kind))
    return web


def answer(site: Site, target: str) -> Page:
    """Returns what a site answers to a path with a query."""
    path, _, query = target.partition("?")
    try:
        return site(path or "/", dict(parse_qsl(query, keep_blank_values=True)))
    except ValueError:
        return NOT_FOUND


def contents_of(site: Site) -> set[str]:
    """Returns the names of a site's honest content."""
    found, targets = set[str](), ["/"]
    while targets:
        page = answer(site, targets.pop())
        if page.content is not None and page.content not in found:
            found.add(page.content)
            targets += page.links
    return found
