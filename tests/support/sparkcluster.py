"""A Spark cluster on loopback: a master and two workers, each a process of its own, with an executor each."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.servers.processes import Server

_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"


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
        words = ["--host", "127.0.0.1", "--port", "0"]
        master = stack.enter_context(_server(folder / "master", _MASTER, words, says="New state: ALIVE"))
        url = re.findall(r"Starting Spark master at (spark://\S+)", master.said())[0]
        for name in ("one", "two"):
            words = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--work-dir", str(folder / name), url]
            stack.enter_context(_server(folder / name, _WORKER, words, says="Successfully registered with master"))
        yield url


def _server(folder: Path, program: str, words: list[str], *, says: str) -> Server:
    import pyspark

    folder.mkdir()
    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    return Server([str(spark_class), program, "--webui-port", "0", *words], folder, says=says)
