"""A Spark cluster on loopback: a master and two workers, each a process of its own, with an
executor each.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from minutch.annexes.spark.engine import SparkEngine
from tests.servers.processes import Server

_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"


def missing() -> str:
    """Why Spark can't run here; empty if it can."""
    if find_spec("pyspark") is None:  # to import it takes a third of a second
        return "PySpark is not installed"
    return "" if shutil.which("java") else "no java on this machine"


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The URL of the master. Executors work in folders below `folder`."""
    with ExitStack() as stack:
        words = ["--host", "127.0.0.1", "--port", "0"]
        master = stack.enter_context(
            _server(folder / "master", _MASTER, words, says="New state: ALIVE")
        )
        url = re.findall(r"Starting Spark master at (spark://\S+)", master.said())[0]
        for name in ("one", "two"):
            words = [
                "--host",
                "127.0.0.1",
                "--cores",
                "1",
                "--memory",
                "1g",
                "--work-dir",
                str(folder / name),
                url,
            ]
            stack.enter_context(
                _server(folder / name, _WORKER, words, says="Successfully registered with master")
            )
        yield url


def _server(folder: Path, program: str, words: list[str], *, says: str) -> Server:
    import pyspark

    folder.mkdir()
    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    return Server([str(spark_class), program, "--webui-port", "0", *words], folder, says=says)


# -- executors that die ----------------------------------------------------------------------------

VERBS = ("map", "shuffle", "regroup", "reduce", "stream", "select", "write")


def mortal(function: Callable[..., Any], mark: Path) -> Callable[..., Any]:
    """The function of a task; the first executor that has run it dies before anybody knows."""

    def executor() -> int:
        """The process that this Python process works for: the parent of the one that forked it."""
        status = Path(f"/proc/{os.getppid()}/status").read_text()
        return int(status.split("PPid:")[1].split()[0])

    def run(*given: Any) -> Any:
        result = function(*given)
        if hasattr(result, "__next__"):
            result = list(result)
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            return result
        os.kill(executor(), signal.SIGKILL)
        return result

    return run


class Deaths:
    """Lets an executor die in each verb of each job from `begin` on; files in `folder` tell of
    it.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._patch = monkeypatch
        self._real = {verb: getattr(SparkEngine, verb) for verb in VERBS}

    def begin(self, job: str) -> None:
        """Lets an executor die in each verb of this job."""
        for verb in VERBS:
            self._patch.setattr(
                SparkEngine, verb, self._deadly(verb, self._folder / f"{job}-{verb}")
            )

    def _deadly(self, verb: str, mark: Path) -> Callable[..., Any]:
        real = self._real[verb]

        def call(engine: Any, function: Callable[..., Any], *args: Any, **more: Any) -> Any:
            if verb != "stream":
                return real(engine, mortal(function, mark), *args, **more)
            apply = mortal(lambda made, item: made(item), mark)

            def make() -> Callable[[Any], Any]:
                return partial(apply, function())

            return real(engine, make, *args, **more)

        return call

    def end(self) -> list[str]:
        """Stops that, and returns the jobs and verbs in which an executor has died."""
        self._patch.undo()
        return sorted(path.name for path in self._folder.iterdir())
