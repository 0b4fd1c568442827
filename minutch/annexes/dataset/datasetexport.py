"""Writes texts and metadata of segments as in Common Crawl's data set of 2012.

    SequenceFiles <Text, Text>, gzip:
    <out>/segment/<millis>/textData-nnnnn     URL → title, description and text
    <out>/segment/<millis>/metadata-nnnnn     URL → JSON (`metadatadoc`)

`millis` is the date in the segment's name. Every URL that was requested has a line of metadata;
HTML pages and feeds also have a text, in the file of the same number and in the same order.
conf/commoncrawl-metadata.schema.json describes the JSON. Pages are read in worker processes, as in
a parse; texts are those that the parse found. A page that it failed to parse is not read.
"""

from __future__ import annotations

import json
import logging
import pickle
import re
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, NamedTuple, Self

from minutch.annexes.dataset.metadatadoc import (
    FAILED,
    NOT_ATTEMPTED,
    UNREADABLE,
    MetadataLine,
    MetadataTask,
    UrlRecords,
    answer_of,
    redirect_of,
)
from minutch.archives.captures import given_segments
from minutch.cycle.parse.workerpool import PoolSettings, WorkerPool
from minutch.cycle.segment.store import CONTENT, CRAWL_FETCH, PARSE_DATA, PARSE_TEXT, Segment
from minutch.cycle.segment.storedrecords import RawRecord, decode, text_key
from minutch.errors import FormatError, StoreError
from minutch.hadoop.formats.javaio import DataInput, decode_text, encode_text, encode_vlong
from minutch.hadoop.formats.mapfile import merge_records, sort_records
from minutch.hadoop.formats.sequencewriter import BLOCK, TEXT, SequenceFileWriter
from minutch.hadoop.formats.writables import Text
from minutch.job import Counters, JobContext
from minutch.records.crawldatum import STATUS_FETCH_REDIR_PERM, STATUS_FETCH_REDIR_TEMP, CrawlDatum
from minutch.records.metadata import PROTO_STATUS_KEY
from minutch.records.parsedata import ParseStatus
from minutch.records.protocol import ProtocolStatus
from minutch.work.tables.textparts import output_folder, require_absent

# Finds the redirects that were followed within a segment. The metadata of 2012 merge them into the
# record of their target.
#
#     A → B, B fetched     one record, that of B, with redirect_from A
#     A → B, B not fetched a record of A: RedirectFailed
#
# If several redirects lead to a page, its record has the first one by URL. Redirects are sorted by
# target and by source on disk, so memory does not grow with the segment.

_REDIRECTS = (STATUS_FETCH_REDIR_TEMP, STATUS_FETCH_REDIR_PERM)
_NAME: Final = re.compile(r"([0-9]{1,18})_([0-9]{1,9})\.arc\.gz")
_PIECE: Final = 1 << 16
_LONGEST_HEAD: Final = 1 << 14
_DESCRIPTION: Final = b"filedesc:"
log = logging.getLogger(__name__)
URLS: Final = 25_000
TEXTS: Final = "texts"
_NO_FETCH: Final = "URLs omitted: not fetched, found inside another page"
_FOLLOWED: Final = "redirects merged into the records of their targets"
_GZIP: Final = "org.apache.hadoop.io.compress.GzipCodec"
_TARGET, _SOURCE, _ARCHIVE_INFO = "target", "source", "archive info"
FOLDERS: Final = (CRAWL_FETCH, CONTENT, PARSE_DATA, PARSE_TEXT)
_COLUMNS: Final = (*FOLDERS, _TARGET, _SOURCE, _ARCHIVE_INFO)


class Redirects:
    """A reader of the redirects of a segment, in the order of URLs. Raises FormatError (damage)."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.any = any(True for _ in self._redirects())

    def by_target(self) -> Iterator[RawRecord]:
        """Yields each fetched page that a redirect led to, and its redirect_from (JSON)."""
        return self._followed()

    def by_source(self) -> Iterator[RawRecord]:
        """Yields the URLs of redirects that were followed, with empty values."""
        sources = (
            (encode_text(json.loads(value)["source_url"]), b"") for _, value in self._followed()
        )
        return sort_records(sources)

    def _followed(self) -> Iterator[RawRecord]:
        if not self.any:
            return
        fetched = ((url, b"") for url, datum in self._fetches() if datum.status not in _REDIRECTS)
        both = merge_records([fetched, sort_records(self._redirects())])
        for target, rows in groupby(both, key=itemgetter(0)):
            values = [value for _, value in rows]
            if not values[0] and len(values) > 1:
                yield target, values[1]

    def _redirects(self) -> Iterator[RawRecord]:
        """Yields target and redirect_from (JSON) of each redirect."""
        for url, datum in self._fetches():
            protocol_status = (
                datum.metadata.get(Text(PROTO_STATUS_KEY)) if datum.status in _REDIRECTS else None
            )
            if not isinstance(protocol_status, ProtocolStatus) or not protocol_status.args:
                continue
            target = protocol_status.args[0]
            if target:
                redirect = redirect_of(decode_text(url), answer_of(datum, None))
                yield encode_text(target), json.dumps(redirect).encode()

    def _fetches(self) -> Iterator[tuple[bytes, CrawlDatum]]:
        """Yields the last fetch of each URL."""
        rows = (row for row in self.segment.raw_sorted(CRAWL_FETCH) if is_fetch_record(row[1]))
        for url, group in groupby(rows, key=itemgetter(0)):
            *_, (_, value) = group
            datum = decode(CrawlDatum, value, self.segment.path / CRAWL_FETCH, None, url)
            if isinstance(datum, CrawlDatum):
                yield url, datum


def is_fetch_record(value: bytes) -> bool:
    """Returns whether a serialized CrawlDatum is that of a fetch; its second byte is the status."""
    return len(value) > 1 and CrawlDatum(value[1]).has_fetch_status()


# Finds the positions of pages in the ARC files of 2012, for `archiveInfo` in their metadata.
#
#     <segment>/<millis>_<n>.arc.gz   a gzip member for each record, which begins with
#                                     URL " " address " " date " " type " " length LF
#
# Only the first line of each member is kept.


class GzipMember(NamedTuple):
    """A member of a gzip file: its first line, offset and length."""

    head: bytes
    offset: int
    size: int


def archive_info_in(folder: Path, segment: int) -> Iterator[tuple[bytes, bytes]]:
    """Yields URL and archiveInfo (JSON) of the records of the ARC files in `folder`.

    Their segment is the name of the folder if that is a number, else `segment`. Raises
    StoreError (no such folder), FormatError (damage).
    """
    if not folder.is_dir():
        raise StoreError(f"{folder} is no folder with ARC files")
    return _archive_info(folder, segment)


def _archive_info(folder: Path, segment: int) -> Iterator[tuple[bytes, bytes]]:
    segment = int(folder.name) if folder.name.isascii() and folder.name.isdecimal() else segment
    for path in sorted(folder.iterdir()):
        name = _NAME.fullmatch(path.name)
        if name is None:
            continue
        info = {
            "arcSourceSegmentId": segment,
            "arcFileDate": int(name[1]),
            "arcFileParition": int(name[2]),
        }
        with path.open("rb") as file:
            for member in members(file, path):
                url = member.head.partition(b" ")[0]
                if url and not url.startswith(_DESCRIPTION):
                    position = {"arcFileOffset": member.offset, "compressedSize": member.size}
                    yield url, json.dumps(info | position).encode()


def members(file: BinaryIO, path: Path) -> Iterator[GzipMember]:
    """Yields the members of a gzip file, in bounded memory. Raises FormatError for damage or a
    truncated member.
    """
    offset, rest = 0, file.read(_PIECE)
    while rest:
        stream, head, taken = zlib.decompressobj(31), b"", 0
        try:
            while not stream.eof:
                if not rest:
                    raise FormatError("a gzip member without its end", path=path, offset=offset)
                taken += len(rest)
                out = stream.decompress(rest, _PIECE)
                while True:
                    if len(head) < _LONGEST_HEAD:
                        head += out[: _LONGEST_HEAD - len(head)]
                    if stream.eof or not stream.unconsumed_tail:
                        break
                    out = stream.decompress(stream.unconsumed_tail, _PIECE)
                rest = stream.unused_data if stream.eof else file.read(_PIECE)
        except zlib.error as error:
            raise FormatError(f"not a gzip member ({error})", path=path, offset=offset) from error
        size = taken - len(rest)
        yield GzipMember(head.partition(b"\n")[0], offset, size)
        offset += size
        rest = rest or file.read(_PIECE)


@dataclass(frozen=True, slots=True)
class DatasetOptions:
    """Options of export commoncrawl."""

    urls: int = URLS
    """Number of URLs in a file."""
    arcs: Sequence[Path] = ()
    """Folders of the segments' ARC files, one for each segment; the metadata then have the
    positions of pages in them.
    """


def export_commoncrawl(
    paths: Sequence[Path],
    out: Path,
    options: DatasetOptions = DatasetOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Writes texts and metadata of the parsed segments at `paths` below `out`.

    The folder of each segment appears whole or not at all. Raises StoreError (a segment that is not
    parsed, a folder that exists, too many or too few folders of ARC files), FormatError (damage).
    """
    segments = given_segments(paths, FOLDERS)
    if options.arcs and len(options.arcs) != len(segments):
        raise StoreError(
            f"folders of ARC files: expected one for each of {len(segments)} segments, found"
            f" {len(options.arcs)}"
        )
    targets = _targets(segments, out)
    infos: list[Iterator[RawRecord]] = [iter(()) for _ in targets]
    if options.arcs:
        infos = [
            archive_info_in(folder, int(target.name))
            for folder, target in zip(options.arcs, targets, strict=True)
        ]
    counters = Counters(dict.fromkeys((TEXTS, _FOLLOWED, NOT_ATTEMPTED, UNREADABLE, FAILED), 0))
    pool: WorkerPool[MetadataLine] = WorkerPool(
        partial(MetadataTask, context.conf), PoolSettings.from_conf(context.conf)
    )
    with pool, context.progress("export", unit="pages") as progress:
        for segment, target, info in zip(segments, targets, infos, strict=True):
            log.info("Common Crawl data set: %s → %s", segment.path, target)
            with output_folder(target) as work, NumberedFiles(work, options.urls) as files:
                for url, line in _lines(_items(segment, info, counters), pool):
                    counters.add(line.counter, 1)
                    if line.metadata:
                        files.write(url, line)
                        counters.add(TEXTS, line.text is not None)
                    progress.advance()
    return counters


def _targets(segments: Sequence[Segment], out: Path) -> list[Path]:
    """Returns the folder for each segment; those of one second get successive milliseconds."""
    found: list[Path] = []
    for segment in segments:
        segment.check()
        for folder in FOLDERS:
            if not segment.has(folder):
                raise StoreError(
                    f"{segment.path} has no {folder}: expected a segment that is fetched and parsed"
                )
        millis = _millis(segment.name)
        while (target := out / "segment" / str(millis)) in found:
            millis += 1
        require_absent(target)
        found.append(target)
    return found


def _millis(name: str) -> int:
    """Converts the date in a segment's name, which is in local time, to ms since the epoch."""
    try:
        return int(datetime.strptime(name[:14], "%Y%m%d%H%M%S").timestamp() * 1000)
    except ValueError:
        raise StoreError(f"{name}: expected a segment named after a date, yyyyMMddHHmmss") from None


def _lines(
    items: Iterable[tuple[bytes, bytes]], pool: WorkerPool[MetadataLine]
) -> Iterator[tuple[bytes, MetadataLine]]:
    """Yields URL and line of each item, in order. Holds a few batches in memory."""
    urls: deque[bytes] = deque()

    def items_only() -> Iterator[bytes]:
        for url, item in items:
            urls.append(url)
            yield item

    for line in pool.map(items_only()):
        yield urls.popleft(), line


def _items(
    segment: Segment, archive_info: Iterable[RawRecord], counters: Counters
) -> Iterator[tuple[bytes, bytes]]:
    """Yields the records of each URL, pickled for a worker. If a URL has several positions in ARC
    files, the first counts.
    """
    redirects = Redirects(segment)
    streams = [
        *map(segment.raw_sorted, FOLDERS),
        redirects.by_target(),
        redirects.by_source(),
        sort_records(archive_info),
    ]
    named = [_named(stream, name) for stream, name in zip(streams, _COLUMNS, strict=True)]
    for url, rows in groupby(merge(*named, key=itemgetter(0)), key=itemgetter(0)):
        values: dict[str, bytes] = {}
        for _, name, value in rows:
            if name not in values or (
                name != _ARCHIVE_INFO and (name != CRAWL_FETCH or is_fetch_record(value))
            ):
                values[name] = value
        if CRAWL_FETCH not in values:
            counters.add(_NO_FETCH, PARSE_TEXT in values or CONTENT in values)
        elif _SOURCE in values:
            counters.add(_FOLLOWED, 1)
        else:
            columns = (values.get(name) for name in (CONTENT, PARSE_TEXT, _TARGET, _ARCHIVE_INFO))
            is_parsed = _is_success(values.get(PARSE_DATA))
            yield (
                url,
                pickle.dumps(
                    tuple(UrlRecords(decode_text(url), is_parsed, values[CRAWL_FETCH], *columns))
                ),
            )


def _is_success(parse_data: bytes | None) -> bool:
    """Returns whether a page was parsed: the status follows the version in a ParseData."""
    try:
        return parse_data is not None and ParseStatus.read(DataInput(parse_data, 1)).is_success
    except FormatError:
        return False


def _named(stream: Iterator[tuple[bytes, bytes]], name: str) -> Iterator[tuple[bytes, str, bytes]]:
    return ((url, name, value) for url, value in stream)


class NumberedFiles:
    """A writer of textData-nnnnn and metadata-nnnnn with so many URLs each; a context manager."""

    def __init__(self, folder: Path, urls: int) -> None:
        self._folder, self._urls = folder, urls
        self._number = self._count = 0
        self._stack = ExitStack()
        self._open()

    def _open(self) -> None:
        def writer(name: str) -> SequenceFileWriter:
            path = self._folder / f"{name}-{self._number:05}"
            return self._stack.enter_context(
                SequenceFileWriter(path, TEXT, TEXT, compression=BLOCK, codec=_GZIP)
            )

        self._texts, self._metadata = writer("textData"), writer("metadata")

    def write(self, url: bytes, line: MetadataLine) -> None:
        """Appends the line of a URL, and its text if it has one."""
        if self._count == self._urls:
            self._stack.close()
            self._number, self._count = self._number + 1, 0
            self._open()
        key = text_key(url)
        self._metadata.append_raw(key, encode_vlong(len(line.metadata)) + line.metadata)
        if line.text is not None:
            self._texts.append_raw(key, encode_vlong(len(line.text)) + line.text)
        self._count += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, tb)
