"""Signatures of pages: MD5 of their bytes, their URLs or their texts."""

from __future__ import annotations

import hashlib

import pytest

from minutch.conf import Configuration
from minutch.cycle.parse.signature import MD5Signature, TextMD5Signature
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
