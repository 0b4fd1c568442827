"""The options of a crawl, and the calls of jobs that make it: each step's function with its
databases and options.

A step is a `functools.partial` of a job's function that lacks its context alone, so that the
options are checked by types where they are written down, and a test sees them without a run.
The modules of jobs are imported when their step comes.

Source: the options that Nutch's src/bin/crawl gives its steps, and their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from minutch.job import Counters

if TYPE_CHECKING:
    from minutch.conf import Configuration
    from minutch.cycle.fetch.settings import FetchOptions
    from minutch.cycle.fetchlist.generate import Generated
    from minutch.cycle.segment.compaction import CompactOptions


Call = partial[Counters]
"""A job's function that lacks its context."""

TITLES: Final = {
    "inject": "Injector", "sitemap": "SitemapProcessor", "generate": "Generator",
    "parse": "ParseSegment", "updatedb": "CrawlDb update", "updatehostdb": "UpdateHostDb",
    "invertlinks": "LinkDb", "dedup": "Deduplication", "index": "Indexer", "clean": "CleaningJob",
}  # fmt: skip
"""Step → the title of its counters in the log; fetch writes its own."""

OF_A_ROUND: Final = (
    "fetch", "parse", "updatedb", "updatehostdb", "invertlinks", "dedup", "index", "clean",
)  # fmt: skip
"""The steps of a round after generate, in order."""

LOCAL_ONLY: Final = frozenset({"sitemap", "updatehostdb", "clean"})
"""Steps that work on this machine's files alone."""


@dataclass(frozen=True, slots=True)
class CrawlOptions:
    """Options of crawl."""

    rounds: int = 1
    """Rounds at most; -1: no limit."""
    seeds: Path | None = None
    """A seed file or a folder of them, injected before the first round."""
    wait: int | None = None
    """Seconds to wait when nothing is due; None: stop then."""
    forever: bool = False
    """Whether it rests until the next page is due, if `wait` does not say how long."""
    index: bool = False
    """Whether each round's pages go to the index."""
    sitemaps: Path | None = None
    """Files with URLs of sitemaps, read before the first round."""
    hostdb_update: bool = False
    """Whether each round updates the HostDb."""
    hostdb_generate: bool = False
    """Whether generate uses the HostDb."""
    sitemaps_from_hostdb: Literal["never", "always", "once"] = "never"
    """When sitemaps of the HostDb's hosts are read: before no, every or the first round."""
    fetchers: int = 1
    """Fetch lists of a round, where minutch.engine is spark."""
    tasks: int = 2
    """Parts that databases and segments are written in (mapreduce.job.reduces)."""
    size: int = 50_000
    """Pages in a round, at most."""
    time_limit: int = 180
    """Minutes that the fetch of a round may take."""
    threads: int | None = None
    """Pages fetched at the same time at most; None: fetcher.threads.fetch."""
    dedup_group: Literal["none", "host", "domain"] = "none"
    """Where duplicates are looked for: everywhere, or within a host or domain."""
    dedup_near: int | None = None
    """How near-duplicates are found (`DedupOptions.near`); None: equal pages alone."""
    add_days: int = 0
    """Days that pages may be due later than now."""
    most: int | None = None
    """Pages that are asked for altogether, at most."""
    remembered: frozenset[str] | None = None
    """Properties that the crawl's folder keeps, if it keeps none, besides those of the command
    line; None: it does not.
    """
    again: str = ""
    """The arguments that go on with the crawl, if they are not those of any crawl in a folder."""
    shown_as: str = ""
    """The crawl's folder as the user wrote it, for the commands that the summary names."""


def steps_of(options: CrawlOptions, *, keeps_documents: bool) -> list[str]:
    """Returns the steps of a round after generate; `keeps_documents` says whether the index is one
    that can be cleaned.
    """
    wished = {
        "updatehostdb": options.hostdb_update,
        "index": options.index,
        "clean": keeps_documents,
    }
    return [step for step in OF_A_ROUND if wished.get(step, True)]


@dataclass(frozen=True)
class Steps:
    """The steps of the crawl in a folder."""

    directory: Path
    options: CrawlOptions
    named_hostdb: Path | None = None
    """The HostDb that generate uses if it does not use the crawl's own."""
    one_pass: bool = True
    """Whether fetch does the work of parse, too."""
    least: int = 0
    """Pages that are worth a round; fewer wait, for the share `late` of their interval."""
    late: float = 0.0
    is_stopping: Callable[[], bool] = bool
    """Whether the crawl is to end after this round."""

    @property
    def crawldb(self) -> Path:
        """The folder of the CrawlDb."""
        return self.directory / "crawldb"

    @property
    def linkdb(self) -> Path:
        """The folder of the LinkDb."""
        return self.directory / "linkdb"

    @property
    def hostdb(self) -> Path:
        """The folder of the HostDb."""
        return self.directory / "hostdb"

    @property
    def segments(self) -> Path:
        """The folder of the segments."""
        return self.directory / "segments"

    def of_segment(self, step: str, segment: Path) -> Call:
        """Returns the call of a step after generate, for a segment."""
        calls: Mapping[str, Callable[[Path], Call]] = {
            "fetch": self.fetch,
            "parse": self.parse,
            "updatedb": self.updatedb,
            "updatehostdb": lambda _: self.updatehostdb(),
            "invertlinks": self.invertlinks,
            "dedup": lambda _: self.dedup(),
            "index": self.index,
            "clean": lambda _: self.clean(),
        }
        return calls[step](segment)

    def inject(self, seeds: Path) -> Call:
        """Puts the seeds into the CrawlDb."""
        from minutch.cycle.crawldb.inject import InjectOptions, inject

        return partial(inject, self.crawldb, seeds, InjectOptions())

    def sitemap(self, *, hostdb: Path | None = None, urls: Path | None = None) -> Call:
        """Puts the URLs of sitemaps into the CrawlDb: of a HostDb's hosts, or of a list."""
        from minutch.cycle.sitemap.processor import DEFAULT_THREADS, SitemapOptions, sitemap

        threads = self.options.threads or DEFAULT_THREADS
        options = SitemapOptions(hostdb=hostdb, urls=urls, threads=threads)
        return partial(sitemap, self.crawldb, options)

    def generate(
        self, busy_hosts: Mapping[str, int], left: int | None = None, into: Path | None = None
    ) -> partial[Generated]:
        """Makes the segment of a round, without the pages of busy hosts; of `left` pages at
        most. Where `into` is a segment that is being fetched, its list gets these pages.
        """
        from minutch.cycle.fetchlist.generate import generate
        from minutch.cycle.fetchlist.selector import GenerateOptions

        uses_own = self.options.hostdb_generate and self.hostdb.is_dir()
        places = max(self.options.size, self.options.tasks) if left is None else left
        options = GenerateOptions(
            top_n=places,
            fetchers=self.options.fetchers,
            filtering=False,
            add_days=self.options.add_days,
            busy_hosts=busy_hosts,
            hostdb=self.hostdb if uses_own else self.named_hostdb,
            into=into,
            least=min(self.least, places),
            late=self.late if self.least else 0.0,
        )
        return partial(generate, self.crawldb, self.segments, options)

    def fetch(self, segment: Path) -> Call:
        """Fetches a segment's pages, and parses them as they come."""
        from minutch.cycle.fetch.fetcher import fetch

        return partial(fetch, segment, self.fetch_options)

    @property
    def fetch_options(self) -> FetchOptions:
        """The options of fetch."""
        from minutch.cycle.fetch.settings import FetchOptions

        return FetchOptions(self.options.threads, self.one_pass, self.is_stopping)

    def parse(self, segment: Path) -> Call:
        """Parses a segment's pages, where fetch has not done so."""
        from minutch.cycle.parse.parsesegment import ParseOptions, parse

        return partial(parse, segment, ParseOptions())

    def updatedb(self, segment: Path) -> Call:
        """Merges a segment's results and links into the CrawlDb."""
        from minutch.cycle.crawldb.updatedb import UpdateOptions, updatedb

        return partial(updatedb, self.crawldb, [segment], UpdateOptions())

    def updatehostdb(self) -> Call:
        """Counts the CrawlDb's pages by host."""
        from minutch.cycle.hostdb.update import UpdateHostDbOptions, updatehostdb

        return partial(updatehostdb, self.hostdb, UpdateHostDbOptions(crawldb=self.crawldb))

    def invertlinks(self, segment: Path) -> Call:
        """Adds a segment's links to the LinkDb."""
        from minutch.cycle.linkdb.invertlinks import InvertOptions, invertlinks

        options = InvertOptions(normalize=False, filtering=False)
        return partial(invertlinks, self.linkdb, [segment], options)

    def dedup(self) -> Call:
        """Marks duplicates in the CrawlDb."""
        from minutch.cycle.crawldb.dedup import DedupOptions, dedup

        options = DedupOptions(group=self.options.dedup_group, near=self.options.dedup_near)
        return partial(dedup, self.crawldb, options)

    def index(self, *segments: Path) -> Call:
        """Sends the pages of segments to the index, and deletions of what is gone."""
        from minutch.cycle.index.indexing import IndexOptions, index

        options = IndexOptions(linkdb=self.linkdb, delete_gone=True)
        return partial(index, self.crawldb, list(segments), options)

    def compact(self, options: CompactOptions, conf: Configuration) -> Call:
        """Merges the segments of rounds that are over."""
        from minutch.cycle.crawldb.updatedb import known_urls
        from minutch.cycle.segment.compaction import compact

        return partial(compact, self.segments, known_urls(self.crawldb, conf), options)

    def clean(self) -> Call:
        """Deletes from the index what the CrawlDb has as gone or duplicate."""
        from minutch.cycle.index.indexing import CleanOptions, clean

        return partial(clean, self.crawldb, CleanOptions())
