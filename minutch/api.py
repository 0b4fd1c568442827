"""A crawl as an object: its tables (`minutch.inspect.query`), and the jobs that change it as
methods.

    crawl = minutch.open("crawl", create=True, conf={"http.agent.name": "my-crawler"})
    crawl.inject(["https://www.example.org/"])
    crawl.run(rounds=3)
    crawl.crawldb.scan().group_by("status").len().collect()

In an asynchronous program `await crawl.arun(rounds=3)`, whose event loop goes on meanwhile.

What a job shows goes to sys.stdout, as on the command line; the live line goes to the terminal, or
in a notebook into the output of its cell.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from io import StringIO, TextIOBase
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

from minutch import eventloops, jobs, log, processwide
from minutch.conf import NEW_CRAWLS, Configuration
from minutch.conf.check import check
from minutch.conf.sources import CONF, NUTCH, SITE
from minutch.cycle.crawl.crawler import LOG, crawl
from minutch.cycle.crawl.preflight import remember
from minutch.cycle.crawl.steps import CrawlOptions
from minutch.cycle.crawldb.inject import InjectOptions, inject
from minutch.cycle.fetch.watch import Watch
from minutch.cycle.parse.robotsdirectives import agents_of
from minutch.errors import ConfigError, MinutchError
from minutch.inspect.query import crawl as query
from minutch.job import CLEAR, Counters, JobContext, set_up_process

if TYPE_CHECKING:
    import polars as pl

_EACH: Final = 1.0
"""Seconds between two looks at how far a run is."""


class Crawl(query.CrawlFolder):
    """The crawl in a folder. Jobs get their configuration from `conf`; raises MinutchError."""

    def __init__(
        self, path: Path, conf: Configuration | None = None, *, quiet: bool = False
    ) -> None:
        super().__init__(path)
        self.conf = conf or Configuration.load([])
        self.agents = agents_of(self.conf)
        self.quiet = quiet

    @property
    def context(self) -> JobContext:
        """A new context for a job, with the configuration and output streams of the crawl."""
        conf = self.conf.with_values({}).freeze()
        set_up_process(conf)
        if self.quiet:
            return JobContext(conf, out=StringIO(), err=StringIO(), stdin=StringIO())
        return JobContext(conf, out=sys.stdout, err=progress_stream(), stdin=StringIO())

    def inject(
        self,
        seeds: str | PathLike[str] | Iterable[str],
        options: InjectOptions = InjectOptions(),  # noqa: B008 - it is frozen
    ) -> Counters:
        """Puts URLs into the CrawlDb: a seed list (a file or a folder of them), or the URLs, each
        perhaps with metadata. Returns the job's counters.
        """
        crawldb = self.path / query.CRAWLDB
        if isinstance(seeds, str | PathLike):
            return inject(crawldb, Path(seeds), options, context=self.context)
        with tempfile.TemporaryDirectory(prefix="minutch-seeds-") as folder:
            lines = [_line(url) for url in seeds]
            (Path(folder) / "seeds.txt").write_text("".join(lines), encoding="utf-8")
            return inject(crawldb, Path(folder), options, context=self.context)

    def round(self, options: CrawlOptions = CrawlOptions()) -> Counters:  # noqa: B008 - frozen
        """Does one round: see `run`."""
        return self.run(1, options)

    def run(
        self,
        rounds: int = 1,
        options: CrawlOptions = CrawlOptions(),  # noqa: B008 - it is frozen
    ) -> Counters:
        """Does rounds of the whole cycle, generate to dedup, until nothing is due.

        `options` are those of `minutch crawl`, but for their number of rounds, which is `rounds`. A
        round that was broken off is finished first. `crawl.log` in the folder has what was logged.
        Returns the counters of all steps.
        """
        return self._run(rounds, options, self.context)

    def arun(
        self,
        rounds: int = 1,
        options: CrawlOptions = CrawlOptions(),  # noqa: B008 - it is frozen
    ) -> Run:
        """Begins what `run` does in a thread of its own: `await` it for the counters, or go over it
        with `async for`, to see how far it is. To be called where an event loop runs.
        """
        context = self.context
        context.watch = watch = Watch(str(self.path), context.clock, can_stop=True)
        return Run(watch, lambda: self._run(rounds, options, context))

    def _run(self, rounds: int, options: CrawlOptions, context: JobContext) -> Counters:
        chosen = replace(options, rounds=rounds)
        logs: AbstractContextManager[None] = nullcontext()
        if processwide.settings().log is None:
            logs = log.also_to(self.path / LOG)
        with logs:
            return crawl(self.path, chosen, context=context).counters

    def sql(self, statement: str) -> pl.DataFrame:
        """Returns the rows that a statement asks for, as `minutch sql` does; times are in UTC.
        Raises QueryError.
        """
        from minutch.inspect.query.session import Session

        session = Session(self, self.context.clock.now())
        return session.run(session.query(statement).collect)

    def job(self, name: str, *arguments: object) -> Counters:
        """Any command with its arguments: `crawl.job("dedup", crawl.path / "crawldb")`. Returns its
        counters.
        """
        context = self.context
        return jobs.run(name, *arguments, conf=context.conf, out=context.out, err=context.err)


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a crawl is."""

    step: str
    """The step that runs, such as `fetch`; empty between two."""
    place: str
    """Where that is, such as `round 1 of 3`."""
    done: int
    """Records of the step that are done; of a fetch, URLs of its list."""
    total: int | None
    """All of them, as far as it is known."""
    rounds: int
    """Rounds that have ended."""
    pages: int
    errors: int
    bytes: int
    """What all fetches of this run have brought."""
    seconds: float
    """Since the run began."""


class Run:
    """A crawl under way in a thread of its own (`Crawl.arun`).

    `await` gives its counters, or raises what `Crawl.run` raises. Cancelling the task that waits
    ends the crawl as Ctrl-C does: what is in flight is finished; a second time, not even
    that. The next run goes on from there.
    """

    def __init__(self, watch: Watch, call: Callable[[], Counters]) -> None:
        self._watch = watch
        self._task = asyncio.ensure_future(eventloops.beside(call))

    def __await__(self) -> Generator[Any, None, Counters]:
        return self._task.__await__()

    async def __aiter__(self) -> AsyncIterator[Standing]:
        """Yields how far it is, each second, and once more at its end; raises as `await`."""
        while not self._task.done():
            yield self.standing
            try:
                await asyncio.wait([self._task], timeout=_EACH)
            except asyncio.CancelledError:
                self.cancel()
                await asyncio.wait([self._task])
                raise
        yield self.standing
        self._task.result()

    def stop(self) -> None:
        """Lets it end after this round, with its counters."""
        self._watch.stop(True)

    def cancel(self) -> None:
        """Ends it as Ctrl-C does; `await` raises CancelledError then."""
        self._task.cancel()

    @property
    def standing(self) -> Standing:
        """How far it is."""
        watch, totals = self._watch, self._watch.totals
        fetch, progress = watch.fetch, watch.progress
        if watch.step == "fetch" and fetch is not None:
            done, total = fetch.done, fetch.total
        else:
            done = 0 if progress is None else progress.done
            total = None if progress is None else progress.known_total
        seconds = (watch.clock.now() - watch.started) / 1000
        return Standing(
            watch.step,
            watch.place,
            done,
            total,
            watch.round_count,
            totals.pages,
            totals.errors,
            totals.bytes,
            seconds,
        )


def open_crawl(
    path: str | PathLike[str],
    *,
    create: bool = False,
    conf: Configuration | Mapping[str, object] | None = None,
    quiet: bool = False,
) -> Crawl:
    """Returns the crawl in a folder. `create` makes one where there is none, with the settings of
    new crawls (conf/profiles/web.xml); else that is a StoreError.

    `conf` is what jobs are configured with: a Configuration, as it is, or properties, whose values
    may be texts, numbers, True and False, on top of what the folder remembers; a new one remembers
    them (conf/nutch-site.xml in it). What the command line refuses is a ConfigError here. `quiet`
    jobs show nothing.
    """
    folder = Path(path)
    conf_dir = folder / CONF
    found = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    is_new = create and not found - {CONF} and (not folder.exists() or folder.is_dir())
    if isinstance(conf, Configuration):
        configuration = conf
    else:
        given = _properties(conf or {})
        configuration = Configuration.load(
            [],
            overrides=given,
            crawl=conf_dir if (conf_dir / SITE).is_file() else None,
            profile=NEW_CRAWLS if is_new else NUTCH,
        )
    check(configuration)
    if not is_new:
        return Crawl(query.open_crawl(folder).path, configuration, quiet=quiet)
    folder.mkdir(parents=True, exist_ok=True)
    if configuration is not conf:
        remember(folder, configuration)
    return Crawl(folder, configuration, quiet=quiet)


def _properties(values: Mapping[str, object]) -> dict[str, str]:
    """Returns properties as configuration files have them. Raises ConfigError."""
    for name, value in values.items():
        if not isinstance(value, str | int | float):
            raise ConfigError(f"{name}: expected a text, a number, True or False, found {value!r}")
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in values.items()
    }


def _line(url: str) -> str:
    if "\n" in url or "\r" in url:
        raise MinutchError(f"a seed is one line: {url!r}")
    return f"{url}\n"


def progress_stream() -> TextIO:
    """Returns the stream for progress: sys.stderr, or in a notebook a line of the cell's output
    that is replaced.
    """
    handle = _notebook_display()
    return sys.stderr if handle is None else cast(TextIO, LiveLine(handle))


def _notebook_display() -> Callable[[str], None] | None:
    """Returns a function that replaces the text in a notebook's cell; None outside of notebooks."""
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
        self._show, self._line, self._shown = show, "", ""

    def isatty(self) -> bool:
        """True: jobs write live lines to terminals alone."""
        return True

    def write(self, text: str) -> int:
        """Takes text; what comes after the last line feed is the live line."""
        _, cleared, after = text.rpartition(CLEAR)
        *whole, self._line = (after if cleared else self._line + text).split("\n")
        for line in whole:
            sys.stderr.write(f"{line}\n")
        return len(text)

    def flush(self) -> None:
        """Shows the live line, if it has changed: a job that shows none leaves no trace."""
        if self._line != self._shown:
            self._shown = self._line
            self._show(self._line)
