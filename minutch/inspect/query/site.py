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

import numpy as np
import polars as pl

from minutch.cycle.segment.store import CRAWL_FETCH, PARSE_DATA, Segment
from minutch.errors import StoreError
from minutch.inspect.query.columns import ID, STATUS, Mask, of_keys
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
from minutch.inspect.query.parselinks import RECORD, LinkCollector, LinkedParses, Numbers, UrlPlaces
from minutch.inspect.query.parses import ParsesTable
from minutch.inspect.query.reach import IS_ROOT, Reach, with_ends
from minutch.inspect.query.table import Request, SqlColumn, Table
from minutch.urls.urlkeys import url_keys
from minutch.work.tables.frame import decode_keys

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
_OF_TARGET: Final = ("outcome", "code", "redirect_to")
"""What is said of the targets of wrong links."""
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
        yield self.make(self.read(request.needed)[0], request)

    def read(
        self, needed: Collection[str], *, with_wrong: bool = False
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Returns the rows with at least the columns `needed`, and those of `WrongLinksTable`, if
        they are asked for: parses are read once for both.
        """
        needed = _with_origins({"url", *needed, *((*_OF_LINKS, *_OF_TARGET) if with_wrong else ())})
        rows = self._entries(needed)
        rows = rows[rows["url"].hash().arg_sort()]  # the order of places in `Reach`
        places = UrlPlaces(rows["url"])
        own = places.of(rows["url"])
        fetches = self._fetches(needed & {"outcome", *_OF_PAGE, *_OF_ANSWER})
        fetches = self._placed(fetches, places)
        links = None
        if needed & {*_OF_LINKS}:
            reach = Reach.of(self._tables, self._segments, self._ids(rows), _seen(fetches, rows))
            told = np.zeros(len(rows), np.bool_)
            if with_wrong:
                told[own[_are_wrong(rows, fetches, own)]] = True
            links = _SiteLinks(self._links, rows["url"], places, reach, told)
        parses = self._placed(self._parses(needed, links), places)
        if "digest" in needed:
            fetches = _with_digests(fetches, parses)
        rows = _joined(needed, rows, own, fetches, parses)
        named = _Names(rows["url"], places) if needed & {_CANONICAL, "redirect_to"} else None
        rows = rows if named is None else named.in_rows(rows)
        if "leads_to" in needed:
            rows = with_ends(rows)
        if links is None or named is None:
            return rows.sort("url"), pl.DataFrame()
        redirects = fetches.filter("asked").select("url", "at", "number", to="redirect_to")
        refreshes = parses.filter("is_good").select("url", "at", "number", to="refresh_to")
        for ways in (redirects, refreshes):
            newest = ways.filter(pl.col("at") >= 0)
            newest = newest.with_columns(is_newest=pl.col("at").is_last_distinct()).drop_nulls("to")
            to = named.here(newest["to"]).hash().alias("to")
            links.reach.add_ways(newest.select(ID, to, "number", "is_newest"))
        found = links.read(parses)
        reached = links.reach.table().select(_OF_LINKS)[own]
        rows = rows.hstack(reached)
        if with_wrong:
            found = found.hstack(rows.select("url", *_OF_TARGET)[found["to"]])
        return rows.sort("url"), found

    def _placed(self, frame: pl.DataFrame, places: UrlPlaces) -> pl.DataFrame:
        """Returns fetches or parses with the places of their URLs, `at`, -1 for one without a row,
        and the `number` of their segments, if that is known.
        """
        if not frame.width:
            return frame
        frame = frame.with_columns(pl.Series("at", places.of(frame["url"])))
        return frame.with_columns(self._number()) if "segment" in frame.columns else frame

    def _entries(self, needed: Collection[str]) -> pl.DataFrame:
        if self._has_entries:
            names = [name for name in _OF_ENTRY if name == "url" or name in needed]
            return _read(self._tables["crawldb"].scan().select(names))
        pages = self._tables["pages"].scan().filter(is_fetch()).select("url", "host")
        found = _read(pages).unique("url", keep="last", maintain_order=False)
        return found.with_columns(status=pl.lit(None, STATUS))

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

    def _parses(self, needed: Collection[str], links: _SiteLinks | None) -> pl.DataFrame:
        """Returns all parses, oldest first, and if each `is_good`, with what is needed of them: in
        one reading, since each inflates all of them.
        """
        named = [pl.col(name) for name in _OF_PARSE if name in needed]
        named += [pl.col("reason").alias("why")] if "reason" in needed else []
        named += [pl.col("refresh_to")] if {*_OF_LINKS} & {*needed} else []
        named += [pl.col("digest")] if "digest" in needed else []
        named += [pl.col("segment")] if {"digest", *_OF_LINKS} & {*needed} else []
        table = self._tables["parses"]
        if links is not None and links.collector is not None:
            table, named = LinkedParses(self._segments, links.collector), [*named, pl.col(RECORD)]
        if not named:
            return pl.DataFrame(schema={"url": pl.String, "is_good": pl.Boolean})
        is_good = pl.col("status") == "success"
        return _read(table.scan().select("url", *named, is_good=is_good))

    def _ids(self, rows: pl.DataFrame) -> pl.DataFrame:
        # Without a CrawlDb the first fetch list is all that is known of where the crawl began.
        return rows.select(ID, "status", IS_ROOT & self._has_entries)

    def _number(self) -> pl.Expr:
        numbers = {segment.name: number for number, segment in enumerate(self._segments)}
        return pl.col("segment").replace_strict(numbers, return_dtype=pl.Int32).alias("number")


class _SiteLinks:
    """The links of a crawl, for `reach`, and those to URLs that somebody is `told` of."""

    def __init__(
        self, table: LinksTable, urls: pl.Series, places: UrlPlaces, reach: Reach, told: Mask
    ) -> None:
        self._table, self.reach = table, reach
        self._urls, self._places, self._told = urls, places, told
        self.collector = LinkCollector(places, told) if table.are_in_segments else None

    def read(self, parses: pl.DataFrame) -> pl.DataFrame:
        """Adds all links, of `parses` or of the LinkDb. Returns the place `to` which those lead
        that are told of, `from_url` and `anchor`.
        """
        if self.collector is None:
            return self._inverted()
        record = parses[RECORD].to_numpy()
        row_of = np.empty(len(parses), np.int64)
        row_of[record] = np.arange(len(parses))
        is_newest, place = _are_newest(parses)[row_of], parses["at"].to_numpy()[row_of]
        for records, to in self.collector.of(is_newest):
            self.reach.add_edges(place[records], to)
        told = self.collector.told(is_newest)
        from_url = parses["url"].gather(row_of[told[RECORD].to_numpy()]).alias("from_url")
        return told.select("to", from_url, "anchor")

    def _inverted(self) -> pl.DataFrame:
        names = ("url", "from_url", "anchor")
        found = [pl.DataFrame(schema=dict.fromkeys(names, pl.String))]
        wanted = self._urls.filter(pl.Series(self._told)).hash()
        with suppress(StoreError):  # neither a LinkDb nor parses: no links
            for frame in self._table.inverted():
                self.reach.add_links(frame)
                mine = frame.filter(pl.col("id").is_in(wanted.implode()))
                found.append(mine.select(decode_keys(mine[name]) + "" for name in names))
        every = pl.concat(found)
        return every.select(pl.Series("to", self._places.of(every["url"])), "from_url", "anchor")


def _seen(fetches: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the `id` of each URL with a fetch, and the number of the `first` segment with one."""
    known = fetches.filter(pl.col("at") >= 0)
    at, number = known["at"].to_numpy()[::-1], known["number"].to_numpy()[::-1]
    first = np.full(len(rows), -1, np.int32)
    first[at] = number  # of several the last that is set, the oldest
    found = rows.select(ID, first=pl.Series(first, dtype=pl.Int32))
    return found.filter(pl.col("first") >= 0)


def _are_newest(parses: pl.DataFrame) -> Mask:
    """Returns whether there is no newer parse that succeeded, in another segment."""
    at, number = parses["at"].to_numpy().copy(), parses["number"].to_numpy()
    others = at < 0
    unknown = parses["url"].filter(pl.Series(others, dtype=pl.Boolean)).rank("dense")
    at[others] = at.max(initial=0) + unknown.to_numpy()
    newest = np.full(at.max(initial=0) + 1, -1, np.int32)
    is_good = parses["is_good"].fill_null(value=False).to_numpy()
    newest[at[is_good]] = number[is_good]  # the last that is set: the newest
    found: Mask = number >= newest[at]
    return found


def _are_wrong(rows: pl.DataFrame, fetches: pl.DataFrame, own: Numbers) -> Mask:
    """Returns which URLs are no pages, by their newest fetches."""
    found = rows.select("status").hstack(_newest(fetches, own, "asked").select("outcome"))
    is_page = came_of().is_in(["fetched", "unchanged"])
    return found.select((~is_page).fill_null(value=False)).to_series().to_numpy()


class WrongLinksTable(Table):
    """A table of the links to URLs that are no pages: a row for each."""

    name = "wrong_links"
    is_derived = True
    columns: ClassVar = {
        "url": _column("url", pl.String()),
        "outcome": SiteTable.columns["outcome"],
        "code": SiteTable.columns["code"],
        "redirect_to": SiteTable.columns["redirect_to"],
        "from_url": _column("from_url", pl.String()),
        "anchor": _column("anchor", pl.String()),
    }

    def __init__(self, site: SiteTable) -> None:
        self._site = site

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        yield self.make(self._site.read((), with_wrong=True)[1], request)


class _Names:
    """The names that `urls` have for what redirects and canonical links name, which crawls
    normalize and pages do not.
    """

    def __init__(self, urls: pl.Series, places: UrlPlaces) -> None:
        self._keys, self._places = url_keys(urls), places
        known = pl.DataFrame({"here": urls, "key": self._keys, "id": urls.hash()})
        self._known = of_keys(known).select("here", "key")

    def here(self, to: pl.Series) -> pl.Series:
        """Returns what each of `to` is called here; itself, if it is not of the table."""
        if to.null_count() == len(to):
            return to
        found = pl.DataFrame({"to": to, "key": url_keys(to)})
        found = found.join(self._known, on="key", how="left", maintain_order="left")
        is_here = pl.Series(self._places.of(to) >= 0, dtype=pl.Boolean)
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


def _with_origins(needed: set[str]) -> set[str]:
    """Returns the columns with those that they are made of."""
    needed |= {"redirect_to"} if "leads_to" in needed else set()
    needed |= {"segment", "redirect_to"} if needed & {*_OF_LINKS} else set()
    needed |= {"segment"} if "digest" in needed else set()
    needed |= {"outcome"} if "reason" in needed else set()
    needed |= {"status"} if needed & {"outcome", *_OF_LINKS} else set()
    return needed | ({"media_type"} if "content_type" in needed else set())


def _joined(
    needed: Collection[str],
    rows: pl.DataFrame,
    own: Numbers,
    fetches: pl.DataFrame,
    parses: pl.DataFrame,
) -> pl.DataFrame:
    """Returns the entries with what is needed of the newest fetch and parse of each."""
    if fetches.width:
        newest = _newest(fetches, own, "asked")
        rows = rows.hstack(newest.drop("url", "asked", "at", "number", strict=False))
    if "outcome" in needed:
        rows = rows.with_columns(came_of())
    if "reason" in needed:
        said = _newest(parses, own).select("why", parsed="is_good")
        reason = pl.coalesce("reason", "why", _silent())
        rows = rows.hstack(said).with_columns(reason.alias("reason"))
    if wanted := {*needed} & {*_OF_PARSE}:
        rows = rows.hstack(_newest(parses, own, "is_good").select("is_good", *wanted))
    if "content_type" in needed:
        of_answer = pl.when("is_good").then("media_type")
        rows = rows.with_columns(pl.coalesce("content_type", of_answer))
    return rows


def _with_digests(fetches: pl.DataFrame, parses: pl.DataFrame) -> pl.DataFrame:
    """Returns the fetches with the digests of what they brought: in a segment, a URL's n-th answer
    has its n-th parse. Those are read here, not in `pages`, since each reading inflates all parses.
    """
    of = ["number", "at"]
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


def _newest(frame: pl.DataFrame, own: Numbers, wanted: str = "") -> pl.DataFrame:
    """Returns for each of `own` places the last row of a table `at` it, all null where there is
    none; the tables of segments have them oldest first. With `wanted` of those where that is true.
    """
    at = frame["at"].to_numpy()
    counted = at >= 0
    if wanted:
        counted &= frame[wanted].fill_null(value=False).to_numpy()
    rows = np.flatnonzero(counted)
    last = np.full(len(own), -1)
    last[at[rows]] = rows  # of several the last that is set
    found = pl.Series(last[own], dtype=pl.Int64)
    return frame.select(pl.all().gather(pl.lit(found.set(found < 0, None))))
