"""Statuses are said in words, all of them."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from minutch.inspect.report import statuswords
from minutch.records.crawldatum import STATUS_NAMES
from minutch.records.protocol import CODE_NAMES


def test_every_status_of_an_entry_has_words() -> None:
    """But for those of a signature and of a parse, which no entry keeps."""
    names = set(STATUS_NAMES.values()) - {"signature", "parse_metadata", "parse_failed"}
    assert set(statuswords.STATUS_WORDS) == names
    for name in names:
        assert "_" not in statuswords.status(name)


@pytest.mark.parametrize("code", statuswords.CODE_WORDS)
def test_codes_have_the_names_of_the_standard(code: str) -> None:
    """RFC 9110, section 15; RFC 6585 for 429; Python's table of both."""
    assert HTTPStatus(int(code)).phrase == statuswords.CODE_WORDS[code]
    assert f"<strong>{code}</strong> {HTTPStatus(int(code)).phrase}" in statuswords.code(code)


def test_endings_without_an_answer_have_words() -> None:
    known = {name.replace("_", " ") for name in CODE_NAMES.values()}
    assert set(statuswords.ENDING_WORDS) <= known
    assert statuswords.code("robots denied") == "<bdi>refused by robots.txt</bdi>"


def test_what_nobody_knows_is_text() -> None:
    for shown in (statuswords.status, statuswords.code):
        assert shown("<b>") == "<bdi>&lt;b&gt;</bdi>"
