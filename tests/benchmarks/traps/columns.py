"""A crawl without requests: rounds of generate's rule for patterns over columns, of a web."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from minutch.conf import Configuration
from minutch.cycle.fetchlist.allowances import NO_DOUBTS
from minutch.cycle.fetchlist.budget import PatternBudget
from minutch.cycle.fetchlist.select import ranks_in
from minutch.cycle.parse.signature import TextShapeSignature
from minutch.records.crawldatum import (
    STATUS_DB_FETCHED,
    STATUS_DB_GONE,
    STATUS_DB_NOTMODIFIED,
    STATUS_DB_REDIR_TEMP,
    STATUS_DB_UNFETCHED,
)
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA
from minutch.records.protocol import Content
from minutch.urls.patterns import DOUBTS, Doubts
from tests.benchmarks.traps.web import Page, Site, answer

_DOUBTS = Doubts.of(Configuration().with_values({DOUBTS: "doubtful-names.txt"}))
_LINKS = {"key": pl.Binary, "from_url": pl.Binary}
_HOUR = 3_600_000
_CODES = {200: STATUS_DB_FETCHED, 302: STATUS_DB_REDIR_TEMP, 404: STATUS_DB_GONE}


@dataclass
class _Entry:
    status: int = STATUS_DB_UNFETCHED
    time: int = 0
    """When it was asked for, or found."""
    score: float = 1.0
    signature: bytes | None = None


@dataclass
class ColumnCrawl:
    """A crawl of a web from the home page of each site, with the exploration `explore`. Links that
    begin with two slashes lead to other hosts; one below a host of the web is the same site, those
    outside the web are left.
    """

    web: Mapping[str, Site]
    explore: int
    entries: dict[str, _Entry] = field(default_factory=dict)
    contents: set[str] = field(default_factory=set)
    """The honest content that was found."""
    good: Counter[str] = field(default_factory=Counter)
    """By site, the requests that found some first."""
    asked: Counter[str] = field(default_factory=Counter)
    """By site, all requests."""
    rounds: int = 0
    by: dict[str, list[str]] = field(default_factory=dict)
    """The pages that lead to each URL, by when they were asked for."""
    cap: int = 1 << 62
    """Requests, at most."""
    has_doubts: bool = True
    """Whether what names let expect counts, as in new crawls."""
    again: int = 0
    """Rounds after which a page is asked for again; 0: never."""

    def __post_init__(self) -> None:
        self.entries |= {f"http://{name}/": _Entry() for name in self.web}

    def round(self) -> int:
        """Asks for what is due; returns how many pages these were."""
        chosen = self._due()
        start, found = self.rounds * _HOUR, dict[str, float]()
        self.rounds += 1
        for number, url in enumerate(chosen):
            host, _, target = url.removeprefix("http://").partition("/")
            name, entry = self._site(host), self.entries[url]
            assert name is not None
            page = answer(self.web[name], f"/{target}")
            self.asked[name] += 1
            if page.content is not None and page.content not in self.contents:
                self.contents.add(page.content)
                self.good[name] += 1
            before, entry.signature = entry.signature, _signature(page)
            entry.status, entry.time = _CODES[page.status], start + number
            if before == entry.signature and page.text:
                entry.status = STATUS_DB_NOTMODIFIED
            targets = (link for link in (page.location, *page.links) if link)
            links = {
                f"http:{link}" if link.startswith("//") else f"http://{host}{link}"
                for link in targets
            }
            links = {link for link in links if self._site(link.split("/")[2])}
            for link in links:
                found[link] = found.get(link, 0.0) + entry.score / len(links)
                if url not in (by := self.by.setdefault(link, [])):
                    by.append(url)
        for link, score in found.items():
            if link in self.entries:
                self.entries[link].score += score
            else:
                self.entries[link] = _Entry(time=start + _HOUR // 2, score=score)
        return len(chosen)

    def _site(self, host: str) -> str | None:
        while host and host not in self.web:
            host = host.partition(".")[2]
        return host or None

    def _due(self) -> list[str]:
        now, interval = self.rounds * _HOUR, self.again * _HOUR
        rows = [
            (
                url.encode(),
                entry.status,
                entry.time + (entry.status != STATUS_DB_UNFETCHED) * interval,
                0,
                0,
                interval // 1000,
                entry.score,
                entry.signature,
                None,
            )
            for url, entry in self.entries.items()
        ]
        table = pl.DataFrame(rows, schema=CRAWLDB_SCHEMA, orient="row")
        table = table.with_columns(sort="score")

        def due(some: pl.DataFrame) -> pl.DataFrame:
            is_due = pl.col("fetch_time") <= now if self.again else False
            return some.filter((pl.col("status") == STATUS_DB_UNFETCHED) | is_due)

        entries = due(table)
        if self.explore > 0:
            links = [(url.encode(), one.encode()) for url, by in self.by.items() for one in by]
            budget = PatternBudget.of(
                lambda: [table[:1000], table[1000:]],
                len(table),
                self.explore,
                due=due,
                pending=lambda some: pl.repeat(False, len(some), eager=True),
                memory=1 << 30,
                links=lambda: [pl.DataFrame(links, schema=_LINKS, orient="row")],
                doubts=_DOUBTS if self.has_doubts else NO_DOUBTS,
            )
            entries = entries.filter(budget.have_place(entries))
        left = self.cap - self.asked.total()
        entries = entries[np.argsort(ranks_in(entries))[:left]]
        return [key.decode() for key in entries["key"]]


_SIGNATURE = TextShapeSignature(Configuration())


def _signature(page: Page) -> bytes:
    """As new crawls have it; of a redirect its target, which stands in its metadata there."""
    return _SIGNATURE.calculate(Content(), page.text) if page.text else page.location.encode()
