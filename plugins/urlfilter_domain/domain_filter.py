"""urlfilter-domain: accepts only URLs whose host, domain or public suffix is listed
(domain-urlfilter.txt); without a list, all.

Properties: urlfilter.domain.rules (inline), urlfilter.domain.file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from minutch.conf import Configuration
from minutch.plugin.points import URLFilter
from minutch.urls.rules import rule_place, rules_text

from ..lib_host_lists.hostlist import HostList

if TYPE_CHECKING:
    import polars as pl


class DomainURLFilter(URLFilter):
    """org.apache.nutch.urlfilter.domain.DomainURLFilter."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        text = rules_text(conf, "urlfilter.domain.rules", "urlfilter.domain.file", parameters)
        self.allowed = HostList(text or "")
        self.source = rule_place(conf, "urlfilter.domain", parameters)

    def filter(self, url: str) -> str | None:
        # An empty list would reject all: the file as it is shipped has no name in it.
        return url if not self.allowed or self.allowed.has(url) else None

    def explain(self, url: str) -> str:
        return (
            self.allowed.explain(url, self.source)
            if self.allowed
            else f"{self.source}: no names, all pass"
        )

    def filter_column(self, urls: pl.Series) -> pl.Series:
        return self.allowed.choose(urls, listed=True) if self.allowed else urls
