"""export commoncrawl: texts and metadata of segments as in Common Crawl's data set of 2012.

    <out>/segment/<millis>/textData-nnnnn     SequenceFile <Text, Text>, gzip: URL → title,
                                              description and text
    <out>/segment/<millis>/metadata-nnnnn     SequenceFile <Text, Text>, gzip: URL → JSON
                                              (`metadata`)

`millis` is the date in the segment's name. Every URL that was asked for has its line of metadata;
HTML pages and feeds have a text, in the file of the same number and in the same order.
conf/commoncrawl-metadata.schema.json describes the JSON. Pages are read in processes of their own,
as in a parse; texts are those that it found. A page that it could not parse, or refused, is not
read.
"""

from __future__ import annotations

import logging
import pickle
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from minutch.archives.dataset.arcmembers import places_in
from minutch.archives.dataset.followedredirects import Redirects, is_fetch_record
from minutch.archives.dataset.metadatatask import (
    FAILED,
    NOT_ATTEMPTED,
    UNREADABLE,
    MetadataLine,
    MetadataTask,
    UrlRecords,
)
from minutch.cycle.parse.workerpool import WorkerPool, pool_settings
from minutch.cycle.segment.store import CONTENT, CRAWL_FETCH, PARSE_DATA, PARSE_TEXT, Segment
from minutch.cycle.segment.storedrecords import RawRecord, text_key
from minutch.errors import FormatError, StoreError
from minutch.hadoop.formats.javaio import DataInput, decode_text, encode_vlong
from minutch.hadoop.formats.keyorder import TEXT
from minutch.hadoop.formats.recordsort import sort_records
from minutch.hadoop.formats.sequencefile import BLOCK, SequenceFileWriter
from minutch.job import Counters, JobContext
from minutch.records.parsestatus import ParseStatus
from minutch.work.tables.textparts import output_folder, require_absent

log = logging.getLogger(__name__)
URLS: Final = 25_000
TEXTS: Final = "texts"
_NO_FETCH: Final = "URLs left out: no fetch, found inside another page"
_FOLLOWED: Final = "redirects told with the page that they led to"
_GZIP: Final = "org.apache.hadoop.io.compress.GzipCodec"
_TARGET, _SOURCE, _PLACE = "target", "source", "place"
FOLDERS: Final = (CRAWL_FETCH, CONTENT, PARSE_DATA, PARSE_TEXT)
_COLUMNS: Final = (*FOLDERS, _TARGET, _SOURCE, _PLACE)


def export(
    segments: Sequence[Segment],
    out: Path,
    context: JobContext,
    *,
    urls: int = URLS,
    arcs: Sequence[Path] = (),
) -> Counters:
    """Write texts and metadata of `segments` below `out`, a folder each; whole or not at all.

    `arcs` are the folders of their ARC files, if there are any. Raises StoreError (a segment that
    is not parsed, a folder that is there), FormatError (damage).
    """
    targets = _targets(segments, out)
    places: list[Iterator[RawRecord]] = [iter(()) for _ in targets]
    if arcs:
        places = [
            places_in(folder, int(target.name))
            for folder, target in zip(arcs, targets, strict=True)
        ]
    counters = Counters(dict.fromkeys((TEXTS, _FOLLOWED, NOT_ATTEMPTED, UNREADABLE, FAILED), 0))
    pool: WorkerPool[MetadataLine] = WorkerPool(
        partial(MetadataTask, context.conf), **pool_settings(context.conf)
    )
    with pool, context.progress("export", unit="pages") as progress:
        for segment, target, found in zip(segments, targets, places, strict=True):
            log.info("Common Crawl data set: %s → %s", segment.path, target)
            with output_folder(target) as work, NumberedFiles(work, urls) as files:
                for url, line in _lines(_items(segment, found, counters), pool):
                    counters.add(line.counted, 1)
                    if line.metadata:
                        files.write(url, line)
                        counters.add(TEXTS, line.text is not None)
                    progress.advance()
    return counters


def _targets(segments: Sequence[Segment], out: Path) -> list[Path]:
    """The folder for each segment; those of the same second get the next free millisecond."""
    found: list[Path] = []
    for segment in segments:
        segment.check()
        for folder in FOLDERS:
            if not segment.has(folder):
                raise StoreError(
                    f"{segment.path} has no {folder}: export takes segments that are fetched and"
                    " parsed"
                )
        millis = _millis(segment.name)
        while (target := out / "segment" / str(millis)) in found:
            millis += 1
        require_absent(target)
        found.append(target)
    return found


def _millis(name: str) -> int:
    """The date that a segment is named after, in ms since the epoch (local time, as the name)."""
    try:
        return int(datetime.strptime(name[:14], "%Y%m%d%H%M%S").timestamp() * 1000)
    except ValueError:
        raise StoreError(f"{name}: expected a segment named after a date, yyyyMMddHHmmss") from None


def _lines(
    items: Iterable[tuple[bytes, bytes]], pool: WorkerPool[MetadataLine]
) -> Iterator[tuple[bytes, MetadataLine]]:
    """URL and line of each item, in order. Memory holds a few batches."""
    urls: deque[bytes] = deque()

    def packed() -> Iterator[bytes]:
        for url, item in items:
            urls.append(url)
            yield item

    for line in pool.map(packed()):
        yield urls.popleft(), line


def _items(
    segment: Segment, places: Iterable[RawRecord], counters: Counters
) -> Iterator[tuple[bytes, bytes]]:
    """The records of each URL, packed for a worker. Of several places of a URL the first counts."""
    redirects = Redirects(segment)
    streams = [
        *map(segment.raw_sorted, FOLDERS),
        redirects.by_target(),
        redirects.by_source(),
        sort_records(places),
    ]
    named = [_named(stream, name) for stream, name in zip(streams, _COLUMNS, strict=True)]
    for url, rows in groupby(merge(*named, key=itemgetter(0)), key=itemgetter(0)):
        values: dict[str, bytes] = {}
        for _, name, value in rows:
            if name not in values or (
                name != _PLACE and (name != CRAWL_FETCH or is_fetch_record(value))
            ):
                values[name] = value
        if CRAWL_FETCH not in values:
            counters.add(_NO_FETCH, PARSE_TEXT in values or CONTENT in values)
        elif _SOURCE in values:
            counters.add(_FOLLOWED, 1)
        else:
            columns = (values.get(name) for name in (CONTENT, PARSE_TEXT, _TARGET, _PLACE))
            is_parsed = _is_success(values.get(PARSE_DATA))
            yield (
                url,
                pickle.dumps(
                    tuple(UrlRecords(decode_text(url), is_parsed, values[CRAWL_FETCH], *columns))
                ),
            )


def _is_success(parse_data: bytes | None) -> bool:
    """Whether a page could be parsed: the status stands behind the version of a ParseData."""
    try:
        return parse_data is not None and ParseStatus.read(DataInput(parse_data, 1)).is_success
    except FormatError:
        return False


def _named(stream: Iterator[tuple[bytes, bytes]], name: str) -> Iterator[tuple[bytes, str, bytes]]:
    return ((url, name, value) for url, value in stream)


class NumberedFiles:
    """textData-nnnnn and metadata-nnnnn in a folder, so many URLs in each. A context manager."""

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
        """Append the line of a URL, and its text if it has one."""
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
