"""The kernel for MD5 beside hashlib, by way of the signatures of pages."""

from __future__ import annotations

import hashlib
import random

from minutch.conf import Configuration
from minutch.cycle.parse.signature import MD5Signature, TextMD5Signature, signatures
from minutch.plugin.points import Parse
from minutch.records.content import Content
from minutch.records.parsedata import ParseData

TEXT, NOTHING = (Parse(text, ParseData()) for text in (b"text", ""))


def test_digests_are_hashlibs_whatever_the_sizes() -> None:
    chance = random.Random(7)
    sizes = [*range(1, 200), 4096, 100_003]
    chance.shuffle(sizes)
    for count in (8, 15, 16, 17, len(sizes)):
        pages = [(Content(content=chance.randbytes(size)), NOTHING) for size in sizes[:count]]
        expected = [hashlib.md5(page.content).digest() for page, _ in pages]
        assert signatures(MD5Signature(Configuration()), pages) == expected


def test_empty_pages_are_told_apart_by_their_urls() -> None:
    pages = [(Content(f"http://h/{number}"), TEXT) for number in range(20)] + [(Content(), NOTHING)]
    expected = [hashlib.md5(page.url.encode()).digest() for page, _ in pages]
    assert signatures(MD5Signature(Configuration()), pages) == expected


def test_other_signatures_and_subclasses_are_asked_page_by_page() -> None:
    class Own(MD5Signature):
        def calculate(self, content: Content, text: str | None) -> bytes:
            return b"own"

    pages = [(Content(content=b"a"), TEXT)] * 20
    assert signatures(Own(Configuration()), pages) == [b"own"] * 20
    assert (
        signatures(TextMD5Signature(Configuration()), pages) == [hashlib.md5(b"text").digest()] * 20
    )
