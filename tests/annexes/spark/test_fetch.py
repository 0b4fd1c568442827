"""fetch on Spark: a task for each fetch list; the segment is that of the engine of one machine,
whatever happens.
"""

from __future__ import annotations

import io
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree
from urllib.parse import urlsplit

import pytest

from minutch.annexes.spark import session
from minutch.cycle.fetch.ledger import STOPPED, Interrupted
from minutch.cycle.fetch.results import closing
from minutch.cycle.fetchlist.lists import number_of_lists
from minutch.cycle.segment.store import COMPLETE, CONTENT, CRAWL_FETCH, WARC, Segment
from minutch.errors import StoreError
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.job import JobContext
from tests.cycle.fetch.test_fetch_job import HTML
from tests.cycle.fetchlist.test_generate import database
from tests.support.commands import generate
from tests.support.misbehaving import MisbehavingServer, page
from tests.support.segments import conf_for, contents, fetch_segment, fetched, make_segment
from tests.support.siteserver import HOSTS, SITE, SiteServer
from tests.support.sparkcluster import missing

pytestmark = [
    pytest.mark.servers,
    pytest.mark.spark,
    pytest.mark.skipif(bool(missing()), reason=missing()),
]

SPARK = {"minutch__engine": "spark", "spark__master": "local[2]"}
_TIMES = re.compile(
    r"\b1[0-9]{12}\b|\w{3}, .{20} GMT|\w{3} \w{3} .{11} UTC [0-9]{4}|(?<=_rs_=)[0-9]+"
    r"|(?<=_validators_=)[0-9a-f-]+ [0-9]+"
)


@pytest.fixture(scope="module", autouse=True)
def own_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder for temporary files of all executors; Spark runs as long as the module takes."""
    folder = tmp_path_factory.mktemp("machine")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            SPARK, "spark__executorEnv__TMPDIR", str(folder)
        )  # Java may be there from an earlier test
        patch.setattr(closing.tempfile, "tempdir", str(folder))
        yield folder
        session.stop()


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer(address="0.0.0.0") as running:
        yield running


def records(segment: Segment) -> list[str]:
    """All records of what a fetch makes, without the times of day in them."""
    return sorted(
        f"{folder} {url} {_TIMES.sub('TIME', str(value))}"
        for folder in (CONTENT, *COMPLETE)
        if segment.has(folder)
        for url, value in segment.records(folder)
    )


def urls_of(part: Path) -> list[str]:
    """The keys of a part of crawl_fetch."""
    with SequenceFileReader(part / "data") as reader:
        return [DataInput(key).read_text() for key, _ in reader]


def lists(server: MisbehavingServer, *counts: int) -> list[list[str]]:
    """Lists of so many pages, each of a host of its own, all of which have other names."""
    found, first = [], 0
    for number, count in enumerate(counts):
        names = [f"p{n}" for n in range(first, first + count)]
        for name in names:
            server.pages[f"/{name}"] = page(HTML, "Content-Type: text/html")
        found.append([server.url(name, f"127.0.1.{number + 1}") for name in names])
        first += count
    return found


def twice(server: MisbehavingServer) -> set[str]:
    """The pages that were asked for more than once."""
    return {
        target for target, count in server.requests.items() if count > 1 and target != "/robots.txt"
    }


def test_a_segment_by_tasks_is_what_it_is_here(tmp_path: Path, own_machine: Path) -> None:
    values = {
        "plugin__includes": "protocol-http|parse-(html|text)|scoring-opic|urlnormalizer-basic",
        "fetcher__parse": "true",
        "fetcher__warc": "true",
        "fetcher__store__content": "true",
        "mapreduce__job__maps": "3",
        "_ngt_": "2",  # the hosts come into different lists
    }
    with SiteServer() as server:
        files = [
            (host, path.relative_to(SITE / host))
            for host in HOSTS
            for path in (SITE / host).rglob("*.*")
        ]
        database(tmp_path / "db", [server.site.url(host, f"/{name}") for host, name in files])
        job = JobContext(conf_for(**values, **SPARK).freeze(), out=io.StringIO(), err=io.StringIO())
        assert generate.run([str(tmp_path / "db"), str(tmp_path / "there")], job) == 0
        (path,) = (tmp_path / "there").iterdir()
        copytree(path, tmp_path / "here" / path.name)
        here, there = Segment(tmp_path / "here" / path.name), Segment(path)
        expected = fetch_segment(here, conf_for(**values))
        assert fetch_segment(there, conf_for(**values, **SPARK)) == expected
    assert expected["fetched"] > 15
    assert records(there) == records(here)
    assert sorted(path.name for path in there.path.iterdir()) == sorted(
        [*(p.name for p in here.path.iterdir())]
    )
    for folder in (CONTENT, *COMPLETE):
        assert [len(segment.parts(folder)) for segment in (here, there)] == [1, 3]
    hosts = [{urlsplit(url).hostname for url in urls_of(part)} for part in there.parts(CRAWL_FETCH)]
    assert sorted(map(len, hosts)) == [0, 1, 1]
    assert len(list((there.path / WARC).iterdir())) == 2  # of the lists that have pages
    assert [path.name for path in closing.own_folder().iterdir()] == [".fetchstate"]


def test_how_many_lists() -> None:
    assert number_of_lists(conf_for(), 3) == 1
    assert number_of_lists(conf_for(mapreduce__framework__name="yarn"), 3) == 3
    assert number_of_lists(conf_for(mapreduce__framework__name="yarn"), None) == 2
    assert number_of_lists(conf_for(**SPARK), 3) == 3
    assert number_of_lists(conf_for(**SPARK, mapreduce__job__maps="5"), None) == 5
    assert number_of_lists(conf_for(**SPARK), None) == 2


def in_between(server: MisbehavingServer, count: int, act: Callable[[], None]) -> None:
    """Do something in a thread once `count` requests are held."""

    def wait() -> None:
        for _ in range(count):
            assert server.held.acquire(timeout=60)
        act()

    threading.Thread(target=wait, daemon=True).start()


def test_a_signal_keeps_what_was_fetched(
    server: MisbehavingServer, tmp_path: Path, own_machine: Path
) -> None:
    """A list that is done stays; another goes on, on whichever machine, where it was stopped."""
    urls = lists(server, 3, 12)
    server.hold = {"/p5"}
    segment = make_segment(tmp_path, *urls)

    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        threading.Timer(1, server.release).start()

    in_between(server, 1, interrupt)
    with pytest.raises(Interrupted) as caught:
        fetch_segment(segment, conf_for(**SPARK), threads=1)
    asked = len(server.requests.keys() - {"/robots.txt"})
    assert str(caught.value) == str(Interrupted.leaving(15 - asked, 15))
    assert 6 <= asked < 15
    left = sorted(path.name for path in (segment.path / "_fetch").iterdir())
    assert left == ["begun", "part-r-00000", "stopped-00001"]
    assert [path.name for path in closing.own_folder().iterdir()] == [".fetchstate"]
    with pytest.raises(StoreError, match=r"was begun with minutch\.engine=spark"):
        fetch_segment(segment, conf_for())
    assert fetch_segment(segment, conf_for(**SPARK, fetcher__parse="true"))["fetched"] == 15
    assert twice(server) == set()
    assert sorted(contents(segment)) == sorted(fetched(segment)) == sorted(urls[0] + urls[1])
    assert sorted(path.name for path in segment.path.iterdir()) == [
        "content",
        "crawl_fetch",
        "crawl_generate",
    ]


def test_a_second_signal_stops_at_once(server: MisbehavingServer, tmp_path: Path) -> None:
    """The machine has the log; and what is in the segment is taken up in the middle of being put in
    its place.
    """
    urls = lists(server, 6, 1)
    server.hold = {"/p4"}
    segment = make_segment(tmp_path, *urls)

    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

    in_between(server, 1, interrupt)
    with pytest.raises(Interrupted, match=re.escape(STOPPED)):
        fetch_segment(segment, conf_for(**SPARK), threads=1)
    assert not segment.has("crawl_fetch")
    with pytest.MonkeyPatch.context() as patch:

        def place(self: Segment, fresh: Path, folder: str) -> None:
            if folder == CRAWL_FETCH:
                raise KeyboardInterrupt
            (fresh / folder).rename(self.path / folder)

        patch.setattr(Segment, "_place", place)
        with pytest.raises(KeyboardInterrupt):
            fetch_segment(segment, conf_for(**SPARK))
    assert segment.has("content")
    assert fetch_segment(segment, conf_for(**SPARK))["fetched"] == 7
    assert twice(server) == {"/p4"}
    assert sorted(contents(segment)) == sorted(fetched(segment)) == sorted(urls[0] + urls[1])
    with pytest.raises(StoreError, match="is fetched already"):
        fetch_segment(segment, conf_for(**SPARK))
