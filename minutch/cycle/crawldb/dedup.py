"""dedup: marks all but the best of the pages with the same content as db_duplicate; and readdb
-duplicates, the groups that it makes of them.

Fetched pages (db_fetched, db_notmodified) are grouped by signature; with `-group host` or `domain`,
within each host or domain. `duplicates` decides which of a group are duplicates. Where a CrawlDb
has two entries of one URL, the last one counts. With `-near`, pages are duplicates, too, whose own
texts are near each other (`owntext.near`), where the crawl has segments with texts; with a number
of bits, and where there are no texts, pages whose signature is a SimHash are compared by how many
bits differ, and the others are grouped as ever.

With `db.canonical`, pages that are twins of others by their canonical links (`canonical`) are
marked, whatever the order, with the original in their metadata; the others are compared without
them. One that is no twin any more is db_fetched again, and compared, as is an original that was
marked.

A group is a page that stays and the pages that dedup marks on its account. Pages already marked
count like fetched ones, so the groups are the same before and after dedup. To show them, signatures
of all pages are held in memory, as numbers; URLs only of pages in groups. Source:
org.apache.nutch.crawl.DeduplicationJob.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from minutch.cycle.crawldb import duplicates
from minutch.cycle.crawldb.canonical import NONE
from minutch.cycle.crawldb.duplicates import may_repeat
from minutch.cycle.crawldb.matching import last_of_key, match
from minutch.cycle.crawldb.partitions import EntryFilter, EntrySources, patch
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.crawldb.twins import (
    HAS_TWIN,
    SCHEMA,
    CanonicalTwins,
    marked_twins,
    mode_of,
    sorted_out,
    with_originals,
)
from minutch.cycle.owntext.near import KEYS, NearTexts, near_texts
from minutch.cycle.parse.simhash import SIZE
from minutch.job import Counters, JobContext
from minutch.kernels.native import I64, Flags
from minutch.records import crawldatum as status
from minutch.urls.hostcolumns import domains_of, host_names
from minutch.work.engine import Engine, Partition, Shuffled, Task, engine_of
from minutch.work.tables.database import OutputSettings
from minutch.work.tables.frame import decode_keys, sort_by_key
from minutch.work.tables.parallel import ordered
from minutch.work.tables.recordfiles import Patched, scan, take
from minutch.work.tables.shuffle import Shuffle
from minutch.work.tables.spans import InputSplit

FETCHED: Final = (
    pl.col("status").is_in([status.STATUS_DB_FETCHED, status.STATUS_DB_NOTMODIFIED])
    & pl.col("signature").is_not_null()
)
IS_MARKED: Final = (pl.col("status") == status.STATUS_DB_DUPLICATE) & pl.col(
    "signature"
).is_not_null()
IS_SIMHASH: Final = pl.col("signature").bin.size() == SIZE
"""Whether a signature is compared by its bits; all others are equal or not."""

GROUPS: Final[dict[str, Callable[[pl.Series], pl.Series] | None]] = {
    "none": None,
    "host": host_names,
    "domain": lambda urls: domains_of(host_names(urls)),
}
"""Value of -group -> the group of a URL: only pages of one group are compared."""
log = logging.getLogger(__name__)
MARKED: Final = "documents marked as duplicates"
TWINS: Final = "documents marked as twins by their canonical links"
BACK: Final = "documents that came back: no twins any more, or originals"
_KEYS: Final = pl.Schema({"key": pl.Binary()})
_PAGES: Final = pl.Schema(
    {"key": pl.Binary(), "url": pl.Binary(), "score": pl.Float32(), "fetch_time": pl.Int64()}
)
"""The group as key, and what `duplicates` compares."""


def pages_with_signature(db: CrawlDb, group: str, where: pl.Expr) -> Iterator[pl.DataFrame]:
    """Yields entries for which `where` holds: url, signature, group, status, score, fetch_time."""
    for part in db.require_parts():
        yield from pages_in(part, group, where)


def pages_in(piece: InputSplit, group: str, where: pl.Expr) -> Iterator[pl.DataFrame]:
    """Yields the signed pages of a part, or of a stretch of one."""
    group_of = GROUPS[group]

    def signed(frame: pl.DataFrame) -> pl.DataFrame:
        pages = frame.filter(where).rename({"key": "url"})
        pages = pages.select("url", "signature", "status", "score", "fetch_time", group=pl.lit(b""))
        if group_of is None:
            return pages
        names = group_of(decode_keys(pages["url"])).fill_null("").cast(pl.Binary)
        return pages.with_columns(group=names)

    return ordered(signed, scan(piece))


_WORD: Final = pl.col("signature").bin.reinterpret(dtype=pl.UInt64, endianness="big")
"""The SimHash that a signature is."""


def compared(
    pages: Iterable[pl.DataFrame], *, grouped: bool, word: pl.Expr = _WORD
) -> pl.DataFrame:
    """Returns the columns that `duplicates` compares of pages; `word` makes that of a page."""
    tables = [pl.DataFrame(schema=duplicates.SCHEMA)]
    for page in pages:
        url, groups = pl.col("url"), pl.col("group").hash() if grouped else pl.lit(0, pl.UInt64)
        # What follows `http`: https twins are told by equal hashes of it.
        address = (
            pl.when(url.bin.starts_with(b"https://"))
            .then(url.bin.slice(5))
            .otherwise(url.bin.slice(4))
        )
        table = page.with_columns(length=duplicates.url_lengths(page["url"])).select(
            word.alias("word"),
            groups.alias("group"),
            "score",
            "fetch_time",
            pl.col("length").cast(pl.Int32),
            address.hash().alias("address"),
            url.bin.starts_with(b"https://").alias("secure"),
        )
        tables.append(table)
    return pl.concat(tables)


@dataclass(frozen=True, slots=True)
class DedupOptions:
    """The options of dedup."""

    group: str = "none"
    """A key of GROUPS: only pages of one group are compared."""
    order: Sequence[str] = duplicates.DEFAULT_CRITERIA
    """The criteria by which the page to keep is found, the first one first."""
    near: int | None = None
    """Bits in which SimHash signatures may differ; `duplicates.TEXTS`: own texts are compared;
    None: only equal signatures count."""


def dedup(
    crawldb: Path, options: DedupOptions = DedupOptions(), *, context: JobContext
) -> Counters:
    """Marks the duplicates in the CrawlDb at `crawldb`.

    Returns the number of marked pages and of the others. Raises StoreError where there
    is no CrawlDb, LockedError, FormatError (damage).
    """
    log.info("DeduplicationJob: starting")
    db = CrawlDb(crawldb)
    db.require_parts()
    entry_filter = EntryFilter.from_conf(context.conf)
    engine, output = engine_of(context.conf), OutputSettings.from_conf(context.conf)
    group, order = options.group, options.order
    near = None if options.near is None else _Nearness.of(db, options.near)
    is_followed = mode_of(context.conf) != NONE
    with (
        db.lock(),
        Shuffle(engine.parts, SCHEMA, budget=engine.memory // 4, spill=crawldb) as twins,
    ):
        fetched = FETCHED
        if is_followed:
            with CanonicalTwins(db, context.conf) as found_twins:
                is_twin, comes_back = sorted_out(found_twins.changes(), twins)
            # As they will be: what comes back is compared, twins are not.
            fetched = (FETCHED | (IS_MARKED & comes_back)) & ~is_twin
        with (
            EntrySources([db], engine, entry_filter, spill=crawldb, packed=True) as entries,
            _found(db, engine, group, order, _others(fetched, near)) as found,
            Shuffle(engine.parts, _KEYS, budget=engine.memory // 4, spill=crawldb) as found_near,
            context.progress("dedup") as progress,
        ):
            for keys in _find_near(db, group, order, near, fetched) if near is not None else ():
                found_near.add(keys.to_frame("key"))
            count = found.rows + found_near.rows
            log.info("Deduplication: %d documents marked as duplicates", count)
            log.info("Deduplication: Updating status of duplicate urls into crawl db.")
            marks = [found, *([] if near is None else [engine.local_source(found_near)])]
            of_twins = [engine.local_source(twins)] if is_followed else []
            sources = [*entries.sources, *marks, *of_twins]
            step = partial(_mark, len(marks))
            counters = patch(db, engine, output, sources, step, progress)
    counters.merge(entries.counters)
    log.info("Deduplication finished")
    return counters


@contextmanager
def _found(
    db: CrawlDb, engine: Engine, group: str, order: Sequence[str], where: pl.Expr
) -> Iterator[Shuffled]:
    """Yields the keys of the duplicates. All pages with a signature are compared together."""

    def pages(task: Task, piece: InputSplit) -> Iterator[pl.DataFrame]:
        for table in pages_in(piece, group, where):
            yield table.select(
                # Equal signatures of one group meet in a partition.
                key=pl.col("signature") + pl.col("group"),
                url="url",
                score="score",
                fetch_time="fetch_time",
            )

    def find(task: Task, partition: Partition) -> Iterator[pl.DataFrame]:
        return (duplicates.find(table, order).to_frame("key") for table in partition.grouped())

    pieces = engine.splits(db.require_parts())
    with (
        engine.shuffle(pages, pieces, _PAGES, None, spill=db.path, share=4) as signed,
        engine.regroup(find, signed, _KEYS, spill=db.path, share=4) as found,
    ):
        yield found


class _Nearness(NamedTuple):
    """How pages are compared: by their own texts, or by the bits of SimHashes."""

    texts: NearTexts | None
    bits: int

    @classmethod
    def of(cls, db: CrawlDb, bits: int) -> _Nearness:
        texts = near_texts(db.path.parent) if bits == duplicates.TEXTS else None
        return cls(texts, duplicates.DEFAULT_BITS if bits == duplicates.TEXTS else bits)

    @property
    def where(self) -> pl.Expr:
        """The pages that are compared so: others are equal or not."""
        return IS_SIMHASH if self.texts is None else pl.lit(True)

    def compared(self, db: CrawlDb, group: str, where: pl.Expr) -> _Compared:
        """Returns what is compared of the pages with a signature. Some 100 bytes of each are in
        memory.
        """
        rows: list[I64] = []

        def noted() -> Iterator[pl.DataFrame]:
            for page in pages_with_signature(db, group, where & self.where):
                if self.texts is not None:
                    rows.append(self.texts.rows(page["url"]))
                yield page

        word = _WORD if self.texts is None else pl.col("signature").hash()
        table = compared(noted(), grouped=group != "none", word=word)
        return _Compared(self, table, np.concatenate([*rows, np.zeros(0, np.int64)]))


class _Compared(NamedTuple):
    """What is compared of pages, and the rows of their own texts."""

    near: _Nearness
    table: pl.DataFrame
    texts: I64

    def leaders(self, order: Sequence[str]) -> tuple[I64, I64]:
        """Returns the rows of `table`, best first, and the place of each one's leader among
        them.
        """
        rows, ranks = duplicates.best_first(self.table, order)
        words, groups = (self.table[name].to_numpy()[rows] for name in ("word", "group"))
        texts, tables = self.near.texts, None
        if texts is not None:
            tables = [partial(texts.keys, band, self.texts[rows]) for band in KEYS]
        return rows, duplicates.leaders(words, groups, ranks, self.near.bits, tables)

    def chosen(self, mask: Flags) -> _Compared:
        """Returns those that `mask` says."""
        texts = self.texts if self.near.texts is None else self.texts[mask]
        return _Compared(self.near, self.table.filter(pl.Series(mask)), texts)

    def distances(self, some: I64, others: I64) -> pl.Series:
        """Returns in how many bits SimHashes differ, or how many bands of texts do."""
        words, texts = self.table["word"].to_numpy(), self.near.texts
        if texts is None:
            found = np.bitwise_count(words[some] ^ words[others])
        else:
            at, of = self.texts[some], self.texts[others]
            found = sum(texts.keys(band, at) != texts.keys(band, of) for band in KEYS)
            # Equal signatures are at no distance, whatever their texts.
            found = np.where(words[some] == words[others], 0, found)
        return pl.Series(found, dtype=pl.UInt8)


def _others(fetched: pl.Expr, near: _Nearness | None) -> pl.Expr:
    """Returns the pages that are equal or not."""
    return fetched if near is None else fetched & ~near.where


def _find_near(
    db: CrawlDb, group: str, order: Sequence[str], near: _Nearness, fetched: pl.Expr
) -> Iterator[pl.Series]:
    """Yields the keys of pages near a better one."""
    pages = near.compared(db, group, fetched)
    if near.texts is None and pages.table.is_empty():  # nothing to compare by bits
        log.warning(
            "no page has a SimHash: see db.signature.class, and fetch or parse again; equal"
            " ones are marked"
        )
    rows, leaders = pages.leaders(order)
    goes = np.zeros(len(rows), np.bool_)
    # Numbers of rows, not URLs, are held; a second reading gives these.
    goes[rows[leaders != duplicates.NO_LEADER]] = True
    at = 0
    for table in pages_with_signature(db, group, fetched & near.where):
        yield table["url"].filter(pl.Series(goes[at : at + len(table)]))
        at += len(table)


def _mark(count: int, tables: Sequence[pl.DataFrame]) -> tuple[Patched, Counters]:
    """Marks the entries (packed) of the first table with a key in one of the next `count` as
    duplicates, then what the last one says about twins, if there is one; all are sorted.
    """
    frame, found, twins = last_of_key(tables[0]), tables[1 : count + 1], tables[count + 1 :]
    keys = found[0] if len(found) == 1 else sort_by_key(pl.concat(found))
    at = match(keys["key"], frame["key"]).at
    at = at[at >= 0]
    counters = Counters()
    if not twins or twins[0].is_empty():
        counters.add(MARKED, len(at))
        counters.add("other entries", len(frame) - len(at))
        marked = take(frame, at).with_columns(status=pl.lit(status.STATUS_DB_DUPLICATE, pl.UInt8))
        return Patched(frame, marked, at, at), counters
    places = match(twins[0]["key"], frame["key"]).at
    told = twins[0].select("original").filter(pl.Series(places >= 0)).with_columns(is_told=True)
    told = told.with_columns(row=pl.Series(places[places >= 0]))
    # An entry may be found and told of at once.
    every = pl.DataFrame({"row": np.union1d(at, told["row"].to_numpy())})
    told = every.join(told, on="row", how="left", maintain_order="left")
    rows = every["row"].to_numpy()
    goes, is_found = told["original"].is_not_null(), pl.Series(np.isin(rows, at))
    is_back = told["is_told"].fill_null(value=False) & ~goes
    changed = take(frame, rows)
    was_marked = changed["status"] == status.STATUS_DB_DUPLICATE
    # A twin stays marked, even if it is found no more.
    codes = pl.when(goes | is_found).then(status.STATUS_DB_DUPLICATE)
    then = codes.when(is_back & was_marked).then(status.STATUS_DB_FETCHED).otherwise("status")
    metadata = with_originals(changed["metadata"], told["original"], is_back)
    changed = changed.with_columns(metadata, status=then.cast(pl.UInt8))
    counters.add(MARKED, int((is_found & ~goes).sum()))
    counters.add(TWINS, int(goes.sum()))
    counters.add(BACK, int((is_back & ~is_found).sum()))
    counters.add("other entries", len(frame) - len(rows))
    return Patched(frame, changed, rows, rows), counters


_SCHEMA: Final = pl.Schema(
    {
        "stays": pl.Binary(),
        "bits": pl.UInt8(),
        "url": pl.Binary(),
        "status": pl.UInt8(),
        "size": pl.UInt32(),
    }
)


class DuplicatePage(NamedTuple):
    """A duplicate; the number of bits by which its signature differs from the kept page's, or of
    bands (of 14) by which its own text does.
    """

    bits: int
    status: int
    url: str


class DuplicateGroup(NamedTuple):
    """A page that is kept and its duplicates, nearest first."""

    stays: str
    members: list[DuplicatePage]


def groups(
    db: CrawlDb, group: str, order: Sequence[str], near: int | None
) -> Iterator[DuplicateGroup]:
    """Yields the groups, the largest first, with arguments as for dedup. Raises StoreError."""
    found = group_table(db, group, order, near)
    for (stays,), members in found.group_by("stays", maintain_order=True):
        yield DuplicateGroup(
            str(stays),
            [DuplicatePage(*row) for row in members.select("bits", "status", "url").iter_rows()],
        )


def group_table(db: CrawlDb, group: str, order: Sequence[str], near: int | None) -> pl.DataFrame:
    """Returns the same as a table: `stays`, `bits`, `url`, `status`, `size` (of the duplicates)."""
    signed = FETCHED | (IS_MARKED & ~HAS_TWIN)
    if near is None:
        tables = [_equal(db, group, order, signed)]
    else:
        nearness = _Nearness.of(db, near)
        tables = [
            _equal(db, group, order, signed & ~nearness.where),
            _near(db, group, order, signed, nearness),
        ]
    found = pl.concat([pl.DataFrame(schema=_SCHEMA), *tables, *_of_twins(db)])
    found = found.with_columns(size=pl.len().over("stays"))
    found = found.sort("size", "stays", "bits", "url", descending=[True, False, False, False])
    return found.with_columns(
        pl.Series("stays", decode_keys(found["stays"])), pl.Series("url", decode_keys(found["url"]))
    )


def _of_twins(db: CrawlDb) -> Iterator[pl.DataFrame]:
    """Yields the twins by canonical links."""
    zeros = pl.lit(0, pl.UInt8).alias("bits"), pl.lit(0, pl.UInt32).alias("size")
    for table in marked_twins(db):
        yield table.with_columns(*zeros).select(_SCHEMA.names())


def _equal(db: CrawlDb, group: str, order: Sequence[str], where: pl.Expr) -> pl.DataFrame:
    """Returns the members of groups with equal signatures."""
    hashes = [
        table.select((pl.col("signature") + pl.col("group")).hash())
        for table in pages_with_signature(db, group, where)
    ]
    # URLs are read in a second pass, of groups that may have several pages alone.
    repeats = may_repeat(pl.concat(hashes).to_series()) if hashes else pl.Series(dtype=pl.Boolean)
    pages = _chosen(db, group, where, repeats.to_numpy())
    # Ranks in place of hashes: two signatures must not meet by chance.
    word = (pl.col("signature") + pl.col("group")).rank("dense").cast(pl.UInt64)
    table = compared([pages], grouped=False, word=word)
    return _members(_Compared(_Nearness(None, 0), table, np.zeros(0, np.int64)), pages, order)


def _near(
    db: CrawlDb, group: str, order: Sequence[str], where: pl.Expr, near: _Nearness
) -> pl.DataFrame:
    """Returns the members of groups of pages near each other."""
    pages = near.compared(db, group, where)
    rows, leaders = pages.leaders(order)
    goes = leaders != duplicates.NO_LEADER
    mask = np.zeros(len(rows), np.bool_)
    mask[rows[goes]] = mask[rows[leaders[goes]]] = True
    return _members(pages.chosen(mask), _chosen(db, group, where & near.where, mask), order)


def _chosen(db: CrawlDb, group: str, where: pl.Expr, mask: Flags) -> pl.DataFrame:
    """Returns the pages of pages_with_signature that `mask` says."""
    tables, at = [], 0
    for table in pages_with_signature(db, group, where):
        tables.append(table.filter(pl.Series(mask[at : at + len(table)])))
        at += len(table)
    return pl.concat(tables)


def _members(found: _Compared, pages: pl.DataFrame, order: Sequence[str]) -> pl.DataFrame:
    """Returns the duplicates as rows of _SCHEMA; `found` has what is compared of each page."""
    rows, leaders = found.leaders(order)
    goes = leaders != duplicates.NO_LEADER
    member, stays = rows[goes], rows[leaders[goes]]
    table = {
        "stays": pages["url"][stays],
        "bits": found.distances(member, stays),
        "url": pages["url"][member],
        "status": pages["status"][member],
    }
    return pl.DataFrame(table).with_columns(size=pl.lit(0, pl.UInt32)).select(_SCHEMA.names())
