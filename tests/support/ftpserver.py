"""FTP servers on loopback: a real one (pyftpdlib) that serves a folder, and one that says what a
test tells it to.

with FtpServer(folder) as server:
    server.url("/a.txt")                       ftp://127.0.0.1:PORT/a.txt
with ScriptedFtp({"USER": "331 go on", …}) as server:
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.ioloop import IOLoop
from pyftpdlib.servers import FTPServer


class FtpServer:
    """Serves `folder` to anonymous and to alice (secret); `without` are commands that it says it
    doesn't know.
    """

    def __init__(
        self, folder: Path, *, without: tuple[str, ...] = (), anonymous: bool = True
    ) -> None:
        self.said: list[str] = []
        """The commands of all clients, in order."""
        self.connections = 0
        authorizer = DummyAuthorizer()
        authorizer.add_user("alice", "secret", str(folder))
        if anonymous:
            authorizer.add_anonymous(str(folder))
        self._loop = IOLoop()
        self._server = FTPServer(
            ("127.0.0.1", 0), self._handler(authorizer, without), ioloop=self._loop
        )
        self.port = self._server.address[1]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _handler(self, authorizer: DummyAuthorizer, without: tuple[str, ...]) -> type[FTPHandler]:
        server = self

        class Handler(FTPHandler):  # type: ignore[misc]
            banner = "ready"
            use_sendfile = False
            auth_failed_timeout = 0

            def on_connect(self) -> None:
                server.connections += 1

            def pre_process_command(self, line: str, cmd: str, arg: str) -> None:
                server.said.append(line)
                super().pre_process_command(line, cmd, arg)

        Handler.authorizer = authorizer
        Handler.proto_cmds = {
            name: value for name, value in FTPHandler.proto_cmds.items() if name not in without
        }
        return Handler

    def url(self, path: str = "/") -> str:
        return f"ftp://127.0.0.1:{self.port}{path}"

    def _serve(self) -> None:
        while not self._stop.is_set():
            self._loop.loop(timeout=0.05, blocking=False)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._server.close_all()


Reply = bytes | Callable[[socket.socket], None]
LOGIN: Mapping[str, Reply] = {
    "": b"220 hello",
    "USER": b"331 password",
    "PASS": b"230 in",
    "TYPE": b"200 ok",
    "MDTM": b"213 20260101120000",
    "SIZE": b"213 5",
    "QUIT": b"221 bye",
}


class ScriptedFtp:
    """Answers each command by its word from `script` (over LOGIN); bytes, or a function that is
    given the socket.
    """

    def __init__(self, script: Mapping[str, Reply]) -> None:
        self.script = {**LOGIN, **script}
        self.said: list[str] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def url(self, path: str = "/") -> str:
        return f"ftp://127.0.0.1:{self.port}{path}"

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                self._open.append(client)
                threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        with suppress(OSError), client, client.makefile("rb") as lines:
            self._say(client, self.script[""])
            for line in lines:
                text = line.decode("latin-1").strip()
                self.said.append(text)
                self._say(client, self.script.get(text.partition(" ")[0].upper(), b"502 unknown"))

    def _say(self, client: socket.socket, reply: Any) -> None:
        if callable(reply):
            reply(client)
        else:
            client.sendall(reply + b"\r\n")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for client in self._open:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        self._thread.join()


class DataPort:
    """A port to which a scripted server sends data: `pasv` is the reply that names it, `send` the
    data.
    """

    def __init__(self, body: bytes, *, endless: bool = False) -> None:
        self.body = body
        self.endless = endless
        self.sent = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]

    def pasv(self, host: str = "127,0,0,1") -> bytes:
        return f"227 passive ({host},{self.port >> 8},{self.port & 255})".encode()

    def send(self, client: socket.socket) -> None:
        """The reply to RETR or LIST: 150, the data, 226."""
        client.sendall(b"150 coming\r\n")
        self._socket.settimeout(5)
        with suppress(OSError):
            data, _ = self._socket.accept()
            with data:
                while True:
                    data.sendall(self.body)
                    self.sent += len(self.body)
                    if not self.endless:
                        break
        client.sendall(b"226 done\r\n")
