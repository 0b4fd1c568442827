"""Explains protocol statuses in plain words: why a page was not fetched. Pure: no I/O.

The words of a protocol status are Nutch's, many of them Java's; `reason` says the same for people.
"""

from __future__ import annotations

import re
from typing import Final

from minutch.hadoop.formats.writables import Text
from minutch.records import crawldatum as status
from minutch.records import protocol as codes
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import PROTO_STATUS_KEY, RESPONSE_CODE_KEY
from minutch.records.protocol import ProtocolStatus

_CODE: Final = Text(RESPONSE_CODE_KEY)
_PROTO_STATUS: Final = Text(PROTO_STATUS_KEY)
ANSWERED: Final = (
    *(codes.SUCCESS, codes.NOTMODIFIED, codes.MOVED, codes.TEMP_MOVED),
    *(codes.GONE, codes.NOTFOUND, codes.ACCESS_DENIED),
)
"""Protocol statuses that only a server's answer leads to."""
ANSWER: Final = "Http code="
"""How the message of an `exception` begins that is an answer with another code."""

_CHECK: Final = "(http.tls.certificates.check)"
_GUARD: Final = "address not allowed (http.filter.ipaddress.include)"
_TIMEOUT: Final = "timeout while connecting (http.timeout)"
_MESSAGES: Final = (
    (r"Forbidden connection to IP address (127\.|::1|localhost)", f"this machine's own {_GUARD}"),
    (
        r"Forbidden connection to IP address (10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|f[cd])",
        f"private {_GUARD}",
    ),
    (r"Forbidden connection to IP address ", _GUARD),
    (r"HTTP (\d+) of the proxy", r"HTTP \1 of the proxy (http.proxy.host)"),
    (r"CONNECT tunnel failed, response (\d+)", r"HTTP \1 of the proxy (http.proxy.host)"),
    (r"self.signed certificate", f"certificate: self-signed {_CHECK}"),
    (r"certificate has expired", f"certificate: expired {_CHECK}"),
    (
        r"(no alternative certificate|subject name|hostname mismatch)",
        f"certificate: of another host {_CHECK}",
    ),
    (r"unable to get local issuer certificate", f"certificate: unknown issuer {_CHECK}"),
    (r"(certificate|SSL connect|TLS)", "TLS failed"),
    (r"UnknownHostException", "no such host"),
    (r"NoRouteToHostException", "no route to the host"),
    (r"connection refused", "connection refused"),
    (r"connection reset", "connection reset"),
    (r"Network is unreachable", "network unreachable"),
    (r"Connect(ion)? timed out", _TIMEOUT),
    (r"timed out", "timeout (http.timeout)"),
    (r"MalformedURLException", "redirects to what is no URL"),
)
"""What a message looks like, and what it means; the first one counts."""
_UNREACHED: Final = (
    "no such host",
    "no route to the host",
    "connection refused",
    "network unreachable",
    _TIMEOUT,
)
_URL: Final = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+")


def http_code(datum: CrawlDatum) -> str:
    """Returns the code of the answer; empty if there was none: an entry keeps the code of an
    earlier round.
    """
    value, ended = datum.metadata.get(_CODE), datum.metadata.get(_PROTO_STATUS)
    return str(value) if value is not None and (ended is None or answered(ended)) else ""


def answered(ended: object) -> bool:
    """Tells whether a server's answer led to this protocol status."""
    if not isinstance(ended, ProtocolStatus):
        return False
    return ended.code in ANSWERED or (
        ended.code == codes.EXCEPTION and (ended.message or "").startswith(ANSWER)
    )


def fate(fetch_status: int, protocol: ProtocolStatus) -> str:
    """Returns the fate of the page, in a word."""
    if protocol.code == codes.NOTFETCHING:
        return "not asked for"
    if protocol.code == codes.ROBOTS_DENIED:
        return "denied"
    return "retry" if fetch_status == status.STATUS_FETCH_RETRY else "gone"


def reason(protocol: ProtocolStatus, http_code: str = "", proxy: str = "") -> str:
    """Why a page was not had, for people. With a proxy it is the proxy that can't be reached."""
    message = _URL.sub("…", protocol.message or "")
    if protocol.code == codes.NOTFETCHING:
        return message or "not asked for"
    if protocol.code == codes.ROBOTS_DENIED:
        return f"robots.txt ({message.removeprefix('robots.txt: ')})" if message else "robots.txt"
    if http_code and http_code != "200":
        return f"HTTP {http_code}"
    for pattern, text in _MESSAGES:
        match = re.search(pattern, message, re.IGNORECASE)
        if match:
            found = match.expand(text)
            by_proxy = bool(proxy) and found in _UNREACHED
            return f"proxy {proxy}: {found} (http.proxy.host)" if by_proxy else found
    if protocol.code == codes.FAILED and not message:
        return "no protocol plugin for its scheme (plugin.includes)"
    return message.rpartition("Exception: ")[2] or (
        protocol.name or f"protocol status {protocol.code}"
    ).replace("_", " ")
