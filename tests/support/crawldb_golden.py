"""Replays of Nutch's jobs on CrawlDbs: inputs and outputs as raw records, so that comparing is byte
for byte.
"""

import gzip
import io
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.job import JobContext
from tests.support.golden import GOLDEN, in_set

NOW = 1_800_000_000_000
"""The clock of every replay."""

RULES = GOLDEN / "crawl-small/conf-default"
"""Rule files as Nutch ships them; its settings are harmless."""

Records = list[tuple[str, str]]  # key, record in hex


def part_records(part: Path) -> Records:
    """Key and value of each record of a MapFile or SequenceFile, in order."""
    with SequenceFileReader(part / "data" if part.is_dir() else part) as reader:
        return [(DataInput(key).read_text(), value.hex()) for key, value in reader]


def parts(db: Path) -> list[Records]:
    """The records of a CrawlDb, part by part."""
    return [part_records(part) for part in sorted((db / "current").iterdir())]


def records(db: Path) -> dict[str, str]:
    """URL -> record of a whole CrawlDb."""
    return {key: value for part in parts(db) for key, value in part}


@dataclass(frozen=True)
class Case:
    """One line of a jobs.txt: a command, run with settings on the input of its job."""

    job: str
    name: str
    settings: dict[str, str]
    words: list[str]

    @property
    def folder(self) -> Path:
        return GOLDEN / "tables/jobs" / self.job

    def expected(self) -> dict[str, list[tuple[str, str]]]:
        """File -> its records, as listed."""
        found: dict[str, list[tuple[str, str]]] = {}
        with gzip.open(
            self.folder / "out" / self.name / "records.jsonl.gz", "rt", encoding="utf-8"
        ) as lines:
            for line in map(json.loads, lines):
                if "file" in line:
                    current = found.setdefault(line["file"], [])
                else:
                    current.append((line["key"], line["hex"]))
        return found


def cases(job: str) -> list[Case]:
    """The cases of a job, as far as the golden files have their outputs."""
    path = GOLDEN / "tables/jobs" / job / "jobs.txt"
    found = _parse_jobs(job, path.read_text(encoding="utf-8")) if in_set(path) else ()
    return [case for case in found if in_set(case.folder / "out" / case.name)]


def _parse_jobs(job: str, text: str) -> Iterator[Case]:
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            name, settings, command = (field.strip() for field in line.split("|"))
            pairs = (pair.partition("=") for pair in settings.split(";") if pair)
            yield Case(
                job,
                name,
                {key: value.replace("!", "|") for key, _, value in pairs},
                command.split()[2:],
            )


def context(
    settings: dict[str, str] | None = None, *, conf: Path = RULES, now: int = NOW
) -> JobContext:
    """A job's context: Nutch's rule files, a clock that stands still, output in memory."""
    configuration = Configuration.load([conf], overrides=settings or {})
    return JobContext(configuration, clock=FakeClock(now), out=io.StringIO(), err=io.StringIO())


def copy_db(source: Path, target: Path) -> Path:
    """A CrawlDb that may be written to (files and directories of the golden set are read-only)."""
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    for path in (target, *target.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return target


def with_fetch_time(record: str, time: int) -> str:
    """A record in hex with another fetch time."""
    return record[:4] + time.to_bytes(8, "big").hex() + record[20:]


@dataclass(frozen=True)
class Step:
    """One command of a golden crawl: what it was given, the CrawlDb before and after."""

    run: Path
    number: int
    command: str
    words: list[str]
    settings: dict[str, str]
    before: Path | None
    after: Path

    def __str__(self) -> str:
        return f"{self.run.relative_to(GOLDEN)}/{self.number:02d}-{self.command}".replace("/", "_")


RUNS = {
    "crawl-small/run-default-r1": "crawl-small/conf-default",
    "crawl-small/run-default-r2": "crawl-small/conf-default",
    "crawl-small/run-rich-r2": "crawl-small/conf-rich",
    "crawl-small-adaptive/run-r2": "crawl-small-adaptive/conf",
    "nutch-1.20": "nutch-1.20/conf",
}
"""Golden crawl -> its configuration."""


def steps(command: str) -> list[Step]:
    """The steps of all golden crawls that run `command`."""
    return [step for run in RUNS for step in _steps(GOLDEN / run) if step.command == command]


def _steps(run: Path) -> Iterator[Step]:
    before = None
    for console in sorted((run / "console").glob("[0-9]*.txt")):
        number, command = console.stem.split("-", 1)
        after = run / "steps" / f"{number}-crawldb"
        if not after.exists():
            continue
        line = console.read_text(encoding="utf-8").splitlines()[0]
        words = line.split()[3:]
        settings = dict(re.findall(r"-D\s?([\w.]+)=(\S+)", line))
        words = [word for word in words if not word.startswith("-D")]
        yield Step(run, int(number), command, words, settings, before, after)
        before = after
