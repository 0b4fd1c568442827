"""Pages made up for indexing filters, and the documents that a filter makes of them, by rows and by
columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from minutch.conf import Configuration
from minutch.hadoop.formats.batch import Batch
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.plugin.chains import IndexingFilters
from minutch.plugin.documents import Documents, PageLinks, Pages, map_documents
from minutch.plugin.points import IndexingFilter
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA, to_frame
from minutch.records.links import Outlink
from minutch.records.links_columns import INLINKS_SCHEMA
from minutch.records.metadata import Metadata
from minutch.records.parsedata import SUCCESS, ParseData, ParseStatus
from minutch.records.parsedata_columns import decode

Fields = dict[str, list[object]]


@dataclass
class Made:
    """A page; what is known of it is nothing much."""

    url: str = "http://a.example/"
    title: str = "title"
    fetch: dict[str, str] = field(default_factory=dict)
    parse: dict[str, str | list[str]] = field(default_factory=dict)
    content: dict[str, str | list[str]] = field(default_factory=dict)
    links: list[str] = field(default_factory=list)
    inlinks: list[tuple[str, str]] = field(default_factory=list)

    def data(self) -> ParseData:
        found = [Outlink(link) for link in self.links]
        content, parse = Metadata.of(self.content), Metadata.of(self.parse)
        return ParseData(ParseStatus(SUCCESS), self.title, found, content, parse)

    def datum(self) -> CrawlDatum:
        metadata = MapWritable({Text(name): Text(value) for name, value in self.fetch.items()})
        return CrawlDatum(status.STATUS_FETCH_SUCCESS, fetch_time=1000, metadata=metadata)


def pages_of(*made: Made) -> Pages:
    """The pages as an index job has them; none is in the CrawlDb."""
    keys = [page.url.encode() for page in made]
    counts = np.array([len(page.inlinks) for page in made])
    links = [
        (url, one.encode(), text.encode(), None)
        for url, page in zip(keys, made, strict=True)
        for one, text in page.inlinks
    ]
    return Pages(
        pl.Series("key", keys, dtype=pl.Binary),
        to_frame((page.url, page.datum()) for page in made),
        pl.DataFrame({name: [None] * len(made) for name in CRAWLDB_SCHEMA}, schema=CRAWLDB_SCHEMA),
        decode(Batch.of(keys, [page.data().to_bytes() for page in made])),
        pl.Series("text", [f"text of {page.title}".encode() for page in made], dtype=pl.Binary),
        PageLinks(
            pl.DataFrame(links, schema=INLINKS_SCHEMA, orient="row"),
            np.concatenate(([0], np.cumsum(counts)[:-1])).astype(np.int64),
            np.where(counts == 0, -1, counts).astype(np.int64),
        ),
    )


def documents_of(
    conf: Configuration, *made: Made, begin: Sequence[Fields] = ()
) -> list[Fields | None]:
    """The fields of each page's document after all filters, None where it is left out or failed.

    `begin`: fields that the documents have before. Rows and columns have to agree.
    """
    by_columns, by_rows = (_filtered(conf, made, begin, rows=rows) for rows in (False, True))
    assert by_columns == by_rows
    return by_columns


def _filtered(
    conf: Configuration, made: Sequence[Made], begin: Sequence[Fields], rows: bool
) -> list[Fields | None]:
    pages = pages_of(*made)
    documents = Documents(pages.urls)
    for number, fields in enumerate(begin):
        for name, values in fields.items():
            for value in values:
                documents.add_rows(name, pl.Series([number]), pl.Series([value]))
    stays = pl.Series([True] * len(made))
    for indexing in IndexingFilters(conf).filters:
        found = (
            _by_rows(indexing, documents, pages)
            if rows
            else indexing.filter_columns(documents, pages)
        )
        stays = stays if found is None else stays & found
    shown = [
        {name: list(one.values) for name, one in sorted(row.fields.items())}
        for row in documents.rows()
    ]
    return [fields if kept else None for fields, kept in zip(shown, stays, strict=True)]


def _by_rows(indexing: IndexingFilter, documents: Documents, pages: Pages) -> pl.Series:
    return map_documents(
        documents,
        pages,
        lambda doc, page: indexing.filter(doc, page.parse, page.url, page.datum, page.inlinks),
    )
