"""The table `site`: a row per URL, with the newest word of each store on it.

crawldb     url, host, status
pages       segment, outcome (see `pages`), code, reason, response_ms, media_type (of the
            answer), size, redirect_to, digest: of the newest fetch
parses      title to outlinks: of the newest parse that succeeded; where it has no content_type,
            that of the answer; where the fetch has no reason, that of the newest parse
links       inlinks: links from other pages; depth: links from where the crawl began

redirect_to and canonical are URLs of the table where they mean one, however they spell it. The
crawl began at what its first segment asked for: of what sitemaps list there, at the roots of hosts
alone. A redirect leads on without a step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import ClassVar, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.errors import StoreError
from minutch.inspect.query.columns import STATUS
from minutch.inspect.query.ids import places_in, places_of_runs
from minutch.inspect.query.pages import OUTCOMES, PagesTable, is_fetch, outcome
from minutch.inspect.query.parses import ParsesTable
from minutch.inspect.query.table import Request, SqlColumn, Table
from minutch.urls.urlkeys import url_keys

_OF_ENTRY: Final = ("url", "host", "status")
_OF_PAGE: Final = {
    **{name: name for name in ("segment", "code", "reason", "response_ms", "size")},
    **{name: name for name in ("redirect_to", "digest")},
    "media_type": "content_type",
}
"""Column -> that of `pages`."""
_OF_PARSE: Final = (
    *("title", "description", "h1", "h1s", "canonical", "robots", "content_type", "charset"),
    *("declared_type",),
    *("lang", "words", "garbled", "outlinks"),
)
_OF_LINKS: Final = ("inlinks", "depth")
_CANONICAL: Final = "canonical"
_REFRESH: Final = "refresh_to"
_WAYS: Final = {"redirect_to", _REFRESH}
"""What leads on without a link."""


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
            for name, origin in _OF_PAGE.items()
        },
        **{name: _column(name, ParsesTable.columns[name].dtype) for name in _OF_PARSE},
        "inlinks": _column("inlinks", pl.Int64()),
        "depth": _column("depth", pl.Int32()),
    }

    def __init__(self, tables: Mapping[str, Table], has_entries: bool) -> None:
        self._tables, self._has_entries = tables, has_entries

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        needed = request.needed
        needed |= _WAYS if needed & {*_OF_LINKS} else set()
        rows = self._entries(needed)
        needed |= {"outcome"} if "reason" in needed else set()
        needed |= {"media_type"} if "content_type" in needed else set()
        if wanted := needed & {"outcome", *_OF_PAGE}:
            rows = rows.join(self._newest_pages(wanted), on="url", how="left")
        parses = self._tables["parses"].scan()
        if "reason" in needed:
            said = parses.select("url", why="reason", parsed=pl.col("status") == "success")
            rows = rows.join(_newest(said), on="url", how="left")
            rows = rows.with_columns(reason=pl.coalesce("reason", "why", _silent()))
        if wanted := needed & {*_OF_PARSE, _REFRESH}:
            good = parses.filter(pl.col("status") == "success")
            good = good.select("url", *wanted, is_good=pl.lit(value=True))
            rows = rows.join(_newest(good), on="url", how="left")
        if "content_type" in needed:
            found = pl.when("is_good").then("media_type")
            rows = rows.with_columns(pl.coalesce("content_type", found))
        rows = _named_as_here(rows.sort("url"))
        if needed & {*_OF_LINKS}:
            rows = self._with_reach(rows)
        yield self.make(rows, request)

    def _entries(self, needed: Collection[str]) -> pl.DataFrame:
        if self._has_entries:
            names = [name for name in _OF_ENTRY if name == "url" or name in needed]
            return self._tables["crawldb"].scan().select(names).collect(engine="streaming")
        pages = self._tables["pages"].scan().filter(is_fetch()).select("url", "host")
        return _newest(pages).with_columns(status=pl.lit(None, STATUS))

    def _newest_pages(self, wanted: Collection[str]) -> pl.DataFrame:
        named = [pl.col(_OF_PAGE[name]).alias(name) for name in wanted if name in _OF_PAGE]
        pages = self._tables["pages"].scan().filter(is_fetch())
        return _newest(pages.select("url", *named, *([outcome()] if "outcome" in wanted else [])))

    def _with_reach(self, rows: pl.DataFrame) -> pl.DataFrame:
        reach = LinkReach(rows["url"])
        with suppress(StoreError):  # neither a LinkDb nor parses: no links
            for links in self._tables["links"].frames(Request(("url", "from_url"))):
                reach.add(links["from_url"], links["url"])
        ways = pl.concat([rows.select("url", to=name) for name in sorted(_WAYS)]).drop_nulls()
        pages = self._tables["pages"]
        assert isinstance(pages, PagesTable)
        asked = pages.first_asked()
        listed = self._tables["sitemaps"].scan().select("url").collect().to_series()
        roots = reach.places(starts(asked.filter(~asked.is_in(ways["to"].implode())), listed))
        source, target = reach.places(ways["url"]), reach.places(ways["to"])
        both = (source >= 0) & (target >= 0)
        depths = reach.depths(roots[roots >= 0], (source[both], target[both]))
        return rows.with_columns(
            pl.Series("inlinks", reach.counts()),
            pl.Series("depth", depths).replace(-1, None),
        )


def _named_as_here(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows, by URL, with the targets of redirects and canonical links as `url` spells
    them, which crawls normalize and pages do not.

    A page is its own canonical URL before that is another's; a redirect leads to another URL before
    it is a circle.
    """
    names = [name for name in (*sorted(_WAYS), _CANONICAL) if name in rows.columns]
    if not names:
        return rows
    keys = url_keys(rows["url"])
    known = pl.DataFrame({"key": keys, "here": rows["url"]}).unique("key", keep="first")
    for name in names:
        there = rows.with_row_index().select("index", "url", to=name, own=keys).drop_nulls("to")
        there = there.with_columns(key=url_keys(there["to"]))
        there = there.join(known, on="key", how="left", maintain_order="left")
        own = pl.when(pl.col("own") == pl.col("key")).then("url")
        same = pl.when(pl.col("to").is_in(rows["url"].implode())).then("to")
        first = (own, same) if name == _CANONICAL else (same, own)
        found = there.select("index", to=pl.coalesce(*first, "here", "to"))
        rows = rows.with_columns(rows[name].scatter(found["index"], found["to"]))
    return rows


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


def _newest(rows: pl.LazyFrame) -> pl.DataFrame:
    """Returns the last row of each URL; the tables of segments have them oldest first."""
    found = rows.collect(engine="streaming")
    return found.unique("url", keep="last", maintain_order=False)


Places = NDArray[np.int32]
MOST_DEEP: Final = 100
"""The last depth that is told; it stands for all that are greater."""
_ROOT: Final = r"^[a-z]+://[^/]*/?$"


def starts(first: pl.Series, listed: pl.Series) -> pl.Series:
    """Returns where a crawl began: of the URLs of its `first` segment those that sitemaps have not
    `listed`, and roots of hosts.
    """
    return first.filter(first.str.contains(_ROOT) | ~first.is_in(listed.implode()))


class LinkReach:
    """The URLs of a site, by their places in `urls`, and the links between them (8 bytes each)."""

    def __init__(self, urls: pl.Series) -> None:
        hashes = urls.hash().to_numpy()
        self._order = np.argsort(hashes, kind="stable").astype(np.int32)
        self._sorted = hashes[self._order]
        self._links: list[tuple[Places, Places]] = []

    def places(self, urls: pl.Series) -> Places:
        """Returns the place of each of `urls`; -1 for one that is not of the site."""
        return self._named(*places_in(self._sorted, urls.hash().to_numpy()))

    def _named(self, at: NDArray[np.int64], there: NDArray[np.bool_]) -> Places:
        found = np.full(len(at), -1, np.int32)
        found[there] = self._order[at[there]]
        return found

    def add(self, sources: pl.Series, targets: pl.Series) -> None:
        """Adds links; those of a page to itself, and to or from elsewhere, don't count."""
        source = self._named(*places_of_runs(self._sorted, sources.hash().to_numpy()))
        target = self.places(targets)
        mine = (source >= 0) & (target >= 0) & (source != target)
        self._links.append((source[mine], target[mine]))

    def counts(self) -> NDArray[np.int64]:
        """Returns the number of links to each."""
        found = np.zeros(len(self._order), np.int64)
        for _, target in self._links:
            found += np.bincount(target, minlength=len(found))
        return found

    def depths(self, roots: Iterable[int], redirects: tuple[Places, Places]) -> Places:
        """Returns the depth of each, from 0 for `roots`; -1 for those that cannot be reached."""
        depth = np.full(len(self._order), -1, np.int32)
        depth[np.fromiter(roots, np.int64)] = 0
        for level in range(MOST_DEEP):
            self._follow(depth, level, level, [redirects])
            if not self._follow(depth, level, level + 1, self._links):
                break
        return depth

    @staticmethod
    def _follow(depth: Places, level: int, to: int, links: Iterable[tuple[Places, Places]]) -> bool:
        """Sets the depth of what the pages of a level lead to; returns whether there was any."""
        any_new = False
        for source, target in links:
            while True:
                reached = target[depth[source] == level]
                reached = reached[depth[reached] < 0]
                depth[reached] = to
                any_new |= bool(len(reached))
                if to != level or not len(reached):
                    break
        return any_new
