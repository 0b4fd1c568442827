"""Fetches and parses one page and shows the document that would be indexed; stores nothing.

With `do_index` the document is sent to the index writers, without a commit. Unlike Nutch, which
fails with an exception there, a field without a value is not shown.

Source: org.apache.nutch.indexer.IndexingFiltersChecker.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

import polars as pl

from minutch.clock import Clock
from minutch.conf import Configuration
from minutch.cycle.index.writers import Encoders, WriterChain
from minutch.cycle.parse.pagecheck import CheckFailed, PageChecker, PageCheckOptions
from minutch.errors import MinutchError
from minutch.job import JobContext
from minutch.plugin.chains import IndexingFilters
from minutch.plugin.documents import Documents
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument, value_text
from minutch.records.metadata import SIGNATURE_KEY
from minutch.records.protocol import Content

DISCARDED: Final = "Document discarded by indexing filter\n"
SHOWN: Final = 100
"""Number of characters that are shown of a value."""


@dataclass(frozen=True, slots=True)
class IndexCheckOptions(PageCheckOptions):
    """Options of indexchecker."""

    do_index: bool = False
    """Whether the document is sent to the index writers."""


def indexchecker(
    url: str, options: IndexCheckOptions = IndexCheckOptions(), *, context: JobContext
) -> str:
    """Returns the fields of a page's document, a line for each value.

    Raises CheckFailed (the page can't be fetched, parsed or indexed), CheckError (no protocol, no
    parser).
    """
    with IndexChecker(context.conf, options, context.clock) as checker:
        return checker.check(url)


class IndexChecker(PageChecker):
    """A checker that also applies the indexing filters."""

    def __init__(self, conf: Configuration, options: IndexCheckOptions, clock: Clock) -> None:
        super().__init__(conf, options, clock)
        self._filters = IndexingFilters(conf)
        self._encoders: Encoders | None = None
        if options.do_index or conf.get_boolean("doIndex", False):
            self._encoders = Encoders.from_conf(conf)
        self._make_chain = partial(WriterChain.from_conf, conf)

    def _shown(self, content: Content, datum: CrawlDatum) -> str:
        result, url = self._parsed(content, datum), content.url
        parsed = result.get(url)
        if parsed is None:
            raise CheckFailed(
                f"Parse result does not contain a parse for URL to be checked: {url}; there are:"
                f" {', '.join(result)}"
            )
        signature = self._signature_of(content, result)
        # Where `parse` leaves it for the fields of indexing filters.
        parsed.data.content_meta.set(SIGNATURE_KEY, signature.hex())
        datum.signature = signature
        self._score(partial(self._scoring.pass_score_after_parsing, url, content, parsed))
        # The fields that `index` adds itself, and that no filter makes.
        document = NutchDocument()
        document.add("id", url)
        document.add("digest", signature.hex())
        try:
            found = self._filters.filter(document, parsed, url, datum, None)
        except MinutchError as error:
            raise CheckFailed(f"{url}: can't be indexed: {error}") from error
        if found is None:
            return DISCARDED
        if self._encoders is not None:
            self._index(url, found, self._encoders)
        return self._lines(found)

    def _lines(self, document: NutchDocument) -> str:
        """Formats a document, a line for each value, fields in the order of Java's HashMap."""
        length = None if self._options.dump_text else SHOWN
        values = (
            (name, value_text(value))
            for name in document.java_names()
            for value in document.fields[name].values
        )
        return "".join(f"{name} :\t{text[:length]}\n" for name, text in values) + "\n"

    def _index(self, url: str, document: NutchDocument, encoders: Encoders) -> None:
        """Sends a document to the index writers."""
        documents = Documents(pl.Series([url]))
        # As columns, which encoders take: there is one way to a writer.
        documents.replace([document])
        encoded, _ = encoders.encode(documents, [])
        with self._make_chain() as chain:
            chain.open()
            chain.write(encoded)
            chain.finish(commit=False)
