"""Tests in forks: each runs once, with its module's fixtures; what kills a process fails alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.golden import PROJECT

CONFTEST = """
from tests.support import forks
def pytest_addoption(parser): forks.add_option(parser)
def pytest_configure(config): config.pluginmanager.register(forks)
"""
TESTS = """
import atexit, os, signal, time, warnings
from pathlib import Path
import pytest

DONE = Path(__file__).with_name("done")

def say(word):
    with DONE.open("a") as file: file.write(f"{os.getpid()} {word}\\n")

say("collected")

@pytest.fixture(scope="module")
def own(tmp_path_factory):
    say("up")
    atexit.register(say, "exit")
    yield tmp_path_factory.mktemp("own")
    say("down")

@pytest.mark.parametrize("number", range(20))
def test_passes(own, number):
    time.sleep(0.01)
    say(f"passes{number}")
    print(f"not to be seen {number}")
    assert own.exists()

def test_fails(own):
    print("seen")
    warnings.warn("a warning")
    assert 1 + 1 == 3

def test_skips():
    pytest.skip("why not")

def test_kills(own):
    os.kill(os.getpid(), signal.SIGKILL)

@pytest.mark.parametrize("number", range(4))
def test_after(own, number):
    say(f"after{number}")
"""


def run(folder: Path, *words: str, tests: str = TESTS) -> tuple[int, str, list[tuple[str, str]]]:
    """The exit code, what is printed, and which process has noted what."""
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_some.py").write_text(tests)
    (folder / "done").touch()
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    noted = [tuple(line.split()) for line in (folder / "done").read_text().splitlines()]
    return done.returncode, done.stdout + done.stderr, noted  # type: ignore[return-value]


def test_each_runs_once_and_who_kills_its_process_fails(tmp_path: Path) -> None:
    code, out, noted = run(tmp_path, "-n", "3", "-rfs")
    assert code == 1, out
    assert "2 failed, 24 passed, 1 skipped, 1 warning in" in out, out
    assert re.search(r"test_kills - its process ended with SIGKILL", out)
    assert "seen" in out and "not to be seen" not in out
    assert "UserWarning: a warning" in out and "why not" in out
    assert noted.pop(0)[1] == "collected"
    ran = Counter(word for _, word in noted if word not in {"up", "down", "exit"})
    assert ran == dict.fromkeys(
        [f"passes{n}" for n in range(20)] + [f"after{n}" for n in range(4)], 1
    )
    by_process = {process for process, _ in noted}
    assert len(by_process) in {3, 4}  # the killed one has a successor, if others left it a test
    for process in by_process:
        words = [word for other, word in noted if other == process]
        assert words.count("up") == 1
        assert words[-2:] == ["down", "exit"] or "down" not in words  # the killed one


def test_the_last_module_runs_too(tmp_path: Path) -> None:
    """The list is cut between modules: what came after the last cut was given to nobody."""
    for number in range(5):
        (tmp_path / f"test_other{number}.py").write_text("def test(): pass\ndef test_b(): pass\n")
    code, out, noted = run(tmp_path, "-n", "2", tests=TESTS.replace("def test_", "def no_test_"))
    assert code == 0, out
    assert "10 passed" in out, out
    assert [word for _, word in noted] == ["collected"]


@pytest.mark.slow  # processes
def test_nobody_goes_on_after_enough_have_failed(tmp_path: Path) -> None:
    many = TESTS.replace("range(20)", "range(2000)").replace("own.exists()", "number != 5")
    code, out, noted = run(tmp_path, "-n", "2", "-x", tests=many)
    assert code == 1
    assert "1 failed" in out and "stopping after 1 failures" in out
    assert len(noted) < 500
    assert sum(word == "down" for _, word in noted) == 2


@pytest.mark.slow  # a process
def test_threads_that_a_fork_would_miss(tmp_path: Path) -> None:
    started = "import threading, time\nthreading.Thread(target=time.sleep, args=(1,)).start()\n"
    code, out, noted = run(tmp_path, "-n", "2", tests=started + TESTS)
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "threads that a fork would miss: Thread-1" in out and "since test_some.py was" in out
    assert [word for _, word in noted] == ["collected"]


def test_a_test_that_hangs_is_ended_and_the_others_run(tmp_path: Path) -> None:
    hangs = "from tests.support import forks\nforks.LONGEST = 2.0\n"
    hangs += "def test_hangs():\n    import threading\n    threading.Event().wait()\n"
    code, out, noted = run(tmp_path, "-n", "2", "-rf", "-k", "hangs or after", tests=hangs + TESTS)
    assert code == 1, out
    assert "1 failed, 4 passed" in out, out
    assert "test_hangs - its process ended with SIGABRT" in out
    assert "in test_hangs" in out  # where it hung
    assert sum(word.startswith("after") for _, word in noted) == 4


@pytest.mark.slow  # processes
def test_who_is_killed_takes_its_forks_along(tmp_path: Path) -> None:
    """Also one whose test would go on."""
    tests = """
import os, time
from pathlib import Path

def test_hangs():
    Path(__file__).with_name("pid").write_text(str(os.getpid()))
    time.sleep(60)

def test_other(): pass
"""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_some.py").write_text(tests)
    noted = tmp_path / "pid"
    noted.touch()
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "2", "."]
    with subprocess.Popen(command, cwd=tmp_path, env=environment) as process:
        wait_until(noted.read_text)
        process.kill()
    wait_until(lambda: not Path("/proc", noted.read_text()).exists())


def wait_until(is_so: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)
