"""scoring-depth: counts the links between a page and its seed, and stops at a maximum.

    _depth_      IntWritable in a CrawlDatum's metadata, 1 for a seed; a string in the content's and
                 parse's metadata
    _maxdepth_   the same for the page's own maximum, which a seed line may set and links inherit

Near pages are fetched first. Source: org.apache.nutch.scoring.depth.DepthScoringFilter.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from minutch.conf import Configuration
from minutch.hadoop.formats.javahash import float32
from minutch.hadoop.formats.writables import IntWritable, Text
from minutch.plugin.points import Parse, ScoringFilter
from minutch.records.crawldatum import CrawlDatum
from minutch.records.parsedata import ParseData
from minutch.records.protocol import Content

if TYPE_CHECKING:
    import polars as pl

log = logging.getLogger(__name__)

DEPTH: Final = "_depth_"
MAX_DEPTH: Final = "_maxdepth_"
_DEPTH_KEY: Final = Text(DEPTH)
_MAX_DEPTH_KEY: Final = Text(MAX_DEPTH)
DEFAULT_MAX_DEPTH: Final = 1000


class DepthScoring(ScoringFilter):
    """The scoring filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        configured = conf.get_int("scoring.depth.max")
        self.max_depth = configured if configured > 0 else DEFAULT_MAX_DEPTH
        self.override: re.Pattern[str] | None = None
        self.max_depth_override = conf.get_int("scoring.depth.max.override", 10)
        pattern = conf.get("scoring.depth.override.pattern")
        if pattern:
            try:
                # Java's \w and \d are ASCII's, too.
                self.override = re.compile(pattern, re.ASCII)
            except re.error as exc:
                raise conf.wrong(
                    "scoring.depth.override.pattern", f"a regular expression ({exc})", pattern
                ) from exc

    def inject_score(self, url: str, datum: CrawlDatum) -> None:
        # A seed line has it as text.
        own = datum.metadata.pop(_MAX_DEPTH_KEY, None)
        datum.metadata[_MAX_DEPTH_KEY] = IntWritable(
            self.max_depth if own is None else int(str(own))
        )
        datum.metadata[_DEPTH_KEY] = IntWritable(1)

    def initial_score(self, url: str, datum: CrawlDatum) -> None:
        datum.metadata.setdefault(_MAX_DEPTH_KEY, IntWritable(self.max_depth))
        datum.metadata.setdefault(_DEPTH_KEY, IntWritable(1))

    def generator_sort_value(self, url: str, datum: CrawlDatum, init_sort: float) -> float:
        maximum = _int(datum, _MAX_DEPTH_KEY)
        if maximum is None:
            maximum = self.max_depth
        depth = _int(datum, _DEPTH_KEY)
        # DepthScoringFilter.generatorSortValue: with metadata but no depth the maximum counts as
        # reached.
        return float32(init_sort * (1 + (0 if depth is None else maximum - depth)))

    def generator_sort_value_columns(self, frame: pl.DataFrame, init: pl.Series) -> pl.Series:
        """Only rows with metadata take the row method: without, a page is as deep as allowed."""
        known = frame["metadata"].is_not_null()
        if not known.any():
            return init
        values = super().generator_sort_value_columns(frame.filter(known), init.filter(known))
        return init.clone().scatter(known.arg_true(), values)

    def update_db_score(
        self, url: str, old: CrawlDatum | None, datum: CrawlDatum, inlinked: list[CrawlDatum]
    ) -> None:
        before = None
        if old is not None:
            before = _int(old, _DEPTH_KEY)
            if before is None:
                self.initial_score(url, old)
        depths = [depth for linked in inlinked if (depth := _int(linked, _DEPTH_KEY)) is not None]
        datum.metadata[_DEPTH_KEY] = IntWritable(
            # The shortest way that is known, which later ones don't make longer.
            min([DEFAULT_MAX_DEPTH if before is None else before, *depths])
        )

    def pass_score_before_parsing(self, url: str, datum: CrawlDatum, content: Content) -> None:
        for name, key in ((DEPTH, _DEPTH_KEY), (MAX_DEPTH, _MAX_DEPTH_KEY)):
            value = _int(datum, key)
            if value is not None:
                content.metadata.set(name, str(value))

    def pass_score_after_parsing(self, url: str, content: Content, parse: Parse) -> None:
        for name in (DEPTH, MAX_DEPTH):
            value = content.metadata.get(name)
            if value is not None:
                parse.data.parse_meta.set(name, value)

    def distribute_score_to_outlinks(
        self,
        from_url: str,
        parse_data: ParseData,
        targets: list[tuple[str, CrawlDatum]],
        adjust: CrawlDatum | None,
        all_count: int,
    ) -> CrawlDatum | None:
        """Gives the links their depth; `targets` is emptied if that is the maximum or unknown."""
        if not targets:
            return adjust
        depth = _meta(parse_data, DEPTH)
        if depth is None:
            log.warning("no depth is known of %s: its links are dropped", from_url)
            targets.clear()
            return adjust
        own = self._own_maximum(from_url, parse_data)
        if depth >= (self.max_depth if own is None else own):
            log.info("%s has the maximum depth %d: its links are dropped", from_url, depth)
            targets.clear()
        for _, datum in targets:
            datum.metadata[_DEPTH_KEY] = IntWritable(depth + 1)
            if own is not None:
                datum.metadata[_MAX_DEPTH_KEY] = IntWritable(own)
        return adjust

    def _own_maximum(self, url: str, parse_data: ParseData) -> int | None:
        """Returns the maximum that the page's links inherit: of the override pattern if there is
        one, else of the seed.
        """
        if self.override is not None:
            return self.max_depth_override if self.override.search(url) else self.max_depth
        return _meta(parse_data, MAX_DEPTH)


def _int(datum: CrawlDatum, key: Text) -> int | None:
    value = datum.metadata.get(key)
    return value.value if isinstance(value, IntWritable) else None


def _meta(parse_data: ParseData, name: str) -> int | None:
    """Returns a number from ParseData.getMeta: of the parse's metadata, else of the content's."""
    value = parse_data.parse_meta.get(name)
    if value is None:
        value = parse_data.content_meta.get(name)
    return None if value is None else int(value)
