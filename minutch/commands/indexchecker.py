"""`minutch indexchecker`: fetch one page, parse it and show the document that would be indexed.

Nothing is stored; with -doIndex the document goes to the index writers, which don't commit. Source:
org.apache.nutch.indexer.IndexingFiltersChecker. Unlike Nutch, which ends with an exception there, a
field without a value is not shown.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

import polars as pl

from minutch.commands.arguments import Arguments, Flag, parse
from minutch.commands.pagecheck import PAGE_FLAGS, CheckFailed, PageChecker
from minutch.conf import Configuration
from minutch.cycle.index.writers import Encoders, WriterChain
from minutch.errors import MinutchError
from minutch.job import JobContext
from minutch.plugin.chains import IndexingFilters
from minutch.plugin.documents import Documents
from minutch.records.content import Content
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument, value_text
from minutch.records.metadata import SIGNATURE_KEY

log = logging.getLogger(__name__)

USAGE: Final = """\
IndexingFiltersChecker [OPTIONS] (<url> | -stdin | -listen <port> [-keepClientCnxOpen])

  -D<property>=<value>  set a property (stands before the other options)
  -normalize            normalize the URLs
  -followRedirects      follow redirects
  -checkRobotsTxt       fail if robots.txt forbids the page
  -dumpText             show whole values, not only their first 100 characters
  -doIndex              send the document to the index writers, too
  -md <key>=<value>     metadata of the CrawlDatum; may be repeated
  -stdin                fetch and index the pages whose URLs stand on stdin, one on each line
  -listen <port>        those that come from connections to this port
  -keepClientCnxOpen    more than one on each connection"""
FLAGS: Final = (*PAGE_FLAGS, Flag("-doIndex"))
DISCARDED: Final = "Document discarded by indexing filter\n"
SHOWN: Final = 100
"""Characters that are shown of a value."""


def run(args: list[str], context: JobContext) -> int:
    """The command."""
    given = parse(args, FLAGS, usage=USAGE, least=0 if args else 1, most=1)
    with IndexChecker(context.conf, given, context) as checker:
        return checker.run()


class IndexChecker(PageChecker):
    """Shows what indexing filters make of a page."""

    def __init__(self, conf: Configuration, given: Arguments, context: JobContext) -> None:
        super().__init__(conf, given, context)
        self._conf = conf
        self._filters = IndexingFilters(conf)
        self._indexes = given["-doIndex"] or conf.get_boolean("doIndex", False)

    def _shown(self, content: Content, datum: CrawlDatum) -> str:
        result, url = self._parsed(content, datum), content.url
        parsed = result.get(url)
        if parsed is None:
            raise CheckFailed(
                f"Parse result does not contain a parse for URL to be checked: {url}; there are:"
                f" {', '.join(result)}"
            )
        signature = self._signature_of(content, result)
        parsed.data.content_meta.set(SIGNATURE_KEY, signature.hex())
        datum.signature = signature
        self._score(partial(self._scoring.pass_score_after_parsing, url, content, parsed))
        document = NutchDocument()
        document.add("id", url)
        document.add("digest", signature.hex())
        try:
            found = self._filters.filter(document, parsed, url, datum, None)
        except MinutchError as error:
            raise CheckFailed(f"{url}: can't be indexed: {error}") from error
        if found is None:
            return DISCARDED
        if self._indexes:
            self._index(url, found)
        return self._lines(found)

    def _lines(self, document: NutchDocument) -> str:
        """The fields of a document, a line for each value, in the order of Java's HashMap."""
        length = None if self._given["-dumpText"] else SHOWN
        values = (
            (name, value_text(value))
            for name in document.java_names()
            for value in document.fields[name].values
        )
        return "".join(f"{name} :\t{text[:length]}\n" for name, text in values) + "\n"

    def _index(self, url: str, document: NutchDocument) -> None:
        """Send a document to the index writers."""
        documents = Documents(pl.Series([url]))
        documents.replace([document])
        encoded, _ = Encoders.from_conf(self._conf).encode(documents, [])
        with WriterChain.from_conf(self._conf) as chain:
            chain.open()
            chain.write(encoded)
            chain.finish(commit=False)
