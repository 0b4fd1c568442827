"""Drives the Java harness: requests in, answers out, all in one JVM: each start of Nutch took
three seconds.
"""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

SOURCE = Path(__file__).parent / "java" / "Harness.java"

Record = tuple[bytes, ...]

_TIMEOUT = 300
_LOG_LEVEL = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"

# Hadoop's local file system and UserGroupInformation look into the JDK
_OPENED = (
    "java.base/java.lang",
    "java.base/java.util",
    "java.base/java.nio",
    "java.base/sun.nio.ch",
)


class Harness:
    """The compiled harness on a class path."""

    def __init__(self, folder: Path, jars: Iterable[Path], extra: Iterable[Path] = ()) -> None:
        self._folder = folder
        self._jars = [str(jar) for jar in jars]
        self._extra = [str(path) for path in extra]
        self._log = folder / "log"
        self._java: subprocess.Popen[str] | None = None
        command = [
            "javac",
            "-nowarn",
            "-Xlint:none",
            "-cp",
            os.pathsep.join(self._jars),
            "-d",
            str(folder),
            str(SOURCE),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._java is not None:
            self._java.kill()
            self._java.communicate()

    def run(self, requests: Sequence[Sequence[str | Path]]) -> list[str]:
        """Send requests; returns an answer for each. AssertionError, with the JVM's log, if one
        failed.
        """
        if self._java is None or self._java.poll() is not None:
            self._java = self._started()
        java = self._java
        assert java.stdin is not None and java.stdout is not None
        answers = []
        timer = threading.Timer(_TIMEOUT, java.kill)
        timer.start()
        try:
            for request in requests:
                java.stdin.write("\t".join(map(str, request)) + "\n")
                java.stdin.flush()
                answers.append(java.stdout.readline().rstrip("\n"))
                is_good = answers[-1] == "ok" or answers[-1].startswith("exit ")
                assert is_good, f"{request}: {answers[-1]}\n{self._log.read_text()[-4000:]}"
        finally:
            timer.cancel()
        return answers

    def _started(self) -> subprocess.Popen[str]:
        path = os.pathsep.join([*self._extra, str(self._folder), *self._jars])
        opened = [word for package in _OPENED for word in ("--add-opens", f"{package}=ALL-UNNAMED")]
        words = ["-Xmx512m", "-XX:TieredStopAtLevel=1", _LOG_LEVEL, *opened, "-cp", path, "Harness"]
        with self._log.open("w") as log:
            return subprocess.Popen(
                ["java", *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._folder,
                encoding="utf-8",
            )

    def properties(self, values: Mapping[str, str]) -> Path:
        """A file of properties for the request `tool`."""
        path = self._folder / f"properties-{len(list(self._folder.glob('properties-*')))}"
        path.write_text(
            "".join(f"{name}={value}\n" for name, value in values.items()), encoding="utf-8"
        )
        return path


def write_records(path: Path, records: Iterable[Record]) -> Path:
    """Write records as the harness reads them."""
    lines = (
        " ".join(base64.b64encode(column).decode() + "." for column in record) for record in records
    )
    path.write_text("".join(line + "\n" for line in lines), encoding="ascii")
    return path


def read_records(path: Path, *, header: bool = False) -> list[Record]:
    """Read records as the harness writes them; with `header`, without the first line."""
    lines = path.read_text(encoding="ascii").splitlines()[1 if header else 0 :]
    return [tuple(base64.b64decode(column[:-1]) for column in line.split(" ")) for line in lines]
