"""Runs a crawl, with rounds that overlap wherever they can."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final

from minutch.cycle.crawl.crawler import Crawled, Crawler
from minutch.cycle.crawl.policy import Overlapping
from minutch.cycle.crawl.screen import Screen
from minutch.cycle.crawl.steps import CrawlOptions
from minutch.hadoop.stores import is_local
from minutch.job import JobContext
from minutch.work.engine import runs_here

PROPERTY: Final = "crawl.overlap"

_DEFAULTS: Final = CrawlOptions()


def crawl(
    crawl_dir: Path,
    options: CrawlOptions = _DEFAULTS,
    *,
    context: JobContext,
    serving: Callable[[Screen], AbstractContextManager[object]] = nullcontext,
) -> Crawled:
    """Crawls in rounds in the folder `crawl_dir`, which is made if there is none; `serving` is
    entered while the crawl runs.

    Raises MinutchError if the crawl can't work (no name, no seeds, no protocol) or a step fails,
    LockedError if another process works in the folder, KeyboardInterrupt after a signal; the next
    crawl of the folder goes on from there.
    """
    overlaps = False
    if context.conf.get_boolean(PROPERTY):
        obstacle = _obstacle(crawl_dir, context)
        overlaps = obstacle is None
        if obstacle is not None:
            Screen(context).note(f"Rounds follow each other: {obstacle} ({PROPERTY})")
    policy = Overlapping if overlaps else None
    return Crawler(crawl_dir, options, context, serving, policy).run()


def _obstacle(crawl_dir: Path, context: JobContext) -> str | None:
    """Returns why rounds can't overlap; None if they can."""
    if not runs_here(context.conf):
        return "other machines fetch"
    if not is_local(crawl_dir):
        return f"{crawl_dir} is no folder of this machine"
    return None
