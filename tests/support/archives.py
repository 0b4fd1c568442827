"""WARC files made by warcio: visits of every kind, as crawlers write them."""

from __future__ import annotations

import io
from pathlib import Path
from types import TracebackType
from typing import Self

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

HTML = ("Content-Type", "text/html; charset=utf-8")
DATE = "2026-01-02T03:04:05Z"


class WarcMaker:
    """A WARC file that is being made: `with WarcMaker(path) as warc: warc.page("http://h/",
    b"…")`.
    """

    def __init__(self, path: Path, *, gzip: bool = True) -> None:
        self._file = path.open("wb")
        self._writer = WARCWriter(self._file, gzip=gzip, warc_version="1.1")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._file.close()

    def page(
        self,
        url: str,
        body: bytes = b"",
        *headers: tuple[str, str],
        status: str = "200 OK",
        date: str = DATE,
        request: str = "GET",
        **fields: str,
    ) -> None:
        """A response and its request; of the body as it is, whatever the headers say."""
        lines = StatusAndHeaders(status, list(headers) or [HTML], protocol="HTTP/1.1")
        more = {"WARC-Date": date, "WARC-IP-Address": "10.1.2.3"}
        more |= {name.replace("_", "-"): value for name, value in fields.items()}
        answer = self._writer.create_warc_record(
            url, "response", payload=io.BytesIO(body), http_headers=lines, warc_headers_dict=more
        )
        asked = StatusAndHeaders(
            f"{request} / HTTP/1.1", [("User-Agent", "test")], is_http_request=True
        )
        asking = self._writer.create_warc_record(
            url, "request", http_headers=asked, warc_headers_dict={"WARC-Date": date}
        )
        self._writer.write_request_response_pair(asking, answer)

    def revisit(
        self, url: str, digest: str, refers_to: str, refers_date: str, *, date: str = DATE
    ) -> None:
        """The same content as another visit's."""
        lines = StatusAndHeaders("200 OK", [HTML, ("X-Visit", "again")], protocol="HTTP/1.1")
        self._writer.write_record(
            self._writer.create_revisit_record(
                url,
                digest=digest,
                refers_to_uri=refers_to,
                refers_to_date=refers_date,
                http_headers=lines,
                warc_headers_dict={"WARC-Date": date},
            )
        )

    def not_modified(self, url: str, *, date: str = DATE) -> None:
        """A 304, as a revisit."""
        lines = StatusAndHeaders("304 Not Modified", [("ETag", '"x"')], protocol="HTTP/1.1")
        record = self._writer.create_warc_record(
            url,
            "revisit",
            payload=io.BytesIO(b""),
            http_headers=lines,
            warc_headers_dict={
                "WARC-Date": date,
                "WARC-Profile": "http://netpreserve.org/warc/1.1/revisit/server-not-modified",
            },
        )
        self._writer.write_record(record)

    def other(self, kind: str, url: str, body: bytes, media_type: str = "text/plain") -> None:
        """A record without an HTTP head."""
        record = self._writer.create_warc_record(
            url,
            kind,
            payload=io.BytesIO(body),
            warc_content_type=media_type,
            warc_headers_dict={"WARC-Date": DATE},
        )
        self._writer.write_record(record)


def digest_of(body: bytes) -> str:
    """The payload digest as warcio writes it."""
    import base64
    import hashlib

    return f"sha1:{base64.b32encode(hashlib.sha1(body).digest()).decode()}"
