"""Golden crawls and job tables as steps that can be run again: the arguments, the input, what Nutch
wrote.
"""

from __future__ import annotations

import re
import shlex
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

TABLE_PLUGINS = "urlfilter-regex|urlnormalizer-(pass|regex|basic)|scoring-opic"

_PROPERTY = re.compile(r"-D([^=]+)=(.*)")


@dataclass(frozen=True)
class Run:
    """One golden crawl: its folder (console, steps, crawl) and its configuration directory."""

    name: str
    folder: Path
    conf: Path


RUNS = tuple(
    Run(name, GOLDEN / name, GOLDEN / conf)
    for name, conf in (
        ("crawl-small/run-default-r1", "crawl-small/conf-default"),
        ("crawl-small/run-default-r2", "crawl-small/conf-default"),
        ("crawl-small/run-rich-r2", "crawl-small/conf-rich"),
        ("crawl-small-adaptive/run-r2", "crawl-small-adaptive/conf"),
        ("nutch-1.20", "nutch-1.20/conf"),
    )
)


@dataclass(frozen=True)
class Step:
    """One command of a crawl: its number, its arguments, properties set with -D, its console
    output.
    """

    run: Run
    number: int
    command: str
    arguments: list[str]
    properties: dict[str, str]
    console: str

    def __str__(self) -> str:
        return f"{self.run.name}-{self.number:02}"

    def before(self, database: str) -> Path | None:
        """The database as it was when the command started, None if there was none."""
        earlier = [n for n in self._states(database) if n < self.number]
        return self.run.folder / "steps" / f"{max(earlier):02}-{database}" if earlier else None

    def after(self, database: str) -> Path:
        """The database right after the command."""
        return self.run.folder / "steps" / f"{self.number:02}-{database}"

    def _states(self, database: str) -> list[int]:
        return [int(path.name[:2]) for path in (self.run.folder / "steps").glob(f"*-{database}")]

    def configuration(self, **more: str) -> Configuration:
        """The configuration of the command; loopback names are left to the commands that fetch."""
        return Configuration.load([self.run.conf], overrides={**self.properties, **more})


def steps(command: str) -> list[Step]:
    """All steps of all crawls that ran `command`."""
    return [step for run in RUNS for step in _steps(run) if step.command == command]


def _steps(run: Run) -> Iterator[Step]:
    for path in sorted((run.folder / "console").glob("[0-9][0-9]-*.txt")):
        console = path.read_text(encoding="utf-8", errors="replace")
        words = shlex.split(console.partition("\n")[0])[2:]
        found = [_PROPERTY.fullmatch(word) for word in words]
        properties = {match[1]: match[2] for match in found if match}
        arguments = [word for word, match in zip(words, found, strict=True) if not match]
        yield Step(run, int(path.name[:2]), arguments[0], arguments[1:], properties, console)


@dataclass(frozen=True)
class Job:
    """A line of tables/jobs/<table>/jobs.txt: properties and commands, `{...}` standing for
    paths.
    """

    table: Path
    name: str
    properties: dict[str, str]
    commands: list[str]

    def __str__(self) -> str:
        return self.name

    @property
    def output(self) -> Path:
        """The folder of what Nutch wrote."""
        return self.table / "out" / self.name

    def configuration(self, **more: str) -> Configuration:
        """The configuration that the job had, with the plugins of Nutch's build."""
        overrides = {"plugin.includes": TABLE_PLUGINS, **self.properties, **more}
        return Configuration.load([GOLDEN / "tables/conf"], overrides=overrides)

    def arguments(self, **paths: Path) -> list[list[str]]:
        """The commands as words, `{conf}` left out and the other places filled in."""
        return [shlex.split(command.format(conf="", **paths)) for command in self.commands]


def jobs(table: str) -> list[Job]:
    """The jobs of a table, as far as the golden files have their outputs."""
    path = GOLDEN / "tables/jobs" / table
    found = []
    for line in (
        (path / "jobs.txt").read_text(encoding="utf-8").splitlines() if in_set(path) else []
    ):
        name, properties, commands = (part.strip() for part in line.split("|", 2))
        pairs = (pair.split("=", 1) for pair in properties.split(";") if pair)
        found.append(Job(path, name, dict(pairs), commands.split(";;")))
    return [job for job in found if in_set(job.output)]


def raw_records(path: Path) -> list[tuple[str, bytes]]:
    """URL and serialized value of each record of a SequenceFile."""
    with SequenceFileReader(path) as reader:
        return [(DataInput(key).read_text(), value) for key, value in reader]


def database_records(path: Path) -> dict[str, list[tuple[str, bytes]]]:
    """The records of each part of a database (a `current` directory), by the part's name."""
    return {
        part.name: raw_records(part / "data") for part in sorted(path.iterdir()) if part.is_dir()
    }


def context(conf: Configuration, now: int = 0) -> JobContext:
    """A job's context whose clock stands at `now` (ms)."""
    return JobContext(conf, FakeClock(now))


def copied(source: Path | None, target: Path) -> Path:
    """A copy of the database `source` at `target`; `target` alone where there is no source."""
    if source is not None:
        shutil.copytree(source, target)
    return target
