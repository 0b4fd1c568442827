"""What a command line costs before it does anything: the modules that it imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from minutch.records.crawldatum import STATUS_DB_UNFETCHED, CrawlDatum
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
    code = "import sys, minutch.annexes.service.{}; print('uvicorn' in sys.modules)"
    for module in ("app", "startserver"):
        words = [sys.executable, "-c", code.format(module)]
        assert subprocess.check_output(words, text=True, cwd=PROJECT) == "False\n"


@pytest.mark.parametrize(
    ("words", "used"),
    few(
        [
            (["-url", "http://h/3"], {"numpy"}),  # which compares checksums
            (["-stats"], {"numpy", "polars"}),
            (["-stats", "-url", "http://h/3"], {"numpy", "polars"}),
        ]
    ),
)
def test_readdb_imports_what_it_uses(words: list[str], used: set[str], tmp_path: Path) -> None:
    pages = {f"http://h/{n}": CrawlDatum(STATUS_DB_UNFETCHED, 86_400) for n in range(9)}
    write_db(tmp_path / "db", pages.items(), parts=1)
    assert imported("readdb", str(tmp_path / "db"), *words) & HEAVY == used


def test_plugins_that_are_asked_url_by_url_need_no_columns() -> None:
    """As the fetcher asks them: NumPy and Polars are what a column needs."""
    names = [
        ".".join(path.relative_to(PROJECT).with_suffix("").parts)
        for kind in ("urlfilter", "urlnormalizer")
        for path in (PROJECT / "plugins").glob(f"{kind}_*/*.py")
    ]
    assert len(names) > 15
    code = f"import sys; import {', '.join(names)}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PROJECT
    )
    assert not set(done.stdout.split()) & {"numpy", "polars"}
