"""Runs a crawl: rounds of the whole cycle, until nothing is due.

One process at a time works on a crawl folder (`<crawl_dir>/.locked`). A round that was interrupted
is finished before a new one is generated; it counts as a round. `screen` shows what the steps do,
`<crawl_dir>/crawl.log` has all that was logged, unless NUTCH_LOG_DIR names another file.

Source: the steps of Nutch's src/bin/crawl and the options that it gives them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from minutch import log
from minutch.clock import OnwardClock
from minutch.cycle.crawl import preflight, rounds
from minutch.cycle.crawl.options import CrawlOptions
from minutch.cycle.crawl.rounds import Round
from minutch.cycle.crawl.screen import Screen, Totals
from minutch.cycle.crawl.steps import LOCAL_ONLY, TITLES, Steps
from minutch.cycle.crawldb.mergedsegments import is_merged
from minutch.cycle.crawldb.schedule import fetch_schedule
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetch.frontier.hoststate import CLOCK_FILE, FetchState, state_folder
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.outcomes import outcomes_of
from minutch.cycle.index.writers import keep_documents, reach_writers
from minutch.cycle.segment.compaction import FAN, MADE, MERGED, CompactOptions
from minutch.cycle.segment.store import Segment
from minutch.errors import ConfigError, FormatError, MinutchError, StoreError
from minutch.hadoop.formats.javahash import date_time_to_string
from minutch.hadoop.stores import is_local
from minutch.job import Counters, JobContext
from minutch.processwide import command_line
from minutch.terminal import counted
from minutch.work.tables.lock import lock

if TYPE_CHECKING:
    from minutch.cycle.fetchlist.generate import Generated

COMPACT = "crawl.compact"
STOP = ".STOP"
LOG = "crawl.log"

INTERRUPTED = "interrupted"
"""The fetcher's counter that a signal ended it before its time."""

_COMMON = {
    "mapreduce.reduce.speculative": "false",
    "mapreduce.map.speculative": "false",
    "mapreduce.map.output.compress": "true",
}
_WAIT_SLICE = 5.0


R = TypeVar("R")


@dataclass(frozen=True)
class Crawled:
    """The result of a crawl."""

    totals: Totals
    by_step: Mapping[str, Counters]
    """Counters by the title of the job that they come from; db_* are those of the last updatedb."""

    @property
    def counters(self) -> Counters:
        """The counters of all steps."""
        counters = Counters()
        for found in self.by_step.values():
            counters.merge(found)
        return counters


def perform(_step: str, call: partial[R], context: JobContext) -> R:
    """Runs a step."""
    return call(context=context)


@dataclass
class Crawler:
    """A crawl that runs. Tests replace `perform`, which runs a step, and `sleep` (seconds)."""

    directory: Path
    options: CrawlOptions
    context: JobContext
    serving: Callable[[Screen], AbstractContextManager[object]] = nullcontext
    """Entered while the crawl runs: serves the live page."""
    perform: Callable[[str, partial[Any], JobContext], Any] = perform
    sleep: Callable[[float], None] = time.sleep
    totals: Totals = field(default_factory=Totals)
    counters: dict[str, Counters] = field(default_factory=dict)
    """Those of all steps so far, by the title of their job."""
    screen: Screen = field(init=False)
    log_file: Path | None = None

    def __post_init__(self) -> None:
        self.screen = Screen(self.context)
        named = self.context.conf.get_trimmed("generate.hostdb")
        self._is_last = False
        self._ended: list[str] = []
        """The segment of the last round that is over."""
        self._is_refused = False
        """All pages of the last round were refused by our own settings, as they would be again."""
        self._next_due: int | None = None
        """When the next page is due (ms), after a generate that found none."""
        self.calls = Steps(
            self.directory,
            self.options,
            Path(named) if named else None,
            one_pass=not self.context.conf.is_set("fetcher.parse"),
        )

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

    def run(self) -> Crawled:
        """Runs all rounds. Raises MinutchError if a step fails."""
        self._check_place()
        preflight.check(self.context.conf, self.options.seeds)
        started = self.context.clock.monotonic()
        with lock(self.directory), self.serving(self.screen):
            logs = self.directory if is_local(self.directory) else Path()
            self.log_file = log.log_to(logs / LOG, self.context.err)
            self.context = replace(self.context, clock=self._clock())
            if self.options.index:
                reach_writers(self.context.conf, self.directory)
            self._begin()
            rounds.clear_left_overs(self.directory)
            with self._fetching():
                self._rounds(rounds.unfinished(self.directory, self.steps))
        self.screen.summary(
            self.totals, self.context.clock.monotonic() - started, self._next_commands()
        )
        if self._is_refused and not self.totals.outcomes.fetched:
            raise MinutchError(
                "nothing was fetched: this crawler's own settings refuse all pages",
                hint="the lines above name the properties; explain URL says more of a page",
            )
        return Crawled(self.totals, self.counters)

    def _fetching(self) -> AbstractContextManager[object]:
        """Entered while there are rounds."""
        return nullcontext()

    def _rounds(self, waiting: list[tuple[Round, list[str]]]) -> None:
        """Finishes rounds that were interrupted, and runs new ones."""
        number = 0
        while not self._is_over(number):
            number += 1
            self._is_last = number == self.options.rounds
            self._place(number)
            if waiting:
                self._go_on(*waiting.pop(0))
                if not waiting:
                    self._compact()
            elif not self._new_round(number) and (self._is_last or not self._wait()):
                break

    def _place(self, number: int) -> None:
        of = f" of {self.options.rounds}" if self.options.rounds > 0 else ""
        self.screen.place = f"round {number}{of}"

    def _check_place(self) -> None:
        """Raises ConfigError where a step that is wished can't work in the crawl's folder."""
        options = self.options
        has_sitemaps = options.sitemaps is not None or options.sitemaps_from_hostdb != "never"
        steps = [*self.steps, *(["sitemap"] if has_sitemaps else [])]
        is_far = not is_local(self.directory)
        other = next((step for step in steps if is_far and step in LOCAL_ONLY), None)
        if other is not None:
            raise ConfigError(f"{other} works with local files only, not with {self.directory}")

    def _next_commands(self) -> list[str]:
        """Returns commands to go on with, or to look at the results."""
        given = [
            name for name in self.context.conf if self.context.conf.source(name) == "command line"
        ]
        options = "[the same -D ...] " if given else ""
        place = self.options.shown_as or str(self.directory)
        again = f"{place} {max(1, self.options.rounds)}"
        commands = [
            command_line(f"crawl {options}{self.options.again or again}"),
            command_line(f"report {place}"),
            command_line(f"explain {place}"),
        ]
        has_index = (self.directory / "index" / "current").is_dir()
        return [*commands, command_line(f"serve {place}")] if has_index else commands

    def _is_over(self, number: int) -> bool:
        found = [path for path in (Path(STOP), self.directory / STOP) if path.exists()]
        if found:
            for path in found:
                path.unlink(missing_ok=True)  # obeyed: the next crawl goes on
            self.screen.note(f"{STOP} found, stopping after {counted(number, 'rounds')}")
            return True
        if self._is_asked_to_stop:
            self.screen.note(f"Stopped on the live page after {counted(number, 'rounds')}")
            return True
        if self._left == 0:
            return True
        return self.options.rounds != -1 and number >= self.options.rounds

    @property
    def _is_asked_to_stop(self) -> bool:
        return self.context.watch is not None and self.context.watch.stopping

    def _begin(self) -> None:
        if self.options.seeds is not None:
            self.screen.title("Seeds")
            self._check_seeds(self._step("inject", self.calls.inject(self.options.seeds)))
        if self.options.sitemaps is not None:
            self._step("sitemap", self.calls.sitemap(urls=self.options.sitemaps))

    def _go_on(self, current: Round, left: list[str]) -> None:
        if left[0] == "updatedb" and self._has_updated(current.segment):
            current.done.append(left.pop(0))
        place = self.screen.place
        self.screen.title(
            f"{place.capitalize()} goes on with segment {current.segment}: {', '.join(left)}"
        )
        self._finish(current, left)

    def _has_updated(self, segment: str) -> bool:
        """Tells whether a segment is merged already, and only the record of that is missing;
        merging it again would count its links twice.
        """
        db = CrawlDb(self.directory / "crawldb")
        return is_merged(
            Segment(self.directory / "segments" / segment), db, fetch_schedule(self.context.conf)
        )

    def _new_round(self, number: int) -> bool:
        """Generates a segment and takes it through all steps; False if nothing is due that this
        crawler wants to ask for.
        """
        self.screen.title(self.screen.place.capitalize())
        often = self.options.sitemaps_from_hostdb
        if often == "always" or (often == "once" and number == 1):
            if number == 1 and (self.directory / "crawldb").is_dir():
                self._one(Round(""), "updatehostdb")
            if (self.directory / "hostdb").is_dir():
                self._step("sitemap", self.calls.sitemap(hostdb=self.calls.hostdb))
        found = self._step("generate", *self._generate())
        made = self._listed(found)
        for segment in sorted(made):
            self._finish(Round(segment.name, ["generate"]), self.steps)
        if made:
            self._compact()
        return bool(made) and not self._is_refused

    def _listed(self, found: Generated) -> list[Path]:
        """Returns the segments whose pages are to be fetched now; says why, if there are none."""
        self._next_due = found.next_due
        if not found.segments:
            self.screen.nothing_due(found.reasons, found.next_due)
        return found.segments

    def _generate(self, into: Path | None = None) -> tuple[partial[Generated], dict[str, str]]:
        """Returns the call of generate, and its properties: the last pages that may be asked for
        come in one part, since each gets its share of them.
        """
        left = self._left
        if left is None or left >= self.options.size:
            return self.calls.generate(self._busy_hosts(), into=into), {}
        one = {"mapreduce.job.reduces": "1"}
        return self.calls.generate(self._busy_hosts(), left, into), one

    @property
    def _left(self) -> int | None:
        """Pages that may still be asked for; None: any number."""
        counters = self.counters.get("Fetcher", Counters())
        asked = counters.get("generated", 0) - counters.get(Outcome.SKIPPED_TAIL.label, 0)
        return None if self.options.most is None else max(0, self.options.most - asked)

    def _clock(self) -> OnwardClock:
        """Returns the clock of this crawl; on this machine it goes on from run to run."""
        folder = self._state_folder
        return OnwardClock(self.context.clock, folder / CLOCK_FILE if folder else None)

    def _busy_hosts(self) -> dict[str, int]:
        """Returns the hosts that asked not to be called yet, and until when (ms)."""
        folder = self._state_folder
        if folder is None:
            return {}
        with FetchState(folder, read_only=True) as state:
            return state.busy_hosts(self.context.clock.now())

    @property
    def _state_folder(self) -> Path | None:
        """What a fetch remembers; None where the crawl is on another machine."""
        from minutch.cycle.fetch.components import STATE_PROPERTY

        if not is_local(self.directory):
            return None
        named = self.context.conf.get(STATE_PROPERTY)
        return Path(named) if named else state_folder(self.calls.segments / "any")

    def _finish(self, current: Round, left: Sequence[str]) -> None:
        begun = self._logged()
        for step in left:
            current.open = self._open
            current.save(self.directory)
            self._one(current, step)
            current.done.append(step)
        Round.forget(self.directory)
        segment = self.directory / "segments" / current.segment
        outcomes = outcomes_of(segment, self.context.conf.get_trimmed("http.proxy.host") or "")
        self.screen.reasons(outcomes)
        self.totals.rounds += 1
        self._ended = [current.segment]
        if self.context.watch is not None:
            self.context.watch.ended(self.totals.statuses)
        self.totals.outcomes.add(outcomes)
        if self.log_file is not None:
            self.screen.complaints(log.complaints(self.log_file, begun), self.log_file)

    def _compact(self) -> None:
        """Merges the segments of rounds that are over, if it is wished; damage there is no reason
        to stop the crawl.
        """
        wish = self.context.conf.get_trimmed(COMPACT) or "endless"
        if wish == "false" or (wish == "endless" and self.options.rounds != -1):
            return
        if not is_local(self.directory) or len(rounds.segments(self.directory)) < FAN:
            return
        seen = ("db_fetched", "db_notmodified", "db_duplicate")
        pages = sum(self.totals.statuses.get(name, 0) for name in seen)
        options = CompactOptions(self._open, self._ended, pages or None)
        common = {**_COMMON, "mapreduce.job.reduces": str(self.options.tasks)}
        conf = self.context.conf.with_values(common).freeze()
        context = replace(self.context, conf=conf, reports={})
        try:
            counters = self.perform("compact", self.calls.compact(options, conf), context)
        except (FormatError, StoreError) as exc:
            self.screen.note(f"Segments are not merged: {exc}")
            return
        if counters.get(MERGED):
            merged, made = counted(counters[MERGED], "segments"), counters[MADE]
            self.screen.note(f"{merged} of earlier rounds merged to {made}")

    @property
    def _open(self) -> list[str]:
        """The segments that are being fetched beside the steps of a round."""
        return []

    def _logged(self) -> int:
        """Returns the length of the log; 0 if it was renamed, and nothing has come since."""
        with suppress(FileNotFoundError):
            return self.log_file.stat().st_size if self.log_file is not None else 0
        return 0

    def _one(self, current: Round, step: str) -> None:
        segment = self.calls.segments / current.segment
        if step == "parse" and (segment / rounds.MADE_BY["parse"]).is_dir():
            return  # fetch has done that already
        if step == "index" and not Segment(segment).is_complete():
            raise MinutchError(
                f"segment {segment} can't be indexed, as it lacks what the log names"
            )
        is_fetch = step == "fetch"
        call = self._fetch(segment) if is_fetch else self.calls.of_segment(step, current.segment)
        counters = self._step(step, call, self._fetch_properties() if is_fetch else {})
        if step == "fetch":
            refused = counters.get(Outcome.SKIPPED_REFUSED.label, 0)
            self._is_refused = 0 < refused == counters.get("generated", 0)
        if step == "updatedb":
            self.totals.statuses = {
                name: count for name, count in counters.items() if name.startswith("db_")
            }

    def _fetch(self, segment: Path) -> partial[Counters]:
        """Returns the call that fetches a segment."""
        return self.calls.fetch(segment)

    def _fetch_properties(self) -> dict[str, str]:
        """A last round has no next one to leave anything to."""
        limit = {"fetcher.timelimit.mins": str(self.options.time_limit)}
        return limit | {"fetcher.tail.share": "0"} if self._is_last else limit

    def _step(self, name: str, call: partial[R], extra: Mapping[str, str] | None = None) -> R:
        """Runs a step and shows what it says; returns its result."""
        if self.context.watch is not None:
            self.context.watch.wait_while_paused()
        common = {**_COMMON, "mapreduce.job.reduces": str(self.options.tasks), **(extra or {})}
        started = self.context.clock.monotonic()
        with self.screen.running(name) as label:
            conf = self.context.conf.with_values(common).freeze()
            context = replace(self.context, conf=conf, reports={}, label=label)
            result = self.perform(name, call, context)
            counters: Counters = getattr(result, "counters", result)
            if name in TITLES:
                context.report(TITLES[name], counters)
        self.screen.row(name, self.context.clock.monotonic() - started, counters)
        self._keep(TITLES.get(name, "Fetcher"), counters)
        if name == "fetch" and (parsed := context.reports.get(TITLES["parse"])) is not None:
            self.screen.row("parse", 0.0, parsed)
            self._keep(TITLES["parse"], parsed)
        if counters.get(INTERRUPTED):
            # a signal came when all was fetched; the next run goes on from there
            raise KeyboardInterrupt
        return cast(R, result)

    def _keep(self, title: str, counters: Counters) -> None:
        """Adds a step's counters to those of the crawl; of the CrawlDb's statuses the last ones
        stay.
        """
        mine = self.counters.setdefault(title, Counters())
        for name, count in counters.items():
            mine[name] = count if name.startswith("db_") else mine.get(name, 0) + count

    def _check_seeds(self, counts: Counters) -> None:
        """Raises MinutchError where no seed is left: a crawl without seeds is none."""
        if counts.get("seeds") and counts.get("seeds") == counts.get("seeds rejected"):
            where = self.context.conf.file_to_edit("regex-urlfilter.txt")
            raise MinutchError(
                "all seeds were rejected",
                hint=f"the lines above say why; {where} has the rules of urlfilter-regex",
            )

    def _wait(self) -> bool:
        """Waits for pages to become due; False if the crawl is to stop instead."""
        if self.options.wait is not None:
            seconds = float(self.options.wait)
            self.screen.note(f"Waiting for {self.options.wait} s")
        elif self.options.forever and self._next_due is not None:
            seconds = max((self._next_due - self.context.clock.now()) / 1000, _WAIT_SLICE)
            due = date_time_to_string(self._next_due)
            self.screen.note(f"Resting until {due} UTC, when the next page is due")
        else:
            return False
        end = self.context.clock.monotonic() + seconds
        while (left := end - self.context.clock.monotonic()) > 0:
            if Path(STOP).exists() or self._is_asked_to_stop:
                break
            self.sleep(min(left, _WAIT_SLICE))
        return True
