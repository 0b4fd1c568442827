"""The table `site`: a row per URL, with the newest word of each store on it.

crawldb     url, host, status
pages       segment, outcome (see `pages.came_of`), code, reason, response_ms, media_type (of the
            answer), size, redirect_to, digest: of the newest fetch
parses      title to outlinks: of the newest parse that succeeded; where it has no content_type,
            that of the answer; where the fetch has no reason, that of the newest parse
links       inlinks: links from other pages; depth: links from where the crawl began (see `reach`)

redirect_to and canonical are URLs of the table where they mean one, however they spell it; leads_to
is where redirects end, null if that is nowhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import ClassVar, Final

import polars as pl

from minutch.cycle.segment.store import CRAWL_FETCH, PARSE_DATA, Segment
from minutch.errors import StoreError
from minutch.inspect.query.columns import STATUS
from minutch.inspect.query.ids import ID, of_keys
from minutch.inspect.query.links import LinksTable
from minutch.inspect.query.pages import (
    OUTCOMES,
    PagesTable,
    came_of,
    is_fetch,
    outcome,
    was_answered,
    was_asked,
)
from minutch.inspect.query.parses import ParsesTable
from minutch.inspect.query.reach import IS_ROOT, Reach, with_ends
from minutch.inspect.query.table import Request, SqlColumn, Table
from minutch.urls.urlkeys import url_keys

_OF_ENTRY: Final = ("url", "host", "status")
_OF_PAGE: Final = {
    name: name for name in ("segment", "code", "reason", "response_ms", "size", "redirect_to")
}
_OF_ANSWER: Final = {"digest": "digest", "media_type": "content_type"}
"""Column -> that of `pages`."""
_OF_PARSE: Final = (
    *("title", "description", "h1", "h1s", "canonical", "robots", "content_type", "charset"),
    *("declared_type",),
    *("lang", "words", "own_words", "garbled", "outlinks"),
)
_OF_LINKS: Final = ("inlinks", "depth")
_CANONICAL: Final = "canonical"


def _column(name: str, dtype: pl.DataType) -> SqlColumn:
    return SqlColumn(dtype, lambda rows: rows[name])


class SiteTable(Table):
    """A table of the URLs of the CrawlDb, or where there is none, of those that were fetched."""

    name = "site"
    key = "url"
    is_derived = True
    columns: ClassVar = {
        "url": _column("url", pl.String()),
        "host": _column("host", pl.String()),
        "status": _column("status", STATUS),
        "outcome": _column("outcome", pl.Enum(OUTCOMES)),
        **{
            name: _column(name, PagesTable.columns[origin].dtype)
            for name, origin in (_OF_PAGE | _OF_ANSWER).items()
        },
        **{name: _column(name, ParsesTable.columns[name].dtype) for name in _OF_PARSE},
        "leads_to": _column("leads_to", pl.String()),
        "inlinks": _column("inlinks", pl.Int64()),
        "depth": _column("depth", pl.Int32()),
    }

    def __init__(
        self,
        tables: Mapping[str, Table],
        links: LinksTable,
        segments: Sequence[Segment],
        has_entries: bool,
    ) -> None:
        self._tables, self._links, self._has_entries = tables, links, has_entries
        self._segments = [one for one in segments if one.has(CRAWL_FETCH) or one.has(PARSE_DATA)]

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        needed = request.needed
        needed |= {"redirect_to"} if "leads_to" in needed else set()
        needed |= {"segment", "redirect_to"} if needed & {*_OF_LINKS} else set()
        needed |= {"segment"} if "digest" in needed else set()
        needed |= {"outcome"} if "reason" in needed else set()
        needed |= {"status"} if needed & {"outcome", *_OF_LINKS} else set()
        needed |= {"media_type"} if "content_type" in needed else set()
        rows = self._entries(needed)
        fetches = self._fetches(needed & {"outcome", *_OF_PAGE, *_OF_ANSWER})
        parses = self._parses(needed)
        if "digest" in needed:
            fetches = _with_digests(fetches, parses)
        if fetches.width > 1:
            rows = rows.join(_newest(fetches.filter("asked")), on="url", how="left")
        if "outcome" in needed:
            rows = rows.with_columns(came_of())
        good = parses.filter("is_good")
        if "reason" in needed:
            said = _newest(parses).select("url", "why", parsed="is_good")
            rows = rows.join(said, on="url", how="left")
            rows = rows.with_columns(reason=pl.coalesce("reason", "why", _silent()))
        if wanted := needed & {*_OF_PARSE}:
            rows = rows.join(_newest(good.select("url", "is_good", *wanted)), on="url", how="left")
        if "content_type" in needed:
            of_answer = pl.when("is_good").then("media_type")
            rows = rows.with_columns(pl.coalesce("content_type", of_answer))
        rows = rows.sort("url")
        if needed & {_CANONICAL, "redirect_to"}:
            named = _Names(rows["url"])
            rows = named.in_rows(rows)
            if "leads_to" in needed:
                rows = with_ends(rows)
            if needed & {*_OF_LINKS}:
                refreshes = good.select("url", "segment", to="refresh_to")
                rows = self._with_reach(rows, fetches, refreshes, named)
        yield self.make(rows, request)

    def _entries(self, needed: Collection[str]) -> pl.DataFrame:
        if self._has_entries:
            names = [name for name in _OF_ENTRY if name == "url" or name in needed]
            return _read(self._tables["crawldb"].scan().select(names))
        pages = self._tables["pages"].scan().filter(is_fetch()).select("url", "host")
        return _newest(_read(pages)).with_columns(status=pl.lit(None, STATUS))

    def _fetches(self, wanted: Collection[str]) -> pl.DataFrame:
        """Returns all fetches, oldest first, and if they were `asked` for; nothing if nothing is
        wanted.
        """
        if not wanted:
            return pl.DataFrame()
        named = [pl.col(name) for name in wanted if name in _OF_PAGE]
        named += [pl.col("content_type").alias("media_type")] if "media_type" in wanted else []
        pages = self._tables["pages"].scan().filter(is_fetch())
        came = [outcome()] if "outcome" in wanted else []
        came += [was_answered().alias("answered")] if "digest" in wanted else []
        return _read(pages.select("url", *named, *came, asked=was_asked()))

    def _parses(self, needed: Collection[str]) -> pl.DataFrame:
        """Returns all parses, oldest first, and if each `is_good`, with what is needed of them: in
        one reading, since each inflates all of them.
        """
        named = [pl.col(name) for name in _OF_PARSE if name in needed]
        named += [pl.col("reason").alias("why")] if "reason" in needed else []
        named += [pl.col("refresh_to")] if {*_OF_LINKS} & {*needed} else []
        named += [pl.col("digest")] if "digest" in needed else []
        named += [pl.col("segment")] if {"digest", *_OF_LINKS} & {*needed} else []
        if not named:
            return pl.DataFrame(schema={"url": pl.String, "is_good": pl.Boolean})
        is_good = pl.col("status") == "success"
        return _read(self._tables["parses"].scan().select("url", *named, is_good=is_good))

    def _with_reach(
        self, rows: pl.DataFrame, fetches: pl.DataFrame, refreshes: pl.DataFrame, named: _Names
    ) -> pl.DataFrame:
        numbers = {segment.name: number for number, segment in enumerate(self._segments)}
        number = pl.col("segment").replace_strict(numbers, return_dtype=pl.Int32).alias("number")
        # Without a CrawlDb the first fetch list is all that is known of where the crawl began.
        entries = rows.select(ID, "status", IS_ROOT & self._has_entries)
        seen = fetches.select(ID, number)
        seen = seen.unique("id", keep="first", maintain_order=True).rename({"number": "first"})
        reach = Reach.of(self._tables, self._segments, entries, seen)
        redirects = fetches.filter("asked").select("url", "segment", to="redirect_to")
        for ways in (redirects, refreshes):
            found = ways.with_columns(is_newest=pl.col("url").is_last_distinct()).drop_nulls("to")
            to = named.here(found["to"]).hash().alias("to")
            reach.add_ways(found.select(ID, to, number, "is_newest"))
        with suppress(StoreError):  # neither a LinkDb nor parses: no links
            for frame in self._links.every(self._segments):
                reach.add_links(frame)
        found = rows.with_columns(ID).join(
            reach.table(), on="id", how="left", maintain_order="left"
        )
        return found.drop("id")


class _Names:
    """The names that `urls` have for what redirects and canonical links name, which crawls
    normalize and pages do not.
    """

    def __init__(self, urls: pl.Series) -> None:
        self._urls, self._keys = urls, url_keys(urls)
        known = pl.DataFrame({"here": urls, "key": self._keys, "id": urls.hash()})
        self._known = of_keys(known).select("here", "key")

    def here(self, to: pl.Series) -> pl.Series:
        """Returns what each of `to` is called here; itself, if it is not of the table."""
        found = pl.DataFrame({"to": to, "key": url_keys(to)})
        found = found.join(self._known, on="key", how="left", maintain_order="left")
        is_here = pl.col("to").is_in(self._urls.implode())
        name = pl.when(is_here).then("to").otherwise(pl.coalesce("here", "to"))
        return found.select(name).to_series()

    def in_rows(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Returns the rows with these names; a page is its own canonical URL before that is
        another's.
        """
        for name in {_CANONICAL, "redirect_to"} & {*rows.columns}:
            own = url_keys(rows[name]) == self._keys if name == _CANONICAL else pl.lit(value=False)
            here = self.here(rows[name])
            rows = rows.with_columns(pl.when(own).then("url").otherwise(here).alias(name))
        return rows


def _with_digests(fetches: pl.DataFrame, parses: pl.DataFrame) -> pl.DataFrame:
    """Returns the fetches with the digests of what they brought: in a segment, a URL's n-th answer
    has its n-th parse. Those are read here, not in `pages`, since each reading inflates all parses.
    """
    of = ["segment", "url"]
    nth = pl.col("answered").cum_sum().over(of).alias("nth")
    found = parses.select(*of, "digest", nth=pl.int_range(1, pl.len() + 1).over(of))
    found = found.with_columns(pl.col("nth").cast(pl.UInt32))
    rows = fetches.with_columns(pl.when("answered").then(nth.cast(pl.UInt32)))
    rows = rows.join(found, on=[*of, "nth"], how="left", maintain_order="left")
    return rows.drop("answered", "nth")


def _read(rows: pl.LazyFrame) -> pl.DataFrame:
    return rows.collect(engine="streaming")


def _silent() -> pl.Expr:
    """Returns why a URL has no parse where nobody has said why."""
    asked, parsed = pl.col("outcome").cast(pl.String), pl.col("parsed").fill_null(False)
    return (
        pl.when(asked.is_null())
        .then(pl.lit("not asked for yet"))
        .when(asked == "redirected")
        .then(pl.lit("leads elsewhere"))
        .when(~parsed)
        .then(pl.lit("not parsed"))
    )


def _newest(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the last row of each URL; the tables of segments have them oldest first."""
    return rows.unique("url", keep="last", maintain_order=False)
