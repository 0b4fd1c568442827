"""import legacy and export legacy: segments of Nutch 0.4 and 0.5 made into today's, and back."""

from __future__ import annotations

import shutil
from hashlib import md5
from pathlib import Path

import pytest

from minutch.annexes.legacy.legacyjobs import export_legacy, import_legacy
from minutch.annexes.legacy.oldsegment import OldArrayFileWriter
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    CRAWL_GENERATE,
    CRAWL_PARSE,
    PARSE_DATA,
    PARSE_TEXT,
    Segment,
)
from minutch.errors import FormatError, LockedError, StoreError, UsageError
from minutch.hadoop.formats.mapfile import MapFileReader
from minutch.hadoop.formats.text import as_text
from minutch.hadoop.formats.writables import Writable, lookup
from minutch.records import crawldatum as status
from minutch.records import legacy as oldcontent
from minutch.records import legacy as oldparse
from minutch.records import legacyfetch as codes
from minutch.records import protocol
from minutch.records.crawldatum import CrawlDatum
from minutch.records.legacy import OldOutlink, OldPage
from minutch.records.legacyfetch import FetcherOutput, FetchListEntry
from minutch.records.parsedata import FAILED_EXCEPTION, ParseData, ParseStatus, ParseText
from minutch.records.protocol import Content, ProtocolStatus
from tests.support.commands import command
from tests.support.crawldbs import context, read_db

export = command("export").run
import_ = command("import").run

DATE = 1_088_600_000_000
HTML = b"<html><title>A</title>some text"
A, B, C, D = (f"http://{host}.org/" for host in "abcd")
LINKS = [OldOutlink("http://b.org/", "b"), OldOutlink("http://new.org/", "new")]


def entry(url: str, *, fetch: bool = True, retries: int = 0) -> FetchListEntry:
    links = len(LINKS) if url == A else 0
    return FetchListEntry(
        fetch, OldPage(url, md5(url.encode()).digest(), DATE, retries, 10, links, 2.5, 2.5)
    )


def write(path: Path, name: str, *records: Writable) -> None:
    with OldArrayFileWriter(path / name, type(records[0]).class_name) as writer:
        for record in records:
            writer.append_value(record.to_bytes())


LIST = [entry(C), entry(A), entry(B, retries=1), entry(D)]


def outputs(version: int) -> list[FetcherOutput]:
    """Returns records in order of arrival: A fetched, C gone, B to be tried again, D not to be
    fetched.
    """
    a = FetcherOutput(entry(A), md5(HTML).digest(), codes.SUCCESS, DATE + 1000, version=version)
    if version == codes.WITH_PARSE:
        a.title, a.outlinks = "A", LINKS
    empty = md5(b"").digest()
    return [
        FetcherOutput(entry(C), empty, codes.NOT_FOUND, DATE + 2000, version=version),
        a,
        FetcherOutput(entry(B, retries=1), empty, codes.RETRY, DATE + 3000, version=version),
        FetcherOutput(entry(D, fetch=False), empty, codes.SUCCESS, DATE + 4000, version=version),
    ]


def nutch_05(path: Path) -> Path:
    write(path, "fetchlist", *LIST)
    write(path, "fetcher", *outputs(codes.WITHOUT_PARSE))
    page = oldcontent.OldContent(A, A, HTML, "text/html", {"Server": "x"})
    write(
        path,
        "content",
        oldcontent.OldContent(C, C),
        page,
        oldcontent.OldContent(B, B),
        oldcontent.OldContent(D, D),
    )
    none, parsed = oldparse.OldParseData(), oldparse.OldParseData("A", LINKS, {"Server": "x"})
    write(path, "parse_data", none, parsed, none, none)
    write(path, "parse_text", *map(oldparse.OldParseText, ("", "some text", "", "")))
    return path


def nutch_04(path: Path) -> Path:
    write(path, "fetchlist", *LIST)
    write(path, "fetcher", *outputs(codes.WITH_PARSE))
    write(path, "fetcher_content", *map(oldcontent.FetcherContent, (b"", HTML, b"", b"")))
    write(path, "fetcher_text", *map(oldparse.FetcherText, ("", "some text", "", "")))
    return path


@pytest.fixture(params=["0.4", "0.5"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return {"0.4": nutch_04, "0.5": nutch_05}[request.param](tmp_path / "20040630120000")


def imported(old: Path, crawl: Path) -> Segment:
    assert import_(["legacy", str(old), str(crawl / "segments")], context()) == 0
    return Segment(crawl / "segments" / old.name)


def only(segment: Segment, folder: str, kind: type[Writable]) -> dict[str, Writable]:
    found = dict(segment.records(folder))
    assert all(isinstance(value, kind) for value in found.values())
    return found


def test_a_segment_becomes_todays(old: Path, tmp_path: Path) -> None:
    segment = imported(old, tmp_path / "crawl")
    assert segment.is_complete()
    listed = list(segment.records(CRAWL_GENERATE))
    assert [url for url, _ in listed] == [C, A, B, D]
    assert listed[1][1] == CrawlDatum(status.STATUS_DB_UNFETCHED, 864_000, 2.5, DATE)
    fetches = dict(segment.records(CRAWL_FETCH))
    found = {
        url: datum.status_name for url, datum in fetches.items() if isinstance(datum, CrawlDatum)
    }
    assert found == {A: "fetch_success", B: "fetch_retry", C: "fetch_gone", D: "fetch_notmodified"}
    a, d = fetches[A], fetches[D]
    assert isinstance(a, CrawlDatum) and isinstance(d, CrawlDatum)
    assert (a.signature, a.fetch_time, a.score) == (md5(HTML).digest(), DATE + 1000, 2.5)
    assert d.signature == md5(D.encode()).digest()
    content = only(segment, CONTENT, Content)[A]
    assert isinstance(content, Content)
    assert (content.content, content.content_type, content.base) == (HTML, "text/html", A)
    data = only(segment, PARSE_DATA, ParseData)[A]
    assert isinstance(data, ParseData)
    assert (data.title, data.status.is_success, len(data.outlinks)) == ("A", True, 2)
    assert only(segment, PARSE_TEXT, ParseText) == {A: ParseText("some text")}
    assert {url for url, _ in segment.records(CRAWL_PARSE)} == {A, B, "http://new.org/"}


def test_the_crawldb_knows_all_urls(old: Path, tmp_path: Path) -> None:
    imported(old, tmp_path / "crawl")
    found = {url: datum.status_name for url, datum in read_db(tmp_path / "crawl/crawldb").items()}
    assert found == {
        A: "db_fetched",
        B: "db_unfetched",
        C: "db_gone",
        D: "db_notmodified",
        "http://new.org/": "db_unfetched",
    }
    entries = read_db(tmp_path / "crawl/crawldb")
    assert (entries[A].signature, entries[A].fetch_interval) == (md5(HTML).digest(), 864_000)
    assert entries[B].retries == 2


def test_a_second_segment_goes_into_the_same_crawldb(old: Path, tmp_path: Path) -> None:
    imported(old, tmp_path / "crawl")
    later = tmp_path / "20040701120000"
    write(later, "fetchlist", entry("http://later.org/"))
    job = context()
    import_(
        [
            "legacy",
            str(later),
            str(tmp_path / "crawl/segments"),
            "-crawldb",
            str(tmp_path / "crawl/crawldb"),
        ],
        job,
    )
    assert read_db(tmp_path / "crawl/crawldb").keys() == {
        A,
        B,
        C,
        D,
        "http://new.org/",
        "http://later.org/",
    }
    assert not Segment(tmp_path / "crawl/segments/20040701120000").has(CRAWL_FETCH)


def test_a_locked_crawldb_is_found_before_anything_is_made(old: Path, tmp_path: Path) -> None:
    (tmp_path / "crawl/crawldb").mkdir(parents=True)
    (tmp_path / "crawl/crawldb/.locked").touch()
    with pytest.raises(LockedError):
        imported(old, tmp_path / "crawl")
    assert not (tmp_path / "crawl/segments").exists()


def test_back_again(old: Path, tmp_path: Path) -> None:
    segment = imported(old, tmp_path / "crawl")
    version = "0.4" if (old / "fetcher_text").exists() else "0.5"
    assert (
        export(
            [
                "legacy",
                "-dir",
                str(segment.path.parent),
                str(tmp_path / "out"),
                "-version",
                version,
            ],
            context(),
        )
        == 0
    )
    out = tmp_path / "out" / old.name
    assert sorted(path.name for path in out.iterdir()) == sorted(
        path.name for path in old.iterdir()
    )
    assert (out / "fetchlist/data").read_bytes() == with_links_counted(old / "fetchlist/data")
    order = [2 - 1, 3 - 1, 1 - 1, 4 - 1]  # the old positions of A, B, C, D
    for folder in (path.name for path in old.iterdir() if path.name != "fetchlist"):
        with MapFileReader(old / folder) as before, MapFileReader(out / folder) as after:
            values = [value for _, value in before]
            kind = lookup(before.value_class)
            assert after.value_class == before.value_class
            expected = [kind.from_bytes(values[at]) for at in order]
            assert [kind.from_bytes(value) for _, value in after] == expected


def with_links_counted(path: Path) -> bytes:
    """A fetch list without the numbers of outlinks, which nothing of today holds."""
    return path.read_bytes().replace((2).to_bytes(4, "big") + b"\x40\x20", bytes(4) + b"\x40\x20")


def test_a_segment_that_was_not_parsed(tmp_path: Path) -> None:
    old = nutch_05(tmp_path / "20040630120000")
    (old / "fetcher").rename(old / "fetcher_output")
    for folder in ("parse_data", "parse_text"):
        for name in ("data", "index"):
            (old / folder / name).unlink()
    segment = imported(old, tmp_path / "crawl")
    assert segment.has(CONTENT) and not segment.has(CRAWL_PARSE)
    export(["legacy", str(segment.path), str(tmp_path / "out")], context())
    assert sorted(path.name for path in (tmp_path / "out" / old.name).iterdir()) == [
        "content",
        "fetcher_output",
        "fetchlist",
    ]


def test_a_page_that_could_not_be_parsed(tmp_path: Path) -> None:
    old = tmp_path / "20040630120000"
    failed = FetcherOutput(entry(A), md5(HTML).digest(), codes.CANT_PARSE, DATE)
    write(old, "fetcher", failed)
    write(old, "content", oldcontent.OldContent(A, A, HTML, "text/html"))
    write(old, "parse_data", oldparse.OldParseData())
    write(old, "parse_text", oldparse.OldParseText())
    segment = imported(old, tmp_path / "crawl")
    data = dict(segment.records(PARSE_DATA))[A]
    assert isinstance(data, ParseData) and not data.status.is_success
    assert export(["legacy", str(segment.path), str(tmp_path / "out")], context()) == 0
    with MapFileReader(tmp_path / "out" / old.name / "fetcher") as reader:
        assert [FetcherOutput.from_bytes(value).status for _, value in reader] == [codes.CANT_PARSE]


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    old = tmp_path / "20040630120000"
    write(old, "fetchlist", FetchListEntry(True, OldPage(A), ["one", "two"]), entry(B))
    write(old, "fetcher", *(FetcherOutput(entry(A), fetch_date=DATE + i) for i in range(2)))
    counters = import_legacy([old], tmp_path / "crawl/segments", context=context())
    assert counters["anchors in fetch lists, which are lost"] == 2
    assert counters["pages omitted: repeated URLs"] == 1
    assert (
        counters["entries of fetch lists"],
        counters["fetch_success"],
        counters["CrawlDb: db_unfetched"],
    ) == (
        2,
        1,
        1,
    )
    segment = Segment(tmp_path / "crawl/segments" / old.name)
    counters = export_legacy([segment.path], tmp_path / "out", context=context())
    expected = {
        "entries of fetch lists without a fetch": 1,
        "pages written": 1,
        "entries of fetch lists": 2,
        "segments": 1,
    }
    assert counters == expected


def test_text_prints_old_segments(old: Path) -> None:
    lines = "".join(as_text(old / "fetcher/data")).splitlines()
    assert lines[0] == "0\tFetchListEntry: version: 2"
    assert lines.count("Fetch Result:") == 4
    texts = old / ("fetcher_text" if (old / "fetcher_text").exists() else "parse_text")
    assert "".join(as_text(texts / "data")) == "0\t\n1\tsome text\n2\t\n3\t\n"


def test_damage_names_file_and_place_and_leaves_nothing(old: Path, tmp_path: Path) -> None:
    whole = (old / "fetcher/data").read_bytes()
    for damaged, message in (
        (whole[:-5], "fetcher/data"),
        (whole[:60] + b"\x63" + whole[61:], "fetcher/data"),
        (whole[:2], "fetcher/data"),
    ):
        (old / "fetcher/data").write_bytes(damaged)
        with pytest.raises(FormatError, match=message):
            imported(old, tmp_path / "crawl")
        assert not list((tmp_path / "crawl").glob("*/*")), "nothing is left"


def test_a_page_without_its_output_is_an_error(tmp_path: Path) -> None:
    old = nutch_05(tmp_path / "20040630120000")
    write(old, "parse_text", *map(oldparse.OldParseText, "abcde"))
    with pytest.raises(FormatError, match=r"position 4, which parse_text has"):
        imported(old, tmp_path / "crawl")


def test_wrong_command_lines(tmp_path: Path, old: Path) -> None:
    with pytest.raises(UsageError, match="expected one of"):
        import_(["nothing", "x"], context())
    with pytest.raises(UsageError):
        import_(["legacy", "x"], context())
    with pytest.raises(UsageError, match=r"expected 0\.4 or 0\.5"):
        export(["legacy", "a", "b", "-version", "0.6"], context())
    names = [str(tmp_path / name / "x") for name in "ab"]
    for name in names:
        (Path(name) / CRAWL_FETCH).mkdir(parents=True)
    with pytest.raises(StoreError, match="same name"):
        export(["legacy", *names, "out"], context())
    with pytest.raises(StoreError, match=r"no segment of Nutch before 0\.8"):
        imported(tmp_path, tmp_path / "crawl")
    with pytest.raises(StoreError, match="is no segment"):
        export(["legacy", str(old), str(tmp_path / "out")], context())
    imported(old, tmp_path / "crawl")
    with pytest.raises(StoreError, match="already exists"):
        imported(old, tmp_path / "crawl")


def test_an_import_that_was_stopped_before_its_crawldb_goes_on(tmp_path: Path, old: Path) -> None:
    imported(old, tmp_path / "crawl")
    wanted = read_db(tmp_path / "crawl/crawldb")
    shutil.rmtree(tmp_path / "crawl/crawldb")
    imported(old, tmp_path / "crawl")
    assert read_db(tmp_path / "crawl/crawldb") == wanted
    assert [path.name for path in (tmp_path / "crawl/segments").iterdir()] == [old.name]
    shutil.rmtree(tmp_path / "crawl/crawldb")
    shutil.rmtree(tmp_path / "crawl/segments" / old.name / "parse_text")
    with pytest.raises(
        StoreError, match="already exists"
    ):  # a segment of that name, but another one
        imported(old, tmp_path / "crawl")


def test_parts_as_configured(old: Path, tmp_path: Path) -> None:
    job = context({"mapreduce.job.reduces": "3"})
    import_(["legacy", str(old), str(tmp_path / "crawl/segments")], job)
    segment = Segment(tmp_path / "crawl/segments" / old.name)
    assert (
        len(segment.parts(CRAWL_FETCH))
        == len(segment.parts(PARSE_DATA))
        == len(segment.parts(CONTENT))
        == 3
    )
    assert {url for url, _ in segment.records(CRAWL_FETCH)} == {A, B, C, D}
    assert read_db(tmp_path / "crawl/crawldb").keys() >= {A, B, C, D}


def test_a_segment_of_nutch_07(tmp_path: Path) -> None:
    """Classes by their short names, statuses of protocol and parse."""
    old = tmp_path / "20050801120000"
    moved = FetcherOutput(entry(B), fetch_date=DATE, version=codes.WITH_STATUS)
    moved.protocol_status = ProtocolStatus.of(protocol.MOVED, "http://b.org/new")
    fetched = FetcherOutput(
        entry(A), md5(HTML).digest(), fetch_date=DATE, version=codes.WITH_STATUS
    )
    fetched.protocol_status = ProtocolStatus(protocol.SUCCESS)
    failed = oldparse.OldParseData("A", LINKS, {}, ParseStatus.failed(FAILED_EXCEPTION, "bad"))
    for name, records in {
        "fetcher": [moved, fetched],
        "content": [oldcontent.OldContent(B, B), oldcontent.OldContent(A, A, HTML, "text/html")],
        "parse_data": [oldparse.OldParseData(), failed],
        "parse_text": [oldparse.OldParseText(), oldparse.OldParseText("x")],
    }.items():
        with OldArrayFileWriter(old / name, type(records[0]).__name__) as writer:
            for record in records:
                writer.append_value(record.to_bytes())
    assert "Status: moved(12), lastModified=0: http://b.org/new" in "".join(
        as_text(old / "fetcher/data")
    )
    segment = imported(old, tmp_path / "crawl")
    found = {
        url: datum.status_name
        for url, datum in segment.records(CRAWL_FETCH)
        if isinstance(datum, CrawlDatum)
    }
    assert found == {A: "fetch_success", B: "fetch_redir_perm"}
    data = dict(segment.records(PARSE_DATA))[A]
    assert isinstance(data, ParseData)
    assert str(data.status) == "failed(2,200): bad"
    assert read_db(tmp_path / "crawl/crawldb")[B].status_name == "db_redir_perm"
