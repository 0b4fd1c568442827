"""Damaged pages, feeds, archives and documents of every kind: no crash, no exception but ours,
always a status.

Bounded here; for a longer run: `MINUTCH_FUZZ=100000 python -m pytest
tests/cycle/parse/test_fuzz.py`.
"""

from __future__ import annotations

import os
import random
import re

import pytest

from minutch.cycle.parse.dispatch import ParseUtil
from minutch.cycle.parse.mime import MimeUtil
from minutch.records.content import Content
from tests.plugins.test_parse_others import ATOM, RSS, SITEMAP, archive
from tests.support.golden import PROJECT
from tests.support.officefiles import samples
from tests.support.pages import configuration, content
from tests.support.pdffiles import link, pdf

ROUNDS = int(os.environ.get("MINUTCH_FUZZ", "150"))
CONF = configuration(
    "parse-(html|tika|zip|js)|feed|headings|parse-metatags|microformats-reltag|parsefilter-debug"
)
PARSERS = ParseUtil(CONF)
MIME = MimeUtil(CONF)

SITE = PROJECT / "tests" / "support" / "site"
SEEDS: dict[str, list[bytes]] = {
    "text/html": [path.read_bytes() for path in sorted(SITE.rglob("*.html"))[:12]],
    "application/rss+xml": [RSS.encode()],
    "application/atom+xml": [ATOM.encode()],
    "application/xml": [SITEMAP.encode()],
    "application/zip": [archive(a_html="<a href=x>y</a>", b_js="go('a/b')")],
    "application/pdf": [pdf("text", page=f"/Annots[{link('http://e.org/')}]")],
    "application/x-tika-ooxml": [*samples().values()],
    "text/plain": ["plain text with http://e.org/ and žluťoučký".encode()],
}
TOKENS = [
    b"<a href=",
    b"<!--",
    b"]]>",
    b"<![CDATA[",
    b"&#x110000;",
    b"\0",
    b"\xff",
    b"</",
    b">",
    b'"',
    b"%PDF",
    b"\x1b$B",
]
TOKENS += [
    b"<meta charset=utf-16>",
    b"<base href='//['>",
    b"<title>",
    b"<table>",
    b"<svg>",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
]
FOREIGN = re.compile(r"[A-Z]\w*(?:Error|Exception): ")
"""What a status says of an exception that is not ours."""


def damaged(data: bytes, rng: random.Random) -> bytes:
    """A few bytes changed, cut out, put in or doubled."""
    page = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        at, to = sorted(rng.randrange(len(page) + 1) for _ in range(2))
        change = rng.randrange(5)
        if change == 0:
            page[at:at] = rng.choice(TOKENS)
        elif change == 1:
            del page[at : min(to, at + 50)]
        elif change == 2:
            page[at:at] = page[at : min(to, at + 200)]
        elif change == 3 and at < len(page):
            page[at] = rng.randrange(256)
        elif rng.random() < 0.2:
            del page[at:]
    return bytes(page)


@pytest.mark.parametrize("content_type", SEEDS)
def test_damaged_documents(content_type: str) -> None:
    assert SEEDS[content_type]
    for number in range(ROUNDS):
        rng = random.Random(f"{content_type} {number}")
        data = damaged(rng.choice(SEEDS[content_type]), rng)
        page: Content = content(data, content_type)
        result = PARSERS.parse(page)
        for url, parse in result.items():
            assert parse.data.status.major in (1, 2), (number, url)
            assert not FOREIGN.match((parse.data.status.args or [""])[0] or ""), (
                number,
                parse.data.status,
            )
            parse.data.to_bytes()
        assert MIME.resolve(None, page.url, data)
