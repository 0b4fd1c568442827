"""Jobs on s3a://, with Hadoop's client and a server that answers as S3: with Spark and without it
as on local paths.
"""

from __future__ import annotations

import io
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest

from minutch.annexes.spark import session
from minutch.annexes.stores import hadoop
from minutch.annexes.stores.path import JOURNAL, HadoopPath
from minutch.clock import FakeClock, SystemClock
from minutch.conf import Configuration
from minutch.cycle.fetch.results.closing import copy_folder
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_GENERATE,
    CRAWL_PARSE,
    FETCHED,
    LAYOUTS,
    PARSE_DATA,
    PARSE_TEXT,
    WARC,
    Segment,
)
from minutch.errors import LockedError, StoreError
from minutch.job import JobContext, set_up_process
from minutch.paths import as_path
from minutch.work.tables.lock import LOCK_NAME, lock
from tests.annexes.spark.test_fetch import lists, twice
from tests.annexes.spark.test_spark import (
    link_records,
    random_pages,
    random_segment,
    segment_records,
)
from tests.annexes.stores.test_stores import answers, replace_and_fail, run_commands
from tests.cycle.linkdb.test_jobs import segment
from tests.interop.jars import NoJars
from tests.properties.test_order import crawldb
from tests.support.commands import (
    dedup,
    fetch,
    generate,
    inject,
    invertlinks,
    parse,
    readdb,
    updatedb,
)
from tests.support.crawldbs import context, printed
from tests.support.demo import PROPERTIES, write_seeds
from tests.support.golden import PROJECT
from tests.support.misbehaving import MisbehavingServer
from tests.support.s3 import BUCKET, s3
from tests.support.segments import conf_for, contents, fetch_segment, fetched, make_segment
from tests.support.siteserver import SiteServer
from tests.support.sparkcluster import missing

pytestmark = [
    pytest.mark.servers,
    pytest.mark.spark,
    pytest.mark.skipif(bool(missing()), reason=missing()),
]

PAGES = ("/about.html", "/news", "/hours.html", "/closed.html", "/books/knots.html")
SPARK = {"minutch.engine": "spark", "spark.master": "local[2]"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The properties by which a new server is reached."""
    try:
        with s3(tmp_path_factory.mktemp("s3")) as properties:
            yield properties
    except NoJars as exc:
        pytest.skip(str(exc))
    finally:
        session.stop()
        hadoop.stop()


@pytest.fixture
def store(server: dict[str, str], request: pytest.FixtureRequest) -> HadoopPath:
    """A folder of its own in the bucket."""
    set_up_process(Configuration.load([], overrides=server))
    root = as_path(f"s3a://{BUCKET}/{request.node.name}")
    assert isinstance(root, HadoopPath)
    return root


def test_a_path_answers_as_one_of_this_machine(store: HadoopPath, tmp_path: Path) -> None:
    store.mkdir()
    assert answers(store) == answers(tmp_path)


def test_one_alone_has_the_lock(store: HadoopPath) -> None:
    """One of several that ask in the same instant gets the lock: S3 takes one object."""
    with lock(store) as path:
        assert path.exists()
        with pytest.raises(LockedError, match="held by process"), lock(store):
            pass
    assert not path.exists()

    def ask(number: int) -> int:
        try:
            path.create(b"%d" % number)
        except FileExistsError:
            return 0
        return 1

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(ask, range(8))) == 1
    path.unlink()
    path.write_text(f"{2**22 - 1} {socket.gethostname()} 1\n")
    with lock(store):
        pass
    assert not path.exists()


def test_an_interrupted_replacement_is_finished_by_the_next(
    store: HadoopPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not store.renames
    replace_and_fail(store, monkeypatch, 5)


def test_commands_leave_there_what_they_leave_here(
    store: HadoopPath, server: dict[str, str], tmp_path: Path
) -> None:
    crawldb(Random(1), tmp_path / "crawldb", 2)
    pages = random_pages(Random(2))
    for name in ("20260101000000", "20260101000001"):
        segment(tmp_path / "segments" / name, pages, parts=2)
    copy_folder(tmp_path, store)
    left = run_commands(tmp_path, context())
    assert run_commands(store, context(server)) == left
    assert len(left) > 15


# -- a crawl ---------------------------------------------------------------------------------------


class Crawl:
    """A crawl in a folder, here or there, with an engine."""

    def __init__(self, root: Path, properties: dict[str, str]) -> None:
        self.root, self.db, self.linkdb = root, root / "crawldb", root / "linkdb"
        self._properties = {
            **PROPERTIES,
            "fetcher.server.delay": "0.0",
            "mapreduce.job.maps": "1",
            "mapreduce.job.reduces": "2",
            **properties,
        }

    def run(self, module: Any, *words: str | Path, now: int) -> str:
        """Run a job; what it printed."""
        conf = Configuration.load([], overrides=self._properties).freeze()
        clock = FakeClock(now) if now else SystemClock()
        job = JobContext(conf, clock, out=io.StringIO(), err=io.StringIO())
        assert module.run([*map(str, words)], job) == 0
        return printed(job)

    def generate(self, now: int) -> Path:
        self.run(generate, self.db, self.root / "segments", now=now)
        return max((self.root / "segments").iterdir())

    def finish(self, path: Path, now: int) -> None:
        """All jobs of a round that come after the fetch."""
        self.run(parse, path, now=now)
        self.run(updatedb, self.db, path, now=now)
        self.run(invertlinks, self.linkdb, path, now=now)
        self.run(dedup, self.db, now=now)

    def found(self, now: int) -> dict[str, object]:
        """All that the crawl has, and what readers say."""
        stats = self.run(readdb, self.db, "-stats", now=now).replace(str(self.root), "")
        self.run(readdb, self.db, "-dump", self.root / "dump", now=now)
        dump = [(self.root / "dump" / f"part-r-0000{part}").read_text("utf-8") for part in range(2)]
        found = {name: link_records(self.root / name) for name in ("crawldb", "linkdb")}
        segments = sorted((self.root / "segments").iterdir())
        return {
            **found,
            "stats": stats,
            "dump": dump,
            "segments": [segment_records(path) for path in segments],
        }


def test_a_round_there_leaves_what_it_leaves_here(
    store: HadoopPath, server: dict[str, str], tmp_path: Path
) -> None:
    """The same pages for all: they are fetched into the first crawl, which is there."""
    crawls = [
        Crawl(store / "far", server | {"fetcher.warc": "true"}),
        Crawl(store / "spark", server | SPARK),
        Crawl(tmp_path, {}),
    ]
    now = int(time.time() * 1000)
    with SiteServer() as site:
        seeds = write_seeds(tmp_path, site.site)
        with (seeds / "seeds.txt").open("a", encoding="utf-8") as file:
            file.writelines(f"{site.site.url('one', path)}\n" for path in PAGES)
        for crawl in crawls:
            crawl.run(inject, crawl.db, seeds, now=now)
        paths = [crawl.generate(now) for crawl in crawls]
        crawls[0].run(fetch, paths[0], now=0)
    assert [path.read_bytes()[:2] for path in (paths[0] / WARC).iterdir()] == [b"\x1f\x8b"]
    for crawl, path in zip(crawls, paths, strict=True):
        assert segment_records(path / CRAWL_GENERATE) == segment_records(paths[0] / CRAWL_GENERATE)
        if path is not paths[0]:
            for name in FETCHED:
                copy_folder(paths[0] / name, path / name)
        crawl.finish(path, now)
    found = [crawl.found(now) for crawl in crawls]
    assert found[0] == found[2]
    assert found[1] == found[2]
    assert len(link_records(tmp_path / "crawldb")) > 10
    assert sorted(path.name for path in (store / "spark" / "crawldb").iterdir()) == [
        "current",
        "old",
    ]


def test_a_fetch_by_tasks(
    store: HadoopPath, server: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parts are put in their places by a journal, with which the next fetch goes on if this one
    is stopped.
    """
    state = {"minutch.fetch.state": str(tmp_path / "state"), "fetcher.parse": "true"}
    conf = conf_for(
        **{name.replace(".", "__"): value for name, value in (server | SPARK | state).items()}
    )
    set_up_process(conf)
    with MisbehavingServer(address="0.0.0.0") as pages:
        urls = lists(pages, 3, 2)
        segment = make_segment(store, *urls)
        real, left = hadoop.rename, [3]

        def rename(uri: str, target: str) -> None:
            left[0] -= f"/{CONTENT}/" in target
            if not left[0]:
                raise KeyboardInterrupt
            real(uri, target)

        monkeypatch.setattr(hadoop, "rename", rename)
        with pytest.raises(KeyboardInterrupt):
            fetch_segment(segment, conf)
        monkeypatch.setattr(hadoop, "rename", real)
        with pytest.raises(StoreError, match="is not whole"):
            segment.parts(CRAWL_GENERATE)
        assert fetch_segment(segment, conf)["fetched"] == 5
        assert twice(pages) == set()
    assert sorted(contents(segment)) == sorted(fetched(segment)) == sorted(urls[0] + urls[1])
    assert [len(segment.parts(folder)) for folder in (*FETCHED, PARSE_DATA)] == [2, 2, 2]
    assert sorted(path.name for path in segment.path.iterdir()) == sorted(LAYOUTS)


# -- a job that is killed --------------------------------------------------------------------------

MORTAL = """
import os, signal, sys
from minutch.commands import cli
from minutch.annexes.stores import hadoop

verb, name, left = sys.argv[1], sys.argv[2], int(sys.argv[3])
real = getattr(hadoop, verb)

def call(*words, **more):
    global left
    left -= any(name in str(word) for word in words)
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*words, **more)

setattr(hadoop, verb, call)
cli.main(sys.argv[4:])
"""


def kill(properties: dict[str, str], verb: str, name: str, times: int, *words: str | Path) -> None:
    """Run a command that is killed as it calls a verb of the store's for the n-th time with a path
    of this name.
    """
    command = [sys.executable, "-c", MORTAL, verb, name, str(times), str(words[0])]
    command += [word for pair in properties.items() for word in ("-D", "=".join(pair))]
    died = subprocess.run(
        [*command, *map(str, words[1:])], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert died.returncode == -signal.SIGKILL, died.stderr


@pytest.mark.parametrize(
    ("verb", "name", "times", "engine", "is_noted"),
    [
        ("rename", "/current/", 6, {}, True),
        ("rename", "/_temporary/", 1, SPARK, False),
    ],
    ids=["as the new one comes", "as Spark's attempts are taken over"],
)
def test_a_killed_job(
    store: HadoopPath,
    server: dict[str, str],
    tmp_path: Path,
    verb: str,
    name: str,
    times: int,
    engine: dict[str, str],
    is_noted: bool,
) -> None:
    """Once there is a journal, the next job begins with the killed one's result; before, with what
    was there.
    """
    near, far = tmp_path / "db", store / "db"
    crawldb(Random(1), near, 2)
    copy_folder(tmp_path, store)
    kill(server | engine, verb, name, times, "dedup", far)
    assert (far / LOCK_NAME).exists()
    assert (far / JOURNAL).exists() == is_noted

    states = [link_records(near)]
    for _ in range(2):
        assert dedup.run([str(near)], context()) == 0
        states.append(link_records(near))
    assert dedup.run([str(far)], context(server)) == 0
    assert sorted(path.name for path in far.iterdir()) == ["current", "old"]
    assert link_records(far) == states[1 + is_noted]
    (far / "old").rename(store / "before" / "current")
    assert link_records(store / "before") == states[is_noted]
    assert states[0] != states[1]


@pytest.mark.parametrize("name", ["/parse_text/", "/crawl_parse/"])
def test_a_killed_parse(
    store: HadoopPath, server: dict[str, str], tmp_path: Path, name: str
) -> None:
    """Nobody reads a segment whose parse was killed as files were put in place until the next parse
    has finished that.
    """
    properties = server | {"plugin.includes": "parse-html", "mapreduce.job.reduces": "2"}
    job = context(properties)
    near, far = (
        random_segment(Random(1), tmp_path, "20260101000000", job).path,
        store / "20260101000000",
    )
    copy_folder(tmp_path, store)
    assert parse.run([str(near)], job) == 0
    kill(properties, "rename", name, 2, "parse", far)
    with pytest.raises(
        StoreError, match=r"is not whole: process .* was, putting its files in place"
    ):
        Segment(far).parts(CONTENT)
    for _ in range(2):
        assert parse.run([str(far)], job) == 0
        found, expected = segment_records(far), segment_records(near)
        assert len(found) == len(expected)
        assert [
            line for line in found if CRAWL_PARSE not in line
        ] == [  # which has the time of the job
            line for line in expected if CRAWL_PARSE not in line
        ]
    assert sorted(path.name for path in far.iterdir()) == [
        CONTENT,
        CRAWL_PARSE,
        PARSE_DATA,
        PARSE_TEXT,
    ]


def test_a_killed_generate(store: HadoopPath, server: dict[str, str], tmp_path: Path) -> None:
    """The next generate brings the half of a fetch list that was lost."""
    properties = server | {
        "mapreduce.framework.name": "yarn",
        "plugin.includes": "nutch-extensionpoints",
    }
    job = context(properties)
    crawldb(Random(1), tmp_path / "db", 1)
    copy_folder(tmp_path, store)
    words = (
        store / "db",
        store / "segments",
        "-numFetchers",
        "3",
        "-adddays",
        "400",
        "-noFilter",
        "-noNorm",
    )
    kill(properties, "rename", "/crawl_generate/", 2, "generate", *words)
    (half,) = (path for path in (store / "segments").iterdir() if not path.name.startswith("."))
    with pytest.raises(StoreError, match="is not whole"):
        Segment(half).parts(CRAWL_GENERATE)
    assert generate.run([*map(str, words)], job) == 0
    whole, other = sorted(path for path in (store / "segments").iterdir())
    assert whole == half
    assert len(Segment(whole).parts(CRAWL_GENERATE)) == 3
    urls = [
        sorted(url for url, _ in Segment(path).records(CRAWL_GENERATE)) for path in (whole, other)
    ]
    assert urls[0] == urls[1]
    assert len(urls[0]) > 10
