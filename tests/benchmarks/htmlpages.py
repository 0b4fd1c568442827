"""The pages that benchmarks fetch and parse: HTML from Debian's documentation packages, the same
choice at every run.

    apt-get install --no-install-recommends apache2-doc debian-handbook git-doc \
        postgresql-doc-15 python-django-doc python-sqlalchemy-doc

These packages have some 6,300 pages of 2 to 200 KB in 26 languages. A page is chosen by the hash of
its path, so that another release of a package changes little. Where too few are installed, pages
are made up, and a message says so.
"""

from __future__ import annotations

import logging
import random
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

PAGES: Final = 2000
FEWEST: Final = 100
"""Real pages below which made-up ones are taken instead."""
SMALLEST: Final = 2_000
LARGEST: Final = 200_000
PACKAGES: Final = (
    "apache2-doc",
    "debian-handbook",
    "git-doc",
    "postgresql-doc-*",
    "python-django-doc",
    "python-sqlalchemy-doc",
)
DOCUMENTATION: Final = Path("/usr/share/doc")

_WORDS: Final = (
    *("crawl", "page", "link", "text", "host", "queue", "fetch", "robot"),
    *("index", "score", "parse", "segment", "graph", "shard", "token", "anchor"),
)


@dataclass(frozen=True)
class Corpus:
    """Some pages and where they are from."""

    pages: list[bytes]
    source: str

    @property
    def mean_bytes(self) -> float:
        """Mean size of a page."""
        return statistics.fmean(map(len, self.pages))

    def __str__(self) -> str:
        return f"{len(self.pages):,} pages, mean {self.mean_bytes / 1000:.1f} KB ({self.source})"


def corpus(count: int = PAGES, folder: Path | None = None, largest: int = LARGEST) -> Corpus:
    """`count` pages of the packages, of `folder` if that is given, or made-up ones if there are
    hardly any.
    """
    folders = (
        sorted(path for name in PACKAGES for path in DOCUMENTATION.glob(name))
        if folder is None
        else [folder]
    )
    pages = real_pages(folders, count, largest)
    if len(pages) >= min(count, FEWEST):
        return Corpus(pages, "Debian's documentation packages" if folder is None else str(folder))
    log.warning(
        "%d HTML files found (%s): taking made-up pages",
        len(pages),
        ", ".join(map(str, folders or PACKAGES)),
    )
    return Corpus(made_up_pages(count), "made up")


def real_pages(folders: Iterable[Path], count: int, largest: int = LARGEST) -> list[bytes]:
    """At most `count` HTML files below `folders`, each smaller than `largest` bytes."""
    found = [
        (
            blake2b(
                str(path.relative_to(folder)).encode("utf-8", "surrogateescape"), digest_size=8
            ).digest(),
            path,
        )
        for folder in folders
        for path in folder.rglob("*.html")
        if path.is_file() and not path.is_symlink() and SMALLEST <= path.stat().st_size < largest
    ]
    return [path.read_bytes() for _, path in sorted(found)[:count]]


def made_up_pages(count: int) -> list[bytes]:
    """Pages of about 22 KB with 50 links, a third of them in a menu that all pages share."""
    rng = random.Random(1)
    menu = "".join(
        f'<li><a href="/section{i}/index.html">Section {i}</a></li>\n' for i in range(16)
    )
    return [_made_up_page(rng, menu, number).encode() for number in range(count)]


def _made_up_page(rng: random.Random, menu: str, number: int) -> str:
    parts = []
    for _ in range(34):
        text = " ".join(rng.choices(_WORDS, k=80))
        target = f"../topic{rng.randrange(900)}/page{rng.randrange(9000)}.html"
        link = f'<a class="ref internal" href="{target}">{text[:20]}</a>'
        parts.append(f'<div class="section"><h3>{text[:30]}</h3>\n<p>{text} {link}</p></div>\n')
    return (
        f"<!DOCTYPE html><html><head><meta charset=utf-8><title>Page {number}</title></head>\n"
        f"<body><nav><ul>{menu}</ul></nav>\n<main>{''.join(parts)}</main></body></html>\n"
    )
