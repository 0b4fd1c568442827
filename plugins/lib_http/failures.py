"""Defines the failures of a fetch: httpx exceptions, and their Java texts in Nutch's records.

A failed fetch leaves a ProtocolStatus whose argument is the `toString` of a Java exception; the
same failure gets the same words here, so that `_pst_` reads alike whoever fetched.
"""

from __future__ import annotations

import errno
import logging
import re
from collections.abc import Sequence
from typing import Final

import httpx

from minutch.errors import UrlError
from minutch.plugin.extension import NoTurn
from minutch.records import protocol as codes
from minutch.records.protocol import ProtocolStatus

from .exchange import field_values

log = logging.getLogger(__name__)


class UnknownHost(httpx.ConnectError):
    """The host name has no address; the message is the host."""


class NoNameServer(httpx.ConnectError):
    """No name server could say whether the host has an address: SERVFAIL, REFUSED or no answer in
    time. The host may well exist; the message is the host.
    """


class ForbiddenAddress(httpx.ConnectError):
    """The address is not to be connected to (http.filter.ipaddress.*); the message is the
    address.
    """


class ProxyRefusal(httpx.ConnectError):
    """An answer of the proxy's own: the server has not been asked."""


class ProxyLogin(ProxyRefusal):
    """And what it wants is a password: that says nothing of the server at all."""


class NoRoute(httpx.ConnectError):
    """No way to the address."""


class TlsFailure(httpx.ConnectError):
    """The TLS handshake failed, or the certificate does not pass."""


class MalformedHead(httpx.RemoteProtocolError):
    """A status line or header that libcurl does not read."""


class TooLarge(httpx.RemoteProtocolError):
    """Headers without end."""


class AskAgain(httpx.TransportError):
    """The request has to be sent once more, when its host may be asked again: no answer came on a
    connection that was kept from the request before, or one that only another reader reads.
    """


NO_ANSWER: Final = "no name server answers for the host"
UNRESOLVED: Final = ProtocolStatus(codes.NOTFETCHING, [NO_ANSWER])
"""The status of a page that was not asked for since no name server could say where its host is."""
PUT_OFF: Final = (NoNameServer, AskAgain, NoTurn, ProxyLogin)
"""Failures that say nothing of a page: it is asked for later."""


def put_off(error: Exception) -> ProtocolStatus:
    """Returns the status for one of `PUT_OFF`."""
    if isinstance(error, AskAgain):
        return ProtocolStatus(codes.WOULDBLOCK, [str(error)])
    if isinstance(error, NoTurn | ProxyLogin):
        return ProtocolStatus(codes.NOTFETCHING, [str(error)])
    return UNRESOLVED


def failed(error: Exception, text: str) -> ProtocolStatus:
    """Returns the status for any other failure, which Java would print as `text`: `blocked` where
    it is this crawler that does not want to ask.
    """
    blocked = isinstance(error, ForbiddenAddress)
    return ProtocolStatus(codes.BLOCKED if blocked else codes.EXCEPTION, [text])


MALFORMED_CHUNKS: Final = "Malformed chunks"
_MALFORMED_HEAD: Final = "Malformed head"
_REFUSED: Final = (
    (r"HTTP/?([23]) .*\b(reset|refused|closed)\b", r"HTTP/\1 stream \2 before its end"),
    (r"HTTP/?([23])\b", r"HTTP/\1 connection broken"),
    (r"\b(SSL|TLS)", "TLS connection broken"),
    (r"Transfer-Encoding|Content-Length|header|Location|status line|version", _MALFORMED_HEAD),
    (r"chunk|hexadecimal", MALFORMED_CHUNKS),
)
"""What libcurl says of an answer, and our words for it; the first one counts."""


def refused_answer(message: str, *, is_head: bool = False) -> httpx.RemoteProtocolError:
    """Returns the error for an answer that libcurl does not take, which it calls `message`: in
    words that do not change with its version. `is_head`: it is the head that it does not read.
    """
    words = next(
        (
            match.expand(ours)
            for said, ours in _REFUSED
            if (match := re.search(said, message, re.I))
        ),
        message,
    )
    log.debug("libcurl: %s", message)
    if is_head or words == _MALFORMED_HEAD:
        return MalformedHead(_MALFORMED_HEAD)
    return httpx.RemoteProtocolError(words)


_LOGIN: Final = {
    407: "HTTP 407 of the proxy (http.proxy.username)",
    511: "HTTP 511: the network asks for a login",
}
"""Answers that no origin server gives (RFC 9110, 15.5.8; RFC 6585, 6)."""
_ERROR: Final = re.compile(r";[ \t]*error=")
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')


def refusal_of_tunnel(code: int) -> ProxyRefusal | None:
    """Returns what a proxy's answer to CONNECT means; None where it opened a tunnel, or was not
    asked for one (0). Any other answer is its own (RFC 9110, 9.3.6).
    """
    if code == 0 or code in range(200, 300):
        return None
    return ProxyLogin(_LOGIN[code]) if code in _LOGIN else _refusal(code)


def refusal_of_proxy(code: int, head: Sequence[bytes], is_asked: bool) -> ProxyRefusal | None:
    """Returns the failure that an answer to a request is which comes from the proxy itself; None
    for the server's. `is_asked`: it went to a proxy, which may say that it has not reached the
    server, or does not want to (RFC 9209, 2.1.1; squid by a header of its own).
    """
    if code in _LOGIN:
        return ProxyLogin(_LOGIN[code])
    if not is_asked or code not in range(400, 600):
        return None
    said = _QUOTED.sub("", ",".join(field_values(head, "proxy-status")))
    # The last member is of the proxy that is nearest to us (RFC 9209, 2); those before it may be
    # the server's own, as a CDN's are.
    is_own = _ERROR.search(said.rpartition(",")[2]) or field_values(head, "x-squid-error")
    return _refusal(code) if is_own else None


def _refusal(code: int) -> ProxyRefusal:
    return ProxyRefusal(f"HTTP {code} of the proxy")


_HTTP: Final = "org.apache.nutch.protocol.http.api.HttpException"
# A class stands before its bases, since the first one that fits counts: ConnectTimeout is a
# TimeoutException as well, NoRoute a ConnectError.
_JAVA: Final[tuple[tuple[type[Exception], str, str | None], ...]] = (
    (UnknownHost, "java.net.UnknownHostException", None),
    (ForbiddenAddress, "java.io.IOException", "Forbidden connection to IP address {}"),
    (NoRoute, "java.net.NoRouteToHostException", "No route to host"),
    (TlsFailure, _HTTP, "SSL connect to {url} failed with: {}"),
    (httpx.ConnectTimeout, "java.net.SocketTimeoutException", "Connect timed out"),
    (httpx.TimeoutException, "java.net.SocketTimeoutException", "Read timed out"),
    (httpx.ConnectError, "java.net.ConnectException", None),
    (httpx.ProtocolError, _HTTP, None),
    (httpx.UnsupportedProtocol, "java.net.MalformedURLException", None),
    (httpx.TransportError, "java.net.SocketException", None),
    (UrlError, "java.net.MalformedURLException", None),
    (httpx.InvalidURL, "java.net.MalformedURLException", None),
)


def java_text(error: Exception, url: str) -> str:
    """Returns the exception as Java would print it: class and message."""
    message = str(error)
    for kind, name, template in _JAVA:
        if isinstance(error, kind):
            text = message if template is None else template.format(message, url=url)
            # As by Throwable.toString: no colon where there is no message.
            return f"{name}: {text}" if text else name
    return f"java.io.IOException: {type(error).__name__}: {message}"


_CONNECT_ERRORS: Final = {
    errno.ECONNREFUSED: "Connection refused",
    errno.ECONNRESET: "Connection reset",
    errno.ENETUNREACH: "Network is unreachable",
    errno.ETIMEDOUT: "Connection timed out",
}


def connect_error(number: int, message: str) -> httpx.ConnectError:
    """Returns the error for a connection that was not made, by the system's error number (0:
    unknown).
    """
    if number == errno.EHOSTUNREACH:
        return NoRoute("No route to host")
    return httpx.ConnectError(_CONNECT_ERRORS.get(number, message))
