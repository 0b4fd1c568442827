"""What a command line costs before it does anything: the modules that it imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from minutch.hadoop.formats.mapfile import MapFileWriter
from minutch.hadoop.formats.sequencewriter import TEXT, SequenceFileWriter
from minutch.hadoop.formats.writables import Text, Writable
from minutch.records.crawldatum import STATUS_DB_UNFETCHED, CrawlDatum
from minutch.records.hostdatum import HostDatum
from minutch.records.links import Inlink, Inlinks
from tests.support.crawldbs import write_db
from tests.support.examples import few
from tests.support.golden import PROJECT

HEAVY = {
    "polars",
    "numpy",
    "httpx",
    "pycurl",
    "selectolax",
    "tldextract",
    "rich",
    "lxml",
    "argparse",
    "asyncio",
    "multiprocessing",
    "uvicorn",
}

NEEDLESS = {"duckdb", "numba", "ctypes", "socket", "email", "pickle", "random", "tempfile"}
"""What else a look-up in a database does without, some milliseconds each."""


def imported(*words: str) -> set[str]:
    """The modules that a command line imports."""
    code = (
        "import sys; from minutch.commands.cli import main; main(sys.argv[1:]); "
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
    )
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(
    "words",
    few(
        [
            [],
            ["--help"],
            ["help"],
            ["help", "crawling"],
            ["readdb", "--help"],
            ["showproperties"],
            ["genrate"],
            ["filterchecker", "-stdin"],
            ["normalizerchecker", "-stdin"],
        ],
        3,
    ),
)
def test_nothing_heavy_is_imported(words: list[str]) -> None:
    found = imported(*words)
    assert found & {*HEAVY, "subprocess"} == set()
    assert annexes(found) == []


def annexes(modules: set[str]) -> list[str]:
    """Those of the modules that no crawl needs."""
    return [name for name in modules if name.startswith("minutch.annexes.")]


def test_a_job_imports_no_annex(tmp_path: Path) -> None:
    (tmp_path / "seeds").write_text("http://h/\n", encoding="utf-8")
    found = imported("inject", str(tmp_path / "db"), str(tmp_path / "seeds"))
    assert (tmp_path / "db" / "current").is_dir()
    assert annexes(found) == []


@pytest.mark.slow  # processes
def test_only_who_serves_imports_a_server() -> None:
    code = "import sys, minutch.{}; print('{}' in sys.modules)"
    for module, server in (
        ("annexes.service.app", "uvicorn"),
        ("commands.crawl", "starlette"),  # 30 ms of each crawl, without a live page too
    ):
        words = [sys.executable, "-c", code.format(module, server)]
        assert subprocess.check_output(words, text=True, cwd=PROJECT) == "False\n"


@pytest.mark.parametrize(
    ("words", "used"),
    few(
        [
            (["-stats"], {"numpy", "polars"}),
            (["-stats", "-url", "http://h/3"], {"numpy", "polars"}),
        ]
    ),
)
def test_readdb_imports_what_it_uses(words: list[str], used: set[str], tmp_path: Path) -> None:
    pages = {f"http://h/{n}": CrawlDatum(STATUS_DB_UNFETCHED, 86_400) for n in range(9)}
    write_db(tmp_path / "db", pages.items(), parts=1)
    assert imported("readdb", str(tmp_path / "db"), *words) & HEAVY == used


@pytest.mark.parametrize(
    ("command", "option", "record"),
    [
        ("readdb", "-url", CrawlDatum(STATUS_DB_UNFETCHED, 86_400)),
        ("readlinkdb", "-url", Inlinks([Inlink("http://g/", "g")])),
        ("readhostdb", "-get", HostDatum()),
    ],
)
def test_a_look_up_imports_nothing_that_takes_long(
    command: str, option: str, record: Writable, tmp_path: Path
) -> None:
    """It would be most of what the look-up costs: NumPy takes as long as Python and all of ours."""
    part = tmp_path / "current" / "part-r-00000"
    part.parent.mkdir()
    with (
        SequenceFileWriter(part, TEXT, record.class_name)
        if command == "readhostdb"
        else MapFileWriter(part, TEXT, record.class_name)
    ) as writer:
        for host in "abc":
            writer.append(Text(host), record)
    found = imported(command, str(tmp_path), option, "b")
    assert {"minutch.work.tables.database", type(record).__module__} <= found
    assert found & {*HEAVY, *NEEDLESS} == set()
    assert not any(name.startswith("minutch.kernels.") for name in found)


def modules_with(*plugins: str) -> set[str]:
    """What the modules of plugins, whose folders begin so, import."""
    names = [
        ".".join(path.relative_to(PROJECT).with_suffix("").parts)
        for plugin in plugins
        for path in (PROJECT / "plugins").glob(f"{plugin}_*/*.py")
    ]
    assert len(names) > 15
    code = f"import sys; import {', '.join(names)}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PROJECT
    )
    return set(done.stdout.split())


def test_plugins_that_are_asked_url_by_url_need_no_columns() -> None:
    """As the fetcher asks them: NumPy and Polars are what a column needs."""
    assert not modules_with("urlfilter", "urlnormalizer") & {"numpy", "polars"}


def test_plugins_of_a_fetch_or_parse_need_no_tables() -> None:
    """A process with Polars can't be forked, and each worker took a tenth of a second longer."""
    assert "polars" not in modules_with("parse", "parsefilter", "protocol", "scoring")


def test_the_parse_job_needs_no_tables() -> None:
    """Its workers are forks then. Through a fork server, which loads all that this process has,
    twenty pages took nearly twice as long.
    """
    code = "import sys; import minutch.cycle.parse.parsesegment; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PROJECT
    )
    assert "polars" not in done.stdout.split()
