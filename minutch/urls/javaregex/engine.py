"""Regular expressions in Java's syntax and with Java's meaning, bounded in time: what Nutch's rule
files hold.

Three engines share the work. Polars' (Rust, linear) looks at whole columns: `superset` is a pattern
for it that misses nothing. Python's `re` decides where it can't take more than cubic time on a
string of ordinary length. For the rest, the package `regex`, which has a time limit: `search` and
`replace_all` raise TimeoutError.

Source: java.util.regex.Pattern, Matcher.find and Matcher.replaceAll of JDK 17.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from minutch.errors import ConfigError
from minutch.urls.javaregex.derivative import found_in
from minutch.urls.javaregex.syntax import RegexSyntaxError, parse_regex
from minutch.urls.javaregex.tree import Tree, is_tame, required_character, required_literal
from minutch.urls.javaregex.writer import write_python, write_rust

if TYPE_CHECKING:
    import polars as pl

    from minutch.urls.javaregex.derivative import Pattern

LINE_ENDS = "[\n\r\x85\u2028\u2029]"
"""`superset` is not for strings with one of these: dot and dollar have another meaning there."""

_ORDINARY = 4096
"""Characters; longer strings always go to the engine with the time limit."""


class JavaRegex:
    """One compiled pattern; ConfigError if it is not one of Java's.

    `seconds` bounds each match. `needs` is a character and how often every match has it at least,
    or None.
    """

    is_loop_rule = False

    def __init__(self, pattern: str, seconds: float = 1.0) -> None:
        self.pattern = pattern
        self.seconds = seconds
        try:
            self._tree, self._source, is_linear, self.needs, self._literal = _read(pattern)
        except RegexSyntaxError as exc:
            raise ConfigError(str(exc)) from exc
        self._tame = is_linear and self._is_for_re()
        if not self._tame:
            self._patient  # noqa: B018 - a pattern that it can't compile is to be found out now

    def _is_for_re(self) -> bool:
        """Python's `re` takes look-behind of fixed length only."""
        try:
            self._quick  # noqa: B018
        except re.error:
            return False
        return True

    @cached_property
    def _quick(self) -> re.Pattern[str]:
        return re.compile(self._source)

    @cached_property
    def _patient(self) -> Any:
        import regex

        try:
            return regex.compile(self._source)
        except regex.error as exc:
            raise ConfigError(f"regular expression {self.pattern!r}: {exc}") from exc

    @cached_property
    def _rust(self) -> tuple[str, bool] | None:
        """None where Polars can't take it (a pattern that would be too large)."""
        return _in_rust(self.pattern)

    @property
    def superset(self) -> str | None:
        """A pattern for Polars that matches every string (without line ends) that this matches."""
        return None if self._rust is None else self._rust[0]

    @property
    def is_exact(self) -> bool:
        """True if `superset` matches no other strings."""
        return self._rust is not None and self._rust[1]

    @property
    def found_in(self) -> tuple[Pattern, bool] | None:
        """See `derivative.found_in`."""
        return found_in(self._tree)

    def search(self, text: str) -> bool:
        """Returns whether the pattern matches somewhere (Matcher.find). Raises TimeoutError."""
        if self._literal not in text:
            return False
        if self._tame and len(text) <= _ORDINARY:
            return self._quick.search(text) is not None
        # Spares hostile texts the time limit.
        if self.needs is not None and text.count(self.needs[0]) < self.needs[1]:
            return False
        return self._patient.search(text, timeout=self.seconds) is not None

    def search_column(self, texts: pl.Series) -> pl.Series | None:
        """`search` of a column (without line ends) where Polars' pattern decides it, else None."""
        return texts.str.contains(str(self.superset)) if self.is_exact else None

    def matches(self, text: str) -> bool:
        """Returns whether all of `text` matches (Matcher.matches). May raise TimeoutError."""
        if self._tame and len(text) <= _ORDINARY:
            return self._quick.fullmatch(text) is not None
        return self._patient.fullmatch(text, timeout=self.seconds) is not None

    def replace_all(self, text: str, replacement: Replacement, count: int = 0) -> str:
        """Returns all matches replaced, or `count` (Matcher.replaceAll). Raises TimeoutError."""
        if self._literal not in text:
            return text
        if self._tame and len(text) <= _ORDINARY:
            return self._quick.sub(replacement.fill, text, count)
        return str(self._patient.sub(replacement.fill, text, count, timeout=self.seconds))

    def replace_first(self, text: str, replacement: str) -> str:
        """Returns the first match replaced (String.replaceFirst). Raises TimeoutError."""
        return self.replace_all(text, self.replacement(replacement), 1)

    def replacement(self, text: str) -> Replacement:
        """Returns a replacement text: `$1`, `${name}`, a backslash before anything else."""
        return Replacement(text, self._tree.groups, self._tree.names)


@lru_cache(maxsize=256)
def _read(pattern: str) -> tuple[Tree, str, bool, tuple[str, int] | None, str]:
    """What a pattern says: each step of a crawl makes its filters anew, of the same rule files."""
    tree = parse_regex(pattern)
    python, needs = write_python(tree), required_character(tree)
    return tree, python, is_tame(tree), needs, required_literal(tree)


@lru_cache(maxsize=256)
def _in_rust(pattern: str) -> tuple[str, bool] | None:
    text, exact = write_rust(_read(pattern)[0])
    return None if is_too_large(text) else (text, exact)


def is_too_large(rust: str) -> bool:
    """Returns whether Polars refuses a pattern because its automaton would be too large."""
    import polars as pl

    try:
        # Compiled to be found out: the limit is the Rust crate's, in bytes of its automaton.
        pl.Series([""]).str.contains(rust)
    except pl.exceptions.ComputeError:
        return True
    return False


_PART = re.compile(r"\\(.)|\$\{([A-Za-z][A-Za-z0-9]*)\}|\$(\d+)|([^\\$]+)", re.DOTALL)


class Replacement:
    """A parsed replacement text; ConfigError for a group that does not exist."""

    def __init__(self, text: str, groups: int, names: dict[str, int]) -> None:
        self.text = text
        self._parts: list[str | int] = []
        at = 0
        while at < len(text):
            part = _PART.match(text, at)
            if part is None:
                raise ConfigError(
                    f"replacement {text!r}: nothing to escape or refer to at character {at}"
                )
            at = part.end()
            self._add(text, part, groups, names)

    def _add(self, text: str, part: re.Match[str], groups: int, names: dict[str, int]) -> None:
        escaped, name, digits, plain = part.groups()
        if digits is not None:
            # The first digit counts, the next ones only as long as there is such a group.
            end = 1
            while end < len(digits) and int(digits[: end + 1]) <= groups:
                end += 1
            number, rest = int(digits[:end]), digits[end:]
            if number > groups:
                raise ConfigError(f"replacement {text!r}: there is no group {number}")
            self._parts += [number, rest]
        elif name is not None:
            if name not in names:
                raise ConfigError(f"replacement {text!r}: there is no group {name}")
            self._parts.append(names[name])
        else:
            self._parts.append(plain if escaped is None else escaped)

    def fill(self, match: re.Match[str]) -> str:
        """Returns the text for one match; a group that did not take part is empty."""
        return "".join(part if isinstance(part, str) else match[part] or "" for part in self._parts)
