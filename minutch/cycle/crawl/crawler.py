"""Runs a crawl: rounds of the whole cycle, until nothing is due.

One process at a time works on a crawl folder (`<crawl_dir>/.locked`). A round that was interrupted
is finished before a new one is generated; it counts as a round. How rounds follow each other is the
business of a policy: `OneByOne`, as in Nutch, or `Overlapping`. `screen` shows what the
steps do, `<crawl_dir>/crawl.log` has all that was logged, unless NUTCH_LOG_DIR names another file.

An endless crawl (`CrawlOptions.forever`) rests while no list pays, reads sitemaps again at an
interval, and takes seeds that come while it runs.

Source: the steps of Nutch's src/bin/crawl and the options that it gives them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar, cast

from minutch import log
from minutch.clock import OnwardClock
from minutch.cycle.crawl import preflight, rounds
from minutch.cycle.crawl.outside import Outside
from minutch.cycle.crawl.policy import OneByOne, Overlapping, Rounds, why_not_overlapping
from minutch.cycle.crawl.rounds import Round
from minutch.cycle.crawl.screen import CrawlTotals, Screen, next_commands, outcomes_of
from minutch.cycle.crawl.steps import TITLES, CrawlOptions, Steps, steps_of
from minutch.cycle.fetch.fetch import INTERRUPTED
from minutch.cycle.fetch.frontier.hostmemory import CLOCK_FILE, state_folder_of
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetchlist.due import FEW
from minutch.cycle.fetchlist.generate import Generated
from minutch.cycle.index.writers import keep_documents, reach_writers, writes_beside
from minutch.cycle.segment.compaction import FAN, MADE, MERGED, CompactOptions
from minutch.cycle.segment.store import Segment
from minutch.errors import FormatError, MinutchError, StoreError
from minutch.hadoop.formats.javahash import date_time_to_string
from minutch.job import Counters, JobContext
from minutch.paths import is_local
from minutch.terminal import counted
from minutch.work.tables.install import CURRENT
from minutch.work.tables.lock import lock

COMPACT = "crawl.compact"
LOG = "crawl.log"
INDEX = "index"

_COMMON = {
    "mapreduce.reduce.speculative": "false",
    "mapreduce.map.speculative": "false",
    "mapreduce.map.output.compress": "true",
}
_WAIT_SLICE = 5.0
_SHORTEST_WAIT = 1.0

LEAST_PROPERTY: Final = "crawl.list.min"
LATE_PROPERTY: Final = "crawl.list.late"
OVERLAP: Final = "crawl.overlap"
_DEFAULTS: Final = CrawlOptions()

R = TypeVar("R", Counters, Generated)


@dataclass(frozen=True)
class Crawled:
    """The result of a crawl."""

    totals: CrawlTotals
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
    policy_of: Callable[[Rounds], OneByOne] = OneByOne
    """Makes the policy."""
    perform: Callable[[str, partial[Any], JobContext], Any] = perform
    sleep: Callable[[float], None] = time.sleep
    totals: CrawlTotals = field(default_factory=CrawlTotals)
    counters: dict[str, Counters] = field(default_factory=dict)
    """Those of all steps so far, by the title of their job."""
    log_file: Path | None = None
    screen: Screen = field(init=False)
    calls: Steps = field(init=False)
    policy: OneByOne = field(init=False)
    _waiting: list[tuple[Round, list[str]]] = field(init=False, default_factory=list)
    """Rounds that were interrupted, and the steps that are left of them."""
    _is_last: bool = field(init=False, default=False)
    _is_refused: bool = field(init=False, default=False)
    """All pages of the last round were refused by our own settings, as they would be again."""
    _is_stopped: bool = field(init=False, default=False)
    """Somebody has stopped the crawl: it has not come to its own end."""
    _asked: int = field(init=False, default=0)
    """Pages of lists that have ended, those of interrupted runs included, if they are limited."""
    _last: Generated = field(init=False, default_factory=Generated)
    """What generate has found last."""
    _ended: list[str] = field(init=False, default_factory=list)
    """The segment of the last round that is over."""
    _rules: Mapping[str, str] = field(init=False, default_factory=dict)
    _outside: Outside = field(init=False)

    def __post_init__(self) -> None:
        conf, options = self.context.conf, self.options
        self.screen = Screen(self.context)
        named = conf.get_trimmed("generate.hostdb")
        self.calls = Steps(
            self.directory,
            options,
            Path(named) if named else None,
            one_pass=not conf.is_set("fetcher.parse"),
            least=conf.get_int(LEAST_PROPERTY) if options.forever else 0,
            late=conf.get_double(LATE_PROPERTY),
            is_stopping=lambda: self.is_stopping,
        )

    @cached_property
    def steps(self) -> list[str]:
        """The steps of a round after generate."""
        index = self.options.index
        return steps_of(self.options, keeps_documents=index and keep_documents(self.context.conf))

    def run(self) -> Crawled:
        """Runs all rounds. Raises MinutchError if a step fails."""
        preflight.check_place(self.directory, self.options, self.steps)
        preflight.check(self.context.conf, self.options.seeds)
        started = self.context.clock.monotonic()
        with lock(self.directory), self.serving(self.screen):
            logs = self.directory if is_local(self.directory) else Path()
            self.log_file = log.log_to(logs / LOG, self.context.err)
            if self.options.remembered is not None:
                preflight.remember(self.directory, self.context.conf, self.options.remembered)
            self._rules = preflight.warn_of_losses(self.directory, self.context.conf)
            folder = state_folder_of(self.directory, self.context.conf)
            # it goes on from run to run, but on another machine
            clock = OnwardClock(self.context.clock, folder / CLOCK_FILE if folder else None)
            self.context = replace(self.context, clock=clock)
            self._outside = Outside(self.directory, self.options, self.context)
            self.policy = self.policy_of(self)
            if self.options.index:
                reach_writers(self.context.conf, self.directory)
            if self.options.seeds is not None:
                self.screen.title("Seeds")
                self._inject(self.options.seeds)
            if self.options.sitemaps is not None:
                self._step("sitemap", self.calls.sitemap(urls=self.options.sitemaps))
            rounds.clear_left_overs(self.directory)
            if self.options.index:
                self._index_what_is_there()
            with self.policy.running:
                self._rounds()
            if not self._is_stopped:
                Round.forget(self.directory)
        lasted = self.context.clock.monotonic() - started
        commands = next_commands(self.directory, self.options, self.context.conf)
        self.screen.summary(self.totals, lasted, commands)
        if self._is_refused and not self.totals.outcomes.fetched:
            raise MinutchError(
                "nothing was fetched: this crawler's own settings refuse all pages",
                hint="the lines above name the properties; explain URL says more of a page",
            )
        return Crawled(self.totals, self.counters)

    # -- rounds ------------------------------------------------------------------------------------

    def _rounds(self) -> None:
        """Finishes rounds that were interrupted, and runs new ones."""
        record, number = Round.load(self.directory), 0
        self._waiting = rounds.unfinished(self.directory, self.steps, record)
        if record is not None and self.options.most is not None:
            self._asked = record.asked + rounds.asked_since(record, self.calls.segments)
        while not self._is_over(number):
            number += 1
            self._is_last = number == self.options.rounds
            self._place(number)
            if self._waiting:
                self._go_on(*self._waiting.pop(0))
                if not self._waiting:
                    self._compact()
            elif not self._new_round() and (self._is_last or not self._wait()):
                break
        if self.policy.carried is not None:  # its list has begun, and comes to its end
            self._is_last = True
            self._place(number + 1)
            self.screen.title(self.screen.place.capitalize())
            self._take(Generated())

    def _place(self, number: int) -> None:
        of = f" of {self.options.rounds}" if self.options.rounds > 0 else ""
        self.screen.place = f"round {number}{of}"

    def _is_over(self, number: int) -> bool:
        if reason := self._outside.obeyed():
            self.screen.note(f"{reason} after {counted(number, 'rounds')}")
            self._is_stopped = True
        return self._is_stopped or self.left == 0 or -1 < self.options.rounds <= number

    def _go_on(self, current: Round, left: list[str]) -> None:
        """Finishes a round that was interrupted."""
        place, segment = self.screen.place, self.calls.segments / current.segment
        if left[0] == "updatedb" and rounds.has_updated(segment, self.directory, self.context.conf):
            current.done.append(left.pop(0))
        self.screen.title(
            f"{place.capitalize()} goes on with segment {current.segment}: {', '.join(left)}"
        )
        goes_on = left[0] == "fetch" and self.options.rounds == -1 and not self.interrupted
        if goes_on and self.policy.take_up(segment, self._context(self._fetch_properties())):
            self._take(self._generated())
        else:
            self._finish(current, left)

    def _new_round(self) -> bool:
        """Generates a segment and takes it through all steps; False if nothing is due that this
        crawler wants to ask for.
        """
        self.screen.title(self.screen.place.capitalize())
        if self.options.seeds is not None and self._outside.has_new_seeds:
            self._inject(self.options.seeds)
        self._read_sitemaps()
        return self._take(self._generated())

    def _generated(self) -> Generated:
        """Runs generate. The last pages that may be asked for come in one part, since each gets its
        share of them.
        """
        carried, left = self.policy.carried, self.left
        if left == 0:
            return Generated()
        few = left is not None and left < self.options.size
        call = self.calls.generate(
            self._outside.busy_hosts(),
            left if few else None,
            None if carried is None else carried.path,
        )
        found = self._step("generate", call, {"mapreduce.job.reduces": "1"} if few else {})
        self._last = found
        self._outside.generated()
        return found

    def _take(self, found: Generated) -> bool:
        """Takes what generate has found through all steps."""
        made = self.policy.listed(found)
        if not made:
            self.screen.nothing_due(found.reasons, found.next_due)
        for segment in made:
            self._finish(Round(segment.name, ["generate"]), self.steps)
        if made and not self._waiting:
            self._compact()
        return bool(made) and not self._is_refused

    # -- what the policy asks (`Rounds`) -----------------------------------------------------------

    @property
    def may_turn(self) -> bool:
        return not (self._is_last or self.is_stopping or self.left == 0)

    @property
    def is_stopping(self) -> bool:
        """True if the crawl is to end after this round."""
        return self._is_stopped or self._outside.is_stopping

    @property
    def interrupted(self) -> list[Path]:
        names = [current.segment for current, left in self._waiting if left[0] == "fetch"]
        return [self.calls.segments / name for name in names]

    def joined(self, segment: Path) -> None:
        self._waiting = [one for one in self._waiting if one[0].segment != segment.name]

    @property
    def has_due(self) -> bool:
        due, now = self._last.next_due, self.context.clock.now()
        return (due is not None and due <= now) or self._outside.has_news

    @property
    def left(self) -> int | None:
        """Pages that may still be asked for; None: any number."""
        carried = self.policy.carried
        asked = self._asked + (0 if carried is None else carried.listed)
        return None if self.options.most is None else max(0, self.options.most - asked)

    # -- before the rounds -------------------------------------------------------------------------

    def _index_what_is_there(self) -> None:
        """Indexes the segments of earlier rounds, if the crawl has begun without an index."""
        if (self.directory / INDEX / CURRENT).exists() or not writes_beside(self.context.conf):
            return
        done = [self.calls.segments / name for name in rounds.segments(self.directory)]
        done = [path for path in done if Segment(path).is_complete()]
        if done and self.calls.crawldb.is_dir():
            self._step("index", self.calls.index(*done))

    def _inject(self, seeds: Path) -> None:
        self._outside.injecting()
        counts = self._step("inject", self.calls.inject(seeds))
        if self.totals.rounds == 0:
            preflight.check_rejected(self.context.conf, counts)

    def _read_sitemaps(self) -> None:
        """Reads sitemaps before a round: an endless crawl at an interval, others those of the
        HostDb's hosts as often as is wished.
        """
        options, often = self.options, self.options.sitemaps_from_hostdb
        is_first, is_time = self._outside.reading_sitemaps()
        of_hosts = often == "always" and (is_first or is_time or not options.forever)
        of_hosts = of_hosts or (is_first and often == "once")
        if of_hosts and (is_first or is_time) and self.calls.crawldb.is_dir():
            self._one(Round(""), "updatehostdb")
        of_hosts = of_hosts and self.calls.hostdb.is_dir()
        of_list = is_time and options.sitemaps is not None
        new = self._outside.hosts_without_sitemaps(anew=is_time)
        with self.policy.held() if of_hosts or of_list or new else nullcontext():
            if of_list:
                self._step("sitemap", self.calls.sitemap(urls=options.sitemaps))
            if new:
                with TemporaryDirectory(prefix="minutch-") as folder:
                    listed = Path(folder) / "hosts.txt"
                    listed.write_text("".join(f"{host}\n" for host in new), "utf-8")
                    self._step("sitemap", self.calls.sitemap(urls=listed))
                self._outside.have_sitemaps(new)
            if of_hosts:
                self._step("sitemap", self.calls.sitemap(hostdb=self.calls.hostdb))

    def _finish(self, current: Round, left: Sequence[str]) -> None:
        begun = 0
        if self.log_file is not None:
            with suppress(FileNotFoundError):  # it was renamed, and nothing has come since
                begun = self.log_file.stat().st_size
        for step in left:
            current.open = [path.name for path in self.policy.open]
            self._save(current)
            self._one(current, step)
            current.done.append(step)
        Round.forget(self.directory) if self.options.most is None else self._save(Round(""))
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

    def _save(self, current: Round) -> None:
        """Writes the record: of the round, and how many pages the crawl has asked for."""
        current.asked = self._asked if self.options.most is not None else 0
        current.save(self.directory)

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
        opened = [path.name for path in self.policy.open]
        options = CompactOptions(opened, self._ended, pages or None)
        context = self._context({})
        try:
            counters = self.perform("compact", self.calls.compact(options, context.conf), context)
        except (FormatError, StoreError) as exc:
            self.screen.note(f"Segments are not merged: {exc}")
            return
        if counters.get(MERGED):
            merged, made = counted(counters[MERGED], "segments"), counters[MADE]
            self.screen.note(f"{merged} of earlier rounds merged to {made}")

    def _one(self, current: Round, step: str) -> None:
        segment = self.calls.segments / current.segment
        if step == "parse" and (segment / rounds.MADE_BY["parse"]).is_dir():
            return  # fetch has done that already
        if step == "index" and not Segment(segment).is_complete():
            raise MinutchError(
                f"segment {segment} can't be indexed, as it lacks what the log names"
            )
        is_fetch = step == "fetch"
        call = self.policy.fetch(segment) if is_fetch else self.calls.of_segment(step, segment)
        counters = self._step(step, call, self._fetch_properties() if is_fetch else {})
        if step == "fetch":
            refused = counters.get(Outcome.SKIPPED_REFUSED.label, 0)
            listed = counters.get("generated", 0)
            self._is_refused = 0 < refused == listed
            self._asked += listed - counters.get(Outcome.SKIPPED_TAIL.label, 0)
        if step == "updatedb":
            preflight.remember_rules(self.directory, self._rules)
            self.totals.statuses = {
                name: count for name, count in counters.items() if name.startswith("db_")
            }

    def _fetch_properties(self) -> dict[str, str]:
        """A last round has no next one to leave anything to."""
        limit = {"fetcher.timelimit.mins": str(self.options.time_limit)}
        return limit | {"fetcher.tail.share": "0"} if self._is_last else limit

    def _step(self, name: str, call: partial[R], extra: Mapping[str, str] | None = None) -> R:
        """Runs a step and shows what it says; returns its result."""
        if self.context.watch is not None:
            self.context.watch.wait_while_paused()
        started = self.context.clock.monotonic()
        with self.screen.running(name) as label:
            context = self._context(extra or {}, label)
            result = self.perform(name, call, context)
            counters = result if isinstance(result, Counters) else result.counters
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

    def _context(self, extra: Mapping[str, str], label: str = "") -> JobContext:
        """Returns the context of a step, which has more properties."""
        common = {**_COMMON, "mapreduce.job.reduces": str(self.options.tasks), **extra}
        conf = self.context.conf.with_values(common).freeze()
        return replace(self.context, conf=conf, reports={}, label=label)

    def _keep(self, title: str, counters: Counters) -> None:
        """Adds a step's counters to the crawl's; of the CrawlDb's statuses the last stay."""
        mine = self.counters.setdefault(title, Counters())
        for name, count in counters.items():
            mine[name] = count if name.startswith("db_") else mine.get(name, 0) + count

    def _wait(self) -> bool:
        """Waits until a list can be made; False if the crawl is to end instead."""
        due, few = self._last.next_due, self._last.counters.get(FEW, 0)
        if self.options.wait is not None:
            seconds = float(self.options.wait)
            self.screen.note(f"Waiting for {self.options.wait} s")
        elif self.options.forever and due is not None:
            seconds = max((due - self.context.clock.now()) / 1000, _SHORTEST_WAIT)
            what = "a list is worth its steps" if few else "the next page is due"
            self.screen.note(f"Resting until {date_time_to_string(due)} UTC, when {what}")
        else:
            return False
        end = self.context.clock.monotonic() + seconds
        while (left := end - self.context.clock.monotonic()) > 0:
            if self.is_stopping or self._outside.has_news:
                break
            self.sleep(min(left, _WAIT_SLICE))
        return True


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
    policy: Callable[[Rounds], OneByOne] = OneByOne
    if context.conf.get_boolean(OVERLAP):
        if obstacle := why_not_overlapping(crawl_dir, context.conf):
            Screen(context).note(f"Rounds follow each other: {obstacle} ({OVERLAP})")
        else:
            policy = Overlapping
    return Crawler(crawl_dir, options, context, serving, policy).run()
