"""index-static: adds fields with the same values to every document, from the property index.static.

    index.static = source:news,kind:small site

gives `source` the value news, and `kind` the values small and site. index.static.fieldsep (,),
index.static.keysep (:) and index.static.valuesep (a blank) may be other characters. What is not a
name and values is left out with a warning; of a name that is there twice, the last counts. Source:
org.apache.nutch.indexer.staticfield.StaticFieldIndexer.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import polars as pl

from minutch.conf import Configuration
from minutch.plugin.documents import Documents, Pages
from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument
from minutch.records.links import Inlinks

log = logging.getLogger(__name__)


class StaticFieldIndexer(IndexingFilter):
    """Adds the fields."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.fields = _fields(
            conf.get("index.static", ""),
            conf.get_text("index.static.fieldsep"),
            conf.get_text("index.static.keysep"),
            conf.get_text("index.static.valuesep"),
        )

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        for name, values in self.fields.items():
            for value in values:
                doc.add(name, value)
        return doc

    def filter_columns(self, documents: Documents, pages: Pages) -> pl.Series | None:
        for name, values in self.fields.items():
            for value in values:
                documents.add(name, pl.Series([value]).new_from_index(0, len(documents)))
        return None


def _fields(
    text: str, between_fields: str, after_name: str, between_values: str
) -> dict[str, list[str]]:
    """Field → values."""
    fields: dict[str, list[str]] = {}
    for item in text.split(between_fields):
        name, *rest = (part.strip() for part in item.split(after_name))
        # String.split in Java leaves out empty strings at the end.
        while rest and not rest[-1]:
            rest.pop()
        if name and len(rest) == 1:
            fields[name] = [value for value in rest[0].split(between_values) if value]
        elif item.strip():
            log.warning("index.static: expected NAME%sVALUES, found %r", after_name, item.strip())
    return fields
