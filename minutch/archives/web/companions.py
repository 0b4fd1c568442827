"""Writes companions of WARC files, WAT and WET: one for each, with records that refer to those of
the WARC file.

The WARC files themselves are not written; `export warc` with the same options writes them, record
by record the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any, Final

from minutch.archives.web.cdxjindex import field, media_type
from minutch.archives.web.htmlfacts import html_facts
from minutch.archives.web.webarchive import ArchiveListener, ArchiveSpec
from minutch.cycle.parse.charset import CharsetDetector
from minutch.version import __version__
from minutch.warc.pagewriter import LANGUAGE
from minutch.warc.warcfile import (
    FIELDS,
    PAYLOAD_DIGEST,
    REQUEST,
    RESPONSE,
    V1_0,
    Output,
    WarcFiles,
    WrittenRecord,
    sha1_digest,
)

_NEVER_FULL = 1 << 62
HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
LARGEST: Final = 1 << 20
"""Bytes of a page that are examined, as many as the Common Crawl keeps."""
Json = dict[str, Any]


class CompanionFiles(ArchiveListener):
    """A writer of companion files. Subclasses write the records; `suffix` is part of file names."""

    suffix = ""

    def __init__(self, spec: ArchiveSpec, folder: Path) -> None:
        self.spec, self._folder = spec, folder
        self._name = ""
        self.files = WarcFiles(
            self._open,
            compress=True,
            limit=_NEVER_FULL,
            version=V1_0,
            info=lambda: (spec.time, self.info()),
            level=spec.level,
        )

    def _open(self, number: int) -> tuple[str, Output]:
        return self._name, (self._folder / self._name).open("wb", buffering=1 << 18)

    def begin(self, name: str) -> None:
        self._name = f"{name.removesuffix('.gz')}.{self.suffix}.gz"
        self.files.open_next()

    def info(self) -> dict[str, str]:
        """Returns the fields of the warcinfo record."""
        crawler = self.spec.crawler[V1_0]
        made = {
            "Software-Info": f"minutch/{__version__}",
            "Extracted-Date": formatdate(self.spec.time / 1000, usegmt=True),
            "isPartOf": self.spec.prefix,
        }
        return made | {
            name: value for name, value in crawler.items() if name not in ("software", "robots")
        }


# Writes WAT files: metadata of each record of WARC files as JSON, as Common Crawl publishes them.
#
#     <out>/<prefix>-NNNNN.warc.wat.gz     WARC 1.0; its records refer to those of
#                                          <prefix>-NNNNN.warc.gz (`export warc`)
#
#     Container   Filename, Compressed, Offset,
#                 Gzip-Metadata {Deflate-Length, Header-Length, Footer-Length,
#                                Inflated-CRC, Inflated-Length}
#     Envelope    Payload-Metadata {Actual-Content-Type, metadata by type,
#                                   Actual-Content-Length, Trailing-Slop-Length,
#                                   Block-Digest},
#                 Format, WARC-Header-Length, WARC-Header-Metadata
#
# The metadata of a request or response are its first line, its headers, and length and digest of
# its body; of an HTML page also its head and links (`htmlfacts`); of warc-fields, the fields.
# Numbers are strings; a header that occurs more than once has a list.
#
# Source: files of the Common Crawl of 2024 (which count a request's headers without the empty
# line), and org.archive.extract.WATExtractorOutput and org.archive.resource.ResourceConstants, by
# which they were made.


class WatFiles(CompanionFiles):
    """A writer of WAT files."""

    suffix = "wat"

    def __init__(self, spec: ArchiveSpec, folder: Path, charsets: CharsetDetector) -> None:
        super().__init__(spec, folder)
        self._charsets = charsets

    def record(self, record: WrittenRecord) -> None:
        described = {"Container": _container(record), "Envelope": self._envelope(record)}
        text = json.dumps(described, ensure_ascii=False, separators=(",", ":"))
        self.files.write(
            "metadata",
            self.spec.time,
            record.target or record.file,
            text.encode("utf-8", "replace"),
            "application/json",
            more=[("WARC-Refers-To", record.id)],
        )

    def _envelope(self, record: WrittenRecord) -> Json:
        version, fields = _lines(record.header)
        named = dict(fields)
        payload = self._payload(record, named.get("Content-Type", ""))
        return {
            "Payload-Metadata": payload
            | {
                "Actual-Content-Length": str(len(record.head) + len(record.body)),
                "Trailing-Slop-Length": "4",
                "Block-Digest": named["WARC-Block-Digest"],
            },
            "Format": version,
            "WARC-Header-Length": str(len(record.header)),
            "WARC-Header-Metadata": _object(fields),
        }

    def _payload(self, record: WrittenRecord, content_type: str) -> Json:
        if content_type == RESPONSE and record.head:
            return {
                "Actual-Content-Type": RESPONSE,
                "HTTP-Response-Metadata": self._response(record),
            }
        if content_type == REQUEST:
            return {"Actual-Content-Type": REQUEST, "HTTP-Request-Metadata": _request(record.body)}
        if content_type == FIELDS and record.kind == "warcinfo":
            return {
                "Actual-Content-Type": FIELDS,
                "WARC-Info-Metadata": _object(_fields(record.body)),
            }
        if content_type == FIELDS:
            found = [{"Name": name, "Value": value} for name, value in _fields(record.body)]
            listed = {"Metadata-Records": found}
            return {
                "Actual-Content-Type": "application/metadata-fields",
                "WARC-Metadata-Metadata": listed,
            }
        return {"Actual-Content-Type": content_type} if content_type else {}

    def _response(self, record: WrittenRecord) -> Json:
        first, headers = _lines(record.head)
        version, status, reason = (*first.split(" ", 2), "", "")[:3]
        result: Json = {
            "Response-Message": {"Status": status, "Version": version, "Reason": reason}
        }
        result["Headers-Length"] = str(len(record.head))
        result["Headers"] = _object(headers)
        if (media_type("response", record.header, record.head) or "").lower() in HTML:
            result["HTML-Metadata"] = self._html(record)
        own = record.kind == "response"  # that of a revisit is another record's
        digest = field(record.header, PAYLOAD_DIGEST) if own else ""
        return result | _entity(record.body, digest or sha1_digest(record.body))

    def _html(self, record: WrittenRecord) -> Json:
        return facts_of(self._charsets, record.body, field(record.head, "Content-Type"))


def facts_of(charsets: CharsetDetector, page: bytes, content_type: str | None) -> Json:
    """Returns the head and links of an HTML page."""
    page = page[:LARGEST]
    return html_facts(charsets.detect(page, content_type, "text/html", "").to_utf8(page))


def _container(record: WrittenRecord) -> Json:
    crc, size = record.trailer[:4], record.trailer[4:]
    return {
        "Filename": record.file,
        "Compressed": True,
        "Offset": str(record.offset),
        "Gzip-Metadata": {
            "Deflate-Length": str(record.length),
            "Header-Length": "10",
            "Footer-Length": "8",
            "Inflated-CRC": str(int.from_bytes(crc, "little")),
            "Inflated-Length": str(int.from_bytes(size, "little")),
        },
    }


def _request(block: bytes) -> Json:
    first, headers = _lines(block)
    method, path, version = (*first.split(" ", 2), "", "")[:3]
    end = block.find(b"\r\n\r\n") + 2
    body = block[end + 2 :] if end > 1 else b""
    return {
        "Request-Message": {"Method": method, "Path": path, "Version": version},
        "Headers-Length": str(end if end > 1 else len(block)),
        "Headers": _object(headers),
    } | _entity(body, sha1_digest(body))


def _entity(body: bytes, digest: str) -> Json:
    return {
        "Entity-Length": str(len(body)),
        "Entity-Digest": digest,
        "Entity-Trailing-Slop-Length": "0",
    }


def _lines(head: bytes) -> tuple[str, list[tuple[str, str]]]:
    """Returns the first line of a head, and its fields."""
    first, _, rest = head.partition(b"\r\n")
    return first.decode("utf-8", "replace"), list(_fields(rest.partition(b"\r\n\r\n")[0]))


def _fields(block: bytes) -> Iterator[tuple[str, str]]:
    for line in block.decode("utf-8", "replace").split("\r\n"):
        name, colon, value = line.partition(":")
        if colon:
            yield name.strip(), value.strip()


def _object(fields: Iterable[tuple[str, str]]) -> Json:
    """Returns fields as an object; a name that occurs more than once has a list."""
    found: dict[str, list[str]] = {}
    for name, value in fields:
        found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


# Writes WET files: the text of pages as Common Crawl publishes it, one conversion record a page.
#
#     <out>/<prefix>-NNNNN.warc.wet.gz     WARC 1.0; its records refer to those of
#                                          <prefix>-NNNNN.warc.gz (`export warc`)
#
# Source: files of the Common Crawl of 2024, and org.archive.extract.WETExtractorOutput, by which
# they were made.


class WetFiles(CompanionFiles):
    """A writer of WET files, which copies conversion records."""

    suffix = "wet"

    def record(self, record: WrittenRecord) -> None:
        if record.kind == "conversion":
            fields = [(name, field(record.header, name)) for name in ("WARC-Refers-To", LANGUAGE)]
            more = [(name, value) for name, value in fields if value]
            self.files.write(
                "conversion", record.time, record.target, record.body, "text/plain", more=more
            )
