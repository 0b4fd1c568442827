"""The parse job on small segments: what is skipped, what fails alone, what is written, the command
itself.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.parse.parsesegment import parse
from minutch.cycle.parse.workerpool import BATCH_ITEMS
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_PARSE,
    LAYOUTS,
    PARSE_DATA,
    PARSE_TEXT,
    Segment,
    part_writer,
)
from minutch.cycle.segment.storedrecords import text_key
from minutch.errors import FormatError, StoreError, UsageError
from minutch.hadoop.formats.mapfile import MapFileWriter
from minutch.hadoop.formats.sequencewriter import RECORD, TEXT
from minutch.inspect.query.crawl import open_crawl
from minutch.job import JobContext
from minutch.records.crawldatum import CrawlDatum
from minutch.records.parsedata import ParseData
from minutch.records.protocol import Content
from tests.plugins.test_parse_others import RSS
from tests.support.commands import command, explain
from tests.support.crawldbs import write_db
from tests.support.examples import few
from tests.support.golden import PROJECT
from tests.support.officefiles import samples
from tests.support.pages import configuration, content
from tests.support.pdffiles import after, link, pdf, stream

run = command("parse").run

NOW = 1_795_000_000_000
HOST = "http://example.org/"
CONF = configuration()


def page(name: str, body: str | bytes, content_type: str = "text/html", **metadata: str) -> Content:
    return content(body, content_type, url=HOST + name, **metadata)


def segment(folder: Path, pages: Iterable[Content]) -> Segment:
    """A fetched segment with these pages."""
    made = Segment(folder / "20260101000000")
    with made.writing([CONTENT]) as directory, part_writer(directory, CONTENT, 0) as append:
        for one in sorted(pages, key=lambda one: one.url.encode()):
            append(one.url, one)
    return made


def parsed(
    folder: Path, *pages: Content, conf: Configuration = CONF
) -> tuple[Segment, dict[str, int]]:
    made = segment(folder, pages)
    return made, dict(parse(made.path, context=JobContext(conf, FakeClock(NOW))))


def data_of(made: Segment) -> dict[str, ParseData]:
    return {
        url.removeprefix(HOST): value
        for url, value in made.records(PARSE_DATA)
        if isinstance(value, ParseData)
    }


def crawl_of(made: Segment) -> list[tuple[str, str]]:
    return [
        (url.removeprefix(HOST), datum.status_name)
        for url, datum in made.records(CRAWL_PARSE)
        if isinstance(datum, CrawlDatum)
    ]


def test_what_is_written_in_which_order(tmp_path: Path) -> None:
    made, counts = parsed(
        tmp_path, page("b", "<a href=c>c</a><a href=a>a</a>"), page("a", "<title>A</title>x")
    )
    assert counts == {"pages": 2, "success": 2, "left_out_same_url": 0}
    assert crawl_of(made) == [
        ("a", "signature"),
        ("b", "signature"),
        ("c", "linked"),
        ("a", "linked"),
    ]
    assert [str(value) for _, value in made.records(PARSE_TEXT)] == ["A x", "c a"]
    assert data_of(made)["a"].content_meta["nutch.segment.name"] == ["20260101000000"]
    assert {
        datum.fetch_time for _, datum in made.records(CRAWL_PARSE) if isinstance(datum, CrawlDatum)
    } == {NOW}


@pytest.mark.parametrize(
    ("said", "count"),
    [
        ("noindex, follow", 1),
        ("index,NOFOLLOW", 1),
        ("none", 1),
        ("all", 0),
        ("max-image-preview:none", 0),
        ("noarchive", 0),
    ],
)
def test_documents_that_robots_are_kept_from_are_counted(
    tmp_path: Path, said: str, count: int
) -> None:
    """A crawl whose home page says nofollow ended there without a word."""
    one = page("a", f"<meta name=robots content='{said}'><a href=/b>b</a>x")
    _, counts = parsed(tmp_path, one, page("b", "<p>x"))
    assert counts.get("documents_with_noindex_or_nofollow", 0) == count


LONG = {"http.content.truncated": "true", "http.content.truncated.reason": "length"}


@pytest.mark.parametrize("counted", [True, False])
def test_links_that_are_left_out_are_told(tmp_path: Path, counted: bool) -> None:
    """Of the pages whose links were cut, or leave their site: by the job, SQL and explain."""
    links = "".join(f"<a href=/{number}>x</a>" for number in range(5))
    conf = configuration(
        **{
            "db.max.outlinks.per.page": "3",
            "db.ignore.external.links": "true",
            "parser.outlinks.count": str(counted).lower(),
            "parser.skip.truncated": "false",
            "http.content.limit": "77",
        }
    )
    away = "<a href=http://away.example/>x</a>" * 2
    three = links[: 3 * 16]
    pages = (
        page("many", links),
        page("three", three),
        page("away", away + "<a href=/1>"),
        page("both", away + three),
        page("self", "<a href=/self>x</a>" + three),
        page("filtered", "<a href=/a.gif>x</a>" + three),
        page("long", "x", **LONG),
        page("slow", "x", **LONG | {"http.content.truncated.reason": "time"}),
    )
    _, counts = parsed(tmp_path / "crawl" / "segments", *pages, conf=conf)
    assert counts["documents_with_links_cut"] == 1
    assert counts["documents_with_external_links_left_out"] == 2
    rows = open_crawl(tmp_path / "crawl").tables["parses"].scan().collect()
    said = {row["url"]: (row["outlinks_cut"], row["outlinks_external"]) for row in rows.to_dicts()}
    assert {url.removeprefix(HOST): counts for url, counts in said.items()} == {
        "many": (2 if counted else None, None),
        "three": (None, None),
        "away": (None, 2 if counted else None),
        "both": (None, 2 if counted else None),
        "self": (None, None),
        "filtered": (None, None),
        "long": (None, None),
        "slow": (None, None),
    }
    write_db(tmp_path / "crawl" / "crawldb", [(pages[0].url, CrawlDatum(2, 9, 1.0))])
    out = io.StringIO()
    context = JobContext(conf, FakeClock(NOW), out=out)
    assert explain.run([f"{HOST}4", str(tmp_path / "crawl")], context) == 0
    text = " ".join(out.getvalue().split())
    cut = "1 page had more links than the 3 that were kept (db.max.outlinks.per.page)"
    assert (cut in text) is counted
    assert "links to other hosts" not in text  # it is on theirs
    context = JobContext(conf, FakeClock(NOW), out=(out := io.StringIO()))
    assert explain.run(["http://away.example/", str(tmp_path / "crawl")], context) == 0
    external = "2 pages had links to other hosts, which were left out (db.ignore.external.links)"
    assert (external in " ".join(out.getvalue().split())) is counted
    context = JobContext(conf, FakeClock(NOW), out=(out := io.StringIO()))
    assert explain.run([str(tmp_path / "crawl")], context) == 0
    _, _, cut = out.getvalue().partition("What is cut or left out\n")
    assert [" ".join(line.split()) for line in cut.split("\n\n")[0].splitlines()[::2]] == [
        *(
            ["2 links of 1 page not kept: db.max.outlinks.per.page=3"]
            if counted
            else ["5 pages with as many links as are kept, or more: db.max.outlinks.per.page=3"]
        ),
        *(["4 links to other sites, of 2 pages: db.ignore.external.links=true"] * counted),
        "1 page cut off: http.content.limit=77",
        "1 page cut off in time: http.time.limit=-1",
    ]


def test_pages_that_are_passed_over(tmp_path: Path) -> None:
    no_status = page("nostatus", "x")
    del no_status.metadata["_fst_"]
    made, counts = parsed(
        tmp_path,
        no_status,
        page("redirect", "x", _fst_="35"),
        page("cut", "x", Content_Length="100"),
        page("marked", "x", **{"http.content.truncated": "true"}),
        page("whole", "x", Content_Length="100", **{"http.content.truncated": "false"}),
        page("image", b"\x89PNG", "image/png"),
    )
    assert counts == {
        "pages": 6,
        "skipped_no_fetch_status": 1,
        "skipped_not_fetched": 1,
        "skipped_truncated": 2,
        "skipped_no_parser": 1,
        "success": 1,
        "left_out_same_url": 0,
    }
    assert list(data_of(made)) == ["whole"]


def test_truncated_pages_may_be_parsed(tmp_path: Path) -> None:
    conf = configuration(**{"parser.skip.truncated": "false"})
    assert parsed(tmp_path, page("cut", "x", Content_Length="100"), conf=conf)[1]["success"] == 1


def test_failed_parses_are_emptied_but_signed(tmp_path: Path) -> None:
    conf = configuration("parse-tika")
    made, counts = parsed(tmp_path, page("p", b"%PDF-1.4 broken", "application/pdf"), conf=conf)
    assert counts["failed"] == 1
    data = data_of(made)["p"]
    assert data.status.major == 2
    assert set(data.content_meta) == {"nutch.segment.name", "nutch.content.digest"}
    assert crawl_of(made) == [("p", "signature")]


@pytest.mark.parametrize(
    "hostile", [b"<div>" * 300_000, b"<b " + b" ".join(b"a%d=1" % i for i in range(200_000)) + b">"]
)
def test_pages_that_take_the_parser_too_long_fail_alone(tmp_path: Path, hostile: bytes) -> None:
    conf = configuration(parser_timeout="1", http_content_limit="-1", parser_html_max_depth="0")
    made, counts = parsed(
        tmp_path, page("a", "x"), page("b", hostile), page("c", "<a href=d>d</a>"), conf=conf
    )
    assert (counts["success"], counts["failed"]) == (2, 1)
    found = data_of(made)
    assert (found["b"].status.major, found["b"].status.args) == (
        2,
        ["not done within 1 s (parser.timeout)"],
    )
    assert [link.to_url for link in found["c"].outlinks] == [HOST + "d"]


def test_documents_are_parsed_within_the_sandbox(tmp_path: Path) -> None:
    """PDFium and lxml need no system call that a worker is refused."""
    kinds = {"pdf": pdf("text", page=f"/Annots[{link('http://e.org/')}]")} | samples()
    conf = configuration("parse-tika", db_ignore_external_links="false")
    types = {"pdf": "application/pdf", "epub": "application/epub+zip"}
    pages = [
        page(kind, data, types.get(kind, "application/x-tika-ooxml"))
        for kind, data in kinds.items()
    ]
    made, counts = parsed(tmp_path, *pages, conf=conf)
    assert counts["success"] == len(kinds)
    assert [link.to_url for link in data_of(made)["pdf"].outlinks] == ["http://e.org/"]


@pytest.mark.slow  # a library that does not come back is ended after a second, and GRACE
def test_a_pdf_that_holds_the_library_up_fails_alone(tmp_path: Path) -> None:
    """Forms that show the next one twice: 2 to the power of 40 of them. They take 300 MB a second,
    so that without an end of the memory it is always the time that ends them.
    """
    first = after(1)
    form = "/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X {} 0 R>>>>"
    forms = [stream(b"/X Do /X Do", form.format(first + at + 1)) for at in range(40)]
    bomb = pdf(stream(b"/X Do"), more=forms, page=f"/Resources<</XObject<</X {first} 0 R>>>>")
    conf = configuration("parse-tika", parser_timeout="1", parser_worker_memory="0")
    pages = [page(name, data, "application/pdf") for name, data in (("a", pdf("x")), ("b", bomb))]
    made, counts = parsed(tmp_path, *pages, page("c", pdf("y"), "application/pdf"), conf=conf)
    assert (counts["success"], counts["failed"]) == (2, 1)
    assert data_of(made)["b"].status.args == ["not done within 1 s (parser.timeout)"]


def test_entries_of_feeds_are_put_in_their_places(tmp_path: Path) -> None:
    conf = configuration("feed|parse-(html|text)", mapreduce_job_reduces="2")
    made, counts = parsed(
        tmp_path,
        page("1", "fetched itself"),
        page("feed", RSS, "application/rss+xml"),
        page("zz", "<p>last"),
        conf=conf,
    )
    assert counts == {"pages": 3, "success": 5, "left_out_same_url": 1}
    assert sorted(data_of(made)) == ["1", "2", "feed", "zz"]
    assert len(list(made.records(PARSE_TEXT))) == 4
    assert str(made.get(PARSE_TEXT, HOST + "1")[0]) == "fetched itself"
    assert str(made.get(PARSE_TEXT, HOST + "2")[0]) == "Second"
    assert ("2", "fetch_success") in crawl_of(made)
    assert ("1", "fetch_success") not in crawl_of(made)
    assert sorted(path.name for path in made.path.iterdir()) == [
        CONTENT,
        CRAWL_PARSE,
        PARSE_DATA,
        PARSE_TEXT,
    ]


def test_texts_need_not_be_stored(tmp_path: Path) -> None:
    made, _ = parsed(tmp_path, page("a", "x"), conf=configuration(parser_store_text="false"))
    assert not made.has(PARSE_TEXT)
    assert made.has(CRAWL_PARSE)


@pytest.mark.parametrize("compression", ["NONE", "RECORD", "BLOCK"])
def test_compression_as_configured(tmp_path: Path, compression: str) -> None:
    conf = configuration(**{"mapreduce.output.fileoutputformat.compress.type": compression})
    made, _ = parsed(
        tmp_path, page("a", "<a href=b>b</a>"), page("b", "<a href=a>a</a>"), conf=conf
    )
    assert len(crawl_of(made)) == 4
    assert len(data_of(made)) == 2


def test_links_limits_and_metadata_for_the_crawldb(tmp_path: Path) -> None:
    conf = configuration(
        **{
            "db.max.outlinks.per.page": "2",
            "db.max.outlink.length": "25",
            "db.parsemeta.to.crawldb": "author, none",
            "db.fetch.interval.default": "77",
        }
    )
    body = "<meta name=author content=N>" + "".join(
        f"<a href={name}>x</a>" for name in ("q" * 30, "1", "a", "2", "3")
    )
    made, _ = parsed(tmp_path, page("a", body), conf=conf)
    assert [link.to_url for link in data_of(made)["a"].outlinks] == [HOST + "1", HOST + "2"]
    records = [datum for _, datum in made.records(CRAWL_PARSE) if isinstance(datum, CrawlDatum)]
    assert [(datum.status_name, datum.fetch_interval) for datum in records] == [
        ("signature", 0),
        ("parse_metadata", 0),
        ("linked", 77),
        ("linked", 77),
    ]
    assert {str(key): str(value) for key, value in records[1].metadata.items()} == {"author": "N"}


def test_a_meta_refresh_is_a_link(tmp_path: Path) -> None:
    body = '<meta http-equiv=refresh content="0; url=deep/target">x'
    made, _ = parsed(tmp_path, page("", body))
    assert crawl_of(made) == [("", "signature"), ("deep/target", "linked")]
    [(_, datum)] = [record for record in made.records(CRAWL_PARSE) if record[0].endswith("target")]
    assert isinstance(datum, CrawlDatum)
    assert {str(key): str(value) for key, value in datum.metadata.items()} == {"_repr_": HOST}


@pytest.mark.parametrize(
    ("properties", "kept"),
    [
        ({}, ["http://example.org/in", "http://www.example.org/sub", "http://other.net/out"]),
        ({"db.ignore.external.links": "true"}, ["http://example.org/in"]),
        (
            {"db.ignore.internal.links": "true"},
            ["http://www.example.org/sub", "http://other.net/out"],
        ),
        (
            {"db.ignore.external.links": "true", "db.ignore.external.links.mode": "byDomain"},
            ["http://example.org/in", "http://www.example.org/sub"],
        ),
        (
            {"db.ignore.internal.links": "true", "db.ignore.external.links.mode": "BYDOMAIN"},
            ["http://other.net/out"],
        ),
        ({"parse.filter.urls": "false"}, None),
    ],
)
def test_internal_and_external_links(
    tmp_path: Path, properties: dict[str, str], kept: list[str] | None
) -> None:
    targets = [
        "in",
        "http://www.example.org/sub",
        "http://other.net/out",
        "http://example.org/p",
        "?query=rejected",
    ]
    made, _ = parsed(
        tmp_path,
        page("p", "".join(f'<a href="{t}">x</a>' for t in targets)),
        conf=configuration(**properties),
    )
    found = [link.to_url for link in data_of(made)["p"].outlinks]
    assert found == kept if kept is not None else "http://example.org/p?query=rejected" in found


def context(conf: Configuration = CONF) -> JobContext:
    return JobContext(conf, FakeClock(NOW), io.StringIO(), io.StringIO())


def test_the_command(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = segment(tmp_path, [page("a", "<a href='http://EXAMPLE.org/x?y=1'>x</a>")])
    assert run([str(made.path), "-NoFilter", "-nonormalize"], context()) == 0
    assert [link.to_url for link in data_of(made)["a"].outlinks] == ["http://EXAMPLE.org/x?y=1"]
    with caplog.at_level(logging.WARNING):
        assert run([str(made.path)], context()) == 0
    assert "already parsed" in caplog.text
    with pytest.raises(UsageError, match=r"unknown option -noFlter .did you mean -noFilter"):
        run([str(made.path), "-noFlter"], context())


def test_without_arguments_or_content(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        run([], context())
    assert caught.value.exit_code == 255
    with pytest.raises(StoreError):
        run([str(tmp_path / "none")], context())


def test_a_record_that_is_no_content_is_counted(tmp_path: Path) -> None:
    made = segment(tmp_path, [page("a", "x")])
    part = made.path / CONTENT / "part-r-00001"
    with MapFileWriter(part, TEXT, LAYOUTS[CONTENT].value_class) as writer:
        writer.append_raw(text_key(b"http://example.org/b"), b"\xff\xff\xff\xffdamaged")
    assert (
        dict(parse(made.path, context=JobContext(CONF, FakeClock(NOW))))["unreadable_content"] == 1
    )


def test_a_value_that_can_not_be_inflated_ends_the_job(tmp_path: Path) -> None:
    made = segment(tmp_path, [])
    path = made.path / CONTENT / "part-r-00001"
    with MapFileWriter(path, TEXT, LAYOUTS[CONTENT].value_class, compression=RECORD) as writer:
        writer.data.append_raw(text_key(b"http://example.org/b"), b"not zlib", compressed=True)
    with pytest.raises(FormatError, match=r"content: http://example\.org/b: not zlib data"):
        parse(made.path, context=JobContext(CONF, FakeClock(NOW)))
    assert not made.has(PARSE_DATA)


LINK_PROPERTIES = [
    {},
    {"db.ignore.external.links": "true"},
    {"db.ignore.internal.links": "true"},
    {"db.ignore.external.links": "true", "db.ignore.internal.links": "true"},
    {"db.ignore.external.links": "true", "db.ignore.external.links.mode": "byDomain"},
    {"db.ignore.external.links": "true", "db.ignore.external.exemptions.file": "exemptions.txt"},
    {"db.max.outlinks.per.page": "2"},
    {"db.max.outlinks.per.page": "-1", "db.max.outlink.length": "20"},
    {"parse.filter.urls": "false"},
    {"parse.normalize.urls": "false"},
    {"fetcher.parse": "true"},
]


@pytest.mark.parametrize("properties", few(LINK_PROPERTIES, 4), ids=str)
def test_many_pages_keep_the_links_that_one_page_keeps(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    """A segment of more pages than go to a worker together, under every property about links."""
    (tmp_path / "exemptions.txt").write_text("+other\n")
    given = {**properties}
    if "db.ignore.external.exemptions.file" in given:
        given["db.ignore.external.exemptions.file"] = str(tmp_path / "exemptions.txt")
    conf = configuration(
        "parse-html|urlfilter-(regex|ignoreexempt)|urlnormalizer-(pass|regex|basic)", **given
    )
    body = "".join(
        f'<a href="{target}">x</a>'
        for target in (
            "in#f",
            "http://www.example.org/sub",
            "http://other.net/out",
            "",
            "x.gif",
            "a?b=c",
        )
    )
    many, counts = parsed(
        tmp_path / "many", *(page(f"p{n}", body) for n in range(BATCH_ITEMS + 8)), conf=conf
    )
    assert counts["success"] == BATCH_ITEMS + 8
    one, _ = parsed(tmp_path / "one", page("p7", body), conf=conf)
    expected = data_of(one)["p7"].outlinks
    assert list(data_of(many)["p7"].outlinks) == list(expected)
    assert {len(data.outlinks) for data in data_of(many).values()} == {len(expected)}


@pytest.mark.slow  # processes
@pytest.mark.parametrize("number", few([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
def test_a_signal_ends_the_command_without_a_traceback(tmp_path: Path, number: int) -> None:
    """Sent to the whole group, as a terminal does, while workers start and while they parse."""
    made = segment(tmp_path, [page(f"p{n}", "<p>" + "x " * 20_000) for n in range(400)])
    options = ["-Dhttp.agent.name=x", "-Dplugin.includes=parse-html|urlfilter-regex|scoring-opic"]
    command = [sys.executable, "-m", "minutch", "parse", *options, str(made.path)]
    environment = {**os.environ, "NUTCH_LOG_DIR": "", "PYTHONPATH": str(PROJECT)}
    for wait in (0.6, 1.2):
        with subprocess.Popen(
            command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
            start_new_session=True,
        ) as process:  # fmt: skip
            time.sleep(wait)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            _, said = process.communicate(timeout=60)
        assert "Traceback" not in said, said
        assert process.returncode in (130, -number, 0)
