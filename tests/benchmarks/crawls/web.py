"""Makes pages that link to one another across hosts: a tree from page 0, and links back.

Page n leads to the pages BRANCHES * n + 1 and following, and to others before it: to a few that all
pages lead to, as a menu does, and to any. So a crawl of 20,000 pages has six rounds, as none can
find a page before the one above it. A host is a loopback address: names need no DNS.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.benchmarks.pageserver import page_url

BRANCHES: Final = 8
_MENU: Final = BRANCHES + 1
_OTHERS: Final = 23
_SIZE: Final = 14_800
_PARAGRAPHS: Final = 500
_WORDS: Final = 3_000
_SYLLABLES: Final = (
    *("ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu"),
    *("ra", "se", "ti", "vo", "wu", "za", "che", "dri", "flo", "sta"),
)


@dataclass(frozen=True)
class Web:
    """So many pages of about 15 KB, the same at every run but for the port."""

    pages: int
    hosts: int
    port: int

    def url(self, number: int) -> str:
        """A page's URL."""
        host = number % self.hosts
        address = f"127.0.{1 + host // 200}.{1 + host % 200}"
        return page_url(address, self.port, number, self.pages)

    @property
    def levels(self) -> int:
        """Rounds after which all pages are there."""
        last, found = 0, 1
        while last < self.pages - 1:
            last, found = BRANCHES * (last + 1), found + 1
        return found

    def bodies(self) -> Iterator[bytes]:
        """All pages, in the order of their numbers."""
        chance = random.Random(1)
        paragraphs = _paragraphs(chance)
        menu = "".join(self._link(page, f"Part {page}") for page in range(min(_MENU, self.pages)))
        for number in range(self.pages):
            first = BRANCHES * number + 1
            below = range(min(first, self.pages), min(first + BRANCHES, self.pages))
            before = [chance.randrange(number + 1) for _ in range(_OTHERS)]
            yield _page(
                chance, number, menu, [self._link(p) for p in (*below, *before)], paragraphs
            )

    def _link(self, page: int, words: str = "") -> str:
        return f'<a class="ref" href="{self.url(page)}">{words or f"see page {page}"}</a>\n'


def title(number: int) -> str:
    """What a page's title is."""
    return f"Page {number} of the web"


def _paragraphs(chance: random.Random) -> list[str]:
    words = ["".join(chance.choices(_SYLLABLES, k=chance.randint(1, 4))) for _ in range(_WORDS)]
    often = [1 / rank for rank in range(1, _WORDS + 1)]
    return [" ".join(chance.choices(words, often, k=40)) for _ in range(_PARAGRAPHS)]


def _page(
    chance: random.Random, number: int, menu: str, links: list[str], paragraphs: list[str]
) -> bytes:
    name = title(number)
    parts = [
        f"<!DOCTYPE html><html><head><meta charset=utf-8><title>{name}</title></head>\n"
        f"<body><nav>{menu}</nav>\n<main><h1>{name}</h1>\n"
    ]
    size = len(parts[0]) + sum(map(len, links))
    while size < _SIZE or links:
        text, link = chance.choice(paragraphs), links.pop() if links else ""
        parts.append(f'<div class="section"><h3>{text[:30]}</h3>\n<p>{text} {link}</p></div>\n')
        size += len(text) + 80
    return "".join([*parts, "</main></body></html>\n"]).encode()
