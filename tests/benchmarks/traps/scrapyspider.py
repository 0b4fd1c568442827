"""Scrapy, breadth first with a limit of depth: `python scrapyspider.py CAP URL …`. Run in an
environment of its own; needs nothing of the project.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import scrapy  # type: ignore[import-not-found,unused-ignore]
from scrapy.crawler import CrawlerProcess  # type: ignore[import-not-found,unused-ignore]

CAP, SEEDS = int(sys.argv[1]), sys.argv[2:]
SETTINGS = {
    "DEPTH_LIMIT": 6,
    "DEPTH_PRIORITY": 1,
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    "CLOSESPIDER_PAGECOUNT": CAP,
    "REDIRECT_ENABLED": False,
    "DOWNLOAD_DELAY": 0,
    "RETRY_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "WARNING",
}


class Pages(scrapy.Spider):  # type: ignore[misc,unused-ignore]
    """Follows the links of all pages, each once."""

    name = "pages"
    start_urls = SEEDS
    handle_httpstatus_all = True

    def parse(self, response: Any) -> Iterator[Any]:
        """Returns requests for a page's links."""
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)
        if location := response.headers.get("Location"):
            yield response.follow(location.decode())


process = CrawlerProcess(SETTINGS)
process.crawl(Pages)
process.start()
