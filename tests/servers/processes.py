"""Servers as child processes: started when a test asks, ready when they say so, ended with the test run.

A server's standard input is a pipe from the tests: should they be killed, it closes, and the server ends as well.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

JVM = ("-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
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
    """Whether somebody does."""
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0


class Server:
    """A server program with one port; it may be killed and started again, with its data."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        port: int,
        *,
        environment: Mapping[str, str] | None = None,
        is_ready: Callable[[Server], bool] | None = None,
    ) -> None:
        self.command, self.folder, self.port = list(command), folder, port
        self.environment = dict(environment) if environment is not None else None
        self._is_ready = is_ready or (lambda server: "READY\n" in server.said())
        self._process: subprocess.Popen[bytes] | None = None

    def said(self) -> str:
        """What it has printed since it was started."""
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
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready(self):
            code = self._process.poll()
            if code is not None or time.monotonic() > deadline:
                self.kill()
                lines = [line for line in self.said().splitlines() if line.strip()]
                raise NotStarted(
                    f"{self.command[0]} did not start ({code}): {lines[-1] if lines else 'it said nothing'}"
                )
            time.sleep(0.1)

    def stop(self) -> None:
        """End it, gently at first."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_SECONDS / 3)
        except subprocess.TimeoutExpired:
            self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """End it as a power cut would."""
        if self._process is not None:
            self._process.kill()
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
