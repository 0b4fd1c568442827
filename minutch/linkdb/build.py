"""A new LinkDb of links that a job hands over: sorted by URL, merged into records, written.

The links of a record are in input order: those that were stored come first, in their order, then new ones as they are
read; each link once (same URL and anchor), at most linkdb.max.inlinks. Nutch keeps them in the order of a HashSet.
Metadata of links is dropped, as in Nutch.

Source: org.apache.nutch.crawl.LinkDbMerger.LinkDbMergeReducer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import polars as pl

from minutch.conf import Configuration
from minutch.job import Counters, Progress
from minutch.kernels import inlinks as inlinks_kernels
from minutch.kernels.arrow import from_series
from minutch.linkdb.rules import LINKS_SCHEMA, UrlChain
from minutch.linkdb.store import LinkDb
from minutch.records.linksets import LinkSets, Rows
from minutch.tables.compression import output_compression
from minutch.tables.parallel import for_each, memory_budget, number_of_parts
from minutch.tables.shuffle import Shuffle

MAX_INLINKS_PROPERTY: Final = "linkdb.max.inlinks"
PAGES: Final = "pages with inlinks"
WRITTEN: Final = "inlinks written"
_BATCH: Final = 200_000  # records that are written at a time


def stored_links(db: LinkDb, chain: UrlChain, counters: Counters, progress: Progress) -> Iterator[pl.DataFrame]:
    """The links of a LinkDb that pass `chain`, in tables of LINKS_SCHEMA. Raises StoreError if there is no LinkDb."""
    for part in range(len(db.require_parts())):
        for table in db.scan_part(part):
            links = table.filter(pl.col("from_url").is_not_null()).select(LINKS_SCHEMA.names())
            yield chain.apply(links, counters)
            progress.advance(len(table))


def build(
    db: LinkDb,
    links: Iterable[pl.DataFrame],
    layout: str,
    conf: Configuration,
    counters: Counters,
    progress: Progress,
) -> None:
    """Replace `db` (whose lock the caller holds) by a LinkDb of `links`, which come in tables of LINKS_SCHEMA.

    Whether the links fit into memory, and how many partitions and cores there are, does not change the records.
    """
    compression = output_compression(conf, always=True)
    parts, limit = number_of_parts(conf), conf.get_int(MAX_INLINKS_PROPERTY, 10_000)
    with Shuffle(parts, LINKS_SCHEMA, budget=memory_budget(conf) // 2, spill=db.path) as shuffle:
        for table in links:
            shuffle.add(table)
        progress.expect(lambda: shuffle.rows)
        with db.replacement(keep_old=False) as directory:

            def write_part(part: int) -> tuple[int, int]:
                pages = written = 0
                with db.part_writer(directory, part, layout, compression) as writer:
                    for frame, order in shuffle.ordered(part):
                        for sets in merged(frame, order, limit).batches(_BATCH):
                            writer.write(sets)
                            pages += sets.records
                            written += len(sets)
                            progress.advance(len(sets))
                return pages, written

            for pages, written in for_each(write_part, range(parts)):
                counters.add(PAGES, pages)
                counters.add(WRITTEN, written)


def merged(links: pl.DataFrame, order: Rows, limit: int) -> LinkSets:
    """One record for each key of `links` (LINKS_SCHEMA); `order` has the numbers of the rows, by key."""
    links = links.rechunk()
    keys, urls, anchors = (from_series(links[name]) for name in ("key", "from_url", "anchor"))
    rows, starts = np.empty(len(order), np.uint32), np.empty(len(order) + 1, np.int64)
    count = inlinks_kernels.merge(order, *keys[:2], *urls[:2], *anchors[:2], limit, rows, starts)
    return LinkSets(links, rows[: starts[count]], starts[: count + 1])
