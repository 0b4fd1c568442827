"""`minutch.open`, and the tables of a crawl."""

from __future__ import annotations

import shutil
from itertools import chain
from pathlib import Path

import polars as pl
import pytest

import minutch
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    PARSE_DATA,
    PARSE_TEXT,
    Segment,
    part_writer,
)
from minutch.errors import MinutchError, StoreError
from minutch.hadoop.formats.writables import Text
from minutch.inspect.query.exports import export_parquet
from minutch.records import protocol
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import SIGNATURE_KEY
from minutch.records.parsedata import SUCCESS, ParseData, ParseStatus, ParseText
from minutch.records.protocol import Content, ProtocolStatus
from tests.support.crawldbs import DAY, NOW, metadata, write_db
from tests.support.golden import GOLDEN, needs_golden

CRAWL = "crawl-small/run-rich-r2/crawl"


def test_what_is_no_crawl_is_an_error_that_says_what_may_be_meant(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no folder"):
        minutch.open(tmp_path / "nothing")
    with pytest.raises(
        StoreError, match="is no crawl: it has none of crawldb, linkdb, segments, hostdb"
    ):
        minutch.open(tmp_path)
    write_db(tmp_path / "crawldb", [("http://a.org/", CrawlDatum())])
    with pytest.raises(StoreError) as caught:
        minutch.open(tmp_path / "crawldb")
    assert caught.value.hint == f"name the folder of the crawl: {tmp_path}"


def test_the_entries_of_a_crawldb_have_typed_columns(tmp_path: Path) -> None:
    signature = bytes(range(16))
    entries = [
        (
            "http://a.org/",
            CrawlDatum(2, 60, 1.5, NOW, NOW - DAY, 3, signature, metadata(kind="x", é="ü")),
        ),
        ("http://user@B.org:81/x", CrawlDatum(99, 0, 0.0, 0)),
        ("nothing", CrawlDatum(1, 7, -1.0, -5)),
    ]
    write_db(tmp_path / "crawldb", entries, parts=2)
    table = minutch.open(tmp_path).crawldb
    found = table.scan().sort("url").collect()
    assert found.schema == table.schema
    assert len(table) == 3
    first, second, third = found.iter_rows(named=True)
    assert (first["url"], first["host"], first["status"]) == (
        "http://a.org/",
        "a.org",
        "db_fetched",
    )
    assert first["fetch_time"].timestamp() * 1000 == NOW
    assert first["modified_time"].timestamp() * 1000 == NOW - DAY
    assert (first["fetch_interval"], first["retries"], first["score"]) == (60, 3, 1.5)
    assert first["signature"] == signature.hex()
    assert sorted((pair["key"], pair["value"]) for pair in first["metadata"]) == [
        ("kind", "x"),
        ("é", "ü"),
    ]
    assert (second["host"], second["status"], second["modified_time"]) == ("b.org", "unknown", None)
    assert (second["signature"], second["metadata"]) == (None, [])
    assert third["host"] is None


def test_times_beyond_the_calendar_are_its_ends(tmp_path: Path) -> None:
    """ISO/IEC 9075-2, 4.6.2: the years are 0001 to 9999. A comparison still finds them."""
    times = {"a": -(2**63), "b": 0, "c": 9_007_199_254_740_992, "d": 2**63 - 1}
    entries = [(f"http://{name}/", CrawlDatum(1, fetch_time=ms)) for name, ms in times.items()]
    write_db(tmp_path / "crawldb", entries)
    found = minutch.open(tmp_path).crawldb.scan().collect()
    assert [time.year for time in found["fetch_time"]] == [1, 1970, 9999, 9999]
    assert found["fetch_time"].dt.strftime("%Y").to_list() == ["0001", "1970", "9999", "9999"]
    late = found.filter(
        pl.col("fetch_time") > pl.lit("2100-01-01").str.to_datetime(time_zone="UTC")
    )
    assert late["url"].to_list() == ["http://c/", "http://d/"]


def test_rows_are_found_by_their_url(tmp_path: Path) -> None:
    entries = [(f"http://a.org/{name}", CrawlDatum(1, retries=3)) for name in ("a", "é", "z")]
    write_db(tmp_path / "crawldb", entries)
    table = minutch.open(tmp_path).crawldb
    assert table["http://a.org/é"]["retries"] == 3
    assert "http://a.org/b" not in table and table.get("http://a.org/b") is None
    with pytest.raises(KeyError):
        _ = table["http://a.org/b"]
    assert [row["url"] for row in table] == sorted(url for url, _ in entries)
    with pytest.raises(TypeError, match="several may have the same URL"):
        _ = minutch.open(tmp_path).tables["duplicates"]["x"]


@needs_golden(CRAWL)
def test_segments_have_their_folders_as_tables() -> None:
    segments = minutch.open(GOLDEN / CRAWL).segments
    first = segments[0]
    assert first.name == "20261121072537" and segments[first.name].path == first.path
    assert list(first.folders) == ["crawl_generate", "crawl_fetch", "crawl_parse", "parse_data"]
    assert all(len(table) == len(table.scan().collect()) > 0 for table in first.folders.values())
    signed = first.folders["crawl_parse"].scan().filter(pl.col("status") == "signature").collect()
    assert len(signed) == len(first.parses)
    assert (
        segments.scan().select(pl.col("segment").n_unique()).collect().item() == len(segments) == 3
    )
    with pytest.raises(KeyError):
        _ = segments["20000101000000"]


def test_arrow_and_pandas(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("pandas")
    write_db(tmp_path / "crawldb", [("http://a.org/", CrawlDatum(2, 60, 1.5, NOW))])
    table = minutch.open(tmp_path).crawldb
    assert table.to_arrow().column("url").to_pylist() == ["http://a.org/"]
    frame = table.to_pandas()
    assert frame["status"][0] == "db_fetched" and frame["fetch_time"][0].timestamp() * 1000 == NOW


@needs_golden(CRAWL)
def test_every_table_of_a_crawl_by_nutch(tmp_path: Path) -> None:
    crawl = minutch.open(shutil.copytree(GOLDEN / CRAWL, tmp_path / "crawl"))
    sizes = {name: len(table) for name, table in crawl.tables.items()}
    assert sizes == {
        "crawldb": 109,
        "linkdb": 98,
        "links": 133,
        "pages": 111,
        "parses": 62,
        "hosts": 6,
        "duplicates": 4,
        "near_duplicates": 4,
        "rights": 0,
        "sitemaps": 0,
        "checks": 0,
        "changes": 63,
        "site": 109,
        "wrong_links": 38,
    }
    rows = {name: table.scan().collect() for name, table in crawl.tables.items()}
    assert {name: found.schema for name, found in rows.items()} == {
        name: table.schema for name, table in crawl.tables.items()
    }
    assert rows["linkdb"]["inlinks"].list.len().sum() == 133
    pages = rows["pages"]
    assert pages.filter(pl.col("code") == 200)["digest"].is_not_null().sum() == 62
    assert pages.filter(pl.col("status") == "fetch_success")["size"].null_count() == 0
    newest = pages.filter(pl.col("status") != "linked").unique("url", keep="last")
    site = rows["site"].select("url", "digest")
    assert site["digest"].drop_nulls().len() > 50
    assert (
        site.join(newest, on="url")
        .select(pl.col("digest").eq_missing(pl.col("digest_right")).all())
        .item()
    )


def test_the_digest_of_a_page_is_that_of_its_last_answer(tmp_path: Path) -> None:
    """A page that is asked for twice in a round has two answers, and two parses."""
    segment = Segment(tmp_path / "segments/20260101000000")
    twice = [_fetched(33, protocol.SUCCESS, None, "200")] * 2
    failed = _fetched(34, protocol.EXCEPTION, "java.net.SocketTimeoutException: timed out", "200")
    entries = {"a": twice, "b": [twice[0]], "c": [failed], "d": [twice[0], failed]}
    digests = {"a": ["01", "02"], "b": ["03"], "c": ["04"], "d": ["05"]}
    with part_writer(segment.path, CRAWL_FETCH, 0) as append:
        for name, data in entries.items():
            for datum in data:
                append(f"http://a.org/{name}", datum)
    with part_writer(segment.path, PARSE_DATA, 0) as append:
        for name, found in digests.items():
            for digest in found:
                parsed = ParseData(ParseStatus(SUCCESS), name)
                parsed.content_meta.add(SIGNATURE_KEY, digest)
                append(f"http://a.org/{name}", parsed)
    crawl = minutch.open(tmp_path)
    assert crawl.sql("select digest from site order by url")["digest"].to_list() == [
        "02",
        "03",
        None,
        None,
    ]
    assert crawl.sql("select digest from pages order by url")["digest"].to_list() == [
        *("01", "02", "03", None),
        *("05", None),
    ]
    assert crawl.sql("select digest from parses")["digest"].to_list() == [
        *chain.from_iterable(digests.values())
    ]


def test_a_text_is_read_only_where_it_is_asked_for(tmp_path: Path) -> None:
    segment = Segment(tmp_path / "segments/20260101000000")
    answers = {"a": "one page", "b": None, "c": "an other"}
    with part_writer(segment.path, CRAWL_FETCH, 0) as append:
        for name in answers:
            append(f"http://a.org/{name}", _fetched(33, protocol.SUCCESS, None, "200"))
    with (
        part_writer(segment.path, PARSE_DATA, 0) as data,
        part_writer(segment.path, PARSE_TEXT, 0) as texts,
    ):
        for name, text in answers.items():
            if text is not None:
                data(f"http://a.org/{name}", ParseData(ParseStatus(SUCCESS), name))
                texts(f"http://a.org/{name}", ParseText(text))
    crawl = minutch.open(tmp_path)
    assert crawl.sql("select text from pages order by url")["text"].to_list() == [*answers.values()]
    found = crawl.sql("select p.url, text from parses p where text like '%other%'")
    assert found.rows() == [("http://a.org/c", "an other")]
    export_parquet(tmp_path, tmp_path / "out", context=crawl.context)
    for table, texts_of in (("pages", [*answers.values()]), ("parses", ["one page", "an other"])):
        assert pl.read_parquet(tmp_path / f"out/{table}")["text"].to_list() == texts_of
    for path in (segment.path / PARSE_TEXT).rglob("*"):
        if path.is_file():
            path.write_bytes(b"")  # whoever reads it fails
    assert crawl.sql("select url, code, digest from pages").height == 3
    assert crawl.sql("select url, title from parses").height == 2
    for table in ("pages", "parses"):
        with pytest.raises(MinutchError):
            crawl.sql(f"select text from {table}")


def test_the_metadata_of_a_parse_are_keys_and_values(tmp_path: Path) -> None:
    segment = Segment(tmp_path / "segments/20260101000000")
    with part_writer(segment.path, PARSE_DATA, 0) as append:
        for name, found in (("a", {"k": ["1", "ü"], "l": ["2"]}), ("b", {})):
            parsed = ParseData(ParseStatus(SUCCESS), name)
            for key, values in found.items():
                for value in values:
                    parsed.parse_meta.add(key, value)
            append(f"http://a.org/{name}", parsed)
    statement = (
        "select title, m.key as key, m.value as value from (select title, unnest(metadata) as m"
        " from parses) order by key, value"
    )
    rows = minutch.open(tmp_path).sql(statement).rows()
    assert rows == [("a", "k", "1"), ("a", "k", "ü"), ("a", "l", "2")]


def test_a_redirects_target_takes_nothing_from_the_page_before_it(tmp_path: Path) -> None:
    """The entry of the target begins as that of the page that was redirected; the page itself is
    fetched later.
    """
    segment = Segment(tmp_path / "segments/20260101000000")
    moved = _fetched(33 + 3, protocol.MOVED, "http://a.org/b", "301")
    linked = _fetched(0x43, protocol.MOVED, "http://a.org/b", "301")
    failed = _fetched(
        34, protocol.EXCEPTION, "java.net.SocketTimeoutException: Read timed out", "200"
    )
    answered = _fetched(34, protocol.EXCEPTION, "Http code=503, url=http://a.org/d", "503")
    skipped = _fetched(0x43, protocol.NOTFETCHING, "hit by time limit", "200")
    entries = {
        "a": [moved],
        "b": [linked, _fetched(33, 1, None, "200")],
        "c": [failed],
        "d": [answered],
        "e": [skipped],
    }
    with part_writer(segment.path, CRAWL_FETCH, 0) as append:
        for name, data in entries.items():
            for datum in data:
                append(f"http://a.org/{name}", datum)
    with part_writer(segment.path, CONTENT, 0) as append:
        for name, size in (("a", 1), ("b", 20), ("d", 3)):
            append(
                f"http://a.org/{name}",
                Content(f"http://a.org/{name}", "", b"x" * size, "text/html"),
            )
    found = (
        minutch.open(tmp_path)
        .tables["pages"]
        .scan()
        .select("url", "code", "protocol_status", "redirect_to", "size")
    )
    assert found.collect().rows() == [
        ("http://a.org/a", 301, "moved", "http://a.org/b", 1),
        ("http://a.org/b", None, None, None, None),
        ("http://a.org/b", 200, "success", None, 20),
        ("http://a.org/c", None, "exception", None, None),
        ("http://a.org/d", 503, "exception", None, 3),
        ("http://a.org/e", None, "notfetching", None, None),
    ]


def _fetched(status: int, code: int, message: str | None, http: str) -> CrawlDatum:
    datum = CrawlDatum(status, metadata=metadata(**{"nutch.protocol.code": http}))
    datum.metadata[Text("_pst_")] = ProtocolStatus.of(code, message)
    return datum
