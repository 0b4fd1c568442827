"""HDFS on loopback: a name node and a data node, each a process of its own, with Hadoop's own
classes.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.interop.jars import HADOOP, fetched
from tests.servers.processes import Server

_CLASSES = "org.apache.hadoop.hdfs.server"
_JAVA = ("java", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_LOG = "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"
_ADDRESS = r"NameNode RPC up at: \S*?:(\d+)"

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
    """The address of a new, empty file system, `hdfs://127.0.0.1:PORT`; its blocks lie in
    `folder`.
    """
    path = ":".join([str(folder), *map(str, jars())])
    _configure(folder, "hdfs://127.0.0.1:0")
    name_node = [*_JAVA, _LOG, "-cp", path, f"{_CLASSES}.namenode.NameNode"]
    subprocess.run(
        [*name_node, "-format", "-nonInteractive"], check=True, capture_output=True, cwd=folder
    )
    with Server(name_node, folder, says="Starting services required for active state") as server:
        address = f"hdfs://127.0.0.1:{re.findall(_ADDRESS, server.said())[0]}"
        _configure(folder, address)
        data_node = [*_JAVA, _LOG, "-cp", path, f"{_CLASSES}.datanode.DataNode"]
        (folder / "data").mkdir()
        with Server(data_node, folder / "data", says="Successfully sent block report"):
            yield address


def _configure(folder: Path, address: str) -> None:
    values = _SITE | {
        "fs.defaultFS": address,
        "dfs.namenode.name.dir": f"file://{folder}/names",
        "dfs.datanode.data.dir": f"file://{folder}/blocks",
        "hadoop.tmp.dir": f"{folder}/tmp",
    }
    lines = (
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in values.items()
    )
    text = f"<configuration>{''.join(lines)}</configuration>"
    for name in ("core-site.xml", "hdfs-site.xml"):
        (folder / name).write_text(text, encoding="utf-8")
