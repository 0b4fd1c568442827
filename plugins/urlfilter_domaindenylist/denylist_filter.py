"""urlfilter-domaindenylist: rejects URLs whose host, domain or public suffix is listed
(domaindenylist-urlfilter.txt).

Malformed URLs are rejected. Properties: urlfilter.domaindenylist.rules (inline),
urlfilter.domaindenylist.file.
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


class DomainDenylistURLFilter(URLFilter):
    """org.apache.nutch.urlfilter.domaindenylist.DomainDenylistURLFilter."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        text = rules_text(
            conf, "urlfilter.domaindenylist.rules", "urlfilter.domaindenylist.file", parameters
        )
        self.denied = HostList(text or "")
        self.source = rule_place(conf, "urlfilter.domaindenylist", parameters)

    def filter(self, url: str) -> str | None:
        # Not `not`: None is a malformed URL, which is rejected.
        return url if self.denied.has(url) is False else None

    def explain(self, url: str) -> str:
        return self.denied.explain(url, self.source)

    def filter_column(self, urls: pl.Series) -> pl.Series:
        return self.denied.choose(urls, listed=False)
