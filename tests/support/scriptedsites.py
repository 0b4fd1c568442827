"""Made-up sites of eight kinds whose pages are edited by a script, with noise that is another at
each request, for the judge of `minutch changes` (`tests.benchmarks.changes`).

What a reader is to be told is not written down beside each edit: a page is rendered without frame
and noise, before and after, and what its lines differ in was edited.

    KINDS    blog, news, shop, wiki, forum, docs, notices, events
    NOISE    what a page has beside its own text: `inside` it, or around
    styles   semantic boxes with classes, boxes with classes, boxes without any name
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar, Final

from minutch.cycle.parse.dispatch import ParseUtil
from minutch.cycle.segment.store import CRAWL_FETCH, PARSE_DATA, PARSE_TEXT, part_writer
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.records import crawldatum as status
from minutch.records import protocol
from minutch.records.crawldatum import CrawlDatum
from minutch.records.parsedata import ParseText
from minutch.records.protocol import ProtocolStatus
from tests.support.pages import configuration, content

START: Final = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
PARSER: Final = ParseUtil(configuration(**{"parser.html.text": "blocks"}))
KINDS: Final = ("blog", "news", "shop", "wiki", "forum", "docs", "notices", "events")
STYLES: Final = ("semantic", "classes", "bare")


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_NOUNS: Final = _words(
    "kettle lamp table bridge engine garden letter window market harbour river signal valley"
    " council library station teacher budget forest museum battery network tunnel orchard cabin"
    " ladder mirror pocket saddle turbine village witness"
)
_VERBS: Final = _words(
    "moved carried opened repaired described measured painted followed sold replaced joined"
    " visited planned covered checked improved"
)
_ADJECTIVES: Final = _words(
    "old quiet narrow bright heavy local public early northern simple broken famous modern rural"
    " cheap careful wooden open"
)
_WAYS: Final = _words("near beside behind above against towards after before without within")
_NAMES: Final = _words("Ada Bob Cleo Dan Eve Finn Gita Hugo Iris Jan Kim Lea")

Table = list[list[str]]
Block = tuple[str, str | list[str] | Table]
"""A tag, and its text, items or rows."""
Lines = frozenset[str]
NONE: Final = frozenset[str]()
Told = dict[tuple[str, str], tuple[str, Lines, Lines]]
"""By segment and URL: the kind, and the lines that were removed and added."""


def sentence(rng: random.Random) -> str:
    a, b, c = (rng.choice(_NOUNS) for _ in range(3))
    old, new = rng.choice(_ADJECTIVES), rng.choice(_ADJECTIVES)
    return rng.choice(
        (
            f"The {old} {a} of the {b} was {rng.choice(_VERBS)} {rng.choice(_WAYS)} the {new} {c}.",
            f"They {rng.choice(_VERBS)} a {new} {a} and {rng.choice(_VERBS)} it"
            f" {rng.choice(_WAYS)} the {b}, which has a {old} {c}.",
            f"In the {old} {a}, {rng.choice(_NAMES)} {rng.choice(_VERBS)} some of the {b}s that"
            f" are {new} for every {c}.",
        )
    )


def prose(rng: random.Random) -> str:
    return " ".join(sentence(rng) for _ in range(rng.randint(1, 4)))


def name(rng: random.Random) -> str:
    return f"{rng.choice(_ADJECTIVES)} {rng.choice(_NOUNS)} {rng.choice(_NOUNS)}".capitalize()


def day(rng: random.Random, first: int = 1, last: int = 300) -> str:
    at = START + timedelta(rng.randint(first, last))
    return f"{at.day} {at:%B %Y}"


def price(rng: random.Random) -> str:
    return f"{rng.randint(3, 900)}.{rng.randint(10, 99)}"


@dataclass
class Doc:
    """A page: its title, and what it says. `born` is the visit that it is there since."""

    title: str
    blocks: list[Block]
    born: int
    posted: datetime
    fields: dict[str, str] = field(default_factory=dict)
    """Short facts, by label."""


def _doc(kind: str, rng: random.Random, visit: int) -> Doc:
    doc = Doc(name(rng), [], visit, START - timedelta(hours=rng.randint(1, 90)))
    paragraphs: list[Block] = [("p", prose(rng)) for _ in range(rng.randint(2, 6))]
    if kind in ("wiki", "docs", "notices"):
        for _ in range(rng.randint(1, 3)):
            paragraphs += [("h2", name(rng)), ("p", prose(rng)), ("p", prose(rng))]
    if kind in ("wiki", "docs", "shop"):
        rows = [[name(rng), f"{rng.randint(1, 99)} {rng.choice(_NOUNS)}s", sentence(rng)]
                for _ in range(rng.randint(3, 6))]  # fmt: skip
        paragraphs.insert(rng.randint(1, len(paragraphs)), ("table", rows))
    if kind in ("blog", "wiki", "docs"):
        paragraphs.append(("ul", [sentence(rng) for _ in range(rng.randint(3, 5))]))
    if kind == "forum":
        paragraphs = [("post", _post(rng)) for _ in range(rng.randint(2, 8))]
    doc.blocks = paragraphs
    if kind == "shop":
        doc.fields = {"Price": f"{price(rng)} EUR", "Stock": rng.choice(("In stock", "Sold out"))}
    elif kind == "notices":
        doc.fields = {
            "Reference": f"{rng.randint(2020, 2026)}/{rng.randint(100, 999)}",
            "Deadline": day(rng), "Status": rng.choice(("Open", "Closed", "Under review")),
        }  # fmt: skip
    elif kind == "events":
        doc.fields = {
            "Date": day(rng), "Place": f"{rng.choice(_NOUNS)} hall".capitalize(),
            "Tickets": rng.choice(("available", "sold out", "few left")),
            "Entry": f"{rng.randint(5, 60)} EUR",
        }  # fmt: skip
    return doc


def _post(rng: random.Random) -> list[str]:
    return [f"{rng.choice(_NAMES)} wrote on {day(rng, -200, 0)}", prose(rng)]


# --- edits -----------------------------------------------------------------------------------


def _paragraphs(doc: Doc) -> list[int]:
    return [at for at, (tag, _) in enumerate(doc.blocks) if tag == "p"]


def _word(doc: Doc, rng: random.Random) -> None:
    at = rng.choice(_paragraphs(doc) or [0])
    tag, said = doc.blocks[at]
    lines = [said] if isinstance(said, str) else [*said]
    words = str(lines[-1]).split()
    words[rng.randrange(1, len(words))] = rng.choice(_NOUNS) + "ish"
    lines[-1] = " ".join(words)
    doc.blocks[at] = tag, lines[0] if isinstance(said, str) else lines  # type: ignore[assignment]


def _add(doc: Doc, rng: random.Random) -> None:
    is_forum = doc.blocks[0][0] == "post"
    at = len(doc.blocks) if is_forum else rng.randint(1, len(doc.blocks))
    doc.blocks.insert(at, ("post", _post(rng)) if is_forum else ("p", prose(rng)))


def _remove(doc: Doc, rng: random.Random) -> None:
    """A section, or a paragraph where there is none."""
    heads = [at for at, (tag, _) in enumerate(doc.blocks) if tag == "h2"]
    if heads and len(doc.blocks) > 5:
        at = rng.choice(heads)
        del doc.blocks[at : at + 3]
    elif len(doc.blocks) > 2:
        del doc.blocks[rng.randrange(1, len(doc.blocks))]


def _cell(doc: Doc, rng: random.Random) -> None:
    for at, (tag, rows) in enumerate(doc.blocks):
        if tag == "table":
            row = rng.randrange(len(rows))
            table = [[*cells] for cells in rows]
            table[row][rng.randrange(3)] = f"{rng.randint(100, 999)} {rng.choice(_NOUNS)}s"
            doc.blocks[at] = tag, table
            return
    _word(doc, rng)


def _item(doc: Doc, rng: random.Random) -> None:
    for at, (tag, items) in enumerate(doc.blocks):
        if tag == "ul":
            doc.blocks[at] = tag, [*items, sentence(rng)]  # type: ignore[assignment]
            return
    _add(doc, rng)


def _title(doc: Doc, rng: random.Random) -> None:
    doc.title = f"{name(rng)} {rng.choice(_WAYS)} {rng.choice(_NOUNS)}"


def _fact(doc: Doc, rng: random.Random) -> None:
    if not doc.fields:
        _word(doc, rng)
        return
    label = rng.choice([*doc.fields])
    made = _doc({"Price": "shop", "Stock": "shop", "Reference": "notices", "Deadline": "notices",
                 "Status": "notices"}.get(label, "events"), rng, 0)  # fmt: skip
    doc.fields[label] = made.fields[label]


EDITS: Final[Mapping[str, Callable[[Doc, random.Random], None]]] = {
    "word": _word, "more": _add, "less": _remove, "cell": _cell, "item": _item, "title": _title,
    "fact": _fact,
}  # fmt: skip


# --- noise -----------------------------------------------------------------------------------


@dataclass
class Moment:
    """What noise is made of: a request of a page at a visit."""

    rng: random.Random
    of_visit: random.Random
    """The same for all pages of a visit."""
    visit: int
    at: datetime
    doc: Doc
    titles: list[str]
    pool: list[str]
    """Of the site: sentences that take turns."""


def _list(head: str, items: list[str]) -> str:
    links = "".join(f"<li><a href=#>{one}</a></li>" for one in items)
    return f"<h3>{head}</h3><ul>{links}</ul>"


def _ago(moment: Moment) -> str:
    hours = int((moment.at - moment.doc.posted).total_seconds() // 3600)
    return f"<p>Posted {hours} hours ago</p>"


def _some(rng: random.Random, items: list[str], most: int) -> list[str]:
    return rng.sample(items, min(most, len(items)))


NOISE: Final[Mapping[str, Callable[[Moment], str]]] = {
    "advertisement": lambda m: f"<p>{m.rng.choice(m.pool)}</p>",
    "new advertisement": lambda m: f"<p>Buy it now: {sentence(m.rng)}</p>",
    "testimonial": lambda m: (
        f"<blockquote>{m.rng.choice(m.pool[:6])} <cite>{m.rng.choice(_NAMES)}</cite></blockquote>"
    ),
    "quote of the day": lambda m: f"<p>{m.of_visit.choice(m.pool)}</p>",
    "views": lambda m: f"<p>Viewed {900 * m.visit + m.rng.randint(10, 900):,} times</p>",
    "watching": lambda m: f"<p>{m.rng.randint(2, 99)} people look at this page now</p>",
    "ago": _ago,
    "related": lambda m: _list("You may also like", _some(m.rng, m.titles, 4)),
    "trending": lambda m: _list("Trending", _some(m.of_visit, sorted(m.titles), 4)),
    "variant": lambda m: "<p>{}</p>".format(
        m.rng.choice(("Order now and save", "Put it into your basket", "Get yours today"))
    ),
    "token": lambda m: f"<p>Request {m.rng.getrandbits(64):016x}</p>",
    "speed": lambda m: f"<p>Page generated in {m.rng.uniform(0, 2):.3f} seconds</p>",
    "clock": lambda m: f"<p>{m.at:%A, %d %B %Y, %H:%M}</p>",
    "weather": lambda m: (
        f"<p>{m.of_visit.choice(('Sun', 'Rain', 'Fog', 'Snow'))},"
        f" {m.of_visit.randint(-5, 30)} °C</p>"
    ),
    "ticker": lambda m: f"<p>EUR/USD {m.of_visit.uniform(1, 1.2):.4f}</p>",
}
"""Each makes of a moment what stands in a page beside its own text."""

_BOXES: Final = {
    "semantic": (
        "<header class=top><nav>{}</nav>{}</header>", "<main><article>{}</article></main>",
        "<aside class=side>{}</aside>", "<footer>{}</footer>",
    ),
    "classes": (
        "<div class=header><ul class=menu>{}</ul>{}</div>", "<div class=content>{}</div>",
        "<div class=sidebar>{}</div>", "<div class=footer>{}</div>",
    ),
    "bare": ("<div><ul>{}</ul>{}</div>", "<div>{}</div>", "<div>{}</div>", "<div>{}</div>"),
}  # fmt: skip


@dataclass
class ScriptedSite:
    """A site of `size` pages: one is a list of the others, which each visit edits, takes away,
    moves, brings back and makes.
    """

    kind: str
    size: int
    seed: int
    noise: int
    """Kinds of it."""
    noises: ClassVar[Mapping[str, Callable[[Moment], str]]] = NOISE
    edited: float = 0.15
    docs: dict[str, Doc] = field(default_factory=dict)
    answers: dict[str, tuple[str, str]] = field(default_factory=dict)
    """What is said of URLs that are no pages any more (gone, moved, soft), and where they are."""

    def __post_init__(self) -> None:
        rng = random.Random(f"{self.kind} {self.size} {self.seed}")
        self._rng = rng
        self.host = f"https://{self.kind}{self.size}-{self.seed}.example.org/"
        self.style = STYLES[rng.randrange(3)]
        inside = rng.sample([*self.noises], self.noise)
        self.has_names = rng.random() < 0.5
        self.where = {one: rng.choice(("inside", "end", "side", "head")) for one in inside}
        self.pool = [f"{sentence(rng)}" for _ in range(rng.choice((6, 12, 24)))]
        self._ever, self._lines = 0, dict[str, Counter[str]]()
        for _ in range(self.size - 1):
            self._new(0)
        self._away: dict[str, Doc] = {}

    def _new(self, visit: int) -> str:
        self._ever += 1
        url = f"{self.host}{self.kind}/{self._ever:03}"
        self.docs[url] = _doc(self.kind, self._rng, visit)
        return url

    def visits(self, number: int) -> Iterator[tuple[datetime, int, dict[str, str]]]:
        """Yields time, number and what is to be told of each visit, by URL, but for "changed"."""
        for visit in range(number):
            at = START + timedelta(days=visit, minutes=13 * visit)
            if not visit:
                yield at, visit, dict.fromkeys([self.host, *self.docs], "new")
                continue
            yield at, visit, self._step(visit)

    def _step(self, visit: int) -> dict[str, str]:
        rng, told = self._rng, dict[str, str]()
        for url, doc in [*self.docs.items()]:
            fate = rng.random()
            if fate < self.edited:
                EDITS[rng.choice([*EDITS])](doc, rng)
            elif fate < self.edited + 0.035:
                told[url] = self._end(url, visit, fate - self.edited)
        for url in [*self._away]:
            if rng.random() < 0.3 and url not in told:
                self.docs[url] = self._away.pop(url)
                told[url] = "soft back" if self.answers.pop(url)[0] == "soft" else "back"
        if rng.random() < 0.5:
            told[self._new(visit)] = "new"
        if self.kind in ("shop", "events") and visit in (1, 4) and self.seed % 4 == 3:
            self._raise()
        return told

    def _end(self, url: str, visit: int, fate: float) -> str:
        """Takes away a page, or moves it; returns what is to be told."""
        if 0.015 <= fate < 0.03:
            to = f"{url}-{visit}"
            self.docs[to] = self.docs.pop(url)
            self.answers[url] = self._rng.choice((("moved", to), ("gone", "")))
            return "moved"
        how = "gone" if fate < 0.015 else "soft"
        self._away[url] = self.docs.pop(url)
        self.answers[url] = how, ""
        return how

    def _raise(self) -> None:
        """Makes all goods dearer by a tenth, at once."""
        for doc in self.docs.values():
            for label in doc.fields.keys() & {"Price", "Entry"}:
                value = float(doc.fields[label].split()[0]) * 1.1
                doc.fields[label] = f"{value:.2f} EUR"

    def own(self, url: str) -> str:
        """What a page says, as boxes."""
        if url == self.host:
            return self._list()
        doc = self.docs[url]
        bare = self.style == "bare"
        facts = "".join(
            f"<div{'' if bare else f' class={label.lower()}'}>{label}: {value}</div>"
            for label, value in doc.fields.items()
        )
        return f"<h1>{doc.title}</h1>{facts}" + "\0".join(map(self._block, doc.blocks))

    def _block(self, block: Block) -> str:
        tag, said = block
        if tag == "table":
            rows = ("<tr>" + "".join(f"<td>{one}</td>" for one in row) + "</tr>" for row in said)
            return f"<table>{''.join(rows)}</table>"
        if tag == "ul":
            return "<ul>" + "".join(f"<li>{one}</li>" for one in said) + "</ul>"
        if tag == "post":
            box = "<div>" if self.style == "bare" else "<div class=post>"
            return f"{box}<div>{said[0]}</div><p>{said[1]}</p></div>"
        return f"<{tag}>{said}</{tag}>"

    def _list(self) -> str:
        newest = sorted(self.docs.items(), key=lambda one: (-one[1].born, one[0]))[:20]
        items = []
        for url, doc in newest:
            link = f"<a href={url}>{doc.title}</a>"
            if self.kind in ("news", "forum"):
                items.append(f"<li>{link}</li>")
            elif self.kind == "blog":
                items.append(f"<div><h2>{link}</h2><p>{str(doc.blocks[0][1])[:160]}</p></div>")
            else:
                cells = "".join(f"<td>{value}</td>" for value in [link, *doc.fields.values()])
                items.append(f"<tr>{cells}</tr>")
        if self.kind in ("news", "forum"):
            return f"<h1>All of {self.kind}</h1><ul>{chr(0).join(items)}</ul>"
        if self.kind == "blog":
            return f"<h1>All of {self.kind}</h1>" + "\0".join(items)
        return f"<h1>All of {self.kind}</h1><table>{''.join(items)}</table>\0"

    def html(self, url: str, visit: int, at: datetime) -> str:
        """The page of a URL at a visit, with all that is around."""
        rng = random.Random(f"{self.seed} {url} {visit}")
        titles = [doc.title for doc in self.docs.values()]
        doc = self.docs.get(url) or Doc(f"All of {self.kind}", [], 0, START - timedelta(hours=7))
        noise = dict[str, list[str]]()
        for what, where in self.where.items():
            same = random.Random(f"{self.seed} {what} {visit}")
            made = self.noises[what](Moment(rng, same, visit, at, doc, titles, self.pool))
            if self.has_names:
                made = f"<div class={what.split()[-1]}>{made}</div>"
            noise.setdefault(where, []).append(made)
        parts = self.own(url).split("\0")
        at_part = (
            min(1, len(parts) - 1) if "<li>" not in parts[0] and url != self.host else len(parts)
        )
        parts.insert(at_part, "".join(noise.get("inside", [])))
        body = "".join(parts) + "".join(noise.get("end", []))
        menu = "".join(f"<li><a href=/{one}>{one.title()}</a></li>" for one in
                       ("home", "about", "help", "blog" if visit > 2 else "news"))  # fmt: skip
        side, head = "".join(noise.get("side", [])), "".join(noise.get("head", []))
        foot = "<p>© 2026 Example. Call us at 555-0100.</p><p>Terms of use and privacy</p>"
        boxes = _BOXES[self.style]
        return (
            f"<html><head><title>{doc.title} - {self.kind.title()}</title></head><body>"
            + boxes[0].format(menu, head) + boxes[1].format(body) + boxes[2].format(side)
            + boxes[3].format(foot) + "</body></html>"
        )  # fmt: skip

    def lines(self, url: str) -> Counter[str]:
        """What a page says, line by line, without what is around."""
        made = self.own(url).replace("\0", "")
        if made not in self._lines:
            parse = PARSER.parse(content(f"<html><body>{made}</body></html>", url=url))[url]
            self._lines[made] = Counter(parse.text.split("\n"))
        return self._lines[made]

    def write(self, crawl: Path, visits: int) -> Told:
        """Writes the segments; returns what is to be told."""
        told, before = Told(), dict[str, Counter[str]]()
        for at, visit, kinds in self.visits(visits):
            segment = f"{at:%Y%m%d%H%M%S}"
            there = [self.host, *self.docs]
            now = {url: self.lines(url) for url in there}
            for url in there:
                if url in kinds or url not in before:
                    continue
                gone, more = before[url] - now[url], now[url] - before[url]
                if gone or more:
                    told[segment, url] = "changed", frozenset(gone), frozenset(more)
            told |= {(segment, url): (kind, NONE, NONE) for url, kind in kinds.items()}
            before |= now
            self._segment(crawl / "segments" / segment, at, visit)
        return told

    def _segment(self, path: Path, at: datetime, visit: int) -> None:
        with (
            part_writer(path, CRAWL_FETCH, 0) as fetched,
            part_writer(path, PARSE_DATA, 0) as data,
            part_writer(path, PARSE_TEXT, 0) as texts,
        ):
            for url in sorted({self.host, *self.docs, *self.answers}):
                kind, to = self.answers.get(url, ("", ""))
                code, state = {
                    "": (protocol.SUCCESS, status.STATUS_FETCH_SUCCESS),
                    "soft": (protocol.SUCCESS, status.STATUS_FETCH_SUCCESS),
                    "gone": (protocol.NOTFOUND, status.STATUS_FETCH_GONE),
                    "moved": (protocol.MOVED, status.STATUS_FETCH_REDIR_PERM),
                }[kind]
                ended = ProtocolStatus(code, [to] if to else [])
                datum = CrawlDatum(state, 0, 1.0, fetch_time=int(at.timestamp() * 1000))
                datum.metadata = MapWritable({Text("_pst_"): ended})
                fetched(url, datum)
                if state == status.STATUS_FETCH_SUCCESS:
                    html = self.html(url, visit, at) if not kind else self._missing(url, visit, at)
                    parse = PARSER.parse(content(html, url=url))[url]
                    data(url, parse.data)
                    texts(url, ParseText(parse.text))

    def _missing(self, url: str, visit: int, at: datetime) -> str:
        """A page that says with 200 that there is none."""
        held, self.docs[url] = self.docs.get(url), Doc("Page not found", [
            ("p", "Sorry, what you look for is not here any more.")], 0, at)  # fmt: skip
        made = self.html(url, visit, at)
        del self.docs[url]
        if held:
            self.docs[url] = held
        return made
