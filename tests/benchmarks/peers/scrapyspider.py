"""Scrapy: fetch the URLs of a file, take and resolve each page's links, append URL, links and body
to a file.

    python scrapyspider.py URLS STORE THREADS

Run by the benchmark in an environment of its own; needs nothing of the project. Prints the number
of pages stored.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import scrapy  # type: ignore[import-not-found,unused-ignore]
from scrapy.crawler import CrawlerProcess  # type: ignore[import-not-found,unused-ignore]

URLS, STORE, THREADS = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
SETTINGS = {
    "CONCURRENT_REQUESTS": THREADS,
    "DOWNLOAD_DELAY": 0,
    "COOKIES_ENABLED": False,
    "RETRY_ENABLED": False,
    "REDIRECT_ENABLED": False,
    "ROBOTSTXT_OBEY": False,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "WARNING",
    "LOGSTATS_INTERVAL": 0,
}


class Pages(scrapy.Spider):  # type: ignore[misc,unused-ignore]
    """Visits every URL of the list once."""

    name = "pages"
    count = 0

    async def start(self) -> AsyncIterator[Any]:
        """A request for each URL."""
        for url in URLS.read_text(encoding="utf-8").split():
            yield scrapy.Request(url, dont_filter=True)

    def parse(self, response: Any) -> None:
        """Keep the page and its links."""
        links = [response.urljoin(link) for link in response.css("a::attr(href)").getall()]
        store.write(
            "\n".join([response.url, *links, "", ""]).encode("utf-8", "replace") + response.body
        )
        Pages.count += 1


with STORE.open("wb") as store:
    process = CrawlerProcess(SETTINGS)
    process.crawl(Pages)
    process.start()
print(Pages.count)
