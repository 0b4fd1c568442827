"""The readers of what lies in a folder, perhaps somebody else's; see `readers`.

`FILES` are given damaged bytes. `FOLDERS` are made once; a copy has damage in one of its files, the
records of a SequenceFile among them, without the checksums that would tell.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minutch.annexes.stores.path import _read as read_moves
from minutch.clock import FakeClock
from minutch.commands import flow
from minutch.conf import Configuration
from minutch.conf.sources import read_properties
from minutch.cycle.crawl.rounds import Round
from minutch.cycle.crawldb.seeds import read_seeds
from minutch.cycle.fetch.frontier.hostmemory import FILE_NAME, PREFIX, BusyHosts, read_rests
from minutch.cycle.fetch.ledger import OUTCOMES, Outcome
from minutch.cycle.fetch.results.fetchlog import FetchLog, Frame, Part, frames
from minutch.cycle.fetch.tasks.taskfetch import LEDGER
from minutch.cycle.fetch.tasks.taskfetch import _done as read_done
from minutch.cycle.fetchlist.lists import _read as read_planned
from minutch.cycle.segment.places import ABOVE, BEGAN, REPLACES, Replaces, began_with, visible
from minutch.cycle.segment.places import _read as read_placed
from minutch.errors import MinutchError
from minutch.expressions import compile_expression
from minutch.hadoop.formats.batch import Batch
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.inspect.report.facts import Facts, from_json, to_json
from minutch.inspect.search.results import SearchOptions
from minutch.inspect.search.searcher import Searcher
from minutch.job import JobContext
from minutch.records import crawldatum_columns
from minutch.records import links_columns as link_columns
from minutch.records.links import Inlinks, layout_of
from minutch.work.tables.lock import Owner, holder
from plugins.lib_http.robotscache import RobotsDisk, StoredRobots
from tests.faults.readers import ENCODINGS, Reader, from_file, memory, text
from tests.records.samples import DATA, DATUM, SAMPLES
from tests.support.commands import fsck
from tests.support.golden import GOLDEN
from tests.support.indexedcrawl import IndexedCrawl, Page


@dataclass(frozen=True)
class Folder:
    """A reader of a folder."""

    read: Callable[[Path], object]
    make: Callable[[Path], object]
    """Makes it in an empty folder."""


def _in_folder(read: Callable[[Path], object], name: str) -> Callable[[bytes], object]:
    """A reader of a folder with one file."""
    return from_file(lambda path: read(path.parent), name)


def _bytes_of(make: Callable[[Path], object], name: str) -> bytes:
    """The bytes of the file that `make` leaves in a folder."""
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        make(Path(folder))
        return (Path(folder) / name).read_bytes()


def _log(folder: Path) -> None:
    (folder / "a").mkdir()
    log = FetchLog(folder / "a" / "log", "")
    for number in range(3):
        frame = Frame(next(iter(Outcome)), [f"http://a/{number}"])
        frame.add(Part.FETCH, f"http://a/{number}", DATUM.to_bytes())
        log.append(frame)
    log.close()


def _fetch_state(folder: Path) -> None:
    state = BusyHosts(folder)
    state.write("INSERT INTO busy VALUES (?, ?)", [("a.b", 5)])
    state.close()


def _use_fetch_state(folder: Path) -> object:
    state = BusyHosts(folder)
    try:
        return state.read("SELECT * FROM busy")
    finally:
        state.write("INSERT OR REPLACE INTO busy VALUES (?, ?)", [("c.d", 7)])
        state.close()


def _robots_disk(folder: Path) -> None:
    disk = RobotsDisk(folder / "robots.sqlite")
    disk.put("http:a:80", StoredRobots(1.0, 200, b"User-agent: *", "text/plain", "u", (), {}))
    disk.close()


def _use_robots_disk(path: Path) -> object:
    disk = RobotsDisk(path)
    try:
        return disk.get("http:a:80", 0)
    finally:
        disk.close()


def _record(data: bytes) -> object:
    kind = type(SAMPLES[data[0] % len(SAMPLES)]) if data else type(SAMPLES[0])
    return kind.from_bytes(data[1:])


def _sequence_file(path: Path) -> object:
    with SequenceFileReader(path) as reader:
        return sum(1 for _ in reader)


def _lock(folder: Path) -> object:
    return holder(folder), Owner.parse(text((folder / ".locked").read_bytes()))


_SOME: Final = (
    '\\0 \\xff \\x7f\\xff\\xff\\xff \\x8f\\xff \\x8c\\x7f\\xff\\xff\\xff { } [ ] " < > \\n \\t a'
)

_JSON: Final = 'null true -1 1e999 NaN 9999999999999999999999 [[[[[[[[ {"a": \\\\ud800'

FILES: Final[Mapping[str, Reader]] = {
    "SequenceFile": Reader(
        from_file(_sequence_file, "a.seq"),
        lambda: [p.read_bytes() for p in sorted((GOLDEN / "sequencefiles").glob("*.seq"))],
        _SOME,
    ),
    "record": Reader(
        _record,
        lambda: [bytes([n]) + sample.to_bytes() for n, sample in enumerate(SAMPLES)],
        _SOME,
    ),
    "CrawlDatum, columns": Reader(
        lambda data: crawldatum_columns.decode(Batch.of([b"http://a/"], [data])),
        lambda: [DATUM.to_bytes()],
        _SOME,
    ),
    "outlinks, columns": Reader(
        lambda data: link_columns.decode_outlinks(Batch.of([b"http://a/"], [data])),
        lambda: [DATA.to_bytes()],
        _SOME,
    ),
    "inlinks, columns": Reader(
        lambda data: link_columns.decode_inlinks(
            Batch.of([b"http://a/"], [data]), layout_of([data])
        ),
        lambda: [sample.to_bytes() for sample in SAMPLES if isinstance(sample, Inlinks)],
        _SOME,
    ),
    "fetch log": Reader(
        from_file(lambda path: [*frames(path)], "log"), lambda: [_bytes_of(_log, "a/log")], _SOME
    ),
    "fetch log, goes on": Reader(
        from_file(lambda path: FetchLog(path, "").close(), "log"),
        lambda: [_bytes_of(_log, "a/log")],
        _SOME,
    ),
    "round": Reader(
        _in_folder(Round.load, ".round"),
        lambda: [b'{"segment": "20260101000000", "done": ["fetch"], "asked": 5}'],
        _SOME + " null 1e999 9999999999999999999999",
    ),
    "moves": Reader(
        from_file(read_moves, "moves"),
        lambda: [b'{"owner": "1 x 2", "moves": [["a", "b"], ["c", ""]]}'],
        f"{_SOME} {_JSON} .. / a/../b",
    ),
    "generated lists": Reader(
        from_file(read_planned, "generating"),
        lambda: [b'{"segments": "segments", "time": 1700000000000}'],
        f"{_SOME} {_JSON}",
    ),
    "segments placed": Reader(
        from_file(read_placed, "placing"),
        lambda: [b'{"job": "Generator", "counters": {"a": 1}}'],
        f"{_SOME} {_JSON}",
    ),
    "segments replaced": Reader(
        _in_folder(lambda folder: (Replaces.of(folder), visible([folder])), REPLACES),
        lambda: [b'{"segments": ["a"], "above": ["b"], "since": 1, "checked": null, "pages": 2}'],
        f"{_SOME} {_JSON}",
    ),
    "segments above": Reader(
        _in_folder(lambda folder: visible([folder]), ABOVE), lambda: [b"20260101000000\n"], _SOME
    ),
    "seeds of a replaced segment": Reader(
        _in_folder(began_with, BEGAN), lambda: [b"http://a/\nhttp://b/\n"], _SOME
    ),
    "list of a task": Reader(
        _in_folder(read_done, LEDGER),
        lambda: [b'{"generated": 5, "outcomes": {"%d": 3}}' % min(OUTCOMES)],
        f"{_SOME} {_JSON}",
    ),
    "rests of hosts": Reader(
        _in_folder(lambda folder: read_rests(folder, 0), f"{PREFIX}1"),
        lambda: [b"186a0 a.org\nff b\n"],
        f"{_SOME} f 0 \\x20",
    ),
    "facts of a report": Reader(
        lambda data: from_json(text(data)),
        lambda: [to_json(Facts("a", 1_700_000_000_000, {})).encode()],
        f"{_SOME} {_JSON} tables columns types",
    ),
    "lock": Reader(
        _in_folder(_lock, ".locked"), lambda: [Owner.current().content, b""], _SOME + " 9 -1"
    ),
    "state of hosts": Reader(
        _in_folder(_use_fetch_state, FILE_NAME), lambda: [_bytes_of(_fetch_state, FILE_NAME)], _SOME
    ),
    "robots store": Reader(
        from_file(_use_robots_disk, "robots.sqlite"),
        lambda: [_bytes_of(_robots_disk, "robots.sqlite")],
        _SOME,
    ),
    "configuration": Reader(
        from_file(read_properties, "nutch-site.xml"),
        lambda: [(GOLDEN / "crawl-small/conf-default/nutch-site.xml").read_bytes()],
        _SOME + " <property> <name> <value> <final> <!DOCTYPE <!ENTITY &a; <xi:include <![CDATA[",
        once=tuple(f"<?xml version='1.0' encoding='{name}'?><a/>".encode() for name in ENCODINGS),
    ),
    "seeds": Reader(
        from_file(lambda path: [*read_seeds(path)], "seeds.txt"),
        lambda: [b"http://a/\tnutch.score=2\tx=y\n# c\n  http://b/\n", "http://ü/\r\n".encode()],
        _SOME + " nutch.score= nutch.fetchInterval= = 1e999 \\r http:// \\xef\\xbb\\xbf",
    ),
    "expression": Reader(
        lambda data: compile_expression(text(data)).matches({"score": 1.0, "url": "http://a/"}),
        lambda: [b"score > 0.5 && url =~ '.*a' || !(retries == 3)"],
        "( ) && || ! =~ == < > + - * / 1 1e999 'a' \" . score [ ] , ?  : \\0 \\xff",
    ),
}


# -- folders ---------------------------------------------------------------------------------------


def _make_crawl(folder: Path) -> None:
    """A crawl with every database that jobs leave, and an index."""
    urls = [f"http://a.org/{number}" for number in range(12)]
    crawl = IndexedCrawl(folder)
    crawl.crawldb(dict.fromkeys(urls, 2))
    pages = [Page(url, "title", f"words of {url}", links=[(urls[0], "anchor")]) for url in urls]
    crawl.segment("20240101000000", pages)
    crawl.invert()
    crawl.index()


def _search(folder: Path) -> object:
    searcher = Searcher(folder / "index")
    found = [
        searcher.search(query, SearchOptions(count_hosts=True)).count
        for query in ("words", '"words of"', "title:title", "date:2023", "*")
    ]
    return found, searcher.newest_hits(3), searcher.host_count(), [*searcher.texts_like("wrods")]


def _index(folder: Path) -> object:
    return IndexedCrawl(folder).index()


_CRAWL_JOBS: Final = (
    ("readdb", "{}/crawldb", "-stats"),
    ("readdb", "{}/crawldb", "-dump", "{}/out", "-format", "csv"),
    ("readdb", "{}/crawldb", "-url", "http://a.org/3"),
    ("readlinkdb", "{}/linkdb", "-dump", "{}/links"),
    ("readseg", "-list", "-dir", "{}/segments"),
    ("readseg", "-dump", "{}/segments/20240101000000", "{}/segment"),
    ("updatedb", "{}/crawldb", "-dir", "{}/segments"),
    ("invertlinks", "{}/linkdb", "-dir", "{}/segments"),
    ("dedup", "{}/crawldb"),
    ("generate", "{}/crawldb", "{}/lists", "-adddays", "400"),
    ("mergesegs", "{}/merged", "-dir", "{}/segments"),
)


def _jobs(folder: Path) -> object:
    """Every command on its own: the error of one is no reason not to try the next."""
    outcomes: list[object] = []
    for name, *words in _CRAWL_JOBS:
        run = flow.commands()[name].run
        conf = Configuration.load([], overrides={"http.agent.name": "x"}).freeze()
        context = JobContext(conf, FakeClock(), io.StringIO(), io.StringIO())
        try:
            outcomes.append(run([word.format(folder) for word in words], context))
        except MinutchError as error:
            outcomes.append(error)
    return outcomes


def _fsck(folder: Path) -> object:
    context = IndexedCrawl(folder).context()
    return fsck.run([str(folder)], context)


FOLDERS: Final[Mapping[str, Folder]] = {
    "index, searched": Folder(_search, _make_crawl),
    "index, written": Folder(_index, _make_crawl),
    "crawl, jobs": Folder(_jobs, _make_crawl),
    "crawl, fsck": Folder(_fsck, _make_crawl),
}
