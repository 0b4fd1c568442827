"""Expressions over tables give what they give for each record."""

from __future__ import annotations

import polars as pl
import pytest

from minutch.expressions import compile_expression
from minutch.hadoop.formats.javahash import float32
from minutch.hadoop.formats.writables import FloatWritable, IntWritable, MapWritable, Text
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import records, to_frame
from minutch.work.tables.matching import matching
from tests.support.examples import tabled

METADATA = MapWritable(
    {Text("user-key"): Text("alpha"), Text("depth"): IntWritable(4), Text("f"): FloatWritable(0.5)}
)
DATA = [
    CrawlDatum(status=1, score=float32(0.587), fetch_time=1000, fetch_interval=3600),
    CrawlDatum(status=2, score=0.25, retries=3, signature=b"\x0a\xff"),
    CrawlDatum(status=2, score=0.25, retries=3, signature=b"\x0a\xff", metadata=METADATA),
    CrawlDatum(status=99, score=2.0, modified_time=7),
    CrawlDatum(status=1, score=float32(0.587), metadata=METADATA),
]
FRAME = to_frame((f"http://h/{i}/é", datum) for i, datum in enumerate(DATA))


@tabled(
    "text",
    [
        "score > 0.5",
        "score == 0.587f && status == 'db_unfetched'",
        "status == 'db_fetched' || depth > 3",
        "user_key == 'alpha'",
        "empty(user_key) ? retries == 3 : f < 1",
        "signature == '0aff'",
        "signature == null",
        "url =$ '/3/é' or fetchTime == 1000",
        "status =~ ['unknown']",
        "modifiedTime + interval + retries > 3",
        "1 < 2",
        "nothing > 3",
        "score",
    ],
)
def test_every_row(text: str) -> None:
    expression = compile_expression(text)
    expected = [expression.matches(datum.variables(url)) for url, datum in records(FRAME)]
    assert matching(FRAME, expression).to_list() == expected


def test_no_rows() -> None:
    assert matching(FRAME.clear(), compile_expression("score > 1")).to_list() == []


def test_more_columns_may_follow() -> None:
    found = matching(FRAME.with_columns(sort=pl.lit(1.0)), compile_expression("score > 1"))
    assert found.to_list() == [False, False, False, True, False]


def test_each_combination_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Counting:
        def names(self) -> frozenset[str]:
            return frozenset({"status"})

        def matches(self, variables: dict[str, object]) -> bool:
            asked.append(variables)
            return variables == {"status": "db_fetched"}

    frame = to_frame((f"http://h/{i}", CrawlDatum(status=1 + i % 2)) for i in range(100))
    assert matching(frame, Counting()).sum() == 50  # type: ignore[arg-type]
    assert len(asked) == 2
