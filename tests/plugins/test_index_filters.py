"""Indexing and scoring filters: their column methods fill documents as their row methods do."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from minutch.conf import Configuration
from minutch.cycle.index.indexing import find_inputs
from minutch.cycle.index.inputs import MISPLACED, IndexRange
from minutch.cycle.index.rangeindexer import RangeRecords, copy_from_crawldb
from minutch.cycle.segment.store import segments_in
from minutch.errors import ConfigError
from minutch.plugin.chains import IndexingFilters, ScoringFilters
from minutch.plugin.documents import Documents, Pages, map_documents, map_scores
from minutch.records.document import NutchDocument
from minutch.work.tables.frame import empty
from minutch.work.tables.keyranges import KeyRange
from plugins.index_more.more import DEFAULT, HTTP, DateStyle, parse_date, read_styles
from tests.support.examples import tabled
from tests.support.golden import GOLDEN, needs_golden
from tests.support.pages import configuration

CRAWL = GOLDEN / "crawl-small/run-rich-r2/crawl"
NOW = 1_790_000_000_000
FILES = {
    "contenttype-mapping.txt": "web page\ttext/html\n",
    "not-html.txt": "# all but web pages\n+\ntext/html\n",
    "subcollections.xml": (
        """<subcollections>
  <subcollection><name>pages</name><id>1</id><whitelist>PAGE\n base</whitelist>\
<blacklist>page2</blacklist>
  </subcollection>
  <subcollection><name>local</name><id>2</id><whitelist>127.0.0.1</whitelist></subcollection>
  <subcollection><name>own</name><id>3</id><key>field</key><whitelist>http</whitelist>\
<blacklist>?</blacklist>
  </subcollection>
</subcollections>"""
    ),
}
"""Files in the configuration folder."""


@pytest.fixture(scope="module")
def pages() -> Pages:
    """All pages of a golden crawl that have a fetch, a parse and a text."""
    inputs = find_inputs(
        CRAWL / "crawldb", CRAWL / "linkdb", segments_in(CRAWL / "segments"), content=False
    )
    found = RangeRecords(inputs, IndexRange(KeyRange(), empty(MISPLACED)))
    records = found.joined(found.urls()).drop_nulls(["fetch", "parse", "text"])
    all_pages = found.pages(records)
    copy_from_crawldb(all_pages)
    return all_pages


def fresh(pages: Pages) -> tuple[Documents, Pages]:
    """Documents with an id, and pages that no filter has changed."""
    copy = pages.filter(pl.Series([True] * len(pages)).set(pl.Series([False] * len(pages)), False))
    documents = Documents(pages.urls)
    documents.add("id", pages.urls)
    return documents, Pages(copy.keys, copy.fetch, copy.db, copy.parse, copy.texts, copy.links)


def as_text(documents: Documents) -> list[str]:
    return [str(document) for document in documents.rows()]


@needs_golden("crawl-small/run-rich-r2/crawl/segments")
@pytest.mark.parametrize(
    ("plugin", "properties"),
    [
        ("index-basic", {}),
        ("index-basic", {"indexer.add.domain": "true", "indexer.max.title.length": "7"}),
        ("index-basic", {"indexer.max.content.length": "20", "indexer.max.title.length": "0"}),
        ("index-basic", {"indexer.max.content.length": "0", "indexer.max.title.length": "-1"}),
        ("index-anchor", {}),
        ("index-anchor", {"anchorIndexingFilter.deduplicate": "true"}),
        ("index-more", {}),
        ("index-more", {"moreIndexingFilter.indexMimeTypeParts": "false"}),
        ("index-more", {"moreIndexingFilter.mapMimeTypes": "true"}),
        (
            "index-more",
            {
                "moreIndexingFilter.mapMimeTypes": "true",
                "moreIndexingFilter.mapMimeTypes.field": "kind",
            },
        ),
        (
            "index-metadata",
            {
                "index.parse.md": "OriginalCharEncoding, robots,a",
                "index.content.md": "Server,Content-Type",
            },
        ),
        ("index-metadata", {"index.db.md": "_depth_,Content-Type,userKey", "index.parse.md": ""}),
        (
            "index-metadata",
            {
                "index.content.md": "Content-Type,Date",
                "index.metadata.separator": ";",
                "index.metadata.multivalued.fields": "Content-Type",
            },
        ),
        ("index-static", {"index.static": "a:b c,d:e,d: f  g ,no,:x,y:"}),
        ("index-links", {}),
        ("index-links", {"index.links.hosts.only": "true"}),
        ("index-links", {"index.links.outlinks.host.ignore": "true"}),
        (
            "index-links",
            {"index.links.hosts.only": "true", "index.links.inlinks.host.ignore": "true"},
        ),
        ("mimetype-filter", {}),
        ("mimetype-filter", {"mimetype.filter.file": "not-html.txt"}),
        ("subcollection", {}),
        (
            "subcollection",
            {"subcollection.case.insensitive": "true", "subcollection.default.fieldname": "part"},
        ),
        ("subcollection", {"subcollection.metadata.source": "Server"}),
        ("tld", {}),
        ("urlmeta", {"urlmeta.tags": "userKey, cat,Content-Type"}),
        ("feed", {}),
        ("language-identifier", {}),
        ("language-identifier", {"lang.index.languages": "en,unknown"}),
        ("microformats-reltag", {}),
        ("creativecommons", {}),
        ("index-jexl-filter", {"index.jexl.filter": "doc.id =~ '.*html' && title != ''"}),
    ],
)
def test_columns_as_rows(
    plugin: str, properties: dict[str, str], pages: Pages, tmp_path: Path
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    conf = Configuration.load([tmp_path], overrides={"plugin.includes": plugin} | properties)
    (indexing,) = IndexingFilters(conf).filters
    by_columns, its_pages = fresh(pages)
    stays = indexing.filter_columns(by_columns, its_pages)
    by_rows, others = fresh(pages)
    expected = map_documents(
        by_rows,
        others,
        lambda doc, page: indexing.filter(doc, page.parse, page.url, page.datum, page.inlinks),
    )
    assert expected.to_list() == ([True] * len(pages) if stays is None else stays.to_list())
    assert as_text(by_columns) == as_text(by_rows)


@needs_golden("crawl-small/run-rich-r2/crawl/segments")
@pytest.mark.parametrize("plugin", ["scoring-opic", "scoring-link", "scoring-depth"])
def test_scores_as_rows(plugin: str, pages: Pages) -> None:
    conf = Configuration.load([], overrides={"plugin.includes": plugin})
    (scoring,) = ScoringFilters(conf).filters
    documents, its_pages = fresh(pages)
    init = pl.Series("boost", [1.5] * len(pages), dtype=pl.Float32)
    by_columns = scoring.indexer_score_columns(documents, its_pages, init)
    assert by_columns.equals(map_scores(documents, its_pages, init, scoring.indexer_score))


@needs_golden("crawl-small/run-rich-r2/crawl/segments")
def test_a_filter_that_fails_fails_for_its_page_alone(
    pages: Pages, caplog: pytest.LogCaptureFixture
) -> None:
    documents, its_pages = fresh(pages)

    def change(document: NutchDocument, page: object) -> NutchDocument | None:
        if str(document.first("id")).endswith("page1.html"):
            raise KeyError("odd")
        return document

    stays = map_documents(documents, its_pages, change)
    assert stays.null_count() == 1
    assert "page1.html: KeyError: 'odd'" in caplog.text


@tabled(
    ("text", "expected"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784111777000),
        ("Sun, 6 Nov 1994 08:49:37 +0100", 784108177000),
        ("Sunday Nov 06 08:49:37 1994", 784111777000),
        ("Sun Nov 06 08:49:37 PST 1994", 784140577000),
        ("Sun, 06-Nov-94 08:49:37 GMT", 784111777000),
        ("Sun,06 Nov 1994 08:49:37 GMT+01:00", 784108177000),
        ("1994/11/06 08:49:37.250", 784111777250),
        ("1994/11/06", 784080000000),
        ("1994-11-06 08:49", 784111740000),
        ("06.11.1994; 08:49:37", 784111777000),
        ("1994-11-06T08:49:37Z", 784111777000),
        ("1994-11-06T08:49:37+01:00", 784108177000),
        ("Sun, 36 Oct 1994 08:49:37 GMT", 784025377000),
        ("yesterday", None),
        ("Sun, 06 Nov 1994 08:49:37 XYZ", None),
        ("99999/11/06", None),
        ("", None),
    ],
)
def test_dates(text: str, expected: int | None) -> None:
    styles = [DateStyle(HTTP), *map(DateStyle, DEFAULT)]
    assert parse_date(text, styles, NOW) == expected


def test_styles_of_a_file() -> None:
    assert [style.pattern for style in read_styles("# a comment\n\n yyyy \n")] == ["yyyy"]
    with pytest.raises(ValueError, match="unknown letter Q"):
        read_styles("yyyyQ")


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({}, "The property index.jexl.filter must have a value"),
        ({"index.jexl.filter": "a =="}, "index.jexl.filter: "),
    ],
)
def test_a_filter_needs_an_expression(properties: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        IndexingFilters(configuration("index-jexl-filter", **properties))
