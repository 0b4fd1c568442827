"""Settings of all tests: Hypothesis gives the same examples at every run, a slow machine is no
failure, and no variable of the environment brings in somebody's own configuration.

Tests that need more golden files than the subset in tests/golden/data are skipped where only that
is there.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.support.golden import GOLDEN, HAS_ALL

if TYPE_CHECKING:
    from tests.support.devtools import Chromium

gc.disable()  # until all tests are collected: nothing of them goes away before the end

settings.register_profile(
    "minutch", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("minutch")

for variable in ("MINUTCH_HOME", "NUTCH_CONF_DIR", "NUTCH_LOG_DIR", "NUTCH_LOGFILE"):
    os.environ.pop(variable, None)


def pytest_collection_finish() -> None:
    """Turns the garbage collector on again, and exempts the collected tests from it."""
    gc.freeze()
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that needs golden files which the subset lacks; where all of them should be, skip
    nothing.
    """
    if HAS_ALL:
        return
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    for mark in item.iter_markers("golden"):
        for path in mark.args:
            name = path.format(**parameters)
            if not (GOLDEN / name).exists():
                pytest.skip(f"needs {name} of all golden files (../shared/golden)")


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    """Chromium without a window."""
    from tests.support.devtools import Chromium

    with Chromium() as chromium:
        yield chromium


@pytest.fixture(scope="session")
def axe() -> str:
    """axe-core's script."""
    package = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    return (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


APART = {
    "jvm": (
        "what real Nutch and Hadoop make of files that minutch writes, and the other way round;"
        " needs Java"
    ),
    "browser": "pages in Chromium",
    "servers": "real search servers, brokers and readers of archives",
    "installed": "the wheel in environments of its own, one for each Python that is here",
    "faults": "all of the fault injection, which takes hours",
}
"""Marks of tests that need other programs, or much time: `--NAME` runs them, and without it they
are left out.
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    """An option for each mark of APART; several may be given."""
    for name, what in APART.items():
        parser.addoption(f"--{name}", action="store_true", help=f"run these alone: {what}")
    parser.addoption(
        "--on-spark", action="store_true", help="jobs have Spark for their engine (-n 0)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Jobs on Spark, if they are asked for."""
    if config.getoption("--on-spark"):
        from tests.support import onspark

        onspark.switch()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say whether Spark had anything to do."""
    if config.getoption("--on-spark"):
        from tests.support import onspark

        terminalreporter.line(f"{onspark.STAGES}{onspark.stages()}")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two more than there are cores: a third of the time tests wait, for a timeout or a process.

    For the short run collecting is what takes the time, so it has no more than there are cores.
    """
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return cores + (0 if config.option.markexpr == "smoke" else 2)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`-m smoke` is the first test of every module, but for those that are slow."""
    asked = {name for name in APART if config.getoption(f"--{name}")}
    for name in APART:
        items[:] = [item for item in items if any(item.iter_markers(name)) <= (name in asked)]
    if asked:
        items[:] = [
            item for item in items if any(mark.name in asked for mark in item.iter_markers())
        ]
    seen = set()
    for item in items:
        if item.path not in seen and not any(item.iter_markers("slow")):
            seen.add(item.path)
            item.add_marker("smoke")
