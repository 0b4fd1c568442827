"""Pages with signatures, as they are compared to find duplicates: by dedup, and by readdb, which
shows the groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import polars as pl

from minutch.cycle.crawldb import duplicates, nearduplicates
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.parse.simhash import SIZE
from minutch.records import crawldatum as status
from minutch.urls.hostcolumns import domains_of, host_names
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.parallel import ordered
from minutch.work.tables.recordfiles import scan
from minutch.work.tables.spans import InputSplit

FETCHED: Final = (
    pl.col("status").is_in([status.STATUS_DB_FETCHED, status.STATUS_DB_NOTMODIFIED])
    & pl.col("signature").is_not_null()
)
MARKED: Final = (pl.col("status") == status.STATUS_DB_DUPLICATE) & pl.col("signature").is_not_null()
IS_SIMHASH: Final = pl.col("signature").bin.size() == SIZE
"""Whether a signature is compared by its bits; all others are equal or not."""

GROUPS: Final[dict[str, Callable[[pl.Series], pl.Series] | None]] = {
    "none": None,
    "host": host_names,
    "domain": lambda urls: domains_of(host_names(urls)),
}
"""Value of -group -> the group of a URL: only pages of one group are compared."""


def pages_with_signature(db: CrawlDb, group: str, where: pl.Expr) -> Iterator[pl.DataFrame]:
    """Yields the entries `where` is true for: their `url`, `signature`, `group`, `status`, `score`
    and `fetch_time`.
    """
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


def compared(pages: Iterable[pl.DataFrame], *, grouped: bool) -> pl.DataFrame:
    """Returns the columns that `nearduplicates` compares, of pages whose signatures are
    SimHashes.
    """
    tables = [pl.DataFrame(schema=nearduplicates.SCHEMA)]
    for page in pages:
        url, groups = pl.col("url"), pl.col("group").hash() if grouped else pl.lit(0, pl.UInt64)
        address = (
            pl.when(url.bin.starts_with(b"https://"))
            .then(url.bin.slice(5))
            .otherwise(url.bin.slice(4))
        )
        table = page.with_columns(length=duplicates.url_lengths(page["url"])).select(
            pl.col("signature").bin.reinterpret(dtype=pl.UInt64, endianness="big").alias("word"),
            groups.alias("group"),
            "score",
            "fetch_time",
            pl.col("length").cast(pl.Int32),
            address.hash().alias("address"),
            url.bin.starts_with(b"https://").alias("secure"),
        )
        tables.append(table)
    return pl.concat(tables)
