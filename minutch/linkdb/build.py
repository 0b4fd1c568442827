"""A new LinkDb of links that a job hands over: sorted by URL, merged into records, written.

The links of a record are in input order: those that were stored come first, in their order, then new ones as they are
read; each link once (same URL and anchor), at most linkdb.max.inlinks. Nutch keeps them in the order of a HashSet.
Metadata of links is dropped, as in Nutch.

Source: org.apache.nutch.crawl.LinkDbMerger.LinkDbMergeReducer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

import numpy as np
import polars as pl

from minutch.conf import Configuration
from minutch.engine import Engine, Partition, Task, engine_of
from minutch.engine.interface import Read
from minutch.job import Counters, Progress
from minutch.kernels import inlinks as inlinks_kernels
from minutch.kernels.arrow import from_series
from minutch.kernels.seeded import SEED
from minutch.linkdb.rules import LINKS_SCHEMA, UrlChain
from minutch.linkdb.store import LinkDb
from minutch.records.linksets import LinkSets, Rows
from minutch.tables.compression import output_compression
from minutch.tables.links import scan_inlinks
from minutch.tables.parallel import number_of_parts
from minutch.tables.spans import Place

MAX_INLINKS_PROPERTY: Final = "linkdb.max.inlinks"
PAGES: Final = "pages with inlinks"
WRITTEN: Final = "inlinks written"
_BATCH: Final = 200_000  # records that are written at a time

T = TypeVar("T")


class Stored(NamedTuple):
    """A part of a LinkDb, or a stretch of one, and the layout of its records."""

    place: Place
    layout: str


def stored(db: LinkDb, engine: Engine) -> list[Stored]:
    """A LinkDb in pieces. Raises StoreError if there is none."""
    return [Stored(place, db.layout) for place in engine.pieces(db.require_parts())]


def stored_links(piece: Stored, chain: UrlChain, task: Task) -> Iterator[pl.DataFrame]:
    """The links of a LinkDb that pass `chain`, in tables of LINKS_SCHEMA."""
    for table in scan_inlinks(piece.place, piece.layout):
        links = table.filter(pl.col("from_url").is_not_null()).select(LINKS_SCHEMA.names())
        yield chain.apply(links, task.counters)
        task.advance(len(table))


def build(
    db: LinkDb,
    read: Read[T],
    pieces: Sequence[T],
    layout: str,
    conf: Configuration,
    counters: Counters,
    progress: Progress,
) -> None:
    """Replace `db` (whose lock the caller holds) by a LinkDb of the links that `read` gives in tables of LINKS_SCHEMA.

    Whether the links fit into memory, and how many partitions and cores there are, does not change the records.
    """
    engine, compression = engine_of(conf), output_compression(conf, always=True)
    limit = conf.get_int(MAX_INLINKS_PROPERTY, 10_000)

    def write_part(task: Task, partitions: Sequence[Partition]) -> None:
        task.counters.merge({PAGES: 0, WRITTEN: 0})
        with LinkDb.part_writer(task.folder, task.part, layout, compression) as writer:
            for frame, order in partitions[0].ordered():
                for sets in merged(frame, order, limit).batches(_BATCH):
                    writer.write(sets)
                    task.counters.merge({PAGES: sets.records, WRITTEN: len(sets)})
                    task.advance(len(sets))

    with engine.shuffle(read, pieces, LINKS_SCHEMA, conf, progress, spill=db.path) as links:
        counters.merge(links.counters)
        progress.expect(lambda: links.rows)
        with db.replacement(keep_old=False) as directory:
            engine.reduce(write_part, [links], number_of_parts(conf), directory, counters, progress)


def merged(links: pl.DataFrame, order: Rows, limit: int) -> LinkSets:
    """One record for each key of `links` (LINKS_SCHEMA); `order` has the numbers of the rows, by key."""
    links = links.rechunk()
    keys, urls, anchors = (from_series(links[name]) for name in ("key", "from_url", "anchor"))
    rows, starts = np.empty(len(order), np.uint32), np.empty(len(order) + 1, np.int64)
    count = inlinks_kernels.merge(order, *keys[:2], *urls[:2], *anchors[:2], limit, SEED, rows, starts)
    return LinkSets(links, rows[: starts[count]], starts[: count + 1])
