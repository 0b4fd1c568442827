"""Fetches pages by HTTP: sends requests in Nutch's form, keeps answers as Nutch's records do.

Every request (pages, robots.txt, sitemaps, login forms, loads of a browser) takes one way: an
`Order` goes to the transport, which returns a `Reply`.

Source: HttpBase of lib-http (status codes, metadata), HttpResponse of protocol-http (request line,
headers, bodies that break off) and OkHttpResponse (marking of truncated content).
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Generator, Mapping
from contextlib import AbstractAsyncContextManager
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

import httpx

from minutch.conf import Configuration
from minutch.conf.properties import shown_request
from minutch.errors import UrlError
from minutch.hadoop.formats.writables import IntWritable, Text
from minutch.plugin.extension import OtherHost
from minutch.plugin.points import Protocol, ProtocolOutput
from minutch.records import validators
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import (
    CONTENT_FETCH_TIME_KEY,
    DAMAGED_KEY,
    IP_ADDRESS_KEY,
    PROTOCOL_VERSIONS_KEY,
    REQUEST_KEY,
    RESPONSE_CODE_KEY,
    RESPONSE_HEADERS_KEY,
    RESPONSE_TIME_KEY,
    TOO_SLOW,
    TRUNCATED_KEY,
    TRUNCATED_REASON_KEY,
    Metadata,
)
from minutch.records.protocol import Content
from minutch.records.validators import Validators
from minutch.urls.hostname import canonical_host
from minutch.urls.parts import Url, parse
from minutch.urls.resolve import resolver_class
from minutch.urls.robots import KnownRobots, RobotRules

from .addressrules import AddressRules
from .credentials import Credentials, Sessions, authorized
from .curltransport import CurlTransport
from .decoding import decode, decode_between, offered
from .exchange import (
    Answer,
    Headers,
    Order,
    Reply,
    SpellCheckedMetadata,
    field_values,
    format_date,
    is_shorter,
    odd_code,
    request_target,
    status_of,
    unfold,
)
from .failures import PUT_OFF, NoNameServer, UnknownHost, failed, java_text, put_off
from .messages import HttpxTransport, origin
from .resolver import make_resolver
from .settings import HttpSettings
from .tls import java_name

log = logging.getLogger(__name__)

CIPHER_SUITES_KEY: Final = "_cipher_suites_"
TLS_VERDICT_KEY: Final = "_tls_verdict_"

_RESPONSE_TIME: Final = Text(RESPONSE_TIME_KEY)
_RESPONSE_CODE: Final = Text(RESPONSE_CODE_KEY)
_COOKIE: Final = Text("Cookie")
_HOST: Final = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=%-]+|\[[0-9A-Fa-f:.]+\]")
"""RFC 3986, 3.2.2; nothing else goes into a request, or to a proxy."""
_LONGEST_HOST: Final = 255
"""Characters; DNS has no longer names (RFC 1035, 2.3.4)."""
_AGENT: Final = 2
"""The place of User-Agent among the headers of a request."""
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""Characters that are removed from header values; a line break would begin another header."""
_SUCCESSES: Final = range(200, 300)
_UNAUTHORIZED: Final = 401
_NOT_MODIFIED: Final = 304


class HttpBase(Protocol):
    """Base of the HTTP protocol plugins."""

    schemes = ("http", "https")

    def __init__(
        self,
        conf: Configuration,
        parameters: Mapping[str, str],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`transport` replaces the one over libcurl: in tests, and where nothing is requested."""
        super().__init__(conf, parameters)
        self.settings = HttpSettings.from_conf(conf)
        self._resolver = resolver_class(conf)
        self.names = make_resolver(self.settings.names) if transport is None else None
        self.addresses = AddressRules.from_conf(conf)
        self.transport = (
            CurlTransport(self.settings.curl(), self.addresses.accepts, self.names)
            if transport is None
            else HttpxTransport(transport, self.settings.timeout / 1000)
        )
        self._offered = offered(self.settings.accept_encoding)
        self._fixed, self.credentials = self._fixed_headers(), Credentials.from_conf(conf)
        self.sessions = Sessions(self.credentials.forms, self._send_form)
        from .robotstxt import RobotsStore

        self.robots = RobotsStore.from_conf(conf, self.fetch, self._turn_of)

    def _turn_of(self, origin: str, target: str) -> AbstractAsyncContextManager[OtherHost]:
        """Waits as `turn` says, which is set after this was made."""
        return self.turn(origin, target)

    # -- the extension point -----------------------------------------------------------------------

    async def get_protocol_output(self, url: str, datum: CrawlDatum) -> ProtocolOutput:
        """Fetches a page (HttpBase.getProtocolOutput). "Not modified" that does not speak of the
        copy that is held (RFC 9110, 15.4.5) is a failure; its validators go, so that the next
        request is for the whole page.
        """
        try:
            parsed = parse(url)
            started = time.monotonic()
            answer = await self.answer(parsed, datum)
            if self.settings.store_response_time:
                datum.metadata[_RESPONSE_TIME] = IntWritable(
                    round((time.monotonic() - started) * 1000)
                )
            output = self.output_of(answer, parsed, url, datum)
            if answer.code == _NOT_MODIFIED and not self._is_confirmed(answer, parsed, datum):
                datum.metadata.pop(validators.VALIDATORS_KEY, None)
                return ProtocolOutput(output.content, odd_code(answer.code, parsed))
            return output
        except PUT_OFF as exc:
            return ProtocolOutput(None, put_off(exc))
        except (httpx.TransportError, httpx.InvalidURL, UrlError) as exc:
            text = _error_text(exc, url)
            short = text.partition(":")[0] in self.settings.suppressed
            log.debug("can't fetch %s: %s", url, text, exc_info=None if short else exc)
            return ProtocolOutput(None, failed(exc, text))

    def output_of(self, answer: Answer, parsed: Url, url: str, datum: CrawlDatum) -> ProtocolOutput:
        """Converts an answer to the output for the page at `url`. Raises UrlError for a redirect to
        a malformed URL.
        """
        datum.metadata[_RESPONSE_CODE] = _code_text(answer.code)
        text = str(parsed)
        content = Content(
            text,
            answer.base or text,
            answer.body,
            answer.header("Content-Type") or "",
            answer.metadata,
        )
        resolver = partial(self._resolver, text)
        return ProtocolOutput(
            content, status_of(answer, resolver, parsed, url, self.settings.page_codes)
        )

    async def answer(self, url: Url, datum: CrawlDatum) -> Answer:
        """Returns the page's answer; what a plugin with a browser does more. Raises
        httpx.TransportError.
        """
        return await self.fetch(url, datum, method="HEAD" if self.settings.head else "GET")

    async def get_robot_rules(
        self, url: str, datum: CrawlDatum, robots_content: list[Content] | None
    ) -> RobotRules:
        """Returns the rules for a URL, from memory, from disk or from its host."""
        return await self.robots.rules(url, robots_content)

    def known_robots(self, url: str, folder: Path) -> KnownRobots | None:
        """Returns the robots.txt that the cache in a state folder has for a URL."""
        return self.robots.known(url, folder)

    def address_refusal(self, address: str) -> str:
        """Applies http.filter.ipaddress.include and .exclude."""
        return self.addresses.refusal(address)

    async def addresses_of(self, host: str) -> list[str]:
        """Returns the addresses of a host, by the resolver that requests use."""
        if self.names is None:
            return await super().addresses_of(host)
        try:
            known = self.names.known(host)
            return await self.names.find(host) if known is None else known or [host]
        except (UnknownHost, NoNameServer):
            return []

    async def close(self) -> None:
        """Closes all connections and saves the robots cache."""
        self.robots.close()
        await self.transport.aclose()
        if self.names is not None:
            self.names.close()

    # -- request -----------------------------------------------------------------------------------

    def _fixed_headers(self) -> Headers:
        settings = self.settings
        named = (
            ("Accept-Encoding", settings.accept_encoding),
            ("User-Agent", settings.user_agents[0]),
            ("Accept-Language", settings.accept_language),
            ("Accept-Charset", settings.accept_charset),
            ("Accept", settings.accept),
        )
        return [(name.encode(), value.encode()) for name, value in named[:_AGENT]] + [
            (name.encode(), value.encode()) for name, value in named[_AGENT:] if value
        ]

    def request_headers(self, url: Url, datum: CrawlDatum) -> list[tuple[bytes, bytes]]:
        """Returns all headers of a request in Nutch's order."""
        settings = self.settings
        headers = [_host_header(url.host, url.port), *self._fixed]
        if len(settings.user_agents) > 1:
            headers[_AGENT] = (b"User-Agent", settings.user_agent().encode())
        if settings.send_cookies:
            cookie = datum.metadata.get(_COOKIE)
            text = (
                self.sessions.cookie(url.host) or settings.cookie_for(url)
                if cookie is None
                else str(cookie)
            )
            if text is not None:
                headers.append((b"Cookie", _CONTROLS.sub("", text).encode()))
        copy = self._held(url, datum)
        if copy is not None and copy.last_modified:
            headers.append((b"If-Modified-Since", copy.last_modified.encode()))
        if copy is not None and copy.etag:
            headers.append((b"If-None-Match", copy.etag.encode("latin-1")))
        return headers

    def _held(self, url: Url, datum: CrawlDatum) -> Validators | None:
        """Returns the validators that a request for a page is sent with: those of the copy that is
        held, or as in Nutch a date, of whatever it may be.
        """
        settings = self.settings
        if not settings.if_modified_since:
            return None
        if settings.store_etag:
            return validators.held(str(url), datum)
        time = datum.modified_time
        return Validators("", format_date(time), 0) if time > 0 else None

    def _is_confirmed(self, answer: Answer, url: Url, datum: CrawlDatum) -> bool:
        """Tells whether "not modified" speaks of the copy that is held; to Nutch it does."""
        copy = self._held(url, datum)
        return copy is not None and (
            not self.settings.store_etag or copy.confirmed_by(answer.metadata)
        )

    async def fetch(
        self, url: Url, datum: CrawlDatum, content_limit: int | None = None, method: str = "GET"
    ) -> Answer:
        """Sends one request; a host is asked for by its one form, however it is spelled (with a
        dot behind it a server may not know its own certificate, or name). Raises
        httpx.TransportError if there is no usable answer.
        """
        host = canonical_host(url.host)
        if host == url.host:
            return await self._fetch(url, datum, content_limit, method)
        try:
            return await self._fetch(url._replace(host=host), datum, content_limit, method)
        except UnknownHost:
            raise UnknownHost(url.host) from None

    async def _fetch(
        self, url: Url, datum: CrawlDatum, content_limit: int | None, method: str
    ) -> Answer:
        if not _HOST.fullmatch(url.host) or len(url.host) > _LONGEST_HOST:
            raise UnknownHost(url.host)
        if self.credentials.forms:
            await self.sessions.enter(url.host)
        limit = self.settings.content_limit if content_limit is None else content_limit
        target = request_target(url.file)
        headers = self.request_headers(url, datum)
        metadata = SpellCheckedMetadata()
        metadata.add(CONTENT_FETCH_TIME_KEY, str(self.clock.now()))
        order = self._order(url, target, headers, limit, method)
        reply = await self._decoded(await self._send(order, url), limit)
        if self.settings.store_request:
            metadata.add(REQUEST_KEY, self._request_text(method, target, headers, reply.version))
        return self.read_reply(reply, metadata, limit)

    async def _decoded(self, reply: Reply, limit: int) -> Reply:
        """Decodes the content of a reply, between other work if it is large."""
        if (coding := _coding_of(reply)) is not None:
            reply.decode(await decode_between(reply.body, coding, _and_one(limit), self._offered))
        reply.decoded = True  # by no coding: the head is not searched again
        return reply

    def _order(
        self,
        url: Url,
        target: str,
        headers: Headers,
        limit: int,
        method: str = "GET",
        content: bytes = b"",
    ) -> Order:
        proxy = self.settings.proxy.proxy_for(url.host)
        return Order(*origin(url), target.encode("ascii"), headers, limit, proxy, method, content)

    async def _send(self, order: Order, url: Url) -> Reply:
        """One request, with credentials if the server asks for some that we have."""
        auth = self.credentials.known(url)
        if auth is not None:
            return await self._authorized(authorized(auth, order, None), url)
        reply = await self.transport.ask(order)
        if reply.code != _UNAUTHORIZED or not self.credentials.scopes:
            return reply
        found = self.credentials.answer(url, field_values(reply.head, "www-authenticate"))
        if found is None:
            return reply
        return await self._authorized(authorized(found[0], order, found[1]), url)

    async def _authorized(self, flow: Generator[Order, Reply, None], url: Url) -> Reply:
        """Returns the last answer of a dialogue about credentials."""
        reply = await self.transport.ask(next(flow))
        while True:
            try:
                following = flow.send(reply)
            except StopIteration:
                break
            reply = await self.transport.ask(following)
        if reply.code == _UNAUTHORIZED:
            self.credentials.forget(url)
        return reply

    async def _send_form(
        self, method: str, url: Url, more: Mapping[str, str], content: bytes
    ) -> Reply:
        """Sends a request of a login: the usual headers, some replaced by those of the form."""
        own = {name.lower(): (name, value) for name, value in more.items()}
        headers = [
            (n, v)
            for n, v in self.request_headers(url, CrawlDatum())
            if n.decode().lower() not in own
        ]
        headers += [(name.encode(), value.encode()) for name, value in own.values()]
        target = request_target(url.file)
        limit = self.settings.content_limit
        order = self._order(url, target, headers, limit, method, content)
        return await self._decoded(await self.transport.ask(order), limit)

    def _request_text(self, method: str, target: str, headers: Headers, answered: bytes) -> str:
        version = "1.0" if self.settings.http_version == "1.0" else "1.1"
        if answered == b"HTTP/2":
            version = "2"
        lines = [f"{name.decode()}: {value.decode()}\r\n" for name, value in headers]
        return shown_request(f"{method} {target} HTTP/{version}\r\n{''.join(lines)}\r\n")

    # -- response ----------------------------------------------------------------------------------

    def read_reply(self, reply: Reply, metadata: SpellCheckedMetadata, limit: int) -> Answer:
        """Returns a reply as Nutch's records keep it: headers as metadata, content decoded, at most
        `limit` bytes of it. Trailers are no headers (RFC 9110, 6.5.1; Nutch merges them).
        """
        metadata.put_lines(reply.head, start=1)
        settings = self.settings
        if settings.store_address and reply.address is not None:
            metadata.set(IP_ADDRESS_KEY, reply.address[0])
        if settings.store_headers:
            metadata.set(
                RESPONSE_HEADERS_KEY, "".join(f"{line}\r\n" for line in unfold(reply.head)) + "\r\n"
            )
        if settings.store_versions:
            version = reply.version.decode().lower()
            versions = ["h2" if version == "http/2" else version]
            if reply.tls is not None:
                versions.append(reply.tls[0].removesuffix(".0"))
                metadata.set(CIPHER_SUITES_KEY, java_name(reply.tls[1]))
                metadata.set(TLS_VERDICT_KEY, "verified" if reply.tls[2] else "not checked")
            metadata.set(PROTOCOL_VERSIONS_KEY, ",".join(versions))
        body, truncated, whole = self._content(reply, metadata, limit)
        if truncated is not None:
            metadata.set(TRUNCATED_KEY, "true")
            metadata.set(TRUNCATED_REASON_KEY, truncated)
        elif reply.error is None and is_shorter(body, metadata.get("Content-Length")):
            # else the length before decoding would speak against it
            metadata.set(TRUNCATED_KEY, "false")
        return Answer(reply.code, body, metadata, whole, reply.head)

    def _content(
        self, reply: Reply, metadata: SpellCheckedMetadata, limit: int
    ) -> tuple[bytes, str | None, bool]:
        """Returns the decoded content, why it was truncated if it was, and whether it is whole."""
        if (coding := _coding_of(reply)) is not None:
            reply.decode(decode(reply.body, coding, _and_one(limit)))
        body, truncated = reply.body, reply.truncated
        if reply.error is not None:
            body, truncated = self._broken(reply, reply.error, metadata)
        whole = truncated is None and reply.error is None
        if reply.damaged and whole:
            whole = False
            metadata.set(DAMAGED_KEY, "true")
        if 0 <= limit < len(body):
            body, truncated, whole = body[:limit], "length", False
        return body, truncated, whole

    def _broken(
        self, reply: Reply, error: Exception, metadata: Metadata
    ) -> tuple[bytes, str | None]:
        """Decides about incomplete content: an error page may lack it; a page that a plain close
        cuts off is kept, as its end may be one. HTTP/2 says where a page ends; but libcurl takes a
        stream that is reset with NO_ERROR for whole (RFC 9113, 8.1), if there is no Content-Length.
        """
        body = reply.body
        if self.settings.partial_as_truncated and body:
            return body, TOO_SLOW if isinstance(error, httpx.TimeoutException) else "disconnect"
        if reply.code not in _SUCCESSES:
            return b"", None
        coding = (metadata.get("Transfer-Encoding") or "").lower()
        ends = "chunked" in coding or reply.version == b"HTTP/2"
        if isinstance(error, httpx.RemoteProtocolError) and not ends:
            return body, None
        raise error


def _coding_of(reply: Reply) -> str | None:
    """The codings that a body is still to be decoded of."""
    if reply.decoded or not reply.body:
        return None
    if b"\ncontent-encoding:" not in b"\n".join(reply.head).lower():
        return None  # most have none, and to unfold the lines takes longer
    return ", ".join(field_values(reply.head, "content-encoding")) or None


def _and_one(limit: int) -> int:
    """A byte more than is kept shows that there is more."""
    return limit if limit < 0 else limit + 1


@lru_cache(maxsize=1024)
def _code_text(code: int) -> Text:
    return Text(str(code))


@lru_cache(maxsize=4096)
def _host_header(host: str, port: int) -> tuple[bytes, bytes]:
    return b"Host", (host if port == -1 else f"{host}:{port}").encode()


def _error_text(error: Exception, url: str) -> str:
    if isinstance(error, UrlError) and str(error).startswith("unknown protocol"):
        return "java.net.MalformedURLException"  # Nutch's own handler factory gives no message
    return java_text(error, url)
