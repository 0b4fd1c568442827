"""The jobs that write a LinkDb of stored links and new ones: sorted by URL, merged into records.

    invertlinks    collects the links to each page, from the parsed pages of segments. Where there
                   is a LinkDb, its links and the new ones are merged; the URLs of both are
                   normalized and filtered
    mergelinkdb    merges LinkDbs into a new one, with URLs normalized and filtered on request. With
                   one LinkDb it filters that one

Links of parsed pages are read inverted, straight from the zlib streams of parse_data: a kernel
takes a stretch of the file apart and leaves out what the hosts decide; `rules` does the rest. What
it does not know (damage, metadata of links with values of unusual classes, records that unpack to
very much) is read in the plain way, as tables of OUTLINKS_SCHEMA, which names the error if there is
one.

Which links count is decided in `rules`. The links of a record are in input order: those that were
stored come first, in their order, then new ones as they are read; each link once (same URL and
anchor), at most linkdb.max.inlinks. Nutch keeps them in the order of a HashSet. Metadata of links
is dropped, as in Nutch.

Where LinkDbs have as many partitions as the job makes, and URLs are not normalized, their parts are
read where they lie, in order, and only new links are shuffled. Otherwise stored links go through
the shuffle, too, before new ones.

Source: org.apache.nutch.crawl.LinkDb, LinkDbMerger, its LinkDbMergeReducer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from mmap import mmap
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from minutch.conf import Settings, made_by, prop
from minutch.cycle.crawldb.mergedb import MergeOptions
from minutch.cycle.linkdb.rules import LINKS_SCHEMA, Hosts, LinkRules, UrlChain
from minutch.cycle.linkdb.store import LAYOUT_PROPERTY, LinkDb, layout_for
from minutch.cycle.segment.store import PARSE_DATA, segments_at
from minutch.errors import FormatError, StoreError
from minutch.hadoop.formats.batch import Batch, keys_of
from minutch.job import Counters, JobContext, Progress
from minutch.kernels import inlinks as kernels
from minutch.kernels.arrow import from_series, to_series
from minutch.kernels.clibrary import decompressor, libdeflate
from minutch.kernels.deflate import Decompressor
from minutch.kernels.hash import SEED
from minutch.kernels.native import Slices
from minutch.records.links_columns import LinkSets, Rows, decode_outlinks
from minutch.records.parsedata import ParseData
from minutch.work.engine import Engine, Partition, Source, Task, engine_of
from minutch.work.engine.interface import ReadRows
from minutch.work.engine.selection import StoredParts
from minutch.work.tables.compression import Compression, output_compression
from minutch.work.tables.database import is_partitioned, record_estimate
from minutch.work.tables.frame import aligned, key_order
from minutch.work.tables.install import mark_success
from minutch.work.tables.parallel import ordered
from minutch.work.tables.recordfiles import LINKS_SPAN, scan_inlinks
from minutch.work.tables.spans import FileSpan, InputSplit, places_of, spans_together
from minutch.work.tables.zlibvalues import MOST, MOST_AT_A_TIME

_RECORD_ROOM: Final = 1 << 20
_TYPICAL_RATIO: Final = 16
_LINK: Final = 8
"""Room for what streams hold, and bytes of streams for a link at the least; what is not used is
never touched.
"""
_NO_ROOM: Final = 2
_NO_ROOM_FOR_RECORD: Final = 1


class Found(NamedTuple):
    """The links (LINKS_SCHEMA) of some pages."""

    links: pl.DataFrame
    pages: int
    counters: Counters


class InvertedLinks(NamedTuple):
    """Links from the kernel: LINKS_SCHEMA, how hosts compare, how many were read, left out."""

    table: pl.DataFrame
    hosts: Hosts
    read: int
    left_out: int


def scan_links(split: InputSplit, rules: LinkRules) -> Iterator[Found]:
    """Yields the counting links of parse_data parts, in order, by all cores, or FormatError."""

    def read(group: Sequence[FileSpan]) -> list[Found]:
        full = [(file, span) for _, file, span in group if span and span.start < span.end]
        # None for a file whose values are not zlib streams (compressed by block, damaged).
        streams = (file.streams(span) for file, span in full)
        known = [batch for batch in streams if batch is not None]
        # All or none: links of a group stay in the order of its files.
        if known and len(known) == len(full):
            batch = Batch.joined(known)
            links = inflated_links(batch, rules.unwanted)
            if links is not None:
                counters = Counters()
                return [Found(rules.choose(*links, counters), batch.size, counters)]
        return [
            found(file.path, batch)
            for _, file, span in group
            if span is not None
            for batch in file.batches(span)
        ]

    def found(path: Path, batch: Batch) -> Found:
        counters = Counters()
        try:
            return Found(rules.apply(decode_outlinks(batch), counters), batch.size, counters)
        except FormatError as exc:
            raise exc.within(path) from exc

    groups = spans_together(places_of(split), ParseData.class_name, span_size=LINKS_SPAN)
    for several in ordered(read, groups, leave=True):
        yield from several


def inflated_links(batch: Batch, unwanted: int) -> InvertedLinks | None:
    """Returns the links of pages whose values are zlib streams, without those between `unwanted`
    hosts (see the kernel).

    None for records that the kernel does not know, or which hold too much.
    """
    size = int(batch.value_len.sum(dtype=np.int64)) + 1024
    pages, state = from_series(keys_of(batch)), np.zeros(5, np.int64)
    scratch = np.empty(_RECORD_ROOM, np.uint8)
    # Not by NumPy, which asks for huge pages: clearing those costs more.
    out = np.frombuffer(mmap(-1, size * _TYPICAL_RATIO), np.uint8)
    views = [np.empty((size // _LINK, 4), np.int32) for _ in range(3)]
    hosts = np.empty(size // _LINK, np.int8)
    function = libdeflate().zlib_decompress_ex
    with decompressor() as inflate:
        streams = Slices(batch.values, batch.value_at, batch.value_len)
        stored = streams, pages.column, unwanted, Decompressor(inflate, function)
        while code := kernels.spread(
            *stored, scratch, kernels.LinkColumns(out, views[0], views[1], views[2], hosts), state
        ):
            _, rows, _, _, used = state.tolist()
            # Beyond these bounds the plain way refuses a stream that unpacks to gigabytes.
            if code == _NO_ROOM_FOR_RECORD and len(scratch) <= MOST:
                scratch = np.empty(4 * len(scratch), np.uint8)
            elif code == _NO_ROOM and len(out) < MOST_AT_A_TIME:
                out = np.concatenate((out[:used], np.empty(len(out) * 2 - used, np.uint8)))
                views = [
                    np.concatenate((some[:rows], np.empty((3 * len(some), 4), np.int32)))
                    for some in views
                ]
                hosts = np.concatenate((hosts[:rows], np.empty(3 * len(hosts), np.int8)))
            else:
                return None
    _, rows, read, left_out, used = state.tolist()
    columns = [
        to_series(name, some[:rows], [out[:used]])
        for name, some in zip(("key", "from_url", "anchor"), views, strict=True)
    ]
    return InvertedLinks(pl.DataFrame(columns), hosts[:rows], read, left_out)


MAX_INLINKS_PROPERTY: Final = "linkdb.max.inlinks"
PAGES: Final = "pages with inlinks"
WRITTEN: Final = "inlinks written"
_BATCH: Final = 200_000  # records that are written at a time
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NewLinks:
    """Links not in any LinkDb yet: `read` gives those of a piece in tables of LINKS_SCHEMA."""

    read: ReadRows[InputSplit]
    pieces: Sequence[InputSplit]


class _Stored(NamedTuple):
    """A part of a LinkDb, or a stretch of one, and the layout of its records."""

    source: InputSplit
    layout: str


@dataclass(frozen=True, slots=True)
class LinkDbSettings(Settings):
    """The settings by which a LinkDb is written."""

    layout: str = prop(LAYOUT_PROPERTY)
    """Layout of its records; AUTO: that of the LinkDbs that are read."""
    max_inlinks: int = prop(MAX_INLINKS_PROPERTY)
    """Links of a page, at most."""
    compression: Compression = made_by(partial(output_compression, always=True))


def build(
    db: LinkDb,
    stored: Sequence[LinkDb],
    new: NewLinks | None,
    *,
    chain: UrlChain,
    settings: LinkDbSettings,
    engine: Engine,
    progress: Progress,
) -> Counters:
    """Replaces `db` (whose lock the caller holds) by a LinkDb of the links of `stored` that pass
    `chain`, and of `new`. Returns what became of the links.

    Whether the links fit into memory, and how many partitions and cores there are, does not change
    the records. Raises StoreError where one of `stored` does not exist.
    """
    layout, written = layout_for(settings.layout, stored), Counters()
    with _sources(stored, new, chain, engine, progress, db.path) as sources:
        in_place = [source for source in sources if isinstance(source, StoredParts)]

        def write_part(task: Task, partitions: Sequence[Partition]) -> None:
            task.counters.merge({PAGES: 0, WRITTEN: 0})  # a count of 0 is told, too
            with LinkDb.part_writer(task.folder, task.part, layout, settings.compression) as writer:
                for links, order in _in_order(partitions):
                    for sets in merged(links, order, settings.max_inlinks).batches(_BATCH):
                        writer.write(sets)
                        task.counters.merge({PAGES: sets.records, WRITTEN: len(sets)})
                        # Of stored records the number is known beforehand, of shuffled ones the
                        # number of links.
                        task.advance(sets.records if in_place else len(sets))

        # LinkDb.install: unlike the CrawlDb's, the one before is not kept.
        with db.replacement(keep_old=False) as directory:
            engine.reduce(write_part, sources, engine.parts, directory, written, progress)
    counters = Counters()
    for found in (*(source.counters for source in sources), written):
        counters.merge(found)
    return counters


@contextmanager
def _sources(
    stored: Sequence[LinkDb],
    new: NewLinks | None,
    chain: UrlChain,
    engine: Engine,
    progress: Progress,
    spill: Path,
) -> Iterator[list[Source]]:
    """Yields stored links, LinkDb by LinkDb where they lie, then new ones; or all in one."""
    paths = [path for db in stored for path in db.require_parts()]
    sources: list[Source] = []
    pieces: list[_Stored | InputSplit] = [] if new is None else [*new.pieces]
    # A URL that is normalized may belong to another partition.
    if chain.normalizes or not all(is_partitioned(db, engine.parts) for db in stored):
        pieces[:0] = [
            _Stored(source, db.layout) for db in stored for source in engine.splits(db.parts())
        ]
    else:
        sources += [
            StoredParts(db.parts(), partial(_links, db.layout, chain), LINKS_SCHEMA)
            for db in stored
        ]
    # No shuffle at all: mergelinkdb of LinkDbs that have the partitions already.
    if not pieces and sources:
        progress.expect(partial(record_estimate, paths))
        yield sources
        return

    def read(task: Task, piece: _Stored | InputSplit) -> Iterator[pl.DataFrame]:
        if not isinstance(piece, _Stored):
            assert new is not None
            yield from new.read(task, piece)
            return
        for table in _links(piece.layout, chain, piece.source, task.counters):
            yield table
            task.advance(len(table))

    with engine.shuffle(read, pieces, LINKS_SCHEMA, progress, spill=spill) as links:
        progress.expect(partial(record_estimate, paths) if sources else lambda: links.rows)
        yield [*sources, links]


def _links(
    layout: str, chain: UrlChain, source: InputSplit, counters: Counters
) -> Iterator[pl.DataFrame]:
    """Yields the links of a LinkDb that pass `chain`, in tables of LINKS_SCHEMA, in its order."""
    for table in scan_inlinks(source, layout):
        # A record without links has a row of nulls; LinkDbMergeReducer writes none for it.
        links = table.filter(pl.col("from_url").is_not_null()).select(LINKS_SCHEMA.names())
        yield chain.apply(links, counters)


def _in_order(partitions: Sequence[Partition]) -> Iterator[tuple[pl.DataFrame, Rows]]:
    """Yields a partition's rows of all sources, in frames, with their order by key and source."""
    if len(partitions) == 1:
        yield from partitions[0].ordered()
        return
    for frames in aligned(*(partition.sorted() for partition in partitions)):
        # In the order of sources, which the sort by key keeps: stored links first.
        links = pl.concat(frames, rechunk=True)
        yield links, key_order(links, np.arange(len(links), dtype=np.uint32))


def merged(links: pl.DataFrame, order: Rows, limit: int) -> LinkSets:
    """Returns a record for each key of `links` (LINKS_SCHEMA); `order` has the rows by key."""
    links = links.rechunk()
    keys, urls, anchors = (from_series(links[name]) for name in ("key", "from_url", "anchor"))
    sets = kernels.Sets(np.empty(len(order), np.uint32), np.empty(len(order) + 1, np.int64))
    count = kernels.merge(order, keys.column, urls.column, anchors.column, limit, SEED, sets)
    return LinkSets(links, sets.rows[: sets.starts[count]], sets.starts[: count + 1])


@dataclass(frozen=True, slots=True)
class InvertOptions:
    """The options of invertlinks."""

    normalize: bool = True
    """Whether the URL normalizers apply."""
    filtering: bool = True
    """Whether the URL filters apply."""
    force: bool = False
    """Whether another process's lock is passed over."""


def invertlinks(
    linkdb: Path,
    segments: Sequence[Path],
    options: InvertOptions = InvertOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Adds the links of `segments` to the LinkDb at `linkdb`, which is made if there is none.

    Returns what became of the links. Raises LockedError, StoreError (no segments, one that is not
    parsed), FormatError (damage, a LinkDb with both layouts of Inlinks); the LinkDb is then as
    before.
    """
    if not segments:
        raise StoreError("no segments to take links from")
    given = segments_at(segments)
    for segment in given:
        segment.check()
    conf, db = context.conf, LinkDb(linkdb)
    chain = UrlChain.from_conf(conf, normalize=options.normalize, filtering=options.filtering)
    rules = LinkRules.from_conf(conf, chain=chain)
    _log_start(linkdb, segments, rules, normalize=options.normalize, filtering=options.filtering)
    # As LinkDb.invert, which leaves an existing LinkDb as it is.
    if rules.ignore_internal and rules.ignore_external:
        log.warning("LinkDb: internal and external links are ignored, which leaves nothing to do")
        return Counters()
    paths = [part for segment in given for part in segment.parts(PARSE_DATA)]

    def read(task: Task, piece: InputSplit) -> Iterator[pl.DataFrame]:
        for found in scan_links(piece, rules):
            task.counters.merge(found.counters)
            yield found.links
            task.advance(found.pages)

    settings, engine = LinkDbSettings.from_conf(conf), engine_of(conf)
    with (
        db.lock(options.force),
        context.progress("invertlinks", lambda: record_estimate(paths)) as progress,
    ):
        # Under the lock: another job may have made it until then.
        stored = [db] if db.exists() else []
        if stored:
            log.info("LinkDb: merging with existing linkdb: %s", linkdb)
        counters = build(
            db,
            stored,
            NewLinks(read, engine.splits(paths)),
            chain=chain,
            settings=settings,
            engine=engine,
            progress=progress,
        )
        mark_success(conf, db.current)
    log.info("LinkDb: finished")
    return counters


def _log_start(
    linkdb: Path, segments: Sequence[Path], rules: LinkRules, *, normalize: bool, filtering: bool
) -> None:
    log.info("LinkDb: starting")
    log.info("LinkDb: linkdb: %s", linkdb)
    log.info("LinkDb: URL normalize: %s", str(normalize).lower())
    log.info("LinkDb: URL filter: %s", str(filtering).lower())
    if rules.ignore_internal:
        log.info("LinkDb: internal links will be ignored.")
    if rules.ignore_external:
        log.info("LinkDb: external links will be ignored.")
    for segment in segments:
        log.info("LinkDb: adding segment: %s", segment)


_DEFAULTS: Final = MergeOptions()


def mergelinkdb(
    output: Path, sources: Sequence[Path], options: MergeOptions = _DEFAULTS, *, context: JobContext
) -> Counters:
    """Merges the LinkDbs `sources` into a new one at `output`.

    Raises StoreError (a source that does not exist, an output that does), FormatError (damage,
    mixed layouts).
    """
    conf, db, dbs = context.conf, LinkDb(output), [LinkDb(source) for source in sources]
    log.info("LinkDb merge: starting")
    chain = UrlChain.from_conf(conf, normalize=options.normalize, filtering=options.filtering)
    settings, engine = LinkDbSettings.from_conf(conf), engine_of(conf)
    with db.lock(), context.progress("mergelinkdb") as progress:
        if db.exists():
            raise StoreError(f"output LinkDb {output} already exists")
        counters = build(
            db, dbs, None, chain=chain, settings=settings, engine=engine, progress=progress
        )
    log.info("LinkDb merge: finished")
    return counters
