"""The jobs that are measured: their commands, what they read and write, and how many records that
is.

invertlinks, webgraph and linkrank have 50 links a page, whatever the number of URLs: 100,000 pages
are 5 million links.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks import data


@dataclass(frozen=True)
class Workspace:
    """The made-up databases of one size, and a folder for what a job writes."""

    inputs: Path
    run: Path
    urls: int
    pages: int

    @property
    def crawldb(self) -> Path:
        return self.inputs / "crawldb"

    @property
    def segment(self) -> Path:
        return self.inputs / data.SEGMENT

    @property
    def validated(self) -> Path:
        return self.inputs / data.VALIDATED

    def fresh(self) -> None:
        """An empty folder for the next run."""
        shutil.rmtree(self.run, ignore_errors=True)
        self.run.mkdir(parents=True)

    @property
    def webgraph(self) -> Path:
        return self.inputs / "webgraphdb"

    def linked_crawldb(self) -> Path:
        """A CrawlDb to be changed: the input's files under other names (jobs replace files, they
        don't change them).
        """
        return self._linked(self.crawldb)

    def linked_webgraph(self) -> Path:
        """A webgraph to be changed, likewise."""
        return self._linked(self.webgraph)

    def _linked(self, database: Path) -> Path:
        target = self.run / database.name
        shutil.copytree(database, target, copy_function=os.link)
        return target

    @property
    def linkdb(self) -> Path:
        return self.inputs / "linkdb"

    def two_segments(self) -> list[Path]:
        """The segment, and one with the same records and an older name."""
        older = self.run / "20200101000000"
        shutil.copytree(self.segment, older, copy_function=os.link)
        return [older, self.segment]


@dataclass(frozen=True)
class Job:
    """One measured command. `arguments` prepares a run and gives what follows the command's
    name.
    """

    name: str
    command: str
    arguments: Callable[[Workspace], Sequence[str | Path]]
    records: Callable[[Workspace], int]
    reads: Callable[[Workspace], Sequence[Path]]
    writes: Callable[[Workspace], Sequence[Path]] = lambda work: ()
    filters: bool = False
    """It runs URL filters and normalizers, so that Nutch needs its plugins for it."""

    def inputs(self, work: Workspace) -> set[str]:
        """The names of the databases that it reads, as `data` makes them."""
        return {
            path.relative_to(work.inputs).parts[0]
            for path in self.reads(work)
            if path.is_relative_to(work.inputs)
        }


def _database(work: Workspace) -> list[Path]:
    return [work.crawldb / "current"]


def _changed(work: Workspace) -> list[Path]:
    return [work.run / "crawldb" / "current"]


def _lists(work: Workspace) -> list[Path]:
    return [work.run / "segments"]


def _generate(*options: str) -> Callable[[Workspace], Sequence[str | Path]]:
    return lambda work: [work.crawldb, work.run / "segments", "-topN", "100000", *options]


def _invert(*options: str) -> Callable[[Workspace], Sequence[str | Path]]:
    return lambda work: [work.run / "linkdb", work.segment, *options]


_ALL_LINKS = tuple(f"-D{name}={value}" for name, value in data.ALL_LINKS.items())


def _entries(work: Workspace) -> int:
    return work.urls


def _links(work: Workspace) -> int:
    return work.pages * data.LINKS_PER_PAGE


def _update_records(work: Workspace) -> int:
    return work.urls + work.pages * (data.PARSED_LINKS_PER_PAGE + 2)


def _merged_records(work: Workspace) -> int:
    return 2 * work.pages * (data.PARSED_LINKS_PER_PAGE + 3)


JOBS = (
    # The CrawlDb alone, then with the segment, then the segment: --tight removes what is done with.
    Job("readdb -stats", "readdb", lambda work: [work.crawldb, "-stats"], _entries, _database),
    Job(
        "readdb -topN 1000",
        "readdb",
        lambda work: [work.crawldb, "-topN", "1000", work.run / "top"],
        _entries,
        _database,
    ),
    Job(
        "domainstats host",
        "domainstats",
        lambda work: [work.crawldb, work.run / "stats", "host"],
        _entries,
        _database,
    ),
    Job(
        "generate, no filters",
        "generate",
        _generate("-noFilter", "-noNorm"),
        _entries,
        _database,
        _lists,
    ),
    Job("generate, filters", "generate", _generate(), _entries, _database, _lists, filters=True),
    Job(
        "generate, 100 a host",
        "generate",
        lambda work: ["-Dgenerate.max.count=100", work.crawldb, work.run / "segments"],
        _entries,
        _database,
        _lists,
        filters=True,
    ),
    Job(
        "updatedb",
        "updatedb",
        lambda work: [work.linked_crawldb(), work.segment],
        _update_records,
        lambda work: [*_database(work), work.segment / "crawl_fetch", work.segment / "crawl_parse"],
        _changed,
    ),
    Job(
        "updatedb, validators",
        "updatedb",
        lambda work: [work.linked_crawldb(), work.validated],
        lambda work: _update_records(work) + work.pages,
        lambda work: [*_database(work), *sorted(work.validated.iterdir())],
        _changed,
    ),
    Job(
        "updatehostdb",
        "updatehostdb",
        lambda work: ["-hostdb", work.run / "hostdb", "-crawldb", work.crawldb],
        _entries,
        _database,
        lambda work: [work.run / "hostdb" / "current"],
    ),
    Job("dedup", "dedup", lambda work: [work.linked_crawldb()], _entries, _database, _changed),
    Job(
        "mergedb, two",
        "mergedb",
        lambda work: [work.run / "crawldb", work.crawldb, work.crawldb],
        lambda work: 2 * work.urls,
        lambda work: 2 * _database(work),
        _changed,
    ),
    Job(
        "invertlinks, no filters",
        "invertlinks",
        _invert("-noNormalize", "-noFilter"),
        _links,
        lambda work: [work.segment / "parse_data"],
        lambda work: [work.run / "linkdb"],
    ),
    Job(
        "invertlinks, filters",
        "invertlinks",
        _invert(),
        _links,
        lambda work: [work.segment / "parse_data"],
        lambda work: [work.run / "linkdb"],
        filters=True,
    ),
    Job(
        "mergelinkdb, two",
        "mergelinkdb",
        lambda work: [work.run / "linkdb", work.linkdb, work.linkdb],
        lambda work: 2 * _links(work),
        lambda work: 2 * [work.linkdb / "current"],
        lambda work: [work.run / "linkdb"],
    ),
    Job(
        "webgraph",
        "webgraph",
        lambda work: [
            *_ALL_LINKS,
            "-webgraphdb",
            work.run / "webgraphdb",
            "-segment",
            work.segment,
        ],
        _links,
        lambda work: [work.segment / "parse_data"],
        lambda work: [work.run / "webgraphdb"],
    ),
    Job(
        "linkrank",
        "linkrank",
        lambda work: [*_ALL_LINKS, "-webgraphdb", work.linked_webgraph()],
        _links,
        lambda work: [work.webgraph / "outlinks", work.webgraph / "nodes"],
        lambda work: [work.run / "webgraphdb/nodes"],
    ),
    Job(
        "scoreupdater",
        "scoreupdater",
        lambda work: ["-crawldb", work.linked_crawldb(), "-webgraphdb", work.webgraph],
        _entries,
        lambda work: [*_database(work), work.webgraph / "nodes"],
        _changed,
    ),
    Job(
        "mergesegs, two segments",
        "mergesegs",
        lambda work: [work.run / "merged", *work.two_segments()],
        _merged_records,
        lambda work: [work.segment, work.segment],
        lambda work: [work.run / "merged"],
    ),
    Job(
        "inject, filters",
        "inject",
        lambda work: [work.run / "crawldb", work.inputs / "seeds"],
        _entries,
        lambda work: [work.inputs / "seeds"],
        _changed,
        filters=True,
    ),
)
