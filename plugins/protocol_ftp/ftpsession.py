"""Connects to an FTP server: the dialogue of RFC 959 by ftplib, within limits that a hostile server
can't exceed.

A data connection goes to the address of the control connection, whatever PASV names, and never to a
port below 1024. Commands can't hold line ends. A reply of more than 256 KiB, and an answer that
takes longer than the timeout, end the session. `cut`, from another thread, ends it at any time.
"""

from __future__ import annotations

import contextlib
import ftplib
import html
import logging
import re
import socket
import warnings
from calendar import timegm
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from ..lib_http.exchange import format_date

log = logging.getLogger(__name__)

MOST_REPLIED: Final = 262_144
"""Bytes of one reply, of however many lines."""
LOWEST_PORT: Final = 1024
_CHUNK: Final = 65_536
_NOT_KNOWN: Final = ("500", "501", "502", "504")
"""Replies that say: no such command here (RFC 959, 4.2.1)."""
_SAFE_IN_LINKS: Final = "/ !$()*+,-.:;=@[]^_`{|}~\\"
_NO_NAME: Final = re.compile(r"[/\x00-\x1f\x7f]")
_TIME: Final = re.compile(r"(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})")
_FIELDS: Final = 4
"""Of a line in a list at least; a parser's refusal costs 5 µs."""
_LATEST: Final = 253_402_300_799
"""The last second that four digits of a year can tell."""


class FtpRefused(Exception):
    """The server said no for good: `code` is its three digits."""

    def __init__(self, reply: str) -> None:
        super().__init__(reply)
        self.code = reply[:3]

    @property
    def is_unknown_command(self) -> bool:
        return self.code in _NOT_KNOWN


class FtpSession(ftplib.FTP):
    """A dialogue; strings have a character a byte. OSError, EOFError, ftplib's if it breaks."""

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
        """Logs in, and selects binary transfers. Raises FtpRefused."""
        with _refusals():
            self.login(user, password)
            self.voidcmd("TYPE I")

    def modified(self, path: str) -> str:
        """Returns the answer to MDTM, `213 YYYYMMDDHHMMSS`. Raises FtpRefused."""
        with _refusals():
            return self.sendcmd(f"MDTM {path}")

    def content_size(self, path: str) -> int | None:
        """Returns the answer to SIZE; None where the server doesn't know."""
        try:
            with _refusals():
                return self.size(path)
        except (FtpRefused, ValueError):
            return None

    def change(self, path: str) -> None:
        """Goes to a directory. Raises FtpRefused."""
        with _refusals():
            self.voidcmd(f"CWD {path}")

    @property
    def has_facts(self) -> bool:
        """Returns True if the server supports MLSD (RFC 3659, 7.8: it lists MLST)."""
        if self._has_facts is None:
            try:
                with _refusals():
                    self._has_facts = "MLST" in self.sendcmd("FEAT").upper()
            except FtpRefused:
                self._has_facts = False
        return self._has_facts

    def receive(self, command: str, limit: int) -> tuple[bytes, bool]:
        """Receives the output of a command on its data connection, up to `limit` bytes (negative:
        all); returns whether it is complete.

        Raises FtpRefused. After a cut the session is closed: servers disagree about what they then
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
    """Converts a permanent negative reply (5yz) to FtpRefused."""
    try:
        yield
    except ftplib.error_perm as exc:
        raise FtpRefused(str(exc)) from exc


# Reads the entries of an FTP directory, and makes a page of links of them.
#
# Names are bytes to FTP; here they are strings with a character for each byte (Latin-1). Servers
# that know MLSD (RFC 3659) are asked in its words, with times in UTC; of others the output of LIST
# is read, of Unix and of Windows. Source: FtpResponse.list2html, which takes names as they come;
# here what would break a link is escaped, and names that no file can have (`../x`) are left out.


@dataclass(frozen=True, slots=True)
class FtpEntry:
    """A file or directory; `modified` in milliseconds since the epoch."""

    name: str
    is_dir: bool
    size: int
    modified: int


def parse_time(text: str) -> int | None:
    """Milliseconds since the epoch of RFC 3659's YYYYMMDDHHMMSS; None if it is none."""
    match = _TIME.match(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.groups())
    if not (
        year and 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second <= 60
    ):
        return None
    return timegm((year, month, day, hour, minute, second)) * 1000


def facts(lines: Iterable[str]) -> Iterator[FtpEntry]:
    """Yields the entries in what MLSD gives: `type=file;size=12;modify=20260101120000; name`."""
    for line in lines:
        pairs, _, name = line.partition(" ")
        fact = dict(part.lower().partition("=")[::2] for part in pairs.split(";") if part)
        if fact.get("type") in ("file", "dir") and _is_name(name):
            size = fact.get("size", "0")
            number = int(size) if size.isascii() and size.isdecimal() and len(size) < 19 else 0
            yield FtpEntry(
                name, fact["type"] == "dir", number, parse_time(fact.get("modify", "")) or 0
            )


def listed(lines: Iterable[str]) -> Iterator[FtpEntry]:
    """Yields the entries in what LIST gives; lines that are none are skipped, links among them."""
    with warnings.catch_warnings(
        action="ignore"
    ):  # of a change of encodings that are not used here
        from ftputil.error import FTPIOError, ParserError
        from ftputil.stat import MSParser, UnixParser

    parsers = [UnixParser(), MSParser()]
    for line in lines:
        if len(line.split(None, _FIELDS)) < _FIELDS:
            continue
        for parser in parsers:
            try:
                found = parser.parse_line(line)
            except (ParserError, FTPIOError, ValueError, OverflowError, IndexError):
                continue
            kind = (found.st_mode or 0) & 0o170000
            name = found._st_name  # noqa: SLF001 - ftputil has no public name for it
            if kind in (0o100000, 0o040000) and _is_name(name):
                seconds = found.st_mtime or 0
                modified = int(seconds) * 1000 if 0 < seconds < _LATEST else 0
                yield FtpEntry(name, kind == 0o040000, found.st_size or 0, modified)
            break


def _is_name(name: str) -> bool:
    return name not in ("", ".", "..") and _NO_NAME.search(name) is None


def page(path: str, entries: Iterable[FtpEntry]) -> bytes:
    """Returns the page of links of a directory; `path` and names with a character for each byte."""
    title = _shown(path)
    lines = [
        f"<html><head><title>Index of {title}</title></head>\n<body><h1>Index of"
        f" {title}</h1><pre>\n"
    ]
    if path != "/":
        lines.append("<a href='../'>../</a>\t-\t-\t-\n")
    for entry in entries:
        slash, size = ("/", "-") if entry.is_dir else ("", str(entry.size))
        link = quote(entry.name.encode("latin-1", "replace"), safe=_SAFE_IN_LINKS)
        if ":" in link:  # not to be read as a scheme
            link = f"./{link}"
        anchor = f"<a href='{link}{slash}'>{_shown(entry.name)}{slash}</a>"
        lines.append(f"{anchor}\t{format_date(entry.modified)}\t{size}\n")
    lines.append("</pre></body></html>\n")
    return "".join(lines).encode("utf-8")


def _shown(name: str) -> str:
    return html.escape(name.encode("latin-1", "replace").decode("utf-8", "replace"), quote=False)
