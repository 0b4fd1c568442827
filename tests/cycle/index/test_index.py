"""The index job on crawls in many pieces, with options, damage and mistakes."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.index import indexing as job
from minutch.cycle.segment.store import Segment, part_writer
from minutch.errors import FormatError, IndexWriterError, StoreError, UsageError
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.job import Counters, JobContext
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import to_frame
from minutch.records.metadata import Metadata
from minutch.records.parsedata import ParseData, ParseStatus, ParseText
from minutch.work.tables.database import part_name
from minutch.work.tables.recordfiles import CrawlDataWriter
from minutch.work.tables.shuffle import split
from tests.support.commands import index as job_command
from tests.support.examples import few

PLUGINS = "index-basic|indexer-(csv|dummy)|scoring-opic|urlfilter-prefix|urlnormalizer-querystring"
FOLDERS = ("content", "crawl_fetch", "crawl_parse", "parse_data", "parse_text")
Page = tuple[str, int, str]


class Crawl:
    """A made-up crawl below a folder: pages with their statuses and titles."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def crawldb(self, entries: dict[str, int], parts: int = 1, *, due: int = 0) -> Path:
        frame = to_frame(
            (url, CrawlDatum(code, score=4.0, fetch_time=due))
            for url, code in sorted(entries.items())
        )
        for number, piece in enumerate(split(frame, parts)):
            with CrawlDataWriter(
                self.folder / "crawldb/current" / part_name(number), mapfile=True
            ) as writer:
                writer.write(piece)
        return self.folder / "crawldb"

    def segment(
        self,
        name: str,
        pages: Iterable[Page],
        *,
        parts: int = 1,
        inside: Iterable[Page] = (),
        robots: str | list[str] = "",
        time: int = 1000,
    ) -> Path:
        """`inside`: documents inside pages, whose fetch stands in crawl_parse."""
        conf = Configuration.load([])
        segment = Segment(self.folder / "segments" / name)
        segment.path.mkdir(parents=True)
        pages, inside = sorted(pages), sorted(inside)
        with segment.writing(FOLDERS[1:]) as directory:
            for number in range(parts):
                with part_writer(directory, "crawl_fetch", number) as append:
                    for url, code, _ in pages[number::parts]:
                        append(
                            url,
                            CrawlDatum(
                                code, fetch_time=time, metadata=MapWritable({Text("k"): Text("v")})
                            ),
                        )
                with part_writer(directory, "crawl_parse", number) as append:
                    for url, code, _ in inside if number == 0 else ():
                        append(url, CrawlDatum(status.STATUS_LINKED))
                        append(url, CrawlDatum(code, fetch_time=2000))
                parsed = [page for page in [*pages, *inside] if page[2]]
                self._parses(directory, conf, name, sorted(parsed)[number::parts], number, robots)
        return segment.path

    @staticmethod
    def _parses(
        directory: Path,
        conf: Configuration,
        name: str,
        pages: list[Page],
        part: int,
        robots: str | list[str],
    ) -> None:
        with (
            part_writer(directory, "parse_data", part) as data,
            part_writer(directory, "parse_text", part) as texts,
        ):
            for url, _, title in pages:
                meta = Metadata.of({"nutch.segment.name": name, "nutch.content.digest": "00"})
                outcome = ParseStatus(2 if title == "failed" else 1, 0, [])
                tags = Metadata.of({"robots": robots} if robots else {})
                data(url, ParseData(outcome, title, [], meta, tags))
                texts(url, ParseText(f"text of {title}"))

    def index(self, *words: str, **properties: str) -> tuple[list[str], Counters]:
        """The lines of the dummy writer (`add TAB id` …), and the counters."""
        conf = self.configuration(**properties)
        context = JobContext(conf.freeze(), FakeClock(0), io.StringIO(), io.StringIO())
        assert job_command.run(list(words), context) == 0
        return (self.folder / "dummy.txt").read_text().splitlines(), context.reports["Indexer"]

    def titles(self) -> dict[str, str]:
        """URL → title in the CSV file."""
        rows = (self.folder / "csv/nutch.csv").read_text().splitlines()[1:]
        return {row.split(",")[0]: row.split(",")[1] for row in rows}

    def configuration(self, **properties: str) -> Configuration:
        (self.folder / "index-writers.xml").write_text(
            '<writers><writer id="d"'
            ' class="org.apache.nutch.indexwriter.dummy.DummyIndexWriter"><parameters><param'
            f' name="path" value="{self.folder}/dummy.txt"/><param name="delete"'
            ' value="true"/></parameters></writer><writer id="c"'
            ' class="org.apache.nutch.indexwriter.csv.CSVIndexWriter"><parameters><param'
            f' name="outpath" value="{self.folder}/csv"/><param name="fields"'
            ' value="id,title,tstamp"/></parameters></writer></writers>'
        )
        values = {name.replace("__", "."): value for name, value in properties.items()}
        return Configuration.load([self.folder], overrides={"plugin.includes": PLUGINS} | values)


@pytest.fixture
def crawl(tmp_path: Path) -> Crawl:
    return Crawl(tmp_path)


OK = status.STATUS_FETCH_SUCCESS


def pages(count: int, title: str = "t") -> list[Page]:
    return [
        (f"http://h{number % 7}.org/{number:05}", OK, f"{title}{number}") for number in range(count)
    ]


def adds(found: Iterable[Page]) -> list[str]:
    return [f"add\t{url}" for url, _, _ in sorted(found)]


@pytest.mark.parametrize("processes", few([1, 2]))
def test_ranges_parts_and_processes_show_in_nothing(
    crawl: Crawl, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "_range_bytes", lambda conf: 2000)
    monkeypatch.setattr("minutch.work.engine.pool.workers", lambda: processes)
    some = pages(900)
    db = crawl.crawldb({url: status.STATUS_DB_FETCHED for url, _, _ in some}, parts=3)
    one, two = (
        crawl.segment("20260101000000", some[:500], parts=2),
        crawl.segment("20260102000000", some[400:], parts=1),
    )
    lines, counters = crawl.index(str(db), str(one), str(two))
    assert lines == [*adds(some), "commit"]
    assert counters == {"indexed_total": 900}
    assert crawl.titles() == {url: title for url, _, title in some}


def test_the_newest_segment_wins_whatever_the_order_of_the_arguments(crawl: Crawl) -> None:
    url = "http://a.org/"
    new = crawl.segment("20260102000000", [(url, OK, "new")])
    old = crawl.segment("20260101000000", [(url, OK, "old"), ("http://b.org/", OK, "only old")])
    for order in ([new, old], [old, new]):
        crawl.index("-nocrawldb", *map(str, order))
        assert crawl.titles() == {url: "new", "http://b.org/": "only old"}


def test_a_page_that_was_not_modified_stays_with_its_older_parse(crawl: Crawl) -> None:
    old = crawl.segment("20260101000000", [("http://a.org/", OK, "old")])
    new = crawl.segment("20260102000000", [("http://a.org/", status.STATUS_FETCH_NOTMODIFIED, "")])
    lines, _ = crawl.index("-nocrawldb", str(old), str(new))
    assert lines == ["add\thttp://a.org/", "commit"]


GONE, MOVED, FAILED = (
    status.STATUS_FETCH_GONE,
    status.STATUS_FETCH_REDIR_PERM,
    status.STATUS_FETCH_RETRY,
)
UNMODIFIED = status.STATUS_FETCH_NOTMODIFIED


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([(OK, 2, "new"), (OK, 1, "old")], "add new"),
        ([(OK, 1, "old"), (GONE, 2, "")], "delete"),
        ([(GONE, 2, ""), (OK, 1, "old")], "delete"),
        ([(OK, 2, "new"), (GONE, 1, "")], "add new"),
        ([(OK, 1, "old"), (GONE, 2, ""), (OK, 3, "new")], "add new"),
        ([(OK, 3, "new"), (MOVED, 2, ""), (OK, 1, "old")], "add new"),
        ([(OK, 1, "old"), (UNMODIFIED, 2, "")], "add old"),
        ([(OK, 1, "old"), (OK, 2, "new"), (MOVED, 3, ""), (UNMODIFIED, 4, "")], "add new"),
        ([(UNMODIFIED, 4, ""), (GONE, 3, ""), (OK, 2, "new"), (OK, 1, "old")], "add new"),
        ([(GONE, 1, ""), (UNMODIFIED, 2, "")], ""),
        ([(OK, 1, "old"), (UNMODIFIED, 2, ""), (GONE, 3, "")], "delete"),
        ([(OK, 1, "old"), (FAILED, 2, "")], "add old"),
        ([(OK, 1, "old"), (UNMODIFIED, 2, ""), (FAILED, 3, "")], "add old"),
        ([(GONE, 1, ""), (FAILED, 2, "")], "delete"),
        ([(FAILED, 1, "")], ""),
        ([(OK, 1, "old"), (OK, 2, "")], "add old"),
    ],
)
def test_the_newest_fetch_counts_by_its_time(
    crawl: Crawl, history: list[tuple[int, int, str]], expected: str
) -> None:
    """Segments in the order of their names: status, time of the fetch, title of the parse."""
    url = "http://a.org/"
    names = [
        crawl.segment(f"2026010{number}000000", [(url, code, title)], time=time)
        for number, (code, time, title) in enumerate(history, 1)
    ]
    lines, _ = crawl.index("-nocrawldb", "-deleteGone", *map(str, names), "-noCommit")
    title = crawl.titles().get(url, "")
    assert " ".join([*(line.partition("\t")[0] for line in lines), title]).strip() == expected


@pytest.mark.parametrize("code", [GONE, MOVED, status.STATUS_PARSE_FAILED])
@pytest.mark.parametrize("due", [500, 1500])
def test_an_error_that_the_crawldb_knows_to_be_over(crawl: Crawl, code: int, due: int) -> None:
    """The segment of the success since has been indexed before, and is not among these."""
    url = "http://a.org/"
    db = crawl.crawldb({url: status.STATUS_DB_FETCHED}, due=due)
    old = crawl.segment("20260101000000", [(url, code, "")])
    properties = {"parser__delete__failed__parse": "true"}
    lines, _ = crawl.index(str(db), str(old), "-deleteGone", "-noCommit", **properties)
    assert lines == ([] if due > 1000 else [f"delete\t{url}"])


def test_a_page_that_has_gone_since(crawl: Crawl) -> None:
    old = crawl.segment("20260101000000", [("http://a.org/", OK, "old")])
    new = crawl.segment("20260102000000", [("http://a.org/", status.STATUS_FETCH_GONE, "")])
    assert crawl.index("-nocrawldb", str(old), str(new))[0] == ["commit"]
    lines, counters = crawl.index("-nocrawldb", "-deleteGone", str(old), str(new), "-noCommit")
    assert lines == ["delete\thttp://a.org/"]
    assert counters == {"indexed_total": 0, "deleted_gone_total": 1}


def test_a_noindex_that_has_been_taken_back(crawl: Crawl) -> None:
    old = crawl.segment("20260101000000", [("http://a.org/", OK, "old")], robots="NoIndex, follow")
    properties = {"indexer__delete__robots__noindex": "true"}
    assert crawl.index("-nocrawldb", str(old), **properties)[0] == [
        "delete\thttp://a.org/",
        "commit",
    ]
    new = crawl.segment("20260102000000", [("http://a.org/", OK, "new")])
    assert crawl.index("-nocrawldb", str(old), str(new), **properties)[0] == [
        "add\thttp://a.org/",
        "commit",
    ]


@pytest.mark.parametrize("none", [False, True])
@pytest.mark.parametrize(
    ("robots", "is_deleted"),
    [
        (["unavailable_after: 1 Jan 1970 00:00:00 GMT"], True),
        (["unavailable_after: 1 Jan 1970 00:00:01 GMT"], False),
        (["index, follow", "NoIndex"], True),
        (["index", "follow"], False),
        (["NONE"], True),
        (["follow;none"], True),
        (["max-image-preview: none, nofollow"], False),
        (["googlebot: none"], False),
        (["googlebot: noindex, MyBot: none"], True),
        (["nonesuch, noindexing"], False),
    ],
)
def test_directives_of_all_elements_count_at_the_time_of_the_job(
    robots: list[str], is_deleted: bool, none: bool, crawl: Crawl
) -> None:
    """`none` counts where indexer.delete.robots.none says so, as an element's word;
    developers.google.com, "Robots meta tag … specifications": combined directives add up."""
    segment = crawl.segment("20260101000000", [("http://a.org/", OK, "old")], robots=robots)
    lines, _ = crawl.index(
        "-nocrawldb",
        str(segment),
        indexer__delete__robots__noindex="true",
        indexer__delete__robots__none=str(none).lower(),
        http__agent__name="MyBot",
    )
    is_deleted &= none or "none" not in str(robots).lower()
    assert lines == [f"{'delete' if is_deleted else 'add'}\thttp://a.org/", "commit"]


def test_documents_inside_pages_have_their_own_urls(crawl: Crawl) -> None:
    entry = ("http://feed.org/entry", OK, "entry")
    segment = crawl.segment("20260101000000", [("http://feed.org/", OK, "feed")], inside=[entry])
    lines, counters = crawl.index("-nocrawldb", str(segment))
    assert lines == ["add\thttp://feed.org/", "add\thttp://feed.org/entry", "commit"]
    assert counters == {"indexed_total": 2}


def test_failed_parses_and_pages_without_one(crawl: Crawl) -> None:
    segment = crawl.segment(
        "20260101000000", [("http://a.org/", OK, "failed"), ("http://b.org/", OK, "")]
    )
    lines, counters = crawl.index("-nocrawldb", str(segment))
    assert lines == ["commit"]
    assert counters == {
        "indexed_total": 0,
        "skipped_failed_parse_total": 1,
        "skipped_not_parsed_total": 1,
    }


def test_urls_that_the_normalizers_change_join_under_the_new_one(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query's parameters are sorted; both segments, and the CrawlDb, know another order of
    them.
    """
    monkeypatch.setattr(job, "_range_bytes", lambda conf: 500)
    some = pages(300)
    old = crawl.segment(
        "20260101000000", [*some, ("http://z.org/?b=2&a=1", OK, "old"), ("http://m.org/", OK, "m")]
    )
    new = crawl.segment("20260102000000", [("http://z.org/?a=1&b=2", OK, "new")])
    db = crawl.crawldb({"http://z.org/?b=2&a=1": status.STATUS_DB_DUPLICATE})
    lines, counters = crawl.index(str(db), str(old), str(new), "-normalize", "-deleteGone")
    assert lines == [
        *adds([*some, ("http://m.org/", OK, "")]),
        "delete\thttp://z.org/?a=1&b=2",
        "commit",
    ]
    assert counters["deleted_duplicates_total"] == 1
    lines, _ = crawl.index("-nocrawldb", str(old), "-normalize")
    assert "add\thttp://z.org/?a=1&b=2" in lines


def test_filtered_urls_are_counted(crawl: Crawl) -> None:
    (crawl.folder / "prefix-urlfilter.txt").write_text("http://a.\n")
    segment = crawl.segment(
        "20260101000000", [("http://a.org/", OK, "a"), ("http://b.org/", OK, "b")]
    )
    lines, counters = crawl.index("-nocrawldb", str(segment), "-filter")
    assert lines == ["add\thttp://a.org/", "commit"]
    assert counters == {"skipped_by_url_filter_total": 1, "indexed_total": 1}


def test_documents_that_a_filter_leaves_out(crawl: Crawl) -> None:
    segment = crawl.segment(
        "20260101000000", [("http://a.org/", OK, "a"), ("http://b.org/", OK, "b")]
    )
    properties = {
        "plugin__includes": f"{PLUGINS}|index-jexl-filter",
        "index__jexl__filter": "title == 'a'",
    }
    lines, counters = crawl.index("-nocrawldb", str(segment), **properties)
    assert lines == ["add\thttp://a.org/", "commit"]
    assert counters == {"indexed_total": 1, "skipped_by_indexing_filter_total": 1}
    properties["indexer__delete__skipped__by__indexingfilter"] = "true"
    lines, counters = crawl.index("-nocrawldb", str(segment), **properties)
    assert lines == ["add\thttp://a.org/", "delete\thttp://b.org/", "commit"]
    assert counters == {"indexed_total": 1, "deleted_by_indexing_filter_total": 1}


def test_a_document_that_cannot_be_indexed(crawl: Crawl) -> None:
    segment = crawl.segment("20260101000000", [("no url", OK, "a"), ("http://b.org/", OK, "b")])
    lines, counters = crawl.index("-nocrawldb", str(segment))
    assert lines == ["add\thttp://b.org/", "commit"]
    assert counters == {"indexed_total": 1, "errors_indexing_total": 1}


# -- what is wrong ---------------------------------------------------------------------------------


def test_wrong_places(crawl: Crawl, caplog: pytest.LogCaptureFixture) -> None:
    segment = crawl.segment("20260101000000", pages(1))
    with pytest.raises(UsageError, match="No indexable segments"):
        crawl.index("crawldb", str(crawl.folder / "nosuch"))
    with pytest.raises(StoreError, match="is no segment but a folder of segments"):
        crawl.index("crawldb", str(segment.parent))
    crawl.index("nosuch", str(segment), "-linkdb", "nolinks")
    assert "no crawlDb found in path: nosuch" in caplog.text
    assert "no linkDb found in path: nolinks" in caplog.text


def test_a_damaged_file_is_named_and_nothing_is_written(crawl: Crawl) -> None:
    segment = crawl.segment("20260101000000", pages(50))
    crawl.index("-nocrawldb", str(segment))
    before = (crawl.folder / "csv/nutch.csv").read_bytes()
    path = segment / "parse_text" / part_name(0) / "data"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(FormatError, match="parse_text"):
        crawl.index("-nocrawldb", str(segment))
    assert (crawl.folder / "csv/nutch.csv").read_bytes() == before
    assert sorted(path.name for path in (crawl.folder / "csv").iterdir()) == [
        ".nutch.csv.crc",
        "nutch.csv",
    ]


def test_output_that_cannot_be_written(crawl: Crawl) -> None:
    segment = crawl.segment("20260101000000", pages(1))
    (crawl.folder / "csv").write_text("in the way")
    with pytest.raises(IndexWriterError, match="index writer c: "):
        crawl.index("-nocrawldb", str(segment))
    assert not (crawl.folder / "dummy.txt").exists()


def test_an_empty_crawldb_and_an_empty_segment(crawl: Crawl) -> None:
    lines, counters = crawl.index(str(crawl.crawldb({})), str(crawl.segment("20260101000000", [])))
    assert lines == ["commit"]
    assert counters == {"indexed_total": 0}
    assert len(CrawlDb(crawl.folder / "crawldb")) == 0
