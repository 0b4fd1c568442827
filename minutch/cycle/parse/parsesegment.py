"""The parse job: parses a segment's fetched pages into crawl_parse, parse_data and parse_text.

    content ──> workers: parse, filter links, score, sign, serialize
            ──> part writers, by the hash of the URL

Pages are parsed in worker processes (`workerpool`) and written in the order of their URLs, as they
arrive: all partitions at once, or one by one where an engine has several machines. There, pages
stored in other parts than the job's are shuffled first (lists are fetched into parts of their own,
so that each partition has pages in all of them): values travel as they are stored, compressed,
nothing is parsed twice, and no part is read by more than one task. Pages found inside other pages
(a feed's entries) are merged in at the end.

Source: org.apache.nutch.parse.ParseSegment.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from minutch.cycle.parse.pageparser import PageParser, ParsedPage, SegmentTask
from minutch.cycle.parse.partwriters import (
    REPEATED,
    PartSettings,
    PartWriters,
    merge_kept,
    write_page,
)
from minutch.cycle.parse.workerpool import PoolSettings, WorkerPool
from minutch.cycle.segment.store import CONTENT, CRAWL_PARSE, LAYOUTS, Segment
from minutch.cycle.segment.storedrecords import RawRecord
from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch, string_column
from minutch.hadoop.formats.compress import DEFAULT_CODEC
from minutch.hadoop.formats.javaio import decode_text
from minutch.job import Counters, JobContext
from minutch.work.engine import Partition, Task, engine_of
from minutch.work.tables.database import are_partitions, record_estimate
from minutch.work.tables.install import mark_success
from minutch.work.tables.spans import InputSplit, scan

if TYPE_CHECKING:
    import polars as pl

log = logging.getLogger(__name__)
_SHOWN_BY: Final = 50
"""Pages after which the progress is shown: at each it would be 5 us a page."""


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """Options of the parse job; None leaves a choice to the configuration."""

    filter: bool | None = None
    """Whether URL filters apply to links (parse.filter.urls)."""
    normalize: bool | None = None
    """Whether URL normalizers apply to links (parse.normalize.urls)."""


def parse(
    segment: Path, options: ParseOptions = ParseOptions(), *, context: JobContext
) -> Counters:
    """Parses a segment; one that is parsed already is left alone, with a warning and no counters.

    Counts each page under `pages`, and each document by its outcome. Raises StoreError if there is
    no content, FormatError if its files are damaged.
    """
    wanted = {"parse.filter.urls": options.filter, "parse.normalize.urls": options.normalize}
    values = {name: str(value).lower() for name, value in wanted.items() if value is not None}
    # Workers read the configuration: an option reaches them by no other way.
    conf = context.conf.with_values(values).freeze() if values else context.conf
    store = Segment(segment)
    store.clear_left_overs()
    # The folder that is renamed into its place last.
    if store.has(CRAWL_PARSE):
        log.warning("Segment: %s already parsed!! Skipped parsing this segment!!", store.path)
        return Counters()
    counters, settings = Counters(), PartSettings.from_conf(conf)
    step = _Step(
        store,
        partial(PageParser, conf, settings, store.name),
        settings,
        PoolSettings.from_conf(conf),
        context.clock.now(),
    )
    files, parts, engine = store.data_files(CONTENT), settings.count, engine_of(conf)
    with (
        store.writing([*settings.map_folders, CRAWL_PARSE]) as directory,
        context.progress(
            "parse", lambda: record_estimate(store.parts(CONTENT)), "pages"
        ) as progress,
    ):
        # Nothing has to be moved: each part is read where it lies.
        if engine.tasks == 1 or are_partitions(files, parts):
            engine.write(step.parse_stored, parts, directory, counters, progress)
        else:
            places, schema = engine.splits(store.parts(CONTENT)), _pages_schema()
            with engine.shuffle(stored_pages, places, schema, None, spill=directory) as pages:
                engine.reduce(step.parse_shuffled, [pages], parts, directory, counters, progress)
        # Before the folders get their names: readers see all documents or none.
        counters.add(REPEATED, merge_kept(directory, settings))
    mark_success(conf, store.path)
    return counters


@dataclass(frozen=True)
class _Step:
    """Parses partitions of a segment's pages, in the order of their URLs; `now` (ms) is the time of
    their records.
    """

    segment: Segment
    make_parser: Callable[[], PageParser]
    settings: PartSettings
    pool: PoolSettings
    now: int

    def parse_stored(self, task: Task, parts: range) -> None:
        """Some partitions, as the segment has them: for `Engine.write`."""
        compression, records = self.segment.stored_sorted(CONTENT, parts, self.settings.count)
        self._parse(task, parts, records, compression)

    def parse_shuffled(self, task: Task, partitions: Sequence[Partition]) -> None:
        """A partition of what was shuffled: for `Engine.reduce`."""
        self._parse(task, range(task.part, task.part + 1), pages_of(partitions[0]), DEFAULT_CODEC)

    def _parse(
        self, task: Task, parts: range, records: Iterable[RawRecord], compression: str | None
    ) -> None:
        """Writes the records of pages; documents found inside others are kept."""
        counters = task.counters
        make_task = partial(SegmentTask, self.make_parser, self.now, compression=compression)
        # Tasks share the machine, so each has its share of the processors.
        limits = replace(self.pool, workers=self.pool.workers or task.threads)
        with ExitStack() as stack:
            writers = stack.enter_context(PartWriters(task.folder, self.settings, parts=parts))
            pool: WorkerPool[ParsedPage] = stack.enter_context(WorkerPool(make_task, limits))
            keys: deque[bytes] = deque()  # of the pages that are with the workers
            for page in pool.map(_values(records, keys)):
                url = keys.popleft()
                if page.damage:
                    raise FormatError(
                        f"{decode_text(url)}: {page.damage}", path=self.segment.path / CONTENT
                    )
                write_page(url, page.outcomes, page.documents, writers, counters)
                if not counters["pages"] % _SHOWN_BY:
                    task.advance(_SHOWN_BY)
            task.advance(counters.get("pages", 0) % _SHOWN_BY)


def _values(records: Iterable[tuple[bytes, bytes]], keys: deque[bytes]) -> Iterator[bytes]:
    """Yields the values of records, one after the other; their keys are put down in `keys`."""
    for key, value in records:
        keys.append(key)
        yield value


def _pages_schema() -> pl.Schema:
    """URLs, and serialized Contents as zlib streams."""
    # Polars is loaded here and below, not above: without it parse workers are forks.
    import polars as pl

    return pl.Schema({"key": pl.Binary(), "value": pl.Binary()})


def stored_pages(task: Task, place: InputSplit) -> Iterator[pl.DataFrame]:
    """Yields the pages of a place, in tables of `_pages_schema`. Raises FormatError."""
    return scan(place, LAYOUTS[CONTENT].value_class, _decode, stored=True)


def _decode(batch: Batch) -> pl.DataFrame:
    import polars as pl

    key = string_column("key", batch.keys, batch.key_at, batch.key_len)
    return pl.DataFrame(
        [key, string_column("value", batch.values, batch.value_at, batch.value_len)]
    )


def pages_of(partition: Partition) -> Iterator[RawRecord]:
    """Yields the pages of a partition, in the order of their URLs."""
    for frame in partition.sorted():
        yield from zip(frame["key"], frame["value"], strict=True)
