"""Writes CDXJ, the index by which replay tools find a page in WARC files.

    index  :=  line*, sorted as bytes
    line   :=  SURT of the URL " " time (yyyyMMddHHmmss, UTC) " " JSON "\n"
    JSON   :=  url, mime ("warc/revisit" for a revisit), status, digest,
               length, offset, filename: all of them strings

The index covers pages (response, revisit, resource) and metadata records, except those with a
crawler's own fields.

Source: the lines of cdxj-indexer, byte for byte; pywb's documentation of the format (`CDXJ index
format`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final, Self
from urllib.parse import quote_from_bytes, unquote_to_bytes

from minutch.archives.web.webarchive import ArchiveListener
from minutch.hadoop.formats.mapfile import sort_records
from minutch.warc.pagewriter import status_of
from minutch.warc.warcfile import FIELDS, PAYLOAD_DIGEST, WrittenRecord

# Makes SURTs, the keys of URLs in an index of web archives: `com,example)/path?a=1&b=2`. Pure: no
# I/O.
#
#     key   :=  host in reverse, labels between commas  [":" port]  ")"  path  ["?" query]
#     other :=  scheme ":" path
#
# URLs that mean the same page to a reader have the same key: it lacks scheme, `www.`, user,
# fragment, session ID and trailing slash, is in lower case, and has its arguments sorted. Since
# programs of different origin compare keys, all rules are those of the Wayback Machine's
# canonicalizers, even where RFC 3986 says otherwise.
#
# Source: org.archive.url (GoogleURLCanonicalizer, IAURLCanonicalizer, WaybackURLKeyMaker) of
# webarchive-commons.

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
KINDS: Final = frozenset({"response", "revisit", "resource", "metadata"})
REVISIT_TYPE: Final = "warc/revisit"
_LONGEST_STATUS: Final = 64
_OF_HTTP: Final = frozenset({"response", "revisit"})
_RUN: Final = 1 << 24
"""Bytes of lines that are sorted in memory at a time."""
_END_OF_TYPE: Final = re.compile(r"[;\s]")
_DIGITS: Final = re.compile(r"[^0-9]")


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


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A line of an index; None stands for members that it lacks."""

    url: str
    date: str
    """WARC-Date."""
    mime: str | None
    status: str | None
    digest: str | None
    length: int
    offset: int
    file: str
    method: str | None = None
    """Method of the request, unless it was GET."""

    def line(self) -> str:
        """Returns the line of the index."""
        values = {
            "url": self.url,
            "mime": self.mime,
            "status": self.status,
            "digest": self.digest,
            "length": str(self.length),
            "offset": str(self.offset),
            "filename": self.file,
            "method": self.method,
        }
        known = {name: value for name, value in values.items() if value is not None}
        return f"{surt(self.url)} {timestamp(self.date)} {json.dumps(known)}\n"


def timestamp(date: str) -> str:
    """Returns the 14 digits of a WARC-Date."""
    return _DIGITS.sub("", date)[:14].ljust(14, "0")


def field(header: bytes, name: str) -> str | None:
    """Returns the first value of a field in the header of a record or HTTP message, in any case."""
    match = re.search(
        rb"\r?\n" + re.escape(name.encode()) + rb"[ \t]*:[ \t]*([^\r\n]*)", header, re.IGNORECASE
    )
    return None if match is None else match[1].rstrip().decode("utf-8", "replace")


def is_indexed(kind: str, content_type: str | None) -> bool:
    """Returns whether an index covers a record."""
    return kind in KINDS and (kind in _OF_HTTP or content_type != FIELDS)


def media_type(kind: str, header: bytes, head: bytes) -> str | None:
    """Returns the media type that an index states: of a response, its HTTP header, unchanged."""
    if kind == "revisit":
        return REVISIT_TYPE
    value = field(head, "Content-Type") if kind == "response" else field(header, "Content-Type")
    return _END_OF_TYPE.split(value, maxsplit=1)[0] if value else value


def entry_of(record: WrittenRecord) -> IndexEntry | None:
    """Returns the entry of a record that was written; None for one that is not indexed."""
    content_type = field(record.header, "Content-Type")
    if not is_indexed(record.kind, content_type):
        return None
    code = status_of(record.head[:_LONGEST_STATUS].decode("latin-1"))
    return IndexEntry(
        record.target,
        field(record.header, "WARC-Date") or "",
        media_type(record.kind, record.header, record.head),
        None if code is None or record.kind not in _OF_HTTP else str(code),
        field(record.header, PAYLOAD_DIGEST),
        record.length,
        record.offset,
        record.file,
    )


class SortedLines:
    """A collection of index lines, kept on disk and sorted at the end."""

    def __init__(self, folder: Path) -> None:
        """`folder` takes temporary files."""
        self._folder = folder
        self._file = TemporaryFile(dir=folder, buffering=1 << 18)  # noqa: SIM115 - closed by __exit__

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, entry: IndexEntry) -> None:
        """Adds an entry."""
        self._file.write(entry.line().encode())

    def sorted(self) -> Iterator[bytes]:
        """Returns all lines in order, without repetitions."""
        self._file.seek(0)
        last = b""
        lines = ((line, b"") for line in self._file)
        for line, _ in sort_records(lines, directory=self._folder, run_bytes=_RUN):
            if line != last:
                yield line
            last = line


class CdxjCollector(SortedLines, ArchiveListener):
    """A collector of the index of an archive while its files are written."""

    def record(self, record: WrittenRecord) -> None:
        entry = entry_of(record)
        if entry is not None:
            self.add(entry)


def write_index(path: Path, lines: Iterable[bytes]) -> None:
    """Writes an index to a file."""
    with path.open("wb", buffering=1 << 18) as file:
        file.writelines(lines)
