"""The plugin, found and made as a crawl does it."""

from minutch.conf import Configuration
from minutch.plugin.chains import IndexingFilters
from minutch.plugin.points import Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument
from minutch.records.parsedata import ParseData

CONF = Configuration.load([]).with_values({"plugin.includes": "$id"})


def test_words_are_counted() -> None:
    parse = Parse("three plain words", ParseData())
    url = "https://www.example.org/"
    found = IndexingFilters(CONF).filter(NutchDocument(), parse, url, CrawlDatum(), None)
    assert found is not None
    assert found.first("words") == 3
