"""index-metadata: adds values of metadata as fields of the same names.

    index.db.md         names in the metadata of the entry in crawl_fetch (from the seed list,
                        scoring filters, …)
    index.parse.md      names in the parse's metadata (metatag.description, h1, …)
    index.content.md    names in the content's metadata: headers, whatever the case of their names

index.metadata.separator splits the values of the fields that index.metadata.multivalued.fields
names. Blanks around a value are left out, and so are empty values. Source:
org.apache.nutch.indexer.metadata.MetadataIndexer, which takes the separator for a regular
expression.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from minutch.conf import Configuration
from minutch.hadoop.formats.writables import Text
from minutch.plugin.documents import Documents, Pages
from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument
from minutch.records.links import Inlinks

BLANKS = "".join(map(chr, range(33)))
"""The characters that java.lang.String.trim removes."""


class MetadataIndexer(IndexingFilter):
    """Adds metadata."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.of_db = conf.get_trimmed_strings("index.db.md")
        self.of_parse = conf.get_trimmed_strings("index.parse.md")
        self.of_content = conf.get_trimmed_strings("index.content.md")
        self.separator = conf.get("index.metadata.separator")
        self.several = frozenset(conf.get_trimmed_strings("index.metadata.multivalued.fields"))

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        for name in self.of_db:
            known = datum.metadata.get(Text(name))
            if known is not None:
                self._add(doc, name, str(known))
        for name in self.of_parse:
            for value in parse.data.parse_meta.get_values(name):
                self._add(doc, name, value)
        for name in self.of_content:
            # HTTP/2 sends names in lower case: `Content-Language` is looked for in any.
            for value in parse.data.content_meta.field_values(name):
                self._add(doc, name, value)
        return doc

    def _add(self, doc: NutchDocument, name: str, value: str) -> None:
        for part in (
            value.split(self.separator) if self.separator and name in self.several else [value]
        ):
            if part.strip(BLANKS):
                doc.add(name, part.strip(BLANKS))

    def filter_columns(self, documents: Documents, pages: Pages) -> pl.Series | None:
        for name in self.of_db:
            values = pages.fetch_meta(name)
            self._add_rows(
                documents, name, pl.DataFrame({"value": values}).with_row_index("row").drop_nulls()
            )
        for name in self.of_parse:
            self._add_rows(documents, name, pages.parse_values(name))
        for name in self.of_content:
            self._add_rows(documents, name, pages.content_values(name))
        return None

    def _add_rows(self, documents: Documents, name: str, found: pl.DataFrame) -> None:
        if self.separator and name in self.several:
            found = found.with_columns(pl.col("value").str.split(self.separator)).explode("value")
        trimmed = found.with_columns(pl.col("value").str.strip_chars(BLANKS)).filter(
            pl.col("value") != ""
        )
        documents.add_rows(name, trimmed["row"], trimmed["value"])
