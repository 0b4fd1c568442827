"""bin/crawl's rounds, with jobs that only note that they were called."""

from __future__ import annotations

import io
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.commands import crawl as crawl_module
from minutch.commands import flow
from minutch.commands.crawl import INTERRUPTED, Crawl
from minutch.commands.crawloptions import CrawlOptions
from minutch.conf import Configuration
from minutch.cycle.fetch.outcomes import Outcomes
from minutch.errors import ConfigError, LockedError, MinutchError
from minutch.job import JobContext

PARTS = {"fetch": ("crawl_fetch", "content"), "parse": ("crawl_parse", "parse_data", "parse_text")}


@dataclass
class Jobs:
    """Stands in for all jobs; `due` is how often generate makes a segment, `fails` the step that
    fails.
    """

    root: Path
    due: int = 99
    fails: str = ""
    error: BaseException | None = None
    calls: list[tuple[str, list[str]]] = field(default_factory=list)
    confs: list[Configuration] = field(default_factory=list)
    made: int = 0

    def run(self, name: str) -> Callable[[list[str], JobContext], int]:
        def run(args: list[str], context: JobContext) -> int:
            self.calls.append((name, [word.removeprefix(f"{self.root}/") for word in args]))
            self.confs.append(context.conf)
            context.clock.advance(1.5)  # type: ignore[attr-defined]
            if name == self.fails:
                if self.error:
                    raise self.error
                return -1
            return self._work(name, args, context)

        return run

    def _work(self, name: str, args: list[str], context: JobContext) -> int:
        if name == "generate":
            if self.made >= self.due:
                return 1
            self.made += 1
            Path(args[1], f"2026010100000{self.made}", "crawl_generate").mkdir(parents=True)
        for part in PARTS.get(name, ()):
            Path(args[0], part).mkdir(parents=True)
        context.report(name, {"records": 3})
        return 0

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    monkeypatch.chdir(tmp_path)
    stand_ins = Jobs(tmp_path)
    for command in flow.commands().values():
        module = types.ModuleType(command.module)
        module.run = stand_ins.run(command.name)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, command.module, module)
    (tmp_path / "seeds").mkdir()
    (tmp_path / "seeds" / "seeds.txt").write_text("http://example.org/\n")
    monkeypatch.setattr(crawl_module, "outcomes_of", lambda segment, proxy: Outcomes(new=3))
    return stand_ins


def crawl(
    jobs: Jobs, rounds: int = 2, seeds: str | None = "seeds", wait: int | None = None
) -> Crawl:
    options = CrawlOptions(
        str(jobs.root / "crawl"), rounds, seeds and str(jobs.root / seeds), wait=wait
    )
    conf = Configuration.load(
        [], overrides={"http.agent.name": "test", "mapreduce.job.reduces": "9"}
    )
    return Crawl(options, JobContext(conf.freeze(), FakeClock(), io.StringIO(), io.StringIO()))


def printed(run: Crawl) -> str:
    assert isinstance(run.context.out, io.StringIO)
    return run.context.out.getvalue()


ROUND = ["generate", "fetch", "parse", "updatedb", "invertlinks", "dedup"]


def test_rounds_are_nutchs_steps_with_nutchs_options(jobs: Jobs) -> None:
    run = crawl(jobs, rounds=1)
    assert run.run() == 0
    segment = "crawl/segments/20260101000001"
    assert jobs.calls == [
        ("inject", ["crawl/crawldb", "seeds"]),
        (
            "generate",
            ["crawl/crawldb", "crawl/segments", "-topN", "50000", "-numFetchers", "1", "-noFilter"],
        ),
        ("fetch", [segment, "-threads", "50"]),
        ("parse", [segment]),
        ("updatedb", ["crawl/crawldb", segment]),
        ("invertlinks", ["crawl/linkdb", segment, "-noNormalize", "-nofilter"]),
        ("dedup", ["crawl/crawldb", "-group", "none"]),
    ]
    assert {conf.get("mapreduce.job.reduces") for conf in jobs.confs} == {"2"}
    assert [conf.get("fetcher.timelimit.mins") for conf in jobs.confs] == [
        "-1",
        "-1",
        "180",
        *["-1"] * 4,
    ]


def test_near_duplicates_are_found_where_that_is_wished(jobs: Jobs) -> None:
    run = crawl(jobs, rounds=1)
    run.options = replace(run.options, dedup_near=3)
    assert run.run() == 0
    assert jobs.calls[-1] == ("dedup", ["crawl/crawldb", "-group", "none", "-near", "3"])


def test_a_hostdb_is_kept_and_used(jobs: Jobs) -> None:
    run = crawl(jobs, rounds=2)
    run.options = replace(run.options, hostdb_update=True, hostdb_generate=True)
    make = jobs.run("updatehostdb")

    def update(args: list[str], context: JobContext) -> int:
        (jobs.root / "crawl/hostdb").mkdir(exist_ok=True)
        return make(args, context)

    sys.modules["minutch.commands.updatehostdb"].run = update  # type: ignore[attr-defined]
    assert run.run() == 0
    with_hosts = [*ROUND[:4], "updatehostdb", *ROUND[4:]]
    assert jobs.names == ["inject", *with_hosts, *with_hosts]
    assert ("updatehostdb", ["-crawldb", "crawl/crawldb", "-hostdb", "crawl/hostdb"]) in jobs.calls
    first, second = (args for name, args in jobs.calls if name == "generate")
    assert second == [*first, "-hostdb", "crawl/hostdb"]


@pytest.mark.parametrize(("often", "rounds"), [("never", 0), ("once", 1), ("always", 2)])
def test_sitemaps_come_before_rounds(jobs: Jobs, often: str, rounds: int) -> None:
    """Those of a list after the seeds, those of the HostDb's hosts before a round."""
    (jobs.root / "crawl/hostdb/current").mkdir(parents=True)
    options = CrawlOptions(
        str(jobs.root / "crawl"), 2, str(jobs.root / "seeds"), sitemaps="maps", threads=7
    )
    options.sitemaps_from_hostdb = often
    conf = Configuration.load([], overrides={"http.agent.name": "test"})
    assert (
        Crawl(options, JobContext(conf.freeze(), FakeClock(), io.StringIO(), io.StringIO())).run()
        == 0
    )
    assert jobs.names[:2] == ["inject", "sitemap"]
    calls = [arguments for name, arguments in jobs.calls if name == "sitemap"]
    assert calls == [
        ["crawl/crawldb", "-sitemapUrls", "maps", "-threads", "7"],
        *[["crawl/crawldb", "-hostdb", "crawl/hostdb", "-threads", "7"]] * rounds,
    ]


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
        f"  Go on: minutch crawl [the same -D ...] {jobs.root}/crawl 2\n"
        f"  Look:  minutch readdb {jobs.root}/crawl/crawldb -stats\n"
        f"         minutch readseg -list -dir {jobs.root}/crawl/segments\n"
    )


def test_it_stops_when_nothing_is_due(jobs: Jobs) -> None:
    jobs.due = 1
    run = crawl(jobs, rounds=-1)
    assert run.run() == 0
    assert jobs.names == ["inject", *ROUND, "generate"]
    assert "Round 2\n  generate       1.5 s  nothing is due\n" in printed(run)


def test_it_waits_as_long_as_it_was_told(jobs: Jobs) -> None:
    jobs.due = 1
    run = crawl(jobs, rounds=3, wait=3600)
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        run.context.clock.advance(seconds)  # type: ignore[attr-defined]

    run.sleep = sleep
    run.run()
    assert sum(waited) == 3600  # after round 2; after the last there is nothing to wait for
    assert jobs.names.count("generate") == 3
    assert "Waiting for 3600 s" in printed(run)


@pytest.mark.parametrize("place", [".", "crawl"])
def test_a_stop_file_ends_it(jobs: Jobs, place: str) -> None:
    (jobs.root / place).mkdir(exist_ok=True)
    (jobs.root / place / ".STOP").touch()
    run = crawl(jobs, rounds=-1)
    assert run.run() == 0
    assert jobs.names == ["inject"]
    assert ".STOP found, stopping after 0 rounds" in printed(run)


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
    def fetch(args: list[str], context: JobContext) -> int:
        code = jobs.run("fetch")(args, context)
        context.report("Fetcher", {"fetched": 1, INTERRUPTED: 1})
        return code

    sys.modules["minutch.commands.fetch"].run = fetch  # type: ignore[attr-defined]
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
    crawl(jobs, rounds=1).run()
    assert jobs.names == ["inject", "generate", "fetch", "updatedb", "invertlinks", "dedup"]


def test_a_failing_step_ends_it(jobs: Jobs) -> None:
    jobs.fails = "updatedb"
    with pytest.raises(MinutchError, match=r"^updatedb .* failed with exit code -1$"):
        crawl(jobs).run()
    assert jobs.names[-1] == "updatedb"


def test_two_crawls_of_one_folder(jobs: Jobs) -> None:
    first = crawl(jobs, rounds=1)
    seen: list[str] = []

    def fetch(args: list[str], context: JobContext) -> int:
        with pytest.raises(LockedError) as caught:
            crawl(jobs, rounds=1).run()
        seen.append(str(caught.value))
        return jobs.run("fetch")(args, context)

    sys.modules["minutch.commands.fetch"].run = fetch  # type: ignore[attr-defined]
    first.run()
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
    run = crawl(jobs, rounds=1)
    run.options.index = True
    settings = {
        "plugin.includes": f"protocol-http|parse-html|{writer}",
        "indexer.indexwriters.file": str(jobs.root / "index-writers.xml"),
    }
    run.context.conf = run.context.conf.with_values(settings).freeze()
    run.run()
    segment = "crawl/segments/20260101000001"
    index = ("index", ["crawl/crawldb", "-linkdb", "crawl/linkdb", segment, "-deleteGone"])
    assert jobs.calls[-1 - cleans :] == [index, ("clean", ["crawl/crawldb"])][: 1 + cleans]


def test_what_cannot_work_is_refused_at_once(jobs: Jobs) -> None:
    run = crawl(jobs, seeds="nowhere")
    with pytest.raises(MinutchError, match=r"no seeds: .*nowhere does not exist"):
        run.run()
    run = crawl(jobs)
    run.context.conf = Configuration.load([])
    with pytest.raises(ConfigError, match=r"http\.agent\.name is not set"):
        run.run()
    run = crawl(jobs)
    run.options.index = True
    if flow.find("index") is None:
        with pytest.raises(MinutchError, match="the options ask for index"):
            run.run()
    assert jobs.calls == []
    assert not (jobs.root / "crawl").exists()
