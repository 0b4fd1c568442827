"""Facts as JSON and back; what is damaged, foreign or from another version."""

from __future__ import annotations

import json

import polars as pl
import pytest

from minutch.errors import FormatError
from minutch.inspect.report.facts import TABLES, Facts, from_json, shaped, to_json
from tests.inspect.report.conftest import Written
from tests.inspect.report.madeup import BAD
from tests.support.examples import tabled


def test_there_and_back(harbours: Written) -> None:
    found = from_json(to_json(harbours.facts))
    assert (found.crawl, found.made) == ("harbours", harbours.crawl.now)
    assert set(found.tables) == set(harbours.facts.tables)
    for name, table in harbours.facts.tables.items():
        assert found[name].equals(table), name


def test_nothing_ends_the_script_element(hostile: Written) -> None:
    text = to_json(hostile.facts)
    assert "<" not in text and ">" not in text
    assert BAD in [row[0] for row in json.loads(text)["tables"]["languages"]["rows"]]


def test_an_older_version_had_other_columns() -> None:
    statuses = {"columns": ["colour", "status"], "rows": [[1, "db_gone"]]}
    found = from_json(
        json.dumps({"crawl": "c", "made": 5, "tables": {"statuses": statuses, "weather": 7}})
    )
    assert found["statuses"].to_dicts() == [{"status": "db_gone", "urls": None}]
    assert found["rounds"].is_empty() and found.total("urls") is None


@tabled(
    "text",
    [
        "",
        "[]",
        "null",
        '{"crawl": "c"}',
        '{"crawl": "c", "made": 1e999, "tables": {}}',
        '{"crawl": "c", "made": 99999999999999999999, "tables": {}}',
        '{"crawl": "c", "made": 1, "tables": []}',
        (
            '{"crawl": "c", "made": 1, "tables": {"statuses": {"columns": ["status"], "rows":'
            ' [["a", "b"]]}}}'
        ),
        (
            '{"crawl": "c", "made": 1, "tables": {"statuses": {"columns": ["urls"], "rows":'
            ' [["many"]]}}}'
        ),
        (
            '{"crawl": "c", "made": 1, "tables": {"rounds": {"columns": ["started"], "rows":'
            ' [["yesterday"]]}}}'
        ),
        "[" * 100_000,
    ],
)
def test_what_is_no_facts_is_an_error(text: str) -> None:
    with pytest.raises(FormatError, match="the facts of a report"):
        from_json(text)


def test_every_table_can_be_empty_and_full() -> None:
    for name, columns in TABLES.items():
        frame = shaped(name, pl.DataFrame(schema=dict(columns)))
        facts = Facts("c", 1, {name: frame})
        assert from_json(to_json(facts))[name].schema == frame.schema
