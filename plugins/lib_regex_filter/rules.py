"""Filters URLs by a list of patterns, of which the first match decides; the format of
regex-urlfilter.txt.

    file     = *( rule | block | end | comment )
    rule     = ( "+" | "-" ) pattern      accept, reject
    block    = ">" host-or-domain         the rules from here on are for this host or domain only
    end      = "<" anything               … up to here
    comment  = "" | ( "#" | " " ) anything

A URL that nothing matches is rejected. Unlike in Nutch, a pattern that takes too long on a URL
rejects that URL, with a warning for the first and a count (`timeouts`). Source: RegexURLFilterBase
of Nutch's lib-regex-filter.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.plugin.columns import keep
from minutch.plugin.extension import ExtensionBase
from minutch.plugin.points import URLFilter
from minutch.urls.domains import domain_of
from minutch.urls.javaregex.derivative import ANYTHING, NOTHING, Complement, Intersection, Pattern
from minutch.urls.javaregex.tree import Alternation
from minutch.urls.parts import host_of
from minutch.urls.rules import Verdicts, file_name, rule_lines, rule_place

if TYPE_CHECKING:
    import polars as pl

log = logging.getLogger(__name__)

_MOST_SAID: Final = 64
"""Rules of which one strict pattern is made; of URLs that get beyond, nothing is said."""


class Matcher(Protocol):
    """One pattern; see `minutch.urls.javaregex.JavaRegex`."""

    is_loop_rule: bool
    """True if it matches URLs in which a segment recurs at every second place."""

    @property
    def pattern(self) -> str: ...

    @property
    def needs(self) -> tuple[str, int] | None: ...

    @property
    def superset(self) -> str | None: ...

    @property
    def found_in(self) -> tuple[Pattern, bool] | None: ...

    def search(self, text: str, /) -> bool: ...

    def search_column(self, urls: pl.Series, /) -> pl.Series | None: ...


@dataclass(frozen=True, slots=True)
class RegexRule:
    """One line of the file; `site` is the host or domain of its block."""

    accept: bool
    matcher: Matcher
    site: str | None
    line: int = 0


class RuleFilter(ExtensionBase):
    """Base of the filters; a subclass supplies the rules and compiles their patterns."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.source = self.rule_source()
        self.rules = self.read_rules(self.rule_text())
        self.has_sites = any(rule.site is not None for rule in self.rules)
        self.timeouts = 0

    @abstractmethod
    def rule_text(self) -> str:
        """Returns the rules of this configuration."""

    def rule_source(self) -> str:
        """Name of the rules' file or property, for messages."""
        return type(self).__name__

    @abstractmethod
    def compile(self, pattern: str) -> Matcher:
        """Compiles a pattern of the filter's syntax. Raises ConfigError if it is malformed."""

    def read_rules(self, text: str) -> list[RegexRule]:
        """Returns the rules of a file's text; ConfigError names the line that is not a rule."""
        rules: list[RegexRule] = []
        site: str | None = None
        for number, line in enumerate(rule_lines(text), 1):
            sign = line[:1]
            # RegexURLFilterBase.readRules: NUTCH-1838's blocks for hosts and domains.
            if sign == ">":
                site = line[1:].strip()
            elif sign == "<":
                site = None
            elif sign and sign in "+-":
                rules.append(RegexRule(sign == "+", self._compiled(line[1:], number), site, number))
            elif sign not in ("", " ", "#"):
                raise ConfigError(
                    f"{self.source}, line {number}: a rule has to start with + - # > or <: {line}"
                )
        return rules

    def _compiled(self, pattern: str, number: int) -> Matcher:
        try:
            return self.compile(pattern)
        except ConfigError as exc:
            raise ConfigError(f"{self.source}, line {number}: {exc}") from exc

    def verdict(self, url: str) -> bool:
        """Returns True if the URL passes."""
        rule = self._deciding(url)
        return rule is not None and rule.accept

    def explain(self, url: str) -> str:
        """Returns the rule that decides about the URL: file, line and pattern."""
        rule = self._deciding(url)
        return f"{self.source}: no rule takes it" if rule is None else self.words(rule)

    def explain_column(self, urls: pl.Series) -> pl.Series:
        """Returns the same for a column."""
        from .columns import explained

        return explained(self, urls)

    def words(self, rule: RegexRule) -> str:
        """Returns file, line and pattern of a rule."""
        return f"{self.source}:{rule.line}: {'+' if rule.accept else '-'}{rule.matcher.pattern}"

    def _deciding(self, url: str) -> RegexRule | None:
        """Returns the first rule that matches; None if none does, or one took too long."""
        host = domain = None
        if self.has_sites:
            host = host_of(url)
            domain = None if host is None else domain_of(host)
        for rule in self.rules:
            if rule.site is not None and rule.site not in (host, domain):
                continue
            try:
                if rule.matcher.search(url):
                    return rule
            except TimeoutError:
                self.note_timeout(rule, url)
                return None
        return None

    def note_timeout(self, rule: RegexRule, url: str) -> None:
        """Counts a rule that took too long."""
        self.timeouts += 1
        # A hostile site has millions of such URLs.
        report = log.warning if self.timeouts == 1 else log.debug
        report(
            "%s: rule %s took too long, rejected: %s",
            type(self).__name__,
            rule.matcher.pattern,
            url,
        )


class RuleURLFilter(RuleFilter, URLFilter):
    """A filter of URLs whose rules stand in a property, or in the file that another one names."""

    rules_property: ClassVar[str]
    file_property: ClassVar[str]

    def rule_text(self) -> str:
        inline = self.conf.get(self.rules_property)
        # Also an empty one: urlfilter.regex.rules comes before the file
        # (RegexURLFilter.getRulesReader).
        if inline is not None:
            return inline
        return self.conf.read_resource(file_name(self.conf, self.file_property))

    def rule_source(self) -> str:
        return rule_place(self.conf, self.rules_property.removesuffix(".rules"))

    def filter(self, url: str) -> str | None:
        return url if self.verdict(url) else None

    def filter_column(self, urls: pl.Series) -> pl.Series:
        from .columns import accepted

        return keep(urls, accepted(self, urls))

    def verdicts(self) -> Verdicts:
        """Returns the verdicts of the rules before the first one that has no strict pattern."""
        accepted: Pattern = NOTHING
        rejected: Pattern = NOTHING
        left: Pattern = ANYTHING
        no_loops = False
        for number, rule in enumerate(self.rules):
            # The automaton of plain URLs has loops by another way: the pattern itself is no regular
            # one.
            if rule.matcher.is_loop_rule and not rule.accept:
                no_loops = True
                continue
            found = rule.matcher.found_in
            if found is None or number == _MOST_SAID:
                return Verdicts(accepted, rejected, no_loops)
            matched, is_exact = found
            # Of a block's rule nothing is said for other hosts: what it matches is only no longer
            # `left`.
            if is_exact and rule.site is None:
                decided = Intersection(left, matched)
                accepted = Alternation((accepted, decided)) if rule.accept else accepted  # type: ignore[arg-type]
                rejected = rejected if rule.accept else Alternation((rejected, decided))  # type: ignore[arg-type]
            left = Intersection(left, Complement(matched))
        return Verdicts(accepted, Alternation((rejected, left)), no_loops)  # type: ignore[arg-type]
