"""scoring-link: uses the scores of LinkRank (webgraph, linkrank, scoreupdater) unchanged.

Source: org.apache.nutch.scoring.link.LinkAnalysisScoringFilter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from minutch.conf import Configuration
from minutch.hadoop.formats.javahash import float32, float_to_string
from minutch.plugin.points import Parse, ScoringFilter
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument
from minutch.records.links import Inlinks
from minutch.records.metadata import SCORE_KEY
from minutch.records.protocol import Content

if TYPE_CHECKING:
    import polars as pl

    from minutch.plugin.documents import Documents, Pages


class LinkScoring(ScoringFilter):
    """The scoring filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.normalized_score = conf.get_float("link.analyze.normalize.score", 1.0)

    def initial_score(self, url: str, datum: CrawlDatum) -> None:
        # As LinkAnalysisScoringFilter: linkrank alone gives scores.
        datum.score = 0.0

    def generator_sort_value(self, url: str, datum: CrawlDatum, init_sort: float) -> float:
        return float32(datum.score * init_sort)

    def pass_score_before_parsing(self, url: str, datum: CrawlDatum, content: Content) -> None:
        content.metadata.set(SCORE_KEY, float_to_string(datum.score))

    def pass_score_after_parsing(self, url: str, content: Content, parse: Parse) -> None:
        score = content.metadata.get(SCORE_KEY)
        if score is not None:
            parse.data.content_meta.set(SCORE_KEY, score)

    def indexer_score(
        self,
        url: str,
        doc: NutchDocument,
        db_datum: CrawlDatum | None,
        fetch_datum: CrawlDatum,
        parse: Parse,
        inlinks: Inlinks | None,
        init_score: float,
    ) -> float:
        return init_score if db_datum is None else float32(self.normalized_score * db_datum.score)

    def indexer_score_columns(
        self, documents: Documents, pages: Pages, init: pl.Series
    ) -> pl.Series:
        import polars as pl

        # As the row method: a product of doubles, rounded once.
        boost = (pages.db["score"].cast(pl.Float64) * self.normalized_score).cast(pl.Float32)
        return boost.zip_with(boost.is_not_null(), init).alias(init.name)

    def initial_score_columns(self, frame: pl.DataFrame) -> pl.DataFrame:
        import polars as pl

        return frame.with_columns(score=pl.lit(0, pl.Float32))

    def generator_sort_value_columns(self, frame: pl.DataFrame, init: pl.Series) -> pl.Series:
        return frame["score"] * init
