"""urlmeta: carries the tags of a seed to all pages that are found through it, and adds them to what
is indexed of each.

`urlmeta.tags` names them. Source: org.apache.nutch.scoring.urlmeta.URLMetaScoringFilter,
org.apache.nutch.indexer.urlmeta.URLMetaIndexingFilter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from minutch.conf import Configuration
from minutch.hadoop.formats.writables import Text
from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.links import Inlinks

from ..lib_carrying.carrying import CarryingFilter

if TYPE_CHECKING:  # a fetch, which scores, does without tables
    import polars as pl

    from minutch.plugin.documents import Documents, Pages
    from minutch.records.document import NutchDocument

_PROPERTY: Final = "urlmeta.tags"


class URLMetaScoringFilter(CarryingFilter):
    """The scoring filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.from_db = self.from_content = self.from_parse = conf.get_trimmed_strings(_PROPERTY)


class URLMetaIndexingFilter(IndexingFilter):
    """The indexing filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.tags = conf.get_trimmed_strings(_PROPERTY)

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        for tag in self.tags:
            value = datum.metadata.get(Text(tag))
            if value is not None:
                doc.add(tag, str(value))
        return doc

    def filter_columns(self, documents: Documents, pages: Pages) -> pl.Series | None:
        for tag in self.tags:
            documents.add(tag, pages.fetch_meta(tag))
        return None
