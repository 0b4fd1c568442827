"""Crawlee-python: fetch the URLs of a file, take and resolve each page's links, append URL, links
and body to a file.

    python crawleespider.py URLS STORE THREADS [--follow]

Run by the benchmark in an environment of its own; needs nothing of the project. Prints the number
of pages stored. --follow: the links are fetched too, each once and whatever their host, and
robots.txt is obeyed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urljoin, urlsplit

from crawlee import ConcurrencySettings  # type: ignore[import-not-found,unused-ignore]
from crawlee.configuration import Configuration  # type: ignore[import-not-found,unused-ignore]
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext  # type: ignore[import-not-found,unused-ignore]
from crawlee.storage_clients import MemoryStorageClient  # type: ignore[import-not-found,unused-ignore]

URLS, STORE, THREADS = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
FOLLOW = "--follow" in sys.argv[4:]


def joined(url: str, links: list[str]) -> Iterator[str]:
    """The links that are URLs of a host, made absolute: Crawlee ends with an error at any other."""
    for link in links:
        with suppress(ValueError):
            target = urlsplit(urljoin(url, link))
            if target.scheme in ("http", "https") and target.hostname and target.port != 0:
                yield target.geturl()


async def crawl(store: BinaryIO) -> int:
    """The number of pages stored."""
    count = 0
    crawler = ParselCrawler(
        configuration=Configuration(log_level="WARNING"),
        storage_client=MemoryStorageClient(),
        concurrency_settings=ConcurrencySettings(
            min_concurrency=THREADS, desired_concurrency=THREADS, max_concurrency=THREADS
        ),
        max_request_retries=0,
        use_session_pool=False,
        respect_robots_txt_file=FOLLOW,
    )

    @crawler.router.default_handler  # type: ignore[untyped-decorator,unused-ignore]
    async def handle(context: ParselCrawlingContext) -> None:
        nonlocal count
        url = context.request.url
        found = context.selector.css("a::attr(href)").getall()
        links = [*joined(url, found)]
        body = await context.http_response.read()
        store.write("\n".join([url, *links, "", ""]).encode("utf-8", "replace") + body)
        count += 1
        if FOLLOW:
            await context.add_requests(links, strategy="all")

    await crawler.run(URLS.read_text(encoding="utf-8").split())
    return count


with STORE.open("wb") as file:
    print(asyncio.run(crawl(file)))
