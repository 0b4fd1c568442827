"""index-links: adds the fields `outlinks` and `inlinks`, with the URLs of a page's links and of
those to it.

With index.links.outlinks.host.ignore and index.links.inlinks.host.ignore links within a host are
left out, with index.links.hosts.only the fields have the hosts instead of the URLs, each once.
What is no URL is left out. Source: org.apache.nutch.indexer.links.LinksIndexingFilter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import polars as pl

from minutch.conf import Configuration
from minutch.plugin.columns import host_column
from minutch.plugin.documents import Documents, Pages
from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument
from minutch.records.links import Inlinks
from minutch.urls.parts import host_of

OUTLINKS, INLINKS = "outlinks", "inlinks"


class LinksIndexingFilter(IndexingFilter):
    """Adds links."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.hosts_only = conf.get_boolean("index.links.hosts.only")
        self.leaves_out_own = {
            OUTLINKS: conf.get_boolean("index.links.outlinks.host.ignore"),
            INLINKS: conf.get_boolean("index.links.inlinks.host.ignore"),
        }

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        for value in self._kept(OUTLINKS, url, (link.to_url for link in parse.data.outlinks)):
            doc.add(OUTLINKS, value)
        for value in self._kept(INLINKS, url, (link.from_url for link in inlinks or ())):
            doc.add(INLINKS, value)
        return doc

    def _kept(self, field: str, page: str, links: Iterable[str]) -> Iterator[str]:
        """Yields the values of a field."""
        own = host_of(page)
        seen: set[str] = set()
        for link in links:
            host = host_of(link)
            # Of a page without a host nobody knows which links are its own.
            if host is None or (self.leaves_out_own[field] and (own is None or host == own)):
                continue
            if not self.hosts_only:
                yield link
            elif host not in seen:
                seen.add(host)
                yield host

    def filter_columns(self, documents: Documents, pages: Pages) -> pl.Series | None:
        outlinks, inlinks = pages.outlinks(), pages.inlinks()
        self._add(documents, pages, OUTLINKS, outlinks["row"], outlinks["to_url"])
        self._add(documents, pages, INLINKS, inlinks["row"], inlinks["from_url"])
        return None

    def _add(
        self, documents: Documents, pages: Pages, field: str, rows: pl.Series, urls: pl.Series
    ) -> None:
        # host_of does the same for the row method.
        hosts = host_column(urls).str.to_lowercase()
        links = pl.DataFrame(
            [rows.alias("row"), urls.alias("url"), hosts.alias("host")]
        ).drop_nulls("host")
        if self.leaves_out_own[field]:
            own = host_column(pages.urls).str.to_lowercase().gather(links["row"])
            links = links.filter((links["host"] != own).fill_null(False))
        if self.hosts_only:
            links = links.unique(["row", "host"], keep="first", maintain_order=True)
        documents.add_rows(field, links["row"], links["host" if self.hosts_only else "url"])
