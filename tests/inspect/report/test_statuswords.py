"""Statuses are said in words, all of them."""

from __future__ import annotations

from http import HTTPStatus

from minutch.records.crawldatum import STATUS_NAMES
from minutch.records.protocol import CODE_NAMES
from minutch.web import cells
from tests.support.examples import tabled


def test_every_status_of_an_entry_has_words() -> None:
    """But for those of a signature and of a parse, which no entry keeps."""
    names = set(STATUS_NAMES.values()) - {"signature", "parse_metadata", "parse_failed"}
    assert set(cells.STATUS_WORDS) == names
    for name in names:
        assert "_" not in cells.status(name)


@tabled("code", cells.CODE_WORDS)
def test_codes_have_the_names_of_the_standard(code: str) -> None:
    """RFC 9110, section 15; RFC 6585 for 429; Python's table of both."""
    assert HTTPStatus(int(code)).phrase == cells.CODE_WORDS[code]
    assert f"<strong>{code}</strong> {HTTPStatus(int(code)).phrase}" in cells.code(code)


def test_endings_without_an_answer_have_words() -> None:
    known = {name.replace("_", " ") for name in CODE_NAMES.values()}
    assert set(cells.ENDING_WORDS) <= known
    assert cells.code("robots denied") == "<bdi>refused by robots.txt</bdi>"


def test_what_nobody_knows_is_text() -> None:
    for shown in (cells.status, cells.code):
        assert shown("<b>") == "<bdi>&lt;b&gt;</bdi>"
