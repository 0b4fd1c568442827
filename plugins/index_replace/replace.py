"""index-replace: replaces text in fields by the rules of index.replace.regexp (`RuleSet`).

It works on the fields that filters before it have made (indexingfilter.order). A field of which
nothing is text stays as it is. A pattern that takes too long on a value fails for its document.
Source: org.apache.nutch.indexer.replace.ReplaceIndexer.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.plugin.documents import Documents, Pages
from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument, NutchField
from minutch.records.links import Inlinks
from minutch.urls.javaregex import LINE_ENDS, JavaRegex, Replacement
from minutch.urls.rules import rule_lines

# Reads and applies the rules of index-replace: fields, documents and replacements.
#
#   title=/pattern/replacement/2       in the field title, with flags (2: without case)
#   title:short=/pattern/replacement/  the result goes into the field short
#   hostmatch=.*\.example\.org         what follows is for documents whose field host it is found
#                                        in
#   urlmatch=/news/                    what follows is for documents whose field url it is found in
#
# Rules are lines, and any character may stand for `/`. Flags are the sum of those of
# java.util.regex.Pattern. A rule that makes no sense is left out, with an error in the log; after
# a hostmatch or urlmatch that makes none, nothing applies. Source:
# org.apache.nutch.indexer.replace.ReplaceIndexer, FieldReplacer.

PROPERTY: Final = "index.replace.regexp"
HOST, URL = "host", "url"
_FLAGS: Final = {1: "d", 2: "i", 4: "x", 8: "m", 32: "s", 64: "u", 256: "U"}
_LITERAL: Final = 16
log = logging.getLogger(__name__)

_TEXTS = (pl.String(), pl.List(pl.String()))


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
    """The rules for documents in whose field `key`, host or url, `regex` is found, or None."""

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


class ReplaceIndexer(IndexingFilter):
    """Changes fields."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.sets = read_rules(conf.get(PROPERTY, ""))

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        for key in (HOST, URL):
            found = doc.fields.get(key)
            for value in list(found.values) if found else ():
                for rules in self.sets:
                    if rules.key == key and isinstance(value, str) and rules.applies(value):
                        _apply(rules, doc)
        return doc

    def filter_columns(self, documents: Documents, pages: Pages) -> pl.Series | None:
        if not self._has_texts(documents):
            return super().filter_columns(documents, pages)
        failed = np.zeros(len(documents), dtype=bool)
        for key in (HOST, URL):
            values = documents.column(key)
            for rules in self.sets:
                if rules.key == key and values is not None:
                    where = _marked(rules, values, failed)
                    for replacer in rules.replacers:
                        _replace(replacer, documents, where, failed)
        for row in np.flatnonzero(failed):
            log.warning(
                "Error indexing %s: a pattern of %s took too long",
                documents.keys[int(row)],
                PROPERTY,
            )
        return (
            pl.select(pl.when(~pl.Series(failed)).then(True)).to_series() if failed.any() else None
        )

    def _has_texts(self, documents: Documents) -> bool:
        """Returns True if the rules' fields are only strings, with one host and URL each."""
        keys = (documents.column(key) for key in (HOST, URL))
        names = {
            name
            for rules in self.sets
            for one in rules.replacers
            for name in (one.source, one.target)
        }
        fields = (documents.column(name) for name in names)
        one_each = all(column is None or column.dtype == pl.String for column in keys)
        return one_each and all(column is None or column.dtype in _TEXTS for column in fields)


def _apply(rules: RuleSet, doc: NutchDocument) -> None:
    for replacer in rules.replacers:
        found = doc.fields.get(replacer.source)
        values = (
            [replacer.replace(value) for value in found.values if isinstance(value, str)]
            if found
            else []
        )
        if values:
            doc.fields.pop(replacer.target, None)
            doc.fields[replacer.target] = NutchField([*values])


def _marked(rules: RuleSet, values: pl.Series, failed: np.ndarray) -> pl.Series:
    """Returns the documents for the rules, by hosts or URLs; those that take too long fail."""
    if rules.is_for_all:
        return values.is_not_null()
    marks = np.zeros(len(values), dtype=bool)
    for row, value in enumerate(values):
        try:
            marks[row] = value is not None and rules.applies(value)
        except TimeoutError:
            failed[row] = True
    return pl.Series(marks)


def _replace(
    replacer: Replacer, documents: Documents, where: pl.Series, failed: np.ndarray
) -> None:
    """Applies a rule to the documents that `where` marks."""
    source = documents.column(replacer.source)
    if source is None:
        return
    where = where & source.is_not_null()
    rows = where.arg_true()
    values = source.gather(rows)
    if isinstance(values.dtype, pl.List):
        rows = pl.Series(np.repeat(rows.to_numpy(), values.list.len().to_numpy()))
        values = values.explode()
    changed = values.clone()
    touched = replacer.touches(values).arg_true()
    texts: list[str] = []
    for row, value in zip(rows.gather(touched), values.gather(touched), strict=True):
        try:
            texts.append(replacer.replace(value))
        except TimeoutError:
            failed[row] = True
            texts.append(value)
    if texts:
        changed = changed.scatter(touched, pl.Series(texts))
    target = documents.remove(replacer.target)
    if target is not None:
        documents.add(replacer.target, pl.select(pl.when(~where).then(target)).to_series())
    documents.add_rows(replacer.target, rows, changed)
