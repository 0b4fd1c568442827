"""Header fields are found in the metadata of a page whatever the case of their names (RFC 9110,
5.1): HTTP/2 sends them in lower case (RFC 9113, 8.2.1), and segments of others hold them so.
"""

from __future__ import annotations

import operator
import pickle
import re
from collections.abc import Callable
from copy import copy
from functools import partial
from pathlib import Path
from typing import Final

import pytest

import minutch
import plugins
from minutch.records.metadata import CHAR_ENCODING_FOR_CONVERSION_KEY, MadeLater, Metadata
from minutch.records.protocol import Content, is_truncated
from tests.support.examples import tabled
from tests.support.pages import configuration, parse_all

_EXACT: Final = re.compile(
    r"\b(?:content|page|answer)\.metadata\.(?:first|get)\(|\bcontent_meta\.(?:first|get)\("
)
_OWN_KEY: Final = re.compile(r"(?:(?!CONTENT_(?:TYPE|LENGTH))[A-Z_]+_KEY|name|FETCH_TIME_KEY)\b")


def page(kind: str, body: str, **headers: str) -> Content:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    data, url = body.encode("iso-8859-2"), "http://a.org/"
    return Content(url, url, data, kind, Metadata.of(names))


def test_exact_spelling_counts_first() -> None:
    metadata = Metadata.of({"x-a": ["one", "two"], "X-A": "three", "X-B": "four"})
    assert [metadata.field(name) for name in ("X-A", "x-a", "X-a", "x-b", "X-C")] == [
        "three",
        "one",
        "one",
        "four",
        None,
    ]
    assert metadata.field_values("X-A") == ["one", "two", "three"]


@pytest.mark.parametrize("kind", ["text/html", "text/plain", "application/xhtml+xml"])
def test_charsets_of_headers(kind: str) -> None:
    found = parse_all(
        page(kind, "<p>\u0141", content_type=f"{kind}; charset=ISO-8859-2"),
        configuration("parse-(html|text|tika)"),
    )
    [parse] = found.values()
    assert parse.data.parse_meta.get(CHAR_ENCODING_FOR_CONVERSION_KEY) == "iso-8859-2"
    assert "\u0141" in parse.text


def test_a_page_shorter_than_its_header_says_is_cut_off() -> None:
    assert is_truncated(page("text/html", "12", content_length="3"))
    assert not is_truncated(page("text/html", "12", content_length="2"))


def test_by_exact_spelling_only_the_crawlers_own_keys_are_looked_up() -> None:
    """Every other look-up in a page's metadata is `field` or `field_values`."""
    exact = [
        f"{path.name}: {text[found.start() : found.end() + 30]}"
        for package in (minutch, plugins)
        for path in Path(next(iter(package.__path__))).rglob("*.py")
        for text in [path.read_text(encoding="utf-8")]
        for found in _EXACT.finditer(text)
        if not _OWN_KEY.match(text, found.end())
    ]
    assert exact == []


def test_get_is_the_first_value_as_in_nutch() -> None:
    metadata = Metadata.of({"a": ["one", "two"]})
    assert metadata.get("a") == "one"
    assert metadata.get("b") is None
    assert metadata.get("b", "none") == "none"
    assert metadata.get_values("a") == metadata["a"] == ["one", "two"]
    assert metadata.get_values("b") == []


@tabled(
    "read",
    [
        lambda values: values[0],
        lambda values: next(iter(values)),
        lambda values: [*values, "b"][0],
        lambda values: "".join(tuple(values)),
        "".join,
        lambda values: sorted(values)[0],
        lambda values: repr(values)[2:-2],
        lambda values: values == ["A"] and "A",
        lambda values: values == ["A"] and "A",
        lambda values: "A" in values and "A",
        lambda values: operator.add(values, ["b"])[0],
        lambda values: values.copy()[values.index("A")],
        lambda values: [*reversed(values)].pop(),
        lambda values: pickle.loads(pickle.dumps(values))[0],
        lambda values: copy(values)[0],
        lambda values: Metadata(a=values).get("a"),
        lambda values: Metadata(a=values).field("A"),
        lambda values: Metadata.from_bytes(Metadata(a=values).to_bytes())["a"][0],
        lambda values: dict(Metadata(a=values))["a"][0],
    ],
)
def test_values_that_are_made_when_they_are_read(read: Callable[[list[str]], object]) -> None:
    made: list[list[str]] = []
    value = MadeLater(partial(_upper, made), "a")
    assert len(value) == 1
    assert value
    assert made == []
    assert read(value) == "A"
    assert read(value) == "A"
    assert made == [["a"]]


def test_values_are_made_together_once() -> None:
    made: list[list[str]] = []
    make = partial(_upper, made)
    values = [MadeLater(make, text) for text in "abc"]
    metadata = Metadata(a=values[1])
    metadata.add("a", "more")
    MadeLater.make_all(values)
    assert made == [["b"], ["a", "c"]]
    assert [*map(list, values)] == [["A"], ["B", "more"], ["C"]]


def _upper(made: list[list[str]], texts: list[str]) -> list[str]:
    made.append(texts)
    return [text.upper() for text in texts]
