"""scoring-opic: 32-bit arithmetic, both shapes, and the way of a score through fetch and parse."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.conf import Configuration
from minutch.hadoop.formats.javahash import float32
from minutch.plugin.points import Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import to_frame
from minutch.records.document import NutchDocument
from minutch.records.metadata import SCORE_KEY, Metadata
from minutch.records.parsedata import ParseData
from minutch.records.protocol import Content
from plugins.scoring_opic.opic import OpicScoring

SCORES = st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=0, max_value=1e6)


def opic(**properties: str) -> OpicScoring:
    conf = Configuration()
    return OpicScoring(
        conf.with_values({name.replace("_", "."): value for name, value in properties.items()}), {}
    )


def links(*urls: str) -> list[tuple[str, CrawlDatum]]:
    return [(url, CrawlDatum(score=9.0)) for url in urls]


def parse_data(score: str | None) -> ParseData:
    data = ParseData()
    if score is not None:
        data.content_meta.set(SCORE_KEY, score)
    return data


def test_new_pages_start_at_zero_and_seeds_keep_theirs() -> None:
    datum = CrawlDatum(score=1.5)
    opic().inject_score("http://a/", datum)
    assert datum.score == 1.5
    opic().initial_score("http://a/", datum)
    assert datum.score == 0.0


def test_sums_in_32_bits_link_by_link() -> None:
    scores = [float32(x) for x in (0.1, 0.2, 0.3, 1e7, 0.7)]
    datum = CrawlDatum(score=float32(0.05))
    opic().update_db_score("http://a/", None, datum, [CrawlDatum(score=x) for x in scores])
    expected = 0.0
    for score in scores:
        expected = float32(expected + score)
    assert datum.score == float32(float32(0.05) + expected)
    assert datum.score != float32(0.05 + sum(scores))


def test_the_old_score_counts_where_there_is_one() -> None:
    datum = CrawlDatum(score=5.0)
    opic().update_db_score("http://a/", CrawlDatum(score=2.0), datum, [CrawlDatum(score=1.0)])
    assert datum.score == 3.0


def test_shares_by_valid_links_and_by_all() -> None:
    targets = links("http://a/1", "http://A/2", "http://b/3")
    assert (
        opic().distribute_score_to_outlinks("http://a/", parse_data("1.0"), targets, None, 10)
        is None
    )
    assert [datum.score for _, datum in targets] == [float32(1 / 3)] * 3
    opic(db_score_count_filtered="true").distribute_score_to_outlinks(
        "http://a/", parse_data("1.0"), targets, None, 10
    )
    assert [datum.score for _, datum in targets] == [float32(0.1)] * 3


def test_factors_of_internal_and_external_links() -> None:
    targets = links("http://A/2", "http://b/3", "no url")
    scoring = opic(db_score_link_internal="0.5", db_score_link_external="2")
    scoring.distribute_score_to_outlinks("http://a/", parse_data("3"), targets, None, 3)
    assert [datum.score for _, datum in targets] == [0.5, 2.0, 2.0]


@pytest.mark.parametrize("score", [None, "many"])
def test_without_a_score_links_get_nothing(score: str | None) -> None:
    targets = links("http://b/")
    opic().distribute_score_to_outlinks("http://a/", parse_data(score), targets, None, 1)
    assert targets[0][1].score == 0.0


def test_no_links_no_share() -> None:
    adjust = CrawlDatum()
    counting = opic(db_score_count_filtered="true")
    assert (
        counting.distribute_score_to_outlinks("http://a/", parse_data("1"), [], adjust, 0) is adjust
    )


def test_score_travels_with_the_content_as_java_prints_it() -> None:
    content = Content(
        url="http://a/", base="http://a/", content=b"", content_type="", metadata=Metadata()
    )
    opic().pass_score_before_parsing("http://a/", CrawlDatum(score=float32(0.1)), content)
    assert content.metadata.get(SCORE_KEY) == "0.1"
    parse = Parse("", ParseData())
    opic().pass_score_after_parsing("http://a/", content, parse)
    assert parse.data.content_meta.get(SCORE_KEY) == "0.1"
    empty = Content(url="", base="", content=b"", content_type="", metadata=Metadata())
    parse = Parse("", ParseData())
    opic().pass_score_after_parsing("http://a/", empty, parse)
    assert SCORE_KEY not in parse.data.content_meta


@pytest.mark.parametrize(
    ("score", "power", "boost"),
    [(4.0, "0.5", 2.0), (0.0, "0.5", 0.0), (0.0, "-1", float("inf")), (1e30, "20", float("inf"))],
)
def test_boost_in_the_index(score: float, power: str, boost: float) -> None:
    doc, parse = NutchDocument(), Parse("", ParseData())
    scoring = opic(indexer_score_power=power)
    assert (
        scoring.indexer_score(
            "http://a/", doc, CrawlDatum(score=float32(score)), CrawlDatum(), parse, None, 1.0
        )
        == boost
    )
    assert scoring.indexer_score("http://a/", doc, None, CrawlDatum(), parse, None, 0.25) == 0.25


@given(
    st.lists(
        st.tuples(SCORES, SCORES | st.none(), st.lists(SCORES, max_size=5)), min_size=1, max_size=8
    ),
    st.floats(width=32, min_value=0, max_value=10),
)
def test_columns_agree_with_rows(
    pages: list[tuple[float, float | None, list[float]]], init: float
) -> None:
    scoring = opic()
    frame = to_frame(
        (f"http://a/{i}", CrawlDatum(score=score)) for i, (score, _, _) in enumerate(pages)
    )
    old = to_frame(
        (f"http://a/{i}", CrawlDatum(status=1, score=before or 0.0))
        for i, (_, before, _) in enumerate(pages)
    )
    known = pl.Series([before is not None for _, before, _ in pages])
    old = old.with_columns(pl.when(known).then(pl.all()))
    linked = [(row, link) for row, (_, _, scores) in enumerate(pages) for link in scores]
    inlinked = to_frame((f"http://a/{row}", CrawlDatum(score=link)) for row, link in linked)
    inlinked = inlinked.with_columns(row=pl.Series([row for row, _ in linked], dtype=pl.UInt32))

    updated = scoring.update_db_score_columns(frame, old, inlinked)
    sort_values = scoring.generator_sort_value_columns(
        frame, pl.Series([init] * len(frame), dtype=pl.Float32)
    )
    for i, (score, before, scores) in enumerate(pages):
        datum = CrawlDatum(score=score)
        assert sort_values[i] == scoring.generator_sort_value("", datum, init)
        previous = None if before is None else CrawlDatum(score=before)
        scoring.update_db_score("", previous, datum, [CrawlDatum(score=link) for link in scores])
        assert updated["score"][i] == datum.score
    assert scoring.initial_score_columns(frame)["score"].to_list() == [0.0] * len(frame)


def test_whoever_updates_scores_in_another_way_is_given_whole_entries() -> None:
    class ByRow(OpicScoring):
        def update_db_score(
            self, url: str, old: object, datum: CrawlDatum, inlinked: object
        ) -> None:
            datum.retries = 1

    class ByColumn(OpicScoring):
        def update_db_score_columns(self, frame: pl.DataFrame, *_: object) -> pl.DataFrame:
            return frame.with_columns(retries=1)

    links_found = to_frame([("http://a/", CrawlDatum(score=0.5))]).with_columns(
        row=pl.lit(0, pl.UInt32)
    )
    scores = pl.Series([1.0], dtype=pl.Float32)
    assert opic().linked_score_columns(scores, links_found).to_list() == [1.5]
    for other in (ByRow, ByColumn):
        assert other(Configuration(), {}).linked_score_columns(scores, links_found) is None


@given(SCORES, st.integers(1, 200), st.integers(0, 300), st.booleans())
def test_one_score_for_all_links_is_what_each_gets(
    score: float, kept: int, more: int, counts_filtered: bool
) -> None:
    scoring = opic(db_score_count_filtered=str(counts_filtered).lower())
    targets = links(*(f"http://a/{number}" for number in range(kept)))
    data = parse_data(repr(score))
    scoring.distribute_score_to_outlinks("http://a/", data, targets, None, kept + more)
    assert {datum.score for _, datum in targets} == {
        scoring.outlink_score(data, kept, kept + more, 0.0)
    }


def test_no_one_score_where_other_hosts_get_another() -> None:
    scoring = opic(db_score_link_external="0.5")
    assert scoring.outlink_score(parse_data("1"), 1, 1, 0.0) is None
    assert scoring.outlink_score(parse_data("nan"), 1, 1, 0.0) is None
    assert opic().outlink_score(parse_data("1"), 0, 0, 0.0) == 1.0
