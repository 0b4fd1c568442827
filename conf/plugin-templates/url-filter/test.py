"""The plugin, found and made as a crawl does it."""

from minutch.conf import Configuration
from minutch.plugin.chains import URLFilters

CONF = Configuration.load([]).with_values({"plugin.includes": "$id", "$id.longest": "30"})


def test_long_urls_are_rejected() -> None:
    filters = URLFilters(CONF)
    assert filters.filter("https://www.example.org/") == "https://www.example.org/"
    assert filters.filter("https://www.example.org/" + "a" * 30) is None
