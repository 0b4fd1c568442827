"""A Spark cluster on loopback: a master and two workers, each a process of its own, with an executor each."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_START = 120.0
"""Seconds that a process has to come up."""


def missing() -> str:
    """Why Spark can't run here; empty if it can."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "PySpark is not installed"
    return "" if shutil.which("java") else "no java on this machine"


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The URL of the master. Executors work in folders below `folder`."""
    with ExitStack() as stack:
        log = stack.enter_context(_process(folder, "master", _MASTER, "--host", "127.0.0.1", "--port", "0"))
        url = _found(log, r"Starting Spark master at (spark://\S+)")
        for name in ("one", "two"):
            words = ("--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--work-dir", str(folder / name), url)
            _found(stack.enter_context(_process(folder, name, _WORKER, *words)), "Successfully registered with master")
        yield url


@contextmanager
def _process(folder: Path, name: str, program: str, *words: str) -> Iterator[Path]:
    """A process of Spark's; yields its log."""
    import pyspark

    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    path = folder / f"{name}.log"
    with path.open("wb") as log:
        command = [spark_class, program, "--webui-port", "0", *words]
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
        try:
            yield path
        finally:
            process.terminate()
            process.wait()


def _found(log: Path, pattern: str) -> str:
    """What a pattern finds in a log, once it does."""
    end = time.monotonic() + _START
    while time.monotonic() < end:
        match = re.search(pattern, log.read_text(errors="replace"))
        if match:
            return match[match.re.groups]
        time.sleep(0.1)
    raise AssertionError(f"{pattern!r} is not in {log}: {log.read_text(errors='replace')[-2000:]}")
