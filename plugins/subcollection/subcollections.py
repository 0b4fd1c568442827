"""subcollection: adds names of parts of the crawl, by strings in the URL, as the field
`subcollection`.

    <subcollections>
      <subcollection>
        <name>news</name>            what goes into the field
        <id>news</id>                says nothing here
        <key>section</key>           a field of its own (may be left out)
        <whitelist>                  a page belongs to it if its URL contains one of these lines
          https://example.org/news/
        </whitelist>
        <blacklist>/draft/</blacklist>    and none of these
      </subcollection>
    </subcollections>

stand in subcollections.xml (subcollections.config). subcollection.default.fieldname names the
field, subcollection.case.insensitive compares without case. A page with metadata `subcollection`
(subcollection.metadata.source) names its part itself. Several parts of a page stand in the order of
Java's HashMap. Source: org.apache.nutch.indexer.subcollection.SubcollectionIndexingFilter,
org.apache.nutch.collection.*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.hadoop.formats.javahash import hash_map_order, string_hash
from minutch.plugin.documents import Documents, Pages
from minutch.plugin.parameters import read_elements
from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument
from minutch.records.links import Inlinks

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

FILE = "subcollections.xml"
BLANKS = "".join(map(chr, range(33)))
"""The characters that java.lang.String.trim removes."""


@dataclass(frozen=True, slots=True)
class Subcollection:
    """One part; `field` is None where it has none of its own."""

    name: str
    field: str | None
    white: list[str]
    black: list[str]

    def has(self, url: str) -> bool:
        """Returns True if a page belongs to it."""
        # Subcollection.filter asks the blacklist first.
        return not any(text in url for text in self.black) and any(
            text in url for text in self.white
        )

    def mask(self, urls: pl.Series) -> pl.Series:
        """Returns the same for a column."""
        white, black = (
            pl.Series(texts, dtype=pl.String).implode() for texts in (self.white, self.black)
        )
        return urls.str.contains_any(white) & ~urls.str.contains_any(black)


class SubcollectionIndexingFilter(IndexingFilter):
    """Adds names of parts."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.field = conf.get_text("subcollection.default.fieldname")
        self.source = conf.get("subcollection.metadata.source") or "subcollection"
        self.ignores_case = conf.get_boolean("subcollection.case.insensitive")
        self.parts = _read(conf, self.ignores_case)

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        own = (parse.data.meta(self.source) or "").strip(BLANKS)
        if own:
            doc.add(self.field, own)
            return doc
        compared = url.lower() if self.ignores_case else url
        for part in self.parts:
            if part.has(compared):
                doc.add(part.field or self.field, part.name)
        return doc

    def filter_columns(self, documents: Documents, pages: Pages) -> pl.Series | None:
        own = pages.meta(self.source).str.strip_chars(BLANKS)
        own = own.set((own == "").fill_null(False), None)
        documents.add(self.field, own)
        compared = pages.urls.str.to_lowercase() if self.ignores_case else pages.urls
        for part in self.parts:
            names = pl.select(
                pl.when(part.mask(compared) & own.is_null()).then(pl.lit(part.name))
            ).to_series()
            documents.add(part.field or self.field, names)
        return None


def _read(conf: Configuration, ignores_case: bool) -> list[Subcollection]:
    """Returns the parts in the file. Of equal names the last one counts. Raises ConfigError."""
    file = conf.get("subcollections.config") or FILE
    parts: dict[str, Subcollection] = {}
    for element in read_elements(conf, file).iter("subcollection"):
        name = _text(element, "name")
        if not name:
            raise ConfigError(f"{conf.resource(file)}: expected a <name> in each <subcollection>")
        white, black = (
            _lines(_text(element, tag) or "", ignores_case) for tag in ("whitelist", "blacklist")
        )
        parts[name] = Subcollection(name, _text(element, "key") or None, white, black)
    found = list(parts.values())
    # CollectionManager holds them in a HashMap.
    return [found[at] for at in hash_map_order([string_hash(part.name) for part in found])]


def _text(element: Element, tag: str) -> str | None:
    found = element.find(tag)
    return None if found is None else "".join(found.itertext()).strip(BLANKS)


def _lines(text: str, ignores_case: bool) -> list[str]:
    lines = [line.strip(BLANKS) for line in text.splitlines()]
    # An empty line would be in every URL.
    return [line.lower() if ignores_case else line for line in lines if line]
