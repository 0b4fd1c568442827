"""Reads and applies the rules of index-replace: fields, documents and replacements.

    title=/pattern/replacement/2       in the field title, with flags (2: without case)
    title:short=/pattern/replacement/  the result goes into the field short
    hostmatch=.*\\.example\\.org         what follows is for documents whose field host it is found
                                         in
    urlmatch=/news/                    what follows is for documents whose field url it is found in

Rules are lines, and any character may stand for `/`. Flags are the sum of those of
java.util.regex.Pattern. A rule that makes no sense is left out, with an error in the log; after a
hostmatch or urlmatch that makes none, nothing applies. Source:
org.apache.nutch.indexer.replace.ReplaceIndexer, FieldReplacer.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import polars as pl

from minutch.errors import ConfigError
from minutch.urls.javaregex import LINE_ENDS, JavaRegex, Replacement
from minutch.urls.rules import rule_lines

log = logging.getLogger(__name__)

PROPERTY: Final = "index.replace.regexp"
HOST, URL = "host", "url"
_FLAGS: Final = {1: "d", 2: "i", 4: "x", 8: "m", 32: "s", 64: "u", 256: "U"}
_LITERAL: Final = 16


@dataclass(frozen=True)
class Replacer:
    """One rule: what is replaced in the field `source`, for the field `target`."""

    source: str
    target: str
    regex: JavaRegex
    replacement: Replacement

    def replace(self, value: str) -> str:
        """Returns the value with all replacements. Raises TimeoutError."""
        return self.regex.replace_all(value, self.replacement)

    def touches(self, values: pl.Series) -> pl.Series:
        """Returns which strings of a column it may change."""
        if self.regex.superset is None:
            return values.is_not_null()
        return values.str.contains(self.regex.superset) | values.str.contains(LINE_ENDS)


@dataclass
class RuleSet:
    """The rules for the documents in whose field `key`, host or url, `regex` is found; None: in
    none.
    """

    key: str
    regex: JavaRegex | None
    replacers: list[Replacer] = field(default_factory=list)

    def applies(self, value: str) -> bool:
        """Returns True if the rules are for a document. Raises TimeoutError."""
        return self.regex is not None and self.regex.search(value)

    @cached_property
    def is_for_all(self) -> bool:
        return self.regex is not None and self.regex.pattern == ".*"


def read_rules(text: str) -> list[RuleSet]:
    """Returns all rules, those by host first, as they are applied."""
    sets = [RuleSet(HOST, JavaRegex(".*"))]
    for line in rule_lines(text):
        name, equals, value = line.strip().partition("=")
        name = name.strip()
        if not equals:
            if line.strip():
                log.error(
                    "%s: expected FIELD=/PATTERN/REPLACEMENT/FLAGS, found %r",
                    PROPERTY,
                    line.strip(),
                )
        elif name in ("hostmatch", "urlmatch"):
            sets.append(RuleSet(name.removesuffix("match"), _compiled(value, line)))
        elif (replacer := _replacer(name, value, line)) is not None:
            sets[-1].replacers.append(replacer)
    used = [one for one in sets if one.replacers and one.regex is not None]
    return sorted(used, key=lambda one: one.key != HOST)


def _replacer(name: str, value: str, line: str) -> Replacer | None:
    source, colon, target = (part.strip() for part in name.partition(":"))
    pattern, between, rest = value[1:].partition(value[:1] or "/")
    replacement, _, flags = rest.partition(value[:1])
    if not (source and pattern.strip() and between) or (
        flags.strip() and not flags.strip().isdecimal()
    ):
        log.error("%s: expected FIELD=/PATTERN/REPLACEMENT/FLAGS, found %r", PROPERTY, line.strip())
        return None
    regex = _compiled(_with_flags(pattern, int(flags.strip() or 0)), line)
    if regex is None:
        return None
    try:
        return Replacer(source, target if colon else source, regex, regex.replacement(replacement))
    except ConfigError as exc:
        log.error("%s: left out: %r: %s", PROPERTY, line.strip(), exc)
        return None


def _with_flags(pattern: str, flags: int) -> str:
    """Returns the pattern with its flags in front."""
    if flags & _LITERAL:
        pattern = "\\Q" + pattern.replace("\\E", "\\E\\\\E\\Q") + "\\E"
    letters = "".join(letter for bit, letter in _FLAGS.items() if flags & bit)
    return f"(?{letters}){pattern}" if letters else pattern


def _compiled(pattern: str, line: str) -> JavaRegex | None:
    try:
        return JavaRegex(pattern)
    except ConfigError as exc:
        log.error("%s: left out: %r: %s", PROPERTY, line.strip(), exc)
        return None
