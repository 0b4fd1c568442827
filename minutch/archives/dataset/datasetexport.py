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

import logging
import pickle
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
from typing import Final, Self

from minutch.archives.captures import given_segments
from minutch.archives.dataset.arcmembers import archive_info_in
from minutch.archives.dataset.followedredirects import Redirects, is_fetch_record
from minutch.archives.dataset.metadatatask import (
    FAILED,
    NOT_ATTEMPTED,
    UNREADABLE,
    MetadataLine,
    MetadataTask,
    UrlRecords,
)
from minutch.cycle.parse.workerpool import PoolSettings, WorkerPool
from minutch.cycle.segment.store import CONTENT, CRAWL_FETCH, PARSE_DATA, PARSE_TEXT, Segment
from minutch.cycle.segment.storedrecords import RawRecord, text_key
from minutch.errors import FormatError, StoreError
from minutch.hadoop.formats.javaio import DataInput, decode_text, encode_vlong
from minutch.hadoop.formats.mapfile import TEXT, sort_records
from minutch.hadoop.formats.sequencewriter import BLOCK, SequenceFileWriter
from minutch.job import Counters, JobContext
from minutch.records.parsedata import ParseStatus
from minutch.work.tables.textparts import output_folder, require_absent

log = logging.getLogger(__name__)
URLS: Final = 25_000
TEXTS: Final = "texts"
_NO_FETCH: Final = "URLs omitted: not fetched, found inside another page"
_FOLLOWED: Final = "redirects merged into the records of their targets"
_GZIP: Final = "org.apache.hadoop.io.compress.GzipCodec"
_TARGET, _SOURCE, _ARCHIVE_INFO = "target", "source", "archive info"
FOLDERS: Final = (CRAWL_FETCH, CONTENT, PARSE_DATA, PARSE_TEXT)
_COLUMNS: Final = (*FOLDERS, _TARGET, _SOURCE, _ARCHIVE_INFO)


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
    """Returns the folder for each segment; segments of the same second get successive
    milliseconds.
    """
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
    """A writer of textData-nnnnn and metadata-nnnnn, with a fixed number of URLs in each. A context
    manager.
    """

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
