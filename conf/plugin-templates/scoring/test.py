"""The plugin, found and made as a crawl does it."""

from minutch.conf import Configuration
from minutch.plugin.chains import ScoringFilters
from minutch.records.crawldatum import CrawlDatum

CONF = Configuration.load([]).with_values({"plugin.includes": "$id", "scoring.filter.order": ""})


def test_pages_near_the_root_come_first() -> None:
    scoring = ScoringFilters(CONF)
    assert scoring.generator_sort_value("https://www.example.org/a", CrawlDatum(), 1.0) == 1.0
    assert scoring.generator_sort_value("https://www.example.org/a/b", CrawlDatum(), 1.0) == 0.5
