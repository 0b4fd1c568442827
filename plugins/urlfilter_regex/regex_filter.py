"""urlfilter-regex: applies `+` and `-` rules with Java's regular expressions (regex-urlfilter.txt).

Properties: urlfilter.regex.rules (inline), urlfilter.regex.file, urlfilter.regex.seconds (time for
one rule and URL).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minutch.urls.javaregex import JavaRegex

from ..lib_regex_filter.rules import RuleURLFilter

if TYPE_CHECKING:
    import polars as pl


# Applies Nutch's rule against loops without a regular expression: a path segment that recurs at
# every second place.
#
# `(/[^/]+)/[^/]+\1/[^/]+\1/` stands in everybody's regex-urlfilter.txt and is the one rule there
# that needs a backtracking engine; split at its slashes, a URL is judged in a fraction of the
# time.

PATTERNS = frozenset({r"(/[^/]+)/[^/]+\1/[^/]+\1/", r".*(/[^/]+)/[^/]+\1/[^/]+\1/"})
"""The rules that this module implements."""


class SegmentLoop:
    """Matches as one of PATTERNS does."""

    superset = None
    needs = None
    found_in = None
    is_loop_rule = True

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    def search(self, text: str, /) -> bool:
        """Searches for consecutive non-empty segments a, x, a, y, a."""
        parts = text.split("/")
        if len(set(parts)) > len(parts) - 2:
            return False
        return any(
            parts[at]
            and parts[at] == parts[at + 2] == parts[at + 4]
            and parts[at + 1]
            and parts[at + 3]
            for at in range(1, len(parts) - 5)
        )

    def search_column(self, urls: pl.Series, /) -> pl.Series:
        """Returns the same for a column; false for null."""
        import numpy as np
        import polars as pl

        from minutch.kernels.arrow import from_series
        from minutch.kernels.sieve import find_loops

        strings, loops = from_series(urls), np.empty(len(urls), np.bool_)
        find_loops(strings.views, strings.addresses, loops)
        return pl.Series(loops)


class RegexURLFilter(RuleURLFilter):
    """org.apache.nutch.urlfilter.regex.RegexURLFilter."""

    rules_property = "urlfilter.regex.rules"
    file_property = "urlfilter.regex.file"

    def compile(self, pattern: str) -> JavaRegex | SegmentLoop:
        if pattern in PATTERNS:
            return SegmentLoop(pattern)
        return JavaRegex(pattern, self.conf.get_float("urlfilter.regex.seconds"))
