"""Processes end with the one that started them, whatever either is at."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from minutch.processes import _apart, _deaf, end_with, may_fork, start_worker
from tests.support.examples import few
from tests.support.misbehaving import MisbehavingServer, page
from tests.support.segments import LOOPBACK, make_segment

ROOT = Path(__file__).resolve().parents[1]
LONG = 600
PLUGINS = "protocol-http|urlfilter-regex|parse-html|urlnormalizer-pass|scoring-opic"


def stuck(pipe: Connection) -> None:
    """A worker that never looks at anything again: a library keeps Python's lock."""
    pipe.send("there")
    ctypes.PyDLL(None).sleep(LONG)


def nested(pipe: Connection, how: str) -> None:
    """A worker with one of its own."""
    load(how)
    _, mine = start_worker(stuck, (), name="stuck")
    pipe.send(mine.recv())
    ctypes.PyDLL(None).sleep(LONG)


def deaf(pipe: Connection) -> None:
    """A worker that tells which signals its parent has blocked."""
    lines = Path(f"/proc/{os.getppid()}/status").read_text().splitlines()
    pipe.send(next(int(line[7:], 16) for line in lines if line.startswith("SigBlk:")))


def load(how: str) -> None:
    if how == "served":
        import polars  # noqa: F401 - who has loaded it may not be forked
    assert may_fork() == (how == "forked")


def program(how: str) -> None:
    """Starts workers, and says so: as forks, or by a fork server."""
    load(how)
    _, pipe = start_worker(nested, (how,), name="nested", daemon=False)
    print("begun", flush=True)
    print(pipe.recv(), flush=True)
    time.sleep(LONG)


def begun(how: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", f"from tests.test_processes import program; program({how!r})"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_library_s_threads_count(tmp_path: Path) -> None:
    """An open index has one that Python does not know of."""
    words = (
        "import sys, tantivy; from minutch.processes import may_fork; before = may_fork();"
        " index = tantivy.Index(tantivy.SchemaBuilder().build(), sys.argv[1]);"
        " index = tantivy.Index.open(sys.argv[1]); print(before, may_fork())"
    )
    ran = subprocess.run(
        [sys.executable, "-c", words, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == "True False\n", ran.stderr


def test_a_fork_server_starts_without_the_script_and_deaf() -> None:
    """Ctrl-C is for its parent; a script that does not ask for its `__name__` would run again."""
    main, before = sys.modules["__main__"], signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with _deaf(), _apart():
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        assert {signal.SIGINT, signal.SIGTERM, signal.SIGHUP} <= blocked
        assert not hasattr(sys.modules["__main__"], "__file__")
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
    assert sys.modules["__main__"] is main


def test_a_fork_that_hangs_ends_with_its_parent() -> None:
    """One that hears no signal: it would keep open, and locked, what its parent had."""
    reader, writer = os.pipe()
    parent = os.fork()
    if not parent:
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            me, began = os.getpid(), os.pipe()
            if not os.fork():
                end_with(me)
                os.write(began[1], b"x")
                while True:
                    time.sleep(60)
            os.read(began[0], 1)
            os.kill(me, signal.SIGKILL)
        finally:
            os._exit(1)
    os.close(writer)
    os.waitpid(parent, 0)
    with open(reader, "rb") as pipe:  # noqa: PTH123 - a descriptor
        assert select.select([pipe], [], [], 60)[0]
        assert pipe.read() == b""  # nobody has its other end open


@pytest.mark.slow  # processes
@pytest.mark.parametrize("how", few(["forked", "served"]))
@pytest.mark.parametrize("moment", few(["there", "begun"]))
def test_workers_and_theirs_end_with_a_process_that_is_killed(how: str, moment: str) -> None:
    """What is printed to has its end when nobody has it open any more."""
    process = begun(how)
    assert process.stdout is not None
    assert f"{moment}\n" in process.stdout
    process.kill()
    process.communicate(timeout=60)


@pytest.mark.slow  # processes
def test_a_ctrl_c_does_not_end_a_fork_server_that_starts() -> None:
    """It is for its parent, and the server loads what its workers need for a second and more."""
    code = (
        "import polars; from minutch.processes import start_worker; from tests import"
        " test_processes as t; its, pipe = start_worker(t.deaf, (), name='');"
        " print(pipe.recv())"
    )
    blocked = int(subprocess.check_output([sys.executable, "-c", code], cwd=ROOT))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        assert blocked >> (number - 1) & 1, number


@pytest.mark.slow  # a process
def test_a_fetch_starts_its_processes_as_forks() -> None:
    """What loads Polars before it starts them has each of them load everything anew: seconds."""
    code = (
        "import sys, minutch.commands.cli, minutch.commands.arguments, minutch.cycle.fetch.fetcher;"
        "print(*sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "polars" not in found.stdout.split()


def running(group: int) -> list[str]:
    """The processes of a session, but for those that only wait to be asked for their exit code."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session, *_ = path.read_text().rpartition(")")[2].split()
            if int(session) == group and state != "Z":
                found.append(path.with_name("cmdline").read_text().replace("\0", " "))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def wait_until(is_so: Callable[[], object], said: str) -> None:
    end = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < end, said
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["fetch", "crawl"])
def test_a_signal_at_any_moment_leaves_no_process_behind(command: str, tmp_path: Path) -> None:
    """Four moments, from the first file of a fetch until after its first request."""
    properties = {**LOOPBACK, "minutch.fetch.processes": "2", "plugin.includes": PLUGINS}
    options = [f"-D{name}={value}" for name, value in properties.items()]
    with MisbehavingServer() as server:
        server.pages["/p0"] = page(b"x", "Content-Type: text/html")
        server.hold = {"/p0"}
        for number in range(4):
            folder = tmp_path / str(number)
            folder.mkdir()
            (folder / "seeds").write_text(server.url("p0"))
            words = [str(folder / "seeds"), str(folder / "crawl"), "2"]
            if command == "fetch":
                words = [str(make_segment(folder / "crawl", [server.url("p0")]).path)]
            process = subprocess.Popen(
                [sys.executable, "-m", "minutch", command, *options, *words],
                cwd=ROOT,
                env={**os.environ, "NUTCH_LOG_DIR": str(folder)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
            while not list(folder.glob("crawl/segments/2*/_fetch")):
                assert process.poll() is None, process.communicate()
                time.sleep(0.005)
            time.sleep(0.3 * number)
            process.send_signal([signal.SIGINT, signal.SIGTERM][number % 2])
            timer = threading.Timer(0.5, server.release)
            timer.start()
            said, _ = process.communicate(timeout=60)
            timer.join()
            # late: all is fetched, or the interpreter has left its handlers
            assert process.returncode in (0, 130, -signal.SIGTERM, -signal.SIGINT), said
            wait_until(lambda: not running(process.pid), said)  # noqa: B023 - called at once
