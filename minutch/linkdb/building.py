"""What the jobs that write a LinkDb share: reading the parts of LinkDbs, merging, the layout, writing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import polars as pl

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.job import Counters, Progress
from minutch.linkdb.linkrules import UrlChain
from minutch.linkdb.mapreduce import merge, passed
from minutch.linkdb.store import LAYOUT_PROPERTY, LinkDb
from minutch.linkdb.values import LINKS_SCHEMA
from minutch.records.links import LAYOUT_METADATA, LAYOUTS
from minutch.records.linksets import LinkSets
from minutch.tables.frame import INLINKS_SCHEMA, concat
from minutch.tables.parallel import for_each, memory_budget
from minutch.tables.shuffle import Shuffle

AUTO: Final = "auto"
WRITTEN: Final = "inlinks written"
_BATCH: Final = 200_000  # records after which progress is told
PAGES: Final = "pages with inlinks"


def number_of_parts(conf: Configuration) -> int:
    """How many partitions a job makes: mapreduce.job.reduces."""
    return max(1, conf.get_int("mapreduce.job.reduces", 1))


def layout_for(conf: Configuration, sources: Sequence[LinkDb]) -> str:
    """The layout to write: `linkdb.inlink.layout`, else (or if that is `auto`) the one that all `sources` have.

    Where there is none, or they differ, it is the newer one. Raises ConfigError for an unknown layout, FormatError for
    a source with records in both.
    """
    wanted = conf.get_trimmed(LAYOUT_PROPERTY) or AUTO
    if wanted in LAYOUTS:
        return wanted
    if wanted != AUTO:
        raise ConfigError(f"{LAYOUT_PROPERTY}: expected {AUTO}, {' or '.join(LAYOUTS)}, found {wanted!r}")
    layouts = {db.layout for db in sources if db.parts()}
    return layouts.pop() if len(layouts) == 1 else LAYOUT_METADATA


def stored_parts(db: LinkDb) -> list[pl.DataFrame]:
    """All partitions of a LinkDb, a table of INLINKS_SCHEMA each."""

    def read(part: int) -> pl.DataFrame:
        tables = []
        for table in db.scan_part(part):
            tables.append(table)
        return concat(tables, INLINKS_SCHEMA)

    return for_each(read, range(len(db.require_parts())))


@contextmanager
def stored(db: LinkDb, parts: int, chain: UrlChain, conf: Configuration, counters: Counters) -> Iterator[Shuffle]:
    """The links of a LinkDb (of none, if it does not exist) past `chain`, by partition and key."""
    with Shuffle(parts, LINKS_SCHEMA, budget=memory_budget(conf) // 2, spill=db.path) as shuffle:
        for part in range(len(db.parts())):
            for table in db.scan_part(part):
                present = table.filter(pl.col("from_url").is_not_null()).select(LINKS_SCHEMA.names())
                shuffle.add(chain.apply(present, counters))
        yield shuffle


def merge_parts(
    tables: Sequence[pl.DataFrame], chain: UrlChain, parts: int, limit: int, counters: Counters
) -> list[pl.DataFrame]:
    """The records of `tables` past `chain`, merged: a table per partition."""
    change = None if chain.is_neutral else lambda table: chain.apply(table, counters)
    return merge([passed(table, change) for table in tables], parts, limit) if tables else []


def write(db: LinkDb, tables: Sequence[pl.DataFrame], parts: int, layout: str, counters: Counters) -> None:
    """Replace `db` (whose lock the caller holds) by a LinkDb of these partitions."""
    write_streams(db, lambda part: map(LinkSets.of, tables[part : part + 1]), parts, layout, counters)


def write_streams(
    db: LinkDb,
    stream: Callable[[int], Iterable[LinkSets]],
    parts: int,
    layout: str,
    counters: Counters,
    progress: Progress | None = None,
) -> None:
    """Replace `db` (whose lock the caller holds) by a LinkDb of partitions that come in sets of links.

    `progress` is told of the links that are written.
    """
    with db.replacement(keep_old=False) as directory:

        def write_part(part: int) -> tuple[int, int]:
            pages = links = 0
            with db.part_writer(directory, part, layout) as writer:
                for sets in (batch for many in stream(part) for batch in many.batches(_BATCH)):
                    writer.write(sets)
                    pages += sets.records
                    links += len(sets)
                    if progress is not None:
                        progress.advance(len(sets))
            return pages, links

        for pages, links in for_each(write_part, range(parts)):
            counters.add(PAGES, pages)
            counters.add(WRITTEN, links)
