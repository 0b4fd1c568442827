"""Nothing but the project's errors comes of damaged input, and no process dies of it.

A few seconds here, minutes in `.ci/run`, an hour with `bin/test --faults`; see `fuzz`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

import pytest

from minutch.errors import MinutchError
from tests.faults.fuzz import READERS
from tests.faults.readers import Reader
from tests.support.examples import tabled
from tests.support.golden import PROJECT

SEED = os.environ.get("FAULTS_SEED", "1")


def fuzz(seconds: float) -> None:
    """In a process of its own, which forks."""
    words = ["--seconds", str(seconds), "--seed", SEED]
    command = [sys.executable, "-m", "tests.faults.fuzz", *words]
    ran = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-3000:]
    assert ran.stdout.count(" cases") == len(READERS)


@pytest.mark.slow  # each reader's first pages take longer than all that come after
def test_damaged_input_ends_in_our_errors() -> None:
    fuzz(6)


@pytest.mark.slow
@tabled("name", [n for n, one in READERS.items() if getattr(one, "once", ())])
def test_what_once_failed_does_not_again(name: str) -> None:
    reader = READERS[name]
    assert isinstance(reader, Reader)
    for data in reader.once:
        with suppress(MinutchError, *reader.errors):
            reader.read(data)


@pytest.mark.faults
def test_damaged_input_for_an_hour() -> None:
    fuzz(3600)


ENDS = {
    "raise ValueError('odd')": "ValueError: odd",
    "import os; os.abort()": "SIGABRT",
    "import ctypes; ctypes.string_at(0)": "SIGSEGV",
    "bytearray(b'a') * (1 << 28)": " MiB",
}


@pytest.mark.slow
@pytest.mark.parametrize("does", ENDS)
def test_what_goes_wrong_is_found(does: str) -> None:
    """The harness itself, in a process of its own."""
    program = (
        "from tests.faults import fuzz; from tests.faults.readers import Reader\n"
        f"def read(data): exec({does!r})\n"
        "fuzz.MOST_MEMORY = 1 << 27\n"
        "fuzz.READERS = {'x': Reader(read, lambda: [b'y'], 'z')}\n"
        "print(*fuzz.run('x', 1, 0.1), sep='|')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    failed = ran.stdout.partition("|")[0]
    assert failed.startswith("FAILED python -m tests.faults.fuzz x --seed 1 --case 0")
    assert ENDS[does] in failed
