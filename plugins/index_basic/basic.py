"""index-basic: adds the fields that every document has.

    domain    registered domain (indexer.add.domain)
    host      host of the URL, or of the representative URL where there is one
    url       that URL
    content   the text, at most indexer.max.content.length characters
    title     unless it is empty, at most indexer.max.title.length characters
    cache     what of the page is not to be shown from a cache: `content` or `all`
    tstamp    when it was fetched

Characters are UTF-16 units, as in Java. U+FFFD, which stands for bytes that could not be decoded,
is left out. Source: org.apache.nutch.indexer.basic.BasicIndexingFilter, StringUtil.cleanField,
URLUtil.getDomainName.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from minutch.conf import Configuration
from minutch.hadoop.formats.writables import Text
from minutch.plugin.columns import domain_column, host_column
from minutch.plugin.documents import Documents, Pages, cut_texts
from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import Date, NutchDocument
from minutch.records.links import Inlinks
from minutch.records.metadata import CACHING_FORBIDDEN_KEY, CACHING_FORBIDDEN_NONE, REPR_URL_KEY
from minutch.urls.domains import domain_of
from minutch.urls.parts import parse as parse_url

UNDECODED = "\ufffd"


class BasicIndexingFilter(IndexingFilter):
    """Adds the basic fields."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.max_title = conf.get_int("indexer.max.title.length")
        self.max_content = conf.get_int("indexer.max.content.length")
        self.adds_domain = conf.get_boolean("indexer.add.domain")

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        representative = datum.metadata.get(Text(REPR_URL_KEY))
        shown = url if representative is None else str(representative)
        host = parse_url(shown).host  # UrlError: the document can't be indexed
        if self.adds_domain:
            doc.add("domain", domain_of(host))
        doc.add("host", host)
        doc.add("url", shown)
        doc.add("content", _cleaned(parse.text, self.max_content))
        # Empty before U+FFFD is left out, as in BasicIndexingFilter: a title of those alone is an
        # empty field.
        if _cut(parse.data.title, self.max_title):
            doc.add("title", _cleaned(parse.data.title, self.max_title))
        cache = parse.data.meta(CACHING_FORBIDDEN_KEY)
        if cache is not None and cache != CACHING_FORBIDDEN_NONE:
            doc.add("cache", cache)
        doc.add("tstamp", Date(datum.fetch_time))
        return doc

    def filter_columns(self, documents: Documents, pages: Pages) -> pl.Series | None:
        representative = pages.fetch_meta(REPR_URL_KEY)
        shown = representative.zip_with(representative.is_not_null(), pages.urls)
        hosts = host_column(shown)
        if self.adds_domain:
            documents.add("domain", domain_column(hosts))
        documents.add("host", hosts)
        documents.add("url", shown)
        documents.add("content", _clean(pages.text, self.max_content))
        titles = _clean(pages.titles, self.max_title)
        empty = pages.titles.str.len_bytes() == 0 if self.max_title else pages.titles.is_not_null()
        documents.add("title", titles.zip_with(~empty, pl.Series([None], dtype=pl.String)))
        cache = pages.meta(CACHING_FORBIDDEN_KEY)
        documents.add("cache", cache.set(cache == CACHING_FORBIDDEN_NONE, None))
        documents.add("tstamp", pages.fetch["fetch_time"].cast(pl.Datetime("ms")))
        if not hosts.null_count():
            return None
        # Null is a failure (the row method raises UrlError), False would be a filter's verdict.
        return hosts.is_not_null().set(hosts.is_null(), None)


def _clean(texts: pl.Series, length: int) -> pl.Series:
    texts = cut_texts(texts, length) if length > -1 else texts
    # A search is cheaper than a copy of all texts.
    marked = texts.str.contains(UNDECODED, literal=True)
    return texts.str.replace_all(UNDECODED, "", literal=True) if marked.any() else texts


def _cut(text: str, length: int) -> str:
    return str(cut_texts(pl.Series([text]), length)[0]) if length > -1 else text


def _cleaned(text: str, length: int) -> str:
    return _cut(text, length).replace(UNDECODED, "")
