"""The output of a job on a CrawlDb depends on its input and configuration alone.

Databases here are full of equals: few URLs, scores, times and signatures. Some are compressed, some
empty or nearly. Each job runs on one core with plenty of memory, then with other numbers of cores,
budgets of memory, sizes of spans and batches, and other numbers of parts, of its input and of its
output.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.cycle.crawldb import seeds
from minutch.cycle.crawldb.store import CrawlDb
from minutch.hadoop.formats.compress import PACKAGE, codec_for
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import BLOCK, RECORD
from minutch.job import JobContext
from minutch.records import crawldatum as codes
from minutch.records import crawldatum_columns
from minutch.records.crawldatum import CrawlDatum
from minutch.work.tables import cacheranges
from minutch.work.tables.compression import PLAIN, Compression
from minutch.work.tables.frame import sort_by_key
from minutch.work.tables.recordfiles import CrawlDataWriter
from minutch.work.tables.spannedfile import SpannedFile
from tests.support.commands import dedup, inject, mergedb, readdb, updatedb
from tests.support.crawldbs import NOW, context, metadata, printed, write_db
from tests.support.examples import examples

Lines = list[str]


@dataclass(frozen=True)
class Machine:
    """The properties of a machine that must not matter."""

    cores: int = 1
    memory: str = "1g"
    small: bool = False  # spans and batches
    parts: int = 1
    inputs: int = 1  # parts of databases that are read


ONE = Machine()
MEMORIES = ["100", "20k", "1g"]
machines = st.builds(
    Machine,
    st.integers(1, 4),
    st.sampled_from(MEMORIES),
    st.booleans(),
    st.integers(1, 3),
    st.integers(1, 3),
)
randoms = st.integers(0, 1 << 30).map(Random)

# -- random input ----------------------------------------------------------------------------------

URLS = [
    f"http{s}://host{h}.example.org/{p}"
    for s in ("", "s")
    for h in range(4)
    for p in ("", "a", "b/c", "é", "%41")
]
URLS += [f"http://many.example.org/{i}" for i in range(60)]
DB = [
    codes.STATUS_DB_UNFETCHED,
    codes.STATUS_DB_FETCHED,
    codes.STATUS_DB_NOTMODIFIED,
    codes.STATUS_DB_GONE,
]
FETCHES = [
    codes.STATUS_FETCH_SUCCESS,
    codes.STATUS_FETCH_GONE,
    codes.STATUS_FETCH_RETRY,
    codes.STATUS_FETCH_REDIR_TEMP,
]
PARSES = [codes.STATUS_LINKED, codes.STATUS_LINKED, codes.STATUS_SIGNATURE, codes.STATUS_PARSE_META]


def datum(random: Random, statuses: list[int]) -> CrawlDatum:
    """An entry that equals others in all that decides, and in little else."""
    return CrawlDatum(
        random.choice(statuses),
        random.choice((60, 86400)),
        random.choice((0.0, 0.1, 0.7)),
        NOW - random.choice((0, 86_400_000)),
        signature=random.choice((None, b"one", b"two")),
        metadata=metadata(
            **{key: str(random.randrange(9)) for key in random.sample("xyz", random.randrange(3))}
        ),
    )


def entries(random: Random, statuses: list[int], count: int) -> list[tuple[str, CrawlDatum]]:
    """Entries of URLs that may repeat."""
    return [(random.choice(URLS), datum(random, statuses)) for _ in range(count)]


SIZES = [1, 90, 0, 90, 90, 90]
COMPRESSIONS = [
    PLAIN,
    Compression(RECORD),
    Compression(BLOCK),
    Compression(BLOCK, PACKAGE + "ZStandardCodec"),
    PLAIN,
    Compression(RECORD, PACKAGE + "SnappyCodec"),
]


def crawldb(random: Random, path: Path, parts: int) -> str:
    """A CrawlDb; it may have fewer entries than parts."""
    count, compression = random.choice(SIZES), random.choice(COMPRESSIONS)
    given = dict(entries(random, DB, count)).items()
    return str(write_db(path, given, parts=parts, compression=compression).path)


def segment(random: Random, path: Path) -> str:
    for name, statuses in (("crawl_fetch", FETCHES), ("crawl_parse", PARSES)):
        for part in range(random.randrange(1, 4)):
            compression = random.choice(COMPRESSIONS)
            with CrawlDataWriter(
                path / name / f"part-r-{part:05d}", **compression.options
            ) as writer:
                writer.write(
                    sort_by_key(
                        crawldatum_columns.to_frame(
                            entries(random, statuses, random.choice((60, 60, 0)))
                        )
                    )
                )
    return str(path)


def seed_folder(random: Random, path: Path) -> str:
    path.mkdir()
    for name in ("b.txt", "a.txt"):
        urls = random.choices(URLS, k=90)
        lines = [
            f"{url}\tnutch.score={random.randrange(9)}\tline={i}\n" for i, url in enumerate(urls)
        ]
        (path / name).write_text("".join(lines), encoding="utf-8")
    return str(path)


# -- the jobs: each makes its input in a folder, runs, and returns its output as lines -------------

Job = Callable[[Random, Path, int, JobContext], Lines]


def records(db: str | Path) -> Lines:
    """Key and record of each entry of a CrawlDb, by key."""
    found = []
    for part in CrawlDb(Path(db)).require_parts():
        with SequenceFileReader(part / "data") as reader:
            found += [f"{key.hex()} {value.hex()}" for key, value in reader]
    return sorted(found)


def run_inject(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    db, given = crawldb(random, folder / "db", parts), seed_folder(random, folder / "seeds")
    assert inject.run([db, given, "-update"], job) == 0
    return records(db)


def run_updatedb(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    db = crawldb(random, folder / "db", parts)
    given = [segment(random, folder / name) for name in ("2", "1")]
    assert updatedb.run([db, *given], job) == 0
    return records(db)


def run_dedup(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    db = crawldb(random, folder / "db", parts)
    order = ["score", "fetchTime", "urlLength", *random.choice((["httpsOverHttp"], []))]
    random.shuffle(order)
    group = random.choice(("none", "host", "domain"))
    assert dedup.run([db, "-group", group, "-compareOrder", ",".join(order)], job) == 0
    return records(db)


def run_mergedb(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    dbs = [crawldb(random, folder / name, parts) for name in ("2", "1", "3")]
    assert mergedb.run([str(folder / "out"), *dbs], job) == 0
    return records(folder / "out")


def run_stats(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    assert readdb.run([crawldb(random, folder / "db", parts), "-stats", "-sort"], job) == 0
    return printed(job).splitlines()[1:]


def run_dump(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    db = crawldb(random, folder / "db", parts)
    assert (
        readdb.run([db, "-dump", str(folder / "out"), "-format", "json", "-sample", "0.5"], job)
        == 0
    )
    return sorted(
        line for part in (folder / "out").glob("part-*") for line in part.read_text().splitlines()
    )


def run_top(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    db = crawldb(random, folder / "db", parts)
    assert readdb.run([db, "-topN", str(random.randrange(90)), str(folder / "out")], job) == 0
    return texts(folder / "out")


def texts(folder: Path) -> Lines:
    """The lines of the one text file in a folder, which may be compressed."""
    (path,) = folder.glob("part-r-00000*")
    data, codec = path.read_bytes(), codec_for(path.name)
    return (codec.decompress(data) if codec else data).decode().splitlines()


JOBS: list[Job] = [run_inject, run_updatedb, run_dedup, run_mergedb, run_stats, run_dump, run_top]

# -- the property ----------------------------------------------------------------------------------


@contextmanager
def on(machine: Machine) -> Iterator[None]:
    """Makes the process behave as if it ran on such a machine."""
    opened = SpannedFile.__init__

    def in_small_spans(
        self: SpannedFile, path: Path, *, span_size: int = 0, stored: bool = False
    ) -> None:
        opened(self, path, span_size=100, stored=stored)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda _: set(range(machine.cores)), raising=False)
        if machine.small:
            patch.setattr(SpannedFile, "__init__", in_small_spans)
            patch.setattr(cacheranges, "RANGE_ROWS", 7)
            patch.setattr(seeds, "CHUNK_BYTES", 200)
        yield


def output(
    job: Job, seed: Random, machine: Machine, more: Mapping[str, str] = MappingProxyType({})
) -> Lines:
    """The job's output and counters, for the input that `seed` stands for; `more` are
    properties.
    """
    random = Random()
    random.setstate(seed.getstate())
    job_context = context(
        {"minutch.memory": machine.memory, "mapreduce.job.reduces": str(machine.parts), **more}
    )
    with TemporaryDirectory() as folder, on(machine):
        lines = job(random, Path(folder), machine.inputs, job_context)
    counts = [
        f"{name}: {count}"
        for report in job_context.reports.values()
        for name, count in report.items()
    ]
    return [*lines, *sorted(counts)]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__.removeprefix("run_"))
@settings(max_examples=examples(8), deadline=None)
@given(randoms, machines)
def test_the_output_depends_on_the_input_alone(job: Job, random: Random, machine: Machine) -> None:
    assert output(job, random, machine) == output(job, random, ONE)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__.removeprefix("run_"))
def test_there_is_output(job: Job) -> None:
    assert len(output(job, Random(1), ONE)) > 2
