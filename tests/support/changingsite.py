"""A made-up site whose pages are edited by a script, with noise around: dates, counters,
advertisements, tokens, what is related, menus, order, spaces. Parsed as a crawl does it.

`ChangingSite.write` makes segments of it, and says what a reader is to be told: by segment and URL
the kind, and of what has changed the lines that were and are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from minutch.cycle.parse.dispatch import ParseUtil
from minutch.cycle.segment.store import CRAWL_FETCH, PARSE_DATA, PARSE_TEXT, part_writer
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.records import crawldatum as status
from minutch.records import protocol
from minutch.records.crawldatum import CrawlDatum
from minutch.records.parsedata import ParseText
from minutch.records.protocol import ProtocolStatus
from tests.support.pages import configuration, content

HOST: Final = "https://www.example.org/"
START: Final = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
PARSER: Final = ParseUtil(configuration(**{"parser.html.text": "blocks"}))
_SYLLABLES: Final = [a + b for a in "bkrtmslvndpghjf" for b in "aeiou"]
_NOUNS: Final = [
    *("kettle", "lamp", "table", "bridge", "engine", "garden", "letter", "window", "market"),
    "harbour",
]

Change = tuple[str, frozenset[str], frozenset[str]]
"""Kind, lines removed, lines added."""
Told = dict[tuple[str, str], Change]
"""Changes by segment and URL."""
NONE: Final = frozenset[str]()


def word(rng: random.Random) -> str:
    return "".join(rng.choices(_SYLLABLES, k=rng.randint(1, 3)))


def sentence(rng: random.Random, words: int = 12) -> str:
    return " ".join(word(rng) for _ in range(words)).capitalize() + "."


Edit = Callable[["Doc", int, random.Random], object]


@dataclass
class Doc:
    """The blocks of a page that are its own, by name: title, paragraphs, facts."""

    title: str
    paragraphs: list[str]
    version: str
    price: str
    event: str
    tags: list[str]
    since: datetime
    kind: str

    def lines(self) -> list[str]:
        """What a reader is to see of it, line by line."""
        facts = [self.version, f"Price {self.price}", f"The next meeting is on {self.event}"]
        return [self.title, *self.paragraphs, *facts]


def _version(rng: random.Random) -> str:
    return f"Version {rng.randint(1, 9)}.{rng.randint(0, 40)}.{rng.randint(0, 40)}"


def _price(rng: random.Random) -> str:
    return f"{rng.randint(1, 900)}.{rng.randint(10, 99)} EUR"


def _event(rng: random.Random) -> str:
    day = START + timedelta(rng.randint(0, 300))
    return f"{day.day} {day:%B %Y}"


def _in_words(change: Callable[[list[str], int, random.Random], object]) -> Edit:
    """An edit that changes the words of a paragraph, at one of them."""

    def edit(doc: Doc, at: int, rng: random.Random) -> None:
        words = doc.paragraphs[at].split()
        change(words, rng.randrange(len(words)), rng)
        doc.paragraphs[at] = " ".join(words)

    return edit


def _cut(doc: Doc, at: int, rng: random.Random) -> None:
    if len(doc.paragraphs) > 2:
        del doc.paragraphs[at]


def _title(doc: Doc, at: int, rng: random.Random) -> None:
    doc.title = f"{doc.title.split(' ')[0]} {word(rng)} {word(rng)}".capitalize()


EDITS: Final[Mapping[str, Edit]] = {
    "a word is another": _in_words(lambda words, at, rng: words.__setitem__(at, word(rng) + "x")),
    "a word more": _in_words(lambda words, at, rng: words.insert(at, word(rng) + "y")),
    "a word less": _in_words(lambda words, at, rng: words.pop(at)),
    "a paragraph is another": lambda doc, at, rng: doc.paragraphs.__setitem__(
        at, sentence(rng, 25)
    ),
    "a paragraph more": lambda doc, at, rng: doc.paragraphs.insert(at, sentence(rng, 20)),
    "a paragraph less": _cut,
    "title": _title,
    "version": lambda doc, at, rng: setattr(doc, "version", _version(rng)),
    "price": lambda doc, at, rng: setattr(doc, "price", _price(rng)),
    "date of an event": lambda doc, at, rng: setattr(doc, "event", _event(rng)),
}
"""What a reader would like to know."""


@dataclass
class ChangingSite:
    """`pages` pages at `visits` visits; at each, `edited` of them are edited."""

    seed: int
    pages: int = 60
    visits: int = 5
    edited: float = 0.12
    moves: bool = True
    noise: frozenset[str] = frozenset()
    """What is left out of it: names of `NOISE`."""
    docs: dict[str, Doc] = field(default_factory=dict)
    _gone: dict[str, Doc] = field(default_factory=dict)
    _answers: dict[str, tuple[str, str]] = field(default_factory=dict)
    """What the server says of URLs that are no pages any more, and where they are."""

    def _doc(self, rng: random.Random) -> Doc:
        noun = rng.choice(_NOUNS)
        return Doc(
            f"{noun} {word(rng)} {word(rng)}".capitalize(),
            [sentence(rng, rng.randint(12, 40)) for _ in range(rng.randint(2, 6))],
            _version(rng),
            _price(rng),
            _event(rng),
            [word(rng) for _ in range(5)],
            START - timedelta(hours=rng.randint(1, 400)),
            rng.choice(("news", "shop", "wiki")),
        )

    def write(self, crawl: Path) -> Told:
        """Writes the segments; returns what is to be told."""
        rng, told = random.Random(self.seed), Told()
        for number in range(self.pages):
            self.docs[f"{HOST}{rng.choice(('a', 'b', 'c'))}/{number:04}"] = self._doc(rng)
        for visit in range(self.visits):
            at = START + timedelta(days=7 * visit, minutes=13 * visit)
            name = f"{at:%Y%m%d%H%M%S}"
            changes = self._step(rng) if visit else dict.fromkeys(self.docs, ("new", NONE, NONE))
            told |= {(name, url): change for url, change in changes.items()}
            self._segment(crawl / "segments" / name, at, visit, rng)
        return told

    def _step(self, rng: random.Random) -> dict[str, Change]:
        """Edits, removes, moves and brings back pages; returns what is to be told, by URL."""
        told: dict[str, Change] = {}
        for url, doc in [*self.docs.items()]:
            fate = rng.random()
            if fate < self.edited:
                before = frozenset(doc.lines())
                EDITS[rng.choice([*EDITS])](doc, rng.randrange(len(doc.paragraphs)), rng)
                after = frozenset(doc.lines())
                if before != after:
                    told[url] = "changed", before - after, after - before
            elif self.moves and fate < self.edited + 0.02:
                self._gone[url] = self.docs.pop(url)
                self._answers[url] = "gone", ""
                told[url] = "gone", NONE, NONE
            elif self.moves and fate < self.edited + 0.04:
                self.docs[url + "-moved"] = self.docs.pop(url)
                told[url] = "moved", NONE, NONE
                self._answers[url] = rng.choice((("moved", url + "-moved"), ("gone", "")))
        for url in [*self._gone]:
            if rng.random() < 0.3 and url not in told:
                self.docs[url] = self._gone.pop(url)
                del self._answers[url]
                told[url] = "back", NONE, NONE
        if self.moves:
            url = f"{HOST}new/{rng.getrandbits(32)}"
            self.docs[url] = self._doc(rng)
            told[url] = "new", NONE, NONE
        return told

    def _segment(self, path: Path, at: datetime, visit: int, rng: random.Random) -> None:
        order = sorted(self.docs)
        with (
            part_writer(path, CRAWL_FETCH, 0) as fetched,
            part_writer(path, PARSE_DATA, 0) as data,
            part_writer(path, PARSE_TEXT, 0) as texts,
        ):
            for url in sorted({*self.docs, *self._answers}):
                kind, to = self._answers.get(url, ("", ""))
                code, state = {
                    "": (protocol.SUCCESS, status.STATUS_FETCH_SUCCESS),
                    "gone": (protocol.NOTFOUND, status.STATUS_FETCH_GONE),
                    "moved": (protocol.MOVED, status.STATUS_FETCH_REDIR_PERM),
                }[kind]
                ended = ProtocolStatus(code, [to] if to else [])
                datum = CrawlDatum(state, 0, 1.0, fetch_time=int(at.timestamp() * 1000))
                datum.metadata = MapWritable({Text("_pst_"): ended})
                fetched(url, datum)
                if not kind:
                    html = self.html(url, order, at, visit, rng)
                    parse = PARSER.parse(content(html, url=url))[url]
                    data(url, parse.data)
                    texts(url, ParseText(parse.text))

    def html(self, url: str, order: list[str], at: datetime, visit: int, rng: random.Random) -> str:
        """The page of a URL at a visit."""
        doc = self.docs[url]

        def noisy(name: str, make: Callable[[], str]) -> str:
            return "" if name in self.noise else make()

        ago = int((at - doc.since).total_seconds() // 3600)
        menu = [("/", "Home"), ("/shop", "Shop"), ("/news", "News"), ("/help", "Help and contact")]
        if visit >= 2:  # once, the menu gets an entry and loses another
            menu[2] = ("/blog", "Our blog")
        session = f"{rng.getrandbits(64):016x}"
        links = "".join(f"<li><a href='{to}?sid={session}'>{text}</a></li>" for to, text in menu)
        related = rng.sample(order, min(4, len(order)))
        other = "".join(f"<li><a href='{to}'>{self.docs[to].title}</a></li>" for to in related)
        tags = rng.sample(doc.tags, len(doc.tags))
        views = 1000 * visit + rng.randint(100, 900)
        quotes = [f"I like it, says {name}, and will buy it again soon." for name in
                  ("Ada", "Bob", "Cleo", "Dan", "Eve", "Finn")]  # fmt: skip
        ads = [f"Buy {noun} {n} now, it is cheap today!" for n, noun in enumerate(_NOUNS)]
        variant = rng.choice(("Order now and save", "Put it into your basket", "Get yours today"))
        body = [f"<p>{' '.join(text.split(' '))}</p>" for text in doc.paragraphs]
        if rng.random() < 0.5:
            body = [text.replace(" ", "\n  ", 3) for text in body]
        body.insert(1, noisy("ads", lambda: f"<p>{rng.choice(ads)}</p>"))
        body.append(noisy("views", lambda: f"<p>Viewed {views:,} times</p>"))
        news = [f"News of week {visit - n}: {_NOUNS[(visit - n) % 10]}" for n in range(3)]
        return f"""<html><head><title>{doc.title}</title><meta name=csrf content={session}></head>
<body id=b{rng.getrandbits(32)} class="page"><header class=top><a class=logo href=/>Example</a>
<nav class=menu><ul>{links}</ul></nav>
{noisy("date", lambda: f"<p class=date>{at:%A, %d %B %Y, %H:%M}</p>")}</header>
<main class=main><article class={doc.kind}><h1>{doc.title}</h1>
{noisy("ago", lambda: f"<p class=meta>Posted {ago} hours ago by {doc.kind}</p>")}
{"".join(body)}
<ul class=facts><li>{doc.version}</li><li>Price {doc.price}</li>
<li>The next meeting is on {doc.event}</li></ul>
{noisy("variant", lambda: f"<p class=call>{variant}</p>")}
{noisy("quote", lambda: f"<blockquote class=said><p>{rng.choice(quotes)}</p></blockquote>")}
{noisy("tags", lambda: f"<p class=tags>Tags: {', '.join(tags)}</p>")}
<form><input type=hidden name=token value={session}></form></article>
<aside class=side><h3>Related</h3><ul>{noisy("related", lambda: other)}</ul><h3>Latest</h3>
<ul>{"".join(f"<li>{one}</li>" for one in news)}</ul>
{noisy("ticker", lambda: f"<p class=ticker>EUR/USD {rng.uniform(1, 1.2):.4f}</p>")}</aside></main>
<footer class=foot><p>© {2026 + visit // 4} Example. {rng.randint(1, 99)} visitors are online.</p>
<p>{noisy("token", lambda: f"Request {session}, {rng.randint(5, 900)} ms")}</p></footer>
</body></html>"""
