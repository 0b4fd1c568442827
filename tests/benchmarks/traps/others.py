"""A second web of the same kinds as `web`, in other shapes: other words, names of parameters,
depths and seeds. Nothing is fitted to it; it says what the first web's figures are worth.

    shop  board  encyclopedia  lang  records  guide   sites that end
    agenda  filters  jsession  phpsess  nested  lost*  labyrinth  poison  spew  www*    traps
"""

from __future__ import annotations

import random
import re
from typing import Final

from tests.benchmarks.traps.web import NOT_FOUND, Page, Site, beside_pages, number_in

_WORDS: Final = re.findall(
    r"\w+",
    "anchor bridge copper drift engine filter gravel hammer insulator joint kettle lever motor"
    " nozzle outlet piston quartz rivet socket timber urethane valve welding yoke zinc",
)


def _text(seed: str, count: int) -> str:
    return " ".join(random.Random(f"others {seed}").choices(_WORDS, k=count))


def _page(site: str, name: str, *links: str) -> Page:
    return Page(_text(f"{site} {name}", 45), links, f"others {site} {name}")


def _slug(number: int) -> str:
    return f"{_WORDS[number % 25]}-{_WORDS[number // 25 % 25]}-{_WORDS[number // 7 % 25]}"


def shop(size: int) -> Site:
    """Categories with pages of twelve goods, named by words alone; goods lead to two others."""
    names = {f"/goods/{_slug(n)}-{_WORDS[n % 11]}{n:x}.html": n for n in range(size)}
    paths = list(names)
    each = size // 6

    def site(path: str, query: dict[str, str]) -> Page:
        number, page = number_in(path, r"/c/(\d)/", 6), int(query.get("p", "1"))
        if path == "/":
            return _page("shop", "home", *(f"/c/{n}/" for n in range(6)), "/terms.html")
        if path == "/terms.html":
            return _page("shop", path, "/")
        if number is not None and 0 < page <= -(-each // 12):
            first = number * each + 12 * (page - 1)
            goods = paths[first : min(first + 12, (number + 1) * each)]
            pages = [f"{path}?p={n}" for n in (page - 1, page + 1) if 1 < n <= -(-each // 12)]
            return _page("shop", f"{path} {page}", "/", *goods, *pages)
        if path in names and names[path] < 6 * each:
            also = [paths[(7 * names[path] + n) % (6 * each)] for n in (1, 5)]
            return _page("shop", path, "/", f"/c/{names[path] // each}/", *also)
        return NOT_FOUND

    return site


def board(size: int) -> Site:
    """viewforum and viewtopic, with `start`, which counts posts."""

    def site(path: str, query: dict[str, str]) -> Page:
        start = int(query.get("start", "0"))
        if path == "/":
            return _page("board", "home", *(f"/viewforum.php?f={n}" for n in range(1, 5)))
        if path == "/viewforum.php" and 0 < (f := int(query["f"])) < 5 and start < size // 4:
            topics = range(start, min(start + 15, size // 4))
            links = [f"/viewtopic.php?f={f}&t={4 * t + f}" for t in topics]
            more = [f"{path}?f={f}&start={start + 15}"] if start + 15 < size // 4 else []
            return _page("board", f"f{f} {start}", *links, *more, "/")
        if path == "/viewtopic.php" and 0 < (t := int(query["t"])) <= size // 4 * 4:
            f = (t - 1) % 4 + 1
            if start <= 10 * (t % 2):
                more = [f"{path}?f={f}&t={t}&start={start + 10}"] if start < 10 * (t % 2) else []
                return _page("board", f"t{t} {start}", f"/viewforum.php?f={f}", *more)
        return NOT_FOUND

    return site


def encyclopedia(size: int) -> Site:
    """One script with titles, histories and old versions; six links an article."""
    names = [f"{_WORDS[n % 25].title()}:{_WORDS[n // 25]}" for n in range(size)]

    def site(path: str, query: dict[str, str]) -> Page:
        if path == "/":
            return _page("encyclopedia", "home", f"/index.php?title={names[0]}")
        title, number = query.get("title", ""), 0
        if path != "/index.php" or title not in names:
            return NOT_FOUND
        number = names.index(title)
        if "oldid" in query:
            return _page("encyclopedia", f"old {query['oldid']}", f"{path}?title={title}")
        if query.get("action") == "history":
            old = [f"{path}?title={title}&oldid={900 + 2 * number + n}" for n in range(2)]
            return _page("encyclopedia", f"history {title}", *old)
        draw = random.Random(f"others {title}")
        linked = [names[draw.randrange(size)] for _ in range(5)] + [names[(number + 1) % size]]
        history = f"{path}?action=history&title={title}"
        return _page("encyclopedia", title, *(f"{path}?title={n}" for n in linked), history)

    return site


def lang(size: int) -> Site:
    """Pages with `?lang=`, in three languages."""

    def site(path: str, query: dict[str, str]) -> Page:
        number = 0 if path == "/" else number_in(path, r"/topic-(\d+)", size // 3)
        tongue = query.get("lang", "en")
        if number is None or tongue not in ("en", "it", "ja"):
            return NOT_FOUND
        here = f"/topic-{number}"
        others = [f"{here}?lang={other}" for other in ("it", "ja") if other != tongue]
        below = range(3 * number + 1, min(3 * number + 4, size // 3))
        suffix = "" if tongue == "en" else f"?lang={tongue}"
        name = f"{here} {tongue}"
        return _page("lang", name, here, *others, *(f"/topic-{n}{suffix}" for n in below))

    return site


def records(size: int) -> Site:
    """A chain of records, and lists of forty by year."""

    def site(path: str, query: dict[str, str]) -> Page:
        if path == "/":
            return _page("records", "home", *(f"/year/{1990 + n}" for n in range(size // 40)))
        year = number_in(path, r"/year/(\d+)", 1990 + size // 40)
        if year is not None and year >= 1990:
            first = (year - 1990) * 40
            some = [f"/record.php?id={n + 5000}" for n in range(first, first + 40, 2)]
            return _page("records", path, *some)
        number = int(query.get("id", "0")) - 5000
        if path == "/record.php" and 0 <= number < size // 40 * 40:
            near = (number - 1, number + 1)
            links = [f"{path}?id={n + 5000}" for n in near if 0 <= n < size // 40 * 40]
            return _page("records", f"r{number}", *links, "/")
        return NOT_FOUND

    return site


def guide(size: int, name: str) -> Site:
    """A tree of folders with three below each; pages lead up, to the next one, and home."""

    def path_of(number: int) -> str:
        parts = list[str]()
        while number:
            parts.append(_WORDS[(number * 7 + len(parts)) % 25])
            number = (number - 1) // 3
        return "/" + "".join(f"{part}/" for part in reversed(parts))

    paths = dict[str, int]()
    for number in range(size):
        paths.setdefault(path_of(number), number)

    def site(path: str, query: dict[str, str]) -> Page:
        number = None if query else paths.get(path)
        if number is None:
            return NOT_FOUND
        near = [*range(3 * number + 1, 3 * number + 4), (number - 1) // 3, number + 1]
        links = [path_of(n) for n in near if 0 <= n < size]
        return _page(name, path, *links, "/")

    return site


# -- traps -----------------------------------------------------------------------------------------


def agenda(path: str, query: dict[str, str]) -> Page:
    """Years, months, days as folders, for ever."""
    found = re.fullmatch(r"/agenda/(\d{4})/(?:(\d\d?)/(?:(\d\d?)/)?)?", path)
    if found is None:
        return NOT_FOUND
    year, month, day = int(found[1]), int(found[2] or 0), int(found[3] or 0)
    if day:
        links = [f"/agenda/{year}/{month}/{day % 28 + 1}/"]
    elif month:
        links = [f"/agenda/{year}/{month}/{n}/" for n in range(1, 29)]
        links += [f"/agenda/{year + month // 12}/{month % 12 + 1}/", f"/agenda/{year}/"]
    else:
        links = [f"/agenda/{year}/{n}/" for n in range(1, 13)]
        links += [f"/agenda/{year - 1}/", f"/agenda/{year + 1}/"]
    return Page(f"Nothing planned for {'/'.join(filter(None, found.groups()))}.", (*links, "/"))


_FILTERS: Final = ("make", "year", "fuel", "page_size", "order", "layout")


def filters(path: str, query: dict[str, str]) -> Page:
    """Six filters with numbers, each of which can also be taken away."""
    if path != "/stock" or not set(query) <= set(_FILTERS):
        return NOT_FOUND
    links = []
    for name in _FILTERS:
        for value in range(1, 5):
            chosen = {**query, name: str(value)}
            links.append("/stock?" + "&".join(f"{key}={chosen[key]}" for key in sorted(chosen)))
        if name in query:
            left = {key: value for key, value in query.items() if key != name}
            links.append("/stock?" + "&".join(f"{key}={value}" for key, value in left.items()))
    seed = f"{query.get('make')} {query.get('fuel')}"
    return Page("In stock " + _text(seed, 25), tuple(links))


def _code(seed: str, letters: str, count: int) -> str:
    return "".join(random.Random(f"others {seed}").choices(letters, k=count))


def jsession(size: int) -> Site:
    """;jsessionid= behind each path, another on each page; as with servlets, none is needed."""

    def site(path: str, query: dict[str, str]) -> Page:
        sid = _code(path, "0123456789ABCDEF", 32)
        number = 0 if path == "/" else number_in(path, r"/node/(\d+)(?:;jsessionid=\w+)?", size)
        if number is None:
            return NOT_FOUND
        near = (2 * number + 1, 2 * number + 2, number + 1)
        links = [f"/node/{n % size};jsessionid={sid}" for n in near]
        return _page("jsession", f"node {number}", *links)

    return site


def phpsess(size: int) -> Site:
    """PHPSESSID beside an id, first or last."""

    def site(path: str, query: dict[str, str]) -> Page:
        sid = _code(f"{path} {query}", "abcdefghijklmnopqrstuv0123456789", 26)
        number = int(query.get("id", "0"))
        if path not in ("/", "/show.php") or number >= size:
            return NOT_FOUND
        near = (number + 1, 3 * number + 1, 2 * number + 1)
        links = [f"/show.php?PHPSESSID={sid}&id={n % size}" for n in near]
        return _page("phpsess", f"show {number}", *links)

    return site


def nested(path: str, query: dict[str, str]) -> Page:
    """Links without a slash before them, on whatever is below /help/."""
    if not path.startswith("/help/"):
        return NOT_FOUND
    folder = path.rpartition("/")[0]
    names = ("contact", "orders", "returns")
    links = tuple(f"{folder}/{name}/{name}.html" for name in names)
    return Page(f"How to get help with {path.rpartition('/')[2] or 'us'}", (*links, "/"))


def lost(kind: str) -> Site:
    """200 for what is not there, in five ways again."""

    def site(path: str, query: dict[str, str]) -> Page:
        if path == "/404.html":
            return Page("We could not find that page, try our search.", ("/",))
        dead = [f"/{_code(f'{path}{kind}{n}', 'bcdfglmnprst', 7)}/{n}" for n in range(4)]
        if kind == "same":
            return Page("This item is no longer available.", (*dead, "/"))
        if kind == "echo":
            return Page(f"No results for {path.strip('/')}.", (*dead, "/"))
        if kind == "suggestions":
            return Page("Nothing here. Popular now: " + _text(path, 15), (*dead, "/"))
        return Page(location="/" if kind == "home" else f"/404.html?from={path}", status=302)

    return site


def labyrinth(path: str, query: dict[str, str]) -> Page:
    """Random text below one folder, three links a page, and one home."""
    if not path.startswith("/archive/"):
        return NOT_FOUND
    below = (_code(f"{path} {n}", "0123456789abcdef", 12) for n in range(3))
    return Page(_text(path, 60), (*(f"/archive/{name}/" for name in below), "/"))


def poison(path: str, query: dict[str, str]) -> Page:
    """Random text at random names of the host, five links a page."""
    names = [_text(f"{path} {n}", 2).replace(" ", "/") for n in range(5)]
    return Page(_text(path, 60), tuple(f"/{name}/{n}.htm" for n, name in enumerate(names)))


def spew(path: str, query: dict[str, str]) -> Page:
    """Random text for any search, with four other searches."""
    if path != "/search.cgi":
        return NOT_FOUND
    found = (_text(f"{query.get('q')} {n}", 3).replace(" ", "+") for n in range(4))
    return Page(_text(str(query), 60), tuple(f"/search.cgi?q={words}" for words in found))


LOST: Final = ("same", "echo", "suggestions", "home", "error")


def sites(size: int) -> dict[str, Site]:
    """Returns the web by name: honest sites of about `size` pages, others of a tenth."""
    few = max(15, size // 8)
    twin = guide(few, "twin")

    def beside(name: str, entry: str, trap: Site) -> Site:
        return beside_pages(guide(few, name), entry, trap)

    web: dict[str, Site] = {
        "shop": shop(size), "board": board(size // 2), "encyclopedia": encyclopedia(size // 4),
        "lang": lang(size), "records": records(size), "guide": guide(size, "guide"),
        "agenda": beside("agenda", "/agenda/2025/", agenda),
        "filters": beside("filters", "/stock", filters),
        "jsession": jsession(few), "phpsess": phpsess(few),
        "nested": beside("nested", "/help/", nested),
        "labyrinth": beside("labyrinth", "/archive/0/", labyrinth),
        "poison": beside("poison", "/lever.htm", poison),
        "spew": beside("spew", "/search.cgi?q=zinc", spew),
        "twin": twin, "www.twin": twin, "static.twin": twin,
    }  # fmt: skip
    return web | {f"lost{kind}": beside(f"lost{kind}", f"/old-{kind}", lost(kind)) for kind in LOST}
