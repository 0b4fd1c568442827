"""commoncrawldump: every fetched page as a document of its own, in CBOR; or all of them in WARC files.

    <out>/<md5 of the URL>_<name>.<suffix>
    <out>/com/example/www/<sha1 of the URL>/<ms since 1970>.<suffix>     -epochFilename
    <out>/yyyyMMddHHmm.tar.gz                                            -gzip: the same files in one archive
    <out>/WEB-<yyyyMMddHHmmssSSS>-NNNNN.warc[.gz]                        -warc

Different from Nutch on purpose: parts are found under all their names, not only `part-NNNNN`; -warc writes records with
the page itself, not the text of Nutch's record of it, many into a file, and obeys -mimetype; a page without a Date is
dated by its fetch, not by the clock; in an archive, too, -epochFilename names files; the archive's hour has 24 hours,
and an archive that is there is not overwritten. A page that is there already is written once, as with `dump`.

Source: org.apache.nutch.tools.CommonCrawlDataDumper, CommonCrawlFormatWARC.
"""

from __future__ import annotations

import io
import logging
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from minutch.archive.commoncrawl import Format, cbor_document, fetch_time, page_epoch
from minutch.archive.machine import this_machine
from minutch.archive.mediatypes import MediaTypes
from minutch.archive.names import epoch_name, page_name
from minutch.archive.pagefiles import PageFiles, page_files
from minutch.archive.pagerecords import write_page, write_request
from minutch.archive.sources import NO_URI, find_segments, pages, uri_of
from minutch.archive.warcfile import DEFAULT_LIMIT, Output, WarcFiles, level_of
from minutch.archive.warcinfo import crawler_info
from minutch.arguments import Arguments, Flag, fail, parse
from minutch.errors import StoreError
from minutch.job import Counters, JobContext
from minutch.linkdb.store import LinkDb
from minutch.records.content import Content
from minutch.segment.store import Segment

log = logging.getLogger(__name__)

USAGE: Final = """org.apache.nutch.tools.CommonCrawlDataDumper [-epochFilename]
       [-extension <extension>] [-gzip] [-h] [-jsonArray] [-keyPrefix
       <keyPrefix>] [-linkdb <linkdb>] [-mimetype <mimetype>...] -outputDir
       <outputDir> [-reverseKey] -segment <segment>... [-SimpleDateFormat]
       [-warc] [-warcSize <warcSize>]
 -epochFilename           files named after host, URL and time
 -extension <extension>   the suffix of the files; without it that of the URL
 -gzip                    all files in one .tar.gz; with -warc, compressed
                          records
 -h,--help                show this help message
 -jsonArray               headers as lists of names and values
 -keyPrefix <keyPrefix>   what `key` begins with
 -linkdb <linkdb>         a LinkDb, for the pages that link to the page
 -mimetype <mimetype>     only pages of these media types
 -outputDir <outputDir>   where the files go; made if it is not there
 -reverseKey              `key` of reversed host, URL's SHA-1 and time
 -segment <segment>       segments, or folders of segments
 -SimpleDateFormat        dates in milliseconds since 1970
 -warc                    WARC files
 -warcSize <warcSize>     bytes after which the next WARC file begins"""

FLAGS: Final = (
    Flag("-outputDir", value="outputDir"),
    Flag("-segment", value="segment", many=True),
    Flag("-mimetype", value="mimetype", many=True),
    Flag("-gzip"),
    Flag("-keyPrefix", value="keyPrefix"),
    Flag("-SimpleDateFormat"),
    Flag("-epochFilename"),
    Flag("-jsonArray"),
    Flag("-reverseKey"),
    Flag("-extension", value="extension"),
    Flag("-linkdb", value="linkdb"),
    Flag("-warc"),
    Flag("-warcSize", value="warcSize", convert=int),
)

WRITTEN: Final = "pages written"
SEEN: Final = "pages written before"
LEFT_OUT: Final = "pages of other types"
MAX_INLINKS: Final = 5001


def run(args: list[str], context: JobContext) -> int:
    """The command: 0, also for the usage, which is what no arguments at all ask for."""
    if not args:
        context.print(f"usage: {USAGE}")
        return 0
    given = parse(args, FLAGS, usage=USAGE, most=0)
    for name in ("-outputDir", "-segment"):
        if given[name] is None:
            fail(f"{name} is missing", USAGE)
    segments = find_segments(map(Path, given["-segment"]))
    types = MediaTypes(context.conf, given["-mimetype"])
    counters = Counters({WRITTEN: 0, SEEN: 0, LEFT_OUT: 0})
    with (
        page_files(Path(given["-outputDir"])) as files,
        _writer(given, files, context) as writer,
        context.progress("commoncrawldump", unit="pages") as progress,
    ):
        for url, content in _all_pages(segments):
            counters.add(writer.write(url, content) if types.chooses(content.content) else LEFT_OUT)
            progress.advance()
    stats = types.text(with_chosen=given["-mimetype"] is not None)
    for line in f"CommonsCrawlDataDumper File Stats: {stats}".splitlines():
        log.info("%s", line)
    context.report("CommonCrawlDataDumper", counters)
    return 0


def _all_pages(segments: Iterable[Segment]) -> Iterator[tuple[str, Content]]:
    for segment in segments:
        log.info("Processing segment: [ %s ]", segment.path)
        yield from pages(segment)


class Writer(ABC):
    """Where pages go."""

    @abstractmethod
    def write(self, url: str, content: Content) -> str:
        """Write a page; returns what is counted."""


@contextmanager
def _writer(given: Arguments, files: PageFiles, context: JobContext) -> Iterator[Writer]:
    """The writer that the command line asks for."""
    if given["-warc"]:
        with _warc_files(given, files, context) as warcs:
            yield WarcPages(warcs, context.clock.now())
    elif given["-gzip"]:
        name = _free_name(files.out, context.clock.now())
        with tarfile.open(files.path(name), "w:gz", format=tarfile.GNU_FORMAT) as archive:
            yield ArchivedDocuments(given, files, context, archive, name)
    else:
        yield Documents(given, files, context)


class Documents(Writer):
    """CBOR documents as files."""

    def __init__(self, given: Arguments, files: PageFiles, context: JobContext) -> None:
        self.files = files
        self._now = context.clock.now()
        self._linkdb = None if given["-linkdb"] is None else LinkDb(Path(given["-linkdb"]))
        if self._linkdb is not None:
            self._linkdb.require_parts()
        self._suffix = given.get("-extension", "")
        self._by_epoch = given["-epochFilename"]
        host, address = this_machine()
        self._format = Format(
            context.conf,
            host,
            address,
            key_prefix=given.get("-keyPrefix", ""),
            epoch_dates=given["-SimpleDateFormat"],
            arrays=given["-jsonArray"],
            reverse_key=given["-reverseKey"],
        )

    def write(self, url: str, content: Content) -> str:
        epoch = page_epoch(content, self._now)
        name = epoch_name(url, epoch, self._suffix) if self._by_epoch else page_name(url, self._suffix)
        text = self._format.document(url, content, epoch, self._inlinks(url))
        is_new = self.put(name, url, cbor_document(text))
        log.debug("Writing: [%s]" if is_new else "Skipping writing: [%s]: file already exists", name)
        return WRITTEN if is_new else SEEN

    def put(self, name: str, url: str, document: bytes) -> bool:
        """Write a document, unless the page has one."""
        return self.files.add(name, url, document).is_new

    def _inlinks(self, url: str) -> list[str] | None:
        inlinks = None if self._linkdb is None else self._linkdb.get(url)
        return None if inlinks is None else list(dict.fromkeys(link.from_url for link in inlinks))[:MAX_INLINKS]


class ArchivedDocuments(Documents):
    """CBOR documents in a tar archive, below a folder named after the output folder and the one above it."""

    def __init__(
        self, given: Arguments, files: PageFiles, context: JobContext, archive: tarfile.TarFile, name: str
    ) -> None:
        super().__init__(given, files, context)
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


class WarcPages(Writer):
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


def _warc_files(given: Arguments, files: PageFiles, context: JobContext) -> WarcFiles:
    now = context.clock.now()
    limit = given.get("-warcSize", 0)
    suffix = ".warc.gz" if given["-gzip"] else ".warc"

    def open_file(number: int) -> tuple[str, Output]:
        name = f"WEB-{_utc(now):%Y%m%d%H%M%S}{now % 1000:03}-{number:05}{suffix}"
        if (files.out / name).exists():
            raise StoreError(f"{files.out / name} already exists")
        return name, files.path(name).open("wb")

    def info() -> tuple[int, Mapping[str, str]]:
        return now, crawler_info(context.conf, *this_machine())

    size, level = limit if limit > 0 else DEFAULT_LIMIT, level_of(context.conf)
    return WarcFiles(open_file, compress=given["-gzip"], limit=size, info=info, level=level)


def _utc(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _free_name(out: Path, now: int) -> str:
    """The name of an archive: this minute's (local time), or that of the next one that is free."""
    time = datetime.fromtimestamp(now / 1000)
    while (out / (name := f"{time:%Y%m%d%H%M}.tar.gz")).exists():
        time += timedelta(minutes=1)
    return name
