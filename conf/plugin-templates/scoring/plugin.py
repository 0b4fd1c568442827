"""Lets `generate` take pages near the root of their host first."""

from urllib.parse import urlsplit

from minutch.plugin.points import ScoringFilter
from minutch.records.crawldatum import CrawlDatum


class ShortPathsFirst(ScoringFilter):
    """The filter. Of a scoring filter's methods, only those that it needs have to be written."""

    def generator_sort_value(self, url: str, datum: CrawlDatum, init_sort: float) -> float:
        """Returns what generate sorts by: less for each folder between the page and the root."""
        folders = urlsplit(url).path.count("/") - 1
        return init_sort / (1 + max(0, folders))
