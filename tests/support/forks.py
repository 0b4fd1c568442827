"""Runs the collected tests in several processes, which are forks of this one.

    def pytest_addoption(parser):
        forks.add_option(parser)
    def pytest_configure(config):
        if config.option.forks == forks.AUTO: config.option.forks = 6
        config.pluginmanager.register(forks)

`-n 4` runs them in four processes. Each worker of pytest-xdist imports and collects all tests anew,
which took 6 CPU seconds for 7,300 tests; a fork has them already, and shares the memory. Each
process has a run of the list; one that is through with its own takes half of what is left to
another. Where a test kills its process, that test has failed, and a new fork goes on.

A fork has no threads but its own, and waits for others forever: to import Polars or DuckDB is fine,
a query of theirs while tests are imported is refused.
"""

from __future__ import annotations

import atexit
import os
import re
import signal
import sys
import threading
import time
import warnings
import weakref
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from traceback import print_exc
from typing import Any

import pytest

from minutch.processes import end_with

LONGEST = 1800.0
"""Seconds: a test that takes longer hangs, and is ended, lest nobody hears of the others."""
REPORT, WARNING, DONE, END = "report", "warning", "done", "end"
"""What a worker says: a phase of a test, a warning, that a test is through, and that all are."""

AUTO = -1
"""The number of processes that `-n auto` stands for, until pytest_configure says how many."""
STARTED: list[str] = []
"""What was started while tests were imported, and by whom."""


def add_option(parser: pytest.Parser) -> None:
    """The option -n."""
    parser.getgroup("forks")._addoption(  # addoption leaves lower-case letters to pytest
        "-n",
        dest="forks",
        metavar="NUM",
        default=0,
        type=lambda given: AUTO if given == "auto" else int(given),
        help="run the tests in NUM forked processes, with `auto` as many as suit this machine",
    )


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Notes after which module there are threads that a fork would miss."""
    if not STARTED and (names := _threads()):
        STARTED.append(f"{', '.join(names)}, since {report.nodeid} was imported")


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """In place of pytest's own loop, if more than one process is asked for."""
    count = min(session.config.getoption("forks"), len(session.items))
    if count < 2 or session.config.option.collectonly or session.testsfailed:
        return None
    if STARTED:
        raise pytest.UsageError(f"threads that a fork would miss: {STARTED[0]}")
    if terminal := session.config.pluginmanager.getplugin("terminalreporter"):
        terminal.showfspath = False  # the files' names would alternate
    dealer = _Dealer(session, count)
    try:
        dealer.run()
    finally:
        dealer.end()
    return True


def _threads() -> list[str]:
    """The names of Python's threads, but for this one, and of those that work for Polars."""
    found = [thread.name for thread in threading.enumerate()[1:]]
    for path in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # it has ended
            found += re.findall(r"^polars-\d+$", path.read_text(), re.MULTILINE)
    return found


@dataclass
class _Worker:
    """A fork, the tests that are left to it, and the two that it has: the one that runs, and the
    one after it, which pytest has to know before it takes down what the first has set up.
    """

    pid: int
    channel: Connection
    left: range
    current: int | None = None
    following: int | None = None
    since: float = 0.0
    """When it was given its test, on `time.monotonic`."""


class _Dealer:
    """The process that has collected: hands out tests, and reports what is said of them."""

    def __init__(self, session: pytest.Session, count: int) -> None:
        self._session, self._hook = session, session.config.hook
        self._workers: dict[Connection, _Worker] = {}
        self._through = 0
        paths = [item.path for item in session.items]
        self._modules = [at for at, pair in enumerate(pairwise(paths), 1) if pair[0] != pair[1]]
        self._folders = {at for at in self._modules if paths[at - 1].parent != paths[at].parent}
        left = range(len(paths))
        for number in range(count, 1, -1):
            mine, left = self._split(left, len(left) // number)
            self._start(mine)
        self._start(left)

    def run(self) -> None:
        """Until all tests are through, or as many have failed as may. Raises UsageError if some
        were not run.
        """
        while self._workers:
            for channel in wait(list(self._workers), LONGEST / 100):
                assert isinstance(channel, Connection)
                self._hear(self._workers[channel])
            for worker in self._workers.values():
                if time.monotonic() - worker.since > LONGEST:
                    os.kill(worker.pid, signal.SIGABRT)  # with a traceback of all its threads
            if self._session.shouldfail:
                raise self._session.Failed(self._session.shouldfail)
            if self._session.shouldstop:
                raise self._session.Interrupted(self._session.shouldstop)
        if self._through != len(self._session.items):
            count = len(self._session.items) - self._through
            raise pytest.UsageError(f"{count} tests were given to no process")

    def end(self) -> None:
        """Those that still run end after their test, since nobody hears them."""
        for worker in self._workers.values():
            worker.channel.close()
        for worker in self._workers.values():
            os.waitpid(worker.pid, 0)

    def _start(self, left: range) -> None:
        here, there = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        parent, pid = os.getpid(), os.fork()
        if not pid:
            end_with(parent)  # a test that hung went on for as long as it liked
            for channel in (here, *self._workers):
                channel.close()
            _work(self._session, there)
        there.close()
        worker = self._workers[here] = _Worker(pid, here, left)
        for _ in range(2):
            self._hand_out(worker)

    def _hand_out(self, worker: _Worker) -> None:
        if not worker.left:
            most = max(self._workers.values(), key=lambda other: len(other.left))
            most.left, worker.left = self._split(most.left, len(most.left) // 2)
        worker.current, worker.since = worker.following, time.monotonic()
        worker.following = worker.left[0] if worker.left else None
        worker.left = worker.left[1:]
        with suppress(OSError):  # it has died, which is noticed when it is heard
            worker.channel.send(worker.following)

    def _split(self, left: range, count: int) -> tuple[range, range]:
        """About so many tests, and the others: between two modules, if it is no single one's, as
        what a module sets up for its tests may take as long as all of them. What a session sets up
        is made in each fork that asks for it, mostly of one folder: between folders is better.
        """
        at, farther = left.start + count, len(left) // 8
        inside = [cut for cut in self._modules if left.start < cut < left.stop]
        cut = min(
            inside,
            key=lambda cut: abs(cut - at) + farther * (cut not in self._folders),
            default=at,
        )
        return range(left.start, cut), range(cut, left.stop)

    def _hear(self, worker: _Worker) -> None:
        try:
            said, what = worker.channel.recv()
        except (EOFError, OSError):
            said, what = END, None
        if said == REPORT:
            config = self._session.config
            report = self._hook.pytest_report_from_serializable(config=config, data=what)
            self._hook.pytest_runtest_logreport(report=report)
        elif said == WARNING:
            message, category, filename, line, when, nodeid = what
            warning = warnings.WarningMessage(message, category, filename, line)
            self._hook.pytest_warning_recorded.call_historic(
                kwargs={
                    "warning_message": warning,
                    "when": when,
                    "nodeid": nodeid,
                    "location": None,
                }
            )
        elif said == DONE:
            assert worker.current is not None
            self._through += 1
            item = self._session.items[worker.current]
            self._hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
            self._hand_out(worker)
        else:
            self._bury(worker)

    def _bury(self, worker: _Worker) -> None:
        """A fork has ended; if it had something to do, its test is to blame."""
        worker.channel.close()
        del self._workers[worker.channel]
        _, status = os.waitpid(worker.pid, 0)
        if worker.current is None:
            return
        self._through += 1
        item = self._session.items[worker.current]
        how = os.waitstatus_to_exitcode(status)
        why = f"its process ended with {signal.Signals(-how).name if how < 0 else how}"
        self._hook.pytest_runtest_logreport(
            report=pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")
        )
        if worker.following is not None:
            self._start(range(worker.following, worker.left.stop))


def _work(session: pytest.Session, channel: Connection) -> None:
    """Be a worker, and never return."""
    code = 1
    try:
        _settle(session.config, channel)
        _run(session, channel)
        code = 0
    except BaseException:  # noqa: BLE001 # also a Ctrl-C that a test has sent to its own process
        print_exc()
    finally:
        with suppress(BaseException):
            atexit._run_exitfuncs()
        os._exit(code)


def _settle(config: pytest.Config, channel: Connection) -> None:
    """What a process has for itself: its output, and a folder for temporary files."""
    weakref.finalize._registry.clear()  # type: ignore[attr-defined] # of the parent's files
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()  # into a file that all would share
    capture.start_global_capturing()
    capture.suspend_global_capture()
    config.pluginmanager.unregister(name="terminalreporter")
    config.hook.pytest_warning_recorded._call_history.clear()  # else each fork says them again
    config.pluginmanager.register(_Reporter(config, channel))
    folders = config._tmp_path_factory  # type: ignore[attr-defined]
    folders._exit_stack.pop_all()  # else each fork deletes the folders of earlier runs
    folders._basetemp = folders.mktemp("fork")


def _run(session: pytest.Session, channel: Connection) -> None:
    try:
        current = channel.recv()
        while current is not None:
            following = channel.recv()
            after = None if following is None else session.items[following]
            item = session.items[current]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            channel.send((DONE, None))
            current = following
        channel.send((END, None))
    except (EOFError, BrokenPipeError, ConnectionResetError):  # the parent has heard enough
        session._setupstate.teardown_exact(None)


class _Reporter:
    """In a worker: says what happens to the process that reports it."""

    def __init__(self, config: pytest.Config, channel: Connection) -> None:
        self._config, self._channel = config, channel

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._channel.send((REPORT, data))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        said = warning_message
        what = (str(said.message), said.category, said.filename, said.lineno, when, nodeid)
        self._channel.send((WARNING, what))
