"""Segments merged in tiers: readers get the same, and nothing is lost however it ends."""

from __future__ import annotations

import gc
import io
import math
import random
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from minutch.archives.web.webarchivejobs import export_warc
from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.crawldb.updatedb import known_urls
from minutch.cycle.segment import compaction, places
from minutch.cycle.segment.compaction import CompactOptions, compact, next_merge
from minutch.cycle.segment.places import Replaces
from minutch.cycle.segment.store import LAYOUTS, Segment, part_writer, segments_in
from minutch.errors import FormatError
from minutch.hadoop.formats.writables import Text
from minutch.inspect.audit.findings import audit, rules_of
from minutch.inspect.explain.explainer import explain, overview
from minutch.inspect.query.crawl import open_crawl
from minutch.inspect.search.crawlfiles import CrawlFiles
from minutch.job import Counters, JobContext
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum
from minutch.records.links import Outlink
from minutch.records.metadata import PROTO_STATUS_KEY, SIGNATURE_KEY, Metadata
from minutch.records.parsedata import ParseData, ParseStatus, ParseText
from minutch.records.protocol import (
    GONE,
    MOVED,
    NOTMODIFIED,
    RETRY,
    SUCCESS,
    Content,
    ProtocolStatus,
)
from tests.inspect.report.conftest import gathered as facts_of
from tests.support.archived import read_records
from tests.support.commands import command as declared
from tests.support.commands import mergesegs as mergesegs_command
from tests.support.crawldbs import DAY, NOW, write_db
from tests.support.examples import every, few

INTERVAL = 30 * DAY
URLS = [f"http://site{n % 3}.example/{n}" for n in range(6)]

OUTCOMES = {
    "fetched": (status.STATUS_FETCH_SUCCESS, SUCCESS, status.STATUS_DB_FETCHED),
    "unparsed": (status.STATUS_FETCH_SUCCESS, SUCCESS, status.STATUS_DB_FETCHED),
    "unchanged": (status.STATUS_FETCH_NOTMODIFIED, NOTMODIFIED, status.STATUS_DB_NOTMODIFIED),
    "failed": (status.STATUS_FETCH_RETRY, RETRY, status.STATUS_DB_UNFETCHED),
    "gone": (status.STATUS_FETCH_GONE, GONE, status.STATUS_DB_GONE),
    "moved": (status.STATUS_FETCH_REDIR_PERM, MOVED, status.STATUS_DB_REDIR_PERM),
}
OF_NEWEST = ["statuses", "due", "intervals", "robots", "ages", "types", "sizes", "chains"]
OF_NEWEST += ["languages", "charsets", "broken", "duplicates"]
"""Facts of a report that are not about rounds, requests and changes: of the newest versions."""
Round = dict[int, str]
"""The number of a URL → what came of its fetch."""


def job(now: int = NOW, **properties: Any) -> JobContext:
    values = {name.replace("__", "."): str(value) for name, value in properties.items()}
    values = {"plugin.includes": "index-basic|indexer-dummy|scoring-opic"} | values
    conf = Configuration.load([], overrides=values).freeze()
    return JobContext(conf, FakeClock(now), out=io.StringIO(), err=io.StringIO())


class History:
    """Rounds of a crawl in a folder, a day apart, the last one at NOW."""

    def __init__(self, folder: Path, rounds: Sequence[Round], seconds: int = 86_400) -> None:
        self.folder, self.rounds = folder, rounds
        self.words: dict[str, CrawlDatum] = {}
        step = seconds * 1000
        for number, fetches in enumerate(rounds):
            self.add(fetches, NOW - (len(rounds) - 1 - number) * step)
        write_db(folder / "crawldb", sorted(self.words.items()), parts=2)

    def add(self, fetches: Round, time: int) -> Segment:
        name = datetime.fromtimestamp(time / 1000).strftime("%Y%m%d%H%M%S")
        segment = Segment(self.folder / "segments" / name)
        found: dict[str, list[tuple[str, Any]]] = {folder: [] for folder in LAYOUTS}
        for number, outcome in sorted(fetches.items(), key=lambda item: URLS[item[0]]):
            self._visit(found, URLS[number], outcome, time + number, f"{outcome} {time}")
        for folder, entries in found.items():
            for part in range(2):
                with part_writer(segment.path, folder, part) as append:
                    for url, value in entries[part::2]:
                        append(url, value)
        return segment

    def _visit(
        self, found: dict[str, list[tuple[str, Any]]], url: str, outcome: str, time: int, text: str
    ) -> None:
        fetch, protocol, known = OUTCOMES[outcome]
        datum = CrawlDatum(fetch, INTERVAL // 1000, 1.0, time)
        datum.metadata[Text(PROTO_STATUS_KEY)] = ProtocolStatus(
            protocol, ["http://moved.example/"] if outcome == "moved" else []
        )
        found["crawl_generate"].append((url, CrawlDatum(status.STATUS_DB_UNFETCHED, 1, 1.0, time)))
        found["crawl_fetch"].append((url, datum))
        self.words[url] = CrawlDatum(known, INTERVAL // 1000, 1.0, time + INTERVAL)
        if outcome in ("fetched", "unparsed"):
            digest = Metadata.of({SIGNATURE_KEY: text.encode().hex()[:32]})
            content = Content(url, url, text.encode(), "text/html", digest)
            links = [Outlink(other, text) for other in URLS if other != url][: time // DAY % 4]
            good = outcome == "fetched"
            parse = ParseData(
                ParseStatus(1 if good else 2, 0, []),
                text if good else "",
                links if good else [],
                digest,
                Metadata.of({}),
            )
            found["content"].append((url, content))
            found["parse_data"].append((url, parse))
            found["parse_text"].append((url, ParseText(text if good else "")))
            found["crawl_parse"].append((url, CrawlDatum(status.STATUS_SIGNATURE, 0, 1.0, time)))
            for link in links if good else ():
                linked = CrawlDatum(status.STATUS_LINKED, 0, 0.5)
                found["crawl_parse"].append((link.to_url, linked))

    @property
    def segments(self) -> Path:
        return self.folder / "segments"

    def compact(self, context: JobContext, **options: Any) -> Counters:
        known = known_urls(self.folder / "crawldb", context.conf)
        return compact(self.segments, known, CompactOptions(**options), context=context)


def rows(frame: pl.DataFrame) -> list[str]:
    lists = pl.col(pl.List(pl.String)).list.sort()
    return sorted(map(repr, frame.with_columns(lists).iter_rows()))


def tables(folder: Path) -> dict[str, Any]:
    """Those in which all else is looked up: pages, and links between them."""
    crawl = open_crawl(folder)
    site = crawl.tables["site"].scan().drop("segment").collect()
    return {"site": rows(site), "links": rows(crawl.tables["links"].scan().unique().collect())}


def answers(folder: Path) -> dict[str, Any]:
    """What people ask a crawl, and get in the words of its newest versions."""
    crawl, files = open_crawl(folder), CrawlFiles(folder)
    found: dict[str, Any] = tables(folder)
    context = job()
    for finding in audit(crawl, rules_of(context.conf).values(), NOW):
        found[finding.rule.id] = None if finding.rows is None else rows(finding.rows)
    for url in URLS:
        stored = files.stored(url)
        found[url] = (
            files.title(url),
            sorted({(one.from_url, one.anchor) for one in files.inlinks(url)}),
            stored and (stored.body, stored.fetched),
        )
    found["index"] = indexed(folder)
    facts = facts_of(folder, NOW)
    found["report"] = {name: rows(facts.tables[name]) for name in OF_NEWEST if name in facts.tables}
    found["left"] = [line.text for line in overview(folder, context=context).left]
    found["explain"] = {url: explained(folder, url) for url in URLS}
    found["warc"] = newest_captures(folder)
    return found


def explained(folder: Path, url: str) -> dict[str, Any]:
    """What `explain` says of a URL; not which segments, nor which older versions of pages lead to
    it.
    """
    facts = asdict(explain(folder, url, context=job()))
    last = {**facts["visits"][-1], "segment": ""} if facts["visits"] else None
    due = facts["due"] and {**facts["due"], "segment": ""}
    unknown = facts["unknown"] and facts["unknown"]["reason"]
    older = dict.fromkeys(("leads", "score"))
    return {**facts, "visits": last, "due": due, "unknown": unknown, **older}


def newest_captures(folder: Path) -> dict[str, tuple[str, bytes]]:
    """URL → time and record of its newest capture in `export warc`."""
    found: dict[str, tuple[str, bytes]] = {}
    with tempfile.TemporaryDirectory() as out:
        paths = [segment.path for segment in segments_in(folder / "segments")]
        export_warc(paths, Path(out, "warc"), context=job())
        for file in sorted(Path(out, "warc").glob("*.warc.gz")):
            for kind, target, date, _, block in read_records(file):
                if target and kind in ("response", "resource"):
                    found[target] = max(found.get(target, (date, block)), (date, block))
    return found


def indexed(folder: Path) -> list[str]:
    """What `index` makes of all segments, and its counts."""
    from minutch.cycle.index.indexing import IndexOptions, index

    with tempfile.TemporaryDirectory() as out:
        writers = Path(out, "index-writers.xml")
        writers.write_text(
            '<writers><writer id="d" class="org.apache.nutch.indexwriter.dummy.DummyIndexWriter">'
            f'<parameters><param name="path" value="{out}/done"/>'
            '<param name="delete" value="true"/></parameters>'
            "<mapping><copy/><rename/><remove/></mapping></writer></writers>"
        )
        context = job(indexer__indexwriters__file=str(writers))
        segments = [segment.path for segment in segments_in(folder / "segments")]
        counters = index(
            folder / "crawldb", segments, IndexOptions(delete_gone=True), context=context
        )
        lines = Path(out, "done").read_text().splitlines()
    counts = {name: n for name, n in counters.items() if name.endswith("_total")}
    return [*sorted(lines), repr(sorted(counts.items()))]


ROUNDS = st.lists(
    st.dictionaries(
        st.integers(0, len(URLS) - 1), st.sampled_from(sorted(OUTCOMES)), min_size=1, max_size=6
    ),
    min_size=4,
    max_size=9,
)


@pytest.mark.slow  # each example asks a whole crawl all it can be asked, three times
@settings(max_examples=10, deadline=None, phases=[Phase.generate])
@given(ROUNDS, st.integers(0, 8))
def test_answers_stay_the_same(rounds: list[Round], first: int) -> None:
    """However often a history is merged, and whatever part of it at first."""
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder), rounds)
        before = answers(history.folder)
        keep = job(crawl__compact__retention=10**9, crawl__compact__grace=0)
        names = [segment.name for segment in segments_in(history.segments)]
        history.compact(keep, leave=names[:first])
        assert answers(history.folder) == before
        counters = history.compact(keep)
        assert answers(history.folder) == before
        if counters[compaction.MERGED]:
            assert len(segments_in(history.segments)) < len(names)


def test_what_hosts_say_of_use_stays_with_their_pages(tmp_path: Path) -> None:
    """robots.txt has no entry in the CrawlDb: it went with URLs that are known no more."""
    robots, forgotten = "http://a.example/robots.txt", "http://a.example/forgotten"

    class WithFiles(History):
        def _visit(self, found: dict[str, list[tuple[str, Any]]], *more: Any) -> None:
            super()._visit(found, *more)
            text = str(more[2]).encode()
            for url in (robots, forgotten) if len(found["content"]) == 1 else ():
                found["content"].append((url, Content(url, url, text, "text/plain")))
            found["content"].sort(key=lambda entry: entry[0])

    history = WithFiles(tmp_path, [{0: "fetched"}, *({1: "fetched"} for _ in range(4))])
    newest = segments_in(history.segments)[-1].get("content", robots)
    counters = history.compact(job(NOW + 900 * DAY, crawl__compact__retention=DAY // 1000))
    assert counters[compaction.MERGED]
    found = segments_in(history.segments)
    assert [one for segment in found for one in segment.get("content", robots)][-1:] == newest
    assert not any(segment.get("content", forgotten) for segment in found)


def test_depths_in_the_report_stay_the_same(tmp_path: Path) -> None:
    """A crawl that begins with one page, and finds the others by its links, round by round."""
    history = History(tmp_path, [{0: "fetched"}, {1: "fetched", 2: "fetched"}, {0: "fetched"}])
    for number in range(3):  # the links of a page are those of its day
        history.add({number: "fetched"}, NOW + (number + 1) * DAY)
    write_db(tmp_path / "crawldb", sorted(history.words.items()), parts=2)
    before = facts_of(tmp_path, NOW).tables["depth"]
    counters = history.compact(job(crawl__compact__retention=10**9, crawl__compact__grace=0))
    assert counters[compaction.MERGED]
    after = facts_of(tmp_path, NOW).tables["depth"]
    assert before.rows() == after.rows() and len(before) > 1


def test_policy_keeps_few_segments_and_copies_little() -> None:
    """Over rounds of all sizes, three a doubling at most, and as many copies as doublings."""
    chance = random.Random(1)
    sizes: list[int] = []
    copied = total = 0
    for number in range(1, 3001):
        sizes.append(chance.choice([1, 5, 20, 60, 100]))
        total += sizes[-1]
        while (chosen := next_merge(sizes)) is not None:
            copied += sum(sizes[chosen.start : chosen.stop])
            sizes[chosen.start : chosen.stop] = [sum(sizes[chosen.start : chosen.stop])]
        assert len(sizes) <= 3 * math.log2(total) + 3, number
    assert copied <= total * math.log(total, 1.5)


@pytest.mark.parametrize("above", [0.1, 0.7])
@pytest.mark.parametrize("pages", [300, 20_000])
def test_pages_are_copied_a_few_times_in_hundreds_of_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: int, above: float
) -> None:
    """Where all pages are fetched again and again, and what lies above the merged segment is small,
    or nearly as large as that: also in a small crawl, whose segments are hardly more than headers.
    """
    of_round, headers = max(1, pages // 60), 3
    sizes: dict[str, int] = {}
    records: dict[str, Replaces] = {}
    monkeypatch.setattr(compaction, "size_of", lambda segment: headers + sizes[segment.name])
    monkeypatch.setattr(Replaces, "of", lambda path: records.get(path.name))
    work = compaction.Compaction(tmp_path, None, CompactOptions(pages=pages), job())
    run: list[Segment] = []
    asked = copied = 0
    for number in range(600):
        run.append(Segment(tmp_path / f"round{number}"))
        sizes[run[-1].name] = of_round
        asked += of_round
        while (chosen := work._next(run, None)) is not None:
            members = run[chosen.start : chosen.stop]
            held = min(pages, sum(sizes[one.name] for one in members))
            copied += held
            made = [Segment(tmp_path / f"{members[-1].name}-{layer}") for layer in range(2)]
            sizes |= {made[0].name: held, made[1].name: int(above * held)}
            records |= {made[0].name: Replaces(pages=held), made[1].name: Replaces()}
            run[chosen.start : chosen.stop] = made
        assert len(run) <= 3 * math.log2(asked + 1) + 3, number
    assert copied <= asked * math.log(60, 1.5)


@pytest.fixture
def refetched(tmp_path: Path) -> History:
    """Six rounds, in which one page vanishes, one is purged, one is not modified for long."""
    rounds: list[Round] = [dict.fromkeys(range(6), "fetched")]
    rounds += [{0: "fetched", 1: "gone" if n == 1 else "fetched", 2: "unchanged"} for n in range(5)]
    for later in rounds[3:]:
        later.pop(1)
    history = History(tmp_path, rounds)
    del history.words[URLS[3]]
    shutil.rmtree(tmp_path / "crawldb")
    write_db(tmp_path / "crawldb", sorted(history.words.items()))
    return history


def stored(history: History) -> dict[str, str]:
    files = CrawlFiles(history.folder)
    found = {url: files.stored(url) for url in URLS}
    return {url: page.body.decode() for url, page in found.items() if page is not None}


def test_what_is_gone_leaves_after_its_time(refetched: History) -> None:
    first = NOW - 5 * DAY
    assert refetched.compact(job(crawl__compact__grace=0))[compaction.MERGED] == 6
    assert set(stored(refetched)) == set(URLS)  # seven days are not over

    later = job(NOW + 8 * DAY, crawl__compact__grace=0)
    refetched.compact(later)

    assert set(stored(refetched)) == {URLS[0], URLS[2], URLS[4], URLS[5]}
    assert stored(refetched)[URLS[2]] == f"fetched {first}"  # its last success, however old
    pages = open_crawl(refetched.folder).tables["pages"].scan().collect()
    assert set(pages["url"]) == {*URLS} - {URLS[3]}
    assert "gone" in pages.filter(pl.col("url") == URLS[1])["status"].cast(pl.String).item()
    assert refetched.compact(later)[compaction.MERGED] == 0  # once in a while


def test_open_and_foreign_segments_stay(refetched: History) -> None:
    names = [segment.name for segment in segments_in(refetched.segments)]
    (refetched.segments / names[5] / "_fetch").mkdir()
    (refetched.segments / names[4] / "notes").mkdir()
    counters = refetched.compact(job(crawl__compact__grace=0), leave=[names[0]])
    assert counters[compaction.MERGED] == 0
    (refetched.segments / names[4] / "notes").rmdir()
    assert refetched.compact(job(crawl__compact__grace=0))[compaction.MERGED] == 5
    left = [segment.name for segment in segments_in(refetched.segments)]
    assert left[-1] == names[5] and max(left[:-1]) < names[5]


def test_a_segment_without_updatedb_stays(refetched: History) -> None:
    new = refetched.add({3: "fetched", 4: "fetched"}, NOW + DAY)
    refetched.compact(job(NOW + 30 * DAY, crawl__compact__grace=0))
    assert new.path.is_dir() and URLS[3] in stored(refetched)


def test_replaced_segments_stay_for_a_while_and_while_they_are_read(refetched: History) -> None:
    listed = segments_in(refetched.segments)
    early = open_crawl(refetched.folder).tables["pages"]
    before = len(early)
    refetched.compact(job())
    assert all(segment.path.is_dir() for segment in listed)
    assert not {one.name for one in listed} & {one.name for one in segments_in(refetched.segments)}
    refetched.compact(job(NOW + 3_600_000))
    assert len(early) == before  # the hour is over, and it is still read
    del early, listed
    refetched.compact(job(NOW + 3_600_000))
    assert {path.name for path in refetched.segments.iterdir() if path.name[0] != "."} == {
        one.name for one in segments_in(refetched.segments)
    }


READERS = {
    "updatedb": ("{out}/crawldb", "{segments}"),
    "index -dir": ("{crawl}/crawldb", "-dir", "{folder}"),
    "webgraph": ("-webgraphdb", "{out}/graph", "-segmentDir", "{folder}"),
    "readseg": ("-dump", "{first}", "{out}/dump"),
    "export": ("warc", "{segments}", "{out}/warc"),
    "updatedb -dir": ("{out}/crawldb", "-dir", "{folder}"),
    "invertlinks": ("{out}/linkdb", "{segments}"),
    "invertlinks -dir": ("{out}/linkdb", "-dir", "{folder}"),
    "index": ("{crawl}/crawldb", "{segments}"),
    "readseg -list": ("-list", "-dir", "{folder}"),
    "mergesegs": ("{out}/merged", "{segments}"),
    "mergesegs -dir": ("{out}/merged", "-dir", "{folder}"),
    "warc": ("{out}/warc", "{segments}"),
    "dump": ("-segment", "{folder}", "-outputDir", "{out}/dump"),
}
"""A command that reads segments → its words."""


@pytest.mark.parametrize("command", few(READERS, 2))
def test_what_is_read_by_path_stays(
    refetched: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Readers that are at work when their segments are replaced, and an hour later retired."""
    old = [segment.path for segment in segments_in(refetched.segments)]
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    given: list[str] = []
    for word in READERS[command]:
        names = {"crawl": refetched.folder, "folder": refetched.segments, "first": old[0]}
        filled = word.format(out=tmp_path / "out", segments="*", **names)
        given += map(str, old) if filled == "*" else [filled]
    has, disturbed = Segment.has, []

    def disturbing(segment: Segment, folder: str) -> bool:
        if segment.path in old and not disturbed:
            disturbed.append(segment.name)
            refetched.compact(job())
            refetched.compact(job(NOW + 3_600_000))
        return has(segment, folder)

    monkeypatch.setattr(Segment, "has", disturbing)
    context = job(http__agent__name="x")
    assert declared(command.split(maxsplit=1)[0]).run(given, context) == 0
    assert disturbed and old[0].is_dir()
    monkeypatch.undo()
    gc.collect()
    refetched.compact(job(NOW + 3_600_000))
    assert not any(path.is_dir() for path in old)


def words(folder: Path) -> list[str]:
    """The newest word on each URL, and how often a successful version is there."""
    tables = open_crawl(folder).tables
    pages = tables["pages"].scan().select("url", "fetch_time", "status").collect()
    newest = pages.sort("fetch_time").unique("url", keep="last", maintain_order=True)
    assert pages.is_unique().all()  # nothing twice
    parses = tables["parses"].scan().filter(pl.col("title") != "").select("url", "title").collect()
    return rows(newest) + rows(parses.sort("title").unique("url", keep="last", maintain_order=True))


def test_names_are_free_even_where_there_is_a_segment_each_second(tmp_path: Path) -> None:
    history = History(tmp_path, [{n % 6: "fetched"} for n in range(12)], seconds=1)
    before = words(tmp_path)
    known: set[str] = set()
    for _ in range(3):
        history.compact(job(crawl__compact__grace=0))
        assert words(tmp_path) == before
        known |= {one.name for one in segments_in(history.segments)}
    assert len(segments_in(history.segments)) <= 4
    assert all(len(name) == 14 for name in known)  # Nutch takes no others


def test_names_of_what_is_not_there_any_more_are_not_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records name segments that have just been removed."""
    history = History(tmp_path, [{n % 6: "fetched"} for n in range(12)])
    before = words(tmp_path)
    records = {
        one.name: Replaces([f"2001010100{n:02}{part:02}" for part in range(9)], [], 0, None, 1)
        for n, one in enumerate(segments_in(history.segments))
    }
    real = Replaces.of
    monkeypatch.setattr(Replaces, "of", lambda path: records.get(path.name) or real(path))
    history.compact(job(crawl__compact__grace=0))
    assert len(segments_in(history.segments)) < 12
    assert words(tmp_path) == before


def test_archives_are_kept(refetched: History) -> None:
    names = set()
    for number, segment in enumerate(segments_in(refetched.segments)):
        (segment.path / "warc").mkdir()
        (segment.path / "warc" / f"{number}.warc.gz").write_bytes(b"page")
        names.add(f"{number}.warc.gz")
    del segment
    refetched.compact(job(crawl__compact__grace=0))
    found = [path.name for path in refetched.segments.glob("[0-9]*/warc/*")]
    assert sorted(found) == sorted(names)


def test_the_command(refetched: History, caplog: pytest.LogCaptureFixture) -> None:
    before = tables(refetched.folder), words(refetched.folder)
    newest = segments_in(refetched.segments)[-1].name
    (refetched.folder / ".round").write_text(f'{{"segment": "{newest}", "done": ["fetch"]}}')
    assert mergesegs_command.run(["--tiers", str(refetched.segments)], job()) == 0
    assert (tables(refetched.folder), words(refetched.folder)) == before
    assert newest in [one.name for one in segments_in(refetched.segments)]


class Killed(BaseException):
    pass


def test_killed_between_any_two_files(refetched: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each rename, removal and writing of a record, and then again from what is left."""
    before, saved = words(refetched.folder), refetched.folder.parent / "saved"
    shutil.copytree(refetched.folder, saved)
    methods = {name: getattr(Path, name) for name in ("rename", "replace", "unlink", "write_text")}
    number = count = 0

    def counted(name: str) -> Any:
        def call(self: Path, *words: Any, **more: Any) -> Any:
            nonlocal count
            is_record = self.name.startswith((".replaces", ".above", ".began"))
            if is_record or (self.parent.name == "segments" and ".locked" not in self.name):
                count += 1
                if count == number:
                    raise Killed
            return methods[name](self, *words, **more)

        return call

    context = job(crawl__compact__grace=0)
    for number in range(1, 200, every(12)):
        count = 0
        with monkeypatch.context() as patched:
            for name in methods:
                patched.setattr(Path, name, counted(name))
            patched.setattr(places, "remove", lambda path: None)
            try:
                refetched.compact(context)
                ended = True
            except Killed:
                ended = False
        if ended:
            break
        assert words(refetched.folder) == before, number
        refetched.compact(context)
        assert words(refetched.folder) == before, number
        assert len(segments_in(refetched.segments)) <= 3
        shutil.rmtree(refetched.folder)
        shutil.copytree(saved, refetched.folder)
    assert number > 6


def test_damage_is_an_error_and_changes_nothing(refetched: History) -> None:
    names = [segment.name for segment in segments_in(refetched.segments)]
    file = refetched.segments / names[0] / "content/part-r-00000/data"
    damaged = bytearray(file.read_bytes())
    damaged[-5] ^= 0xFF
    file.write_bytes(damaged)
    with pytest.raises(FormatError):
        refetched.compact(job())
    assert [segment.name for segment in segments_in(refetched.segments)] == names
