"""ARC files, version 1, as Common Crawl wrote them until 2012: a gzip member a record, files by
size.

    file    :=  description record*
    record  :=  URL " " IP address " " date " " media type " " length LF   HTTP head and body   LF

The description is a record `filedesc://<name>` of what the fields are called. The words of a head
hold no blanks. Source: the Internet Archive's ARC File Format, version 1.0; the Common Crawl data
set of 2008 to 2012.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Final, Self

from isal import isal_zlib

from minutch.warc.warcfile import Output

DEFAULT_LIMIT: Final = 100_000_000
"""Bytes beyond which a file is full: those of 2012 have 100 MB."""
NO_ADDRESS: Final = "0.0.0.0"
NO_TYPE: Final = "no-type"
_DESCRIPTION: Final = b"1 0 %s\nURL IP-address Archive-date Content-type Archive-length\n"
_ORIGIN: Final = b"CommonCrawl"
_LEVEL: Final = 2
_GZIP: Final = 31
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_SECOND: Final = 253_402_300_799
_NO_WORD: Final = re.compile(r"[\x00-\x20\x7f]+")


class ArcFiles:
    """Writes records into one file after the other."""

    def __init__(
        self, open_file: Callable[[int, int], tuple[str, Output]], *, limit: int = DEFAULT_LIMIT
    ) -> None:
        """`open_file(number, time)` opens a file whose first record is of `time` (ms), and returns
        its name with it.
        """
        self._open_file, self._limit = open_file, limit
        self._file: Output | None = None
        self._size = self._number = 0
        self.records = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
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
        head = " ".join(_NO_WORD.sub("", word) for word in words)
        data = _member(
            b"%s %d\n%s\n" % (head.encode("utf-8", "surrogateescape"), len(block), block)
        )
        self._file.write(data)
        self._size += len(data)


def _member(record: bytes) -> bytes:
    compressor = isal_zlib.compressobj(_LEVEL, wbits=_GZIP)
    return bytes(compressor.compress(record) + compressor.flush())


def arc_date(ms: int) -> str:
    """yyyyMMddHHmmss in UTC, within the years 1970 to 9999."""
    return f"{_EPOCH + timedelta(seconds=max(0, min(ms // 1000, _LAST_SECOND))):%Y%m%d%H%M%S}"
