"""urlfilter-automaton: applies `+` and `-` rules whose patterns match whole URLs in linear time
(automaton-urlfilter.txt).

Properties: urlfilter.automaton.rules (inline), urlfilter.automaton.file.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from minutch.plugin.points import URLFilter
from minutch.urls.javaregex import is_too_large
from minutch.urls.javaregex.derivative import Automaton, Complement, Intersection, Pattern, whole
from minutch.urls.javaregex.tree import Alternation, Anchor, Node, Repeat, Sequence, Tree
from minutch.urls.javaregex.writer import write_rust
from minutch.urls.rules import Verdicts, file_name, rule_place

from ..lib_regex_filter.rules import RuleFilter
from .syntax import parse_pattern

if TYPE_CHECKING:
    import polars as pl


class AutomatonMatcher:
    """One pattern: by its automaton for a URL; for columns by Polars' engine where the pattern is a
    plain one.
    """

    needs = None
    is_loop_rule = False

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._tree = parse_pattern(pattern)
        self._automaton = Automaton(self._tree)

    def search(self, text: str, /) -> bool:
        return self._automaton.matches(text)

    @cached_property
    def superset(self) -> str | None:
        """A pattern for Polars that matches the same strings."""
        if not _is_plain(self._tree):
            return None
        whole = Sequence((Anchor("A"), self._tree, Anchor("z")))  # type: ignore[arg-type]
        text, _ = write_rust(Tree(whole, 0, {}))
        return None if is_too_large(text) else text

    @property
    def found_in(self) -> tuple[Pattern, bool]:
        """The pattern itself, as it has to match all of a URL."""
        return whole(self._tree), True

    def search_column(self, urls: pl.Series, /) -> pl.Series | None:
        return None if self.superset is None else urls.str.contains(self.superset)


def _is_plain(node: Pattern | Node) -> bool:
    """Returns True if an expression has no complement and no intersection."""
    if isinstance(node, Complement | Intersection):
        return False
    if isinstance(node, Repeat):
        return _is_plain(node.item)
    parts = (
        node.items
        if isinstance(node, Sequence)
        else node.choices
        if isinstance(node, Alternation)
        else ()
    )
    return all(map(_is_plain, parts))


class AutomatonURLFilter(RuleFilter, URLFilter):
    """org.apache.nutch.urlfilter.automaton.AutomatonURLFilter."""

    def rule_text(self) -> str:
        inline = self.conf.get("urlfilter.automaton.rules")
        return (
            self.conf.read_resource(file_name(self.conf, "urlfilter.automaton.file"))
            if inline is None
            else inline
        )

    def rule_source(self) -> str:
        return rule_place(self.conf, "urlfilter.automaton")

    def compile(self, pattern: str) -> AutomatonMatcher:
        return AutomatonMatcher(pattern)

    def filter(self, url: str) -> str | None:
        return url if self.verdict(url) else None

    def filter_column(self, urls: pl.Series) -> pl.Series:
        return self.filter_strings(urls)

    def verdicts(self) -> Verdicts:
        return self.sure_verdicts()
