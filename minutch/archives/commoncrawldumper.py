"""Writes a CBOR document of each fetched page, or WARC files of all pages, as Nutch's
`commoncrawldump` does.

    <out>/<md5 of the URL>_<name>.<suffix>
    <out>/com/example/www/<sha1 of the URL>/<ms since 1970>.<suffix>     -epochFilename
    <out>/yyyyMMddHHmm.tar.gz              -gzip: the same files in an archive
    <out>/WEB-<yyyyMMddHHmmssSSS>-NNNNN.warc[.gz]                        -warc

Different from Nutch on purpose: part files are found by all their names, not only `part-NNNNN`;
-warc writes records of the page itself, not of the text of Nutch's record, several to a file, and
respects -mimetype; a page without a Date is dated by its fetch, not by the clock; -epochFilename
also names files in an archive; the hour of an archive's name has 24 hours, and an existing archive
is not overwritten. An existing page is not written again, as with `dump`.

Source: org.apache.nutch.tools.CommonCrawlDataDumper, CommonCrawlFormatWARC.
"""

from __future__ import annotations

import io
import logging
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from minutch.archives.captures import find_segments, pages
from minutch.archives.pagefiles import (
    MediaTypeCounts,
    PageFiles,
    epoch_name,
    page_files,
    page_name,
    url_sha1,
)
from minutch.clock import http_time
from minutch.conf import Configuration, Settings, prop
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.parse.mime import MimeUtil
from minutch.errors import StoreError, UrlError
from minutch.hadoop.formats.javaio import encode_text
from minutch.job import Counters, JobContext
from minutch.records.metadata import CONTENT_TYPE_KEY, IP_ADDRESS_KEY
from minutch.records.protocol import Content
from minutch.urls.parts import host_of, parse, split_labels
from minutch.warc.jsontext import Json, pretty, valid
from minutch.warc.pagewriter import fetch_time, write_page, write_request
from minutch.warc.warcfile import (
    DEFAULT_LIMIT,
    NO_URI,
    CrawlerIdentity,
    Output,
    WarcFiles,
    crawler_info,
    level_of,
    local_host,
    uri_of,
)

# Makes the document of a page for commoncrawldump: JSON, in a CBOR string. Pure: no I/O.
#
#     document  :=  d9 d9 f7 (self-described CBOR)  text string: the JSON, pretty-printed
#     string    :=  definite length up to 3996 UTF-16 units, else chunks of that length:
#                   7f chunk* ff
#
#     url, timestamp (Last-Modified),
#     request {method, client, headers, body}, response {status, server, headers, body},
#     key, imported (Date), inlinks (with a LinkDb)
#
# As in Nutch, `url` has `?`, `%` and `+` encoded, and `body` is the text of the record: its
# metadata, then the page, decoded as UTF-8. `key` is the unchanged URL.
#
# Source: org.apache.nutch.tools.AbstractCommonCrawlFormat.getJsonData, CommonCrawlFormatJackson,
# CommonCrawlDataDumper.serializeCBORData; Jackson's CBORGenerator; RFC 8949, sections 3 and 3.4.6.

_SELF_DESCRIBED: Final = b"\xd9\xd9\xf7"
_TEXT: Final = 0x60
_CHUNKED_TEXT: Final = b"\x7f"
_BREAK: Final = b"\xff"
CHUNK: Final = 3996
"""Maximum length of a string that Jackson writes in one piece, in UTF-16 units."""

_PATH: Final = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.!~*'():@&=$,;/"
)
_ENCODED: Final = [chr(byte) if byte in _PATH else f"%{byte:02X}" for byte in range(256)]
_ALREADY_NAMED: Final = {"content-encoding", "content-type", "date", "server"}
log = logging.getLogger(__name__)
WRITTEN: Final = "pages written"
SEEN: Final = "pages written before"
LEFT_OUT: Final = "pages of other types"
MAX_INLINKS: Final = 5001


@dataclass(frozen=True, slots=True)
class CrawlerDescription(Settings):
    """The crawler, as documents describe it."""

    agent_name: str = prop("http.agent.name")
    email: str = prop("http.agent.email")
    version: str = prop("http.agent.version")
    accept: str = prop("http.accept")
    accept_language: str = prop("http.accept.language")
    robots_agents: str = prop("http.robots.agents")
    host: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class CommonCrawlFormat:
    """A maker of documents."""

    crawler: CrawlerDescription
    key_prefix: str = ""
    epoch_dates: bool = False
    """Write dates as ms since 1970 (-SimpleDateFormat), invalid ones as null."""
    arrays: bool = False
    """Write headers as lists of pairs (-jsonArray)."""
    reverse_key: bool = False

    def document(
        self, url: str, content: Content, epoch: int, inlinks: Sequence[str] | None = None
    ) -> str:
        """Returns a page as JSON; `epoch` is the time in a reversed key."""
        prefix = f"{self.key_prefix}-" if self.key_prefix else ""
        key = reversed_key(url, epoch) if self.reverse_key else url
        result: dict[str, Json] = {
            "url": encoded_path(url),
            "timestamp": self._date(content, "Last-Modified"),
            "request": self._request(),
            "response": self._response(url, content),
            "key": prefix + key,
            "imported": self._date(content, "Date"),
        }
        if inlinks is not None:
            result["inlinks"] = inlinks
        return pretty(result)

    def _request(self) -> Json:
        crawler = self.crawler
        client: dict[str, Json] = {
            "hostname": crawler.host,
            "address": crawler.address,
            "software": crawler.version,
            "robots": "CLASSIC",
            "contact": {"name": crawler.agent_name, "email": crawler.email},
        }
        headers = [
            ("Accept", crawler.accept),
            ("Accept-Encoding", ""),
            ("Accept-Language", crawler.accept_language),
            ("User-Agent", crawler.robots_agents),
        ]
        return {"method": "GET", "client": client, "headers": self._headers(headers), "body": None}

    def _response(self, url: str, content: Content) -> Json:
        meta = content.metadata
        first: Callable[[str], str] = lambda name: meta.field(name) or ""  # noqa: E731
        headers: list[tuple[str, str | None]]
        headers = [(name, first(name)) for name in ("Content-Encoding", CONTENT_TYPE_KEY)]
        headers += [("Date", self._date(content, "Date")), ("Server", first("Server"))]
        headers += [
            (name, first(name)) for name in meta.java_names() if name.lower() not in _ALREADY_NAMED
        ]
        return {
            "status": first("status"),
            "server": {"hostname": host_of(url), "address": first(IP_ADDRESS_KEY)},
            "headers": self._headers(headers),
            "body": str(content),
        }

    def _headers(self, headers: Sequence[tuple[str, str | None]]) -> Json:
        return headers if self.arrays else dict(headers)

    def _date(self, content: Content, name: str) -> str | None:
        text = content.metadata.field(name) or ""
        if not self.epoch_dates:
            return text
        time = http_time(text)
        return None if time is None else str(time)


def page_epoch(content: Content, now: int) -> int:
    """Returns the time of a page (ms), to the second: its Date, else its fetch time, else `now`."""
    time = http_time(content.metadata.field("Date") or "")
    if time is None:
        time = fetch_time(content)
    return (now if time is None else time) // 1000 * 1000


def reversed_key(url: str, epoch: int) -> str:
    """Returns `com_example_www_<sha1 of the URL>_<epoch>`."""
    try:
        labels = reversed(split_labels(parse(url).host))
    except UrlError:
        labels = reversed([""])
    return f"{'_'.join(labels)}_{url_sha1(url)}_{epoch}"


def encoded_path(url: str) -> str:
    """Encodes a URL as if it were all path (URIUtil.encodePath of Commons HttpClient 3)."""
    return "".join(map(_ENCODED.__getitem__, encode_text(url)))


def cbor_document(text: str) -> bytes:
    """Returns a string as a CBOR document."""
    units = valid(text).encode("utf-16-le")
    if len(units) <= 2 * CHUNK:
        return _SELF_DESCRIBED + _text_string(units)
    chunks = []
    begin = 0
    while begin < len(units):
        end = min(begin + 2 * CHUNK, len(units))
        if (
            end < len(units) and 0xD8 <= units[end - 1] <= 0xDB
        ):  # not between the halves of a character
            end -= 2
        chunks.append(_text_string(units[begin:end]))
        begin = end
    return b"".join((_SELF_DESCRIBED, _CHUNKED_TEXT, *chunks, _BREAK))


def _text_string(units: bytes) -> bytes:
    data = units.decode("utf-16-le").encode()
    size = len(data)
    if size < 24:
        return bytes((_TEXT + size,)) + data
    width = 0 if size < 1 << 8 else 1
    return bytes((_TEXT + 24 + width,)) + size.to_bytes(1 << width, "big") + data


@dataclass(frozen=True, slots=True)
class CommonCrawlDumpOptions:
    """Options of commoncrawldump."""

    media_types: frozenset[str] | None = None
    """Media types of the pages to write; None: all."""
    warc: bool = False
    """Write WARC files instead of CBOR documents."""
    gzip: bool = False
    """Write the documents to a .tar.gz archive, or compress the records of WARC files."""
    warc_size: int = 0
    """Size in bytes at which the next WARC file begins; 0: the default."""
    linkdb: Path | None = None
    """LinkDb from which documents have the inlinks of their pages."""
    extension: str = ""
    """Suffix of file names; empty: that of the URL."""
    epoch_filename: bool = False
    """Name files after host, URL and time."""
    key_prefix: str = ""
    """Prefix of the member `key`."""
    epoch_dates: bool = False
    """Write dates as ms since 1970."""
    arrays: bool = False
    """Write headers as lists of pairs."""
    reverse_key: bool = False
    """Make `key` of reversed host, digest of the URL and time."""


@dataclass(frozen=True, slots=True)
class _Settings:
    """The configuration of a dump, and its time."""

    now: int
    crawler: CrawlerDescription
    warcinfo: Mapping[str, str]
    level: int
    """Compression level of WARC files."""

    @classmethod
    def from_conf(cls, conf: Configuration, now: int) -> _Settings:
        """Reads the configuration."""
        machine = local_host()
        return cls(
            now,
            CrawlerDescription.from_conf(conf, host=machine[0], address=machine[1]),
            crawler_info(CrawlerIdentity.from_conf(conf), *machine),
            level_of(conf),
        )


def commoncrawldump(
    paths: Sequence[Path],
    out: Path,
    options: CommonCrawlDumpOptions = CommonCrawlDumpOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Writes the pages of the segments at `paths` below `out`.

    Raises StoreError if there are no segments or a file can't be written, FormatError for damage.
    """
    segments = find_segments(paths)
    types = MediaTypeCounts(MimeUtil(context.conf), options.media_types)
    settings = _Settings.from_conf(context.conf, context.clock.now())
    counters = Counters({WRITTEN: 0, SEEN: 0, LEFT_OUT: 0})
    with (
        page_files(out) as files,
        _page_writer(options, files, settings) as writer,
        context.progress("commoncrawldump", unit="pages") as progress,
    ):
        for segment in segments:
            log.info("Processing segment: [ %s ]", segment.path)
            for url, content in pages(segment):
                selected = types.add(content.content)
                counters.add(writer.write(url, content) if selected else LEFT_OUT)
                progress.advance()
    stats = types.text(with_selected=options.media_types is not None)
    for line in f"CommonsCrawlDataDumper File Stats: {stats}".splitlines():
        log.info("%s", line)
    return counters


class PageWriter(ABC):
    """A writer of pages."""

    @abstractmethod
    def write(self, url: str, content: Content) -> str:
        """Writes a page; returns the name of the counter."""


@contextmanager
def _page_writer(
    options: CommonCrawlDumpOptions, files: PageFiles, settings: _Settings
) -> Iterator[PageWriter]:
    """Opens the writer for the options."""
    if options.warc:
        with _warc_files(options, files, settings) as warcs:
            yield WarcPages(warcs, settings.now)
    elif options.gzip:
        name = _free_name(files.out, settings.now)
        with tarfile.open(files.path(name), "w:gz", format=tarfile.GNU_FORMAT) as archive:
            yield ArchivedDocuments(options, files, settings, archive, name)
    else:
        yield CborFileWriter(options, files, settings)


class CborFileWriter(PageWriter):
    """A writer of CBOR documents as files."""

    def __init__(
        self, options: CommonCrawlDumpOptions, files: PageFiles, settings: _Settings
    ) -> None:
        self.files = files
        self._now = settings.now
        self._linkdb = None if options.linkdb is None else LinkDb(options.linkdb)
        if self._linkdb is not None:
            self._linkdb.require_parts()
        self._suffix = options.extension
        self._by_epoch = options.epoch_filename
        self._format = CommonCrawlFormat(
            settings.crawler,
            key_prefix=options.key_prefix,
            epoch_dates=options.epoch_dates,
            arrays=options.arrays,
            reverse_key=options.reverse_key,
        )

    def write(self, url: str, content: Content) -> str:
        epoch = page_epoch(content, self._now)
        name = (
            epoch_name(url, epoch, self._suffix) if self._by_epoch else page_name(url, self._suffix)
        )
        text = self._format.document(url, content, epoch, self._inlinks(url))
        is_new = self.put(name, url, cbor_document(text))
        log.debug(
            "Writing: [%s]" if is_new else "Skipping writing: [%s]: file already exists", name
        )
        return WRITTEN if is_new else SEEN

    def put(self, name: str, url: str, document: bytes) -> bool:
        """Writes a document unless the page has one; returns whether it was written."""
        return self.files.add(name, url, document).is_new

    def _inlinks(self, url: str) -> list[str] | None:
        inlinks = None if self._linkdb is None else self._linkdb.get(url)
        return (
            None
            if inlinks is None
            else list(dict.fromkeys(link.from_url for link in inlinks))[:MAX_INLINKS]
        )


class ArchivedDocuments(CborFileWriter):
    """A writer of CBOR documents to a tar archive, below a folder named after the output folder and
    its parent.
    """

    def __init__(
        self,
        options: CommonCrawlDumpOptions,
        files: PageFiles,
        settings: _Settings,
        archive: tarfile.TarFile,
        name: str,
    ) -> None:
        super().__init__(options, files, settings)
        self._archive, self._name = archive, name
        out = files.out.absolute()
        self._folder = f"{out.parent.name}{out.name}"

    def put(self, name: str, url: str, document: bytes) -> bool:
        file = self.files.claim(f"{self._name}/{name}", url)
        if file.is_new:
            member = tarfile.TarInfo(f"{self._folder}/{file.name.removeprefix(f'{self._name}/')}")
            member.size, member.mtime = len(document), self._now // 1000
            self._archive.addfile(member, io.BytesIO(document))
        return file.is_new


class WarcPages(PageWriter):
    """A writer of response and request records to WARC files."""

    def __init__(self, files: WarcFiles, now: int) -> None:
        self._files, self._now = files, now

    def write(self, url: str, content: Content) -> str:
        target = uri_of(url)
        if target is None:
            return NO_URI
        fetched = fetch_time(content)
        time = self._now if fetched is None else fetched
        self._files.begin_page()
        page = write_page(self._files, time, target, content)
        write_request(self._files, time, target, content, page)
        return WRITTEN


def _warc_files(
    options: CommonCrawlDumpOptions, files: PageFiles, settings: _Settings
) -> WarcFiles:
    now, limit = settings.now, options.warc_size
    date = datetime.fromtimestamp(now / 1000, UTC)
    suffix = ".warc.gz" if options.gzip else ".warc"

    def open_file(number: int) -> tuple[str, Output]:
        name = f"WEB-{date:%Y%m%d%H%M%S}{now % 1000:03}-{number:05}{suffix}"
        if (files.out / name).exists():
            raise StoreError(f"{files.out / name} already exists")
        return name, files.path(name).open("wb")

    return WarcFiles(
        open_file,
        compress=options.gzip,
        limit=limit if limit > 0 else DEFAULT_LIMIT,
        info=lambda: (now, settings.warcinfo),
        level=settings.level,
    )


def _free_name(out: Path, now: int) -> str:
    """Returns the name of an archive: the current minute (local time), or the next free one."""
    time = datetime.fromtimestamp(now / 1000)
    while (out / (name := f"{time:%Y%m%d%H%M}.tar.gz")).exists():
        time += timedelta(minutes=1)
    return name
