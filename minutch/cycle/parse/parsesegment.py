"""`minutch parse`: the fetched pages of a segment → crawl_parse, parse_data, parse_text.

    content ──> workers: parse, filter links, score, sign, serialize ──> part writers, by hash of
    the URL

Pages are parsed in processes of their own (minutch.cycle.parse.worker) and written in the order of
their URLs, as they come: all partitions at once, or each by itself where an engine has more
machines. There, pages that lie in other parts than those of the job (fetched by lists, say) are
shuffled first. Pages found inside other pages (a feed's entries) are put in their places at the
end. A segment that has been parsed is left as it is, with a warning. Source:
org.apache.nutch.parse.ParseSegment.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

from minutch.clock import Clock
from minutch.conf import Configuration
from minutch.cycle.parse.packing import PartWriters, put_in_places
from minutch.cycle.parse.page import PackedPage, SegmentTask
from minutch.cycle.parse.worker import WorkerPool, pool_settings
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_PARSE,
    PARSE_DATA,
    PARSE_TEXT,
    RawRecord,
    Segment,
)
from minutch.errors import FormatError
from minutch.hadoop.formats.compress import DEFAULT_CODEC
from minutch.hadoop.formats.javaio import decode_text
from minutch.job import Counters, Progress
from minutch.work.engine import Partition, Task, engine_of
from minutch.work.tables.database import are_partitions
from minutch.work.tables.parallel import number_of_parts
from minutch.work.tables.success import mark_success

log = logging.getLogger(__name__)
_SHOWN_BY: Final = 50
"""Pages after which the progress is shown: at each it would be 5 us a page."""
REPEATED: Final = "left_out_same_url"
"""Counts documents of a URL that had one already (a page fetched twice, through redirects)."""


def parse_segment(
    segment: Segment, conf: Configuration, clock: Clock, progress: Progress | None = None
) -> Counters:
    """Parse a segment's content. Every page counts once under `pages`; outcomes are counted by
    document.

    Raises StoreError if there is no content or the segment has been parsed, FormatError if its
    files are damaged.
    """
    counters, now = Counters(), clock.now()
    stores_text = conf.get_boolean("parser.store.text", True)
    folders = [PARSE_DATA, PARSE_TEXT, CRAWL_PARSE] if stores_text else [PARSE_DATA, CRAWL_PARSE]
    step = _Step(segment, conf, now)
    files, parts, engine = segment.data_files(CONTENT), number_of_parts(conf), engine_of(conf)
    with segment.writing(folders) as directory:
        if engine.tasks == 1 or are_partitions(files, parts):
            engine.write(step.parse_stored, parts, directory, counters, progress)
        else:
            from minutch.cycle.parse.spread import PAGES_SCHEMA, stored_pages

            places = engine.splits(segment.parts(CONTENT))
            with engine.shuffle(
                stored_pages, places, PAGES_SCHEMA, conf, None, spill=directory
            ) as pages:
                engine.reduce(step.parse_shuffled, [pages], parts, directory, counters, progress)
        counters.add(REPEATED, put_in_places(directory, conf, stores_text=stores_text))
    mark_success(conf, segment.path)
    return counters


@dataclass(frozen=True)
class _Step:
    """Parses partitions of a segment's pages, in the order of their URLs; `now` (ms) is the time of
    their records.
    """

    segment: Segment
    conf: Configuration
    now: int

    def parse_stored(self, task: Task, parts: range) -> None:
        """Some partitions, as the segment has them: for `Engine.write`."""
        compression, records = self.segment.stored_sorted(
            CONTENT, parts, number_of_parts(self.conf)
        )
        self._parse(task, parts, records, compression)

    def parse_shuffled(self, task: Task, partitions: Sequence[Partition]) -> None:
        """A partition of what was shuffled: for `Engine.reduce`."""
        from minutch.cycle.parse.spread import pages_of

        self._parse(task, range(task.part, task.part + 1), pages_of(partitions[0]), DEFAULT_CODEC)

    def _parse(
        self, task: Task, parts: range, records: Iterable[RawRecord], compression: str | None
    ) -> None:
        """Write what becomes of pages; documents found inside others are kept."""
        conf, counters = self.conf, task.counters
        make_task = partial(SegmentTask, conf, self.segment.name, self.now, compression=compression)
        stores_text = conf.get_boolean("parser.store.text", True)
        with ExitStack() as stack:
            writers = stack.enter_context(
                PartWriters(task.folder, conf, stores_text=stores_text, parts=parts)
            )
            pool: WorkerPool[PackedPage]
            pool = stack.enter_context(WorkerPool(make_task, **pool_settings(conf, task.threads)))
            keys: deque[bytes] = deque()  # of the pages that are with the workers
            for packed in pool.map(_values(records, keys)):
                url = keys.popleft()
                if packed.damage:
                    raise FormatError(
                        f"{decode_text(url)}: {packed.damage}", path=self.segment.path / CONTENT
                    )
                counters.add("pages")
                for outcome in packed.outcomes:
                    counters.add(outcome)
                _write(url, packed, writers, counters)
                if not counters["pages"] % _SHOWN_BY:
                    task.advance(_SHOWN_BY)
            task.advance(counters.get("pages", 0) % _SHOWN_BY)


def _values(records: Iterable[tuple[bytes, bytes]], keys: deque[bytes]) -> Iterator[bytes]:
    """The values of records, one after the other; their keys are put down in `keys`."""
    for key, value in records:
        keys.append(key)
        yield value


def _write(url: bytes, page: PackedPage, writers: PartWriters, counters: Counters) -> None:
    """Write the documents of a page: its own, and those found inside it."""
    for document in page.documents:
        if document.is_extra:
            writers.keep(document, url)
        elif not writers.write(document):
            counters.add(REPEATED)
