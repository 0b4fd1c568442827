"""Hostile pages and filters that fail: each is the matter of its page, and the others are
indexed.
"""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.segment.store import Segment, part_writer
from minutch.job import Counters, JobContext
from minutch.records.links_columns import INLINKS_SCHEMA, LinkSets
from minutch.records.parsedata import ParseText
from tests.support.commands import index as job
from tests.support.documents import Made

FILTERS = (
    "index-(basic|anchor|more|metadata|static|replace|links)|mimetype-filter|subcollection|tld|urlmeta|feed|"
    "creativecommons|microformats-reltag|language-identifier|indexer-csv|scoring-opic|own-(rows|columns)"
)
FIELDS = (
    "id,title,content,anchor,host,type,tag,lang,cc,tld,outlinks,inlinks,lastModified,contentLength,k,author,publishedDate,"
    "cat,src,seen"
)
PLUGIN = """<plugin id="own-{name}"><requires><import plugin="nutch-extensionpoints"/></requires>
<extension point="org.apache.nutch.indexer.IndexingFilter">
<implementation id="Own{name}" class="own_{name}:Own"/></extension></plugin>"""
ROWS = """
from minutch.plugin.points import IndexingFilter

class Own(IndexingFilter):
    def filter(self, doc, parse, url, datum, inlinks):
        if "raises" in url:
            raise RuntimeError("no such page \\x1b[2J")
        doc.add("seen", "row")
        return doc
"""
COLUMNS = """
from minutch.plugin.points import IndexingFilter

class Own(IndexingFilter):
    def filter(self, doc, parse, url, datum, inlinks):
        if "breaks" in url:
            raise KeyError(url)
        doc.add("seen", "column")
        return doc

    def filter_columns(self, documents, pages):
        documents.set("host", documents.keys)
        if any("breaks" in url for url in pages.urls):
            raise ValueError("all of them")
"""
RAW = "\u0001RAW\u0002"
"""Stands for bytes that are no UTF-8."""
NOISE = "a\x00b\x1b[31mc\x07\u202ed\ufeff\u2028e\r\nf,\"g'"


def write(folder: Path, pages: list[Made]) -> Path:
    """A segment with these pages."""
    segment = Segment(folder / "segments/20260101000000")
    segment.path.mkdir(parents=True)
    with segment.writing(("crawl_fetch", "crawl_parse", "parse_data", "parse_text")) as directory:
        with part_writer(directory, "crawl_parse", 0):
            pass
        for part in ("crawl_fetch", "parse_data", "parse_text"):
            with part_writer(directory, part, 0) as append:
                for page in sorted(pages, key=lambda page: page.url):
                    made = {
                        "crawl_fetch": page.datum,
                        "parse_data": page.data,
                        "parse_text": lambda: ParseText(NOISE),
                    }
                    append(page.url, made[part]())
    return segment.path


def run(folder: Path, *words: str, **properties: str) -> tuple[Counters, str]:
    """The counters, and what the CSV file holds."""
    for name, code in (("rows", ROWS), ("columns", COLUMNS)):
        (folder / f"own/own-{name}").mkdir(parents=True, exist_ok=True)
        (folder / f"own/own-{name}/plugin.xml").write_text(PLUGIN.format(name=name))
        (folder / f"own/own-{name}/own_{name}.py").write_text(code)
    (folder / "index-writers.xml").write_text(
        '<writers><writer id="c"'
        ' class="org.apache.nutch.indexwriter.csv.CSVIndexWriter"><parameters><param'
        f' name="outpath" value="{folder}/csv"/><param name="fields" value="{FIELDS}"/><param'
        ' name="maxfieldvalues" value="3"/></parameters></writer></writers>'
    )
    (folder / "mimetype-filter.txt").write_text("+\n")
    values = {
        "plugin.includes": FILTERS,
        "plugin.folders": str(folder / "own"),
        "index.parse.md": "k,Rel-Tag",
        "index.content.md": "Content-Type",
        "index.replace.regexp": "title=/\\W+/ /\nk=/x+/y/",
        "index.static": "src:s",
        "urlmeta.tags": "cat",
    }
    conf = Configuration.load([folder], overrides=values | properties).freeze()
    context = JobContext(conf, FakeClock(0), io.StringIO(), io.StringIO())
    assert job.run(list(words), context) == 0
    return context.reports["Indexer"], (folder / "csv/nutch.csv").read_bytes().decode()


def ids(csv: str) -> list[str]:
    return [line.partition(",")[0] for line in csv.splitlines() if line.startswith("http://")]


def test_hostile_pages(tmp_path: Path) -> None:
    noisy = dict.fromkeys(
        (
            "k",
            "Rel-Tag",
            "author",
            "tag",
            "feed",
            "published",
            "language",
            "License-Url",
            "License-Location",
        ),
        NOISE,
    )
    headers = (
        "Content-Type",
        "Last-Modified",
        "Content-Length",
        "Content-Disposition",
        "_ip_",
        "Content-Language",
    )
    pages = [
        Made(
            "http://a.example/controls",
            NOISE,
            {"cat": NOISE},
            dict(noisy),
            dict.fromkeys(headers, NOISE),
            [NOISE],
        ),
        Made(
            "http://a.example/huge",
            "t" * 1_000_000,
            parse={"k": "x" * 5_000_000, "Rel-Tag": ["v"] * 200_000},
        ),
        Made("http://a.example/names", content={f"n{number}": "v" for number in range(50_000)}),
        Made(
            "http://a.example/dates",
            content={"Last-Modified": "292278994/08/17"},
            parse={"published": "9" * 18},
        ),
        Made(
            "http://a.example/links",
            links=["javascript:x", "http://[", "http://b.example/" + "y" * 100_000] * 100,
        ),
        Made("http://a.example/plain", "Plain"),
    ]
    counters, csv = run(tmp_path, "-nocrawldb", str(write(tmp_path, pages)))
    assert counters == {"indexed_total": 6}
    assert sorted(ids(csv)) == sorted(page.url for page in pages)
    assert len(csv) < 20_000_000


def test_bytes_that_are_no_utf8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Titles, metadata and links with bytes of no charset."""
    page = Made(
        "http://a.example/raw",
        RAW,
        parse={"k": RAW, "Rel-Tag": RAW},
        links=[f"http://b.example/{RAW}"],
    )
    plain = Made.data
    monkeypatch.setattr(Made, "data", lambda self: _Raw(plain(self).to_bytes()))
    counters, csv = run(
        tmp_path, "-nocrawldb", str(write(tmp_path, [page, Made("http://a.example/plain")]))
    )
    assert counters == {"indexed_total": 2}
    assert ids(csv) == ["http://a.example/plain", "http://a.example/raw"]
    assert csv.count("\ufffd") > 4


class _Raw:
    """ParseData whose placeholders are bytes of no charset."""

    class_name = "org.apache.nutch.parse.ParseData"

    def __init__(self, data: bytes) -> None:
        self.data = data.replace(RAW.encode(), b"\xff\xc0\xed\xa0\x80")

    def to_bytes(self) -> bytes:
        return self.data


@pytest.mark.slow
def test_a_million_anchors(tmp_path: Path) -> None:
    segment = write(tmp_path, [Made("http://a.example/"), Made("http://b.example/")])
    count = 1_000_001
    number = pl.Series(range(count))
    hosts = (
        "http://h" + (number % 1000).cast(pl.String) + ".example/" + number.cast(pl.String)
    ).cast(pl.Binary)
    links = pl.DataFrame(
        {
            "key": (
                pl.Series([b"http://a.example/"]).extend(
                    pl.Series([b"http://b.example/"]).new_from_index(0, count - 1)
                )
            ),
            "from_url": hosts,
            "anchor": ("text " + (number % 5000).cast(pl.String)).cast(pl.Binary),
            "metadata": pl.Series([None], dtype=pl.Binary).new_from_index(0, count),
        },
        schema=INLINKS_SCHEMA,
    )
    linkdb = LinkDb(tmp_path / "linkdb")
    with LinkDb.part_writer(linkdb.path / "current", 0, "1.21") as writer:
        writer.write(LinkSets.of(links))
    words = ("-nocrawldb", "-linkdb", str(linkdb.path), str(segment))
    counters, csv = run(
        tmp_path, *words, **{"plugin.includes": "index-(basic|anchor|links)|indexer-csv"}
    )
    assert counters == {"indexed_total": 2}
    assert ids(csv) == ["http://a.example/", "http://b.example/"]
    assert '"text 1|text 2|text 3|' in csv


def test_a_filter_that_raises_fails_for_its_page(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    names = ("good", "raises", "breaks", "fine")
    segment = write(tmp_path, [Made(f"http://a.example/{name}") for name in names])
    counters, csv = run(tmp_path, "-nocrawldb", str(segment))
    assert counters == {"indexed_total": 2, "errors_indexing_total": 2}
    assert ids(csv) == ["http://a.example/fine", "http://a.example/good"]
    assert "http://a.example/raises: RuntimeError: no such page" in caplog.text
    assert "http://a.example/breaks: KeyError" in caplog.text
    assert "http://a.example/fine," in csv
    assert '"column|row"' in csv or '"row|column"' in csv
    assert ",a.example," in csv  # what the columns did before they failed is undone
