"""Filters by a list of patterns, the first that matches decides; the format of regex-urlfilter.txt.

    file     = *( rule | block | end | comment )
    rule     = ( "+" | "-" ) pattern      accept, reject
    block    = ">" host-or-domain         the rules from here on are for this host or domain only
    end      = "<" anything               … up to here
    comment  = "" | ( "#" | " " ) anything

No match at all rejects. Followed: RegexURLFilterBase of Nutch's lib-regex-filter. Unlike it, a pattern that takes too
long on a URL rejects that URL, with a warning for the first and a count (`timeouts`).
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import polars as pl

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.plugin.points import ExtensionBase
from minutch.urls.columns import domain_column, host_column, patch
from minutch.urls.domains import domain_of
from minutch.urls.javaregex import LINE_ENDS
from minutch.urls.parts import host_of
from minutch.urls.rulefiles import rule_lines

log = logging.getLogger(__name__)


class Matcher(Protocol):
    """One pattern; see `minutch.urls.javaregex.JavaRegex`."""

    @property
    def pattern(self) -> str: ...

    @property
    def needs(self) -> tuple[str, int] | None: ...

    @property
    def superset(self) -> str | None: ...

    @property
    def is_exact(self) -> bool: ...

    def search(self, text: str, /) -> bool: ...


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the file; `place` is the host or domain of its block."""

    accept: bool
    matcher: Matcher
    place: str | None


class RuleFilter(ExtensionBase):
    """Base of the filters; a subclass says where the rules are and what a pattern is."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.rules = self.read_rules(self.rule_text())
        self.has_places = any(rule.place is not None for rule in self.rules)
        self.timeouts = 0

    @abstractmethod
    def rule_text(self) -> str:
        """The rules of this configuration."""

    @abstractmethod
    def compile(self, pattern: str) -> Matcher:
        """A pattern of the filter's syntax; ConfigError if it is none."""

    def read_rules(self, text: str) -> list[Rule]:
        """The rules of a file's text; ConfigError names the line that is none."""
        rules: list[Rule] = []
        place: str | None = None
        for number, line in enumerate(rule_lines(text), 1):
            sign = line[:1]
            if sign == ">":
                place = line[1:].strip()
            elif sign == "<":
                place = None
            elif sign and sign in "+-":
                rules.append(Rule(sign == "+", self._compiled(line[1:], number), place))
            elif sign not in ("", " ", "#"):
                raise ConfigError(f"{type(self).__name__}, rule line {number}: has to start with + - # > or <: {line}")
        return rules

    def _compiled(self, pattern: str, number: int) -> Matcher:
        try:
            return self.compile(pattern)
        except ConfigError as exc:
            raise ConfigError(f"{type(self).__name__}, rule line {number}: {exc}") from exc

    def verdict(self, url: str) -> bool:
        """Whether the URL passes."""
        host = domain = None
        if self.has_places:
            host = host_of(url)
            domain = None if host is None else domain_of(host)
        for rule in self.rules:
            if rule.place is not None and rule.place not in (host, domain):
                continue
            try:
                if rule.matcher.search(url):
                    return rule.accept
            except TimeoutError:
                return self._timed_out(rule, url)
        return False

    def _timed_out(self, rule: Rule, url: str) -> bool:
        self.timeouts += 1
        report = log.warning if self.timeouts == 1 else log.debug
        report("%s: rule %s took too long, rejected: %s", type(self).__name__, rule.matcher.pattern, url)
        return False

    def verdict_column(self, urls: pl.Series) -> pl.Series:
        """The same for a column: a Boolean for each URL, null for null."""
        plain = ~urls.str.contains(LINE_ENDS)
        if not plain.all():
            return _by_rows(urls, plain, self)
        return _Column(self, urls).decide()


def _by_rows(urls: pl.Series, plain: pl.Series, filter_: RuleFilter) -> pl.Series:
    """Columns with URLs that hold line ends, or with nulls: those alone row by row."""
    plain = plain.fill_null(False)
    verdicts = [None if url is None else filter_.verdict(url) for url in urls.filter(~plain)]
    result = pl.Series(urls.name, [None], dtype=pl.Boolean).new_from_index(0, len(urls))
    result = result.scatter((~plain).arg_true(), pl.Series(verdicts, dtype=pl.Boolean))
    if not plain.any():
        return result
    return result.scatter(plain.arg_true(), filter_.verdict_column(urls.filter(plain)))


class _Column:
    """Rules applied to a column of plain URLs, one after the other, to those that are still open."""

    def __init__(self, filter_: RuleFilter, urls: pl.Series) -> None:
        self.filter = filter_
        self.urls = urls
        self.accepted = pl.Series(urls.name, [False]).new_from_index(0, len(urls))
        self.open = ~self.accepted
        self.hosts = host_column(urls) if filter_.has_places else None
        self.domains = None if self.hosts is None else domain_column(self.hosts)

    def decide(self) -> pl.Series:
        for rule in self.filter.rules:
            due = self.open & self._in_place(rule)
            matched = self._matched(rule, due)
            self.open &= ~matched
            if rule.accept:
                self.accepted |= matched
        return self.accepted

    def _in_place(self, rule: Rule) -> pl.Series:
        if rule.place is None or self.hosts is None or self.domains is None:
            return self.open
        return ((self.hosts == rule.place) | (self.domains == rule.place)).fill_null(False)

    def _matched(self, rule: Rule, due: pl.Series) -> pl.Series:
        """Which of the due URLs match; where the column's pattern says too much, each is asked again."""
        matcher = rule.matcher
        if matcher.is_exact:
            return due & self.urls.str.contains(str(matcher.superset))
        if matcher.needs is not None:
            due &= self.urls.str.count_matches(matcher.needs[0], literal=True) >= matcher.needs[1]
        where = due.arg_true()
        candidates = self.urls.gather(where)
        if matcher.superset is not None:
            possible = candidates.str.contains(matcher.superset)
            where, candidates = where.filter(possible), candidates.filter(possible)
        return self._asked_again(rule, where, candidates)

    def _asked_again(self, rule: Rule, where: pl.Series, candidates: pl.Series) -> pl.Series:
        verdicts: list[Any] = []
        for index, url in zip(where, candidates, strict=True):
            try:
                verdicts.append(rule.matcher.search(url))
            except TimeoutError:
                self.filter._timed_out(rule, url)
                self.open[index] = False
                verdicts.append(False)
        nothing = pl.Series([False]).new_from_index(0, len(self.urls))
        return nothing.scatter(where, pl.Series(verdicts, dtype=pl.Boolean)) if verdicts else nothing


def keep(urls: pl.Series, accepted: pl.Series) -> pl.Series:
    """The accepted URLs, null for the others."""
    return patch(urls, ~accepted.fill_null(True), [None] * int((~accepted.fill_null(True)).sum()))
