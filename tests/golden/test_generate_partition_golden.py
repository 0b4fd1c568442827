"""URLs go to the parts of a fetch list that Nutch's URLPartitioner puts them in."""

from __future__ import annotations

import gzip
import json
from typing import Any

import polars as pl
import pytest

from minutch import processwide
from minutch.conf import Configuration
from minutch.cycle.fetchlist.partition import UrlPartitioner
from tests.support.examples import few
from tests.support.golden import GOLDEN, needs_golden
from tests.support.replay import TABLE_PLUGINS

pytestmark = needs_golden

CASES = [
    (mode, seed, parts)
    for mode in ("byHost", "byDomain")
    for seed in (0, 12345)
    for parts in (2, 3, 16)
]


@pytest.fixture(scope="module")
def table() -> list[dict[str, Any]]:
    with gzip.open(GOLDEN / "tables/partition.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(autouse=True)
def _golden_suffix_list() -> Any:
    processwide.change(suffix_list=GOLDEN / "tables/effective_tld_names.dat")
    yield
    processwide.change(suffix_list=None)


@pytest.mark.parametrize(("mode", "seed", "parts"), few(CASES, 6))
def test_parts(mode: str, seed: int, parts: int, table: list[dict[str, Any]]) -> None:
    properties = {
        "plugin.includes": TABLE_PLUGINS,
        "partition.url.mode": mode,
        "partition.url.seed": str(seed),
    }
    partitioner = UrlPartitioner.from_conf(
        Configuration.load([GOLDEN / "tables/conf"], overrides=properties), lambda host: None
    )
    found = partitioner.parts_of(pl.Series([row["url"] for row in table]), parts)
    expected = [row[f"{mode}:{seed}/{parts}"] for row in table]
    wrong = [
        (row["url"], part, want)
        for row, part, want in zip(table, found, expected, strict=True)
        if str(part) != want and not want.startswith("!")
    ]
    assert wrong == []
