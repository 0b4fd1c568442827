"""Gathers what `canonical` decides of: the canonical links of a crawl's pages, the entries of the
CrawlDb that they are of and lead to, and their texts; and says what dedup is to do about it.

The pages of a registered domain are looked at together, as many domains at a time as fit into a
quarter of `minutch.memory`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final, Self

import numpy as np
import polars as pl

from minutch.conf import Configuration
from minutch.cycle.crawldb import canonical
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.owntext.claims import NO_PAGES, claims_of, domains
from minutch.cycle.owntext.near import NearPairs
from minutch.hadoop.formats.javaio import encode_text
from minutch.job import Counters
from minutch.kernels.native import U64
from minutch.plugin.chains import SCOPE_OUTLINK
from minutch.plugin.urlrules import UrlRules
from minutch.records import crawldatum as status
from minutch.records import rawmap
from minutch.records.metadata import TWIN_KEY
from minutch.records.metadata_columns import maps_of, stored, text_values, with_all
from minutch.work.tables.frame import decode_keys, encode_keys
from minutch.work.tables.parallel import memory_budget, ordered
from minutch.work.tables.recordfiles import scan
from minutch.work.tables.shuffle import Shuffle

CANONICAL_PROPERTY: Final = "db.canonical"
RAW_KEY: Final = rawmap.text_key(TWIN_KEY)
"""As it is stored."""
IS_PAGE: Final = pl.col("status").is_in(
    [status.STATUS_DB_FETCHED, status.STATUS_DB_NOTMODIFIED, status.STATUS_DB_DUPLICATE]
)
HAS_TWIN: Final = pl.col("metadata").bin.contains(RAW_KEY).fill_null(value=False)
SCHEMA: Final = pl.Schema({"key": pl.Binary(), "original": pl.Binary()})
"""What dedup is to do: a twin with its original; null: none, it comes back."""


def mode_of(conf: Configuration) -> str:
    """Returns whose canonical links are followed."""
    return conf.get_text(CANONICAL_PROPERTY)


class CanonicalTwins:
    """The pages of a crawl that are twins of others by their canonical links. A context manager,
    which leaves no copies of what is counted behind.
    """

    def __init__(self, db: CrawlDb, conf: Configuration) -> None:
        """Reads what segments beside the CrawlDb are new. Raises FormatError."""
        self._db, self._mode = db, mode_of(conf)
        self._rules = UrlRules(
            conf, normalize=True, filtering=True, scope=SCOPE_OUTLINK, keep_on_error=False
        )
        self._claims = claims_of(db.path.parent)
        self._pairs = NearPairs(db.path.parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pairs.close()
        if self._claims is not None:
            self._claims.close()

    def changes(self) -> Iterator[pl.DataFrame]:
        """Yields what dedup is to do (SCHEMA), some at a time, each key once."""
        claims = self._claims
        # Whole domains, within memory.
        parts = 1 if claims is None else claims.parts(memory_budget() // 4)
        for number in range(parts):
            pages = NO_PAGES if claims is None else claims.part(number, parts)
            named = self._named(pages)
            entries = self._entries(pages, named, (number, parts))
            yield _changes(pages, entries, self._decide(named, entries))
        self._pairs.keep()  # answers for the next run, once all were given

    def why(self, url: str) -> pl.DataFrame:
        """Returns what `canonical.decide` says of a page: no row if it names no other one."""
        pages = NO_PAGES if self._claims is None else self._claims.beside(url)
        named = self._named(pages)
        decided = self._decide(named, self._entries(pages, named))
        return decided.filter(pl.col("url") == encode_text(url))

    def _named(self, pages: pl.DataFrame) -> pl.DataFrame:
        """Returns the pages that name others, in the form in which the CrawlDb has these."""
        named = pages.filter(pl.col("says").is_not_null())
        said = named["says"].unique(maintain_order=True)  # each URL goes through the rules once
        forms = encode_keys(self._rules.apply(said, Counters()))
        found = named.join(pl.DataFrame({"says": said, "form": forms}), on="says", how="left")
        return found.select("url", "versions", says="form")

    def _entries(
        self, pages: pl.DataFrame, named: pl.DataFrame, part: tuple[int, int] | None = None
    ) -> pl.DataFrame:
        """Returns of those that name others, those that they name, and, in a part, all that are
        twins so far and their originals: `key`, `status`, `signature`, `twin` (whose), `is_page`,
        `page`, `own`.
        """
        found = self._known(pl.concat([named["url"], named["says"]]), part)
        missing = found["twin"].drop_nulls()
        # Originals of twins so far that nobody names any more.
        missing = missing.filter(~missing.is_in(found["key"].implode()))
        if len(missing):
            found = pl.concat([found, self._known(missing)])
        is_page = IS_PAGE & pl.col("signature").is_not_null()
        found = found.with_columns(page=pl.col("key").hash(), is_page=is_page)
        return found.join(pages.select("page", "own", "version"), on="page", how="left")

    def _known(self, urls: pl.Series, part: tuple[int, int] | None = None) -> pl.DataFrame:
        """Returns the entries of URLs, and all twins so far of a part."""
        hashes = urls.drop_nulls().hash().unique().sort().to_numpy()

        def chosen(frame: pl.DataFrame) -> pl.DataFrame:
            mask = among(hashes, frame["key"].hash())
            marked = frame.select(HAS_TWIN).to_series()
            if part is not None and marked.any():
                # Twins of this part's domains, whoever names them.
                mask |= marked & (domains(decode_keys(frame["key"])) % part[1] == part[0])
            some = frame.filter(mask)
            twin = text_values(some["metadata"], some["key"], TWIN_KEY).alias("twin")
            return some.select("key", "status", "signature", twin)

        parts = self._db.require_parts()
        tables = [table for path in parts for table in ordered(chosen, scan(path))]
        return pl.concat(tables).unique("key", keep="last")  # of two entries the last counts

    def _decide(self, named: pl.DataFrame, entries: pl.DataFrame) -> pl.DataFrame:
        versions = entries.select("key", "version")
        entries = entries.select("key", "is_page", "signature", "own")

        def near(some: pl.Series, others: pl.Series) -> pl.Series:
            pairs = pl.DataFrame([some.alias("url"), others.alias("other")])
            for key, version in (("url", "version"), ("other", "other_version")):
                known = versions.rename({"key": key, "version": version})
                pairs = pairs.join(known, on=key, how="left", maintain_order="left")
            return self._pairs.ask(pairs)

        return canonical.decide(named, entries, self._mode, near)


def among(numbers: U64, some: pl.Series) -> pl.Series:
    """Returns which of some hashes are among these, which ascend."""
    own = some.to_numpy()
    at = np.searchsorted(numbers, own)
    return pl.Series((np.append(numbers, np.uint64(0))[at] == own) & (at < len(numbers)))


def _changes(pages: pl.DataFrame, entries: pl.DataFrame, decided: pl.DataFrame) -> pl.DataFrame:
    """Returns what dedup is to do (SCHEMA). A twin of which no parse is stored any more stays one
    as long as its original is there.
    """
    twins = decided.filter(pl.col("original").is_not_null()).select(
        pl.col("url").alias("key"), "original"
    )
    is_marked = pl.col("status") == status.STATUS_DB_DUPLICATE
    there = entries.filter("is_page")["key"]
    # Its parse is gone with its segment, its original is there: nothing speaks against it.
    stays = (
        is_marked
        & ~pl.col("page").is_in(pages["page"].implode())
        & pl.col("twin").is_in(there.implode())
    )
    is_original = pl.col("key").is_in(twins["original"].implode())
    back = entries.filter((pl.col("twin").is_not_null() & ~stays) | (is_marked & is_original))
    back = back.join(twins, on="key", how="anti")  # one that is a twin again
    return pl.concat([twins, back.select("key", original=pl.lit(None, pl.Binary))])


def sorted_out(changes: Iterable[pl.DataFrame], keep: Shuffle) -> tuple[pl.Expr, pl.Expr]:
    """Puts what is to be done where it is kept; returns which entries are twins, and which come
    back.
    """
    twins, others = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)]
    for table in changes:
        keep.add(table)
        is_twin, keys = table["original"].is_not_null(), table["key"].hash()
        twins.append(keys.filter(is_twin).to_numpy())
        others.append(keys.filter(~is_twin).to_numpy())

    def is_of(some: list[U64]) -> pl.Expr:
        numbers = np.sort(np.concatenate(some))
        return pl.col("key").hash().map_batches(partial(among, numbers), pl.Boolean())

    return is_of(twins), is_of(others)


def with_originals(metadata: pl.Series, originals: pl.Series, is_back: pl.Series) -> pl.Series:
    """Returns the metadata of entries, with the originals of those that have one, without those of
    the entries that come back.
    """
    goes = originals.is_not_null().arg_true()
    if len(goes):
        put = pl.DataFrame(
            {
                "row": pl.Series(range(len(goes)), dtype=pl.UInt32),
                "key": [stored(TWIN_KEY.encode())] * len(goes),
                "value": [stored(url) for url in originals.gather(goes)],
            }
        )
        new = with_all(metadata.gather(goes), maps_of(put, len(goes)))
        metadata = metadata.scatter(goes, new)
    rows = (is_back & metadata.bin.contains(RAW_KEY).fill_null(value=False)).arg_true()
    if len(rows):
        rest = [rawmap.without(data, RAW_KEY) for data in metadata.gather(rows)]
        metadata = metadata.scatter(rows, pl.Series(rest, dtype=pl.Binary))
    return metadata.alias("metadata")


def marked_twins(db: CrawlDb) -> Iterator[pl.DataFrame]:
    """Yields the pages that are marked as twins: `url`, `stays` (the original), `status`."""
    for part in db.require_parts():
        for table in scan(part):
            marked = table.filter((pl.col("status") == status.STATUS_DB_DUPLICATE) & HAS_TWIN)
            stays = text_values(marked["metadata"], marked["key"], TWIN_KEY)
            yield marked.select(stays.alias("stays"), pl.col("key").alias("url"), "status")
