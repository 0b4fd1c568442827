"""Made-up sites with what the first judge of `minutch changes` (`tests.support.scriptedsites`) does
not have: times and counts within what people write, noise that comes and goes, headings that are
tested, texts by language, prices beside other goods, another design.

    KINDS    thread, comments, changelog, api, jobs, archive, recipes, index
    NOISE    beside the text
    tokens   `[[ago:5]]` within it: another at each visit, and no edit
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar, Final

from tests.support import scriptedsites
from tests.support.scriptedsites import (
    NONE,
    START,
    Block,
    Doc,
    Moment,
    ScriptedSite,
    Told,
    day,
    name,
    price,
    prose,
    sentence,
)  # fmt: skip

KINDS: Final = ("thread", "comments", "changelog", "api", "jobs", "archive", "recipes", "index")
_TOKEN: Final = re.compile(r"\[\[(\w+):([^\]]*)\]\]")
_PEOPLE: Final = ("Ada", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gita", "Hugo", "Iris", "Jan")
_TONGUES: Final = (
    ("Share this page", "Read more about us", "Subscribe to our letter"),
    ("Diese Seite teilen", "Mehr über uns", "Unseren Brief bestellen"),
    ("Partager cette page", "En savoir plus sur nous", "Recevoir notre lettre"),
)


def _ago(at: datetime, hours: int) -> str:
    """How long ago a time is, that many hours before START."""
    gone = int((at - START).total_seconds() // 3600) + hours
    if gone < 24:
        return f"{gone} hours ago"
    if gone < 48:
        return "yesterday"
    days = gone // 24
    return f"{days} days ago" if days < 7 else f"{days // 7} week{'s' * (days > 13)} ago"


def _some(rng: random.Random, items: list[str], most: int) -> list[str]:
    return rng.sample(items, min(most, len(items)))


def _list(head: str, items: list[str]) -> str:
    return f"<h3>{head}</h3><ul>{''.join(f'<li>{one}</li>' for one in items)}</ul>"


NOISE: Final[Mapping[str, Callable[[Moment], str]]] = {
    "stock": lambda m: f"<p>Only {m.rng.randint(2, 40)} left in stock</p>",
    "byline": lambda m: (
        f"<p>By {m.doc.title.split()[0]} · {700 * m.visit + m.rng.randint(9, 700):,} views"
        f" · {2 + len(m.doc.blocks)} minutes</p>"
    ),
    "csrf": lambda m: (
        f"<p>csrf_token={m.rng.getrandbits(96):024x} session {m.rng.getrandbits(40):010X}</p>"
    ),
    "cookies": lambda m: (
        "<div><p>We use cookies and similar things to make this site better.</p>"
        "<p>Accept all</p><p>Reject</p></div>" if m.rng.random() < 0.5 else ""
    ),
    "slots": lambda m: "".join(
        f"<div><p>{m.rng.choice(m.pool)}</p><p>Advertisement</p></div>"
        for _ in range(m.rng.randint(0, 4))
    ),
    "heading": lambda m: "<h2>{}</h2>".format(
        m.rng.choice(("Why people like it", "What others say of it"))
    ),
    "forecast": lambda m: _list("Weather", [
        f"{one} {m.of_visit.randint(-5, 30)}° {m.of_visit.choice(('sun', 'rain', 'fog', 'snow'))}"
        for one in ("Monday", "Tuesday", "Wednesday")]),
    "visitor": lambda m: (
        f"<p>You are visitor no. {20_000 + 3_000 * m.visit + m.rng.randint(1, 2_900)}</p>"
    ),
    "tongue": lambda m: "".join(f"<p>{one}</p>" for one in m.of_visit.choice(_TONGUES)),
    "poll": lambda m: (
        f"<p>Yes {m.rng.randint(20, 80)}% No {m.rng.randint(9, 60)}%, {40 * m.visit} votes</p>"
    ),
    "latest comments": lambda m: _list("Latest comments", [
        f"{m.of_visit.choice(_PEOPLE)} on {one}"
        for one in _some(m.of_visit, sorted(m.titles), 4)]),
    "online": lambda m: (
        f"<p>Online now: {', '.join(_some(m.rng, [*_PEOPLE], m.rng.randint(2, 5)))}</p>"
    ),
    "tip": lambda m: f"<div>Tip: {m.rng.choice(m.pool[:5])}</div>",
    "sponsor": lambda m: f"<p>Sponsored by {m.rng.choice(_PEOPLE)} and sons</p>",
    "likes": lambda m: (
        f"<p>{30 * m.visit + m.rng.randint(1, 29)} likes"
        f" · {m.visit * 5 + m.rng.randint(0, 4)} shares</p>"
    ),
    "captcha": lambda m: f"<p>What is {m.rng.randint(1, 9)} plus {m.rng.randint(1, 9)}?</p>",
    "countdown": lambda m: (
        f"<p>The offer ends in {60 - m.visit} days {m.rng.randint(0, 23)} hours</p>"
    ),
    "banner": lambda m: (
        f"<p>Maintenance: on {m.at:%A} this site is slow.</p>" if m.of_visit.random() < 0.4 else ""
    ),
    "goods": lambda m: _list("Others bought", [
        f"<a href=#>{one}</a> <b>{price(m.rng)} EUR</b>" for one in _some(m.rng, m.titles, 3)]),
    "rating": lambda m: (
        f"<p>Rated {m.rng.uniform(3, 5):.1f} of 5"
        f" by {9 * m.visit + m.rng.randint(1, 9)} people</p>"
    ),
    "teasers": lambda m: "".join(
        f"<div><a href=#>{one}</a><p>{m.rng.choice(m.pool)}</p></div>"
        for one in _some(m.rng, m.titles, 3)),
}  # fmt: skip
"""Each makes of a moment what stands in a page beside its own text."""


def _comment(rng: random.Random, hours: int) -> tuple[str, list[str]]:
    return "post", [f"{rng.choice(_PEOPLE)} wrote [[ago:{hours}]]", prose(rng)]


def _release(rng: random.Random, nth: int) -> list[tuple[str, str | list[str]]]:
    return [("h2", f"Version 1.{nth} of {day(rng, -90, 0)}"),
            ("ul", [sentence(rng) for _ in range(rng.randint(1, 4))])]  # fmt: skip


def _posts(rng: random.Random) -> list[Block]:
    return [
        ("post", [f"{rng.choice(_PEOPLE)} ([[posts:{rng.randint(5, 900)}]] posts) wrote on"
                  f" {day(rng, -200, 0)}", prose(rng)])
        for _ in range(rng.randint(2, 6))
    ]  # fmt: skip


def _calls(rng: random.Random) -> list[Block]:
    made: list[Block] = [("p", "Since version [[version:2]]. See also the guide.")]
    for _ in range(rng.randint(2, 4)):
        call = f"{name(rng).lower().replace(' ', '_')}({rng.choice('abc')}, {rng.choice('xyz')})"
        made += [("h2", call), ("pre", f"{call} -> {rng.randint(1, 99)}"), ("p", prose(rng))]
    return made


def _sections(rng: random.Random) -> list[Block]:
    made: list[Block] = []
    for _ in range(2):
        made += [("h2", name(rng)), ("p", prose(rng)), ("p", prose(rng))]
    return [*made, ("p", f"This page was accessed [[read:{rng.randint(1, 9)}]] times.")]


def _fields(kind: str, rng: random.Random) -> dict[str, str]:
    if kind == "jobs":
        place = rng.choice(("Harbour", "Valley", "Bridge"))
        salary = f"{rng.randint(30, 90)} 000 EUR"
        return {"Salary": salary, "Begins": day(rng), "Place": place}
    return {"Takes": f"{rng.randint(10, 90)} minutes", "Serves": f"{rng.randint(1, 8)}"}


def made(kind: str, rng: random.Random, visit: int) -> Doc:
    doc = Doc(name(rng), [], visit, START - timedelta(hours=rng.randint(1, 90)))
    text: list[Block] = [("p", prose(rng)) for _ in range(rng.randint(2, 5))]
    if kind == "thread":
        text = _posts(rng)
    elif kind == "comments":
        text += [("p", "[[read:7]] people have read this"), ("h2", "Comments")]
        text += [_comment(rng, rng.randint(1, 400)) for _ in range(rng.randint(1, 5))]
    elif kind == "changelog":
        text = [text[0]]
        for nth in range(rng.randint(2, 5), 0, -1):
            text += _release(rng, nth)
    elif kind == "api":
        text = [*_calls(rng), *text]
    elif kind == "archive":
        text += _sections(rng)
    elif kind in ("jobs", "recipes"):
        doc.fields = _fields(kind, rng)
        text.append(("ul", [f"{rng.randint(2, 900)} g of {name(rng).lower()}" for _ in range(5)]))
    else:
        rows = [[name(rng), f"{rng.randint(1, 99)},{rng.randint(0, 9)}", day(rng)]
                for _ in range(8)]  # fmt: skip
        text.append(("table", rows))
    doc.blocks = text
    return doc


@dataclass
class OddSite(ScriptedSite):
    """A site whose pages have tokens; of every third the design changes at the third visit."""

    noises: ClassVar[Mapping[str, Callable[[Moment], str]]] = NOISE

    def _new(self, visit: int) -> str:
        self._ever += 1
        url = f"{self.host}{self.kind}/{self._ever:03}"
        self.docs[url] = made(self.kind, self._rng, visit)
        return url

    def _edit(self, doc: Doc) -> None:
        """An edit that is of this kind of site, or another."""
        rng, often = self._rng, self._rng.random() < 0.5
        if self.kind == "changelog" and often:
            doc.blocks[1:1] = _release(rng, sum(tag == "h2" for tag, _ in doc.blocks) + 1)
        elif self.kind == "comments" and often:
            doc.blocks.append(_comment(rng, -24 * self._visit + rng.randint(1, 20)))
        elif self.kind in ("jobs", "recipes") and often:
            label = rng.choice([*doc.fields])
            doc.fields[label] = _fields(self.kind, rng)[label]
        else:
            held = {at: block for at, block in enumerate(doc.blocks) if "[[" in str(block[1])}
            how = rng.choice(("word", "more", "less", "cell", "item", "title"))
            scriptedsites.EDITS[how](doc, rng)
            if how in ("word", "cell"):
                # Nobody edits a counter.
                for at, block in held.items():
                    doc.blocks[at] = block if block[0] == "p" else doc.blocks[at]

    def _step(self, visit: int) -> dict[str, str]:
        self._visit, held, self.edited = visit, self.edited, 0.0
        told = super()._step(visit)
        self.edited = held
        still = told.keys() | {to for _, to in self.answers.values()}
        for url, doc in self.docs.items():
            if url not in still and doc.born < visit and self._rng.random() < held:
                self._edit(doc)
        if visit == 2 and self.seed % 3 == 1:
            self.style = scriptedsites.STYLES[(scriptedsites.STYLES.index(self.style) + 1) % 3]
        return told

    def _said(self, text: str, url: str, visit: int, at: datetime) -> str:
        def put(found: re.Match[str]) -> str:
            what, arg = found.groups()
            rng = random.Random(f"{self.seed} {url} {visit} {what} {arg}")
            if what == "ago":
                return _ago(at, int(arg))
            if what == "posts":
                return str(int(arg) + visit * 3 + rng.randint(0, 2))
            if what == "read":
                return str(int(arg) * 400 + visit * 90 + rng.randint(1, 80))
            return f"{arg}.{visit // 2}"

        return _TOKEN.sub(put, text)

    def html(self, url: str, visit: int, at: datetime) -> str:
        return self._said(super().html(url, visit, at), url, visit, at)

    def write(self, crawl: Path, visits: int) -> Told:
        told, before, said = Told(), dict[str, Counter[str]](), dict[str, tuple[int, datetime]]()
        for at, visit, kinds in self.visits(visits):
            segment = f"{at:%Y%m%d%H%M%S}"
            there = [self.host, *self.docs]
            now = {url: self.lines(url) for url in there}
            for url in there:
                if url in kinds or url not in before:
                    continue
                gone, more = before[url] - now[url], now[url] - before[url]
                if gone or more:
                    told[segment, url] = (
                        "changed",
                        frozenset(self._said(one, url, *said[url]) for one in gone),
                        frozenset(self._said(one, url, visit, at) for one in more),
                    )
            told |= {(segment, url): (kind, NONE, NONE) for url, kind in kinds.items()}
            before |= now
            said |= dict.fromkeys(there, (visit, at))
            self._segment(crawl / "segments" / segment, at, visit)
        return told
