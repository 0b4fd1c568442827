"""urlfilter-regex: applies `+` and `-` rules with Java's regular expressions (regex-urlfilter.txt).

Properties: urlfilter.regex.rules (inline), urlfilter.regex.file, urlfilter.regex.seconds (time for
one rule and URL).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minutch.plugin.points import URLFilter
from minutch.urls.javaregex import JavaRegex
from minutch.urls.rules import Verdicts, file_name, rule_place

from ..lib_regex_filter.rules import RuleFilter
from .segment_loop import PATTERNS, SegmentLoop

if TYPE_CHECKING:
    import polars as pl


class RegexURLFilter(RuleFilter, URLFilter):
    """org.apache.nutch.urlfilter.regex.RegexURLFilter."""

    def rule_text(self) -> str:
        inline = self.conf.get("urlfilter.regex.rules")
        return (
            self.conf.read_resource(file_name(self.conf, "urlfilter.regex.file"))
            if inline is None
            else inline
        )

    def rule_source(self) -> str:
        return rule_place(self.conf, "urlfilter.regex")

    def compile(self, pattern: str) -> JavaRegex | SegmentLoop:
        if pattern in PATTERNS:
            return SegmentLoop(pattern)
        return JavaRegex(pattern, self.conf.get_float("urlfilter.regex.seconds"))

    def filter(self, url: str) -> str | None:
        return url if self.verdict(url) else None

    def filter_column(self, urls: pl.Series) -> pl.Series:
        return self.filter_strings(urls)

    def verdicts(self) -> Verdicts:
        return self.sure_verdicts()
