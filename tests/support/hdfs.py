"""HDFS on loopback: a name node and a data node, each a process of its own, with Hadoop's own classes."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.interop.jars import HADOOP, fetched

_CLASSES = "org.apache.hadoop.hdfs.server"
_JAVA = ("java", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_LOG = "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"
_START = 120.0
"""Seconds that a process has to come up."""

_SITE = {
    "dfs.replication": "1",
    "dfs.permissions.enabled": "false",
    "dfs.namenode.http-address": "127.0.0.1:0",
    "dfs.datanode.address": "127.0.0.1:0",
    "dfs.datanode.ipc.address": "127.0.0.1:0",
    "dfs.datanode.http.address": "127.0.0.1:0",
    "dfs.namenode.edits.noeditlogchannelflush": "true",
}


def jars() -> list[Path]:
    """The servers' jars. Raises NoJars."""
    return fetched(
        f"hdfs-{HADOOP}",
        (
            ("org.apache.hadoop", "hadoop-client-minicluster", HADOOP),
            ("org.apache.hadoop", "hadoop-client-api", HADOOP),
            ("org.apache.hadoop", "hadoop-client-runtime", HADOOP),
            ("org.slf4j", "slf4j-simple", "1.7.36"),
        ),
    )


@contextmanager
def hdfs(folder: Path) -> Iterator[str]:
    """The address of a new, empty file system, `hdfs://127.0.0.1:PORT`; its blocks lie in `folder`."""
    path = ":".join([str(folder), *map(str, jars())])
    _configure(folder, "hdfs://127.0.0.1:0")
    name_node = [*_JAVA, _LOG, "-cp", path, f"{_CLASSES}.namenode.NameNode"]
    subprocess.run([*name_node, "-format", "-nonInteractive"], check=True, capture_output=True, cwd=folder)
    with ExitStack() as stack:
        log = stack.enter_context(_process(folder, "name", name_node))
        address = "hdfs://127.0.0.1:" + _found(log, r"NameNode RPC up at: \S*?:(\d+)")
        _configure(folder, address)
        data_node = [*_JAVA, _LOG, "-cp", path, f"{_CLASSES}.datanode.DataNode"]
        _found(stack.enter_context(_process(folder, "data", data_node)), "Successfully sent block report")
        yield address


def _configure(folder: Path, address: str) -> None:
    values = _SITE | {
        "fs.defaultFS": address,
        "dfs.namenode.name.dir": f"file://{folder}/names",
        "dfs.datanode.data.dir": f"file://{folder}/blocks",
        "hadoop.tmp.dir": f"{folder}/tmp",
    }
    lines = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in values.items())
    text = f"<configuration>{''.join(lines)}</configuration>"
    for name in ("core-site.xml", "hdfs-site.xml"):
        (folder / name).write_text(text, encoding="utf-8")


@contextmanager
def _process(folder: Path, name: str, command: list[str]) -> Iterator[Path]:
    """A server; yields its log."""
    path = folder / f"{name}.log"
    with path.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
        try:
            yield path
        finally:
            process.kill()
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
