"""The jobs that are disturbed: what each is given, its command line, and what can be seen of its work.

Everything is real and made by minutch itself: pages are files (protocol-file), so that no server is needed.

    <base>/pages, <base>/seeds     read only
    <base>/work                    the watched folder: crawldb, linkdb, segments, dumps
    <base>/states/<name>           `work` at some step of the crawl
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from minutch.formats.sequencefile import SequenceFileReader
from minutch.segment.store import FETCHED, LAYOUTS, PARSED, Segment, segments_in
from minutch.tables.database import Database
from tests.faults.disk import copy
from tests.faults.watch import NOW, Ran, run

PAGES: Final = 12
SETTINGS: Final = {
    "plugin.includes": "protocol-file|urlnormalizer-pass|parse-html|scoring-opic",
    "http.agent.name": "minutch-test",
    "linkdb.ignore.internal.links": "false",
    "mapreduce.job.reduces": "2",
    "fetcher.threads.start.delay": "0",
    "fetcher.server.delay": "0",
    "file.crawl.parent": "false",
    "parser.html.workers": "1",
}
CSV_SUMS: Final = ".nutch.csv.crc"
"""The file that they are of may be without them for an instant, never with those of another."""
Records = list[tuple[bytes, bytes]]
View = dict[str, Records | bytes]
"""Path -> what lies there: records, or the bytes of a text."""


@dataclass(frozen=True)
class Job:
    """One command. `state`: what it starts from; `between` makes what may be seen midway (before, after, to fill)."""

    name: str
    state: str
    words: tuple[str, ...]
    settings: dict[str, str] = field(default_factory=dict)
    between: Callable[[Path, Path, Path], object] | None = None
    now: int = NOW
    ends_in: Callable[[View], object] = lambda view: view
    """What of the result is compared."""


def _marked(before: Path, after: Path, target: Path) -> None:
    """Segments are there, the CrawlDb is not yet marked."""
    copy(after, target)
    copy(before / "crawldb", target / "crawldb")


def _statuses(view: View) -> dict[bytes, int]:
    """URL -> status in the CrawlDb."""
    return {
        key: value[1]
        for path, records in view.items()
        if path.startswith("crawldb/") and isinstance(records, list)
        for key, value in records
    }


_DAY = 86_400_000
_SPILL = {"minutch.engine.memory": "64", "mapreduce.job.reduces": "3"}
"""Everything goes through the disk, into another number of parts."""

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
            _marked,
        ),
        Job("fetch", "generated", ("fetch", "{work}/segments/{segment}", "-threads", "2")),
        Job("parse", "fetched", ("parse", "{work}/segments/{segment}")),
        Job("updatedb", "parsed", ("updatedb", "{work}/crawldb", "-dir", "{work}/segments")),
        Job("updatedb-spill", "parsed", ("updatedb", "{work}/crawldb", "-dir", "{work}/segments"), _SPILL),
        Job("dedup", "updated", ("dedup", "{work}/crawldb")),
        Job("invertlinks", "updated", ("invertlinks", "{work}/linkdb", "-dir", "{work}/segments")),
        Job("invertlinks-spill", "linked", ("invertlinks", "{work}/linkdb", "-dir", "{work}/segments"), _SPILL),
        Job("mergedb", "linked", ("mergedb", "{work}/merged", "{work}/crawldb", "{work}/crawldb2")),
        Job("mergelinkdb", "linked", ("mergelinkdb", "{work}/merged", "{work}/linkdb", "{work}/linkdb")),
        Job("readdb", "linked", ("readdb", "{work}/crawldb", "-dump", "{work}/dump", "-format", "csv")),
        Job("readlinkdb", "linked", ("readlinkdb", "{work}/linkdb", "-dump", "{work}/dump")),
        Job(
            "index",
            "linked",
            (
                *("index", "-D", "indexer.indexwriters.file={base}/index-writers.xml", "{work}/crawldb"),
                *("-linkdb", "{work}/linkdb", "-dir", "{work}/segments"),
            ),
            {"plugin.includes": f"{SETTINGS['plugin.includes']}|index-(basic|anchor)|indexer-csv"},
        ),
        Job("crawl", "empty", ("crawl", "-s", "{base}/seeds", "{work}", "6"), ends_in=_statuses),
    )
}


class Stage:
    """The folders of a run in `base`, with every state of a small crawl."""

    def __init__(self, base: Path) -> None:
        self.base = base.resolve()
        self.work = self.base / "work"
        self.segment = ""
        _write_web(self.base)
        self._crawl()

    def state(self, name: str) -> Path:
        """A folder of states."""
        return self.base / "states" / name

    def words(self, job: Job) -> list[str]:
        """A job's command line, properties included."""
        name, *rest = (word.format(base=self.base, work=self.work, segment=self.segment) for word in job.words)
        properties = [word for key, value in {**SETTINGS, **job.settings}.items() for word in ("-D", f"{key}={value}")]
        return [name, *properties, *rest]

    def run(self, job: Job) -> Ran:
        """A job on `work` as it is."""
        return run(self.words(job), self.work, now=job.now)

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


def _write_web(base: Path) -> None:
    """Pages that link to each other, some with equal content, and seed lists."""
    pages = base / "pages"
    for folder in (pages, base / "seeds", base / "more", base / "states"):
        folder.mkdir(parents=True)
    for number in range(PAGES):
        links = "".join(f'<a href="{(number * 3 + step) % (PAGES + 2)}.html">to {step}</a>' for step in (1, 2, 5))
        text = "the same" if number % 4 == 3 else f"page {number}"
        (pages / f"{number}.html").write_text(f"<html><title>{text}</title><body>{text} {links}</body></html>")
    (base / "index-writers.xml").write_text(
        '<writers><writer id="csv" class="org.apache.nutch.indexwriter.csv.CSVIndexWriter"><parameters>'
        f'<param name="outpath" value="{base}/work/dump"/></parameters></writer></writers>'
    )
    urls = [f"file:{pages}/{number}.html" for number in range(4)]
    (base / "seeds/seeds.txt").write_text("\n".join(urls))
    (base / "more/seeds.txt").write_text("\n".join([f"{urls[0]}\tcolour=red", f"file:{pages}/9.html", "file:/nowhere"]))


def view(work: Path) -> View:
    """What a reader finds in `work`. Raises MinutchError for anything that is not whole."""
    found: View = {}
    for path in sorted(work.iterdir()):
        if path.name == "segments":
            for segment in segments_in(path):
                found |= _segment(segment, work)
        elif not path.name.startswith(".") and path.is_dir():
            database = Database(path)
            if database.exists():
                for part in database.parts():
                    found[str((path / "current" / part.name).relative_to(work))] = _records(part / "data")
            elif path.name == "dump":
                files = [file for file in path.iterdir() if file.is_file() and file.name != CSV_SUMS]
                found |= {str(file.relative_to(work)): file.read_bytes() for file in files}
    return found


def _segment(segment: Segment, work: Path) -> View:
    """A segment's folders, those of a fetch or a parse only if its last one is there."""
    present = [name for name in LAYOUTS if segment.has(name)]
    for group in (FETCHED, PARSED):
        if group[-1] not in present:
            present = [name for name in present if name not in group]
    files = [file for name in present for file in segment.data_files(name)]
    return {str(file.relative_to(work)): _records(file) for file in files}


def _records(path: Path) -> Records:
    with SequenceFileReader(path) as reader:
        return list(reader)


_CHECKSUM = re.compile(r"\.(.+)\.crc")


def left_over(work: Path) -> list[str]:
    """Hidden files and folders that no job may leave, checksums of files that are not there, unfinished segments."""
    found = []
    for path in work.rglob("*"):
        match = _CHECKSUM.fullmatch(path.name)
        if match and (path.parent / match[1]).exists():
            continue
        is_hidden = path.name.startswith((".", "_")) and not set(path.parts) & KEPT_BESIDE
        if is_hidden or (path.parent.name == "segments" and not (path / "crawl_generate").is_dir()):
            found.append(str(path.relative_to(work)))
    return found


KEPT_BESIDE: Final = {".fetchstate"}
"""What the fetcher keeps from round to round."""


def restore(state: Path, work: Path) -> None:
    """Put `work` into a state."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(state, work)
