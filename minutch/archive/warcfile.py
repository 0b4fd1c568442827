"""WARC files (ISO 28500, versions 1.0 and 1.1): records with digests, each a gzip member of its own, files by size.

    record  :=  "WARC/" version CRLF  (name ": " value CRLF)*  CRLF  block  CRLF CRLF

A record's ID is made of what it says and of its number, so that the same records get the same IDs each time.

    with WarcFiles(open_file, compress=True, limit=1 << 30) as files:
        files.begin_page()                      # a new file where the last one is full
        id = files.write("response", date, target, block, "application/http; msgtype=response", payload=headers_end)
        files.write("metadata", date, target, json, "application/json", more={"WARC-Refers-To": id})

Source: ISO 28500:2009 (WARC 1.0) and 2017 (1.1), annex D for compression.
"""

from __future__ import annotations

import re
from base64 import b32encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import blake2b, sha1
from types import TracebackType
from typing import Final, Protocol, Self
from uuid import UUID

from isal import isal_zlib

from minutch.errors import UrlError
from minutch.urls.uri import escape_unsafe, parse_uri

V1_0: Final = "1.0"
V1_1: Final = "1.1"
RESPONSE: Final = "application/http; msgtype=response"
REQUEST: Final = "application/http; msgtype=request"
FIELDS: Final = "application/warc-fields"
DEFAULT_LIMIT: Final = 1_000_000_000
"""Bytes beyond which a file is full: archives are shipped in files of 1 GB."""

_LEVEL: Final = 2
_GZIP: Final = 31
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_SECOND: Final = 253_402_300_799
_NOT_IN_FIELDS: Final = re.compile(r"[\x00-\x1f\x7f]+")


class Output(Protocol):
    """A file to append to."""

    def write(self, data: bytes, /) -> object:
        """Append."""

    def close(self) -> None:
        """Close."""


class WarcFiles:
    """Writes records into one file after the other.

    `open_file` opens the file of a number, from 0 on, under the name that it returns. `info` makes the fields of the
    warcinfo record that each file begins with; None leaves it out.
    """

    def __init__(
        self,
        open_file: Callable[[int], tuple[str, Output]],
        *,
        compress: bool,
        limit: int = DEFAULT_LIMIT,
        version: str = V1_0,
        info: Callable[[], tuple[int, Mapping[str, str]]] | None = None,
    ) -> None:
        self._open_file, self._compress, self._limit = open_file, compress, limit
        self._version, self._info = version, info
        self._file: Output | None = None
        self._size = self._number = 0
        self.records = 0

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()

    def begin_page(self) -> None:
        """Records that belong together follow: they go into one file, a new one if the last one is full."""
        if self._size > self._limit:
            self._open()

    def _open(self) -> None:
        if self._file is not None:
            self._file.close()
        name, self._file = self._open_file(self._number)
        self._number += 1
        self._size = 0
        if self._info is not None:
            time, fields = self._info()
            block = "".join(f"{name}: {_one_line(value)}\r\n" for name, value in fields.items())
            self.write("warcinfo", time, "", block.encode(), FIELDS, more={"WARC-Filename": name})

    def write(
        self,
        kind: str,
        time: int,
        target: str,
        block: bytes,
        content_type: str = "",
        *,
        payload: int | None = None,
        more: Mapping[str, str] | None = None,
    ) -> str:
        """Append a record of `time` (ms) and return its ID, angle brackets included.

        `target` is a URI, or empty; `payload` says where in the block the payload begins, None that there is none.
        """
        assert self._file is not None
        digest = _digest(block)
        record_id = self._record_id(kind, time, target, digest)
        fields = {"WARC-Type": kind, "WARC-Record-ID": record_id, "WARC-Date": warc_date(time, self._version)}
        if target:
            fields["WARC-Target-URI"] = target
        fields |= more or {}
        fields["WARC-Block-Digest"] = digest
        if payload is not None:
            fields["WARC-Payload-Digest"] = _digest(block[payload:]) if payload else digest
        if content_type:
            fields["Content-Type"] = content_type
        fields["Content-Length"] = str(len(block))
        lines = "".join(f"{name}: {_one_line(value)}\r\n" for name, value in fields.items())
        record = b"".join((f"WARC/{self._version}\r\n{lines}\r\n".encode(), block, b"\r\n\r\n"))
        data = _gzip_member(record) if self._compress else record
        self._file.write(data)
        self._size += len(data)
        self.records += 1
        return record_id

    def _record_id(self, kind: str, time: int, target: str, digest: str) -> str:
        text = f"{self.records} {kind} {time} {target} {digest}".encode("utf-8", "surrogateescape")
        return f"<urn:uuid:{UUID(bytes=blake2b(text, digest_size=16).digest(), version=4)}>"


def _gzip_member(record: bytes) -> bytes:
    compressor = isal_zlib.compressobj(_LEVEL, wbits=_GZIP)
    return bytes(compressor.compress(record) + compressor.flush())


def _digest(data: bytes) -> str:
    return f"sha1:{b32encode(sha1(data, usedforsecurity=False).digest()).decode()}"


def _one_line(value: str) -> str:
    return _NOT_IN_FIELDS.sub(" ", value).strip()


def warc_date(ms: int, version: str = V1_0) -> str:
    """A time as `WARC-Date` has it: to the second in 1.0, to the millisecond in 1.1; within the years 1970 to 9999."""
    ms = max(0, min(ms, _LAST_SECOND * 1000))
    text = (_EPOCH + timedelta(milliseconds=ms)).replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f"{text[:-4] if version == V1_0 else text}Z"


def target_uri(url: str) -> str:
    """A URL as a URI in ASCII, what is not allowed in one encoded. UrlError for what has no scheme."""
    text = url.replace(" ", "%20")
    try:
        parsed = parse_uri(text)
        text = "".join(c if c.isascii() else escape_unsafe(c) for c in text)
    except UrlError:
        text = escape_unsafe(text)
        parsed = parse_uri(text)
    if not parsed.scheme:
        raise UrlError(f"no absolute URI: {url!r}")
    return text
