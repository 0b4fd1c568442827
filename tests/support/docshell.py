"""A shell in which `minutch` runs in this process, so that a page of commands takes seconds.

    with Shell(folder, {}) as shell:
        shell.run(["minutch readdb crawl/crawldb -stats | head -3"])

bash runs the lines. Its `minutch` is a small program that sends arguments, working folder and
standard input to this process by a socket, and returns output and exit code. `serving PORT COMMAND`
starts a process of its own and waits until it listens.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO
from unittest.mock import patch

from minutch import processwide
from minutch.commands import cli
from tests.support.golden import PROJECT

_CLIENT = """#!{python} -IS
import json, os, socket, sys
line = sys.stdin.buffer.read().decode(errors="surrogateescape")
call = socket.socket(socket.AF_UNIX)
call.connect({path!r})
call.sendall(json.dumps([sys.argv[1:], os.getcwd(), line]).encode())
call.shutdown(socket.SHUT_WR)
code, out, err = json.load(call.makefile("rb"))
try:
    sys.stderr.buffer.write(err.encode(errors="surrogateescape"))
    sys.stdout.buffer.write(out.encode(errors="surrogateescape"))
    sys.stdout.flush()
except BrokenPipeError:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
sys.exit(code)
"""
_START = """set -o pipefail
started=
trap 'kill $started 2>/dev/null; wait' EXIT
serving() {{
    local port=$1; shift
    "$@" >/dev/null 2>&1 & started="$started $!"
    for _ in $(seq 200); do (: </dev/tcp/127.0.0.1/$port) 2>/dev/null && return; sleep 0.1; done
    return 1
}}
check() {{
    local code=$?
    [ $code = 0 ] || {{ echo "exit code $code: $1" >&2; exit 1; }}
}}
"""


@dataclass
class Ran:
    """The outcome of some lines: exit code and output."""

    code: int
    out: str
    err: str


class Shell:
    """A shell that begins in `folder`. Lines that are run together share variables and the working
    folder.
    """

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self.folder = folder
        self._tools = folder / ".tools"
        self._path = self._tools / "socket"
        self._variables = variables
        self._listener = socket.socket(socket.AF_UNIX)

    def __enter__(self) -> Self:
        for name in ("minutch", "nutch/bin/nutch"):
            client = self._tools / name
            client.parent.mkdir(parents=True, exist_ok=True)
            client.write_text(_CLIENT.format(python=sys.executable, path=str(self._path)))
            client.chmod(0o755)
        self._listener.bind(str(self._path))
        self._listener.listen()
        self._listener.settimeout(0.02)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.close()

    def run(self, lines: list[str]) -> Ran:
        """Run lines in order, up to the first that fails. NUTCH_HOME is a Nutch whose place minutch
        takes.
        """
        script = _START.format() + "".join(f"{line}\ncheck {shlex.quote(line)}\n" for line in lines)
        environment = os.environ | self._variables
        environment |= {
            "PATH": f"{self._tools}:{os.environ['PATH']}",
            "NUTCH_HOME": str(self._tools / "nutch"),
        }
        environment |= {"PYTHON": sys.executable, "PYTHONPATH": str(PROJECT)}
        with (
            (self._tools / "out").open("w+b") as out,
            (self._tools / "err").open("w+b") as err,
            subprocess.Popen(
                [shutil.which("bash") or "bash", "-c", script],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            ) as process,
        ):
            while process.poll() is None:
                with suppress(TimeoutError):
                    self._answer(self._listener.accept()[0])
            return Ran(process.returncode, _content(out), _content(err))

    def _answer(self, call: socket.socket) -> None:
        with call, call.makefile("rwb") as stream:
            argv, folder, given = json.load(stream)
            stream.write(json.dumps(command(argv, folder, given)).encode())
            with suppress(BrokenPipeError):
                stream.flush()


def _content(stream: Any) -> str:
    stream.seek(0)
    return str(stream.read().decode(errors="surrogateescape"))


def command(
    argv: list[str], folder: str | Path, given: str = "", program: str = "minutch"
) -> tuple[int, str, str]:
    """Runs a command in this process, in `folder`; returns its exit code and what it printed.

    A process of its own takes half a second of CPU to begin; only who tests that needs one.
    """
    files = [io.BytesIO(given.encode("utf-8", "surrogateescape")), io.BytesIO(), io.BytesIO()]
    streams = [
        io.TextIOWrapper(file, "utf-8", "surrogateescape", write_through=True) for file in files
    ]
    code = _run(argv, folder, streams, program)
    out, err = (file.getvalue().decode("utf-8", "surrogateescape") for file in files[1:])
    return code, out, err


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_screen(argv: list[str], folder: str | Path, given: str = "") -> tuple[int, str]:
    """As `command`, with a terminal: what is printed, and what goes to stderr, is one text."""
    screen = _Terminal()
    typed = _Terminal(given)
    return _run(argv, folder, [typed, screen, screen], "bin/minutch"), screen.getvalue()


def _run(argv: list[str], folder: str | Path, streams: Sequence[TextIO], program: str) -> int:
    with (
        _folder(folder),
        patch.object(sys, "stdin", streams[0]),
        patch.object(sys, "stdout", streams[1]),
        patch.object(sys, "stderr", streams[2]),
        patch.object(processwide, "_settings", processwide.ProcessSettings(program=program)),
    ):
        code = cli.main(argv)
        sys.stdout.flush()
        return code


@contextmanager
def _folder(folder: str | Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
