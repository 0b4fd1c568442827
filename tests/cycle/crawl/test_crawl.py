"""bin/crawl's rounds, with jobs that only note that they were called."""

from __future__ import annotations

import io
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from minutch.clock import FakeClock
from minutch.commands import flow
from minutch.conf import Configuration
from minutch.cycle.crawl import crawler as crawl_module
from minutch.cycle.crawl.crawler import INTERRUPTED, Crawler
from minutch.cycle.crawl.screen import Outcomes
from minutch.cycle.crawl.steps import LOCAL_ONLY, TITLES, CrawlOptions
from minutch.cycle.crawldb.dedup import DedupOptions
from minutch.cycle.crawldb.inject import InjectOptions
from minutch.cycle.crawldb.updatedb import UpdateOptions
from minutch.cycle.fetch.frontier.hostmemory import BusyHosts
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.settings import FetchOptions
from minutch.cycle.fetchlist.generate import Generated
from minutch.cycle.fetchlist.selector import GenerateOptions
from minutch.cycle.hostdb.update import UpdateHostDbOptions
from minutch.cycle.index.indexing import CleanOptions, IndexOptions
from minutch.cycle.linkdb.invertlinks import InvertOptions
from minutch.cycle.parse.parsesegment import ParseOptions
from minutch.cycle.sitemap.processor import SitemapOptions
from minutch.errors import ConfigError, LockedError, MinutchError
from minutch.job import Counters, JobContext
from tests.support.examples import every, few

PARTS = {"fetch": ("crawl_fetch", "content"), "parse": ("crawl_parse", "parse_data", "parse_text")}


@dataclass
class Jobs:
    """Stands in for all jobs; `due` is how often generate makes a segment, `fails` the step that
    fails.
    """

    root: Path
    due: int = 99
    fails: str = ""
    error: BaseException = field(default_factory=lambda: MinutchError("failed"))
    before: dict[str, Callable[[], None]] = field(default_factory=dict)
    """What happens as a step begins."""
    also: dict[str, dict[str, int]] = field(default_factory=dict)
    """More counters of a step."""
    reports: dict[str, dict[str, Counters]] = field(default_factory=dict)
    """What a step reports besides."""
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    """Of each step its name, paths below `root`, and options."""
    confs: list[Configuration] = field(default_factory=list)
    made: int = 0
    clock: FakeClock = field(default_factory=FakeClock)

    def perform(self, name: str, call: partial[Any], context: JobContext) -> Any:
        assert call.func.__name__ == name
        self.calls.append((name, *map(self._below, call.args)))
        self.confs.append(context.conf)
        self.clock.advance(1.5)
        if name == self.fails:
            raise self.error
        if name in self.before:
            self.before[name]()
        counters = Counters({"records": 3, **self.also.get(name, {})})
        if name == "generate":
            return Generated(self._generate(call.args[1]), counters, 1_800_000_000_000)
        for title, more in self.reports.get(name, {}).items():
            context.report(title, more)
        for part in PARTS.get(name, ()):
            (call.args[0] / part).mkdir(parents=True)
        return counters

    def _below(self, argument: Any) -> Any:
        if isinstance(argument, list):
            return [self._below(path) for path in argument]
        return str(argument.relative_to(self.root)) if isinstance(argument, Path) else argument

    def _generate(self, segments: Path) -> list[Path]:
        if self.made >= self.due:
            return []
        self.made += 1
        segment = segments / f"2026010100000{self.made}"
        (segment / "crawl_generate").mkdir(parents=True)
        return [segment]

    @property
    def names(self) -> list[str]:
        return [call[0] for call in self.calls]


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "seeds").mkdir()
    (tmp_path / "seeds" / "seeds.txt").write_text("http://example.org/\n")
    monkeypatch.setattr(crawl_module, "outcomes_of", lambda segment, proxy: Outcomes(new=3))
    return Jobs(tmp_path)


def crawl(jobs: Jobs, rounds: int = 2, seeds: str | None = "seeds", **more: Any) -> Crawler:
    options = CrawlOptions(rounds, seeds and jobs.root / seeds, **more)  # type: ignore[arg-type]
    conf = Configuration.load(
        [], overrides={"http.agent.name": "test", "mapreduce.job.reduces": "9"}
    )
    context = JobContext(conf.freeze(), jobs.clock, io.StringIO(), io.StringIO())
    return Crawler(
        jobs.root / "crawl", options, context, perform=jobs.perform, sleep=jobs.clock.advance
    )


def printed(run: Crawler) -> str:
    assert isinstance(run.context.out, io.StringIO)
    return run.context.out.getvalue()


def test_hosts_that_asked_for_a_rest_are_left_out(jobs: Jobs) -> None:
    run = crawl(jobs, rounds=1)
    with BusyHosts(jobs.root / "crawl" / ".fetchstate") as state:
        state.remember_busy("a.example", run.context.clock.now() + 60_000)
        state.remember_busy("b.example", run.context.clock.now() - 1)
    run.run()
    options = next(call[-1] for call in jobs.calls if call[0] == "generate")
    assert set(options.busy_hosts) == {"a.example"}


ROUND = ["generate", "fetch", "parse", "updatedb", "invertlinks", "dedup"]


def test_rounds_are_nutchs_steps_with_nutchs_options(jobs: Jobs) -> None:
    crawl(jobs, rounds=1).run()
    segment = "crawl/segments/20260101000001"
    lists = GenerateOptions(top_n=50000, fetchers=1, filtering=False)
    assert jobs.calls == [
        ("inject", "crawl/crawldb", "seeds", InjectOptions()),
        ("generate", "crawl/crawldb", "crawl/segments", lists),
        ("fetch", segment, FetchOptions(parse=True)),
        ("parse", segment, ParseOptions()),
        ("updatedb", "crawl/crawldb", [segment], UpdateOptions()),
        ("invertlinks", "crawl/linkdb", [segment], InvertOptions(normalize=False, filtering=False)),
        ("dedup", "crawl/crawldb", DedupOptions(group="none")),
    ]
    assert {conf.get("mapreduce.job.reduces") for conf in jobs.confs} == {"2"}
    assert [conf.get("fetcher.timelimit.mins") for conf in jobs.confs] == [
        "-1",
        "-1",
        "180",
        *["-1"] * 4,
    ]


def test_near_duplicates_are_found_where_that_is_wished(jobs: Jobs) -> None:
    crawl(jobs, rounds=1, dedup_near=3).run()
    assert jobs.calls[-1] == ("dedup", "crawl/crawldb", DedupOptions(group="none", near=3))


def test_a_hostdb_is_kept_and_used(jobs: Jobs) -> None:
    hostdb = jobs.root / "crawl/hostdb"
    jobs.before["updatehostdb"] = lambda: hostdb.mkdir(exist_ok=True)
    crawl(jobs, hostdb_update=True, hostdb_generate=True).run()
    with_hosts = [*ROUND[:4], "updatehostdb", *ROUND[4:]]
    assert jobs.names == ["inject", *with_hosts, *with_hosts]
    options = UpdateHostDbOptions(crawldb=jobs.root / "crawl/crawldb")
    assert ("updatehostdb", "crawl/hostdb", options) in jobs.calls
    first, second = (call for call in jobs.calls if call[0] == "generate")
    assert second == (*first[:-1], replace(first[-1], hostdb=hostdb))


@pytest.mark.parametrize(("often", "rounds"), [("never", 0), ("once", 1), ("always", 2)])
def test_sitemaps_come_before_rounds(jobs: Jobs, often: str, rounds: int) -> None:
    """Sitemaps of a list come after the seeds, those of the HostDb's hosts before a round."""
    hostdb = jobs.root / "crawl/hostdb"
    (hostdb / "current").mkdir(parents=True)
    crawl(jobs, sitemaps=Path("maps"), threads=7, sitemaps_from_hostdb=often).run()
    assert jobs.names[:2] == ["inject", "sitemap"]
    assert [call[1:] for call in jobs.calls if call[0] == "sitemap"] == [
        ("crawl/crawldb", SitemapOptions(urls=Path("maps"), threads=7)),
        *[("crawl/crawldb", SitemapOptions(hostdb=hostdb, threads=7))] * rounds,
    ]


def test_steps_agree_with_the_commands() -> None:
    steps = {*TITLES, "fetch"}
    assert {name for name in steps if not flow.commands()[name].remote} == LOCAL_ONLY


def test_a_table_per_round(jobs: Jobs) -> None:
    run = crawl(jobs, rounds=2)
    run.context.verbose = True
    run.run()
    text = printed(run)
    assert text.count("Round ") == 2
    assert (
        "Round 1 of 2\n  generate       1.5 s  records 3\n  fetch          1.5 s  records 3\n"
        in text
    )
    assert (
        "2 rounds in 0:20\n  6 pages: 6 new, 0 changed, 0 unchanged, 0 gone, 0 errors, 0 bytes"
        " stored\n" in text
    )
    assert text.endswith(
        "  Go on: minutch crawl -D http.agent.name=test -D mapreduce.job.reduces=9"
        f" {jobs.root}/crawl 2\n"
        f"  Look:  minutch report {jobs.root}/crawl\n"
        f"         minutch explain {jobs.root}/crawl\n"
    )


def test_it_stops_when_nothing_is_due(jobs: Jobs) -> None:
    jobs.due = 1
    run = crawl(jobs, rounds=-1)
    run.run()
    assert jobs.names == ["inject", *ROUND, "generate"]
    assert "  the CrawlDb has no entries; the next page is due at " in printed(run)
    assert "Round 2\n  generate       1.5 s  nothing is due\n" in printed(run)


@pytest.mark.parametrize(
    ("wish", "number", "is_done"),
    [("endless", 5, False), ("endless", -1, True), ("true", 5, True), ("false", -1, False)],
)
def test_segments_of_past_rounds_are_merged(
    jobs: Jobs, wish: str, number: int, is_done: bool
) -> None:
    jobs.due = 5
    jobs.also = {"compact": {"segments merged": 4, "segments made": 1}}
    run = crawl(jobs, rounds=number)
    conf = run.context.conf.with_values({"crawl.compact": wish}).freeze()
    run.context = replace(run.context, conf=conf)
    run.run()
    assert jobs.names.count("compact") == (2 if is_done else 0)  # with four segments and more
    assert ("4 segments of earlier rounds merged to 1" in printed(run)) == is_done
    if is_done:
        options = next(call[-1] for call in jobs.calls if call[0] == "compact")
        assert options.merged == ["20260101000004"]


def test_it_waits_as_long_as_it_was_told(jobs: Jobs) -> None:
    jobs.due = 1
    run = crawl(jobs, rounds=3, wait=3600)
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        jobs.clock.advance(seconds)

    run.sleep = sleep
    run.run()
    assert sum(waited) == 3600  # after round 2; after the last there is nothing to wait for
    assert jobs.names.count("generate") == 3
    assert "Waiting for 3600 s" in printed(run)


def test_it_goes_on_for_a_day(jobs: Jobs) -> None:
    """Every page gets due each half hour; the last look is the one that a stop file ends."""
    run, part = crawl(jobs, rounds=-1, forever=True), every(4)
    clock = jobs.clock
    began = due = clock.now()
    slept: list[float] = []

    def perform(name: str, call: partial[Any], context: JobContext) -> Any:
        nonlocal due
        if name != "generate":
            return jobs.perform(name, call, context)
        jobs.due = jobs.made + (clock.now() >= due)
        due += 1_800_000 if jobs.due > jobs.made else 0
        return replace(jobs.perform(name, call, context), next_due=due)

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.advance(seconds)
        if clock.now() - began > 86_400_000 // part:
            (jobs.root / ".STOP").touch()

    run.perform, run.sleep = perform, sleep
    totals = run.run().totals
    assert totals.rounds == 48 // part + 1
    rests = re.findall(r"Resting until (.+) UTC, when the next page is due", printed(run))
    assert len(set(rests)) == len(rests) == totals.rounds
    assert max(slept) <= 5 and sum(slept) > 85_000 / part


def resting(jobs: Jobs, happens: Callable[[int], None], **more: Any) -> Crawler:
    """An endless crawl: it has nothing due after its first round; `happens` is called with the
    number of each slice that it sleeps. At the 1,000th it is stopped.
    """
    jobs.due = 1
    run = crawl(jobs, rounds=-1, forever=True, **more)
    slices = 0

    def sleep(seconds: float) -> None:
        nonlocal slices
        slices += 1
        jobs.clock.advance(seconds)
        happens(slices)
        if slices == 1000:
            (jobs.root / ".STOP").touch()

    run.sleep = sleep
    return run


@pytest.mark.parametrize("place", [".", "crawl"])
def test_a_stop_file_ends_its_rest(jobs: Jobs, place: str) -> None:
    slept: list[int] = []

    def happens(number: int) -> None:
        slept.append(number)
        if number == 3:
            (jobs.root / place / ".STOP").touch()

    run = resting(jobs, happens)
    run.run()
    assert slept == [1, 2, 3]
    assert jobs.names == ["inject", *ROUND, "generate"]
    assert ".STOP found, stopping after 2 rounds" in printed(run)
    assert not (jobs.root / place / ".STOP").exists()


@pytest.mark.parametrize("name", ["seeds.txt", "more.txt"])
def test_an_endless_crawl_takes_seeds_while_it_rests(jobs: Jobs, name: str) -> None:
    def happens(number: int) -> None:
        if number == 3:
            (jobs.root / "seeds" / name).write_text("http://example.org/new\n")
            jobs.due = 2

    resting(jobs, happens).run()
    assert jobs.names == ["inject", *ROUND, "generate", "inject", *ROUND, "generate"]


def test_seeds_that_come_while_a_round_runs_are_those_of_the_next(jobs: Jobs) -> None:
    jobs.before["dedup"] = (jobs.root / "seeds" / "more.txt").touch
    resting(jobs, lambda _: None).run()
    assert jobs.names == ["inject", *ROUND, "inject", "generate"]
    jobs.calls.clear()
    jobs.due = 3
    crawl(jobs, rounds=2).run()  # an ordinary one has its seeds at its start
    assert jobs.names == ["inject", *ROUND, *ROUND]


def test_an_endless_crawl_looks_at_what_was_injected_by_hand(jobs: Jobs) -> None:
    current = jobs.root / "crawl" / "crawldb" / "current"
    current.mkdir(parents=True)

    def happens(number: int) -> None:
        if number == 3:
            current.rename(current.with_name("old"))
            current.mkdir()
            jobs.due = 2

    resting(jobs, happens).run()
    assert jobs.names == ["inject", *ROUND, "generate", *ROUND, "generate"]


@pytest.mark.parametrize(
    ("more", "hostdb", "before", "times"),
    [
        ({"sitemaps": Path("maps")}, False, 1, 3),
        ({"sitemaps_from_hostdb": "always"}, True, 1, 3),
        ({"sitemaps_from_hostdb": "once"}, True, 1, 1),
        ({}, True, 0, 0),
    ],
)
def test_an_endless_crawl_reads_its_sitemaps_again(
    jobs: Jobs, more: dict[str, Any], hostdb: bool, before: int, times: int
) -> None:
    """Each 1,800 s, while it rests for 5,000; those of hosts with a HostDb that knows new ones."""
    if hostdb:
        (jobs.root / "crawl/hostdb").mkdir(parents=True)
        (jobs.root / "crawl/crawldb").mkdir(parents=True)
    run = resting(jobs, lambda _: None, **more)
    values = {"crawl.sitemaps.interval": "1800"}
    run = replace(run, context=replace(run.context, conf=run.context.conf.with_values(values)))
    run.run()
    assert jobs.names.count("sitemap") == times
    assert jobs.names[: jobs.names.index("fetch")].count("sitemap") == before
    assert jobs.names.count("updatehostdb") == (times if hostdb else 0)


def test_an_endless_crawl_waits_until_a_list_pays(jobs: Jobs) -> None:
    """generate decides; other crawls are not slowed."""
    run = resting(jobs, lambda _: None)
    values = {"crawl.list.min": "50", "crawl.list.late": "0.25"}
    run = replace(run, context=replace(run.context, conf=run.context.conf.with_values(values)))
    perform = run.perform

    def few(name: str, call: partial[Any], context: JobContext) -> Any:
        if name == "generate" and jobs.made == 1:
            counters = Counters({"list_too_short_total": 7})
            jobs.perform(name, call, context)
            return Generated([], counters, context.clock.now() + 60_000)
        return perform(name, call, context)

    run.perform = few
    run.run()
    options = [call[-1] for call in jobs.calls if call[0] == "generate"]
    assert {(one.least, one.late) for one in options} == {(50, 0.25)}
    assert "7 URLs due, and too few to be worth a list (crawl.list.min)" in printed(run)
    assert re.search("Resting until .+ UTC, when a list is worth its steps", printed(run))
    jobs.calls.clear()
    for more in ({"wait": 5, "rounds": 2}, {"rounds": -1}, {"rounds": 2}):
        jobs.due = jobs.made + 2
        crawl(jobs, **more).run()  # type: ignore[arg-type]
    assert {call[-1].least for call in jobs.calls if call[0] == "generate"} == {0}


@pytest.mark.parametrize("place", [".", "crawl"])
def test_a_stop_file_ends_it(jobs: Jobs, place: str) -> None:
    (jobs.root / place).mkdir(exist_ok=True)
    (jobs.root / place / ".STOP").touch()
    run = crawl(jobs, rounds=-1)
    run.run()
    assert jobs.names == ["inject"]
    assert ".STOP found, stopping after 0 rounds" in printed(run)
    crawl(jobs, rounds=1).run()
    assert jobs.names[1:] == ["inject", "generate", *ROUND[1:]]


def test_a_log_that_is_renamed_between_two_rounds_stops_nobody(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As logrotate does, at whatever moment."""
    log_file = jobs.root / "crawl" / "crawl.log"
    monkeypatch.setattr("minutch.log.log_to", lambda path, stream: path)
    jobs.before = {
        "inject": log_file.touch,
        "dedup": lambda: log_file.unlink(missing_ok=True),
    }
    assert crawl(jobs, rounds=2).run().totals.rounds == 2


@pytest.mark.parametrize("step", ROUND[1:])
def test_an_interrupted_round_is_finished_first(jobs: Jobs, step: str) -> None:
    jobs.fails, jobs.error = step, KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        crawl(jobs, rounds=3).run()
    jobs.fails = ""
    jobs.calls.clear()
    run = crawl(jobs, rounds=2, seeds=None)
    run.run()
    assert jobs.names == [*ROUND[ROUND.index(step) :], *ROUND]
    assert f"Round 1 of 2 goes on with segment 20260101000001: {step}" in printed(run)
    assert not (jobs.root / "crawl" / ".round").exists()


def test_an_interrupted_fetch_stops_after_itself(jobs: Jobs) -> None:
    jobs.also["fetch"] = {"fetched": 1, INTERRUPTED: 1}
    with pytest.raises(KeyboardInterrupt):
        crawl(jobs).run()
    assert jobs.names == ["inject", "generate", "fetch"]
    jobs.calls.clear()
    crawl(jobs, rounds=1, seeds=None).run()
    assert jobs.names == ROUND[2:]


def test_a_segment_that_somebody_generated_comes_first(jobs: Jobs) -> None:
    (jobs.root / "crawl" / "segments" / "20250101000000" / "crawl_generate").mkdir(parents=True)
    crawl(jobs, rounds=1).run()
    assert jobs.names == ["inject", *ROUND[1:]]


def test_a_fetcher_that_parses_needs_no_parse(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PARTS, "fetch", (*PARTS["fetch"], *PARTS["parse"]))
    jobs.reports["fetch"] = {"ParseSegment": Counters({"pages": 4, "success": 3})}
    run = crawl(jobs, rounds=2)
    found = run.run().by_step
    assert jobs.names == ["inject", *[step for step in ROUND if step != "parse"] * 2]
    assert found["ParseSegment"] == {"pages": 8, "success": 6}
    assert "  fetch          1.5 s  nothing\n  parse          0.0 s  3 documents\n" in printed(run)


@pytest.mark.parametrize("value", ["true", "false"])
def test_who_says_whether_the_fetcher_parses_has_it_so(jobs: Jobs, value: str) -> None:
    """The default does not count, whoever it is that ships it: Nutch's file says false, too."""
    run = crawl(jobs, rounds=1)
    conf = run.context.conf.with_values({"fetcher.parse": value}).freeze()
    replace(run, context=replace(run.context, conf=conf)).run()
    assert ("fetch", "crawl/segments/20260101000001", FetchOptions(parse=False)) in jobs.calls


def test_a_failing_step_ends_it(jobs: Jobs) -> None:
    jobs.fails = "updatedb"
    with pytest.raises(MinutchError, match="failed"):
        crawl(jobs).run()
    assert jobs.names[-1] == "updatedb"


def test_a_crawl_that_refuses_all_pages_ends_with_an_error(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its first round: the next ones would not get any either."""
    jobs.also["fetch"] = {"generated": 2, Outcome.SKIPPED_REFUSED.label: 2}
    crawl(jobs, rounds=3).run()
    assert jobs.names.count("fetch") == 1
    monkeypatch.setattr(crawl_module, "outcomes_of", lambda segment, proxy: Outcomes())
    with pytest.raises(MinutchError, match="nothing was fetched"):
        crawl(jobs, rounds=3).run()
    jobs.also["fetch"]["generated"] = 3
    crawl(jobs, rounds=3).run()
    assert jobs.names.count("fetch") == 5


def test_no_more_pages_are_asked_for_than_wished(jobs: Jobs) -> None:
    jobs.also["fetch"] = {"generated": 4}
    crawl(jobs, rounds=-1, most=10).run()
    limits = [call[-1].top_n for call in jobs.calls if call[0] == "generate"]
    assert limits == [10, 6, 2]
    parts = [
        conf.get("mapreduce.job.reduces")
        for name, conf in zip(jobs.names, jobs.confs, strict=True)
        if name == "generate"
    ]
    assert set(parts) == {"1"}


@pytest.mark.parametrize("step", ROUND[1:])
@pytest.mark.parametrize("error", few([KeyboardInterrupt(), MinutchError("killed")]))
def test_the_limit_of_pages_binds_a_crawl_that_was_interrupted(
    jobs: Jobs, step: str, error: BaseException
) -> None:
    """In its second round; the third one has what is left. A crawl that has come to its end begins
    anew.
    """
    jobs.also["fetch"] = {"generated": 4}
    at_two = {"generate": lambda: setattr(jobs, "fails", step if jobs.made == 1 else "")}
    jobs.before, jobs.error = at_two, error  # type: ignore[assignment]
    with pytest.raises((KeyboardInterrupt, MinutchError)):
        crawl(jobs, rounds=-1, most=10).run()
    jobs.fails, jobs.before = "", {}
    for _ in range(2):
        crawl(jobs, rounds=-1, seeds=None, most=10).run()
    limits = [call[-1].top_n for call in jobs.calls if call[0] == "generate"]
    assert limits == [10, 6, 2, 10, 6, 2]
    assert not (jobs.root / "crawl" / ".round").exists()


def test_the_limit_of_pages_binds_a_crawl_that_was_stopped(jobs: Jobs) -> None:
    jobs.also["fetch"] = {"generated": 4}
    jobs.before["dedup"] = (jobs.root / ".STOP").touch
    for _ in range(2):
        crawl(jobs, rounds=-1, most=10).run()
    assert [call[-1].top_n for call in jobs.calls if call[0] == "generate"] == [10, 6]


def test_counters_come_back(jobs: Jobs) -> None:
    jobs.also["updatedb"] = {"db_fetched": 5}
    crawled = crawl(jobs).run()
    assert crawled.by_step["Fetcher"] == {"records": 6}
    assert crawled.by_step["CrawlDb update"] == {"records": 6, "db_fetched": 5}
    assert crawled.counters["db_fetched"] == 5
    assert crawled.totals.statuses == {"db_fetched": 5}


def test_two_crawls_of_one_folder(jobs: Jobs) -> None:
    seen: list[str] = []

    def another() -> None:
        with pytest.raises(LockedError) as caught:
            crawl(jobs, rounds=1).run()
        seen.append(str(caught.value))

    jobs.before["fetch"] = another
    crawl(jobs, rounds=1).run()
    assert len(seen) == 1
    crawl(jobs, rounds=0).run()


@pytest.mark.parametrize(
    ("writer", "cleans"), [("indexer-local", True), ("indexer-(local|csv)", False)]
)
def test_an_index_is_cleaned_where_all_writers_keep_it(
    jobs: Jobs, writer: str, cleans: bool
) -> None:
    (jobs.root / "index-writers.xml").write_text(
        '<writers><writer id="a" class="minutch.LocalIndexWriter"><mapping/></writer><writer id="b"'
        ' class="org.apache.nutch.indexwriter.csv.CSVIndexWriter"><mapping/></writer></writers>'
    )
    run = crawl(jobs, rounds=1, index=True)
    settings = {
        "plugin.includes": f"protocol-http|parse-html|{writer}",
        "indexer.indexwriters.file": str(jobs.root / "index-writers.xml"),
    }
    run.context.conf = run.context.conf.with_values(settings).freeze()
    run.run()
    segment = "crawl/segments/20260101000001"
    options = IndexOptions(linkdb=jobs.root / "crawl/linkdb", delete_gone=True)
    index = ("index", "crawl/crawldb", [segment], options)
    clean = ("clean", "crawl/crawldb", CleanOptions())
    assert jobs.calls[-1 - cleans :] == [index, clean][: 1 + cleans]


def test_writers_are_asked_before_anything_is_fetched(jobs: Jobs) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    (jobs.root / "index-writers.xml").write_text(
        '<writers><writer id="away" class="org.apache.nutch.indexwriter.solr.SolrIndexWriter">'
        f'<parameters><param name="url" value="http://127.0.0.1:{port}/solr/nutch"/></parameters>'
        "<mapping/></writer></writers>"
    )
    run = crawl(jobs, rounds=1, index=True)
    settings = {
        "plugin.includes": "protocol-http|parse-html|indexer-solr",
        "indexer.indexwriters.file": str(jobs.root / "index-writers.xml"),
    }
    run.context.conf = run.context.conf.with_values(settings).freeze()
    with pytest.raises(MinutchError, match=f"index writer away: .*{port}"):
        run.run()
    assert jobs.calls == []


def test_what_cannot_work_is_refused_at_once(jobs: Jobs) -> None:
    run = crawl(jobs, seeds="nowhere")
    with pytest.raises(MinutchError, match=r"no seeds: .*nowhere does not exist"):
        run.run()
    run = crawl(jobs)
    run.context.conf = Configuration.load([])
    with pytest.raises(ConfigError, match=r"http\.agent\.name is not set"):
        run.run()
    assert jobs.calls == []
    assert not (jobs.root / "crawl").exists()
