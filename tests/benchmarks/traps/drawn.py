"""Small sites of mixed kinds, drawn by a seed: lists of pages with addresses of all kinds, beside
views of them, orders, tags, searches, calendars, comparisons, code browsers, sessions.

    python -m tests.benchmarks.traps.drawn [--seeds 1 2 3] [--sites 30] [--names web] [--together]
                                           [--without]

prints how many of the pages are found, by columns, by 1.1, 1.5, 2 and 3 times as many requests.
What is honest is known before any crawl: a page of a list, and the list. All else says what one of
them says, in other words or another order, or nothing. Names are of three kinds:

    web      what such things are called on the web; every third one is made up
    made     all are made up
    swapped  honest pages have the names of what isn't, and the other way round
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final
from urllib.parse import urlencode

from tests.benchmarks.traps.columns import ColumnCrawl
from tests.benchmarks.traps.web import NOT_FOUND, Page, Site, contents_of

NAMES: Final = ("web", "made", "swapped")
CAPS: Final = (1.1, 1.5, 2.0, 3.0)
_WORDS: Final = re.findall(
    r"\w+",
    "apple badge candle dinner engine forest garden hammer island jacket kitten ladder market"
    " needle orange pencil quiver rabbit saddle tunnel urchin violet window yonder zipper anchor"
    " bottle carpet dragon falcon guitar helmet insect jungle kettle lizard magnet napkin oyster"
    " puddle ribbon silver timber velvet walnut bronze cobalt desert ember flavor glacier",
)
# Kinds of what is honest, and of all else, with names for each.
_HONEST: Final = """
    folder articles docs products recipes people events topics guides stories help
    script view.php show.asp item node.php viewtopic.php index.php detail.cgi
    id id p item_id article topic title product nid f
    page page start offset p pg
"""
_OTHER: Final = """
    view print printable format share view layout pdf version plain
    act reply login edit report add-to-cart replytocom quote flag subscribe email
    back return_to redirect next returnurl destination ref from
    sort sort order sortby orderby sort_by o
    dir dir desc order_dir direction asc
    tag tag tags label keyword labels
    search search find query s results
    query q query keywords s search term
    day calendar date day month when
    compare compare diff comparison
    facet color size brand price filter material rating
    code raw blame commits history edit log annotate
    track utm_source ref src from campaign source
    session sid jsessionid phpsessid session s
"""


def _table(lines: str) -> dict[str, list[str]]:
    rows = map(str.split, filter(None, map(str.strip, lines.splitlines())))
    return {kind: names for kind, *names in rows}


_KINDS: Final = ("slug", "root", "date", "number", "query", "query", "hash", "matrix", "tree")
"""What addresses of pages are made of."""
_TABLES: Final = (_table(_HONEST), _table(_OTHER))


class _Site:
    """Draws one site."""

    def __init__(self, seed: str, names: str) -> None:
        self.draw, self.names = random.Random(seed), names
        self.naming, self.seed = random.Random(f"{seed} {names}"), f"{seed} {names}"
        self.pages: dict[str, tuple[str, str | None, str]] = {}
        """Target -> text, name of the content, target of a redirect."""
        self.links: dict[str, list[str]] = {}
        self.endless: dict[str, Callable[[dict[str, str]], Page]] = {}
        """Paths of which any query is a page."""
        self.session = ""
        self.used = set[str]()
        self.add("/", self.text(40), "home")
        left = self.draw.randint(29, 155)
        sections = self.draw.randint(1, 3)
        for at in range(sections):
            size = left if at == sections - 1 else max(8, left * self.draw.randint(30, 60) // 100)
            self.section(min(size, left))
            left -= min(size, left)
            if left < 8:
                break
        if self.draw.random() < 0.15:
            self.session = self.name("session")

    def name(self, kind: str) -> str:
        """Returns a name that the site has not yet."""
        honest, others = _TABLES
        some = honest.get(kind) or others[kind]
        if self.names == "swapped":
            swapped = others if kind in honest else honest
            some = [name for names in swapped.values() for name in names]
        for _ in range(50):
            found = self.naming.choice(some)
            if self.names == "made" or (self.names == "web" and self.naming.random() < 1 / 3):
                letters = self.naming.choices("abcdeghiklmnoprstu", k=self.naming.randint(2, 7))
                found = "".join(letters)
            if found not in self.used:
                break
        self.used.add(found)
        return found

    def text(self, count: int) -> str:
        return " ".join(self.draw.choices(_WORDS, k=count))

    def add(self, target: str, text: str, content: str | None = None, location: str = "") -> None:
        self.pages.setdefault(target, (text, content, location))
        self.links.setdefault(target, [])

    def section(self, size: int) -> None:
        """A list of pages, and what there is of each besides."""
        folder, script = self.name("folder"), self.name("script")
        kind = self.draw.choice(_KINDS)
        items, titles = list[str](), list[str]()
        key = self.name("id")
        for number in range(size):
            slug, code = "-".join(self.text(3).split()), f"{self.draw.getrandbits(64):016x}"
            where = {
                "slug": f"/{folder}/{slug}", "root": f"/{slug}.html",
                "date": f"/{2010 + number // 9}/{number % 9 + 1:02}/{slug}",
                "number": f"/{folder}/{number + 100}", "query": f"/{script}?{key}={number + 7}",
                "hash": f"/{folder}/{code}", "matrix": f"/{folder};{key}={number}",
                "tree": f"/{folder}/{_WORDS[number % 3]}/{_WORDS[number % 7]}/{slug}.c",
            }[kind]  # fmt: skip
            if where in self.pages:
                continue
            title = self.text(4)
            self.add(where, f"{title} {self.text(40)}", where)
            items.append(where)
            titles.append(title)
        lists = self.lists(f"/{folder}/", items, titles)
        self.links["/"].append(lists[0])
        for at, item in enumerate(items):
            near = (items[(at + 1) % len(items)], self.draw.choice(items))
            self.links[item] += ["/", *self.draw.sample(near, self.draw.randint(0, 2))]
        kinds = [self.views, self.views, self.acts, self.sorts, self.tags, self.searches]
        kinds += [self.calendar, self.facets, self.compare, self.tracking]
        for what in self.draw.sample(kinds, self.draw.randint(2, 5)):
            what(lists, items, titles)
        if kind == "tree":
            for name in [self.name("code") for _ in range(3)]:
                self.view(items, partial(_moved, f"/{folder}", f"/{name}"))

    def lists(self, path: str, items: list[str], titles: list[str]) -> list[str]:
        """Adds pages of a list."""
        each, page = self.draw.randint(5, 20), self.name("page")
        if len(items) <= each + 3 or self.draw.random() < 0.2:
            each = len(items)
        starts = range(0, len(items), each)
        targets = [path if not at else f"{path}?{page}={at // each + 1}" for at in starts]
        for at, target in zip(starts, targets, strict=True):
            self.add(target, f"List {' '.join(titles[at : at + each])}", f"list {target}")
            place = at // each
            around = (place - 1, place + 1)
            self.links[target] += items[at : at + each]
            self.links[target] += [targets[n] for n in around if 0 <= n < len(targets)]
        return targets

    def view(self, items: list[str], where: Callable[[str], str]) -> None:
        """Another view of each page: as the page, with a line above, none of it, or elsewhere."""
        kind, words = self.draw.choice(("same", "above", "form", "title", "back")), self.text(12)
        for item in items:
            text, target = self.pages[item][0], where(item)
            said = {
                "same": text, "above": f"{words} {text}", "form": words,
                "title": f"{words} {text[:30]}", "back": "",
            }[kind]  # fmt: skip
            content = self.pages[item][1] if kind in ("same", "above") else None
            self.add(target, said, content, location=item if kind == "back" else "")
            self.links[item].append(target)
            self.links[target].append(item)

    def views(self, lists: list[str], items: list[str], titles: list[str]) -> None:
        name, value = self.name("view"), self.draw.choice(("1", "yes", "full"))
        if self.draw.random() < 0.5:
            self.view(items, lambda item: with_query(item, name, value))
        elif self.draw.random() < 0.5:
            self.view(items, lambda item: f"/{name}{item}")
        else:
            self.view(items, lambda item: f"{item}/{name}")

    def acts(self, lists: list[str], items: list[str], titles: list[str]) -> None:
        """Log in, reply, edit: each of them for each page."""
        name, back = self.name("act"), self.name("back")
        kind = self.draw.randrange(3)
        if kind == 0:
            self.view(items, lambda item: f"/{name}?{urlencode({back: item})}")
        elif kind == 1:
            for value in range(self.draw.randint(1, 3)):
                self.view(items, partial(with_query, name=name, value=str(value)))
        else:
            self.view(items, lambda item: f"{item}/{name}")

    def tracking(self, lists: list[str], items: list[str], titles: list[str]) -> None:
        """Links that say where they stand."""
        name = self.name("track")
        for place in ("home", "top", "foot")[: self.draw.randint(1, 3)]:
            for item in items:
                target = with_query(item, name, place)
                self.add(target, *self.pages[item][:2])
                self.links[target] = self.links[item]
                self.links[self.draw.choice(lists)].append(target)

    def sorts(self, lists: list[str], items: list[str], titles: list[str]) -> None:
        """Each page of the list in other orders."""
        name, way = self.name("sort"), self.name("dir")
        values = self.text(self.draw.randint(1, 3)).split()
        ways = ("up", "down") if self.draw.random() < 0.5 else ("",)
        for target in lists:
            count = len(lists)
            for value in values:
                for one in ways:
                    ordered = with_query(target, name, value)
                    ordered = with_query(ordered, way, one) if one else ordered
                    some = random.Random(f"{value} {one}").sample(titles, len(titles))
                    at = lists.index(target)
                    share = some[at * len(some) // count : (at + 1) * len(some) // count]
                    self.add(ordered, f"List {' '.join(share)}")
                    self.links[target].append(ordered)
                    self.links[ordered] += self.draw.sample(items, min(5, len(items)))

    def tags(self, lists: list[str], items: list[str], titles: list[str]) -> None:
        """Lists of pages with a word in them."""
        name, form = self.name("tag"), self.draw.choice(("/{}/{}", "/{}/{}", "/?{}={}"))
        for item, title in zip(items, titles, strict=True):
            for word in title.split()[: self.draw.randint(1, 3)]:
                target = form.format(name, word)
                self.add(target, f"{word} " + " ".join(one for one in titles if word in one))
                self.links[item].append(target)
                self.links[target].append(item)

    def searches(self, lists: list[str], items: list[str], titles: list[str]) -> None:
        """Results for words, with searches for more of them."""
        path, name = f"/{self.name('search')}", self.name("query")

        def found(query: dict[str, str]) -> Page:
            words = query.get(name, "").split()
            hits = [at for at, title in enumerate(titles) if any(w in title for w in words)]
            more = random.Random(f"{words}").sample(_WORDS, 2)
            links = [f"{path}?{urlencode({name: ' '.join([*words[-2:], one])})}" for one in more]
            text = f"Found {' '.join(words)} {' '.join(titles[at] for at in hits[:9])}"
            return Page(text, (*(items[at] for at in hits[:9]), *links))

        self.endless[path] = found
        for item, title in zip(items, titles, strict=True):
            self.links[item] += [f"{path}?{name}={word}" for word in title.split()[:2]]

    def calendar(self, lists: list[str], items: list[str], titles: list[str]) -> None:
        """Days without end."""
        path, name = f"/{self.name('day')}", self.name("day")

        def day(query: dict[str, str]) -> Page:
            number = int(query.get(name, "0").replace("-", "") or 0)
            around = (number - 1, number + 1, number + 30)
            return Page(f"Nothing on {number}", tuple(f"{path}?{name}={n}" for n in around))

        self.endless[path] = day
        for target in lists:
            self.links[target].append(path)

    def facets(self, lists: list[str], items: list[str], titles: list[str]) -> None:
        """What there is of three properties, together, too."""
        names = {self.name("facet"): self.text(2).split() for _ in range(3)}
        path = lists[0]

        def some(query: dict[str, str]) -> Page:
            chosen = {name: query[name] for name in names if name in query}
            draw = random.Random(str(sorted(chosen.items())))
            hits = draw.sample(range(len(items)), len(items) // 2 ** min(len(chosen), 3))
            more = ({**chosen, name: value} for name, all_ in names.items() for value in all_)
            links = [f"{path}?{urlencode(one)}" for one in more]
            text = " ".join(titles[at] for at in hits[:10]) or "None of these"
            return Page(f"List {text}", (*(items[at] for at in hits[:10]), *links))

        self.endless[path] = some
        for name, values in names.items():
            self.links[path] += [f"{path}?{name}={value}" for value in values]

    def compare(self, lists: list[str], items: list[str], titles: list[str]) -> None:
        """Each two pages beside each other."""
        path, count = f"/{self.name('compare')}", len(items)

        def link(a: int, b: int) -> str:
            return f"{path}?a={a % count}&b={b % count}"

        def both(query: dict[str, str]) -> Page:
            a, b = (int(query.get(key, "0")) % count for key in "ab")
            text = f"{self.pages[items[a]][0][:120]} {self.pages[items[b]][0][:120]}"
            return Page(text, (items[a], items[b], link(a, 3 * b + 1), link(b, 5 * a + 2)))

        self.endless[path] = both
        for at, item in enumerate(items):
            self.links[item] += [link(at, at + 1), link(at, 7 * at)]

    def answer(self, path: str, query: dict[str, str]) -> Page:
        if self.session and ";" in path:
            path = path.replace(f";{self.session}={self.sid(path)}", "")
        asked = {name: value for name, value in query.items() if name != self.session}
        target = f"{path}?{urlencode(asked)}" if asked else path
        if target in self.pages:
            text, content, location = self.pages[target]
            named = content and f"{self.seed} {content}"
            page = Page(text, tuple(self.links[target]), named, location, status=302) if location \
                else Page(text, tuple(self.links[target]), named)  # fmt: skip
        elif path in self.endless:
            page = self.endless[path](asked)
        else:
            return NOT_FOUND
        if not self.session:
            return page
        code = f"{random.Random(f'{self.seed} {target}').getrandbits(96):024x}"
        links = tuple(with_query(link, self.session, code) for link in page.links)
        return Page(page.text, links, page.content, page.location, status=page.status)

    def sid(self, path: str) -> str:
        return path.rpartition(f";{self.session}=")[2]


def _moved(before: str, after: str, target: str) -> str:
    return target.replace(before, after, 1)


def with_query(target: str, name: str, value: str) -> str:
    """Returns a target with one more parameter."""
    return f"{target}{'&' if '?' in target else '?'}{name}={value}"


def sites(seed: int, count: int, names: str = "web") -> dict[str, Site]:
    """Draws sites: the same for the same seed."""
    return {f"d{seed}x{n}.example": _Site(f"{seed} {n}", names).answer for n in range(count)}


def found_of(web: dict[str, Site], has_doubts: bool = True, rounds: int = 80) -> Iterator[int]:
    """Yields how many honest pages a crawl of the web finds by each of CAPS; then all that are."""
    honest = sum(len(contents_of(site)) for site in web.values())
    crawl = ColumnCrawl(web, 20, has_doubts=has_doubts)
    for factor in CAPS:
        crawl.cap = round(factor * honest)
        while crawl.asked.total() < crawl.cap and crawl.rounds < rounds and crawl.round():
            pass
        yield crawl.good.total()
    yield honest


def main() -> None:
    """Prints the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--sites", type=int, default=30)
    parser.add_argument("--names", choices=NAMES, nargs="+", default=["web"])
    parser.add_argument("--together", action="store_true", help="all sites in one crawl")
    parser.add_argument("--without", action="store_true", help="without generate.pattern.doubts")
    asked = parser.parse_args()
    for names in asked.names:
        for seed in asked.seeds:
            web = sites(seed, asked.sites, names)
            webs = [web] if asked.together else [{name: site} for name, site in web.items()]
            counts = (found_of(one, not asked.without) for one in webs)
            *found, honest = map(sum, zip(*counts, strict=True))
            shares = ", ".join(
                f"{n / honest:.1%} by {at}" for at, n in zip(CAPS, found, strict=True)
            )
            print(f"{names} {seed}: of {honest:,} pages {shares}", flush=True)


if __name__ == "__main__":
    main()
