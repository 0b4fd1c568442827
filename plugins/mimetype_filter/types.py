"""mimetype-filter: indexes only documents of some media types.

The file that mimetype.filter.file names has a line `-` (nothing but the types that follow) or `+`
(all but those), and the beginnings of types, one on each line: `text/html`, `image/`. `#` begins a
comment; without a `-` or `+`, it is `+`. Source:
org.apache.nutch.indexer.filter.MimeTypeIndexingFilter.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.parse.mime import MimeUtil
from minutch.plugin.documents import Documents, Pages, content_type
from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument
from minutch.records.links import Inlinks
from minutch.urls.rules import rule_lines

log = logging.getLogger(__name__)


class MimeTypeIndexingFilter(IndexingFilter):
    """Leaves documents out by their types."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.mime = MimeUtil(conf)
        file = conf.get("mimetype.filter.file")
        if not file:
            log.warning("Missing mimetype.filter.file property, ALL mimetypes will be allowed")
        self.accepts_others, self.beginnings = (
            _read(conf.read_resource(file)) if file else (True, ())
        )

    def _accepts(self, name: str | None) -> bool:
        # By prefix, as in MimeTypeIndexingFilter's trie: image/ stands for all of them.
        listed = name is not None and name.startswith(self.beginnings)
        return listed != self.accepts_others

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        return (
            doc if self._accepts(self.mime.stated(content_type(datum, parse.data), url)) else None
        )

    def filter_columns(self, documents: Documents, pages: Pages) -> pl.Series | None:
        names = self.mime.stated_column(pages.content_types(), pages.urls)
        accepted = [name for name in names.unique() if self._accepts(name)]
        # A type that is null has a verdict, too.
        return names.is_in(pl.Series(accepted, dtype=pl.String).implode(), nulls_equal=True)


def _read(text: str) -> tuple[bool, tuple[str, ...]]:
    """Reads whether types that are not listed are accepted, and the prefixes of those that are."""
    accepts_others, beginnings = True, []
    for line in rule_lines(text):
        if line.startswith(("+", "-")):
            accepts_others = line[0] == "+"
        elif line.strip() and not line.startswith((" ", "#")):
            beginnings.append(line)
    return accepts_others, tuple(beginnings)
