"""Chooses the links of a page that are fetched in the same run (fetcher.follow.outlinks.*).

The first few of a page (in the order of Java's HashSet), each URL once. Source:
org.apache.nutch.fetcher.FetcherThread.output, where each is followed once a host.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minutch.cycle.fetch.frontier.queueitems import FetchItem
from minutch.cycle.fetch.frontier.queuekey import QueueNames
from minutch.cycle.fetch.results.recorder import ParsedPage
from minutch.cycle.fetch.settings import FollowSettings
from minutch.cycle.fetch.stats import FetchStats
from minutch.hadoop.formats.javahash import hash_map_order, string_hash
from minutch.records.crawldatum import STATUS_LINKED, CrawlDatum
from minutch.urls.parts import host_of


class LinkFollower:
    """Picks the links of a parsed page that are fetched in the same run."""

    def __init__(
        self,
        settings: FollowSettings,
        names: QueueNames,
        stats: FetchStats,
        listed: Iterable[str] = (),
    ) -> None:
        """`listed` are the URLs of the fetch list, which nobody has to follow a link to."""
        self._settings = settings
        self._names = names
        self._stats = stats
        self._seen = {hash(url) for url in listed}

    def forget(self, but: Iterable[str]) -> None:
        """Begins anew: with another list, links are followed again, `but` to URLs that go on."""
        self._seen = {hash(url) for url in but}

    def is_new(self, url: str) -> bool:
        """Returns True if a link to a URL may be followed: once, and not if the URL is listed."""
        size = len(self._seen)
        self._seen.add(hash(url))
        return len(self._seen) > size

    def follow(self, page: ParsedPage, depth: int) -> list[FetchItem]:
        """Returns items for the links to fetch; none if the page, which lies so deep, is deep
        enough.
        """
        if depth >= self._settings.depth:
            return []
        return [item for url, links in page.outlinks for item in self._of(url, links, depth + 1)]

    def _of(self, url: str, links: Sequence[str], depth: int) -> list[FetchItem]:
        self.is_new(url)
        distinct = list(dict.fromkeys(links))
        self._stats.events["outlinks_detected_total"] += len(distinct)
        host = host_of(url)
        items: list[FetchItem] = []
        for link in _java_order(distinct, len(links)):
            if len(items) >= self._settings.per_page:
                break
            if self._settings.ignore_external and host_of(link) != host:
                continue
            target = self._names.of(link)
            if target is not None and self.is_new(link):
                items.append(
                    FetchItem(
                        link,
                        CrawlDatum(STATUS_LINKED, self._settings.interval),
                        target,
                        None,
                        depth,
                    )
                )
        self._stats.events["outlinks_following_total"] += len(items)
        return items


def _java_order(urls: list[str], capacity: int) -> list[str]:
    """Returns the order in which a java.util.HashSet made for `capacity` entries gives them."""
    size = 1
    while size < max(capacity, 1):
        size *= 2
    return [urls[i] for i in hash_map_order([string_hash(url) for url in urls], size)]
