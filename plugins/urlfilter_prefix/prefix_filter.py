"""urlfilter-prefix: accepts only URLs that start with one of the listed prefixes
(prefix-urlfilter.txt).

Lines that start with `#` or a blank are comments. Without the file every URL is rejected.
Properties: urlfilter.prefix.rules (inline), urlfilter.prefix.file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from minutch.conf import Configuration
from minutch.plugin.columns import keep
from minutch.plugin.points import URLFilter
from minutch.urls.rules import allowing_rules, rule_lines, rule_place

if TYPE_CHECKING:
    import polars as pl


class PrefixURLFilter(URLFilter):
    """org.apache.nutch.urlfilter.prefix.PrefixURLFilter."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        text = allowing_rules(conf, "urlfilter.prefix.rules", "urlfilter.prefix.file", parameters)
        numbered = enumerate(rule_lines(text), 1)
        self.lines = {number: line for number, line in numbered if line and line[0] not in " #"}
        self.prefixes = tuple(self.lines.values())
        self.source = rule_place(conf, "urlfilter.prefix", parameters)

    def filter(self, url: str) -> str | None:
        # An empty tuple: no URL does, as with Nutch's empty trie.
        return url if url.startswith(self.prefixes) else None

    def explain(self, url: str) -> str:
        found = next(
            (number for number, prefix in self.lines.items() if url.startswith(prefix)), None
        )
        return (
            f"{self.source}: no prefix fits"
            if found is None
            else f"{self.source}:{found}: {self.lines[found]}"
        )

    def filter_column(self, urls: pl.Series) -> pl.Series:
        import polars as pl

        if not self.prefixes:
            return pl.Series(urls.name, [None], dtype=pl.String).new_from_index(0, len(urls))
        first, *others = self.prefixes
        accepted = urls.str.starts_with(first)
        for prefix in others:
            accepted |= urls.str.starts_with(prefix)
        return keep(urls, accepted)
