"""Adds the field `lang`; lang.index.languages limits the languages that are indexed.

Source: org.apache.nutch.analysis.lang.LanguageIndexingFilter.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from minutch.conf import Configuration
from minutch.plugin.documents import Documents, Pages
from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument
from minutch.records.links import Inlinks

UNKNOWN = "unknown"


class LanguageIndexingFilter(IndexingFilter):
    """The filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self._wanted = frozenset(conf.get_strings("lang.index.languages"))

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        language = parse.data.parse_meta.get("language")
        if language is None:
            language = parse.data.content_meta.field("Content-Language")
        # LanguageIndexingFilter: an empty one, too.
        language = language or UNKNOWN
        if self._wanted and language not in self._wanted:
            return None
        doc.add("lang", language)
        return doc

    def filter_columns(self, documents: Documents, pages: Pages) -> pl.Series | None:
        found = pages.parse_meta("language")
        found = found.zip_with(
            found.is_not_null(), pages.content_meta("Content-Language")
        ).fill_null("")
        languages = found.set(found == "", UNKNOWN)
        if not self._wanted:
            documents.add("lang", languages)
            return None
        stays = languages.is_in(sorted(self._wanted))
        # Documents that go need no field.
        documents.add("lang", languages.set(~stays, None))
        return stays
