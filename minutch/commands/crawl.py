"""crawl: rounds of generate, fetch, parse, updatedb, invertlinks and dedup, until nothing is due.

One process at a time works on a crawl folder (`<crawl_dir>/.locked`). A round that was interrupted
is finished before a new one is generated; it counts as a round. `screen` shows what the steps do,
`<crawl_dir>/crawl.log` has all that was logged, unless NUTCH_LOG_DIR names another file.

Source: the steps of Nutch's src/bin/crawl and the options that it gives them.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from minutch import log
from minutch.commands import crawloptions, flow
from minutch.commands.crawloptions import CrawlOptions, parse_options
from minutch.cycle.crawl import preflight, rounds
from minutch.cycle.crawl.rounds import Round
from minutch.cycle.crawl.screen import Screen, Totals
from minutch.cycle.crawldb.mergedsegments import is_merged
from minutch.cycle.crawldb.schedule import fetch_schedule
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetch.outcomes import Outcomes, outcomes_of
from minutch.cycle.fetch.watch import Watch
from minutch.cycle.index.writers import keep_documents
from minutch.cycle.segment.store import Segment
from minutch.errors import ConfigError, MinutchError
from minutch.hadoop.stores import as_path, is_local
from minutch.inspect.live.liveserver import LiveServer
from minutch.job import Counters, JobContext
from minutch.terminal import counted
from minutch.work.tables.lock import lock

USAGE = crawloptions.USAGE
STOP = ".STOP"
LOG = "crawl.log"
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
class Crawl:
    """One crawl. `sleep` waits for seconds; tests give their own."""

    options: CrawlOptions
    context: JobContext
    sleep: Callable[[float], None] = time.sleep
    totals: Totals = field(default_factory=Totals)
    screen: Screen = field(init=False)
    log_file: Path | None = None

    def __post_init__(self) -> None:
        if self.options.status_port is not None:
            watch = Watch(f"crawl {self.directory}", self.context.clock, can_stop=True)
            self.context = replace(self.context, watch=watch)
        self.screen = Screen(self.context)

    @property
    def directory(self) -> Path:
        return as_path(self.options.crawl_dir)

    @cached_property
    def steps(self) -> list[str]:
        """The steps of a round after generate."""
        chosen = {"updatehostdb": self.options.hostdb_update, "index": self.options.index}
        chosen["clean"] = self.options.index and keep_documents(self.context.conf)
        every = (
            "fetch",
            "parse",
            "updatedb",
            "updatehostdb",
            "invertlinks",
            "dedup",
            "index",
            "clean",
        )
        return [step for step in every if chosen.get(step, True)]

    def run(self) -> int:
        """All rounds; 0 when done. Raises MinutchError if a step fails."""
        self._check_place()
        preflight.check(self.context.conf, self.options.seeds)
        started = self.context.clock.monotonic()
        with lock(self.directory), self._served():
            logs = self.directory if is_local(self.directory) else Path()
            self.log_file = log.log_to(logs / LOG, self.context.err)
            self._begin()
            rounds.clear_left_overs(self.directory)
            waiting = rounds.unfinished(self.directory, self.steps)
            number = 0
            while not self._is_over(number):
                number += 1
                of = f" of {self.options.rounds}" if self.options.rounds > 0 else ""
                self.screen.place = f"round {number}{of}"
                if waiting:
                    self._go_on(*waiting.pop(0))
                elif not self._new_round(number) and (
                    number == self.options.rounds or not self._wait()
                ):
                    break
        self.screen.summary(
            self.totals, self.context.clock.monotonic() - started, self._next_commands()
        )
        return 0

    def _check_place(self) -> None:
        """Raise ConfigError where a step that is wished can't work in the crawl's folder."""
        options = self.options
        has_sitemaps = options.sitemaps is not None or options.sitemaps_from_hostdb != "never"
        steps = [*self.steps, *(["sitemap"] if has_sitemaps else [])]
        other = (
            None
            if is_local(self.directory)
            else next((s for s in steps if s not in flow.FAR_COMMANDS), None)
        )
        if other is not None:
            raise ConfigError(
                f"{other} works on this machine's files alone, not on {self.directory}"
            )

    @contextmanager
    def _served(self) -> Iterator[None]:
        """With a live page, if it is wished."""
        watch, port = self.context.watch, self.options.status_port
        if not isinstance(watch, Watch) or port is None:
            yield
            return
        with (
            closing(LiveServer(watch, self.context.conf, port, "--status")) as server,
            server.running(),
        ):
            self.screen.note(server.says)
            yield

    def _next_commands(self) -> list[str]:
        """What to do next: go on, or look at what was found."""
        given = [
            name for name in self.context.conf if self.context.conf.source(name) == "command line"
        ]
        options = "[the same -D ...] " if given else ""
        commands = [
            f"minutch crawl {options}{self.options.crawl_dir} {max(1, self.options.rounds)}",
            f"minutch readdb {self._path('crawldb')} -stats",
            f"minutch readseg -list -dir {self._path('segments')}",
        ]
        has_index = (self.directory / "index" / "current").is_dir()
        return [*commands, f"minutch serve {self.options.crawl_dir}"] if has_index else commands

    def _is_over(self, number: int) -> bool:
        if any(path.exists() for path in (Path(STOP), self.directory / STOP)):
            self.screen.note(f"{STOP} found, stopping after {counted(number, 'rounds')}")
            return True
        if self._is_asked_to_stop:
            self.screen.note(f"Stopped on the live page after {counted(number, 'rounds')}")
            return True
        return self.options.rounds != -1 and number >= self.options.rounds

    @property
    def _is_asked_to_stop(self) -> bool:
        return self.context.watch is not None and self.context.watch.stopping

    def _begin(self) -> None:
        if self.options.seeds is not None:
            self.screen.title("Seeds")
            self._step("inject", [self._path("crawldb"), self.options.seeds])
        if self.options.sitemaps is not None:
            self._sitemap(["-sitemapUrls", self.options.sitemaps])

    def _go_on(self, current: Round, left: list[str]) -> None:
        if left[0] == "updatedb" and self._has_updated(current.segment):
            current.done.append(left.pop(0))
        place = self.screen.place
        self.screen.title(
            f"{place.capitalize()} goes on with segment {current.segment}: {', '.join(left)}"
        )
        self._finish(current, left)

    def _has_updated(self, segment: str) -> bool:
        """Whether updatedb of a segment was done, and only its record is missing; twice would count
        its links twice.
        """
        db = CrawlDb(self.directory / "crawldb")
        return is_merged(
            Segment(self.directory / "segments" / segment), db, fetch_schedule(self.context.conf)
        )

    def _new_round(self, number: int) -> bool:
        """Generate a segment and take it through all steps; False if nothing is due."""
        self.screen.title(self.screen.place.capitalize())
        often = self.options.sitemaps_from_hostdb
        if often == "always" or (often == "once" and number == 1):
            if number == 1 and (self.directory / "crawldb").is_dir():
                self._one(Round(""), "updatehostdb")
            if (self.directory / "hostdb").is_dir():
                self._sitemap(["-hostdb", self._path("hostdb")])
        before = set(rounds.segments(self.directory))
        if (
            self._step("generate", self._generate_arguments(), allowed=(NOTHING_DUE,))
            == NOTHING_DUE
        ):
            return False
        for name in sorted(set(rounds.segments(self.directory)) - before):
            self._finish(Round(name, ["generate"]), self.steps)
        return True

    def _finish(self, current: Round, left: Sequence[str]) -> None:
        begun = self._logged()
        for step in left:
            current.save(self.directory)
            self._one(current, step)
            current.done.append(step)
        Round.forget(self.directory)
        outcomes = Outcomes()
        if "fetch" in left:
            segment = self.directory / "segments" / current.segment
            outcomes = outcomes_of(segment, self.context.conf.get_trimmed("http.proxy.host") or "")
        self.screen.reasons(outcomes)
        self.totals.rounds += 1
        if self.context.watch is not None:
            self.context.watch.ended(self.totals.statuses)
        self.totals.outcomes.add(outcomes)
        if self.log_file is not None:
            self.screen.complaints(log.complaints(self.log_file, begun), self.log_file)

    def _logged(self) -> int:
        """How long the log is."""
        return self.log_file.stat().st_size if self.log_file is not None else 0

    def _one(self, current: Round, step: str) -> None:
        segment = self._path("segments", current.segment)
        crawldb, linkdb, hostdb = self._path("crawldb"), self._path("linkdb"), self._path("hostdb")
        arguments = {
            "fetch": [segment, "-threads", str(self.options.threads)],
            "parse": [segment],
            "updatedb": [crawldb, segment],
            "updatehostdb": ["-crawldb", crawldb, "-hostdb", hostdb],
            "invertlinks": [linkdb, segment, "-noNormalize", "-nofilter"],
            "dedup": self._dedup_arguments(crawldb),
            "index": [crawldb, "-linkdb", linkdb, segment, "-deleteGone"],
            "clean": [crawldb],
        }[step]
        if step == "parse" and (as_path(segment) / rounds.MADE_BY["parse"]).is_dir():
            return  # the fetcher has parsed already (fetcher.parse)
        extra = {"fetcher.timelimit.mins": str(self.options.time_limit)} if step == "fetch" else {}
        self._step(step, arguments, extra)

    def _dedup_arguments(self, crawldb: str) -> list[str]:
        near = self.options.dedup_near
        return [
            crawldb,
            "-group",
            self.options.dedup_group,
            *([] if near is None else ["-near", str(near)]),
        ]

    def _generate_arguments(self) -> list[str]:
        arguments = [
            self._path("crawldb"),
            self._path("segments"),
            "-topN",
            str(max(self.options.size, self.options.tasks)),
        ]
        arguments += ["-numFetchers", str(self.options.fetchers), "-noFilter"]
        arguments += ["-adddays", str(self.options.add_days)] if self.options.add_days else []
        if self.options.hostdb_generate and (self.directory / "hostdb").is_dir():
            arguments += ["-hostdb", self._path("hostdb")]
        return arguments

    def _sitemap(self, arguments: list[str]) -> None:
        self._step(
            "sitemap", [self._path("crawldb"), *arguments, "-threads", str(self.options.threads)]
        )

    def _step(
        self,
        name: str,
        arguments: list[str],
        extra: Mapping[str, str] | None = None,
        allowed: Sequence[int] = (),
    ) -> int:
        command = flow.find(name)
        if command is None:
            raise MinutchError(f"this version has no command {name}")
        if self.context.watch is not None:
            self.context.watch.wait_while_paused()
        common = {**_COMMON, "mapreduce.job.reduces": str(self.options.tasks), **(extra or {})}
        started = self.context.clock.monotonic()
        with self.screen.running(name) as label:
            conf = self.context.conf.with_values(common).freeze()
            context = replace(self.context, conf=conf, reports={}, label=label)
            code = int(importlib.import_module(command.module).run(arguments, context))
        self.screen.row(name, self.context.clock.monotonic() - started, context.reports)
        self._keep(context.reports)
        if any(counters.get(INTERRUPTED) for counters in context.reports.values()):
            # a signal came when all was fetched; the next run goes on from there
            raise KeyboardInterrupt
        if code != 0 and code not in allowed:
            raise MinutchError(f"{name} {' '.join(arguments)} failed with exit code {code}")
        if name == "inject":
            self._check_seeds(context.reports)
        elif name == "updatedb":
            self.totals.statuses = _statuses(context.reports)
        return code

    def _keep(self, reports: Mapping[str, Counters]) -> None:
        """Add a step's counters to those of the crawl; of the CrawlDb's statuses the last ones
        stay.
        """
        for title, counters in reports.items():
            mine = self.context.reports.setdefault(title, Counters())
            for name, count in counters.items():
                mine[name] = count if name.startswith("db_") else mine.get(name, 0) + count

    def _check_seeds(self, reports: Mapping[str, Counters]) -> None:
        """A crawl without seeds is none."""
        counts = {name: count for counters in reports.values() for name, count in counters.items()}
        if counts.get("seeds") and counts.get("seeds") == counts.get("seeds rejected"):
            where = self.context.conf.file_to_edit("regex-urlfilter.txt")
            raise MinutchError(
                "all seeds were rejected",
                hint=f"the lines above say why; {where} has the rules of urlfilter-regex",
            )

    def _wait(self) -> bool:
        """Wait for pages to become due; False if the crawl is to stop instead."""
        if self.options.wait is None:
            return False
        self.screen.note(f"Waiting for {self.options.wait} s")
        end = self.context.clock.monotonic() + self.options.wait
        while (left := end - self.context.clock.monotonic()) > 0:
            if Path(STOP).exists() or self._is_asked_to_stop:
                break
            self.sleep(min(left, _WAIT_SLICE))
        return True

    def _path(self, *names: str) -> str:
        return str(self.directory.joinpath(*names))


def _statuses(reports: Mapping[str, Counters]) -> dict[str, int]:
    """The entries of the CrawlDb by status, as updatedb reports them."""
    return {
        name: count
        for counters in reports.values()
        for name, count in counters.items()
        if name.startswith("db_")
    }
