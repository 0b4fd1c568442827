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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from minutch.archives.captures import find_segments, pages
from minutch.archives.commoncrawlformat import (
    CommonCrawlFormat,
    Crawler,
    cbor_document,
    page_epoch,
)
from minutch.archives.mediatypes import MediaTypeCounts
from minutch.archives.pagefiles import PageFiles, page_files
from minutch.archives.pagenames import epoch_name, page_name
from minutch.conf import Configuration
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.parse.mime import MimeUtil
from minutch.errors import StoreError
from minutch.job import Counters, JobContext
from minutch.records.protocol import Content
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

log = logging.getLogger(__name__)
WRITTEN: Final = "pages written"
SEEN: Final = "pages written before"
LEFT_OUT: Final = "pages of other types"
MAX_INLINKS: Final = 5001


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
    crawler: Crawler
    warcinfo: Mapping[str, str]
    level: int
    """Compression level of WARC files."""

    @classmethod
    def from_conf(cls, conf: Configuration, now: int) -> _Settings:
        """Reads the configuration."""
        machine = local_host()
        return cls(
            now,
            Crawler.from_conf(conf, *machine),
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
        yield Documents(options, files, settings)


class Documents(PageWriter):
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


class ArchivedDocuments(Documents):
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
    suffix = ".warc.gz" if options.gzip else ".warc"

    def open_file(number: int) -> tuple[str, Output]:
        name = f"WEB-{_utc(now):%Y%m%d%H%M%S}{now % 1000:03}-{number:05}{suffix}"
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


def _utc(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _free_name(out: Path, now: int) -> str:
    """Returns the name of an archive: the current minute (local time), or the next free one."""
    time = datetime.fromtimestamp(now / 1000)
    while (out / (name := f"{time:%Y%m%d%H%M}.tar.gz")).exists():
        time += timedelta(minutes=1)
    return name
