"""The options of a crawl, with the defaults of Nutch's src/bin/crawl."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


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
    """Whether it rests until the next page is due, if nothing is and `wait` does not say how
    long.
    """
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
    """Bits in which SimHash signatures of near-duplicates may differ; None: equal pages."""
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
