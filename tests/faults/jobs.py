"""The jobs that are disturbed: what each is given, its command line, and what can be seen of its
work.

Everything is real and made by minutch itself: pages are files, so that no server is needed. Their
URLs and dates are the same on every machine; so are the calls of a job and the bytes of its files,
and a seed draws the same points.

    <base>/pages, <base>/seeds     read only
    <base>/work                    the watched folder: crawldb, linkdb, webgraphdb, segments, dumps
    <base>/states/<name>           `work` at some step of the crawl
"""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

import tantivy
from warcio.archiveiterator import ArchiveIterator

from minutch.cycle.segment.places import BEGAN, REPLACES
from minutch.cycle.segment.store import FETCHED, LAYOUTS, PARSED, WARC, Segment, segments_in
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.work.tables.database import Database
from minutch.work.tables.lock import LOCK_NAME
from tests.faults.disk import copy
from tests.faults.watch import NOW, Ran, asked_apart, run_unseen


@dataclass(frozen=True)
class Size:
    """Number of pages, and of the parts that databases are cut into."""

    pages: int
    parts: int


SMALL: Final = Size(12, 2)
LARGE: Final = Size(120, 24)
SETTINGS: Final = {
    "plugin.folders": str(Path(__file__).parent / "plugins"),
    "plugin.includes": "protocol-pages|urlnormalizer-pass|parse-html|scoring-opic",
    "http.agent.name": "minutch-test",
    "linkdb.ignore.internal.links": "false",
    "link.ignore.internal.host": "false",
    "link.ignore.internal.domain": "false",
    "link.ignore.limit.domain": "false",
    "fetcher.threads.start.delay": "0",
    "fetcher.server.delay": "0",
    "file.crawl.parent": "false",
    "pages.folder": "{base}/pages",
    "parser.html.workers": "1",
}
_SITE: Final = "http://site.example"
_ROUNDS: Final = 5
"""Segments, with the same pages, that are merged in tiers."""
_AGE: Final = 86_400
"""How old pages are, in seconds."""
GRAPH: Final = "webgraphdb"
SUMS: Final = {".nutch.csv.crc", ".dump.crc"}
"""The files that they are of may be without them for an instant, never with those of another."""
Records = list[tuple[bytes, bytes]]
View = dict[str, Records | bytes]
"""Path -> its contents: records, or the bytes of a text."""


@dataclass(frozen=True)
class Job:
    """One command. `state`: what it starts from; `between` make what may be seen midway (before,
    after, to fill).
    """

    name: str
    state: str
    words: tuple[str, ...]
    settings: dict[str, str] = field(default_factory=dict)
    between: tuple[Callable[[Path, Path, Path], object], ...] = ()
    ends_in: Callable[[View], object] = lambda view: view
    """What of the result is compared."""
    forks: bool = False
    """Whether it forks workers, which it can't where Polars is loaded."""


def _marked(before: Path, after: Path, target: Path) -> None:
    """Segments are there, the CrawlDb is not yet marked."""
    from minutch.cycle.crawldb.store import (
        CrawlDb,
    )  # with it comes Polars, after which nothing forks its workers
    from minutch.cycle.fetchlist import lists

    copy(after, target)
    copy(before / "crawldb", target / "crawldb")
    lists.plan(CrawlDb(target / "crawldb"), target / "segments", NOW)


def _without(*late: str) -> Callable[[Path, Path, Path], object]:
    """Returns a maker of the folder `after` without the files of the last steps."""

    def make(before: Path, after: Path, target: Path) -> None:
        copy(after, target)
        for name in late:
            path = target / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return make


def _graph_with(*new: str) -> Callable[[Path, Path, Path], object]:
    """Some of a webgraph's databases are new, the others not yet."""

    def make(before: Path, after: Path, target: Path) -> None:
        copy(before, target)
        for name in new:
            shutil.rmtree(target / GRAPH / name, ignore_errors=True)
            copy(after / GRAPH / name, target / GRAPH / name)

    return make


def _statuses(view: View) -> dict[bytes, int]:
    """URL -> status in the CrawlDb."""
    return {
        key: value[1]
        for path, records in view.items()
        if path.startswith("crawldb/") and isinstance(records, list)
        for key, value in records
    }


_WEBGRAPH = (
    "webgraph",
    "-webgraphdb",
    "{work}/webgraphdb",
    "-segment",
    "{work}/segments/{segment}",
)
_HALF_INSTALLED = (_graph_with("nodes"), _graph_with("nodes", "inlinks"))

SITEMAPS: Final = {"sitemap.url.overwrite.existing": "true", "sitemap.url.filter": "false"}
_SPILL = {"minutch.memory": "64", "mapreduce.job.reduces": "{more}"}
"""Everything goes through the disk, into another number of parts."""
_SEGMENTS = ("-segment", "{work}/segments")
_FILES = ("cdxj",)
_INDEX = ("-linkdb", "{work}/linkdb", "-dir", "{work}/segments")
_LOCAL = {
    "plugin.includes": f"{SETTINGS['plugin.includes']}|index-(basic|anchor)|indexer-local",
    "indexer.indexwriters.file": "{base}/local-writers.xml",
}

JOBS: Final = {
    job.name: job
    for job in (
        Job("inject-first", "empty", ("inject", "{work}/crawldb", "{base}/seeds")),
        Job("inject", "updated", ("inject", "{work}/crawldb", "{base}/more", "-update")),
        Job("generate", "updated", ("generate", "{work}/crawldb", "{work}/segments")),
        Job(
            "generate-mark",
            "updated",
            ("generate", "{work}/crawldb", "{work}/segments"),
            {"generate.update.crawldb": "true"},
            (_marked,),
        ),
        Job(
            "fetch",
            "generated",
            ("fetch", "{work}/segments/{segment}", "-threads", "2"),
            forks=True,
        ),
        Job(
            "fetch-parse",
            "generated",
            ("fetch", "{work}/segments/{segment}"),
            {"fetcher.parse": "true"},
            forks=True,
        ),
        Job(
            "fetch-warc",
            "generated",
            ("fetch", "{work}/segments/{segment}"),
            {"fetcher.warc": "true"},
            forks=True,
        ),
        Job(
            "fetch-two",
            "generated",
            ("fetch", "{work}/segments/{segment}"),
            {"minutch.fetch.processes": "2"},
            forks=True,
        ),
        Job("parse", "fetched", ("parse", "{work}/segments/{segment}"), forks=True),
        Job("updatedb", "parsed", ("updatedb", "{work}/crawldb", "-dir", "{work}/segments")),
        Job(
            "updatedb-spill",
            "parsed",
            ("updatedb", "{work}/crawldb", "-dir", "{work}/segments"),
            _SPILL,
        ),
        Job(
            "sitemap",
            "updated",
            ("sitemap", "{work}/crawldb", "-sitemapUrls", "{base}/sitemaps"),
            SITEMAPS,
        ),
        Job("dedup", "updated", ("dedup", "{work}/crawldb")),
        Job("dedup-canonical", "updated", ("dedup", "{work}/crawldb"), {"db.canonical": "domain"}),
        Job("invertlinks", "updated", ("invertlinks", "{work}/linkdb", "-dir", "{work}/segments")),
        Job(
            "invertlinks-spill",
            "linked",
            ("invertlinks", "{work}/linkdb", "-dir", "{work}/segments"),
            _SPILL,
        ),
        Job("mergedb", "linked", ("mergedb", "{work}/merged", "{work}/crawldb", "{work}/crawldb2")),
        Job(
            "mergelinkdb",
            "linked",
            ("mergelinkdb", "{work}/merged", "{work}/linkdb", "{work}/linkdb"),
        ),
        Job(
            "mergesegs",
            "linked",
            ("mergesegs", "{work}/merged", "-dir", "{work}/segments", "-slice", "{half}"),
        ),
        Job(
            "mergesegs-spill",
            "linked",
            ("mergesegs", "{work}/merged", "-dir", "{work}/segments"),
            _SPILL,
        ),
        Job(
            "compact",
            "rounds",
            ("mergesegs", "--tiers", "{work}/segments"),
            {"crawl.compact.grace": "0"},
        ),
        Job(
            "readdb",
            "linked",
            ("readdb", "{work}/crawldb", "-dump", "{work}/dump", "-format", "csv"),
        ),
        Job("domainstats", "linked", ("domainstats", "{work}/crawldb", "{work}/dump", "host", "2")),
        Job("readlinkdb", "linked", ("readlinkdb", "{work}/linkdb", "-dump", "{work}/dump")),
        Job("webgraph-first", "linked", _WEBGRAPH, between=_HALF_INSTALLED),
        Job("webgraph", "graphed", _WEBGRAPH, _SPILL, between=_HALF_INSTALLED),
        Job("linkrank", "graphed", ("linkrank", "-webgraphdb", "{work}/webgraphdb"), _SPILL),
        Job(
            "scoreupdater",
            "graphed",
            ("scoreupdater", "-crawldb", "{work}/crawldb", "-webgraphdb", "{work}/webgraphdb"),
        ),
        Job(
            "nodedumper",
            "graphed",
            ("nodedumper", "-webgraphdb", "{work}/webgraphdb", "-output", "{work}/dump"),
        ),
        Job(
            "linkdumper",
            "graphed",
            ("scoring.webgraph.LinkDumper", "-webgraphdb", "{work}/webgraphdb"),
        ),
        Job(
            "updatehostdb",
            "linked",
            ("updatehostdb", "-hostdb", "{work}/hostdb", "-crawldb", "{work}/crawldb"),
        ),
        Job(
            "updatehostdb-spill",
            "hosted",
            ("updatehostdb", "-hostdb", "{work}/hostdb", "-crawldb", "{work}/crawldb"),
            _SPILL,
        ),
        Job("readhostdb", "hosted", ("readhostdb", "{work}/hostdb", "{work}/dump")),
        Job("dump", "linked", ("dump", "-outputDir", "{work}/dump", *_SEGMENTS, "-flatdir")),
        Job(
            "commoncrawldump",
            "linked",
            ("commoncrawldump", "-outputDir", "{work}/dump", *_SEGMENTS),
        ),
        Job(
            "commoncrawldump-warc",
            "linked",
            ("commoncrawldump", "-outputDir", "{work}/dump", *_SEGMENTS, "-warc"),
        ),
        Job(
            "warc",
            "linked",
            ("warc", "{work}/dump", "-dir", "{work}/segments", "-includeParseText"),
        ),
        Job("export-arc", "linked", ("export", "arc", "{work}/segments", "{work}/dump")),
        Job("import", "empty", ("import", "arc", "{base}/arcs", "{work}/segments")),
        Job("export-warc", "linked", ("export", "warc", "-cdxj", "{work}/segments", "{work}/dump")),
        Job(
            "export-wacz", "linked", ("export", "wacz", "{work}/segments", "{work}/dump/crawl.wacz")
        ),
        *(
            Job(f"export-{name}", "linked", ("export", name, *_SEGMENTS[1:], "{work}/dump/file"))
            for name in _FILES
        ),
        Job("export-wet", "linked", ("export", "wet", *_SEGMENTS[1:], "{work}/dump")),
        Job(
            "export-legacy",
            "linked",
            ("export", "legacy", "{work}/segments/{segment}", "{work}/dump"),
        ),
        Job(
            "export-commoncrawl",
            "linked",
            ("export", "commoncrawl", "{work}/segments/{segment}", "{work}/dump"),
        ),
        Job("export-parquet", "linked", ("export", "parquet", "{work}", "{work}/dump")),
        Job("export-edges", "linked", ("export", "edges", "{work}", "{work}/dump/edges.csv")),
        Job(
            "export-graphml", "linked", ("export", "graphml", "{work}", "{work}/dump/links.graphml")
        ),
        Job(
            "sql",
            "linked",
            ("sql", "{work}", "select * from crawldb", "-parquet", "{work}/dump/rows.parquet"),
        ),
        Job("report", "linked", ("report", "{work}", "-o", "{work}/dump/report.html")),
        Job("protocolstats", "linked", ("protocolstats", "{work}/crawldb", "{work}/dump")),
        Job(
            "crawlcomplete",
            "linked",
            (
                "crawlcomplete",
                "-inputDirs",
                "{work}/crawldb",
                "-outputDir",
                "{work}/dump",
                "-mode",
                "host",
            ),
        ),
        Job("arc2segment", "empty", ("arc2segment", "{base}/arcs", "{work}/segments")),
        Job(
            "import-legacy",
            "empty",
            ("import", "legacy", "{base}/legacy/{segment}", "{work}/segments"),
            between=(_without("crawldb"),),
        ),
        Job(
            "init",
            "empty",
            ("init", "{work}/dump"),
            between=(
                _without("dump/conf/regex-urlfilter.txt", "dump/seeds"),
                _without("dump/seeds"),
            ),
        ),
        Job("fsck", "broken", ("fsck", "{work}", "-repair")),
        Job("freegen", "empty", ("freegen", "{base}/seeds", "{work}/segments")),
        Job(
            "readseg",
            "parsed",
            ("readseg", "-dump", "{work}/segments/{segment}", "{work}/dump"),
            forks=True,
        ),
        Job(
            "index",
            "linked",
            (
                *(
                    "index",
                    "-D",
                    "indexer.indexwriters.file={base}/index-writers.xml",
                    "{work}/crawldb",
                ),
                *_INDEX,
            ),
            {"plugin.includes": f"{SETTINGS['plugin.includes']}|index-(basic|anchor)|indexer-csv"},
        ),
        Job("index-local", "linked", ("index", "{work}/crawldb", *_INDEX), _LOCAL),
        Job(
            "index-local-again",
            "indexed",
            ("index", "{work}/crawldb", *_INDEX, "-deleteGone"),
            _LOCAL,
        ),
        Job("clean", "indexed", ("clean", "{work}/crawldb"), _LOCAL),
        Job("crawl", "empty", ("crawl", "-s", "{base}/seeds", "{work}", "3"), ends_in=_statuses),
    )
}


class Stage:
    """The folders of a run in `base`, with every state of a crawl of some size."""

    def __init__(self, base: Path, size: Size = SMALL) -> None:
        self.base = base.resolve()
        self.size = size
        self.work = self.base / "work"
        self.segment = ""
        _write_web(self.base, size.pages)
        self._crawl()

    def state(self, name: str) -> Path:
        """A folder of states."""
        return self.base / "states" / name

    def words(self, job: Job) -> list[str]:
        """A job's command line, properties included."""
        name, *rest = (word.format(**self._names()) for word in job.words)
        parts = {"mapreduce.job.reduces": str(self.size.parts)}
        given = {**SETTINGS, **parts, **job.settings}
        settings = {
            key: value.format(base=self.base, more=self.size.parts + 1)
            for key, value in given.items()
        }
        return [
            name,
            *(word for key, value in settings.items() for word in ("-D", f"{key}={value}")),
            *rest,
        ]

    def _names(self) -> dict[str, object]:
        return {
            "base": self.base,
            "work": self.work,
            "segment": self.segment,
            "half": self.size.pages // 2,
        }

    def run(self, job: Job) -> Ran:
        """A job on `work` as it is."""
        return run_unseen(self.words(job))

    def _crawl(self) -> None:
        self.work.mkdir()
        steps: Sequence[tuple[str, tuple[str, ...]]] = (
            ("empty", ()),
            ("injected", ("inject", "{work}/crawldb", "{base}/seeds")),
            ("generated", ("generate", "{work}/crawldb", "{work}/segments")),
            ("fetched", ("fetch", "{work}/segments/{segment}", "-threads", "2")),
            ("parsed", ("parse", "{work}/segments/{segment}")),
            ("updated", ("updatedb", "{work}/crawldb", "-dir", "{work}/segments")),
            ("linked", ("invertlinks", "{work}/linkdb", "-dir", "{work}/segments")),
            ("graphed", _WEBGRAPH),
            ("hosted", ("updatehostdb", "-hostdb", "{work}/hostdb", "-crawldb", "{work}/crawldb")),
        )
        for name, words in steps:
            if words:
                ran = self.run(Job(name, "", words))
                assert ran.code == 0, ran.text
            if name == "generated":
                self.segment = segments_in(self.work / "segments")[0].name
            if name == "linked":
                copy(self.work / "crawldb", self.work / "crawldb2")
            copy(self.work, self.state(name))
        more: Sequence[tuple[str, tuple[str, ...], dict[str, str]]] = (
            ("legacy", ("export", "legacy", "{work}/segments/{segment}", "{base}/legacy"), {}),
            ("indexed", ("index", "{work}/crawldb", *_INDEX), _LOCAL),
        )
        for name, words, settings in more:
            restore(self.state("linked"), self.work)
            ran = self.run(Job(name, "", words, settings))
            assert ran.code == 0, ran.text
        copy(self.work, self.state("indexed"))
        _break(copy(self.state("linked"), self.state("broken")))
        rounds = copy(self.state("linked"), self.state("rounds")) / "segments"
        for number in range(1, _ROUNDS):
            copy(rounds / self.segment, rounds / str(int(self.segment) + number))


def _break(crawl: Path) -> None:
    """Leaves what killed jobs and a careless hand leave: lost indexes, half a parse, locks and
    folders of dead processes.
    """
    process, host = 4194305, socket.gethostname()  # no process has this number
    for database in (crawl / "crawldb", crawl / "linkdb"):
        for part in sorted((database / "current").iterdir())[::2]:
            (part / "index").unlink()
            (part / ".index.crc").unlink()
        (database / LOCK_NAME).write_text(f"{process} {host} 1\n")
        copy(database / "current", database / f".new-{process}-1-{host}.0")
    segment = segments_in(crawl / "segments")[0].path
    shutil.rmtree(segment / "crawl_parse")
    for sums in (segment / "crawl_generate").glob(".*.crc"):
        sums.unlink()


def _write_web(base: Path, count: int) -> None:
    """Pages that link to each other, some with equal content, and seed lists; three rounds reach
    all of them.
    """
    pages = base / "pages"
    for folder in (
        pages,
        base / "seeds",
        base / "more",
        base / "sitemaps",
        base / "arcs",
        base / "states",
    ):
        folder.mkdir(parents=True)
    for number in range(count):
        links = "".join(
            f'<a href="{(number * 3 + step) % (count + 2)}.html">to {step}</a>'
            for step in (1, 2, 5)
        )
        text = "the same" if number % 4 == 3 else f"page {number}"
        (pages / f"{number}.html").write_text(
            f"<html><title>{text}</title><body>{text} {links}</body></html>"
        )
    answers = [
        f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\npage {number}"
        for number in range(count)
    ]
    records = [
        f"http://h/{n % 9} 0.0.0.0 20260101000000 - {len(text)}\n{text}\n"
        for n, text in enumerate(answers)
    ]
    (base / "arcs/x.arc").write_text("".join(records), newline="")
    (base / "index-writers.xml").write_text(
        '<writers><writer id="csv"'
        ' class="org.apache.nutch.indexwriter.csv.CSVIndexWriter"><parameters><param'
        f' name="outpath" value="{base}/work/dump"/></parameters></writer></writers>'
    )
    (base / "local-writers.xml").write_text(
        '<writers><writer id="local" class="minutch.LocalIndexWriter"><parameters>'
        '<param name="threads" value="1"/></parameters></writer></writers>'
    )
    urls = [f"{_SITE}/{number}.html" for number in range(count // 3)]
    (base / "seeds/seeds.txt").write_text("\n".join(urls))
    listed = "".join(
        f"<url><loc>{url}</loc><priority>0.9</priority></url>"
        for url in [*urls, f"{_SITE}/new.html"]
    )
    (pages / "map.xml").write_text(f"<urlset>{listed}</urlset>")
    (base / "sitemaps/list.txt").write_text(f"{_SITE}/map.xml")
    (base / "more/seeds.txt").write_text(
        "\n".join([f"{urls[0]}\tcolour=red", f"{_SITE}/9.html", f"{_SITE}/nowhere"])
    )
    for page in pages.iterdir():
        os.utime(page, (NOW // 1000 - _AGE, NOW // 1000 - _AGE))


def view(work: Path) -> View:
    """Reads all that `work` holds. Raises MinutchError for anything that is not whole."""
    found: View = {}
    for path in sorted(work.iterdir()):
        if not path.name.startswith(".") and path.is_dir():
            database = Database(path)
            if path.name == "index" and database.exists():
                found["index"] = _documents(path)
            elif path.name in {"segments", "merged"} and not database.exists():
                for segment in segments_in(path):
                    found |= _segment(segment, path.name)
            elif database.exists():
                for part in database.parts():
                    found[str((path / "current" / part.name).relative_to(work))] = _records(
                        part / "data" if part.is_dir() else part
                    )
            elif path.name == "dump":
                found |= _written(path, work)
            elif path.name == GRAPH:
                found |= _graph(path, work)
    return found


def _written(folder: Path, work: Path) -> View:
    """The files that a job has written for others: bytes, or records, whose containers hold bytes
    made by chance.
    """
    found: View = {}
    for file in folder.rglob("*"):
        is_sums = file.name in SUMS or _is_container(
            file.with_name(file.name[1:].removesuffix(".crc"))
        )
        if file.is_file() and not file.parent.name.startswith(".") and not is_sums:
            found[str(file.relative_to(work))] = (
                _records(file) if _is_container(file) else file.read_bytes()
            )
    return found


def _is_container(file: Path) -> bool:
    """Returns whether it is one of Hadoop's SequenceFiles."""
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        return stream.read(3) == b"SEQ"


def _documents(path: Path) -> Records:
    """The documents of a local index by their URLs."""
    return asked_apart(lambda: _read_documents(path))


def _read_documents(path: Path) -> Records:
    from minutch.inspect.search.fields import KEY  # with it comes Polars
    from minutch.inspect.search.localindex import LocalIndex, opened

    searcher = opened(LocalIndex(path).current).searcher()
    hits = searcher.search(tantivy.Query.all_query(), limit=searcher.num_docs or 1).hits
    documents = [searcher.doc(address).to_dict() for _, address in hits]
    return sorted((str(one[KEY]).encode(), repr(sorted(one.items())).encode()) for one in documents)


def _graph(path: Path, work: Path) -> View:
    """A webgraph's databases."""
    found: View = {}
    for folder, name in (
        (path / "outlinks", "current"),
        (path, "inlinks"),
        (path, "nodes"),
        (path, "linkdump"),
    ):
        database = Database(folder)
        database.name = name
        for part in database.parts():
            found[str((folder / name / part.name).relative_to(work))] = _records(part / "data")
    return found


def _segment(segment: Segment, folder: str) -> View:
    """A segment's folders, those of a fetch or a parse only if its last one is there, no parse
    without a fetch.

    Its place is below `folder`, even if it is yet to be moved there.
    """
    present = [name for name in LAYOUTS if segment.has(name)]
    if FETCHED[-1] not in present:
        present = [name for name in present if name not in FETCHED + PARSED]
    elif PARSED[-1] not in present:
        present = [name for name in present if name not in PARSED]
    place = f"{folder}/{segment.name}"
    files = [file for name in present for file in segment.data_files(name)]
    found: View = {f"{place}/{file.relative_to(segment.path)}": _records(file) for file in files}
    if FETCHED[-1] in present and (segment.path / WARC).is_dir():
        found[f"{place}/{WARC}"] = _archived(segment.path / WARC)
    return found


def _archived(folder: Path) -> Records:
    """Reads the records that WARC files hold of each URL, whatever their order."""
    found = []
    for path in folder.iterdir():
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                name = f"{record.rec_type} {record.rec_headers.get_header('WARC-Target-URI')}"
                block = f"{record.http_headers or ''}".encode() + record.raw_stream.read()
                if record.rec_type != "warcinfo":
                    found.append((name.encode(), block))
    return sorted(found)


_known: dict[bytes, Records] = {}


def _records(path: Path) -> Records:
    """The records of a file; those of a file that has been read before, with the same checksums,
    from memory.
    """
    sums = path.with_name(f".{path.name}.crc")
    data = path.read_bytes()
    digest = (
        sha256(sums.read_bytes() if sums.exists() else b"none").digest() + sha256(data).digest()
    )
    if digest not in _known:
        with SequenceFileReader(path) as reader:
            _known[digest] = list(reader)
    return _known[digest]


def fingerprint(work: Path) -> bytes:
    """A digest of all that lies in `work`, whatever process has made it."""
    paths = ((_PROCESS.sub("*", str(path.relative_to(work))), path) for path in work.rglob("*"))
    digest = sha256()
    for name, path in sorted(paths):
        data = b"" if path.is_dir() else path.read_bytes()
        if path.name.startswith(LOCK_NAME):
            data = _OWNER.sub(b"* * *", data)
        digest.update(f"{name}\n{'/' if path.is_dir() else len(data)}\n".encode() + data)
    return digest.digest()


_PROCESS = re.compile(r"(?<=-)\d+-\d+-(?=[^/]+\.\d+(?:/|$))|(?<=\.locked\.)\d+-\d+")
"""The process in the names of work folders, and of locks that somebody asks for."""
_OWNER = re.compile(rb"\d+ \S+ \d+")

_CHECKSUM = re.compile(r"\.(.+)\.crc")


def left_over(work: Path) -> list[str]:
    """Hidden files and folders that no job may leave, checksums of files that are not there,
    unfinished segments.
    """
    found = []
    for path in work.rglob("*"):
        match = _CHECKSUM.fullmatch(path.name)
        if match and (path.parent / match[1]).exists():
            continue
        is_hidden = path.name.startswith((".", "_")) and not set(path.parts) & KEPT_BESIDE
        if is_hidden or (
            path.parent.name == "segments" and not any((path / name).is_dir() for name in _BEGUN)
        ):
            found.append(str(path.relative_to(work)))
    return found


_BEGUN: Final = ("crawl_generate", "crawl_fetch")
"""What a segment has at least: a fetch list, or, imported, what was fetched."""
KEPT_BESIDE: Final = {
    *(".fetchstate", ".managed.json", ".tantivy-writer.lock", ".tantivy-meta.lock"),
    *(REPLACES, BEGAN),
}
"""What the fetcher keeps from round to round, tantivy in an index, and merged segments."""


def restore(state: Path, work: Path) -> None:
    """Put `work` into a state, though processes of the job before may still be ending and write
    into it.
    """
    while work.exists():
        shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(state, work)
