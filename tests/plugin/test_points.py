"""Row methods and their column twins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import polars as pl

from minutch.conf import Configuration
from minutch.errors import UrlError
from minutch.plugin.extension import ExtensionBase
from minutch.plugin.points import (
    POINTS,
    Parse,
    ParseResult,
    ScoringFilter,
    URLFilter,
    URLNormalizer,
)
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import to_frame
from minutch.records.parsedata import ParseData, ParseStatus
from minutch.work.tables.recordfiles import pack
from tests.support.examples import tabled

CONF = Configuration()


class RowFilter(URLFilter):
    def filter(self, url: str) -> str | None:
        return None if "no" in url else url


class FastFilter(RowFilter):
    def filter_column(self, urls: pl.Series) -> pl.Series:
        return urls.str.to_uppercase()


class ChangedRow(FastFilter):
    def filter(self, url: str) -> str | None:
        return "changed"


def test_a_row_method_serves_columns() -> None:
    urls = pl.Series("u", ["yes", "no", None])
    result = RowFilter(CONF, {}).filter_column(urls)
    assert result.to_list() == ["yes", None, None]
    assert (result.name, result.dtype) == ("u", pl.String)


def test_a_column_method_is_used_where_it_is_the_newest() -> None:
    urls = pl.Series(["a"])
    assert FastFilter(CONF, {}).filter_column(urls).to_list() == ["A"]
    assert ChangedRow(CONF, {}).filter_column(urls).to_list() == ["changed"]


def test_a_malformed_url_is_null_in_a_column() -> None:
    class Strict(URLNormalizer):
        def normalize(self, url: str, scope: str) -> str | None:
            if " " in url:
                raise UrlError(url)
            return f"{url}#{scope}"

    result = Strict(CONF, {}).normalize_column(pl.Series(["a", "a b", None]), "inject")
    assert result.to_list() == ["a#inject", None, None]


class RowScoring(ScoringFilter):
    def inject_score(self, url: str, datum: CrawlDatum) -> None:
        datum.score += 1.0
        datum.metadata.set_text("url", url)

    def generator_sort_value(self, url: str, datum: CrawlDatum, init_sort: float) -> float:
        return datum.score * init_sort

    def update_db_score(
        self, url: str, old: CrawlDatum | None, datum: CrawlDatum, inlinked: list[CrawlDatum]
    ) -> None:
        datum.score = (old.score if old else 100.0) + sum(link.score for link in inlinked)


def frame(*scores: float) -> pl.DataFrame:
    return to_frame((f"http://{i}/", CrawlDatum(1, score=score)) for i, score in enumerate(scores))


def test_scoring_rows_serve_columns() -> None:
    scoring = RowScoring(CONF, {})
    injected = scoring.inject_score_columns(frame(0.5, 2.0).with_columns(extra=pl.Series([7, 8])))
    assert injected["score"].to_list() == [1.5, 3.0]
    assert injected["extra"].to_list() == [7, 8]
    assert injected["metadata"].is_not_null().all()
    values = scoring.generator_sort_value_columns(
        frame(0.5, 2.0), pl.Series([2.0, 3.0], dtype=pl.Float32)
    )
    assert (values.to_list(), values.dtype) == ([1.0, 6.0], pl.Float32)


def test_update_takes_old_records_and_links_by_row() -> None:
    old = frame(10.0, 0.0, 30.0).with_columns(status=pl.Series([2, None, 2], dtype=pl.UInt8))
    links = pack(frame(1.0, 2.0, 4.0)).with_columns(row=pl.Series([2, 0, 2], dtype=pl.UInt32))
    updated = RowScoring(CONF, {}).update_db_score_columns(frame(0.0, 0.0, 0.0), old, links)
    assert updated["score"].to_list() == [12.0, 100.0, 35.0]


def test_what_is_not_written_costs_nothing() -> None:
    class Empty(ScoringFilter):
        pass

    table = frame(1.0)
    init = pl.Series([1.0], dtype=pl.Float32)
    scoring = Empty(CONF, {})
    assert scoring.inject_score_columns(table) is table
    assert scoring.initial_score_columns(table) is table
    assert scoring.orphaned_score_columns(table) is table
    assert scoring.update_db_score_columns(table, table, table) is table
    assert scoring.generator_sort_value_columns(table, init) is init


@tabled("point", POINTS.values())
def test_twins_exist(point: type[ExtensionBase]) -> None:
    for row, columns in point.twins.items():
        assert callable(getattr(point, row))
        assert all(callable(getattr(point, column)) for column in columns)


def test_a_twin_of_a_users_own_point() -> None:
    class Point(ExtensionBase):
        point_id = "org.example.Point"
        twins: ClassVar[Mapping[str, tuple[str, ...]]] = {"one": ("many",)}

        def one(self, value: int) -> int:
            return value

        def many(self, values: list[int]) -> list[int]:
            return [self.one(value) for value in values]

    class Fast(Point):
        def many(self, values: list[int]) -> list[int]:
            return []

    class Slow(Fast):
        def one(self, value: int) -> int:
            return -value

    assert Fast(CONF, {}).many([1]) == []
    assert Slow(CONF, {}).many([1]) == [-1]
    assert Slow(CONF, {}).overrides("one")
    assert not Fast(CONF, {}).overrides("one")


def parse(success: bool) -> Parse:
    return Parse("text", ParseData(ParseStatus(1 if success else 2)))


def test_parse_result() -> None:
    good, bad = parse(True), parse(False)
    result = ParseResult.of("http://a/", good)
    assert (result.original_url, result.is_success, result.is_any_success) == (
        "http://a/",
        True,
        True,
    )
    result["http://b/"] = bad
    assert (result.is_success, result.is_any_success) == (False, True)
    result.drop_failures()
    assert dict(result) == {"http://a/": good}
    assert not ParseResult.of("http://b/", bad).is_any_success


class TestOutlinkScore:
    """One score for all links of a page, where the row methods give all the same."""

    def test_a_filter_without_link_methods_hands_the_score_on(self) -> None:
        class Silent(ScoringFilter):
            pass

        assert Silent(CONF, {}).outlink_score(ParseData(), 3, 5, 0.25) == 0.25

    def test_row_methods_written_anew_are_asked_link_by_link(self) -> None:
        class Equal(ScoringFilter):
            def distribute_score_to_outlinks(
                self,
                from_url: str,
                parse_data: ParseData,
                targets: list[tuple[str, CrawlDatum]],
                adjust: CrawlDatum | None,
                all_count: int,
            ) -> CrawlDatum | None:
                return adjust

            def outlink_score(
                self, parse_data: ParseData, kept: int, all_count: int, score: float
            ) -> float | None:
                return 1.0

        class First(Equal):
            def initial_score(self, url: str, datum: CrawlDatum) -> None:
                datum.score = 2.0

        assert Equal(CONF, {}).outlink_score(ParseData(), 3, 5, 0.0) == 1.0
        assert First(CONF, {}).outlink_score(ParseData(), 3, 5, 0.0) is None
