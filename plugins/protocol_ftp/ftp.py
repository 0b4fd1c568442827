"""ftp: URLs: a file's content, a directory as a page of links. The codes of HTTP stand for what
came of it:

    200  file or directory      301  a directory whose URL has no slash at its end     401  no login
    304  not newer than before  404  neither file nor directory                        500  anything
         else

    ftp.username, ftp.password   for all servers; anonymous by default
    ftp.content.limit            bytes of a file, or of a directory's list, that are kept; negative:
                                 all
    ftp.timeout                  milliseconds without an answer; ten times that for all of a URL
    ftp.keep.connection          whether a connection waits for the next URL of its server, and then
                                 for as long as
    ftp.server.timeout           the server keeps it open, or ftp.timeout if that is shorter
    ftp.follow.talk              log the dialogue

Addresses are judged by http.filter.ipaddress.*, names looked up as for HTTP. /robots.txt of the
server counts. Source: Ftp, FtpResponse and FtpRobotRulesParser of protocol-ftp. There a missing
file is an error to be tried again, and so is one that is not newer.
"""

from __future__ import annotations

import asyncio
import contextlib
import ftplib
import logging
import mimetypes
import socket
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

import httpx

from minutch.conf import Configuration
from minutch.errors import UrlError
from minutch.hadoop.formats.writables import Text
from minutch.plugin.points import Protocol, ProtocolOutput
from minutch.records import protocol as codes
from minutch.records import validators
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import IP_ADDRESS_KEY, RESPONSE_CODE_KEY, TRUNCATED_KEY, Metadata
from minutch.records.protocol import Content, ProtocolStatus
from minutch.urls.parts import Url, parse
from minutch.urls.robots import KnownRobots, RobotRules

from ..lib_http.addressrules import AddressRules
from ..lib_http.exchange import Answer, format_date, parse_date
from ..lib_http.failures import (
    UNRESOLVED,
    ForbiddenAddress,
    NoNameServer,
    UnknownHost,
    connect_error,
    failed,
    java_text,
)
from ..lib_http.resolver import ResolverSettings, make_resolver
from ..lib_http.robotstxt import RobotsStore
from .ftpsession import FtpEntry, FtpRefused, FtpSession, facts, listed, page, parse_time

log = logging.getLogger(__name__)

ALL_TIMES: Final = 10
"""Time limit of a URL, as a multiple of ftp.timeout."""
MOST_KEPT: Final = 64
"""Connections that wait for their server's next URL."""
_THREADS: Final = 64
_NO_LINE: Final = ("\r", "\n", "\0")

_STATUSES: Final = {304: codes.NOTMODIFIED, 401: codes.ACCESS_DENIED, 404: codes.NOTFOUND}
_BROKEN: Final = (OSError, EOFError, ftplib.Error)
"""The errors that end a dialogue."""


class FtpFailure(httpx.TransportError):
    """The dialogue broke off."""


class Ftp(Protocol):
    """protocol-ftp."""

    schemes = ("ftp",)

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.user = conf.get_text("ftp.username")
        self.password = conf.get_text("ftp.password")
        self.limit = conf.get_int("ftp.content.limit")
        self.timeout = max(conf.get_int("ftp.timeout"), 1) / 1000
        self.keeps = conf.get_boolean("ftp.keep.connection")
        self.life = min(self.timeout, conf.get_int("ftp.server.timeout") / 1000)
        self.follows = conf.get_boolean("ftp.follow.talk")
        self.store_address = conf.get_boolean("store.ip.address")
        self.rules = AddressRules.from_conf(conf)
        self.names = make_resolver(ResolverSettings.from_conf(conf))
        self.robots = RobotsStore.from_conf(conf, self._fetch)
        self._threads = ThreadPoolExecutor(_THREADS, "ftp")
        self._kept: dict[tuple[str, int], tuple[float, FtpSession]] = {}

    # -- the extension point -----------------------------------------------------------------------

    async def get_protocol_output(self, url: str, datum: CrawlDatum) -> ProtocolOutput:
        """Fetches a file or a directory (Ftp.getProtocolOutput)."""
        try:
            parsed = parse(url)
            answer = await self._fetch(parsed, datum, self.limit)
        except NoNameServer:
            return ProtocolOutput(None, UNRESOLVED)
        except (httpx.TransportError, UrlError) as exc:
            datum.metadata[Text(RESPONSE_CODE_KEY)] = Text("500")
            log.debug("can't fetch %s: %s", url, exc)
            return ProtocolOutput(None, failed(exc, _java_text(exc, url)))
        datum.metadata[Text(RESPONSE_CODE_KEY)] = Text(str(answer.code))
        text = str(parsed)
        content = Content(
            text, text, answer.body, answer.header("Content-Type") or "", answer.metadata
        )
        return ProtocolOutput(content, _status(answer, text))

    async def get_robot_rules(
        self, url: str, datum: CrawlDatum, robots_content: list[Content] | None
    ) -> RobotRules:
        """Returns the rules in the /robots.txt of the server."""
        return await self.robots.rules(url, robots_content)

    def known_robots(self, url: str, folder: Path) -> KnownRobots | None:
        """Returns the robots.txt that the cache in a state folder has for a URL."""
        return self.robots.known(url, folder)

    def address_refusal(self, address: str) -> str:
        """Applies http.filter.ipaddress.include and .exclude."""
        return self.rules.refusal(address)

    async def close(self) -> None:
        """Closes the connections."""
        self.robots.close()
        if self.names is not None:
            self.names.close()
        kept, self._kept = self._kept, {}
        for _, session in kept.values():
            self._threads.submit(session.leave)
        await asyncio.to_thread(self._threads.shutdown)

    # -- connections -------------------------------------------------------------------------------

    async def _fetch(self, url: Url, datum: CrawlDatum, limit: int) -> Answer:
        """Fetches a URL. Raises httpx.TransportError."""
        if url.query is not None:
            log.warning("%s: the query of an ftp URL counts for nothing", url)
        path = unquote_to_bytes((url.path or "/").encode("utf-8", "surrogateescape")).decode(
            "latin-1"
        )
        if any(char in path for char in _NO_LINE):
            return Answer(404, b"", Metadata())
        host, port = url.host.strip("[]"), url.default_port if url.port == -1 else url.port
        copy = validators.held(str(url), datum)
        task = partial(_Exchange, self, path, copy.last_modified if copy else "", limit)
        waiting = self._waiting(host, port)
        try:
            if waiting is not None:
                with contextlib.suppress(
                    *_BROKEN
                ):  # closed by the server since: once more from the start
                    return await self._talk(task(waiting), [], host, port)
            addresses = await self._addresses(host)
            allowed = [address for address in addresses if self.rules.accepts(address)]
            if not allowed:
                raise ForbiddenAddress(addresses[0])
            return await self._talk(task(), allowed, host, port)
        except TimeoutError as exc:
            raise httpx.ReadTimeout("") from exc
        except _BROKEN as exc:
            raise FtpFailure(str(exc) or "connection closed") from exc

    async def _talk(
        self, exchange: _Exchange, addresses: list[str], host: str, port: int
    ) -> Answer:
        """Runs an exchange in a thread, for a limited time. Raises TransportError or _BROKEN."""
        task = asyncio.get_running_loop().run_in_executor(
            self._threads, exchange.run, addresses, port
        )
        try:
            answer = await asyncio.wait_for(asyncio.shield(task), self.timeout * ALL_TIMES)
        except BaseException as exc:
            exchange.cut()
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            if isinstance(exc, asyncio.TimeoutError):
                raise httpx.ReadTimeout("") from exc
            raise
        self._keep(host, port, exchange.session)
        return answer

    def _waiting(self, host: str, port: int) -> FtpSession | None:
        """Returns the connection that waits for this server, if it is not too old."""
        until, session = self._kept.pop((host, port), (0.0, None))
        if session is not None and until <= time.monotonic():
            self._threads.submit(session.leave)
            return None
        return session

    def _keep(self, host: str, port: int, session: FtpSession | None) -> None:
        if session is None:
            return
        if not self.keeps or not session.is_open or (host, port) in self._kept:
            self._threads.submit(session.leave)
            return
        self._kept[host, port] = (time.monotonic() + self.life, session)
        if len(self._kept) > MOST_KEPT:
            self._threads.submit(self._kept.pop(next(iter(self._kept)))[1].leave)

    async def _addresses(self, host: str) -> list[str]:
        """Returns the addresses of a host. Raises UnknownHost."""
        try:
            return [str(ip_address(host))]
        except ValueError:
            pass
        if not host or not host.isascii():
            raise UnknownHost(host)
        if self.names is not None:
            return await self.names.find(host)
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                host, None, type=socket.SOCK_STREAM
            )
        except (OSError, UnicodeError) as exc:
            raise UnknownHost(host) from exc
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class _Exchange:
    """The dialogue about a URL, in a thread of its own; `session` is the open connection."""

    def __init__(
        self, ftp: Ftp, path: str, known_date: str, limit: int, session: FtpSession | None = None
    ) -> None:
        self.ftp = ftp
        self.path = path
        self.known_date = known_date
        self.limit = limit
        self.session = session
        self._is_cut = False

    def cut(self) -> None:
        """Ends the exchange, from another thread."""
        self._is_cut = True
        if self.session is not None:
            self.session.cut()

    def run(self, addresses: list[str], port: int) -> Answer:
        """Returns the answer. Raises ConnectError, ConnectTimeout (httpx), or one of _BROKEN."""
        try:
            session = self.session or self._connect(addresses, port)
            answer = self._directory(session) if self.path.endswith("/") else self._file(session)
        except FtpRefused as exc:
            log.info("refused by an FTP server: %s", exc)
            self.cut()
            answer = Answer(401 if exc.code == "530" else 500, b"", Metadata())
        except BaseException:
            self.cut()
            raise
        if self.ftp.store_address and self.session is not None:
            answer.metadata.set(IP_ADDRESS_KEY, self.session.host)
        return answer

    def _connect(self, addresses: list[str], port: int) -> FtpSession:
        """Returns a connection to the first address that answers, logged in. Raises as `run`."""
        failure: Exception = httpx.ConnectError("")
        for address in addresses:
            if self._is_cut:
                break
            self.session = FtpSession(self.ftp.timeout, follow=self.ftp.follows)
            try:
                self.session.connect(address, port)
            except TimeoutError:
                failure = httpx.ConnectTimeout("")
                continue
            except OSError as exc:
                failure = connect_error(exc.errno or 0, str(exc))
                continue
            self.session.enter(self.ftp.user, self.ftp.password)
            return self.session
        raise failure

    # -- files -------------------------------------------------------------------------------------

    def _file(self, session: FtpSession) -> Answer:
        headers = Metadata()
        modified = self._modified(session)
        if modified is not None:
            headers.set("Last-Modified", format_date(modified))
            if format_date(modified) == self.known_date:
                return Answer(304, b"", headers)
        size = session.content_size(self.path)
        try:
            body, whole = session.receive(f"RETR {self.path}", self.limit)
        except FtpRefused as exc:
            if not exc.code.startswith("55"):
                raise exc
            try:
                session.change(self.path)
            except FtpRefused:
                return Answer(404, b"", Metadata())
            location = quote_from_bytes(self.path.encode("latin-1"), safe="/!$&'()*+,-.:;=@_~")
            return Answer(301, b"", Metadata.of({"Location": f"{location}/"}))
        headers.set("Content-Length", str(len(body) if size is None or whole else size))
        headers.set(
            "Content-Type", mimetypes.guess_type(self.path)[0] or "application/octet-stream"
        )
        _mark(headers, whole)
        return Answer(200, body, headers, whole)

    def _modified(self, session: FtpSession) -> int | None:
        """Returns the modification time of the file in ms since the epoch; from a list if the
        server has no MDTM.
        """
        try:
            return parse_time(session.modified(self.path)[4:].strip())
        except FtpRefused as exc:
            if not exc.is_unknown_command:
                return None
        try:
            body, whole = session.receive(f"LIST {self.path}", self.limit)
        except FtpRefused:
            return None
        found = [entry for entry in listed(_lines(body)) if not entry.is_dir]
        return found[0].modified if whole and len(found) == 1 else None

    # -- directories -------------------------------------------------------------------------------

    def _directory(self, session: FtpSession) -> Answer:
        try:
            session.change(self.path)
        except FtpRefused as exc:
            if exc.code == "530":
                raise
            return Answer(404, b"", Metadata())
        entries, whole = self._entries(session)
        body = page(self.path, entries)
        headers = Metadata.of({"Content-Length": str(len(body)), "Content-Type": "text/html"})
        _mark(headers, whole)
        return Answer(200, body, headers, whole)

    def _entries(self, session: FtpSession) -> tuple[list[FtpEntry], bool]:
        """Reads the entries of the directory; the last line counts only if the list is complete."""
        body, whole = session.receive("MLSD" if session.has_facts else "LIST", self.limit)
        lines = _lines(body if whole else body[: body.rfind(b"\n") + 1])
        return list(facts(lines) if session.has_facts else listed(lines)), whole


def _lines(body: bytes) -> list[str]:
    """Lines with a character for each byte."""
    return [line.removesuffix("\r") for line in body.decode("latin-1").split("\n") if line.strip()]


def _mark(headers: Metadata, whole: bool) -> None:
    if not whole:
        headers.set(TRUNCATED_KEY, "true")
        headers.set(TRUNCATED_KEY + ".reason", "length")


def _status(answer: Answer, url: str) -> ProtocolStatus:
    if answer.code == 200:
        modified = parse_date(answer.header("Last-Modified") or "") or 0
        return ProtocolStatus(codes.SUCCESS, last_modified=modified)
    if answer.code == 301:
        return ProtocolStatus(codes.MOVED, [str(parse(answer.location, parse(url)))])
    if answer.code in _STATUSES:
        return ProtocolStatus(_STATUSES[answer.code], [url])
    return ProtocolStatus(
        codes.EXCEPTION, [f"org.apache.nutch.protocol.ftp.FtpError: Ftp Error: {answer.code}"]
    )


def _java_text(error: httpx.TransportError | UrlError, url: str) -> str:
    """Returns the failure as Java would print it."""
    if isinstance(error, FtpFailure):
        return f"org.apache.nutch.protocol.ftp.FtpException: {error}"
    return java_text(error, url)
