"""Jobs on a real HDFS: databases and segments there, a cluster of Spark whose executors die, and
Nutch as a reader.
"""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from minutch.annexes.spark import session
from minutch.annexes.stores import hadoop
from minutch.annexes.stores.path import HadoopPath
from minutch.clock import FakeClock, SystemClock
from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetch.results.closing import copy_folder
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.segment.store import COMPLETE, CRAWL_GENERATE, Segment
from minutch.errors import ConfigError, LockedError, StoreError
from minutch.job import JobContext, set_up_process
from minutch.paths import as_path
from minutch.records.crawldatum import STATUS_DB_FETCHED, STATUS_FETCH_SUCCESS
from minutch.records.crawldatum_columns import to_frame
from minutch.work.tables import install
from minutch.work.tables.database import Database
from minutch.work.tables.lock import lock
from minutch.work.tables.recordfiles import CrawlDataWriter, scan
from minutch.work.tables.spannedfile import SpannedFile
from minutch.work.tables.spans import FileSplit
from tests.annexes.spark.test_spark import link_records as _records
from tests.annexes.spark.test_spark import random_pages
from tests.cycle.index.test_index import Crawl
from tests.cycle.linkdb.test_jobs import segment
from tests.interop.harness import Harness
from tests.interop.jars import NUTCH_VERSIONS, NoJars, nutch_jars
from tests.interop.nutchconf import write_configuration
from tests.properties.test_order import crawldb
from tests.support.commands import (
    crawl,
    crawlcomplete,
    dedup,
    domainstats,
    fetch,
    generate,
    inject,
    invertlinks,
    mergedb,
    mergelinkdb,
    mergesegs,
    parse,
    protocolstats,
    readdb,
    readlinkdb,
    readseg,
    updatedb,
)
from tests.support.crawldbs import context
from tests.support.demo import PROPERTIES, write_seeds
from tests.support.hdfs import hdfs
from tests.support.siteserver import SiteServer
from tests.support.sparkcluster import Deaths, cluster, missing

pytestmark = [
    pytest.mark.servers,
    pytest.mark.spark,
    pytest.mark.skipif(bool(missing()), reason=missing()),
]

ROUNDS = 3
_ENTRIES = re.compile(r"^\S+\tVersion: 7\n(?:(?!\S+\tVersion: 7\n).*\n)*", re.MULTILINE)
"""The entries of a dump."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HadoopPath]:
    """The root of a new HDFS."""
    try:
        with hdfs(tmp_path_factory.mktemp("hdfs")) as address:
            set_up_process(Configuration.load([]))
            root = as_path(f"{address}/test")
            assert isinstance(root, HadoopPath)
            root.mkdir(parents=True)
            yield root
    except NoJars as exc:
        pytest.skip(str(exc))
    finally:
        hadoop.stop()


# -- paths -----------------------------------------------------------------------------------------


def answers(root: Path) -> list[object]:
    """Returns a folder's answers to all that jobs do with paths."""
    said: list[object] = []

    def say(ask: Callable[[], object]) -> None:
        try:
            answer = ask()
        except OSError as exc:
            answer = type(exc)
        is_path = isinstance(answer, Path | HadoopPath)
        said.append(str(answer).replace(str(root), "") if is_path else answer)

    folder = root / "a folder [ä]"
    file = folder / "file"
    say(folder.exists)
    say(folder.mkdir)
    say((folder / "deep").mkdir)
    say(folder.mkdir)
    say(lambda: (folder / "a" / "b").mkdir(parents=True, exist_ok=True))
    say(lambda: file.write_bytes(bytes(range(256)) * 2000))
    say(lambda: file.read_bytes()[-300:])
    say(lambda: file.stat().st_size)
    say(lambda: (file.is_file(), file.is_dir(), folder.is_dir(), (root / "none").is_dir()))
    say(
        lambda: (
            file.with_name("text").write_text("ä\n", encoding="utf-8"),
            (folder / "text").read_text("utf-8"),
        )
    )
    say(lambda: sorted(path.name for path in folder.iterdir()))
    say(lambda: sorted(path.name for path in folder.glob("*e*")))
    say(lambda: sorted(path.name for path in root.rglob("*")))
    say(lambda: file.rename(root / "moved"))
    say(file.exists)
    say(lambda: file.open("rb"))
    say(file.unlink)
    say(lambda: file.unlink(missing_ok=True))
    say(folder.rmdir)
    say((folder / "a" / "b").rmdir)
    say(lambda: (root / "moved").replace(folder / "text"))
    say(lambda: (folder / "text").stat().st_size)
    say(lambda: list((root / "none").iterdir()))
    with (folder / "text").open("rb") as stream:
        stream.seek(1000)
        said.append((stream.read(10), stream.seek(-3, os.SEEK_END), stream.read(), stream.read()))
    return said


def test_a_path_answers_as_one_of_this_machine(store: HadoopPath, tmp_path: Path) -> None:
    (store / "paths").mkdir()
    with pytest.raises(FileNotFoundError):
        (store / "paths" / "none" / "deep").mkdir()
    assert answers(store / "paths") == answers(tmp_path)


def test_pieces_of_a_file_are_read_in_ranges(store: HadoopPath, tmp_path: Path) -> None:
    from minutch.records.crawldatum import CrawlDatum

    urls = [(f"http://host/{number:06d}", CrawlDatum(1, 60, 0.5, 0)) for number in range(20_000)]
    for folder in (store, tmp_path):
        with CrawlDataWriter(folder / "part-r-00000", mapfile=False) as writer:
            writer.write(to_frame(urls))
    near, far = (folder / "part-r-00000" for folder in (tmp_path, store))
    size = near.stat().st_size
    assert far.stat().st_size == size
    spans = SpannedFile(far, span_size=150_000).spans()
    assert len(spans) > 5
    found = [
        key
        for start in range(0, size, 250_000)
        for table in scan(FileSplit(far, start, start + 250_000))
        for key in table["key"]
    ]
    assert found == [key for table in scan(near) for key in table["key"]]


def test_one_alone_has_the_lock(store: HadoopPath) -> None:
    folder = store / "locked"
    with lock(folder) as path:
        assert path.exists()
        with pytest.raises(LockedError, match=f"held by process {os.getpid()} on"), lock(folder):
            pass
        with lock(folder, force=True):
            pass
    assert not path.exists()
    path.write_bytes(b"")  # Nutch's
    with pytest.raises(LockedError, match="perhaps Nutch"), lock(folder):
        pass
    path.unlink()
    gone = f"{2**22 - 1} {os.uname().nodename} 1\n"
    path.write_text(gone)
    with lock(folder):
        assert path.read_text() != gone
    assert [*folder.iterdir()] == []


def test_a_replacement_without_renames_is_finished_by_the_next(
    store: HadoopPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HadoopPath, "renames", False)
    replace_and_fail(store, monkeypatch)


def replace_and_fail(store: HadoopPath, monkeypatch: pytest.MonkeyPatch, stride: int = 2) -> None:  # noqa: C901 - one step a case
    """Interrupted at every `stride`-th step: before there is a journal the old database is whole,
    then the new one.
    """
    steps = 0
    calls = {name: getattr(hadoop, name) for name in ("rename", "delete", "upload")}
    left = [0]

    def step(name: str, *args: Any, **more: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return calls[name](*args, **more)

    while True:
        steps += stride
        db = Database(store / f"copied-{steps}")
        for number in range(2):
            if number == 1:
                left[0] = steps
                for name in calls:
                    monkeypatch.setattr(hadoop, name, partial(step, name))
            killed = False
            with suppress(KeyboardInterrupt):
                killed = True
                with db.replacement(keep_old=True) as new:
                    part = new / "part-r-00000"
                    part.mkdir()
                    for file in ("data", "index"):
                        (part / file).write_text(f"{number} {file}", encoding="utf-8")
                killed = False
            for name, call in calls.items():
                monkeypatch.setattr(hadoop, name, call)
        install.recover(db.path)
        found = {
            path.name: (path / "part-r-00000/data").read_text("utf-8") for path in db.path.iterdir()
        }
        assert found["current"] in {"0 data", "1 data"}
        assert (db.path / "current/part-r-00000/index").read_text("utf-8")[0] == found["current"][0]
        if found["current"] == "1 data":
            assert found == {"current": "1 data", "old": "0 data"}
        if not killed:
            break
    assert steps > 8


def test_commands_leave_there_what_they_leave_here(store: HadoopPath, tmp_path: Path) -> None:
    from random import Random

    far, near = store / "commands", tmp_path / "commands"
    crawldb(Random(1), near / "crawldb", 2)
    pages = random_pages(Random(2))
    for name in ("20260101000000", "20260101000001"):
        segment(near / "segments" / name, pages, parts=2)
    copy_folder(near, far)
    left = [run_commands(root, context()) for root in (near, far)]
    assert left[0] == left[1]
    assert len(left[0]) > 15


def run_commands(root: Path, job: JobContext) -> dict[str, bytes | int]:
    """Run the commands that are `remote`, beside those of a round; what each file has,
    if it is text.
    """
    db, out = str(root / "crawldb"), root / "out"
    segments = [str(path) for path in sorted((root / "segments").iterdir())]
    rules = ["-noFilter", "-noNormalize"]
    for module, words in (
        (mergedb, [out / "merged", db, db]),
        (readdb, [db, "-topN", "5", out / "top"]),
        (readdb, [db, "-dump", out / "dump"]),
        (domainstats, [db, out / "hosts", "host"]),
        (protocolstats, [db, out / "codes"]),
        (crawlcomplete, ["-inputDirs", db, "-outputDir", out / "complete", "-mode", "host"]),
        (invertlinks, [out / "linkdb", *segments, *rules]),
        (mergelinkdb, [out / "links", out / "linkdb"]),
        (readlinkdb, [out / "links", "-dump", out / "linkdump"]),
        (mergesegs, [out / "segments", *segments]),
        (readseg, ["-dump", segments[0], out / "segmentdump"]),
        (generate, [db, out / "lists", "-noFilter", "-noNorm"]),
    ):
        assert module.run([*map(str, words)], job) == 0
    found: dict[str, bytes | int] = {}
    for path in out.rglob("*"):
        if path.is_file() and not path.name.endswith(".crc"):
            data = path.read_bytes()
            found[str(path.relative_to(out))] = len(data) if data[:3] == b"SEQ" else data
    return found


def test_documents_there_are_those_here(store: HadoopPath, tmp_path: Path) -> None:
    crawl, there = Crawl(tmp_path), store / "indexed"
    found = [
        (f"http://host{number % 3}/{number}", STATUS_FETCH_SUCCESS, f"t{number}")
        for number in range(40)
    ]
    crawl.segment("20260101000000", found[:30], parts=2)
    crawl.segment("20260102000000", found[20:], parts=3, inside=found[:3])
    crawl.crawldb({url: STATUS_DB_FETCHED for url, _, _ in found}, 2)
    for name in ("crawldb", "segments"):
        there.mkdir(exist_ok=True)
        copy_folder(tmp_path / name, there / name)
    left = []
    on_spark = {"minutch__engine": "spark", "spark__master": "local[2]"}
    for root, engine in ((tmp_path, {}), (there, {}), (there, on_spark)):
        words = (
            str(root / "crawldb"),
            "-dir",
            str(root / "segments"),
            "-linkdb",
            str(root / "linkdb"),
        )
        left.append((crawl.index(*words, **engine), crawl.titles()))
    session.stop()
    assert left[0] == left[1]
    assert left[0] == left[2]
    assert len(left[0][1]) == len(found)


def test_crawl_works_there(store: HadoopPath, tmp_path: Path) -> None:
    """Rounds, and rounds after these; what it can't do there it says before it begins."""
    own = {**PROPERTIES, "fetcher.server.delay": "0.0"}
    found = []
    with SiteServer() as server:
        seeds = write_seeds(tmp_path, server.site)
        for root in (store / "by-command", tmp_path / "by-command"):
            for _ in range(2):
                job = JobContext(
                    Configuration.load([], overrides=own).freeze(),
                    out=io.StringIO(),
                    err=io.StringIO(),
                )
                assert crawl.run([str(seeds), str(root), "1"], job) == 0
            names = sorted(path.name for path in root.iterdir() if not path.name.startswith("."))
            assert names == ["crawldb", "linkdb", "segments"]
            assert [Segment(path).missing() for path in (root / "segments").iterdir()] == [[], []]
            statuses = {url: entry.status for url, entry in CrawlDb(root / "crawldb").items()}
            found.append((statuses, sorted(LinkDb(root / "linkdb"))))
        with pytest.raises(ConfigError, match="updatehostdb works with local files only"):
            crawl.run(["--hostdbupdate", str(store / "other"), "1"], job)
    assert found[0] == found[1]
    assert len(found[0][0]) > 10


# -- a crawl ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def master(store: HadoopPath, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url
        session.stop()


def test_three_rounds_on_a_cluster(
    store: HadoopPath, master: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = int(time.time() * 1000)
    own = {**PROPERTIES, "fetcher.server.delay": "0.0", "mapreduce.job.reduces": "2"}
    on_spark = {"minutch.engine": "spark", "spark.master": master, "spark.task.maxFailures": "4"}

    def run(module: Any, *words: str | Path, here: bool = False, real_time: bool = False) -> None:
        conf = Configuration.load([], overrides=own if here else own | on_spark).freeze()
        clock = SystemClock() if real_time else FakeClock(now)
        assert (
            module.run(
                [*map(str, words)], JobContext(conf, clock, out=io.StringIO(), err=io.StringIO())
            )
            == 0
        )

    marks = tmp_path / "marks"
    marks.mkdir()
    deaths = Deaths(marks, monkeypatch)
    far, near = store / "crawl", tmp_path / "crawl"
    with SiteServer() as server:
        seeds = write_seeds(tmp_path, server.site)
        run(inject, far / "crawldb", seeds)
        for number in range(ROUNDS):
            run(generate, far / "crawldb", far / "segments")
            newest = max((far / "segments").iterdir())
            assert len(Segment(newest).parts(CRAWL_GENERATE)) == 2
            if number == 1:
                deaths.begin("fetch")
            run(fetch, newest, real_time=True)
            run(parse, newest)
            assert Segment(newest).missing(COMPLETE) == []
            for module, words in (
                (updatedb, (far / "crawldb", newest)),
                (invertlinks, (far / "linkdb", newest)),
                (dedup, (far / "crawldb",)),
            ):
                if number == 1:
                    deaths.begin(module.name)
                run(module, *words)
            if number == 1:
                died = deaths.end()
    assert {*died} >= {
        "fetch-write",
        "updatedb-shuffle",
        "updatedb-reduce",
        "invertlinks-shuffle",
        "invertlinks-reduce",
    }

    (near / "segments").mkdir(parents=True)
    run(inject, near / "crawldb", seeds, here=True)
    for path in sorted((far / "segments").iterdir()):
        copied = near / "segments" / path.name
        copy_folder(path, copied)
        run(updatedb, near / "crawldb", copied, here=True)
        run(invertlinks, near / "linkdb", copied, here=True)
        run(dedup, near / "crawldb", here=True)
    for name in ("crawldb", "linkdb"):
        assert _records(far / name) == _records(near / name)
        assert sorted(path.name for path in (far / name).iterdir()) == sorted(
            {"current", *_old(far / name)}
        )
    assert len(_records(far / "crawldb")) > 20
    assert not list(far.rglob("*.crc"))
    _nutch_reads(far, near, tmp_path)


def _old(db: HadoopPath) -> set[str]:
    return {"old"} if (db / "old").exists() else set()


def _nutch_reads(far: HadoopPath, near: Path, folder: Path) -> None:
    """Nutch's own reader dumps the CrawlDb of the store; minutch that of this machine."""
    try:
        jars = nutch_jars(NUTCH_VERSIONS[-1])
    except NoJars:
        return
    for name in ("harness", "nutch"):
        (folder / name).mkdir()
    theirs = f"file://{folder}/theirs"
    words = (str(far / "crawldb"), "-dump", theirs)
    with Harness(folder / "harness", jars, [write_configuration(folder / "nutch")]) as harness:
        properties = harness.properties({"plugin.includes": "nutch-extensionpoints"})
        answer = harness.run(
            [("tool", folder / "log", "org.apache.nutch.crawl.CrawlDbReader", properties, *words)]
        )
    assert answer == ["exit 0"]
    job = context()
    assert readdb.run([str(near / "crawldb"), "-dump", str(folder / "ours")], job) == 0
    dumps = [
        sorted(
            entry
            for part in (folder / name).glob("part-r-*")
            for entry in _ENTRIES.findall(part.read_text())
        )
        for name in ("ours", "theirs")
    ]
    assert dumps[0] == dumps[1]
    assert len(dumps[0]) == len(_records(near / "crawldb"))


# -- what goes wrong -------------------------------------------------------------------------------


def error(path: str) -> str:
    """The words in which a job ends that is given a path."""
    with pytest.raises((ConfigError, StoreError)) as caught:
        readdb.run([path, "-stats"], context())
    return str(caught.value)


def test_errors_say_what_is_missing(store: HadoopPath) -> None:
    assert error(str(store / "none")) == f"Input path does not exist: {store / 'none' / 'current'}"
    assert (
        error("nofs://host/db")
        == "nofs://host/db/current: no file system of Hadoop is known for nofs://"
    )
    assert error("hdfs:///db") == "hdfs:///db names no host or bucket: expected hdfs://HOST/PATH"
    assert "the jar with org.apache.hadoop.fs.s3a.S3AFileSystem is missing" in error(
        "s3a://bucket/db"
    )
    assert "its file system does not answer" in error("hdfs://127.0.0.1:1/db")


def test_without_java(store: HadoopPath, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hadoop.stop()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert (
        error("hdfs://127.0.0.1:1/db")
        == f"Java, 17 or newer, is needed, and there is no bin/java in JAVA_HOME ({tmp_path})"
    )
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert error("hdfs://127.0.0.1:1/db") == "Java, 17 or newer, is needed, and none was found"
    conf = Configuration.load([], overrides={"minutch.engine": "spark", "spark.app.name": "none"})
    with pytest.raises(ConfigError, match="Java, 17 or newer, is needed, and none was found"):
        session.context_of(conf)


def test_an_empty_db_is_none(store: HadoopPath) -> None:
    assert not CrawlDb(store / "nothing").exists()
