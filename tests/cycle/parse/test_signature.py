"""Signatures of pages: MD5 of their bytes, their URLs or their texts."""

from __future__ import annotations

import hashlib

import pytest

from minutch.conf import Configuration
from minutch.cycle.parse.signature import (
    NOTHING,
    SHAPE,
    MD5Signature,
    TextMD5Signature,
    make_signature,
    signs_parses,
)
from minutch.plugin.points import Parse
from minutch.records.links import Outlink
from minutch.records.parsedata import ParseData
from minutch.records.protocol import Content


@pytest.mark.parametrize("size", [1, 55, 56, 64, 4096, 100_003])
def test_a_signature_is_the_md5_of_the_bytes(size: int) -> None:
    page = Content(content=bytes(range(256)) * (size // 256) + bytes(size % 256))
    found = MD5Signature(Configuration()).calculate(page, "text")
    assert found == hashlib.md5(page.content).digest()


def test_empty_pages_are_told_apart_by_their_urls() -> None:
    signature = MD5Signature(Configuration())
    for page in [*(Content(f"http://h/{number}") for number in range(20)), Content()]:
        assert signature.calculate(page, "text") == hashlib.md5(page.url.encode()).digest()


def test_text_has_a_signature_whatever_its_bytes() -> None:
    found = TextMD5Signature(Configuration()).calculate(Content(content=b"a"), "text")
    assert found == hashlib.md5(b"text").digest()


def test_pages_that_differ_in_numbers_and_paths_have_one_shape() -> None:
    conf = Configuration.load([], overrides={"db.signature.class": "minutch.TextShapeSignature"})
    signature = make_signature(conf)

    def of(text: str) -> tuple[bytes, bytes]:
        found = signature.calculate(Content(content=b"a"), text)
        assert found[:16] == TextMD5Signature(conf).calculate(Content(content=b"a"), text)
        return found[: SHAPE.start], found[SHAPE]

    march, may, june = (of(f"No events on {day}.") for day in ("2024-03-01", "2024-05-31", "a day"))
    assert march[0] != may[0] and march[1] == may[1] != june[1]
    assert of("Sorry, /a-b/c was not found")[1] == of("Sorry, /d.html was not found")[1]
    assert of("第1ページ")[1] == of("第22ページ")[1] != of("第22章")[1]
    assert of("Red 3 Blue 2 Green 10")[1] == of("Blue 2 Green 10 Red 3")[1] != of("Red Blue")[1]
    assert len({of(f"Plan {letter}, in {n} parts")[1] for n, letter in enumerate("ABCDEFG")}) == 7
    assert of("\ud800 1")[1] == of("\ud800 2")[1]
    assert signature.calculate(Content(content=b"a"), "") == MD5Signature(conf).calculate(
        Content(content=b"a"), None
    )


def test_what_says_noindex_and_gives_no_link_has_no_shape() -> None:
    conf = Configuration.load([], overrides={"db.signature.class": "minutch.TextShapeSignature"})
    signs, content = signs_parses(make_signature(conf)), Content("http://a/", content=b"form")
    digest = MD5Signature(conf).calculate(content, None)

    def of(text: str = "", links: int = 0, **said: str) -> bytes:
        data = ParseData(outlinks=[Outlink("http://b/")] * links)
        for name, value in said.items():
            data.parse_meta.set(name, value)
        return signs(content, Parse(text, data))

    assert of(robots="noindex") == digest + NOTHING
    assert of(robots="noindex", links=1) == of() == digest
    for said in ("index, follow", "nofollow", "otherbot: noindex"):
        assert of(robots=said) == digest
    assert of(robots="index, none") == digest + NOTHING
    assert of("Words", robots="nofollow")[16:] not in (NOTHING, b"")
    assert signs_parses(MD5Signature(conf))(content, Parse("", ParseData())) == digest
