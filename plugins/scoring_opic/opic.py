"""scoring-opic: passes the score of a page on to the pages that it links to, in equal shares.

New pages start at 0; each link found adds its share. All arithmetic is Java's, in 32-bit floats,
link by link. Source: org.apache.nutch.scoring.opic.OPICScoringFilter, a variant of On-Line Page
Importance Computation (Abiteboul, Preda, Cobena 2003) in which a page keeps what it passes on.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from minutch.conf import Configuration
from minutch.hadoop.formats.javahash import float32, float_to_string
from minutch.plugin.points import Parse, ScoringFilter
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument
from minutch.records.links import Inlinks
from minutch.records.metadata import SCORE_KEY
from minutch.records.parsedata import ParseData
from minutch.records.protocol import Content
from minutch.urls.parts import host_of

if TYPE_CHECKING:
    import polars as pl

    from minutch.plugin.documents import Documents, Pages

log = logging.getLogger(__name__)


class OpicScoring(ScoringFilter):
    """The scoring filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.power = conf.get_float("indexer.score.power")
        self.internal_factor = conf.get_float("db.score.link.internal")
        self.external_factor = conf.get_float("db.score.link.external")
        self.count_filtered = conf.get_boolean("db.score.count.filtered")

    # -- one record --------------------------------------------------------------------------------

    def initial_score(self, url: str, datum: CrawlDatum) -> None:
        datum.score = 0.0

    def generator_sort_value(self, url: str, datum: CrawlDatum, init_sort: float) -> float:
        return float32(datum.score * init_sort)

    def update_db_score(
        self, url: str, old: CrawlDatum | None, datum: CrawlDatum, inlinked: list[CrawlDatum]
    ) -> None:
        gained = 0.0
        for linked in inlinked:
            gained = float32(gained + linked.score)
        datum.score = float32((datum if old is None else old).score + gained)

    def pass_score_before_parsing(self, url: str, datum: CrawlDatum, content: Content) -> None:
        content.metadata.set(SCORE_KEY, float_to_string(datum.score))

    def pass_score_after_parsing(self, url: str, content: Content, parse: Parse) -> None:
        score = content.metadata.get(SCORE_KEY)
        if score is not None:
            parse.data.content_meta.set(SCORE_KEY, score)

    def distribute_score_to_outlinks(
        self,
        from_url: str,
        parse_data: ParseData,
        targets: list[tuple[str, CrawlDatum]],
        adjust: CrawlDatum | None,
        all_count: int,
    ) -> CrawlDatum | None:
        if not targets:
            return adjust
        internal, external = self._shares(parse_data, len(targets), all_count)
        if internal == external:
            for _, datum in targets:
                datum.score = internal
            return adjust
        from_host = _host(from_url)
        for url, datum in targets:
            to_host = _host(url)
            datum.score = internal if to_host is not None and to_host == from_host else external
        return adjust

    def _shares(self, parse_data: ParseData, kept: int, all_count: int) -> tuple[float, float]:
        """Returns the share of a link inside the host, and of one to another host."""
        share = float32(_score_of(parse_data) / ((all_count if self.count_filtered else kept) or 1))
        return float32(share * self.internal_factor), float32(share * self.external_factor)

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
        if db_datum is None:
            return init_score
        return float32(float32(_power(db_datum.score, self.power)) * init_score)

    def outlink_score(
        self, parse_data: ParseData, kept: int, all_count: int, score: float
    ) -> float | None:
        internal, external = self._shares(parse_data, kept, all_count)
        return internal if internal == external else None

    def indexer_score_columns(
        self, documents: Documents, pages: Pages, init: pl.Series
    ) -> pl.Series:
        import polars as pl

        powers = [
            None if score is None else _power(score, self.power) for score in pages.db["score"]
        ]
        boost = pl.Series(init.name, powers, dtype=pl.Float64).cast(pl.Float32) * init
        return boost.zip_with(boost.is_not_null(), init)

    # -- columns -----------------------------------------------------------------------------------

    def initial_score_columns(self, frame: pl.DataFrame) -> pl.DataFrame:
        import polars as pl

        return frame.with_columns(score=pl.lit(0, pl.Float32))

    def generator_sort_value_columns(self, frame: pl.DataFrame, init: pl.Series) -> pl.Series:
        return frame["score"] * init

    def update_db_score_columns(
        self, frame: pl.DataFrame, old: pl.DataFrame, inlinked: pl.DataFrame
    ) -> pl.DataFrame:
        before = old["score"].zip_with(old["status"].is_not_null(), frame["score"])
        return frame.with_columns(score=self.linked_score_columns(before, inlinked))

    def linked_score_columns(self, scores: pl.Series, inlinked: pl.DataFrame) -> pl.Series:
        import numpy as np
        import polars as pl

        gained = np.zeros(len(scores), np.float32)
        np.add.at(
            gained, inlinked["row"].to_numpy(), inlinked["score"].to_numpy()
        )  # one by one, in order
        return scores + pl.Series(gained)


def _score_of(parse_data: ParseData) -> float:
    """Returns the page's score from the fetcher's metadata; 0 if missing or no number."""
    text = parse_data.content_meta.get(SCORE_KEY)
    if text is None:
        return 0.0
    try:
        return float32(float(text))
    except ValueError:
        log.error("score in the metadata is not a number: %r", text)
        return 0.0


def _host(url: str) -> str | None:
    host = host_of(url)
    if host is None:
        log.error("no host: %s is no URL", url)
    return host


def _power(base: float, exponent: float) -> float:
    """Math.pow, which raises nothing."""
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf
    except ValueError:  # a negative base with a broken exponent, or 0 to a negative power
        return math.inf if base == 0 else math.nan
