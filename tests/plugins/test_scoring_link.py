"""scoring-link: the scores of LinkRank are used as they are."""

from __future__ import annotations

import polars as pl

from minutch.conf import Configuration
from minutch.plugin.points import Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import to_frame
from minutch.records.document import NutchDocument
from minutch.records.metadata import SCORE_KEY, Metadata
from minutch.records.parsedata import ParseData
from minutch.records.protocol import Content
from plugins.scoring_link.link import LinkScoring

SCORING = LinkScoring(Configuration().with_values({"link.analyze.normalize.score": "2.5"}), {})


def test_sort_value_is_the_score() -> None:
    assert SCORING.generator_sort_value("", CrawlDatum(score=1.5), 2.0) == 3.0
    frame = to_frame([("http://a/", CrawlDatum(score=1.5)), ("http://b/", CrawlDatum(score=0.25))])
    assert SCORING.generator_sort_value_columns(
        frame, pl.Series([2.0, 1.0], dtype=pl.Float32)
    ).to_list() == [3.0, 0.25]


def test_updates_leave_scores_alone() -> None:
    datum = CrawlDatum(score=1.5)
    SCORING.update_db_score("", CrawlDatum(score=7.0), datum, [CrawlDatum(score=3.0)])
    assert datum.score == 1.5
    SCORING.initial_score("", datum)
    assert datum.score == 0.0
    frame = to_frame([("http://a/", CrawlDatum(score=1.5))])
    assert SCORING.initial_score_columns(frame)["score"].to_list() == [0.0]


def test_boost() -> None:
    doc, parse = NutchDocument(), Parse("", ParseData())
    assert (
        SCORING.indexer_score("", doc, CrawlDatum(score=2.0), CrawlDatum(), parse, None, 9.0) == 5.0
    )
    assert SCORING.indexer_score("", doc, None, CrawlDatum(), parse, None, 9.0) == 9.0


def test_score_travels_with_the_content() -> None:
    content = Content(
        url="http://a/", base="http://a/", content=b"", content_type="", metadata=Metadata()
    )
    SCORING.pass_score_before_parsing("", CrawlDatum(score=1.5), content)
    parse = Parse("", ParseData())
    SCORING.pass_score_after_parsing("", content, parse)
    assert parse.data.content_meta.get(SCORE_KEY) == "1.5"
