"""readdb -duplicates: pages with equal or nearly equal signatures, in the groups that dedup makes
of them.

A group is a page that stays and the pages that dedup marks on its account. Pages already marked
count like fetched ones, so the groups are the same before and after dedup. Signatures of all pages
are held in memory, as numbers; URLs only of pages in groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from minutch.cycle.crawldb import nearduplicates
from minutch.cycle.crawldb.duplicates import may_repeat
from minutch.cycle.crawldb.pagesignatures import (
    FETCHED,
    IS_SIMHASH,
    MARKED,
    compared,
    pages_with_signature,
)
from minutch.cycle.crawldb.store import CrawlDb
from minutch.kernels.native import Flags
from minutch.work.tables.frame import decode_keys

_SCHEMA: Final = pl.Schema(
    {
        "stays": pl.Binary(),
        "bits": pl.UInt8(),
        "url": pl.Binary(),
        "status": pl.UInt8(),
        "size": pl.UInt32(),
    }
)


class Member(NamedTuple):
    """A page that goes, and in how many bits its signature differs from that of the page that
    stays.
    """

    bits: int
    status: int
    url: str


class Group(NamedTuple):
    """A page that stays, and those that go, nearest first."""

    stays: str
    members: list[Member]


def groups(db: CrawlDb, group: str, order: Sequence[str], near: int | None) -> Iterator[Group]:
    """Yields the groups, the largest first. Arguments as for dedup; StoreError where there is no
    CrawlDb.
    """
    signed = FETCHED | MARKED
    if near is None:
        tables = [_equal(db, group, order, signed)]
    else:
        tables = [
            _equal(db, group, order, signed & ~IS_SIMHASH),
            _near(db, group, order, signed & IS_SIMHASH, near),
        ]
    found = pl.concat([pl.DataFrame(schema=_SCHEMA), *tables])
    found = found.sort("size", "stays", "bits", "url", descending=[True, False, False, False])
    found = found.with_columns(
        pl.Series("stays", decode_keys(found["stays"])), pl.Series("url", decode_keys(found["url"]))
    )
    for (stays,), members in found.group_by("stays", maintain_order=True):
        yield Group(
            str(stays),
            [Member(*row) for row in members.select("bits", "status", "url").iter_rows()],
        )


def _equal(db: CrawlDb, group: str, order: Sequence[str], where: pl.Expr) -> pl.DataFrame:
    """Returns the members of groups with equal signatures."""
    hashes = [
        table.select((pl.col("signature") + pl.col("group")).hash())
        for table in pages_with_signature(db, group, where)
    ]
    repeats = may_repeat(pl.concat(hashes).to_series()) if hashes else pl.Series(dtype=pl.Boolean)
    pages = _chosen(db, group, where, repeats.to_numpy())
    keys = pages.select(
        (pl.col("signature") + pl.col("group")).rank("dense").cast(pl.UInt64)
    ).to_series()
    table = compared([pages.with_columns(signature=pl.lit(bytes(8)))], grouped=False).with_columns(
        word=keys
    )
    return _members(table, pages, order, 0)


def _near(db: CrawlDb, group: str, order: Sequence[str], where: pl.Expr, bits: int) -> pl.DataFrame:
    """Returns the members of groups whose SimHashes differ in at most `bits` bits."""
    table = compared(pages_with_signature(db, group, where), grouped=group != "none")
    rows, leaders = _leaders(table, order, bits)
    goes = leaders != nearduplicates.NO_LEADER
    chosen = np.zeros(len(table), np.bool_)
    chosen[rows[goes]] = chosen[rows[leaders[goes]]] = True
    return _members(table.filter(pl.Series(chosen)), _chosen(db, group, where, chosen), order, bits)


def _chosen(db: CrawlDb, group: str, where: pl.Expr, mask: Flags) -> pl.DataFrame:
    """Returns the pages of pages_with_signature that `mask` says."""
    tables, at = [], 0
    for table in pages_with_signature(db, group, where):
        tables.append(table.filter(pl.Series(mask[at : at + len(table)])))
        at += len(table)
    return pl.concat(tables)


def _leaders(table: pl.DataFrame, order: Sequence[str], bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the rows of `table`, best first, and for each of these the place of its leader among
    them.
    """
    rows, ranks = nearduplicates.best_first(table, order)
    words, group = table["word"].to_numpy()[rows], table["group"].to_numpy()[rows]
    return rows, nearduplicates.leaders(words, group, ranks, bits)


def _members(
    table: pl.DataFrame, pages: pl.DataFrame, order: Sequence[str], bits: int
) -> pl.DataFrame:
    """Returns the duplicates as rows of _SCHEMA; `table` has the compared values of each page in
    `pages`.
    """
    rows, leaders = _leaders(table, order, bits)
    goes = leaders != nearduplicates.NO_LEADER
    member, stays = pl.Series(rows[goes]), pl.Series(rows[leaders[goes]])
    words = table["word"]
    differ = pl.DataFrame({"a": words[member], "b": words[stays]}).select(
        (pl.col("a") ^ pl.col("b")).bitwise_count_ones()
    )
    found = {
        "stays": pages["url"][stays],
        "bits": differ.to_series().cast(pl.UInt8),
        "url": pages["url"][member],
        "status": pages["status"][member],
    }
    return pl.DataFrame(found).with_columns(size=pl.len().over("stays")).select(_SCHEMA.names())
