"""Media types against Tika's answers through Nutch's MimeUtil: tables/mime.jsonl."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from minutch.conf import Configuration
from minutch.cycle.parse.mime import MimeUtil, clean_type
from tests.support.golden import GOLDEN, needs_golden

pytestmark = needs_golden("tables/mime.jsonl")

# Differences that are meant, as (column, content type, URL, content): none at present.
KNOWN: frozenset[tuple[str, str | None, str, bytes]] = frozenset()


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    path = GOLDEN / "tables" / "mime.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("column", "magic"), [("auto", "true"), ("auto-nomagic", "false")])
def test_types_of_pages(rows: list[dict[str, Any]], column: str, magic: str) -> None:
    mime = MimeUtil(Configuration.load([]).with_values({"mime.type.magic": magic}))
    wrong = []
    for row in rows:
        data = base64.b64decode(row["body"])
        found = mime.resolve(row["ct"], row["url"], data)
        if found != row[column] and (column, row["ct"], row["url"], data) not in KNOWN:
            wrong.append((row["ct"], row["url"], data, row[column], found))
    assert len(rows) == 1500
    assert wrong == []


def test_types_of_urls(rows: list[dict[str, Any]]) -> None:
    mime = MimeUtil(Configuration.load([]))
    wrong = {row["url"]: row["byName"] for row in rows if mime.by_url(row["url"]) != row["byName"]}
    assert wrong == {}


def test_cleaned_headers(rows: list[dict[str, Any]]) -> None:
    wrong = {
        row["ct"]: row["clean"]
        for row in rows
        if row["ct"] is not None and clean_type(row["ct"]) != row["clean"]
    }
    assert wrong == {}
