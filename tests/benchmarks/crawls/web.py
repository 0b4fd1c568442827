"""Makes pages that link to one another across hosts: a tree from page 0, and links back; or takes
real pages, whose links it leads to one another.

Page n leads to the pages BRANCHES * n + 1 and following, and to others before it: to a few that all
pages lead to, as a menu does, and to any. So a crawl of 20,000 pages has six rounds, as none can
find a page before the one above it. A host is a loopback address: names need no DNS.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final
from zlib import crc32

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
    scheme: str = "http"

    def address(self, host: int) -> str:
        """The address of a host."""
        return f"127.0.{1 + host // 200}.{1 + host % 200}"

    def url(self, number: int) -> str:
        """A page's URL."""
        host = self.address(number % self.hosts)
        return page_url(host, self.port, number, self.pages, self.scheme)

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


@dataclass(frozen=True)
class RealWeb(Web):
    """The pages of a folder. All that they link to is theirs: links of `a` elements lead to pages,
    the same target to the same one, those of other elements to images; and after the body's tag
    stand the links of the tree, so that a limit of links does not cut these off.
    """

    folder: Path = Path()

    @classmethod
    def of(cls, folder: Path, hosts: int, port: int, scheme: str = "http") -> RealWeb:
        """Those of at most a megabyte, as much as Nutch takes of a page; two at least."""
        count = len(_files(folder))
        return cls(count, min(hosts, count), port, scheme, folder)

    def bodies(self) -> Iterator[bytes]:
        """All pages, in the order of their numbers."""
        for number, path in enumerate(_files(self.folder)):
            first = BRANCHES * number + 1
            below = range(min(first, self.pages), min(first + BRANCHES, self.pages))
            links = "".join(map(self._link, below))
            tree = f"<nav><!--<title>{title(number)}</title>-->{links}</nav>".encode()
            page = self._made_ours(path.read_bytes())
            body = next((tag for tag in _BODY.finditer(page) if tag[1]), None)
            at = len(page) if body is None else body.end()
            yield page[:at] + tree + page[at:]

    def _made_ours(self, page: bytes) -> bytes:
        for pattern, instead in _NEITHER:
            page = pattern.sub(instead, page)
        page = _HOST.sub(lambda host: self._site(host[0]), page)
        return _LINK.sub(self._led, page)

    def _site(self, host: bytes) -> bytes:
        return f"{self.scheme}://{self.address(crc32(host) % self.hosts)}:{self.port}".encode()

    def _led(self, link: re.Match[bytes]) -> bytes:
        tag, quote, target = link["tag"], link["quote"], link["target"]
        if tag.lower().startswith(b"<a"):
            target = self._urls[crc32(target) % self.pages]
        else:
            target = re.sub(rb"[^\w/:.-]", b"_", target)[:-4] + b".gif"
        return tag + quote + target + quote

    @cached_property
    def _urls(self) -> list[bytes]:
        return [self.url(number).encode() for number in range(self.pages)]


_MOST_BYTES: Final = 1 << 20
_ROOM: Final = 1 << 14
"""Bytes that a page of ours has more than that which it is made of, at most."""
_HOST: Final = re.compile(rb"(?:https?:)?//[\w-]+(?:\.[\w-]+)+(?::\d+)?", re.IGNORECASE)
_LINK: Final = re.compile(
    rb"(?P<tag><[a-z][^<>]*?\s(?:href|src|action|data)\s*=\s*)"
    rb"(?P<quote>[\"'])(?P<target>(?!#|[a-z]+:(?!//))[^\"'<>]+)(?P=quote)",
    re.IGNORECASE,
)
_NEITHER: Final = (
    (re.compile(rb"nofollow", re.IGNORECASE), b"follow"),
    (re.compile(rb"<base\b", re.IGNORECASE), b"<basis"),
    (re.compile(rb"(http-equiv\s*=\s*[\"']?)refresh", re.IGNORECASE), rb"\1refreshed"),
)
"""What would keep a crawler from following links, or lead them elsewhere."""
_BODY: Final = re.compile(
    rb"<!--.*?-->|<(?:script|style)\b.*?</(?:script|style)|(<body\b[^>]*>)",
    re.IGNORECASE | re.DOTALL,
)


def _files(folder: Path) -> list[Path]:
    paths = sorted(folder.rglob("*.html"))
    return [path for path in paths if 0 < path.stat().st_size < _MOST_BYTES - _ROOM]


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
