"""urlnormalizer-regex: applies replacements by Java's regular expressions, in order
(regex-normalize.xml).

    <regex-normalize>
      <regex><pattern>…</pattern><substitution>…</substitution></regex> …
    </regex-normalize>

Properties: urlnormalizer.regex.rules (the XML itself), urlnormalizer.regex.file,
urlnormalizer.regex.file.SCOPE (rules for one scope; without it the default ones),
urlnormalizer.regex.seconds (time for one rule and URL).

Source: org.apache.nutch.net.urlnormalizer.regex.RegexURLNormalizer. A file that can't be read gives
no rules and a warning; a malformed rule is skipped. Unlike it, a rule that takes too long on a URL
drops that URL.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from xml.etree import ElementTree
from xml.parsers import expat

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.plugin.columns import map_strings, rewrite
from minutch.plugin.points import URLNormalizer
from minutch.urls.javaregex import LINE_ENDS, JavaRegex, Replacement, is_too_large
from minutch.urls.javaregex.derivative import NOTHING, Complement
from minutch.urls.javaregex.tree import Alternation
from minutch.urls.rules import Untouched

if TYPE_CHECKING:
    import polars as pl

    from minutch.urls.javaregex.derivative import Pattern

log = logging.getLogger(__name__)

_FRAGMENT = r"#.*?(\?|&|$)"
_SLASHES = r"(?<!:)/{2,}"
"""Two rules of Nutch's file: `$1` takes the place of a match, and `/`."""
_FRAGMENT_WITH_QUERY = JavaRegex("#.*[?&]")


@dataclass(frozen=True, slots=True)
class SubstitutionRule:
    regex: JavaRegex
    replacement: Replacement


class ScopeRules:
    """The rules of one scope; `places` say where each stands."""

    def __init__(self, rules: list[SubstitutionRule], places: Sequence[str] = ()) -> None:
        self.rules, self.places = rules, places

    def apply(self, url: str) -> str:
        """Returns the URL after all replacements. Raises TimeoutError."""
        for rule in self.rules:
            url = rule.regex.replace_all(url, rule.replacement)
        return url

    @cached_property
    def touches(self) -> list[str] | None:
        """Returns patterns for Polars: a URL that none matches is unchanged. None without any."""
        parts = [rule.regex.superset for rule in self.rules]
        if None in parts:
            return None
        union = "|".join(f"(?:{part})" for part in parts)
        # One automaton for all rules, unless Polars refuses it.
        return [part for part in parts if part is not None] if is_too_large(union) else [union]


class RegexURLNormalizer(URLNormalizer):
    """Rewrites URLs by rules."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.seconds = conf.get_float("urlnormalizer.regex.seconds")
        self.default = self._default()
        self.timeouts = 0
        self._scoped: dict[str, ScopeRules] = {}

    def _default(self) -> ScopeRules:
        inline = self.conf.get("urlnormalizer.regex.rules")
        if inline is not None:
            return self._read(inline, "urlnormalizer.regex.rules")
        return self._read_file(self.conf.get_text("urlnormalizer.regex.file")) or ScopeRules([])

    def rules(self, scope: str) -> ScopeRules:
        """Returns the rules of a scope: its own, else the default ones."""
        if scope not in self._scoped:
            name = self.conf.get(f"urlnormalizer.regex.file.{scope}")
            own = self._read_file(name) if name is not None else None
            # RegexURLNormalizer: a file without a rule is as none.
            self._scoped[scope] = own if own is not None and own.rules else self.default
        return self._scoped[scope]

    def _read_file(self, name: str) -> ScopeRules | None:
        try:
            return self._read(self.conf.read_resource(name), name)
        except ConfigError as exc:
            log.warning("urlnormalizer-regex: no rules: %s", exc)
            return None

    def _read(self, text: str, where: str) -> ScopeRules:
        try:
            root = ElementTree.fromstring(text)
        except ElementTree.ParseError as exc:
            log.error("urlnormalizer-regex: %s is not XML, no rules: %s", where, exc)
            return ScopeRules([])
        named = self.conf.resource(where) or where
        rules, places = [], []
        for element, line in zip(root, _lines(text), strict=True):
            if (rule := self._rule(element, where)) is not None:
                rules.append(rule)
                places.append(f"{named}:{line}")
        return ScopeRules(rules, places)

    def _rule(self, element: ElementTree.Element, where: str) -> SubstitutionRule | None:
        """Returns one rule; None if a part is missing or wrong. An empty element of any name is an
        empty substitution.
        """
        pattern = substitution = None
        for field in element:
            # RegexURLNormalizer.readConfiguration does not look at the name then.
            if field.text is None:
                substitution = ""
            elif field.tag == "pattern":
                pattern = field.text
            elif field.tag == "substitution":
                substitution = field.text
        if pattern is None or substitution is None:
            return None
        try:
            regex = JavaRegex(pattern, self.seconds)
            return SubstitutionRule(regex, regex.replacement(substitution))
        except ConfigError as exc:
            log.error("urlnormalizer-regex: rule of %s left out: %s", where, exc)
            return None

    def normalize(self, url: str, scope: str) -> str | None:
        return self._apply(self.rules(scope), url)

    def explain(self, url: str, scope: str) -> str:
        rules, changing = self.rules(scope), []
        with suppress(TimeoutError):
            for rule, place in zip(rules.rules, rules.places, strict=True):
                before, url = url, rule.regex.replace_all(url, rule.replacement)
                changing += [place] if url != before else []
        return ", ".join(changing)

    def _apply(self, rules: ScopeRules, url: str) -> str | None:
        try:
            return rules.apply(url)
        except TimeoutError:
            self.timeouts += 1
            report = log.warning if self.timeouts == 1 else log.debug
            report("urlnormalizer-regex: a rule took too long, dropped: %s", url)
            return None

    def normalize_column(self, urls: pl.Series, scope: str) -> pl.Series:
        """Calls the row method if a rule may match."""
        rules = self.rules(scope)
        patterns = rules.touches
        if patterns is None:
            return map_strings(urls, lambda url: self._apply(rules, url))
        # There Java's `.` and `$` mean something else.
        touched = urls.str.contains(LINE_ENDS)
        for pattern in patterns:
            touched |= urls.str.contains(pattern)
        return rewrite(urls, touched, lambda url: self._apply(rules, url))

    def untouched(self, scope: str) -> Untouched | None:
        """Uses the patterns. One of Nutch's rules drops fragments, the last empty segments."""
        touched: Pattern = NOTHING
        rules = self.rules(scope).rules
        collapses = rules and _is(rules[-1], _SLASHES, "/")
        for rule in rules[:-1] if collapses else rules:
            found = (
                _FRAGMENT_WITH_QUERY.found_in if _is(rule, _FRAGMENT, "$1") else rule.regex.found_in
            )
            if found is None:
                return None
            touched = Alternation((touched, found[0]))  # type: ignore[arg-type]
        cuts = any(_is(rule, _FRAGMENT, "$1") for rule in rules)
        if not collapses:
            return Untouched(touched=touched, cuts=cuts)
        slashes = rules[-1].regex.found_in
        assert slashes is not None
        return Untouched(Complement(slashes[0]), touched, cuts, collapses=True)


def _lines(text: str) -> list[int]:
    """Returns the line on which each element within the root begins."""
    lines, depth, parser = [], 0, expat.ParserCreate()

    def start(_: str, __: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth == 2:  # within the root
            lines.append(parser.CurrentLineNumber)

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.Parse(text, True)
    return lines


def _is(rule: SubstitutionRule, pattern: str, substitution: str) -> bool:
    return (rule.regex.pattern, rule.replacement.text) == (pattern, substitution)
