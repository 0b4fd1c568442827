"""Makes SURTs, the keys of URLs in an index of web archives: `com,example)/path?a=1&b=2`. Pure: no
I/O.

    key   :=  host in reverse, labels between commas  [":" port]  ")"  path  ["?" query]
    other :=  scheme ":" path

URLs that mean the same page to a reader have the same key: it lacks scheme, `www.`, user, fragment,
session ID and trailing slash, is in lower case, and has its arguments sorted. Since programs of
different origin compare keys, all rules are those of the Wayback Machine's canonicalizers, even
where RFC 3986 says otherwise.

Source: org.archive.url (GoogleURLCanonicalizer, IAURLCanonicalizer, WaybackURLKeyMaker) of
webarchive-commons.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

_PARTS: Final = re.compile(
    rb"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?P<host>//[^/?#]*)?(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?"
)
_REPEATED_SCHEME: Final = re.compile(rb"^(?:https?://)+(?=https?://)", re.IGNORECASE)
_IN_NO_URL: Final = re.compile(rb"[\n\r\t]")
_WWW: Final = re.compile(rb"www\d*\.")
_DEFAULT_PORTS: Final = {b"http": b"80", b"https": b"443"}
_AS_THEY_ARE: Final = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"
"""Characters that stay unencoded besides letters and digits: visible ASCII except `#` and `%`."""
_NUMBER: Final = re.compile(rb"(?:0[0-7]*|[1-9][0-9]*)(?:\.[0-9]+){0,3}")

_PATH_SESSIONS: Final = (
    re.compile(rb"^(.*/)\((?:[a-z]\([0-9a-z]{24}\))+\)/([^?]+\.aspx.*)$", re.IGNORECASE),
    re.compile(rb"^(.*/)\([0-9a-z]{24}\)/([^?]+\.aspx.*)$", re.IGNORECASE),
)
_QUERY_SESSIONS: Final = tuple(
    re.compile(rb"^(.*)" + pattern + rb"(?:&(.*))?$", re.IGNORECASE | re.DOTALL)
    for pattern in (
        rb"jsessionid=[0-9a-z]{32}",
        rb"phpsessid=[0-9a-z]{32}",
        rb"sid=[0-9a-z]{32}",
        rb"aspsessionid[a-z]{8}=[a-z]{24}",
        rb"cfid=[^&]+&cftoken=[^&]+",
    )
)


def surt(url: str) -> str:
    """Returns the key of a URL; `-` for an empty one."""
    data = _IN_NO_URL.sub(b"", url.encode("utf-8", "surrogateescape").strip())
    if not data:
        return "-"
    match = _PARTS.match(_REPEATED_SCHEME.sub(b"", data))
    assert match is not None  # every part of the pattern may be empty
    if match["scheme"] is None:
        match = _PARTS.match(b"http://" + data)
        assert match is not None
    scheme, path = match["scheme"].lower(), match["path"]
    authority = (match["host"] or b"//")[2:]
    if not authority and scheme.startswith(b"http"):
        authority, _, rest = path.lstrip(b"/").partition(b"/")
        path = b"/" + rest
    host, port = _host_and_port(authority)
    key = _reversed(host) + _port(scheme, port) + b")" if host else scheme + b":"
    return (key + _path(path, bool(host)) + _query(match["query"])).decode("ascii", "replace")


def _host_and_port(authority: bytes) -> tuple[bytes, bytes]:
    host_and_port = authority.rpartition(b"@")[2]
    if host_and_port.startswith(b"["):
        host, _, port = host_and_port.partition(b"]")
        return host[1:], port.removeprefix(b":")
    host, _, port = host_and_port.partition(b":")
    return host, port


def _port(scheme: bytes, port: bytes) -> bytes:
    if not port.isdigit() or port.lstrip(b"0") == _DEFAULT_PORTS.get(scheme):
        return b""
    return b":" + (port.lstrip(b"0") or b"0")


@lru_cache(maxsize=4096)
def _reversed(host: bytes) -> bytes:
    """Returns the labels of a host in reverse order."""
    host = _unescaped(host)
    if not host.isascii():
        host = _idna(host.decode("utf-8", "ignore"))
    host = host.replace(b"..", b".").strip(b".")
    host = _address(host) or _escaped(host.lower())
    www = _WWW.match(host)
    return b",".join(reversed(host[www.end() if www else 0 :].split(b".")))


def _idna(host: str) -> bytes:
    try:
        return host.encode("idna")
    except UnicodeError:
        return host.encode()


def _address(host: bytes) -> bytes | None:
    """Returns the dotted-decimal form of an IPv4 address in any notation of inet_aton."""
    if host.isdigit():
        return str(IPv4Address(int(host[-20:]) & 0xFFFFFFFF)).encode()
    if not _NUMBER.fullmatch(host):
        return None
    *first, last = map(_number, host.split(b"."))
    space = 1 << 8 * (4 - len(first))
    if last >= space or any(number > 0xFF for number in first):
        return None
    return str(IPv4Address(sum(n << 8 * (3 - i) for i, n in enumerate(first)) + last)).encode()


def _number(part: bytes) -> int:
    return int(part, 8 if part.startswith(b"0") and not part.strip(b"01234567") else 10)


def _path(path: bytes, in_host: bool) -> bytes:
    path = _unescaped(path)
    path = _escaped(_normal(path) if in_host else path).lower()
    for pattern in _PATH_SESSIONS:
        match = pattern.match(path)
        if match:
            path = match[1] + match[2]
    return path[:-1] if len(path) > 1 and path.endswith(b"/") else path


def _normal(path: bytes) -> bytes:
    """Resolves `.`, `..` and empty segments; keeps a trailing slash."""
    kept: list[bytes] = []
    for name in path.split(b"/")[1:]:
        if name == b"..":
            if kept:
                kept.pop()
            else:
                kept.append(name)
        elif name != b".":
            kept.append(name)
    *folders, last = kept or [b""]
    return b"/" + b"".join(name + b"/" for name in folders if name) + last


def _query(query: bytes | None) -> bytes:
    if not query:
        return b""
    query = _escaped(_unescaped(query))
    for pattern in _QUERY_SESSIONS:
        match = pattern.match(query)
        if match:
            query = match[1] + (match[2] or b"")
    query = query.lower()
    if len(query) > 1:
        query = b"&".join(
            b"=".join(pair) for pair in sorted(arg.split(b"=", 1) for arg in query.split(b"&"))
        )
    return b"?" + query if query else b""


def _unescaped(text: bytes) -> bytes:
    """Removes percent-encoding, repeatedly if it was applied repeatedly."""
    while b"%" in text and (plain := unquote_to_bytes(text)) != text:
        text = plain
    return text


def _escaped(text: bytes) -> bytes:
    return quote_from_bytes(text, safe=_AS_THEY_ARE).encode()
