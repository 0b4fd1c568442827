"""A crawl as an object: its tables (`minutch.inspect.query`), and the jobs that change it
(`minutch.jobs`) as methods.

    crawl = minutch.open("crawl", create=True, conf={"http.agent.name": "my-crawler"})
    crawl.inject(["https://www.example.org/"])
    crawl.run(rounds=3)
    crawl.crawldb.scan().group_by("status").len().collect()

What a job shows goes to sys.stdout, as on the command line; the live line goes to the terminal, or
in a notebook into the output of its cell.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from io import TextIOBase
from os import PathLike
from pathlib import Path
from typing import Literal, TextIO, cast

from minutch import jobs
from minutch.conf import Configuration
from minutch.errors import MinutchError
from minutch.inspect.query import crawl as query
from minutch.job import CLEAR, Counters


class Crawl(query.Crawl):
    """The crawl in a folder. Jobs take their configuration from `conf`, and raise MinutchError when
    they fail.
    """

    def __init__(
        self, path: Path, conf: Configuration | None = None, *, quiet: bool = False
    ) -> None:
        super().__init__(path)
        self.conf = conf or Configuration.load([])
        self.quiet = quiet

    def inject(self, seeds: str | PathLike[str] | Iterable[str], *options: object) -> Counters:
        """Put URLs into the CrawlDb: a seed list (a file or a folder of them), or the URLs, each
        perhaps with metadata.

        `options` are those of `minutch inject`: `crawl.inject(urls, "-overwrite")`. Returns the
        job's counters.
        """
        if isinstance(seeds, str | PathLike):
            return self.job("inject", self.path / query.CRAWLDB, seeds, *options)
        with tempfile.TemporaryDirectory(prefix="minutch-seeds-") as folder:
            lines = [_line(url) for url in seeds]
            (Path(folder) / "seeds.txt").write_text("".join(lines), encoding="utf-8")
            return self.job("inject", self.path / query.CRAWLDB, folder, *options)

    def round(
        self,
        *,
        pages: int | None = None,
        threads: int | None = None,
        add_days: int | None = None,
        dedup_group: Literal["none", "host", "domain"] | None = None,
        index: bool = False,
        hostdb: bool = False,
    ) -> Counters:
        """One round: see `run`."""
        return self.run(1, pages, threads, add_days, dedup_group, index, hostdb)

    def run(
        self,
        rounds: int = 1,
        pages: int | None = None,
        threads: int | None = None,
        add_days: int | None = None,
        dedup_group: Literal["none", "host", "domain"] | None = None,
        index: bool = False,
        hostdb: bool = False,
    ) -> Counters:
        """Rounds of generate, fetch, parse, updatedb, invertlinks and dedup, until nothing is due.

        `pages` to fetch in a round, by so many `threads`; `add_days`: also what will be due in so
        many days; `dedup_group`: duplicates are found everywhere, or within a host or domain;
        `index`: send each round's pages to the index; `hostdb`: keep a HostDb. What is not given is
        as `minutch crawl` has it. A round that was broken off is finished first. Returns the
        counters of all steps.
        """
        options: dict[str, object] = {
            "--size-fetchlist": pages,
            "--num-threads": threads,
            "-adddays": add_days,
            "--dedup-group": dedup_group,
        }
        words = [
            word for name, value in options.items() if value is not None for word in (name, value)
        ]
        words += ["--index"] if index else []
        words += ["--hostdbupdate"] if hostdb else []
        return self.job("crawl", *words, self.path, rounds)

    def job(self, name: str, *arguments: object) -> Counters:
        """Any command with its arguments: `crawl.job("dedup", crawl.path / "crawldb")`. Returns its
        counters.
        """
        if self.quiet:
            return jobs.run(name, *arguments, conf=self.conf)
        return jobs.run(name, *arguments, conf=self.conf, out=sys.stdout, err=progress_stream())


def open_crawl(
    path: str | PathLike[str],
    *,
    create: bool = False,
    conf: Configuration | Mapping[str, str] | None = None,
    quiet: bool = False,
) -> Crawl:
    """The crawl in a folder. `create` makes one where there is none; else that is a StoreError.

    `conf` is what jobs are configured with: a Configuration, or properties on top of the shipped
    ones. `quiet` jobs show nothing.
    """
    given = (
        conf
        if isinstance(conf, Configuration)
        else Configuration.load([], overrides=dict(conf or {}))
    )
    folder = Path(path)
    if create and (not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))):
        folder.mkdir(parents=True, exist_ok=True)
        return Crawl(folder, given, quiet=quiet)
    return Crawl(query.open_crawl(folder).path, given, quiet=quiet)


def _line(url: str) -> str:
    if "\n" in url or "\r" in url:
        raise MinutchError(f"a seed is one line: {url!r}")
    return f"{url}\n"


def progress_stream() -> TextIO:
    """Where progress goes: sys.stderr, or in a notebook a line of the cell's output that changes in
    its place.
    """
    handle = _notebook_display()
    return sys.stderr if handle is None else cast(TextIO, LiveLine(handle))


def _notebook_display() -> Callable[[str], None] | None:
    """What shows a text in a notebook's cell in the place of the one before; None where this is no
    notebook.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    handle = import_module("IPython.display").DisplayHandle()
    first = [True]

    def show(text: str) -> None:
        put = handle.display if first else handle.update
        first.clear()
        put({"text/plain": text}, raw=True)

    return show


class LiveLine(TextIOBase):
    """A stream that shows the live line of a job by `show`; lines that end go to sys.stderr."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show, self._line = show, ""

    def isatty(self) -> bool:
        """True: jobs write live lines to terminals alone."""
        return True

    def write(self, text: str) -> int:
        """Take text; what comes after the last line feed is the live line."""
        _, cleared, after = text.rpartition(CLEAR)
        *whole, self._line = (after if cleared else self._line + text).split("\n")
        for line in whole:
            sys.stderr.write(f"{line}\n")
        return len(text)

    def flush(self) -> None:
        """Show the live line."""
        self._show(self._line)
