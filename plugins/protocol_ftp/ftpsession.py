"""Connects to an FTP server: the dialogue of RFC 959 by ftplib, within limits that a hostile server
can't exceed.

A data connection goes to the address of the control connection, whatever PASV names, and never to a
port below 1024. Commands can't hold line ends. A reply of more than 256 KiB, and an answer that
takes longer than the timeout, end the session. `cut`, from another thread, ends it at any time.
"""

from __future__ import annotations

import contextlib
import ftplib
import logging
import socket
from collections.abc import Iterator
from typing import Final

log = logging.getLogger(__name__)

MOST_REPLIED: Final = 262_144
"""Bytes of one reply, of however many lines."""
LOWEST_PORT: Final = 1024
_CHUNK: Final = 65_536
_NOT_KNOWN: Final = ("500", "501", "502", "504")
"""Replies that say: no such command here (RFC 959, 4.2.1)."""


class Refused(Exception):
    """The server said no for good: `code` is its three digits."""

    def __init__(self, reply: str) -> None:
        super().__init__(reply)
        self.code = reply[:3]

    @property
    def is_unknown_command(self) -> bool:
        return self.code in _NOT_KNOWN


class Session(ftplib.FTP):
    """A dialogue; strings have a character for each byte. OSError, EOFError and ftplib's errors for
    what breaks it.
    """

    def __init__(self, timeout: float, *, follow: bool) -> None:
        """`timeout` in seconds; `follow` logs what is said. `connect` comes next."""
        self._follow = follow
        self._replied = 0
        self._data: socket.socket | None = None
        self._has_facts: bool | None = None
        self.is_open = True
        super().__init__(timeout=timeout, encoding="latin-1")

    # -- ftplib's seams ----------------------------------------------------------------------------

    def putline(self, line: str) -> None:
        """Sends a command."""
        if self._follow:
            log.info("ftp> %s", "PASS ***" if line.upper().startswith("PASS ") else line)
        self._replied = 0
        super().putline(line)

    def getline(self) -> str:
        """Returns a line of a reply. Raises ftplib.error_proto for one without end, EOFError after
        `cut`.
        """
        if not self.is_open:
            raise EOFError
        line: str = super().getline()
        self._replied += len(line) + 1
        if self._replied > MOST_REPLIED:
            raise ftplib.error_proto(f"a reply of more than {MOST_REPLIED} bytes")
        if self._follow:
            log.info("ftp> %s", line)
        return line

    def makepasv(self) -> tuple[str, int]:
        """Returns the address of the data connection, always of this server. Raises
        ftplib.error_proto for a system port.
        """
        host, port = super().makepasv()
        if not LOWEST_PORT <= port < 65536:
            raise ftplib.error_proto(f"data connection to port {port}")
        return host, port

    # -- what is asked for -------------------------------------------------------------------------

    def enter(self, user: str, password: str) -> None:
        """Logs in, and selects binary transfers. Raises Refused."""
        with _refusals():
            self.login(user, password)
            self.voidcmd("TYPE I")

    def modified(self, path: str) -> str:
        """Returns the answer to MDTM, `213 YYYYMMDDHHMMSS`. Raises Refused."""
        with _refusals():
            return self.sendcmd(f"MDTM {path}")

    def content_size(self, path: str) -> int | None:
        """Returns the answer to SIZE; None where the server doesn't know."""
        try:
            with _refusals():
                return self.size(path)
        except (Refused, ValueError):
            return None

    def change(self, path: str) -> None:
        """Goes to a directory. Raises Refused."""
        with _refusals():
            self.voidcmd(f"CWD {path}")

    @property
    def has_facts(self) -> bool:
        """Returns True if the server supports MLSD (RFC 3659, 7.8: it lists MLST)."""
        if self._has_facts is None:
            try:
                with _refusals():
                    self._has_facts = "MLST" in self.sendcmd("FEAT").upper()
            except Refused:
                self._has_facts = False
        return self._has_facts

    def receive(self, command: str, limit: int) -> tuple[bytes, bool]:
        """Receives the output of a command on its data connection, up to `limit` bytes (negative:
        all); returns whether it is complete.

        Raises Refused. After a cut the session is closed: servers disagree about what they then
        say.
        """
        with _refusals():
            self._data = self.transfercmd(command)
        chunks, size = [], 0
        with contextlib.closing(self._data) as data:
            while limit < 0 or size <= limit:
                chunk = data.recv(_CHUNK if limit < 0 else min(_CHUNK, limit + 1 - size))
                if not chunk:
                    break
                chunks.append(chunk)
                size += len(chunk)
        self._data = None
        body = b"".join(chunks)
        if 0 <= limit < size:
            self.cut()
            return body[:limit], False
        with _refusals():
            self.voidresp()
        return body, True

    def cut(self) -> None:
        """Ends the session at once, from any thread."""
        self.is_open = False
        for one in (self._data, self.sock):
            if one is not None:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self.close()

    def leave(self) -> None:
        """Logs out."""
        with contextlib.suppress(OSError, EOFError, ftplib.Error):
            if self.is_open:
                self.quit()
        self.cut()


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """Converts a permanent negative reply (5yz) to Refused."""
    try:
        yield
    except ftplib.error_perm as exc:
        raise Refused(str(exc)) from exc
