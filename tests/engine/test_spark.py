"""Jobs on Spark: their output and counters are those of the engine of one machine, whatever the input.

One Spark runs for the module, with two worker processes, in this machine. Pieces are small, so that there are many.
"""

from __future__ import annotations

import io
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings

from minutch.conf import Configuration
from minutch.crawldb import crawlcomplete, dedup, domainstats, mergedb, protocolstats
from minutch.engine import session
from minutch.errors import FormatError
from minutch.formats.sequencefile import SequenceFileReader
from minutch.job import JobContext
from minutch.linkdb import invertlinks, mergelinkdb
from tests.linkdb.test_jobs import Pages, segment
from tests.properties.test_order import JOBS, ONE, URLS, Job, Lines, Machine, crawldb, machines, output, randoms
from tests.support.sparkcluster import missing

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.skipif(bool(missing()), reason=missing())]

SPARK = {"minutch.engine": "spark", "spark.master": "local[2]", "mapreduce.input.fileinputformat.split.maxsize": "2500"}


@pytest.fixture(scope="module", autouse=True)
def one_spark() -> Iterator[None]:
    """Spark as long as the module takes."""
    yield
    session.stop()


def stages() -> int:
    """How many stages Spark has run in this process."""
    context = session.running()
    return 0 if context is None else int(context._jsc.sc().dagScheduler().nextStageId())


# -- jobs beyond those of tests/properties/test_order.py -------------------------------------------------------------


def run_statistics(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    dbs = ",".join(crawldb(random, folder / name, parts) for name in ("2", "1"))
    assert domainstats.run([dbs, str(folder / "hosts"), "host"], job) == 0
    assert protocolstats.run([dbs, str(folder / "codes")], job) == 0
    assert crawlcomplete.run(["-inputDirs", dbs, "-outputDir", str(folder / "done"), "-mode", "domain"], job) == 0
    return [line for out in ("hosts", "codes", "done") for line in (folder / out / "part-r-00000").read_text().split()]


def run_near(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    db = crawldb(random, folder / "db", parts)
    assert dedup.run([db, "-near", "3"], job) == 0
    return link_records(folder / "db")


def run_filtered(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    """With plugins, in the processes of executors as well."""
    conf = job.conf.with_values({"plugin.includes": "urlfilter-regex|urlnormalizer-basic"}).freeze()
    job = JobContext(conf, job.clock, job.out, job.err, reports=job.reports)
    dbs = [crawldb(random, folder / name, parts) for name in ("2", "1")]
    assert mergedb.run([str(folder / "out"), *dbs, "-normalize", "-filter"], job) == 0
    return link_records(folder / "out")


def random_pages(random: Random) -> Pages:
    pages = random.sample(URLS, 30)
    return {
        page: [(random.choice(URLS), f"to {random.randrange(3)}") for _ in range(random.randrange(6))] for page in pages
    }


def run_links(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    segments = [str(segment(folder / name, random_pages(random), parts=2)) for name in ("a", "b", "c")]
    more = ["-noFilter", "-noNormalize"]
    assert invertlinks.run([str(folder / "one"), segments[0], *more], job) == 0
    assert invertlinks.run([str(folder / "one"), segments[1], *more], job) == 0
    assert invertlinks.run([str(folder / "two"), segments[2], *more], job) == 0
    assert mergelinkdb.run([str(folder / "out"), str(folder / "two"), str(folder / "one")], job) == 0
    return link_records(folder / "out")


def link_records(db: Path) -> Lines:
    """Key and record of each entry of a database, by key."""
    found = []
    for part in (db / "current").iterdir():
        with SequenceFileReader(part / "data") as reader:
            found += [f"{key.hex()} {value.hex()}" for key, value in reader]
    return sorted(found)


ALL: list[Job] = [*JOBS, run_statistics, run_near, run_filtered, run_links]


@pytest.mark.parametrize("job", ALL, ids=lambda job: job.__name__.removeprefix("run_"))
@settings(max_examples=2, deadline=None)
@given(randoms, machines)
def test_jobs_on_spark_give_what_they_give_here(job: Job, random: Random, machine: Machine) -> None:
    expected = output(job, random, ONE)
    before = stages()
    assert output(job, random, Machine(memory=machine.memory, parts=machine.parts), SPARK) == expected
    assert stages() > before


# -- what goes wrong -------------------------------------------------------------------------------------------------


def context(**more: str) -> JobContext:
    return JobContext(Configuration.load([], overrides=SPARK | more), out=io.StringIO(), err=io.StringIO())


def test_damage_ends_the_job_with_the_error_of_the_file(tmp_path: Path) -> None:
    names = ["a", "b"]
    for name in names:
        crawldb(Random(1), tmp_path / name, 1)
    data = tmp_path / "b/current/part-r-00000/data"
    data.write_bytes(data.read_bytes()[:-2])
    for parts in ("1", "2"):
        with pytest.raises(FormatError, match="b/current/part-r-00000/data"):
            mergedb.run(
                [str(tmp_path / "out"), *(str(tmp_path / name) for name in names)],
                context(**{"mapreduce.job.reduces": parts}),
            )
        assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    """Of a function that kills its process at its first attempt, the results and counts are those of the second."""
    from minutch.engine import Task, engine_of
    from minutch.job import Counters

    conf = context(**{"spark.master": "local[2,4]"}).conf
    died = tmp_path / "died"

    def function(task: Task, piece: int) -> int:
        import os

        task.counters.add("pieces")
        task.advance(1)
        if piece == 2 and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return piece * piece

    counters = Counters()
    with context().progress("squares") as progress:
        assert list(engine_of(conf).map(function, range(5), counters, progress)) == [0, 1, 4, 9, 16]
    assert died.exists()
    assert counters == {"pieces": 5}
    assert progress.done == 5
