"""Applies rules of `+` and `-` patterns to a whole column of URLs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from minutch.plugin.columns import domain_column, host_column
from minutch.urls.javaregex import LINE_ENDS

if TYPE_CHECKING:
    from .rules import RegexRule, RuleFilter

_ODD = f"{LINE_ENDS[:-1]}\U00010000-\U0010ffff]"
_ODD_ASCII = "[\n\r]"
"""Characters on which the engines disagree: line ends, and those that are two in Java."""


def accepted(rules: RuleFilter, urls: pl.Series) -> pl.Series:
    """Returns for each URL whether it passes (or null). Unusual ones take the row method."""
    plain = (~_is_odd(urls)).fill_null(False)
    if plain.all():
        return _Column(rules, urls).decide()
    odd = urls.filter(~plain)
    verdicts = pl.Series(
        [None if url is None else rules.verdict(url) for url in odd], dtype=pl.Boolean
    )
    decided = _Column(rules, urls.filter(plain)).decide()
    # Back into the order of the column.
    order = pl.concat([plain.arg_true(), (~plain).arg_true()]).arg_sort()
    return pl.concat([decided, verdicts]).gather(order)


def explained(rules: RuleFilter, urls: pl.Series) -> pl.Series:
    """Returns the rule that decides about each URL. Unusual ones take the row method."""
    reasons = pl.repeat(None, len(urls), dtype=pl.String, eager=True)
    plain = (~_is_odd(urls)).arg_true()
    for rule, matched in _Column(rules, urls.gather(plain)).matches():
        reasons = reasons.scatter(plain.filter(matched), rules.words(rule))
    others = reasons.is_null().arg_true()
    return reasons.scatter(others, [rules.explain(url) for url in urls.gather(others)])


def _is_odd(urls: pl.Series) -> pl.Series:
    odd = urls.str.contains(_ODD_ASCII)
    # Nearly all URLs are ASCII, for which two characters are looked for instead of many.
    wide = (urls.str.len_bytes() > urls.str.len_chars()).arg_true()
    if not len(wide):
        return odd
    return odd.scatter(wide, urls.gather(wide).str.contains(_ODD))


class _Column:
    """Applies rules one after the other to the URLs that are still undecided."""

    def __init__(self, rules: RuleFilter, urls: pl.Series) -> None:
        self.rules = rules
        self.urls = urls
        self.nothing = pl.repeat(False, len(urls), eager=True)
        self.open = ~self.nothing
        self.hosts = host_column(urls).str.to_lowercase() if rules.has_sites else None
        self.domains = None if self.hosts is None else domain_column(self.hosts)

    def decide(self) -> pl.Series:
        passed = self.nothing
        for rule, matched in self.matches():
            if rule.accept:
                passed |= matched
        return passed

    def matches(self) -> Iterator[tuple[RegexRule, pl.Series]]:
        """Yields each rule with the mask of the URLs that it decides about."""
        for rule in self.rules.rules:
            matched = self._matched(rule, self.open & self._in_place(rule))
            self.open &= ~matched
            yield rule, matched

    def _in_place(self, rule: RegexRule) -> pl.Series:
        if rule.site is None or self.hosts is None or self.domains is None:
            return self.open
        return ((self.hosts == rule.site) | (self.domains == rule.site)).fill_null(False)

    def _matched(self, rule: RegexRule, due: pl.Series) -> pl.Series:
        """Returns which of the remaining URLs match; where Polars can't decide, each URL that may
        match is searched by itself.
        """
        matcher = rule.matcher
        decided = matcher.search_column(self.urls)
        if decided is not None:
            return due & decided
        if matcher.superset is None and matcher.needs is not None:
            # `.*(/[^/]+)/[^/]+\1/[^/]+\1/` wants so many slashes: most URLs are not searched at
            # all.
            due &= self.urls.str.count_matches(matcher.needs[0], literal=True) >= matcher.needs[1]
        where = due.arg_true()
        candidates = self.urls.gather(where)
        if matcher.superset is not None:
            # A pattern without what Rust's engine lacks (back-references), which matches that much
            # or more.
            possible = candidates.str.contains(matcher.superset)
            where, candidates = where.filter(possible), candidates.filter(possible)
        verdicts = [self._asked(rule, url) for url in candidates]
        # Timed out: rejected, and no later rule accepts it.
        self._close(
            where.filter(pl.Series([verdict is None for verdict in verdicts], dtype=pl.Boolean))
        )
        return self._mask(
            where.filter(pl.Series([verdict is True for verdict in verdicts], dtype=pl.Boolean))
        )

    def _close(self, where: pl.Series) -> None:
        """Marks URLs as rejected."""
        self.open &= ~self._mask(where)

    def _mask(self, where: pl.Series) -> pl.Series:
        return self.nothing.clone().scatter(where, True) if len(where) else self.nothing

    def _asked(self, rule: RegexRule, url: str) -> bool | None:
        """Returns whether the rule matches a URL; None if that took too long."""
        try:
            return rule.matcher.search(url)
        except TimeoutError:
            self.rules.note_timeout(rule, url)
            return None
