"""Several processes share a fetch: every URL once, no host in two, redirects handed over, kills
survived.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from minutch.clock import SteadyClock, SystemClock
from minutch.cycle.fetch import listfetch, workers
from minutch.cycle.fetch.components import FetchComponents
from minutch.cycle.fetch.fetch import Fetch
from minutch.cycle.fetch.frontier.queueitems import FetchItem, Share
from minutch.cycle.fetch.ledger import Interrupted, Ledger, Outcome
from minutch.cycle.fetch.listfetch import ListFetch
from minutch.cycle.fetch.results.fetchlog import FetchLog, Frame, Part
from minutch.cycle.fetch.settings import FetchSettings
from minutch.cycle.fetch.stats import FetchStats
from minutch.cycle.fetch.worker import Done, Hand, Idle, WorkerOrder
from minutch.cycle.fetch.workers import (
    LIST_BYTES,
    FetchProcesses,
    _Worker,
    number_of,
    processes_for,
)
from minutch.errors import StoreError
from minutch.hadoop.formats.compress import DEFAULT_CODEC
from minutch.records.crawldatum import STATUS_FETCH_GONE, CrawlDatum
from tests.cycle.fetch.test_fetch_job import HTML, ROOT, held, pages, start, wait_until_held
from tests.support.examples import few
from tests.support.misbehaving import MisbehavingServer, page
from tests.support.segments import (
    LOOPBACK,
    conf_for,
    contents,
    fetch_segment,
    fetched,
    make_segment,
)


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer(address="0.0.0.0") as running:
        yield running


def hosts(server: MisbehavingServer, count: int) -> list[str]:
    """Loopback addresses; both processes own some."""
    found = [f"127.0.1.{n}" for n in range(1, count + 1)]
    assert len({Share(0, 2).owner(host) for host in found}) == 2
    return found


def test_every_url_is_fetched_once(server: MisbehavingServer, tmp_path: Path) -> None:
    pages(server, 5)
    urls = [server.url(f"p{n}", host) for n in range(5) for host in hosts(server, 12)]
    segment = make_segment(tmp_path, urls)
    counters = fetch_segment(segment, conf_for(minutch__fetch__processes="2"), threads=8)
    assert counters["generated"] == counters["fetched"] == 60
    assert sorted(fetched(segment)) == sorted(contents(segment)) == sorted(urls)
    assert {count for target, count in server.requests.items() if target != "/robots.txt"} == {12}
    assert server.requests["/robots.txt"] == 12
    assert not (segment.path / "_fetch").exists()


SPAWNS = (
    "import polars, runpy, sys; sys.argv[0] = 'minutch'; __name__ == '__main__' and"
    " runpy.run_module('minutch', run_name='__main__')"
)


@pytest.mark.slow  # processes
def test_processes_are_no_forks_of_one_that_has_polars(
    server: MisbehavingServer, tmp_path: Path
) -> None:
    """They are started afresh, and log as their parent does."""
    script = tmp_path / "spawns.py"
    script.write_text(SPAWNS)
    segment = make_segment(tmp_path, pages(server, 3))
    given = {**LOOPBACK, "minutch.fetch.processes": "2", "http.timeout": "500"}
    options = [f"-D{name}={value}" for name, value in given.items()]
    server.pages["/p1"] = b""  # closes the connection without an answer
    command = [sys.executable, str(script), "fetch", *options, str(segment.path)]
    environment = {**os.environ, "NUTCH_LOG_DIR": "", "PYTHONPATH": str(ROOT)}
    found = subprocess.run(
        command, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    assert f"INFO  fetch.redirectchain: fetch of {server.url('p1')} failed with" in found.stderr
    assert {
        url.rpartition("/")[2]: found[0].status_name for url, found in fetched(segment).items()
    } == {
        "p0": "fetch_success",
        "p1": "fetch_retry",
        "p2": "fetch_success",
    }


def test_redirects_go_to_the_process_that_has_the_host(
    server: MisbehavingServer, tmp_path: Path
) -> None:
    names = hosts(server, 12)
    for number, _ in enumerate(names):
        target = server.url(f"r{number + 1}", names[(number + 5) % len(names)])
        server.pages[f"/r{number}"] = page(b"", f"Location: {target}", status="302 Found")
    server.pages["/r12"] = page(HTML, "Content-Type: text/html")
    segment = make_segment(tmp_path, [server.url("r0", names[0])])
    conf = conf_for(minutch__fetch__processes="3", http__redirect__max="20")
    counters = fetch_segment(segment, conf, threads=6)
    assert counters["redirected"] == counters["generated"] == 1
    found = fetched(segment)
    assert len(found) == 13
    assert [d.status_name for records in found.values() for d in records].count(
        "fetch_success"
    ) == 1
    last = server.url("r12", names[(11 + 5) % 12])
    assert found[last][0].status_name == "fetch_success"


class Ended:
    """A process that needs no ending."""

    def join(self) -> None: ...

    def kill(self) -> None: ...


def test_many_hand_overs_at_once_block_nobody() -> None:
    """Both children send all they have before they read anything."""
    count = 3000
    received: list[int] = []
    ledger = Ledger()
    ledger.settle(Outcome.FETCHED)

    def child(number: int, pipe: Connection) -> None:
        for _ in range(count):
            pipe.send(Hand(1 - number, FetchItem("http://h/" + "x" * 500, CrawlDatum(), "h")))
        received.append(sum(isinstance(pipe.recv(), FetchItem) for _ in range(count)))
        pipe.send(Idle(count, 0, ledger))
        assert pipe.recv() is WorkerOrder.FINISH
        pipe.send(Done(ledger, FetchStats()))

    processes = FetchProcesses(
        2, lambda tick, neighbours: pytest.fail("no session"), lambda snapshot: None
    )
    for number in range(2):
        ours, theirs = Pipe()
        processes._workers.append(_Worker(Ended(), ours))  # type: ignore[arg-type]
        threading.Thread(target=child, args=(number, theirs), daemon=True).start()
    parent = threading.Thread(target=processes.run, daemon=True)
    parent.start()
    parent.join(60)
    assert not parent.is_alive()
    assert received == [count, count] and processes.ledger.settled == 2


@pytest.mark.parametrize("processes", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_a_signal_as_its_processes_have_started_leaves_the_list(
    server: MisbehavingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: str
) -> None:
    """Between their start and the waiting for them, too: it is the fetch that ends, as always."""
    starting = Fetch._start

    def start(fetch: Fetch, job: ListFetch, *, goes_on: bool) -> None:
        starting(fetch, job, goes_on=goes_on)
        fetch._on_first_signal()

    segment = make_segment(tmp_path, pages(server, 3))
    monkeypatch.setattr(Fetch, "_start", start)
    with pytest.raises(Interrupted, match="of 3 URLs are left"):
        fetch_segment(segment, conf_for(minutch__fetch__processes=processes))
    monkeypatch.undo()
    assert fetch_segment(segment, conf_for())["fetched"] == 3


def test_more_processes_than_hosts(server: MisbehavingServer, tmp_path: Path) -> None:
    segment = make_segment(tmp_path, pages(server, 3))
    assert fetch_segment(segment, conf_for(minutch__fetch__processes="4"))["fetched"] == 3


@pytest.mark.slow  # processes
def test_a_killed_fetch_goes_on_with_another_number_of_processes(
    server: MisbehavingServer, tmp_path: Path
) -> None:
    segment = held(server, tmp_path)
    process = start(segment, minutch__fetch__processes="2", threads="8")
    wait_until_held(server)
    process.kill()
    process.communicate(timeout=60)
    counters = fetch_segment(segment, conf_for(minutch__fetch__processes="3"))
    assert counters["fetched"] == 40 == len(fetched(segment))
    assert {t for t, count in server.requests.items() if count > 1} == server.hold


def test_a_pipe_that_ends_is_a_process_that_died() -> None:
    ours, theirs = multiprocessing.Pipe()
    processes = FetchProcesses(1, lambda *_: None, lambda _: None)  # type: ignore[arg-type,return-value]
    processes._workers.append(_Worker(None, ours))
    theirs.close()
    processes._pass_messages()
    with pytest.raises(StoreError, match="a process of the fetch died"):
        processes.check()


def test_a_log_that_cant_grow_loses_nothing(server: MisbehavingServer, tmp_path: Path) -> None:
    for n in range(20):
        server.pages[f"/p{n}"] = page(os.urandom(4000).hex().encode(), "Content-Type: text/html")
    segment = make_segment(tmp_path, [server.url(f"p{n}") for n in range(20)])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(StoreError, match=r"log-0: File too large"):
            fetch_segment(segment, conf_for(), threads=4)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    counters = fetch_segment(segment, conf_for())
    assert counters["generated"] == counters["fetched"] == 20 == len(contents(segment))
    assert sum(server.requests[f"/p{n}"] > 1 for n in range(20)) <= 4


@pytest.mark.slow  # processes
def test_a_process_that_dies_is_noticed(server: MisbehavingServer, tmp_path: Path) -> None:
    segment = held(server, tmp_path)
    process = start(segment, minutch__fetch__processes="2", threads="8")
    wait_until_held(server)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 255
    assert "a process of the fetch died" in out
    assert fetch_segment(segment, conf_for())["fetched"] == 40


LIMITED = (
    "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000));"
    "sys.argv[0] = 'minutch'; runpy.run_module('minutch', run_name='__main__')"
)


@pytest.mark.slow  # processes
@pytest.mark.parametrize("processes", few(["1", "2"]))
def test_a_full_disk_loses_nothing(
    server: MisbehavingServer, tmp_path: Path, processes: str
) -> None:
    """A process that can't write ends the fetch; what waits, in the others too, is fetched by the
    next run.
    """
    names = hosts(server, 12)
    urls = []
    for n in range(60):
        server.pages[f"/p{n}"] = page(os.urandom(4000).hex().encode(), "Content-Type: text/html")
        urls.append(server.url(f"p{n}", names[n % len(names)]))
    segment = make_segment(tmp_path, urls)
    given = {**LOOPBACK, "minutch.fetch.processes": processes}
    options = [f"-D{name}={value}" for name, value in given.items()]
    command = [sys.executable, "-c", LIMITED, "fetch", *options, str(segment.path), "-threads", "4"]
    environment = {**os.environ, "NUTCH_LOG_DIR": ""}
    found = subprocess.run(
        command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert found.returncode == 255
    assert re.search(r"log-\d: File too large", found.stderr)
    assert "Traceback" not in found.stderr
    counters = fetch_segment(segment, conf_for())
    assert counters["generated"] == counters["fetched"] == 60
    assert {d.status_name for records in fetched(segment).values() for d in records} == {
        "fetch_success"
    }
    assert sum(server.requests[f"/p{n}"] > 1 for n in range(60)) <= 4 * 2


def test_every_queue_has_one_owner() -> None:
    assert sum(Share(n, 3).owns("host") for n in range(3)) == 1
    assert Share().owns("anything")


@pytest.mark.parametrize(
    ("urls", "places", "cores", "expected"),
    [
        (50_000, 1000, 1, 1),
        (50_000, 1000, 2, 1),
        (50_000, 1000, 8, 4),
        (25_000, 1000, 8, 2),
        (500, 1000, 64, 1),
        (50_000, 25, 8, 2),
        (50_000, 1, 8, 1),
    ],
)
def test_processes_where_nobody_says_how_many(
    tmp_path: Path, urls: int, places: int, cores: int, expected: int
) -> None:
    """A core to fetch and one to parse, pages enough for each, and no more requests than wished."""
    path = tmp_path / "part-r-00000"
    path.touch()
    os.truncate(path, urls * LIST_BYTES // 10_000)
    assert processes_for([path], places, cores) == expected


@pytest.mark.parametrize("wanted", ["0", "3"])
def test_a_large_list_is_shared_among_processes(
    server: MisbehavingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: str
) -> None:
    """On four cores two processes fetch it, unless another number is set."""
    monkeypatch.setattr(listfetch, "workers", lambda: 4)
    monkeypatch.setattr(workers, "LIST_BYTES", 1000)
    server.pages = {f"/p{n}": page() for n in range(40)}
    segment = make_segment(tmp_path, [server.url(f"p{n}") for n in range(40)])
    given = conf_for(minutch__fetch__processes=wanted)
    started: list[int] = []
    start = FetchProcesses.start
    monkeypatch.setattr(
        FetchProcesses, "start", lambda self: (started.append(self.count), start(self))
    )
    assert fetch_segment(segment, given, threads=40)["fetched"] == 40
    assert started == [int(wanted) or 2]


def test_queues_named_by_addresses_are_one_process_s(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A name with several addresses is another one to each that asks."""
    conf = conf_for(minutch__fetch__processes="3", fetcher__queue__mode="byIP")
    settings = FetchSettings.of(conf, 0)
    assert number_of(settings, [], 8) == 1
    assert "one process, not 3" in caplog.text
    by_host = replace(settings, queues=replace(settings.queues, mode="byHost"))
    assert number_of(by_host, [], 8) == 3


def test_a_ledger_that_does_not_add_up_names_urls_and_bars_no_way(
    server: MisbehavingServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A URL with two outcomes is told of and the segment closed; one without any is named, and
    fetched by the next run.
    """
    urls = pages(server, 4)
    segment = make_segment(tmp_path, urls)
    work = segment.path / "_fetch"
    work.mkdir()
    datum = CrawlDatum(STATUS_FETCH_GONE, 100, 1.0)
    for name in ("log-0", "log-1"):
        frame = Frame(Outcome.GONE, [urls[0]])
        frame.add(Part.FETCH, urls[0], datum.to_bytes())
        with closing(FetchLog(work / name, DEFAULT_CODEC)) as log:
            log.append(frame)
    fetch_segment(segment, conf_for())
    assert f"more than one has {urls[0]}" in caplog.text
    assert set(fetched(segment)) == set(urls)
    job = ListFetch(
        segment, [segment.path / "crawl_generate" / "part-r-00000"], work,
        FetchSettings.of(conf_for(), 0), FetchComponents(conf_for()),
        SteadyClock(SystemClock()), tmp_path,
    )  # fmt: skip
    ledger = Ledger()
    ledger.generated = 4
    with pytest.raises(StoreError, match="4 of 4 URLs of the fetch list have no outcome") as error:
        job.checked(ledger)
    assert all(url in str(error.value) for url in urls)
