"""Which links of a page a WebGraph keeps: every decision about a link has its home here. No I/O.

    link.ignore.internal.host     not those within a host (true unless set)
    link.ignore.internal.domain   not those within a registered domain
    link.ignore.limit.page        one to a page (its URL without the query), the first
    link.ignore.limit.domain      one to a domain, the first

A page's links are those of its newest version, by the time of its fetch; of two versions of one
time the one read last. What is no URL is no page. LinkRank applies the limits once more, to the
links that lead to a page.

Source: org.apache.nutch.scoring.webgraph.WebGraph.OutlinkDb.OutlinkDbReducer,
LinkRank.Analyzer.AnalyzerReducer.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from minutch.conf import Configuration
from minutch.job import Counters
from minutch.urls.hostcolumns import domains_of, hosts_of
from minutch.work.tables.frame import decode_keys

IGNORE_HOST_PROPERTY: Final = "link.ignore.internal.host"
IGNORE_DOMAIN_PROPERTY: Final = "link.ignore.internal.domain"
LIMIT_PAGE_PROPERTY: Final = "link.ignore.limit.page"
LIMIT_DOMAIN_PROPERTY: Final = "link.ignore.limit.domain"

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
        "source": pl.UInt32(),  # what was read later has the greater number
    }
)
"""Links that may become outlinks, and the news that a page is gone."""


class Limits:
    """How many links from one place to another count."""

    def __init__(self, conf: Configuration) -> None:
        self.page = conf.get_boolean(LIMIT_PAGE_PROPERTY, True)
        self.domain = conf.get_boolean(LIMIT_DOMAIN_PROPERTY, True)

    @property
    def apply(self) -> bool:
        """Whether there are any."""
        return self.page or self.domain

    def places(self, urls: pl.Series) -> pl.Series:
        """What one link may count for: each URL's domain, or its page, which is smaller; nulls for
        what is no URL.
        """
        if self.domain:
            return domains_of(_hosts(urls))
        return urls.str.to_lowercase().str.replace(r"^([^?#]*)\?[^#]*", "${1}")


class LinkRules:
    """Which candidates become outlinks."""

    def __init__(self, conf: Configuration) -> None:
        self._ignore_host = conf.get_boolean(IGNORE_HOST_PROPERTY, True)
        self._ignore_domain = conf.get_boolean(IGNORE_DOMAIN_PROPERTY, True)
        self._limits = Limits(conf)

    def apply(self, links: pl.DataFrame, counters: Counters) -> pl.DataFrame:
        """The links that count of a table of CANDIDATES, sorted by key, in their order; no page is
        spread over two.
        """
        links = _newest(_without_gone(links, counters), counters)
        links = _counted(
            links,
            links.unique(["key", "url"], keep="first", maintain_order=True),
            REPEATED,
            counters,
        )
        links = self._external(links, counters)
        kept = links
        if self._limits.apply:
            places = self._limits.places(decode_keys(links["url"]))
            kept = links.with_columns(place=places).unique(
                ["key", "place"], keep="first", maintain_order=True
            )
        return _counted(links, kept.drop("host", "place", strict=False), LIMITED, counters)

    def _external(self, links: pl.DataFrame, counters: Counters) -> pl.DataFrame:
        """The links between different hosts and domains, as far as that is asked for."""
        page, target = _hosts_of_runs(links["key"]), _hosts(decode_keys(links["url"]))
        known = page.is_not_null() & target.is_not_null()
        links = _counted(links, links.filter(known), MALFORMED, counters)
        page, target = page.filter(known), target.filter(known)
        if self._ignore_domain:
            page, target = domains_of(page), domains_of(target)
        elif not self._ignore_host:
            return links
        return _counted(links, links.filter(page != target), INTERNAL, counters)


def _counted(
    before: pl.DataFrame, after: pl.DataFrame, reason: str, counters: Counters
) -> pl.DataFrame:
    counters.add(reason, len(before) - len(after))
    return after


def _without_gone(links: pl.DataFrame, counters: Counters) -> pl.DataFrame:
    """Without the links of pages that are gone, by what was read last, and without that news."""
    gone = links["url"].is_null()
    if not gone.any():
        counters.add(GONE, 0)
        return links
    last = links.filter(gone).group_by("key").agg(pl.col("source").max().alias("gone"))
    links = links.filter(~gone).join(last, on="key", how="left", maintain_order="left")
    newest = pl.col("source").sort_by("timestamp", "source").last().over("key")
    kept = links.filter(pl.col("gone").is_null() | (newest > pl.col("gone"))).drop("gone")
    return _counted(links, kept, GONE, counters)


def _newest(links: pl.DataFrame, counters: Counters) -> pl.DataFrame:
    """The links of the newest version of each page."""
    newest = links.filter(pl.col("timestamp") == pl.col("timestamp").max().over("key"))
    newest = newest.filter(pl.col("source") == pl.col("source").max().over("key"))
    return _counted(links, newest, OLDER, counters)


def _hosts(urls: pl.Series) -> pl.Series:
    return hosts_of(urls).str.to_lowercase()


def _hosts_of_runs(keys: pl.Series) -> pl.Series:
    """The hosts of a column in which equal URLs stand one after the other."""
    if not len(keys):
        return pl.Series(dtype=pl.String)
    starts = keys.ne_missing(keys.shift())
    return _hosts(decode_keys(keys.filter(starts))).gather(starts.cum_sum() - 1)
