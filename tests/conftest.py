"""Settings of all tests: what is slow runs with `--all`, Hypothesis gives the same examples at
every run, a slow machine is no failure, and no variable of the environment brings in somebody's own
configuration.

Tests that need more golden files than the subset in tests/golden/data are skipped where only that
is there.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies
from py3langid import langid

from minutch import processes, processwide
from minutch.conf import sources
from minutch.plugin import repository
from minutch.work.tables import parallel
from tests.support import forks
from tests.support.golden import GOLDEN, HAS_ALL, PROJECT

if TYPE_CHECKING:
    from tests.support.devtools import Chromium

gc.disable()  # until all tests are collected: nothing of them goes away before the end

settings.register_profile(
    "all", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("fast", settings.get_profile("all"), max_examples=10)

for variable in ("MINUTCH_HOME", "NUTCH_CONF_DIR", "NUTCH_LOG_DIR", "NUTCH_LOGFILE"):
    os.environ.pop(variable, None)

# A shell without job control lets its background jobs ignore it: a test of Ctrl-C would never end.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Turns the garbage collector on again, and exempts the collected tests from it.

    It looks less often than by default, each 700 objects: that was a tenth of the suite's time.
    Before the first property of a process Hypothesis collects all that there is: here that is
    nothing, and forks have it behind them.
    """
    gc.freeze()
    given(strategies.none())(lambda _: None)()
    gc.set_threshold(50_000, 20, 20)
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


CASES_ON_SPARK = 4
"""So many of a test's run with `--on-spark`: the others differ in what is the same with each
engine.
"""
GOLDEN_CASES = 4
"""So many of a test that compares files of Nutch's run without `--all`, from all parts of its list:
the others are the same rules on other files.
"""
LEFT_OUT = pytest.StashKey[int]()
"""How many slow tests this process, or a worker of it, left out."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """An option for each mark of APART; several may be given."""
    forks.add_option(parser)
    parser.addoption(
        "--all",
        action="store_true",
        help="slow tests too (without it only those named with ::), and all examples of properties",
    )
    for name, what in APART.items():
        parser.addoption(f"--{name}", action="store_true", help=f"run these alone: {what}")
    parser.addoption(
        "--on-spark", action="store_true", help="jobs have Spark for their engine (-n 0)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Load Hypothesis's profile, before tests are imported, and Spark, if it is asked for."""
    config.stash[LEFT_OUT] = 0
    if config.option.forks == forks.AUTO:
        config.option.forks = _processes(config)
    config.pluginmanager.register(forks)
    settings.load_profile("all" if _wants_all(config) else "fast")
    if not _wants_all(config):  # its threads, for tables of a few rows, took a fifth of the CPU
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
    if config.getoption("--on-spark"):
        from tests.support import onspark

        onspark.switch()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say what was left out, and whether Spark had anything to do."""
    if left := config.stash[LEFT_OUT]:
        terminalreporter.line(f"slow tests left out: {left}; bin/test --all runs them")
    if config.getoption("--on-spark"):
        from tests.support import onspark

        terminalreporter.line(f"{onspark.STAGES}{onspark.stages()}")


@pytest.fixture(scope="session", autouse=True)
def _machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Each process with tests has a folder for temporary files of its own, as if on a machine of
    its own: what a fetch remembers of hosts lies there, and all hosts of tests are 127.0.0.1.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("tmp")))
        patch.setattr(tempfile, "tempdir", None)  # TMPDIR is read again
        yield


@pytest.fixture(scope="session", autouse=True)
def _disk(request: pytest.FixtureRequest) -> Iterator[None]:
    """Without `--all` nothing waits until it is on the disk; tests/faults/ cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        if not _wants_all(request.config):
            patch.setattr(os, "fsync", lambda file: None)
            patch.setattr(os, "fdatasync", lambda file: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _shipped() -> Iterator[None]:
    """What is shipped, and no test changes, is read once: a configuration and its plugins took 20
    ms, in thousands of tests. So are the names of this process's control groups, and py3langid's
    model, which each set of plugin folders, and each worker, would unpack for itself.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((sources, "read_properties"), (repository, "read_manifest")):
            patch.setattr(module, name, _once(getattr(module, name)))
        patch.setattr(repository, "_read_plugins", _plugins_once(repository._read_plugins))
        patch.setattr(langid, "_load_model_file", cache(langid._load_model_file))
        patch.setattr(processes, "_LOADED_FIRST", "tests.support.preloaded")
        groups = cache(lambda root, read=parallel._control_groups: tuple(read(root)))
        patch.setattr(parallel, "_control_groups", groups)
        yield


def _once(read: Callable[..., Any]) -> Callable[..., Any]:
    kept = cache(read)
    return lambda path, *rest: (kept if path.is_relative_to(PROJECT) else read)(path, *rest)


def _plugins_once(read: Callable[[Sequence[Path]], Any]) -> Callable[[Sequence[Path]], Any]:
    kept = cache(lambda folders, path: read(folders))

    def read_once(folders: Sequence[Path]) -> Any:
        if not all(folder.is_relative_to(PROJECT) for folder in folders):
            return read(folders)
        manifests, java = kept(tuple(folders), tuple(sys.path))
        return dict(manifests), set(java)

    return read_once


@pytest.fixture(autouse=True)
def _process() -> Iterator[None]:
    """A command that runs in this process leaves no trace; its log left the next caplog empty."""
    before, level = processwide.settings(), logging.getLogger().level
    yield
    processwide.use(before)
    if logging.getLogger().level != level:  # to set it clears the caches of all loggers
        logging.getLogger().setLevel(level)


def _processes(config: pytest.Config) -> int:
    """Three for each core: tests wait, for a timeout or a process. Slow ones have processes,
    threads and browsers of their own, so there are two more than cores.
    """
    cores = len(os.sched_getaffinity(0))
    return cores + 2 if _wants_all(config) else 3 * cores


def _asked(config: pytest.Config) -> set[str]:
    """The marks of APART whose tests are to run."""
    return {name for name in APART if config.getoption(f"--{name}")}


def _wants_all(config: pytest.Config) -> bool:
    """Returns whether slow tests run: with --all, in a run apart, or where tests are named."""
    return bool(
        config.getoption("--all")
        or config.getoption("--on-spark")
        or _asked(config)
        or "slow" in config.option.markexpr
        or any("::" in argument for argument in config.args)
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is not asked for; `-m smoke` is the first test of every module that is not
    slow.
    """
    asked, wants_all, chosen, seen = _asked(config), _wants_all(config), [], set()
    most = CASES_ON_SPARK if config.getoption("--on-spark") else len(items)
    every = Counter(_function(item) for item in items)
    cases = Counter[str]()
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        apart = marks & APART.keys()
        if apart - asked or (asked and not apart):
            continue
        cases[_function(item)] += 1
        number = cases[_function(item)]
        if number > most and not config.getoption("--all"):
            continue
        if "golden" in marks and (number - 1) % -(-every[_function(item)] // GOLDEN_CASES):
            marks.add("slow")
        if "slow" in marks:
            if not wants_all:
                config.stash[LEFT_OUT] += 1
                continue
        elif item.path not in seen:
            seen.add(item.path)
            item.add_marker("smoke")
        chosen.append(item)
    items[:] = chosen


def _function(item: pytest.Item) -> str:
    """The test of a case."""
    return item.nodeid.partition("[")[0]
