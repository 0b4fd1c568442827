"""Decides which links of a page a WebGraph keeps. Pure: no I/O.

    link.ignore.internal.host     ignores links within a host (true unless set)
    link.ignore.internal.domain   ignores links within a registered domain
    link.ignore.limit.page        keeps the first link to each page (its URL without the query)
    link.ignore.limit.domain      keeps the first link to each domain

A page's links are those of its newest version, by the time of its fetch; of two versions with the
same time, the one read last. Links from or to malformed URLs are dropped. LinkRank applies the
limits again, to the links that lead to a page.

Source: org.apache.nutch.scoring.webgraph.WebGraph.OutlinkDb.OutlinkDbReducer,
LinkRank.Analyzer.AnalyzerReducer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from minutch.conf import Settings, made_by, prop
from minutch.job import Counters
from minutch.urls.hostcolumns import domains_of, host_names
from minutch.work.tables.frame import by_runs, decode_keys

GONE: Final = "links of pages that are gone"
OLDER: Final = "links of older versions of pages"
REPEATED: Final = "repeated links of a page"
MALFORMED: Final = "links from or to what is no URL"
INTERNAL: Final = "internal links ignored"
LIMITED: Final = "further links to a page or domain ignored"

CANDIDATES: Final = pl.Schema(
    {
        "key": pl.Binary(),
        "url": pl.Binary(),  # null: the page is gone
        "anchor": pl.Binary(),
        "timestamp": pl.Int64(),  # of the page's fetch
        "source": pl.UInt32(),  # greater for input that is read later
    }
)
"""Links that may become outlinks, and pages that are gone."""


@dataclass(frozen=True, slots=True)
class LinkLimits(Settings):
    """The limits on links to the same page or domain: only the first counts."""

    page: bool = prop("link.ignore.limit.page")
    domain: bool = prop("link.ignore.limit.domain")

    @property
    def any(self) -> bool:
        """True if there is a limit."""
        return self.page or self.domain

    def groups(self, urls: pl.Series) -> pl.Series:
        """Returns each URL's group, of which one link counts: domain or page; null if malformed."""
        if self.domain:
            return domains_of(host_names(urls))
        # URLUtil.getPage: in lower case, without the query, with the fragment.
        return urls.str.to_lowercase().str.replace(r"^([^?#]*)\?[^#]*", "${1}")


@dataclass(frozen=True, slots=True)
class GraphLinkRules(Settings):
    """The rules by which candidates become outlinks."""

    ignore_host: bool = prop("link.ignore.internal.host")
    ignore_domain: bool = prop("link.ignore.internal.domain")
    limits: LinkLimits = made_by(LinkLimits.from_conf)

    def apply(self, links: pl.DataFrame, counters: Counters) -> pl.DataFrame:
        """Returns the rows of a table of CANDIDATES that become outlinks, in the same order.

        The table is sorted by key and holds all candidates of each page in it.
        """
        links = _newest(_without_gone(links, counters), counters)
        links = _counted(
            links,
            # OutlinkDbMapper puts them into a map by target: the first anchor stays.
            links.unique(["key", "url"], keep="first", maintain_order=True),
            REPEATED,
            counters,
        )
        links = self._external(links, counters)
        kept = links
        if self.limits.any:
            groups = self.limits.groups(decode_keys(links["url"]))
            kept = links.with_columns(group=groups).unique(
                ["key", "group"], keep="first", maintain_order=True
            )
        return _counted(links, kept.drop("host", "group", strict=False), LIMITED, counters)

    def _external(self, links: pl.DataFrame, counters: Counters) -> pl.DataFrame:
        """Drops links from or to malformed URLs, and those within a host or domain if they are
        ignored.
        """
        page, target = by_runs(links["key"], _hosts), _hosts(links["url"])
        known = page.is_not_null() & target.is_not_null()
        links = _counted(links, links.filter(known), MALFORMED, counters)
        page, target = page.filter(known), target.filter(known)
        if self.ignore_domain:
            page, target = domains_of(page), domains_of(target)
        # Links within a host are within its domain.
        elif not self.ignore_host:
            return links
        return _counted(links, links.filter(page != target), INTERNAL, counters)


def _hosts(keys: pl.Series) -> pl.Series:
    return host_names(decode_keys(keys))


def _counted(
    before: pl.DataFrame, after: pl.DataFrame, reason: str, counters: Counters
) -> pl.DataFrame:
    counters.add(reason, len(before) - len(after))
    return after


def _without_gone(links: pl.DataFrame, counters: Counters) -> pl.DataFrame:
    """Drops the links of pages that are gone, by the input that was read last, and the rows that
    say so.
    """
    gone = links["url"].is_null()
    if not gone.any():
        counters.add(GONE, 0)
        return links
    last = links.filter(gone).group_by("key").agg(pl.col("source").max().alias("gone"))
    links = links.filter(~gone).join(last, on="key", how="left", maintain_order="left")
    # OutlinkDbReducer drops a page for any segment in which it was gone, also for good ones since.
    newest = pl.col("source").sort_by("timestamp", "source").last().over("key")
    kept = links.filter(pl.col("gone").is_null() | (newest > pl.col("gone"))).drop("gone")
    return _counted(links, kept, GONE, counters)


def _newest(links: pl.DataFrame, counters: Counters) -> pl.DataFrame:
    """Keeps the links of the newest version of each page."""
    newest = links.filter(pl.col("timestamp") == pl.col("timestamp").max().over("key"))
    # Of a segment that is added a second time all links would be there twice.
    newest = newest.filter(pl.col("source") == pl.col("source").max().over("key"))
    return _counted(links, newest, OLDER, counters)
