"""crawl: rounds of generate, fetch, parse, updatedb, invertlinks and dedup, until nothing is due.

One process at a time works on a crawl folder (`<crawl_dir>/.locked`). A round that was interrupted is finished before
a new one is generated; it counts as a round. After each round a table shows what its steps did.

Matched: the steps of Nutch's src/bin/crawl and the options that it gives them.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from minutch import crawloptions, flow, rounds
from minutch.crawloptions import CrawlOptions, parse_options
from minutch.errors import ConfigError, MinutchError
from minutch.job import JobContext
from minutch.rounds import Round
from minutch.tables.lock import lock

USAGE = crawloptions.USAGE
STOP = ".STOP"
NOTHING_DUE = 1
"""generate's exit code when it made no segment."""

INTERRUPTED = "interrupted"
"""The fetcher's counter that a signal ended it before its time."""

_COMMON = {
    "mapreduce.reduce.speculative": "false",
    "mapreduce.map.speculative": "false",
    "mapreduce.map.output.compress": "true",
}
_WAIT_SLICE = 5.0


def run(args: list[str], context: JobContext) -> int:
    """The command."""
    return Crawl(parse_options(args), context).run()


@dataclass
class Row:
    """One line of a round's table."""

    step: str
    seconds: float
    result: str


@dataclass
class Crawl:
    """One crawl. `sleep` waits for seconds; tests give their own."""

    options: CrawlOptions
    context: JobContext
    sleep: Callable[[float], None] = time.sleep
    rows: list[Row] = field(default_factory=list)

    @property
    def directory(self) -> Path:
        return Path(self.options.crawl_dir)

    @property
    def steps(self) -> list[str]:
        """The steps of a round after generate."""
        chosen = {"updatehostdb": self.options.hostdb_update, "index": self.options.index}
        every = ("fetch", "parse", "updatedb", "updatehostdb", "invertlinks", "dedup", "index")
        return [step for step in every if chosen.get(step, True)]

    def run(self) -> int:
        """All rounds; 0 when done. Raises MinutchError if a step fails."""
        self._check()
        with lock(self.directory):
            self._begin()
            waiting = rounds.unfinished(self.directory, self.steps)
            number = 0
            while not self._is_over(number):
                number += 1
                if waiting:
                    self._go_on(number, *waiting.pop(0))
                elif not self._new_round(number) and (number == self.options.rounds or not self._wait()):
                    break
        return 0

    def _check(self) -> None:
        """Refuse what can't work before anything is written."""
        wanted = ["inject", "generate", *self.steps]
        wanted += ["sitemap"] if self.options.sitemaps or self.options.sitemaps_from_hostdb != "never" else []
        for step in wanted:
            if flow.find(step) is None:
                raise MinutchError(f"the options ask for {step}, which this version doesn't have")
        if not (self.context.conf.get_trimmed("http.agent.name") or ""):
            raise ConfigError("http.agent.name is not set: give your crawler a name (conf/nutch-site.xml, or -D)")
        if self.options.seeds is not None and not Path(self.options.seeds).exists():
            raise MinutchError(f"no seeds: {self.options.seeds} does not exist")

    def _is_over(self, number: int) -> bool:
        if any(path.exists() for path in (Path(STOP), self.directory / STOP)):
            self.context.print(f"{STOP} found, stopping after {number} rounds")
            return True
        return self.options.rounds != -1 and number >= self.options.rounds

    def _begin(self) -> None:
        if self.options.seeds is not None:
            self._step("inject", [self._path("crawldb"), self.options.seeds])
        if self.options.sitemaps is not None:
            self._sitemap(["-sitemapUrls", self.options.sitemaps])
        self._show("Seeds")

    def _go_on(self, number: int, current: Round, left: list[str]) -> None:
        self.context.print(f"Round {number} goes on with segment {current.segment}: {', '.join(left)}")
        self._finish(number, current, left)

    def _new_round(self, number: int) -> bool:
        """Generate a segment and take it through all steps; False if nothing is due."""
        often = self.options.sitemaps_from_hostdb
        if often == "always" or (often == "once" and number == 1):
            if number == 1 and Path(self._path("crawldb")).is_dir():
                self._one(Round(""), "updatehostdb")
            if Path(self._path("hostdb")).is_dir():
                self._sitemap(["-hostdb", self._path("hostdb")])
        before = set(rounds.segments(self.directory))
        if self._step("generate", self._generate_arguments(), allowed=(NOTHING_DUE,)) == NOTHING_DUE:
            self._show(f"Round {number}: nothing is due")
            return False
        for name in sorted(set(rounds.segments(self.directory)) - before):
            self._finish(number, Round(name, ["generate"]), self.steps)
        return True

    def _finish(self, number: int, current: Round, left: Sequence[str]) -> None:
        for step in left:
            current.save(self.directory)
            self._one(current, step)
            current.done.append(step)
        Round.forget(self.directory)
        self._show(f"Round {number}, segment {current.segment}")

    def _one(self, current: Round, step: str) -> None:
        segment = self._path("segments", current.segment)
        crawldb, linkdb, hostdb = self._path("crawldb"), self._path("linkdb"), self._path("hostdb")
        arguments = {
            "fetch": [segment, "-threads", str(self.options.threads)],
            "parse": [segment],
            "updatedb": [crawldb, segment],
            "updatehostdb": ["-crawldb", crawldb, "-hostdb", hostdb],
            "invertlinks": [linkdb, segment, "-noNormalize", "-nofilter"],
            "dedup": [crawldb, "-group", self.options.dedup_group],
            "index": [crawldb, "-linkdb", linkdb, segment, "-deleteGone"],
        }[step]
        if step == "parse" and Path(segment, rounds.MADE_BY["parse"]).is_dir():
            return  # the fetcher has parsed already (fetcher.parse)
        extra = {"fetcher.timelimit.mins": str(self.options.time_limit)} if step == "fetch" else {}
        self._step(step, arguments, extra)

    def _generate_arguments(self) -> list[str]:
        arguments = [self._path("crawldb"), self._path("segments"), "-topN", str(self.options.size)]
        arguments += ["-numFetchers", "1", "-noFilter"]
        if self.options.hostdb_generate and Path(self._path("hostdb")).is_dir():
            arguments += ["-hostdb", self._path("hostdb")]
        return arguments

    def _sitemap(self, arguments: list[str]) -> None:
        self._step("sitemap", [self._path("crawldb"), *arguments, "-threads", str(self.options.threads)])

    def _step(
        self, name: str, arguments: list[str], extra: Mapping[str, str] | None = None, allowed: Sequence[int] = ()
    ) -> int:
        command = flow.find(name)
        if command is None:
            raise MinutchError(f"this version has no command {name}")
        common = {**_COMMON, "mapreduce.job.reduces": str(self.options.tasks), **(extra or {})}
        context = JobContext(
            self.context.conf.with_values(common).freeze(), self.context.clock, self.context.out, self.context.err
        )
        started = self.context.clock.monotonic()
        code = int(importlib.import_module(command.module).run(arguments, context))
        seconds = self.context.clock.monotonic() - started
        self.rows.append(Row(name, seconds, result_of(context.reports)))
        if any(counters.get(INTERRUPTED) for counters in context.reports.values()):
            raise KeyboardInterrupt  # a signal came when all was fetched; the next run goes on from there
        if code != 0 and code not in allowed:
            raise MinutchError(f"{name} {' '.join(arguments)} failed with exit code {code}")
        return code

    def _wait(self) -> bool:
        """Wait for pages to become due; False if the crawl is to stop instead."""
        if self.options.wait is None:
            return False
        self.context.print(f"Waiting for {self.options.wait} s")
        end = self.context.clock.monotonic() + self.options.wait
        while (left := end - self.context.clock.monotonic()) > 0 and not Path(STOP).exists():
            self.sleep(min(left, _WAIT_SLICE))
        return True

    def _path(self, *names: str) -> str:
        return str(self.directory.joinpath(*names))

    def _show(self, title: str) -> None:
        if self.rows:
            self.context.print(table(title, self.rows))
            self.context.out.flush()
        self.rows.clear()


def result_of(reports: Mapping[str, Mapping[str, int]]) -> str:
    """A step's counters on one line, zeros left out."""
    counts = [f"{name} {count:,}" for counters in reports.values() for name, count in counters.items() if count]
    return ", ".join(counts) if counts or not reports else "nothing"


def table(title: str, rows: Sequence[Row]) -> str:
    """A round as text: step, seconds, what its counters say."""
    lines = [title, f"  {'step':<12} {'seconds':>8}  result"]
    lines += [f"  {row.step:<12} {row.seconds:>8.1f}  {row.result}".rstrip() for row in rows]
    return "\n".join(lines)
