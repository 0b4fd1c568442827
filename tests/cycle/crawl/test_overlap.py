"""Rounds that overlap: a host that takes longer than the others goes on while the rest of its round
is dealt with. Every page is fetched once and politely, and the segments are those of any crawl.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from minutch.clock import SystemClock
from minutch.conf import Configuration
from minutch.cycle.crawl import policy
from minutch.cycle.crawl.crawler import Crawled, Crawler, crawl
from minutch.cycle.crawl.outside import STOP
from minutch.cycle.crawl.policy import FewHosts, OneByOne, Overlapping
from minutch.cycle.crawl.rounds import Round
from minutch.cycle.crawl.steps import CrawlOptions
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetch import listfetch, workers
from minutch.cycle.fetch.fetch import Fetch
from minutch.cycle.fetch.ledger import Interrupted, Outcome
from minutch.cycle.fetch.settings import FetchSettings
from minutch.cycle.fetch.workers import FetchProcesses
from minutch.cycle.segment.store import Segment, segments_in
from minutch.inspect.fsck.crawlcheck import problems
from minutch.job import JobContext
from minutch.paths import as_path
from minutch.work.tables.lock import LOCK_NAME
from tests.cycle.fetch.test_seen import NOW
from tests.support.examples import few
from tests.support.golden import PROJECT
from tests.support.randomweb import Plan, RandomWeb
from tests.support.segments import LOOPBACK
from tests.support.timedserver import NOT_FOUND, Asked, TimedServer, page

DELAY = 0.3
DAY = 86_400_000
SLOW = "127.0.3.1"
"""A host with ten pages, all of them seeds."""
QUICK = [f"127.0.3.{number}" for number in range(2, 14)]
"""Hosts with a seed each, that has two links."""
PROPERTIES = {
    **LOOPBACK,
    "plugin.includes": "protocol-http|urlfilter-regex|parse-html|urlnormalizer-pass|scoring-opic",
    "fetcher.server.delay": str(DELAY),
    "fetcher.min.crawl.delay": str(DELAY),
}


def answer(host: str, path: str) -> bytes:
    if path == "/robots.txt":
        return NOT_FOUND
    if host == SLOW or path != "/":
        return page(f"<html><title>{host}{path}</title>words</html>".encode())
    body = f"<html><title>{host}</title><a href=/a>a</a> <a href=/b>b</a></html>"
    return page(body.encode())


@pytest.fixture
def server() -> Iterator[TimedServer]:
    with TimedServer(answer) as running:
        yield running


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "SECONDS", 0)


def family() -> list[int]:
    """This process and all below it."""
    found = [os.getpid()]
    for pid in found:
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            found += map(int, children.read_text().split())
    return found


def everything(server: TimedServer) -> set[str]:
    slow = {server.url(SLOW, f"/{number}") for number in range(10)}
    return slow | {server.url(host, path) for host in QUICK for path in ("/", "/a", "/b")}


def seeds(server: TimedServer, folder: Path) -> Path:
    urls = [server.url(SLOW, f"/{number}") for number in range(10)]
    urls += [server.url(host) for host in QUICK]
    path = folder / "seeds.txt"
    path.write_text("".join(f"{url}\n" for url in urls))
    return path


def context_of(**more: str) -> JobContext:
    given = {name.replace("__", "."): value for name, value in more.items()}
    conf = Configuration.load([]).with_values(PROPERTIES).with_values(given)
    return JobContext(conf.freeze(), SystemClock(), out=io.StringIO(), err=io.StringIO())


def run(server: TimedServer, folder: Path, rounds: int = -1, **more: str) -> Crawled:
    options = CrawlOptions(rounds, seeds(server, folder))
    return crawl(folder / "crawl", options, context=context_of(**more))


def segments(folder: Path) -> list[Segment]:
    return segments_in(folder / "crawl" / "segments")


def fetched(folder: Path) -> Counter[str]:
    """How often each page is among those that were fetched, in all segments."""
    found: Counter[str] = Counter()
    for segment in segments(folder):
        for url, datum in segment.records("crawl_fetch"):
            found[url] += datum.status_name == "fetch_success"  # type: ignore[attr-defined]
    return found


def listed(segment: Segment) -> set[str]:
    return {url for url, _ in segment.records("crawl_generate")}


def assert_whole(server: TimedServer, folder: Path) -> None:
    """All pages are there, once, in stores that agree, and each host had its pauses."""
    assert fetched(folder) == dict.fromkeys(everything(server), 1)
    statuses = Counter(
        datum.status_name for _, datum in CrawlDb(folder / "crawl" / "crawldb").items()
    )
    assert statuses == {"db_fetched": len(everything(server))}
    for segment in segments(folder):
        assert segment.is_complete()
        assert not segment.has("_fetch")
    gaps = [gap for of_host in server.gaps().values() for gap in of_host]
    assert min(gaps) > DELAY - 0.02
    assert not list(problems(folder / "crawl", context_of().conf))


@pytest.mark.parametrize(
    "more",
    few(
        [
            {"minutch__fetch__processes": "2"},
            {},
            {"fetcher__parse": "true", "fetcher__warc": "true"},
            {"fetcher__queue__mode": "byIP"},
            {"fetcher__normalize__urls": "true", "generate__update__crawldb": "true"},
        ]
    ),
)
def test_what_is_left_goes_on_in_the_next_list(
    server: TimedServer, tmp_path: Path, more: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    def are_behind(asked: Asked) -> bool:
        """The slow host waits for the others, which a process that starts late may ask for."""
        quick = {one.host for one in server.asked} & {*QUICK}
        return asked.host == SLOW and len(server.of(SLOW)) > 2 and len(quick) < len(QUICK)

    server.holds = are_behind
    caplog.set_level("INFO")
    crawled = run(server, tmp_path, http__timeout="60000", **more)
    assert_whole(server, tmp_path)
    first, second = segments(tmp_path)[:2]
    left = listed(first) & listed(second)
    assert left and all(f"{SLOW}:" in url for url in left)
    assert {server.url(QUICK[0], "/a"), server.url(QUICK[0], "/b")} < listed(second)
    counters = crawled.by_step["Fetcher"]
    assert counters["fetched"] == len(everything(server))
    assert counters["generated"] == counters["fetched"] + counters[Outcome.SKIPPED_TAIL.label]
    assert f"open segments: {first.name}, {second.name}\n" in caplog.text
    said = f"{len(left)} URLs of segment {first.name} go on in segment {second.name}\n"
    assert said in caplog.text


def test_the_record_says_what_is_open(
    server: TimedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each step: the segment that it is for, and those that are fetched meanwhile."""
    records: list[dict[str, list[str]]] = []
    save = Round.save

    def saved(self: Round, crawl_dir: Path) -> None:
        save(self, crawl_dir)
        records.append(json.loads((crawl_dir / ".round").read_text()))

    monkeypatch.setattr(Round, "save", saved)
    run(server, tmp_path)
    first, second = (segment.name for segment in segments(tmp_path)[:2])
    of_first = [record for record in records if record["segment"] == first]
    assert [record.get("open") for record in of_first] == [None, *[[second]] * 4]
    assert of_first[-1]["done"] == ["generate", "fetch", "parse", "updatedb", "invertlinks"]


@pytest.mark.parametrize(
    ("folder", "more"),
    [("crawl", {"minutch__engine": "spark"}), ("hdfs://host/crawl", {})],
)
def test_where_rounds_cannot_overlap_it_says_so(
    folder: str, more: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[object] = []
    monkeypatch.setattr(Crawler, "run", lambda self: ran.append(self.policy_of))
    context = context_of(**more)
    crawl(as_path(folder), context=context)
    assert ran == [OneByOne]
    assert isinstance(context.out, io.StringIO)
    assert context.out.getvalue().startswith("Rounds follow each other: ")
    crawl(Path("crawl"), context=context_of())
    assert ran[1:] == [Overlapping]


def test_the_last_round_is_not_turned_over(server: TimedServer, tmp_path: Path) -> None:
    run(server, tmp_path, rounds=1)
    (segment,) = segments(tmp_path)
    assert fetched(tmp_path) == dict.fromkeys(listed(segment), 1)


@pytest.mark.slow  # whole crawls
@pytest.mark.parametrize("rounds", few([2, 3]))
def test_rounds_have_as_many_lists_as_ever(
    server: TimedServer, tmp_path: Path, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "SETTLED", 0.5)
    run(server, tmp_path, rounds=rounds)
    assert 2 <= len(segments(tmp_path)) <= rounds
    assert_whole(server, tmp_path)


@pytest.mark.slow  # a whole crawl
def test_rounds_follow_each_other_if_that_is_wished(server: TimedServer, tmp_path: Path) -> None:
    run(server, tmp_path, crawl__overlap="false")
    first, second = segments(tmp_path)
    assert not listed(first) & listed(second)
    assert_whole(server, tmp_path)


@pytest.mark.slow
def test_list_after_list_opens_no_more_files(
    server: TimedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of this process, of the fetch's and of its workers: pages that are due again each second."""
    opened: list[int] = []
    save = Round.save

    def saved(self: Round, crawl_dir: Path) -> None:
        save(self, crawl_dir)
        if self.done == ["generate", "fetch"]:
            opened.append(sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in family()))

    monkeypatch.setattr(Round, "save", saved)
    options = CrawlOptions(8, seeds(server, tmp_path), wait=1)
    context = context_of(db__fetch__interval__default="1", fetcher__server__delay="0.05")
    crawl(tmp_path / "crawl", options, context=context)
    assert len(opened) >= 5
    assert max(opened[3:]) <= max(opened[1:3]) + 2, opened


def test_a_list_that_is_worth_more_processes_gets_them(
    server: TimedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first list of a crawl may be a single site's page. No host rests for less."""
    counts: list[int] = []
    start = FetchProcesses.start

    def started(self: FetchProcesses) -> None:
        counts.append(self.count)
        start(self)

    monkeypatch.setattr(FetchProcesses, "start", started)
    monkeypatch.setattr(workers, "LIST_BYTES", 120)
    monkeypatch.setattr(listfetch, "workers", lambda: 4)
    (tmp_path / "seeds.txt").write_text(server.url(QUICK[0]) + "\n")
    crawl(tmp_path / "crawl", CrawlOptions(-1, tmp_path / "seeds.txt"), context=context_of())
    assert counts == [1, 2]
    assert fetched(tmp_path) == {server.url(QUICK[0], path): 1 for path in ("/", "/a", "/b")}
    assert min(gap for gaps in server.gaps().values() for gap in gaps) > DELAY - 0.02


@pytest.mark.slow  # a whole crawl
def test_a_crawl_that_always_has_something_in_flight_gets_more_processes(
    server: TimedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SLOW is being asked when the list grows, and waits no less for that."""
    counts: list[int] = []
    start = FetchProcesses.start

    def started(self: FetchProcesses) -> None:
        counts.append(self.count)
        start(self)

    def grown(settings: FetchSettings, files: list[Path], cores: int) -> int:
        return 2 if len(files) > 1 else 1

    monkeypatch.setattr(FetchProcesses, "start", started)
    monkeypatch.setattr(listfetch, "number_of", grown)
    run(server, tmp_path)
    assert counts == [1, 2]
    assert_whole(server, tmp_path)
    assert listed(segments(tmp_path)[0]) & listed(segments(tmp_path)[1])


class Set(SystemClock):
    """The machine's clock, as somebody has set it."""

    wrong = 0

    def now(self) -> int:
        return super().now() + self.wrong


@pytest.mark.parametrize("days", few([-0.2, 40]))
def test_the_machines_clock_is_set_during_a_list(
    server: TimedServer,
    tmp_path: Path,
    days: float,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Back by more than a list may take: none is late. Forward by more than the pages' interval:
    they are due once more, not in each round, as those of a list have the dates of its time.
    """
    clock, begun = Set(), SystemClock().now()
    begin = Fetch.begin

    def set_then(self: Fetch, path: Path, context: JobContext) -> tuple[int, int]:
        found = begin(self, path, context)
        clock.wrong = round(days * DAY)
        return found

    monkeypatch.setattr(Fetch, "begin", set_then)
    context = replace(context_of(), clock=clock)
    options = CrawlOptions(5, seeds(server, tmp_path))
    crawl(tmp_path / "crawl", options, context=context)
    found = fetched(tmp_path)
    assert set(found) == everything(server)
    dates = [
        datum.fetch_time - 30 * DAY for _, datum in CrawlDb(tmp_path / "crawl/crawldb").items()
    ]
    if days < 0:
        assert max(found.values()) == 1
        assert min(dates) >= begun
    else:
        requests = Counter(asked.host + asked.path for asked in server.asked)
        assert max(count for name, count in requests.items() if "robots" not in name) == 2
        assert min(dates) >= begun + 40 * DAY
    gaps = [gap for of_host in server.gaps().values() for gap in of_host]
    assert min(gaps) > DELAY - 0.02
    assert "the machine's clock was set" in caplog.text
    assert caplog.text.count("the machine's clock was set") == 1


def test_the_machines_clock_is_set_between_two_lists(
    server: TimedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages that are chosen after that have dates of then, though their segment was begun before:
    what is asked for first in that list is not asked for again.
    """
    clock, before = Set(), set[str]()
    turn, add = Fetch.turn, Fetch.add

    def turn_then(self: Fetch, path: Path, context: JobContext) -> int:
        found = turn(self, path, context)
        clock.wrong = 40 * DAY
        return found

    def add_then(self: Fetch, files: list[Path]) -> int:
        found = add(self, files)
        if not before:
            before.update(asked.host + asked.path for asked in server.asked)
        return found

    monkeypatch.setattr(Fetch, "turn", turn_then)
    monkeypatch.setattr(Fetch, "add", add_then)
    context = replace(context_of(), clock=clock)
    crawl(tmp_path / "crawl", CrawlOptions(5, seeds(server, tmp_path)), context=context)
    assert set(fetched(tmp_path)) == everything(server)
    requests = Counter(asked.host + asked.path for asked in server.asked)
    later = {name: count for name, count in requests.items() if name not in before}
    assert len(later) > 5
    assert max(later.values()) == 1


# -- bad days --------------------------------------------------------------------------------------


class Command:
    """`minutch crawl` in a process of its own."""

    def __init__(self, folder: Path, seeds: Path, *more: str) -> None:
        self.folder = folder
        code = (
            "import sys; from minutch.cycle.crawl import policy; policy.SECONDS = 0;"
            "from minutch.commands.cli import main; sys.exit(main())"
        )
        options = [f"-D{name}={value}" for name, value in PROPERTIES.items()]
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "crawl", *options, *more, str(seeds),
             str(folder / "crawl"), "-1"],
            cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def wait_for(self, is_time: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not is_time():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < end
            time.sleep(0.01)

    def end(self) -> str:
        return self.process.communicate(timeout=60)[0]


def parts(folder: Path, name: str) -> int:
    return len(list((folder / "crawl").glob(f"segments/2*/{name}")))


MOMENTS: dict[str, Callable[[Path], bool]] = {
    "a list is turned over": lambda folder: parts(folder, "crawl_generate") == 2,
    "the first segment is whole": lambda folder: parts(folder, "crawl_fetch") == 1,
    "the second list has its pages": lambda folder: (
        len(list((folder / "crawl").glob("segments/2*/crawl_generate/part-*"))) > 3
    ),
}


def test_what_a_signal_and_a_kill_leave_of_two_lists_goes_on(
    server: TimedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a list was turned over: a kill leaves the folder as it is copied then."""
    add, killed = Fetch.add, tmp_path / "killed"

    def add_never(self: Fetch, files: list[Path]) -> int:
        if killed.exists():
            return add(self, files)
        with suppress(shutil.Error):  # a file that is gone meanwhile
            ignored = shutil.ignore_patterns(LOCK_NAME)
            shutil.copytree(tmp_path / "crawl", killed / "crawl", ignore=ignored)
        os.kill(os.getpid(), signal.SIGINT)
        return add(self, files)

    monkeypatch.setattr(Fetch, "add", add_never)
    with pytest.raises((Interrupted, KeyboardInterrupt)):
        run(server, tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(policy, "SECONDS", 0)
    assert parts(tmp_path, "crawl_generate") == parts(killed, "crawl_generate") == 2
    run(server, tmp_path)
    assert_whole(server, tmp_path)
    run(server, killed)
    assert fetched(killed) == dict.fromkeys(everything(server), 1)


@pytest.mark.slow  # processes
@pytest.mark.parametrize("moment", few(MOMENTS))
def test_after_a_kill_nothing_is_lost(server: TimedServer, tmp_path: Path, moment: str) -> None:
    command = Command(tmp_path, seeds(server, tmp_path))
    command.wait_for(lambda: MOMENTS[moment](tmp_path))
    command.process.kill()
    command.end()
    run(server, tmp_path)
    found = fetched(tmp_path)
    assert set(found) == everything(server)
    assert min(found.values()) == 1
    asked = Counter(asked.host + asked.path for asked in server.asked)
    again = {url: count for url, count in found.items() if count > 1}
    assert not again, (again, asked)


@pytest.mark.slow  # processes
@pytest.mark.parametrize("moment", few(["a list is turned over", "the second list has its pages"]))
def test_a_signal_ends_it_in_order(server: TimedServer, tmp_path: Path, moment: str) -> None:
    command = Command(tmp_path, seeds(server, tmp_path))
    command.wait_for(lambda: MOMENTS[moment](tmp_path))
    command.process.send_signal(signal.SIGINT)
    said = command.end()
    assert command.process.returncode == 130, said
    assert "Traceback" not in said
    run(server, tmp_path)
    assert_whole(server, tmp_path)
    assert max(Counter(asked.host + asked.path for asked in server.asked).values()) <= 2


def test_a_stop_file_lets_open_lists_come_to_their_end(server: TimedServer, tmp_path: Path) -> None:
    def stop() -> None:
        while not MOMENTS["a list is turned over"](tmp_path):
            time.sleep(0.01)
        (tmp_path / "crawl" / STOP).touch()

    context, options = context_of(), CrawlOptions(-1, seeds(server, tmp_path))
    threading.Thread(target=stop, daemon=True).start()
    crawl(tmp_path / "crawl", options, context=context)
    said = context.out.getvalue()  # type: ignore[attr-defined]
    assert re.search(r"\.STOP found, stopping after \d rounds?", said)
    for segment in segments(tmp_path):
        assert segment.is_complete()
    assert sum(f"{SLOW}:" in url for url in fetched(tmp_path)) == 10
    run(server, tmp_path)
    assert_whole(server, tmp_path)


FAILING = "127.0.3.20"
"""A host with three pages that answers each request with 500, and rests for minutes after that."""
PATIENT = {
    "http__robots__503__defer__visits__delay": "300000",
    "http__robots__503__defer__visits__wait": "-1",
    "fetcher__exceptions__per__queue__delay": "200",
}
"""A fetch that waits for hosts that defer visits, or that fail."""


class BadDay:
    """SLOW defers visits, FAILING fails, a name has no address, a port is closed. When all others
    have been asked, and `begins` was called, `happens` is called.
    """

    def __init__(self, folder: Path, happens: Callable[[], object]) -> None:
        self.happens = happens
        self.is_over = False
        self.seen: set[str] = set()
        self.server = TimedServer(self)
        with (folder / "bad.txt").open("w") as seeds:
            seeds.writelines(f"http://no.such.host.invalid/{n}\n" for n in range(3))
            seeds.writelines(f"http://127.0.3.30:1/{n}\n" for n in range(3))

    def __call__(self, host: str, path: str) -> bytes:
        if self.is_over:
            return answer(host, path)
        self.seen.add(host)
        if self.seen >= {SLOW, FAILING, *QUICK} and path != "/robots.txt":
            self.seen.clear()
            self.happens()
        if host == SLOW and path == "/robots.txt":
            return page(b"", status="503 Busy")
        if host == FAILING and path != "/robots.txt":
            return page(b"", status="500 Broken")
        return answer(host, path)

    def seeds(self, folder: Path) -> Path:
        (folder / "seeds").mkdir(exist_ok=True)
        seeds(self.server, folder).rename(folder / "seeds" / "good.txt")
        failing = "".join(self.server.url(FAILING, f"/{n}") + "\n" for n in range(3))
        (folder / "seeds" / "bad.txt").write_text((folder / "bad.txt").read_text() + failing)
        return folder / "seeds"

    def crawl(self, folder: Path, rounds: int, **more: str) -> Crawled:
        options = CrawlOptions(rounds, self.seeds(folder))
        return crawl(folder / "crawl", options, context=context_of(**more))

    def assert_goes_on(self, folder: Path) -> None:
        """What was left is as it was, and the next run asks for it, whose hosts answer.

        Of FAILING one page was asked for, and none after that. Which one, the port decides: it is
        part of the URLs by whose hash the list is sorted.
        """
        pages = {f"/{n}" for n in range(3)}
        (asked,) = pages.intersection(failed := self.server.of(FAILING))
        assert failed.count(asked) == 1
        left = [self.server.url(SLOW, f"/{n}") for n in range(10)]
        left += [self.server.url(FAILING, path) for path in pages - {asked}]
        statuses = {url: d.status_name for url, d in CrawlDb(folder / "crawl/crawldb").items()}
        assert {statuses[url] for url in left} == {"db_unfetched"}
        self.is_over = True
        shutil.rmtree(folder / "crawl" / ".fetchstate")  # who rests, and until when
        self.crawl(folder, -1, http__robots__503__defer__visits__wait="0")
        found = fetched(folder)
        assert {url: found[url] for url in left} == dict.fromkeys(left, 1)


@pytest.mark.slow  # whole crawls
@pytest.mark.parametrize(
    ("place", "more"),
    few(
        [
            (".", {}),
            ("crawl", {"crawl__overlap": "false"}),
            (".", {"crawl__overlap": "false", "minutch__fetch__processes": "2"}),
        ],
    ),
)
def test_a_stop_waits_for_no_host_that_rests_or_fails(
    tmp_path: Path, place: str, more: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they do for minutes: robots.txt is asked for again after five, a failed host after three
    and more. The rest of the round comes to its end.
    """
    monkeypatch.chdir(tmp_path)
    day = BadDay(tmp_path, (tmp_path / place / STOP).touch)
    with day.server:
        began = time.monotonic()
        day.crawl(tmp_path, -1, **PATIENT, **more)
        assert time.monotonic() - began < 100
        assert not (tmp_path / place / STOP).exists()
        first = segments(tmp_path)[0]
        assert first.is_complete()
        assert {day.server.url(host) for host in QUICK} <= set(+fetched(tmp_path))
        day.assert_goes_on(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("overlap", ["true", "false"])
def test_a_signal_waits_for_no_host_that_rests_or_fails(tmp_path: Path, overlap: str) -> None:
    """Then the next run is stopped, which goes on with that list."""
    was_asked = threading.Event()
    day = BadDay(tmp_path, was_asked.set)
    with day.server:
        more = [f"-D{name.replace('__', '.')}={value}" for name, value in PATIENT.items()]
        command = Command(tmp_path, day.seeds(tmp_path), f"-Dcrawl.overlap={overlap}", *more)
        command.wait_for(was_asked.is_set)
        command.process.send_signal(signal.SIGINT)
        said = command.end()
        assert command.process.returncode == 130, said
        began = time.monotonic()
        threading.Timer(3, (tmp_path / "crawl" / STOP).touch).start()
        day.crawl(tmp_path, -1, **PATIENT, crawl__overlap=overlap)
        assert time.monotonic() - began < 100
        day.assert_goes_on(tmp_path)


@pytest.mark.slow  # a whole crawl
def test_sitemaps_are_read_while_nothing_is_asked_for(tmp_path: Path) -> None:
    """Again and again, of a host that is being fetched: it has the pauses that its robots.txt asks
    for, which are longer than those of others.
    """
    stop = tmp_path / "crawl" / STOP

    def with_sitemap(host: str, path: str) -> bytes:
        if (host, path) == (SLOW, "/robots.txt"):
            return page(b"User-agent: *\nCrawl-delay: 0.6", "text/plain")
        if path == "/sitemap.xml":
            if sum(asked.path == path for asked in server.asked) == 3:
                stop.touch()
            return page(b"<urlset></urlset>")
        return answer(host, path)

    with TimedServer(with_sitemap) as server:
        (tmp_path / "maps").write_text(f"{server.url(SLOW, '/sitemap.xml')}\n")
        maps = {"forever": True, "sitemaps": tmp_path / "maps"}
        options = CrawlOptions(-1, seeds(server, tmp_path), **maps)  # type: ignore[arg-type]
        context = context_of(crawl__sitemaps__interval="1")
        crawl(tmp_path / "crawl", options, context=context)
        during = [asked.path for asked in server.asked if asked.host == SLOW]
        assert sum(path == "/sitemap.xml" for path in during) >= 3
        gaps = server.gaps()[SLOW]
        assert min(gaps) > 0.58


# -- when ------------------------------------------------------------------------------------------


def test_a_list_is_turned_over_when_few_hosts_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "SECONDS", 2)
    few = FewHosts()
    begun = replace(NOW, hosts=10, queues=10, done=10, total=100, active=10, threads=50)
    left = replace(begun, queues=4, done=91, active=4)
    assert not few(begun)
    assert [few(left) for _ in range(3)] == [False, False, True]
    for other in (
        replace(left, queues=5),  # half of the hosts
        replace(left, done=89),  # too much is left
        replace(left, active=50),  # there is no place for more
        replace(left, queues=0),  # it has ended
        replace(left, paused=True),
        replace(left, total=None),
    ):
        assert not few(other)
        assert not few(left)  # from the beginning again


def test_what_a_list_has_begun_with_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight hosts that do not answer, of 88 URLs."""
    monkeypatch.setattr(policy, "SECONDS", 0)
    tail = replace(NOW, hosts=8, queues=8, done=0, total=88, active=0, threads=50)
    assert not FewHosts()(replace(tail, hosts=9, total=93, done=5))
    few = FewHosts(tail=88, hosts=8)
    assert few(replace(tail, hosts=9, total=93, done=5))  # five more have come, and ended
    assert not few(replace(tail, hosts=9, total=93, done=4))
    assert not few(tail)  # nothing has come
    assert few(tail, has_due=True)
    assert not few(replace(tail, hosts=9, queues=9, total=93, done=5), has_due=True)


def test_hosts_that_rest_hold_nobody_when_something_is_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(policy, "SECONDS", 0)
    resting = replace(NOW, hosts=12, queues=10, resting=10, done=3, total=31, active=0, threads=50)
    assert FewHosts()(resting, has_due=True)
    assert not FewHosts()(resting)
    assert not FewHosts()(replace(resting, resting=9), has_due=True)


@pytest.mark.slow
def test_an_interrupted_list_is_one_like_any_other(server: TimedServer, tmp_path: Path) -> None:
    """What is due meanwhile does not wait for its last host."""
    command = Command(tmp_path, seeds(server, tmp_path))
    command.wait_for(lambda: MOMENTS["a list is turned over"](tmp_path))
    command.process.kill()
    command.end()
    run(server, tmp_path, fetcher__server__delay="1")  # the last host has more to do than a start
    assert_whole(server, tmp_path)
    first, second = segments(tmp_path)[:2]
    left = listed(first) & listed(second)
    assert left and all(f"{SLOW}:" in url for url in left)
    order = [(asked.host, asked.path) for asked in server.asked if asked.path != "/robots.txt"]
    last = max(at for at, (host, _) in enumerate(order) if host == SLOW)
    assert {(QUICK[0], "/a"), (QUICK[0], "/b")} < set(order[:last])


# -- a web that misbehaves -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", few([1, 2]))
def test_lists_are_turned_over_again_and_again(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hosts hang, redirect in circles and to each other, and change their robots.txt; each list is
    turned over as soon as that can be: every URL is counted once, and the stores agree.
    """
    monkeypatch.setattr(policy, "FEW_HOSTS", 1.1)
    monkeypatch.setattr(policy, "SETTLED_AT_LEAST", 0.05)
    plan = Plan(seed=seed, pages=150, hosts=16)
    with RandomWeb(plan) as web:
        (tmp_path / "seeds.txt").write_text(
            "".join(f"{web.url(number)}\n" for number in range(0, 150, 5))
        )
        context = context_of(
            # With 0.1 s lists had ended before anybody asked, on a machine with a load of 20; once
            # with 0.3 s.
            fetcher__server__delay="0.5",
            http__timeout="700",
            http__redirect__max="2",
            fetcher__parse=str(seed == 1).lower(),
            fetcher__follow__outlinks__depth="1" if seed == 1 else "-1",
            minutch__fetch__processes=str(1 + seed % 2),
            http__robots__503__defer__visits__delay="100",
            http__filter__ipaddress__exclude="",
        )
        crawled = crawl(
            tmp_path / "crawl", CrawlOptions(4, tmp_path / "seeds.txt"), context=context
        )
    counters = crawled.by_step["Fetcher"]
    outcomes = {outcome.label for outcome in Outcome if outcome is not Outcome.FOLLOWED}
    ended = sum(count for label, count in counters.items() if label in outcomes)
    assert counters["generated"] == ended
    assert counters["fetched"] > 50
    assert counters[Outcome.SKIPPED_TAIL.label] > 0
    assert not list(problems(tmp_path / "crawl", context.conf))
    for segment in segments(tmp_path):
        assert segment.is_complete()
        urls = [url for url, _ in segment.records("crawl_generate")]
        assert len(urls) == len(set(urls))
