"""Scrapy: fetch the URLs of a file, take and resolve each page's links, append URL, links and body
to a file.

    python scrapyspider.py URLS STORE THREADS [--follow]

Run by the benchmark in an environment of its own; needs nothing of the project. Prints the number
of pages stored. --follow: the links are fetched too, each once, robots.txt is obeyed, and the
settings are those that Scrapy's documentation recommends for broad crawls, on the event loop that
it calls faster.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import scrapy  # type: ignore[import-not-found,unused-ignore]
from scrapy.crawler import CrawlerProcess  # type: ignore[import-not-found,unused-ignore]

URLS, STORE, THREADS = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
FOLLOW = "--follow" in sys.argv[4:]
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
if FOLLOW:
    SETTINGS |= {
        "ROBOTSTXT_OBEY": True,
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
        "REACTOR_THREADPOOL_MAXSIZE": 20,
        "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
    }


class Pages(scrapy.Spider):  # type: ignore[misc,unused-ignore]
    """Visits every URL of the list once, and what they lead to if that is wished."""

    name = "pages"
    count = 0

    async def start(self) -> AsyncIterator[Any]:
        """A request for each URL."""
        for url in URLS.read_text(encoding="utf-8").split():
            yield scrapy.Request(url, dont_filter=not FOLLOW)

    def parse(self, response: Any) -> Iterator[Any]:
        """Keep the page and its links; requests for these if they are followed."""
        links = [*joined(response)]
        store.write(
            "\n".join([response.url, *links, "", ""]).encode("utf-8", "replace") + response.body
        )
        Pages.count += 1
        if FOLLOW:
            yield from map(scrapy.Request, links)


def joined(response: Any) -> Iterator[str]:
    """The links of a page that are URLs, made absolute."""
    for link in response.css("a::attr(href)").getall():
        with suppress(ValueError):
            if (url := response.urljoin(link)).startswith("http"):
                yield url


with STORE.open("wb") as store:
    process = CrawlerProcess(SETTINGS)
    process.crawl(Pages)
    process.start()
print(Pages.count)
