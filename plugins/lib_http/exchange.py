"""Defines a request for libcurl (`Order`), its response (`Reply`), and the answer for a page
(`Answer`) with what it means for that (`status_of`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from minutch.records import protocol as codes
from minutch.records.metadata import Metadata
from minutch.records.protocol import ProtocolStatus
from minutch.urls.parts import Url
from minutch.urls.resolve import Resolver, WhatwgResolver, resolved_page

from .dates import parse_date

_REDIRECTED: Final = range(300, 400)
_MOST_DIGITS: Final = 18
_UNSAFE: Final = re.compile(
    r"%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%]"  # RFC 3986, 3.3 and 3.4
)

_REDIRECTS: Final = {
    302: codes.TEMP_MOVED,
    303: codes.TEMP_MOVED,
    304: codes.NOTMODIFIED,
    307: codes.TEMP_MOVED,
}
"""The meaning of status codes from 300 to 399; the others are permanent redirects."""

_ERRORS: Final[Mapping[int, tuple[int, str]]] = {
    400: (codes.GONE, "{url}"),
    401: (codes.ACCESS_DENIED, "Authentication required: {text}"),
    404: (codes.NOTFOUND, "{url}"),
    410: (codes.GONE, "Http: {code} url={url}"),
}


@dataclass(slots=True)
class Order:
    """A request: `host` is ASCII, IPv6 without brackets; `headers` are whole lines in order."""

    scheme: str
    host: str
    port: int | None
    target: bytes
    headers: list[bytes]
    limit: int = -1
    """Most bytes of content to take; negative for all."""
    proxy: str = ""
    method: str = "GET"
    content: bytes = b""


@dataclass(slots=True)
class Reply:
    """A response: `head` has the last answer's header lines as they came, status line first."""

    code: int
    head: list[bytes]
    body: bytes
    version: bytes = b"HTTP/1.1"
    error: Exception | None = None
    """The httpx exception that ended the content early."""
    truncated: str | None = None
    """Why the content is not whole: `length`, `time`."""
    address: tuple[str, int] | None = None
    """Address and port that answered, where known."""
    tls: tuple[str, str, bool] | None = None
    """Protocol, cipher and whether the certificate was checked, where that is recorded."""
    decoded: bool = False
    """True if the content is decoded already, regardless of its head."""
    damaged: bool = False
    """Its coding broke off, or was broken: the content is what came before."""

    def decode(self, decoded: tuple[bytes, bool]) -> None:
        """Takes what became of the content: data, and whether it is whole."""
        self.body, whole = decoded
        self.decoded, self.damaged = True, not whole


@dataclass(slots=True)
class Answer:
    """A response as it is stored: status code, decoded content and metadata."""

    code: int
    body: bytes
    metadata: Metadata
    whole: bool = True
    """Neither cut off nor damaged."""
    head: Sequence[bytes] = ()
    """The header lines as they came, status line first."""
    base: str | None = None
    """The document's URL, where it is not the one that was asked for."""
    moved: str | None = None
    """URL that the document itself goes to (by a script in a browser)."""

    def header(self, name: str) -> str | None:
        """Returns the value of a header, None if it is not there."""
        return self.metadata.get(name)

    @property
    def location(self) -> str:
        """The target of a redirect; of several Location headers the last counts, as in Nutch.

        Raw UTF-8 in it is read as such, as browsers do; other bytes are escaped one by one.
        """
        text = self.header("Location") or ""
        try:
            return text.encode("latin-1").decode("utf-8")
        except UnicodeError:
            return "".join(c if c.isascii() else f"%{ord(c):02X}" for c in text)


def is_shorter(body: bytes, length: str | None) -> bool:
    """Returns True if content is shorter than its Content-Length."""
    text = (length or "").strip()
    return text.isascii() and text.isdecimal() and int(text[:_MOST_DIGITS]) > len(body)


def request_target(file: str) -> str:
    """Returns a URL's path and query as they stand in a request line (RFC 9112, 3.2.1): characters
    that have no place there are escaped, in UTF-8. Others stay: the filters and normalizers have
    had their say, and a backslash that browsers take for a slash would lead past robots.txt.
    """
    target = file if file.startswith("/") else "/" + file
    return _UNSAFE.sub(_octets, target)


def _octets(found: re.Match[str]) -> str:
    try:
        octets = found[0].encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a pair
        octets = "\N{REPLACEMENT CHARACTER}".encode()
    return "".join(f"%{octet:02X}" for octet in octets)


def status_of(
    answer: Answer,
    resolver: Callable[[], Resolver | WhatwgResolver],
    url: Url,
    text: str,
    page_codes: frozenset[int],
) -> ProtocolStatus:
    """Returns the ProtocolStatus of an answer; those with one of `page_codes` are pages. Raises
    UrlError for a redirect to what is no URL.
    """
    code = answer.code
    if answer.moved is not None:
        return ProtocolStatus(codes.TEMP_MOVED, [resolved_page(resolver(), answer.moved)])
    if code in page_codes:
        modified = answer.header("Last-Modified")
        return ProtocolStatus(
            codes.SUCCESS, last_modified=(parse_date(modified) if modified else None) or 0
        )
    if code in _REDIRECTED:
        target = resolved_page(resolver(), answer.location)
        return ProtocolStatus(_REDIRECTS.get(code, codes.MOVED), [target])
    if code not in _ERRORS:
        return odd_code(code, url)
    status, template = _ERRORS[code]
    return ProtocolStatus(status, [template.format(code=code, url=url, text=text)])


def odd_code(code: int, url: Url) -> ProtocolStatus:
    """Returns the ProtocolStatus of an answer that says nothing of its page: a failure."""
    return ProtocolStatus(codes.EXCEPTION, [f"Http code={code}, url={url}"])
