"""A made-up crawl and a hostile one, written and reported once."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.inspect.query.crawl import open_crawl
from minutch.inspect.report import reportfile
from minutch.inspect.report.facts import Facts
from minutch.inspect.report.gather import FactsGatherer
from minutch.job import JobContext
from minutch.work.tables.parallel import memory_budget
from tests.inspect.report.madeup import MadeUp


def context(now: int, **properties: str) -> JobContext:
    """Makes the context of a job; in properties, `__` stands for a dot."""
    values = {name.replace("__", "."): value for name, value in properties.items()}
    conf = Configuration.load([], overrides={"plugin.includes": "nutch-extensionpoints", **values})
    return JobContext(conf.freeze(), FakeClock(now), io.StringIO(), io.StringIO())


def gathered(folder: Path, now: int, **properties: str) -> Facts:
    """The facts of the crawl in a folder but for an audit, which takes most of a report's time."""
    job = context(now, **properties)
    gatherer = FactsGatherer(open_crawl(folder), (), now, memory_budget(job.conf), job.progress)
    return gatherer.facts(folder.name)


@dataclass
class Written:
    """A made-up crawl, where it lies, and its facts."""

    crawl: MadeUp
    folder: Path
    facts: Facts


def _written(made: MadeUp, folder: Path) -> Written:
    made.write(folder)
    return Written(made, folder, reportfile.gathered(open_crawl(folder), context(made.now)))


@pytest.fixture(scope="session")
def harbours(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A crawl of some rounds. Tests only read it."""
    made = MadeUp(seed=3, hosts=6, pages=200, rounds=6, most=70)
    return _written(made, tmp_path_factory.mktemp("report") / "harbours")


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A crawl whose pages and addresses mean harm."""
    made = MadeUp(seed=1, hosts=2, pages=12, rounds=4, most=40, hostile=True)
    folder = tmp_path_factory.mktemp("report") / "<img src=x onerror=alert(1)>"
    return _written(made, folder)
