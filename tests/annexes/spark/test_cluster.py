"""A cluster whose executors die in the middle of a job: the result and the counters are as if
nothing had happened.
"""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import polars as pl
import pytest

import minutch
from minutch.annexes.spark import session
from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.segment.store import CONTENT, PARSE_DATA, Segment, part_writer
from minutch.hadoop.formats.javahash import partition
from minutch.job import Counters, JobContext
from minutch.work.engine import Partition, Task, engine_of
from tests.annexes.spark.test_fetch import in_between, lists, twice
from tests.annexes.spark.test_spark import (
    link_records,
    random_page,
    random_pages,
    random_segment,
    run_generate,
    run_index,
    segment_records,
    with_plugins,
)
from tests.cycle.linkdb.test_jobs import segment
from tests.properties.test_order import (
    URLS,
    Job,
    Lines,
    Machine,
    crawldb,
    output,
    records,
    run_inject,
    run_mergedb,
)
from tests.support import crawldbs
from tests.support.commands import invertlinks, mergedb, mergelinkdb, mergesegs, parse, readdb
from tests.support.crawldbs import printed
from tests.support.misbehaving import MisbehavingServer
from tests.support.pages import configuration, content
from tests.support.segments import conf_for, contents, fetch_segment, fetched, make_segment
from tests.support.sparkcluster import Deaths, cluster, missing

pytestmark = [
    pytest.mark.servers,
    pytest.mark.spark,
    pytest.mark.skipif(bool(missing()), reason=missing()),
]

SCHEMA = pl.Schema({"key": pl.Binary(), "count": pl.UInt32()})
PARTS = 3


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url
        session.stop()


def context(**more: str) -> JobContext:
    conf = Configuration.load([], overrides={"mapreduce.job.reduces": str(PARTS), **more})
    return JobContext(conf.freeze(), out=io.StringIO(), err=io.StringIO())


def executor() -> int:
    """The process of the executor that this Python process works for: the parent of the one that
    forked it.
    """
    status = Path(f"/proc/{os.getppid()}/status").read_text()
    return int(status.split("PPid:")[1].split()[0])


def die_once(at: str, here: str, marks: Path) -> None:
    """Kill the executor if it is at the place where it shall die, and has not yet."""
    if at == here and not (marks / at).exists():
        (marks / at).touch()
        os.kill(executor(), signal.SIGKILL)


def job(run: JobContext, folder: Path, at: str = "") -> tuple[list[str], Counters]:
    """Words counted by their first letters, then numbers by words: all verbs of an engine, one
    after the other.
    """
    engine, counters = engine_of(run.conf), Counters()
    (folder / "out").mkdir()

    def read(task: Task, piece: int) -> Iterator[pl.DataFrame]:
        keys = [b"%d" % (number % 7) for number in range(piece, 40 + piece)]
        yield pl.DataFrame({"key": keys, "count": [1] * 40}, schema=SCHEMA)
        task.counters.add("read", 40)
        if piece == 2:
            die_once(at, "read", folder)

    def add_up(task: Task, partition: Partition) -> Iterator[pl.DataFrame]:
        for table in partition.grouped():
            yield (
                table.group_by("key")
                .agg(pl.col("count").sum().cast(pl.UInt32))
                .select(SCHEMA.names())
            )
        die_once(at, "regroup", folder)

    def write(task: Task, partitions: Sequence[Partition]) -> int:
        lines = [
            f"{task.part} {row}\n" for table in partitions[0].sorted() for row in table.iter_rows()
        ]
        (task.folder / f"part-{task.part}").write_text("".join(lines))
        task.counters.add("written", len(lines))
        die_once(at, "write", folder)
        return len(lines)

    with (
        run.progress("words") as progress,
        engine.shuffle(read, range(4), SCHEMA, progress, spill=folder) as words,
        engine.regroup(add_up, words, SCHEMA, spill=folder) as sums,
    ):
        counters.merge(words.counters)
        written = engine.reduce(write, [sums], PARTS, folder / "out", counters, progress)
    counters.add("returned", sum(written))

    def write_more(task: Task, parts: range) -> None:
        for part in parts:
            (task.folder / f"more-{part}").write_text(str(part))
            task.counters.add("more")
        die_once(at, "write in order", folder)

    engine.write(write_more, PARTS, folder / "out", counters, None)
    names = [*(f"more-{part}" for part in range(PARTS)), *(f"part-{part}" for part in range(PARTS))]
    assert sorted(path.name for path in (folder / "out").iterdir()) == names
    return [(folder / "out" / f"part-{part}").read_text() for part in range(PARTS)], counters


@pytest.mark.parametrize("at", ["read", "regroup", "write", "write in order"])
def test_an_executor_dies(master: str, tmp_path: Path, at: str) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    expected = job(context(), tmp_path / "here")
    on_spark = context(
        **{"minutch.engine": "spark", "spark.master": master, "spark.task.maxFailures": "4"}
    )
    assert job(on_spark, tmp_path / "there", at) == expected
    assert (tmp_path / "there" / at).exists()
    assert expected[1]["read"] == 160


def run_parse(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    job = with_plugins(job, "feed|parse-html|scoring-opic")
    made = random_segment(random, folder, "20260101000000", job)
    assert parse.run([str(made.path)], job) == 0
    return segment_records(made.path)


def run_parse_in_place(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    job = with_plugins(job, "parse-html|scoring-opic")
    made = Segment(folder / "20260101000000")
    with made.writing([CONTENT]) as directory:
        for part in range(parts):
            with part_writer(directory, CONTENT, part) as append:
                for url in (url for url in sorted(URLS) if partition(url.encode(), parts) == part):
                    append(url, random_page(random, url))
    assert parse.run([str(made.path)], job) == 0
    return segment_records(made.path)


def run_mergesegs(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    here = with_plugins(crawldbs.context(), "parse-html")
    made = [
        random_segment(random, folder, name, here) for name in ("20260101000000", "20260101000001")
    ]
    assert [parse.run([str(segment.path)], here) for segment in made] == [0, 0]
    assert mergesegs.run([str(folder / "out"), *(str(segment.path) for segment in made)], job) == 0
    return [line for path in (folder / "out").iterdir() for line in segment_records(path)]


def run_mergelinkdb(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    dbs = [str(folder / name) for name in ("1", "2")]
    for number, db in enumerate(dbs):
        pages = segment(folder / f"segment{number}", random_pages(random), parts=2)
        assert (
            invertlinks.run([db, str(pages), "-noFilter", "-noNormalize"], crawldbs.context()) == 0
        )
    assert mergelinkdb.run([str(folder / "out"), *dbs], job) == 0
    return link_records(folder / "out")


@pytest.mark.parametrize(
    ("job", "verbs"),
    [
        (run_inject, "shuffle reduce"),
        (run_mergedb, "reduce"),
        (run_mergelinkdb, "shuffle reduce"),
        (run_parse, "shuffle reduce"),
        (run_parse_in_place, "write"),
        (run_mergesegs, "write"),
        (run_generate, "select reduce"),
        (run_index, "stream"),
    ],
    ids=[
        "inject",
        "mergedb",
        "mergelinkdb",
        "parse",
        "parse in place",
        "mergesegs",
        "generate",
        "index",
    ],
)
def test_executors_die_in_each_verb_of_a_job(
    master: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: Job, verbs: str
) -> None:
    expected = output(job, Random(1), Machine(parts=2, inputs=2))
    deaths = Deaths(tmp_path, monkeypatch)
    deaths.begin("job")
    on_spark = {"minutch.engine": "spark", "spark.master": master, "spark.task.maxFailures": "4"}
    assert output(job, Random(1), Machine(parts=2, inputs=2), on_spark) == expected
    assert deaths.end() == sorted(f"job-{verb}" for verb in verbs.split())


def test_pages_are_parsed_by_workers_of_executors(master: str, tmp_path: Path) -> None:
    """A process of an executor starts others, which find minutch in the archive."""
    found = []
    for name, more in (
        ("here", {}),
        ("there", {"minutch.engine": "spark", "spark.master": master}),
    ):
        conf = configuration("parse-html", **more, **{"mapreduce.job.reduces": "2"})
        run = JobContext(conf.freeze(), FakeClock(0), io.StringIO(), io.StringIO())
        made = Segment(tmp_path / name / "20260101000000")
        with (
            made.writing([CONTENT]) as directory,
            part_writer(directory, CONTENT, 0) as append,
        ):
            for number in range(9):
                url = f"http://example.org/{number}"
                append(
                    url, content(f"<title>{number}</title><a href={number + 1}>next</a>", url=url)
                )
        assert parse.run([str(made.path)], run) == 0
        found.append(
            (run.reports["ParseSegment"], [str(data) for data in made.records(PARSE_DATA)])
        )
    assert found[0] == found[1]
    assert len(found[0][1]) == 9


def test_executors_are_sent_all_that_they_need(master: str, tmp_path: Path) -> None:
    own = tmp_path / "conf"
    own.mkdir()
    (own / "regex-urlfilter.txt").write_text("-host1\n+.\n")
    properties = {
        "minutch.engine": "spark",
        "spark.master": master,
        "plugin.includes": "urlfilter-regex",
    }
    conf = Configuration.load([own], overrides=properties).freeze()
    run = JobContext(conf, out=io.StringIO(), err=io.StringIO())

    def look(task: Task, piece: int) -> tuple[str, str]:
        return minutch.__file__, str(conf.resource("regex-urlfilter.txt"))

    with run.progress("look") as progress:
        for module, rules in engine_of(conf).map(look, [0, 1], Counters(), progress):
            assert "/minutch-home/minutch/" in module
            assert "/minutch-home/folders/0/" in rules
    db = crawldb(Random(1), tmp_path / "db", 2)
    assert mergedb.run([str(tmp_path / "out"), db, "-filter"], run) == 0
    found = records(tmp_path / "out")
    assert 0 < len(found) < len(records(db))
    assert not [line for line in found if b"host1".hex() in line]
    assert readdb.run([str(tmp_path / "out"), "-stats"], run) == 0
    assert f"TOTAL urls:\t{len(found)}" in printed(run)


def executors(folder: Path) -> list[int]:
    """The processes of the executors that work below a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_executor = b"CoarseGrainedExecutorBackend" in (process / "cmdline").read_bytes()
            if is_executor and (process / "cwd").resolve().is_relative_to(folder):
                found.append(int(process.name))
    return found


def test_executors_die_while_they_fetch(
    master: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Tried again on the same machine, a task fetches again what was in flight, and nothing
    else.
    """
    with MisbehavingServer(address="0.0.0.0") as server:
        urls = lists(server, 8, 5)
        server.hold = {"/p6", "/p12"}
        segment = make_segment(tmp_path, *urls)

        def kill() -> None:
            for process in executors(tmp_path_factory.getbasetemp()):
                os.kill(process, signal.SIGKILL)

        in_between(server, 2, kill)
        values = {
            "minutch__engine": "spark",
            "spark__master": master,
            "minutch__fetch__state": str(tmp_path / "state"),
        }
        counters = fetch_segment(segment, conf_for(**values, fetcher__threads__fetch="1"))
        assert counters["generated"] == counters["fetched"] == 13
        assert twice(server) == server.hold
    assert sorted(contents(segment)) == sorted(fetched(segment)) == sorted(urls[0] + urls[1])
