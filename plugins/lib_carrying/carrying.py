"""Carries metadata of a page from the CrawlDb through content and parse to the pages that it links
to.

What scoring-metadata and urlmeta share. Source:
org.apache.nutch.scoring.metadata.MetadataScoringFilter.
"""

from __future__ import annotations

from collections.abc import Sequence

from minutch.hadoop.formats.writables import Text
from minutch.plugin.points import Parse, ScoringFilter
from minutch.records.crawldatum import CrawlDatum
from minutch.records.parsedata import ParseData
from minutch.records.protocol import Content


class CarryingFilter(ScoringFilter):
    """Carries the keys in `from_db`, `from_content` and `from_parse` one step further."""

    from_db: Sequence[str] = ()
    from_content: Sequence[str] = ()
    from_parse: Sequence[str] = ()

    def pass_score_before_parsing(self, url: str, datum: CrawlDatum, content: Content) -> None:
        for name in self.from_db:
            value = datum.metadata.get(Text(name))
            if value is not None:
                content.metadata.set(name, str(value))

    def pass_score_after_parsing(self, url: str, content: Content, parse: Parse) -> None:
        for name in self.from_content:
            # A key from the CrawlDb, or a header in whatever case a server sent it.
            value = content.metadata.field(name)
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
        for name, value in self._carried(parse_data):
            for _, datum in targets:
                datum.metadata[Text(name)] = Text(value)
        return adjust

    def outlink_score(
        self, parse_data: ParseData, kept: int, all_count: int, score: float
    ) -> float | None:
        # None: links need the row method, since each target gets metadata.
        return None if self._carried(parse_data) else score

    def _carried(self, parse_data: ParseData) -> list[tuple[str, str]]:
        """Returns the metadata that a page passes on to its links: names and values."""
        values = ((name, parse_data.meta(name)) for name in self.from_parse)
        return [(name, value) for name, value in values if value is not None]
