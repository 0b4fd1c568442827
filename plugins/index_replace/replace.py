"""index-replace: replaces text in fields by the rules of index.replace.regexp (see `rules`).

It works on the fields that filters before it have made (indexingfilter.order). A field of which
nothing is text stays as it is. A pattern that takes too long on a value fails for its document.
Source: org.apache.nutch.indexer.replace.ReplaceIndexer.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import numpy as np
import polars as pl

from minutch.conf import Configuration
from minutch.plugin.documents import Documents, Pages
from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument, NutchField
from minutch.records.links import Inlinks

from .rules import HOST, PROPERTY, URL, Replacer, RuleSet, read_rules

log = logging.getLogger(__name__)

_TEXTS = (pl.String(), pl.List(pl.String()))


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
        """Returns True if the rules' fields have only strings, and documents one host and one URL
        each.
        """
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
    """Returns the documents that the rules are for, by their hosts or URLs; those that take too
    long fail.
    """
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
