"""Servers as child processes: started when a test asks, ready when they say so, ended with the test
run.

A server's standard input is a pipe from the tests: should they be killed, it closes, and the server
ends as well.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

JVM = (
    "-Xms64m",
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Djava.awt.headless=true",
)
START_SECONDS = 180
STOP_SECONDS = 30


class NotStarted(Exception):
    """Why a server isn't there."""


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def listens(port: int) -> bool:
    """Tells whether something listens there."""
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0


class Server:
    """A server program with one port (0: its own choice); it may be killed and started again, with
    its data.

    As a context manager it is started, and stopped in the end. It leads a group of processes, which
    ends with it. `says` is what it prints when it is ready.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        port: int = 0,
        *,
        environment: Mapping[str, str] | None = None,
        says: str = "READY\n",
    ) -> None:
        self.command, self.folder, self.port = list(command), folder, port
        self.environment = dict(environment) if environment is not None else None
        self._says = says
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def said(self) -> str:
        """Returns what it has printed since it was started."""
        return (self.folder / "console.txt").read_text(encoding="utf-8", errors="replace")

    def start(self) -> None:
        """Start, and wait until it is ready. Raises NotStarted."""
        with (self.folder / "console.txt").open("wb") as console:
            self._process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=console,
                stderr=subprocess.STDOUT,
                env=self.environment,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while self._says not in self.said():
            code = self._process.poll()
            if code is not None or time.monotonic() > deadline:
                self.kill()
                lines = [line for line in self.said().splitlines() if line.strip()]
                raise NotStarted(
                    f"{self.command[0]} did not start ({code}):"
                    f" {lines[-1] if lines else 'it said nothing'}"
                )
            time.sleep(0.1)

    def stop(self) -> None:
        """End it, gently at first."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End it as a power cut would."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process = None


def java(jars: Sequence[Path], folder: Path, source: str, *options: str) -> list[str]:
    """The command that runs a program of `tests/servers/start`, given as text, from source."""
    name = source.partition("public class ")[2].split()[0]
    program = folder / f"{name}.java"
    program.write_text(source, encoding="utf-8")
    path = ":".join(map(str, jars))
    return ["java", *JVM, f"-Djava.io.tmpdir={folder}", *options, "-cp", path, str(program)]
