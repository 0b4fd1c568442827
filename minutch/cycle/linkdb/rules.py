"""Decides which links count, and under which names.

    linkdb.ignore.internal.links   links within a host don't count (true unless set)
    linkdb.ignore.external.links   links between hosts don't count; ignored unless internal ones
                                   count
    linkdb.max.anchor.length       longer anchors are cut (UTF-16 units)

then URL normalizers (scope `linkdb`) and filters. Where hosts are compared, what is no URL is
ignored.

Source: org.apache.nutch.crawl.LinkDb.LinkDbMapper, LinkDbFilter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.conf import Configuration, Settings, prop
from minutch.job import Counters
from minutch.kernels import inlinks as inlinks_kernels
from minutch.kernels.arrow import from_series
from minutch.plugin.chains import SCOPE_LINKDB, URLFilters, URLNormalizers
from minutch.plugin.columns import by_distinct
from minutch.plugin.urlrules import UrlShortcut
from minutch.urls.hostcolumns import host_names
from minutch.work.tables.frame import by_runs, decode_keys, encode_keys

SCOPE_PROPERTY: Final = "linkdb.url.normalizer.scope"

READ: Final = "links read"
INTERNAL: Final = "internal links ignored"
EXTERNAL: Final = "external links ignored"
MALFORMED: Final = "links from or to what is no URL ignored"
REJECTED: Final = "links rejected by normalizers or filters"

Hosts = NDArray[np.int8]

LINKS_SCHEMA: Final = pl.Schema(
    {"key": pl.Binary(), "from_url": pl.Binary(), "anchor": pl.Binary()}
)
"""Links on their way into a LinkDb: INLINKS_SCHEMA without metadata and nulls."""


class UrlChain:
    """Normalizers and filters for both URLs of a link; without either all links pass."""

    def __init__(
        self, normalizers: URLNormalizers | None = None, filters: URLFilters | None = None
    ) -> None:
        self._normalizers = normalizers
        self._filters = filters
        self._shortcut = UrlShortcut(normalizers, filters)

    @classmethod
    def from_conf(
        cls, conf: Configuration, *, normalize: bool, filtering: bool, scope: str = ""
    ) -> UrlChain:
        """Builds the configured plugins; `scope` is the normalizers', by default the LinkDb's."""
        scope = scope or conf.get(SCOPE_PROPERTY) or SCOPE_LINKDB
        return cls(
            URLNormalizers(conf, scope) if normalize else None,
            URLFilters(conf) if filtering else None,
        )

    @property
    def normalizes(self) -> bool:
        """True if URLs may change."""
        return self._normalizers is not None

    def apply(
        self,
        links: pl.DataFrame,
        counters: Counters,
        *,
        page: str = "from_url",
        target: str = "key",
    ) -> pl.DataFrame:
        """Returns the links whose URLs both pass, under their new names; a page's are together."""
        # Also saves READ's sibling: nothing is said to be rejected where nobody was asked.
        if self._normalizers is None and self._filters is None:
            return links
        # A page has some dozens of links, whose `from_url` is its own.
        changed = links.with_columns(self._pass(links[target]), by_runs(links[page], self._pass))
        kept = changed.drop_nulls([page, target])
        counters.add(REJECTED, len(links) - len(kept))
        return kept

    def _pass(self, column: pl.Series) -> pl.Series:
        passed, _ = self._shortcut.settle(
            decode_keys(column), lambda asked: by_distinct(asked, self._judged)
        )
        return encode_keys(passed)

    def _judged(self, urls: pl.Series) -> pl.Series:
        """Returns the URLs that pass under their new names, null for others."""
        if self._normalizers is not None:
            urls = self._normalizers.normalize_column(urls, distinct=True)
        return urls if self._filters is None else self._filters.filter_column(urls, distinct=True)


@dataclass(frozen=True, slots=True)
class LinkRules(Settings):
    """Decides which outlinks of pages become inlinks."""

    chain: UrlChain
    ignore_internal: bool = prop("linkdb.ignore.internal.links")
    """Whether links within a host don't count."""
    ignore_external: bool = prop("linkdb.ignore.external.links")
    """Whether links between hosts don't count."""
    max_anchor: int = prop("linkdb.max.anchor.length")
    """UTF-16 units of an anchor, at most."""

    @property
    def unwanted(self) -> int:
        """The comparison (`inlinks.compare_hosts`) for links that don't count; UNKNOWN: all do."""
        # LinkDbMapper looks at external links in an `else`.
        if self.ignore_internal:
            return inlinks_kernels.SAME
        return inlinks_kernels.DIFFERENT if self.ignore_external else inlinks_kernels.UNKNOWN

    def apply(self, outlinks: pl.DataFrame, counters: Counters) -> pl.DataFrame:
        """Returns the links that count of a table of OUTLINKS_SCHEMA, the other way round
        (LINKS_SCHEMA), in their order.
        """
        links = outlinks.select(key="to_url", from_url="key", anchor="anchor")
        if self.unwanted == inlinks_kernels.UNKNOWN:
            return self.choose(
                links,
                # Never looked at: `choose` compares no hosts here.
                np.full(len(links), inlinks_kernels.DIFFERENT, np.int8),
                len(links),
                0,
                counters,
            )
        return self.choose(
            links, _compared(links["from_url"], links["key"]), len(links), 0, counters
        )

    def choose(
        self, links: pl.DataFrame, hosts: Hosts, read: int, left_out: int, counters: Counters
    ) -> pl.DataFrame:
        """Returns the `links` (LINKS_SCHEMA) that count, in their order, by how their hosts
        compare.

        `read` links were read, of which `left_out` are left out already.
        """
        counters.add(READ, read)
        if self.unwanted != inlinks_kernels.UNKNOWN:
            links = self._by_hosts(links, hosts, left_out, counters)
        return self.chain.apply(
            links.with_columns(_cut(links["anchor"], self.max_anchor)), counters
        )

    def _by_hosts(
        self, links: pl.DataFrame, hosts: Hosts, left_out: int, counters: Counters
    ) -> pl.DataFrame:
        unknown = np.flatnonzero(hosts == inlinks_kernels.UNKNOWN)
        if len(unknown):
            rows = links[unknown]
            same = _same_host_parsed(rows["from_url"], rows["key"])
            hosts = hosts.copy()
            hosts[unknown] = same.cast(pl.Int8).fill_null(inlinks_kernels.UNKNOWN).to_numpy()
        # LinkDbMapper leaves out a link with `toHost == null` either way.
        malformed = hosts == inlinks_kernels.UNKNOWN
        unwanted = hosts == self.unwanted
        counters.add(
            INTERNAL if self.ignore_internal else EXTERNAL,
            left_out + int(np.count_nonzero(unwanted)),
        )
        counters.add(MALFORMED, int(np.count_nonzero(malformed)))
        leaves = malformed | unwanted
        return links.filter(pl.Series(~leaves)) if leaves.any() else links


def _compared(pages: pl.Series, targets: pl.Series) -> Hosts:
    """Compares the hosts of the two ends of each link, where they are plain."""
    found = np.empty(len(pages), np.int8)
    from_strings, to_strings = from_series(pages), from_series(targets)
    inlinks_kernels.compare_hosts(from_strings.column, to_strings.column, found)
    return found


def _same_host_parsed(pages: pl.Series, targets: pl.Series) -> pl.Series:
    """Returns True for each link that stays on its page's host, by the full parser of URLs; null
    where the target is no URL.
    """
    page, target = (host_names(decode_keys(urls)) for urls in (pages, targets))
    # A page that is no URL has the host null, which no target's equals.
    return pl.select(pl.when(target.is_not_null()).then(page.eq_missing(target))).to_series()


def _cut(anchors: pl.Series, length: int) -> pl.Series:
    """Returns anchors of at most `length` UTF-16 units; a cut pair becomes a question mark."""
    # UTF-8 has at least a byte for each unit of UTF-16.
    too_long = (anchors.bin.size() > length).arg_true()
    if not len(too_long):
        return anchors
    cut = [
        # String.substring in LinkDbMapper counts so, and may cut a pair in two.
        text.encode("utf-16-le")[: 2 * max(length, 0)]
        for text in decode_keys(anchors.gather(too_long))
    ]
    return anchors.scatter(too_long, pl.Series([_decoded(units) for units in cut], dtype=pl.Binary))


def _decoded(units: bytes) -> bytes:
    """UTF-16 as UTF-8; Text writes a lone surrogate as a question mark."""
    return units.decode("utf-16-le", "surrogatepass").encode("utf-8", "replace")
