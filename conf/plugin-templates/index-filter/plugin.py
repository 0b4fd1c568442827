"""Adds the number of words of a page to its document, as the field `words`."""

from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument
from minutch.records.links import Inlinks


class WordCount(IndexingFilter):
    """The filter."""

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        """Returns the document with its new field; None would leave the page out of the index."""
        doc.add("words", len(parse.text.split()))
        return doc
