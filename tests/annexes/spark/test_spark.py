"""Jobs on Spark: their output and counters are those of the engine of one machine, whatever the
input.

One Spark runs for the module, with two worker processes, in this machine. Pieces are small, so that
there are many. MINUTCH_SEEDS says how many inputs each job is given.
"""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

import pytest

from minutch.annexes.spark import session
from minutch.conf import Configuration
from minutch.cycle.index import indexing as index
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_PARSE,
    PARSE_DATA,
    PARSE_TEXT,
    Segment,
    part_writer,
)
from minutch.errors import FormatError
from minutch.hadoop.formats.javahash import partition
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.job import JobContext
from minutch.records import crawldatum as status
from minutch.records.hostdatum import HostDatum
from minutch.records.protocol import Content
from minutch.work.engine import selection
from tests.cycle.hostdb.test_updatehostdb import write_hostdb
from tests.cycle.index.test_index import Crawl
from tests.cycle.linkdb.test_jobs import Pages, segment
from tests.properties.test_order import (
    COMPRESSIONS,
    JOBS,
    MEMORIES,
    ONE,
    URLS,
    Job,
    Lines,
    Machine,
    crawldb,
    output,
    texts,
)
from tests.support.commands import (
    crawlcomplete,
    dedup,
    domainstats,
    generate,
    invertlinks,
    mergedb,
    mergelinkdb,
    mergesegs,
    parse,
    protocolstats,
)
from tests.support.pages import content
from tests.support.sparkcluster import missing

pytestmark = [
    pytest.mark.servers,
    pytest.mark.spark,
    pytest.mark.skipif(bool(missing()), reason=missing()),
]

SPARK = {
    "minutch.engine": "spark",
    "spark.master": "local[2]",
    "mapreduce.input.fileinputformat.split.maxsize": "2500",
}
SEEDS = int(os.environ.get("MINUTCH_SEEDS", "2"))
ENGINE = ("minutch.engine", "spark.", "mapreduce.input.")
"""How properties begin that say how a job runs."""


@pytest.fixture(scope="module", autouse=True)
def one_spark() -> Iterator[None]:
    """Spark as long as the module takes. Contests are small enough for some to begin again with
    more rows.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "_MORE_ROOM", 2)
        patch.setattr(selection, "_WORTH", 0)
        yield
    session.stop()


def stages() -> int:
    """Returns the number of stages that Spark has run in this process."""
    context = session.running()
    return 0 if context is None else int(context._jsc.sc().dagScheduler().nextStageId())


# -- jobs beyond those of tests/properties/test_order.py -------------------------------------------


def run_statistics(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    dbs = ",".join(crawldb(random, folder / name, parts) for name in ("2", "1"))
    assert domainstats.run([dbs, str(folder / "hosts"), "host"], job) == 0
    assert protocolstats.run([dbs, str(folder / "codes")], job) == 0
    assert (
        crawlcomplete.run(
            ["-inputDirs", dbs, "-outputDir", str(folder / "done"), "-mode", "domain"], job
        )
        == 0
    )
    return [line for out in ("hosts", "codes", "done") for line in texts(folder / out)]


def run_near(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    db = crawldb(random, folder / "db", parts)
    assert dedup.run([db, "-near", "3"], job) == 0
    return link_records(folder / "db")


def run_filtered(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    """With plugins, in the processes of executors as well."""
    job = with_plugins(job, "urlfilter-regex|urlnormalizer-basic")
    dbs = [crawldb(random, folder / name, parts) for name in ("2", "1")]
    assert mergedb.run([str(folder / "out"), *dbs, "-normalize", "-filter"], job) == 0
    return link_records(folder / "out")


def random_pages(random: Random) -> Pages:
    pages = random.sample(URLS, 30)
    return {
        page: [
            (random.choice(URLS), f"to {random.randrange(3)}") for _ in range(random.randrange(6))
        ]
        for page in pages
    }


def run_links(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    """LinkDbs of so many parts, into which more goes, and which are merged: as they are, filtered,
    normalized.
    """
    given = [random_pages(random) for _ in range(3)] + [{}]
    segments = [
        str(segment(folder / f"{number}", pages, parts=2)) for number, pages in enumerate(given)
    ]
    job = with_plugins(job, "urlfilter-regex|urlnormalizer-basic")
    before = {"mapreduce.job.reduces": str(parts)} | random_compression(random)
    first = [str(folder / "one"), segments[0], "-noFilter", "-noNormalize"]
    assert invertlinks.run(first, with_values(job, before)) == 0
    flags = random.choice((["-noFilter", "-noNormalize"], ["-noNormalize"], []))
    assert invertlinks.run([str(folder / "one"), *random.sample(segments, 2), *flags], job) == 0
    assert invertlinks.run([str(folder / "two"), random.choice(segments), *flags], job) == 0
    flags = random.choice(([], ["-filter"], ["-filter", "-normalize"]))
    dbs = [str(folder / name) for name in random.choice(("one", "two one", "one two")).split()]
    assert mergelinkdb.run([str(folder / "out"), *dbs, *flags], job) == 0
    return link_records(folder / "out")


def random_compression(random: Random) -> dict[str, str]:
    """The properties of a job whose output is compressed in some way."""
    chosen, name = random.choice(COMPRESSIONS), "mapreduce.output.fileoutputformat.compress"
    return {
        name: str(chosen.kind != "NONE").lower(),
        f"{name}.type": chosen.kind,
        f"{name}.codec": chosen.codec,
    }


def link_records(db: Path) -> Lines:
    """Key and record of each entry of a database, by key."""
    found = []
    for part in (db / "current").iterdir():
        with SequenceFileReader(part / "data") as reader:
            found += [f"{key.hex()} {value.hex()}" for key, value in reader]
    return sorted(found)


def with_values(job: JobContext, values: Mapping[str, str]) -> JobContext:
    return JobContext(
        job.conf.with_values(values).freeze(), job.clock, job.out, job.err, reports=job.reports
    )


def with_plugins(job: JobContext, plugins: str) -> JobContext:
    return with_values(job, {"plugin.includes": plugins})


def random_segment(random: Random, folder: Path, name: str, job: JobContext) -> Segment:
    """A fetched segment: pages with links, feeds with pages inside that may be there already, and
    some twice.

    Its parts are partitions, or not.
    """
    made = Segment(folder / name)
    shares: list[list[str]] = [[] for _ in range(random.randrange(1, 4))]
    is_partitioned = random.random() < 0.5
    for url in sorted(random.choices(URLS, k=40)):
        share = (
            partition(url.encode(), len(shares))
            if is_partitioned
            else random.randrange(len(shares))
        )
        shares[share].append(url)
    with made.writing([CONTENT]) as directory:
        for part, urls in enumerate(shares):
            with part_writer(directory, CONTENT, part) as append:
                for url in dict.fromkeys(urls):
                    append(url, random_page(random, url))
    return made


def random_page(random: Random, url: str) -> Content:
    links = random.choices(URLS, k=3)
    if random.random() < 0.1:
        items = "".join(f"<item><title>{link}</title><link>{link}</link></item>" for link in links)
        return content(
            f"<rss version='2.0'><channel>{items}</channel></rss>", "application/rss+xml", url=url
        )
    return content(
        "".join(f"<a href='{link}'>{random.randrange(5)}</a>" for link in links), url=url
    )


def segment_records(segment: Path) -> Lines:
    """The records of all folders, those of crawl_parse, which are in no order, sorted with the
    others.
    """
    found = []
    for data in sorted(
        path for path in segment.rglob("*") if path.name == "data" or path.name.startswith("part-")
    ):
        if data.is_file():
            with SequenceFileReader(data) as reader:
                found += [
                    f"{data.relative_to(segment).parts[0]} {key.hex()} {value.hex()}"
                    for key, value in reader
                ]
    return sorted(found)


def run_segments(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    """Segments are parsed, then merged, to slices or with plugins."""
    job = with_plugins(job, "feed|parse-html|urlfilter-regex|urlnormalizer-basic|scoring-opic")
    segments = [
        random_segment(random, folder, name, job).path
        for name in ("20260101000000", "20260101000001")
    ]
    found = []
    for path in segments[: random.randrange(1, 3)]:
        assert parse.run([str(path)], job) == 0
        made = {len(Segment(path).parts(name)) for name in (PARSE_DATA, PARSE_TEXT, CRAWL_PARSE)}
        assert made == {job.conf.get_int("mapreduce.job.reduces", 1)}
        found += segment_records(path)
    options = random.choice((["-normalize", "-filter"], ["-filter"], []))
    assert mergesegs.run([str(folder / "out"), *map(str, segments), *options], job) == 0
    for path in (folder / "out").iterdir():
        found += segment_records(path)
    return found


def run_slices(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    """Slices are of parts, so that there have to be as many of these here and there."""
    job = JobContext(
        job.conf.with_values({"mapreduce.job.reduces": "2"}),
        job.clock,
        job.out,
        job.err,
        reports=job.reports,
    )
    segments = [
        str(random_segment(random, folder, name, job).path)
        for name in ("20260101000000", "20260101000001")
    ]
    assert (
        mergesegs.run([str(folder / "out"), *segments, "-slice", str(random.randrange(2, 30))], job)
        == 0
    )
    return [
        f"{path.name} {line}"
        for path in sorted((folder / "out").iterdir())
        for line in segment_records(path)
    ]


def run_index(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    """Two writers, and ranges of few keys; queries in another order, which -normalize sorts, make
    strays.
    """
    crawl = Crawl(folder)
    urls = [f"{url}?{random.choice(('a&b', 'b&a'))}" for url in URLS]
    codes = [status.STATUS_FETCH_SUCCESS, status.STATUS_FETCH_GONE, status.STATUS_FETCH_NOTMODIFIED]
    for name in ("20260101000000", "20260102000000"):
        some = [
            (url, random.choice(codes), f"t{random.randrange(9)}")
            for url in random.sample(urls, 50)
        ]
        crawl.segment(name, some[:45], parts=random.randrange(1, 4), inside=some[45:])
    known = {
        url: random.choice((status.STATUS_DB_FETCHED, status.STATUS_DB_DUPLICATE)) for url in urls
    }
    words = [str(crawl.crawldb(known, parts)), "-dir", str(folder / "segments")]
    words += [flag for flag in ("-deleteGone", "-normalize", "-filter") if random.random() < 0.5]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "_range_bytes", lambda conf: 2000)
        engine = {name: value for name, value in job.conf.items() if name.startswith(ENGINE)}
        lines, counters = crawl.index(
            *words, **{name.replace(".", "__"): value for name, value in engine.items()}
        )
    return [*lines, *map(str, sorted(crawl.titles().items())), *map(str, sorted(counters.items()))]


def run_generate(random: Random, folder: Path, parts: int, job: JobContext) -> Lines:
    """All the limits, with marks in the CrawlDb and a HostDb; topN is for all reducers, of which
    there is a choice.
    """
    db, segments = crawldb(random, folder / "db", parts), folder / "segments"
    values = {
        "generate.update.crawldb": "true",
        "generate.max.count": str(random.choice((-1, 2))),
        "generate.count.mode": random.choice(("host", "domain")),
        "mapreduce.framework.name": "yarn",
        "mapreduce.job.reduces": str(random.randrange(1, 4)),
    }
    more = [
        "-topN",
        str(random.randrange(30)),
        "-maxNumSegments",
        "2",
        "-numFetchers",
        "2",
        "-noFilter",
        "-noNorm",
    ]
    if random.random() < 0.5:
        write_hostdb(
            folder / "hosts", {f"host{number}.example.org": HostDatum() for number in range(4)}
        )
        values["generate.max.count.expr"] = "1"
        more += ["-hostdb", str(folder / "hosts")]
    job = with_values(job, values)
    found = [f"exit code {generate.run([db, str(segments), *random.choice((more, []))], job)}"]
    made = sorted(segments.iterdir()) if segments.is_dir() else []
    return (
        found
        + [f"{at} {line}" for at, path in enumerate(made) for line in segment_records(path)]
        + link_records(Path(db))
    )


ALL: list[Job] = [
    *JOBS,
    run_statistics,
    run_near,
    run_filtered,
    run_links,
    run_segments,
    run_slices,
    run_index,
    run_generate,
]


def random_machine(random: Random) -> Machine:
    """As many parts as before, or others; up to more than there are records."""
    parts, inputs = random.choice((1, 2, 3, 5)), random.choice((1, 2, 3, 8))
    return Machine(
        memory=random.choice(MEMORIES), parts=parts, inputs=random.choice((parts, inputs))
    )


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("job", ALL, ids=lambda job: job.__name__.removeprefix("run_"))
def test_jobs_on_spark_give_what_they_give_here(job: Job, seed: int) -> None:
    random = Random(f"{job.__name__} {seed}")
    machine, more = random_machine(random), random_compression(random)
    expected = output(job, random, ONE)
    before = stages()
    assert output(job, random, machine, SPARK | more) == expected
    assert stages() > before


# -- what goes wrong -------------------------------------------------------------------------------


def context(**more: str) -> JobContext:
    return JobContext(
        Configuration.load([], overrides=SPARK | more), out=io.StringIO(), err=io.StringIO()
    )


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
    """Of a function that kills its process once, the second attempt gives results and counts."""
    from minutch.job import Counters
    from minutch.work.engine import Task, engine_of

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
