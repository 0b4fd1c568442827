"""WARC files (ISO 28500, versions 1.0 and 1.1): records with digests, each a gzip member of its
own, files by size. And their elder, ARC files, as Common Crawl wrote them until 2012.

    record  :=  "WARC/" version CRLF  (name ": " value CRLF)*  CRLF  block  CRLF CRLF
    block   :=  head payload        the head of an HTTP message, empty for a resource

A record's ID is a hash of its contents, so that the same records always get the same IDs.

    with WarcFiles(open_file, compress=True, limit=1 << 30) as files:
        files.begin_page()      # opens a new file if the last one is full
        id = files.write("response", time, target, body, RESPONSE, head=b"HTTP/1.1 200 …")
        files.write("metadata", time, target, fields, FIELDS, more=[("WARC-Refers-To", id)])

An ARC file, version 1, has the same members and sizes:

    file    :=  description record*
    record  :=  URL " " IP address " " date " " media type " " length LF   HTTP head and body   LF

The description is a record `filedesc://<name>` of what the fields are called. The words of a head
hold no blanks.

Source: ISO 28500:2009 (WARC 1.0) and 2017 (1.1), annex D for compression;
org.apache.nutch.tools.WARCUtils (getWARCInfoContent, getAgentString); the Internet Archive's ARC
File Format, version 1.0; the Common Crawl data set of 2008 to 2012.
"""

from __future__ import annotations

import logging
import re
import socket
from base64 import b32encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b, sha1, sha256
from typing import Final, NamedTuple, Protocol, Self

from isal import igzip_lib, isal_zlib

from minutch.conf import Configuration, Settings, made_by, prop
from minutch.errors import UrlError
from minutch.urls.uri import escape_unsafe, parse_uri

log = logging.getLogger(__name__)

V1_0: Final = "1.0"
V1_1: Final = "1.1"
RESPONSE: Final = "application/http; msgtype=response"
REQUEST: Final = "application/http; msgtype=request"
FIELDS: Final = "application/warc-fields"
DEFAULT_LIMIT: Final = 1_000_000_000
"""Bytes beyond which a file is full: archives are shipped in files of 1 GB."""
PAYLOAD_DIGEST: Final = "WARC-Payload-Digest"
SHA1: Final = "sha1"
SHA256: Final = "sha256"
DIGESTS: Final = {SHA1: sha1, SHA256: sha256}

LEVEL_PROPERTY: Final = "warc.output.level"
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_SECOND: Final = 253_402_300_799  # 9999-12-31T23:59:59Z: later years have five digits
_NOT_IN_FIELDS: Final = re.compile(r"[\x00-\x1f\x7f]+")
ARC_LIMIT: Final = 100_000_000
"""Bytes beyond which a file is full: those of 2012 have 100 MB."""
NO_ADDRESS: Final = "0.0.0.0"
NO_TYPE: Final = "no-type"
_DESCRIPTION: Final = b"1 0 %s\nURL IP-address Archive-date Content-type Archive-length\n"
_ORIGIN: Final = b"CommonCrawl"
_LEVEL: Final = 2
_GZIP: Final = 31  # zlib.h: 15 for the window, 16 for gzip's head and trailer
_NO_WORD: Final = re.compile(r"[\x00-\x20\x7f]+")


class Output(Protocol):
    """A file to append to."""

    def write(self, data: bytes, /) -> object:
        """Append."""

    def close(self) -> object:
        """Closes."""


class WrittenRecord(NamedTuple):
    """A record as it was written, for indexes and for what is derived of it."""

    id: str
    kind: str
    time: int
    target: str
    file: str
    """The name of its file."""
    offset: int
    length: int
    """Bytes in the file: those of the gzip member, where there are such."""
    trailer: bytes
    """CRC-32 and size of the record, as they end its gzip member; empty without one."""
    header: bytes
    """Its fields, up to the empty line and with it."""
    head: bytes
    body: bytes


class WarcFiles:
    """Writes records into one file after the other.

    `open_file` opens the file of a number, from `number` on, under the name that it returns. `info`
    makes the fields of the warcinfo record that each file begins with; None leaves it out.
    `written` is told of each record. `level` is that of ISA-L, 0 to 3.
    """

    def __init__(  # noqa: PLR0913 - what a file is made of
        self,
        open_file: Callable[[int], tuple[str, Output]],
        *,
        compress: bool,
        limit: int = DEFAULT_LIMIT,
        version: str = V1_0,
        info: Callable[[], tuple[int, Mapping[str, str]]] | None = None,
        digest: str = SHA1,
        written: Callable[[WrittenRecord], None] | None = None,
        number: int = 0,
        level: int = 0,
    ) -> None:
        self._open_file, self._compress, self._limit = open_file, compress, limit
        self._version, self._info, self._hash, self._digest = version, info, DIGESTS[digest], digest
        self._written, self._level = written, level
        self._file: Output | None = None
        self._number = number
        self.name = ""
        self.size = 0
        """Bytes in the file that is open."""
        self.records = 0

    def __enter__(self) -> Self:
        self.open_next()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the last file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def begin_page(self) -> None:
        """Announces records that belong together: they go into one file, or a new one."""
        # Between pages only: a response and its request stay in one file.
        if self._file is None or self.size > self._limit:
            self.open_next()

    def go_on(self, name: str, file: Output, size: int) -> None:
        """Appends to a file that has records already."""
        self.name, self._file, self.size = name, file, size

    def open_next(self) -> None:
        """Begins the next file."""
        self.close()
        self.name, self._file = self._open_file(self._number)
        self._number += 1
        self.size = 0
        if self._info is not None:
            time, fields = self._info()
            self.write(
                "warcinfo",
                time,
                "",
                warc_fields(fields.items()),
                FIELDS,
                more=[("WARC-Filename", self.name)],
            )

    def write(
        self,
        kind: str,
        time: int,
        target: str,
        body: bytes,
        content_type: str = "",
        *,
        head: bytes | None = None,
        more: Sequence[tuple[str, str]] = (),
    ) -> str:
        """Appends a record of `time` (ms) and returns its ID, angle brackets included.

        `target` is a URI, or empty; `head` stands before the payload in the block, None says that
        the block has none. A payload digest among `more` is that of a payload that lies elsewhere.
        """
        assert self._file is not None
        before = head or b""
        digest = self.digest(body, before)
        record_id = _record_id(
            # All files have the same warcinfo, but for their names.
            f"{kind} {time} {target} {digest} {self.name if kind == 'warcinfo' else ''}"
        )
        text = f"WARC/{self._version}\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {record_id}\r\n"
        text += f"WARC-Date: {warc_date(time, self._version)}\r\n"
        if target:
            text += f"WARC-Target-URI: {one_line(target)}\r\n"
        digested = head is None
        for name, value in more:
            text += f"{name}: {one_line(value)}\r\n"
            digested = digested or name == PAYLOAD_DIGEST
        text += f"WARC-Block-Digest: {digest}\r\n"
        if not digested:
            # Without a head block and payload are the same bytes.
            text += f"{PAYLOAD_DIGEST}: {self.digest(body) if before else digest}\r\n"
        if content_type:
            text += f"Content-Type: {one_line(content_type)}\r\n"
        text += f"Content-Length: {len(before) + len(body)}\r\n\r\n"
        header = text.encode("utf-8", "replace")  # lone surrogates
        # ISO 28500, 4: a record ends with two CRLF, which Content-Length does not count.
        data = b"".join((header, before, body, b"\r\n\r\n"))
        if self._compress:
            data = igzip_lib.compress(
                data, self._level, igzip_lib.COMP_GZIP, igzip_lib.MEM_LEVEL_EXTRA_LARGE
            )
        self._file.write(data)
        if self._written is not None:
            # RFC 1952, 2.3.1: CRC32 and ISIZE.
            trailer = data[-8:] if self._compress else b""
            place = self.name, self.size, len(data), trailer
            self._written(
                WrittenRecord(record_id, kind, time, target, *place, header, before, body)
            )
        self.size += len(data)
        self.records += 1
        return record_id

    def digest(self, body: bytes, head: bytes = b"") -> str:
        """Returns a digest as it stands in fields.

        SHA-1 in base 32 (RFC 4648), as indexes have it; SHA-256, whose base 32 would end in `=`,
        which a digest in a field can't, in hexadecimal digits.
        """
        if not head:
            # An OpenSSL in FIPS mode refuses SHA-1 for anything else.
            hashed = self._hash(body, usedforsecurity=False)
        else:
            hashed = self._hash(head, usedforsecurity=False)
            hashed.update(body)
        if self._digest == SHA1:
            return f"{SHA1}:{b32encode(hashed.digest()).decode()}"
        return f"{self._digest}:{hashed.hexdigest()}"


def level_of(conf: Configuration) -> int:
    """Reads the level of compression. Raises ConfigError for what is no level of ISA-L's."""
    level = conf.get_int(LEVEL_PROPERTY)
    if not 0 <= level <= 3:
        raise conf.wrong(LEVEL_PROPERTY, "0 to 3", str(level))
    return level


def sha1_digest(data: bytes) -> str:
    """Returns a SHA-1 digest as `WarcFiles.digest` has it."""
    return f"{SHA1}:{b32encode(sha1(data, usedforsecurity=False).digest()).decode()}"


def _record_id(text: str) -> str:
    """Returns a UUID (version 4 by its looks) that is the text's."""
    code = blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
    # RFC 4122, 4.1.1: the two bits of the variant are 10.
    variant = "89ab"[int(code[16], 16) & 3]
    return f"<urn:uuid:{code[:8]}-{code[8:12]}-4{code[13:16]}-{variant}{code[17:20]}-{code[20:]}>"


def warc_fields(fields: Iterable[tuple[str, str]]) -> bytes:
    """Returns a block of the type application/warc-fields."""
    return "".join(f"{name}: {one_line(value)}\r\n" for name, value in fields).encode(
        "utf-8", "replace"
    )


def one_line(value: str) -> str:
    """Returns a text as the value of a field: control characters and line ends become blanks."""
    return value.strip() if value.isprintable() else _NOT_IN_FIELDS.sub(" ", value).strip()


# The records of a page have the same time.
@lru_cache(maxsize=64)
def warc_date(ms: int, version: str = V1_0) -> str:
    """Returns a time as `WARC-Date` has it: to the second in 1.0, to the millisecond in 1.1; within
    the years 1970 to 9999.
    """
    ms = max(0, min(ms, _LAST_SECOND * 1000))
    text = (
        (_EPOCH + timedelta(milliseconds=ms))
        .replace(tzinfo=None)
        .isoformat(timespec="milliseconds")
    )
    return f"{text[:-4] if version == V1_0 else text}Z"


def target_uri(url: str) -> str:
    """Returns a URL as a URI in ASCII, encoding what is not allowed. UrlError without scheme."""
    text = url.replace(" ", "%20")
    try:
        parsed = parse_uri(text)
        text = _NOT_ASCII.sub(lambda found: escape_unsafe(found[0]), text)
    except UrlError:
        text = escape_unsafe(text)
        parsed = parse_uri(text)
    if not parsed.scheme:
        raise UrlError(f"no absolute URI: {url!r}")
    return text


class ArcFiles:
    """Writes records into one file after the other."""

    def __init__(
        self, open_file: Callable[[int, int], tuple[str, Output]], *, limit: int = ARC_LIMIT
    ) -> None:
        """`open_file(number, time)` opens a file of records from `time` (ms) on, with its name."""
        self._open_file, self._limit = open_file, limit
        self._file: Output | None = None
        self._size = self._number = 0
        self.records = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(
        self, url: str, time: int, block: bytes, *, media_type: str = "", address: str = ""
    ) -> None:
        """Appends a record of `time` (ms); `url` is a URI in ASCII, `block` an HTTP answer."""
        if self._file is None or self._size > self._limit:
            self._open(time)
        self._append(url, time, block, media_type or NO_TYPE, address or NO_ADDRESS)
        self.records += 1

    def _open(self, time: int) -> None:
        if self._file is not None:
            self._file.close()
        name, self._file = self._open_file(self._number, time)
        self._number += 1
        self._size = 0
        self._append(f"filedesc://{name}", time, _DESCRIPTION % _ORIGIN, "text/plain", NO_ADDRESS)

    def _append(self, url: str, time: int, block: bytes, media_type: str, address: str) -> None:
        assert self._file is not None
        words = (url, address, arc_date(time), media_type)
        # A blank in a URL would shift the words behind it.
        head = " ".join(_NO_WORD.sub("", word) for word in words)
        compressor = isal_zlib.compressobj(_LEVEL, wbits=_GZIP)
        data = bytes(
            compressor.compress(
                b"%s %d\n%s\n" % (head.encode("utf-8", "surrogateescape"), len(block), block)
            )
            + compressor.flush()
        )
        self._file.write(data)
        self._size += len(data)


def arc_date(ms: int) -> str:
    """yyyyMMddHHmmss in UTC, within the years 1970 to 9999."""
    return f"{_EPOCH + timedelta(seconds=max(0, min(ms // 1000, _LAST_SECOND))):%Y%m%d%H%M%S}"


_SPECIFICATIONS = {
    V1_0: "http://bibnum.bnf.fr/WARC/WARC_ISO_28500_version1_latestdraft.pdf",
    V1_1: "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
}


def agent_text(conf: Configuration) -> str:
    """`name/version (description; url; email)`, without what is not set; "" for a crawler without a
    name, which has sent nothing (RFC 9110, 10.1.5: a product has one).
    """
    name, version, *rest = (
        conf.get_text(f"http.agent.{part}").strip()
        for part in ("name", "version", "description", "url", "email")
    )
    comment = "; ".join(filter(None, rest))
    if not name:
        return ""
    return f"{name}{f'/{version}' if version else ''}{f' ({comment})' if comment else ''}"


def local_host() -> tuple[str, str]:
    """Returns name and address of this machine, empty where they are not known
    (InetAddress.getLocalHost).
    """
    name = socket.gethostname()
    try:
        return name, socket.gethostbyname(name)
    except OSError:
        return name, ""


NO_URI: Final = "pages without a URI"


def uri_of(url: str) -> str | None:
    """Returns a page's URL as a URI, by which archives know it; None, and a warning, where none can
    be made of it (NO_URI).
    """
    try:
        return target_uri(url)
    except UrlError as error:
        log.warning("Invalid URI %s: %s", url, error)
        return None


@dataclass(frozen=True, slots=True)
class CrawlerIdentity(Settings):
    """The crawler as it introduces itself (http.agent.*)."""

    name: str = prop("http.agent.name")
    agent: str = made_by(agent_text)
    """The User-Agent that it sends."""
    email: str = prop("http.agent.email")
    host: str = prop("http.agent.host")


def crawler_info(
    crawler: CrawlerIdentity, host: str, address: str, version: str = V1_0
) -> dict[str, str]:
    """Returns format, crawler, machine and operator; `host` and `address` are this machine's, but a
    configured host comes first.
    """
    fields = {
        "format": f"WARC File Format {version}",
        "conformsTo": _SPECIFICATIONS[version],
        "software": crawler.name,
        "http-header-user-agent": crawler.agent,
        "http-header-from": crawler.email,
        "hostname": crawler.host or host,
        "ip": address,
        "robots": "classic",
        "operator": crawler.email,
    }
    return {name: value for name, value in fields.items() if value.strip()}
