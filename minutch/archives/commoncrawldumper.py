"""commoncrawldump: every fetched page as a document of its own, in CBOR; or all of them in WARC
files.

    <out>/<md5 of the URL>_<name>.<suffix>
    <out>/com/example/www/<sha1 of the URL>/<ms since 1970>.<suffix>     -epochFilename
    <out>/yyyyMMddHHmm.tar.gz                                            -gzip: the same files in
    one archive
    <out>/WEB-<yyyyMMddHHmmssSSS>-NNNNN.warc[.gz]                        -warc

Different from Nutch on purpose: parts are found under all their names, not only `part-NNNNN`; -warc
writes records with the page itself, not the text of Nutch's record of it, many into a file, and
obeys -mimetype; a page without a Date is dated by its fetch, not by the clock; in an archive, too,
-epochFilename names files; the archive's hour has 24 hours, and an archive that is there is not
overwritten. A page that is there already is written once, as with `dump`.

Source: org.apache.nutch.tools.CommonCrawlDataDumper, CommonCrawlFormatWARC.
"""

from __future__ import annotations

import io
import logging
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from minutch.archives.captures import pages
from minutch.archives.commoncrawlformat import CommonCrawlFormat, cbor_document, page_epoch
from minutch.archives.pagefiles import PageFiles
from minutch.archives.pagenames import epoch_name, page_name
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.segment.store import Segment
from minutch.errors import StoreError
from minutch.job import JobContext
from minutch.records.content import Content
from minutch.warc.localhost import local_host
from minutch.warc.pagetimes import fetch_time
from minutch.warc.pagewriter import write_page, write_request
from minutch.warc.targeturi import NO_URI, uri_of
from minutch.warc.warcfile import DEFAULT_LIMIT, Output, WarcFiles, level_of
from minutch.warc.warcinfo import CrawlerIdentity, crawler_info

log = logging.getLogger(__name__)
WRITTEN: Final = "pages written"
SEEN: Final = "pages written before"
MAX_INLINKS: Final = 5001


def all_pages(segments: Iterable[Segment]) -> Iterator[tuple[str, Content]]:
    for segment in segments:
        log.info("Processing segment: [ %s ]", segment.path)
        yield from pages(segment)


class PageWriter(ABC):
    """Where pages go."""

    @abstractmethod
    def write(self, url: str, content: Content) -> str:
        """Write a page; returns what is counted."""


@dataclass(frozen=True, slots=True)
class CommonCrawlDumpOptions:
    """What commoncrawldump is asked for: the form of the documents, or WARC files of so many
    bytes.
    """

    warc: bool = False
    gzip: bool = False
    warc_size: int = 0
    linkdb: Path | None = None
    extension: str = ""
    epoch_filename: bool = False
    key_prefix: str = ""
    epoch_dates: bool = False
    arrays: bool = False
    reverse_key: bool = False


@contextmanager
def writer_of(
    options: CommonCrawlDumpOptions, files: PageFiles, context: JobContext
) -> Iterator[PageWriter]:
    """Opens the writer that the options ask for."""
    if options.warc:
        with _warc_files(options, files, context) as warcs:
            yield WarcPages(warcs, context.clock.now())
    elif options.gzip:
        name = _free_name(files.out, context.clock.now())
        with tarfile.open(files.path(name), "w:gz", format=tarfile.GNU_FORMAT) as archive:
            yield ArchivedDocuments(options, files, context, archive, name)
    else:
        yield Documents(options, files, context)


class Documents(PageWriter):
    """CBOR documents as files."""

    def __init__(
        self, options: CommonCrawlDumpOptions, files: PageFiles, context: JobContext
    ) -> None:
        self.files = files
        self._now = context.clock.now()
        self._linkdb = None if options.linkdb is None else LinkDb(options.linkdb)
        if self._linkdb is not None:
            self._linkdb.require_parts()
        self._suffix = options.extension
        self._by_epoch = options.epoch_filename
        host, address = local_host()
        self._format = CommonCrawlFormat(
            context.conf,
            host,
            address,
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
        """Write a document, unless the page has one."""
        return self.files.add(name, url, document).is_new

    def _inlinks(self, url: str) -> list[str] | None:
        inlinks = None if self._linkdb is None else self._linkdb.get(url)
        return (
            None
            if inlinks is None
            else list(dict.fromkeys(link.from_url for link in inlinks))[:MAX_INLINKS]
        )


class ArchivedDocuments(Documents):
    """CBOR documents in a tar archive, below a folder named after the output folder and the one
    above it.
    """

    def __init__(
        self,
        options: CommonCrawlDumpOptions,
        files: PageFiles,
        context: JobContext,
        archive: tarfile.TarFile,
        name: str,
    ) -> None:
        super().__init__(options, files, context)
        self._archive, self._name = archive, name
        out = files.out.absolute()
        self._folder = f"{out.parent.name}{out.name}"

    def put(self, name: str, url: str, document: bytes) -> bool:
        place = self.files.claim(f"{self._name}/{name}", url)
        if place.is_new:
            member = tarfile.TarInfo(f"{self._folder}/{place.name.removeprefix(f'{self._name}/')}")
            member.size, member.mtime = len(document), self._now // 1000
            self._archive.addfile(member, io.BytesIO(document))
        return place.is_new


class WarcPages(PageWriter):
    """Response and request records in WARC files."""

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
    options: CommonCrawlDumpOptions, files: PageFiles, context: JobContext
) -> WarcFiles:
    now = context.clock.now()
    limit = options.warc_size
    suffix = ".warc.gz" if options.gzip else ".warc"

    def open_file(number: int) -> tuple[str, Output]:
        name = f"WEB-{_utc(now):%Y%m%d%H%M%S}{now % 1000:03}-{number:05}{suffix}"
        if (files.out / name).exists():
            raise StoreError(f"{files.out / name} already exists")
        return name, files.path(name).open("wb")

    def info() -> tuple[int, Mapping[str, str]]:
        return now, crawler_info(CrawlerIdentity.from_conf(context.conf), *local_host())

    size, level = limit if limit > 0 else DEFAULT_LIMIT, level_of(context.conf)
    return WarcFiles(open_file, compress=options.gzip, limit=size, info=info, level=level)


def _utc(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _free_name(out: Path, now: int) -> str:
    """The name of an archive: this minute's (local time), or that of the next one that is free."""
    time = datetime.fromtimestamp(now / 1000)
    while (out / (name := f"{time:%Y%m%d%H%M}.tar.gz")).exists():
        time += timedelta(minutes=1)
    return name
