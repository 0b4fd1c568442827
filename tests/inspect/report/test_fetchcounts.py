"""Counts of fetches: response times, and hosts that are spelled in several ways."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from minutch.inspect.query.crawl import open_crawl
from minutch.inspect.report.counts import ALL_OF_FETCHES, FetchCounts, with_outcomes
from minutch.records.crawldatum import STATUS_DB_FETCHED, STATUS_FETCH_SUCCESS, CrawlDatum
from tests.inspect.report.conftest import gathered
from tests.support.crawldbs import NOW, write_db, write_segment


@given(times=st.lists(st.integers(0, 10**7), min_size=1, max_size=5))
def test_a_median_is_at_most_the_maximum(times: list[int]) -> None:
    """Half of the times are at or above it, and none above the maximum, to whatever digits."""
    values = {"segment": "s", "url": "u", "host": "h", "status": "fetch_success"}
    table = {name: [values.get(name)] * len(times) for name in ALL_OF_FETCHES}
    text = dict.fromkeys(table, pl.String)
    frame = pl.DataFrame(table, schema=text).with_columns(
        response_ms=pl.Series(times, dtype=pl.Int32),
        fetch_time=pl.lit(NOW).cast(pl.Datetime("ms", "UTC")),
        code=pl.lit(None, pl.Int32),
        size=pl.lit(1, pl.Int64),
    )
    counts = FetchCounts()
    counts.add(with_outcomes(frame))
    for row in (*counts.hosts().to_dicts(), *counts.rounds().to_dicts()):
        assert row["median_ms"] <= row["slowest_ms"] == max(times)


def test_a_host_has_one_name_however_it_is_spelled(tmp_path: Path) -> None:
    """RFC 3986, 3.2.2: hosts are case-insensitive."""
    urls = [f"http://{host}/{host}" for host in ("a.example", "A.example", "a.EXAMPLE")]
    write_db(tmp_path / "crawldb", [(url, CrawlDatum(STATUS_DB_FETCHED, 9, 1.0)) for url in urls])
    fetched = [(url, CrawlDatum(STATUS_FETCH_SUCCESS, 9, 1.0)) for url in urls]
    write_segment(tmp_path / "segments/20260101000000", fetched)
    facts = gathered(tmp_path, NOW)
    assert facts["hosts"].select("host", "urls", "requests").rows() == [("a.example", 3, 3)]
    assert facts.total("hosts") == 1
    tables = open_crawl(tmp_path).tables
    for name in ("hosts", "crawldb", "pages"):
        assert set(tables[name].scan().collect()["host"]) == {"a.example"}
    assert tables["hosts"].scan().collect()["fetched"].to_list() == [3]
    named = tables["crawldb"].scan().filter(pl.col("host") == "a.example").collect()
    assert set(named["url"]) == set(urls)
