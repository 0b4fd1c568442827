"""Measures what is done to each URL: filters and normalizers by column and by row, links resolved,
robots.txt asked.

    python -m tests.benchmarks.urls [--urls 1000000]

Prints a Markdown table of rates per second of CPU time, the best of three. The URLs are made up,
the same at every run, and normal already, as those of a CrawlDb are.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable

import polars as pl

from minutch.conf import Configuration
from minutch.plugin.chains import URLFilters, URLNormalizers
from minutch.urls.resolve import resolver
from minutch.urls.robots import parse_robots

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def made_up_urls(count: int) -> list[str]:
    """Distinct URLs with up to five folders."""
    chance = random.Random(1)
    words = ["".join(chance.choices(_LETTERS, k=chance.randrange(3, 10))) for _ in range(3000)]
    urls = []
    for number in range(count):
        host = f"www.{chance.choice(words)}.{chance.choice(('org', 'com', 'de'))}"
        folders = "".join(f"{word}/" for word in chance.choices(words, k=chance.randrange(6)))
        urls.append(
            f"{chance.choice(('http', 'https'))}://{host}/{folders}{chance.choice(words)}-{number}.html"
        )
    return urls


def rate(count: int, work: Callable[[], object]) -> float:
    """Items per second of CPU time."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return count / max(best, 1e-9)


def measure(count: int) -> dict[str, float]:
    """Rates by name."""
    urls = made_up_urls(count)
    column = pl.Series(urls)
    some = urls[:20_000]
    conf = Configuration.load([])
    filters, normalizers = URLFilters(conf), URLNormalizers(conf)
    links = [url.partition("/")[2][1:] for url in some]
    page = resolver(some[0])
    robots = parse_robots(
        b"User-agent: *\n" + b"".join(b"Disallow: /%d/\n" % i for i in range(500)), "", ["a"]
    )
    return {
        "filters, default, by column": rate(count, lambda: filters.filter_column(column)),
        "normalizers, default, by column": rate(
            count, lambda: normalizers.normalize_column(column)
        ),
        "filters, default, by row": rate(len(some), lambda: [filters.filter(url) for url in some]),
        "normalizers, default, by row": rate(
            len(some), lambda: [normalizers.normalize(url) for url in some]
        ),
        "absolute links resolved": rate(len(some), lambda: [page.resolve(url) for url in some]),
        "relative links resolved": rate(len(some), lambda: [page.resolve(link) for link in links]),
        "robots.txt of 500 rules asked": rate(
            len(some), lambda: [robots.is_allowed(url) for url in some]
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="rates of what is done to each URL")
    parser.add_argument("--urls", type=int, default=1_000_000)
    print("| what | per second of CPU |\n|---|---|")
    for name, found in measure(parser.parse_args().urls).items():
        print(f"| {name} | {found:,.0f} |")


if __name__ == "__main__":
    main()
