"""A simulation takes a sample of the pages, with what the segments say of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import polars as pl

from minutch.annexes.simulate.forecast import DAY
from minutch.annexes.simulate.simulate import compared, history, sample_pages
from minutch.cycle.crawldb.store import CrawlDb
from minutch.hadoop.formats.javaio import encode_text
from minutch.inspect.query.crawl import open_crawl
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum
from tests.support.changingcrawl import INTERVAL, ChangingCrawl
from tests.support.crawldbs import NOW, write_db
from tests.support.examples import tabled

Row = tuple[int, int, bool, int | None]


def table(*rows: Row) -> pl.DataFrame:
    """Page, day, whether the server said that nothing changed, digest."""
    schema = {"page": pl.UInt32, "time": pl.Int64, "same": pl.Boolean, "digest": pl.UInt64}
    return pl.DataFrame(
        [(page, day * DAY, same, digest) for page, day, same, digest in rows], schema, orient="row"
    )


@tabled(
    ("rows", "wanted"),
    [
        ([], []),
        ([(0, 1, False, 7)], []),
        ([(0, 1, False, 7), (0, 3, False, 7), (0, 8, False, 9)], [(0, 2, False), (0, 5, True)]),
        ([(0, 1, False, 7), (0, 3, True, None), (0, 4, False, 7), (0, 6, False, 8)],
         # after a 304 the page has the digest from before it
         [(0, 2, False), (0, 1, False), (0, 2, True)]),
        # one that was not parsed
        ([(0, 1, False, 7), (0, 3, False, None), (0, 8, False, 7)], [(0, 7, False)]),
        ([(0, 1, True, None), (0, 3, True, None), (0, 9, False, 5), (0, 10, False, 5)],
         [(0, 2, False), (0, 1, False)]),  # what it was before the first 304 is not known
        ([(0, 1, False, 7), (2, 1, False, 7), (2, 2, False, 8), (3, 1, False, 8)], [(2, 1, True)]),
        ([(1, 4, False, 7), (1, 4, False, 8)], []),  # the same page twice at the same time
    ],
)  # fmt: skip
def test_fetches_are_compared_with_the_one_before(
    rows: list[Row], wanted: list[tuple[int, float, bool]]
) -> None:
    found = compared(table(*rows), 4)
    watched = found.watched
    assert list(zip(watched.page, watched.days, watched.changed, strict=True)) == wanted
    for page in range(4):
        known = [day for p, day, same, digest in rows if p == page and (same or digest is not None)]
        assert found.last[page] == max(known, default=0) * DAY


def test_pages_with_a_copy_are_taken(tmp_path: Path) -> None:
    codes = {name: code for code, name in status.STATUS_NAMES.items() if name.startswith("db_")}
    db = write_db(
        tmp_path / "db",
        [(f"http://{name}/", CrawlDatum(code)) for name, code in codes.items()],
        parts=3,
    )
    found = sample_pages(db, 100)
    assert {bytes(key).decode() for key in found.entries["key"]} == {
        "http://db_fetched/", "http://db_notmodified/", "http://db_duplicate/",
    }  # fmt: skip
    assert (found.pages, found.others, found.share) == (3, len(codes) - 3, 1.0)


def test_a_sample_is_the_same_whatever_the_parts(tmp_path: Path) -> None:
    entries = [
        (
            f"http://a.example/{n}",
            CrawlDatum(status.STATUS_DB_FETCHED, score=n % 10, signature=b"x" * 16),
        )
        for n in range(1000)
    ]
    taken = []
    for parts in (1, 4):
        found = sample_pages(write_db(tmp_path / str(parts), entries, parts=parts), 100)
        assert (len(found.entries), found.pages, found.share) == (100, 1000, 0.1)
        best = found.entries[np.argsort(found.ranks).tolist()]["score"]
        assert best.is_sorted(descending=True) and best[0] == 9
        taken.append(sorted(found.entries["key"]))
    assert taken[0] == taken[1]
    hosts = [int(bytes(key).decode().rpartition("/")[2]) for key in taken[0]]
    assert 300 < np.mean(hosts) < 700  # from all over


def test_history_of_a_crawl(tmp_path: Path) -> None:
    rates = {
        "http://never.example/": 1e-9,
        "http://always.example/": 50.0,
        "http://b.example/ü": 1e-9,
    }
    crawl = open_crawl(ChangingCrawl(tmp_path, rates, fetches=3).make())
    sample = sample_pages(CrawlDb(tmp_path / "crawldb"), 10)
    found = history(crawl, sample)
    rows = [bytes(key) for key in sample.entries["key"]]
    changes = {key: [] for key in rows}
    for page, days, changed in zip(
        found.watched.page, found.watched.days, found.watched.changed, strict=True
    ):
        assert days == INTERVAL
        changes[rows[page]].append(bool(changed))
    assert changes == {encode_text(url): [url == "http://always.example/"] * 2 for url in rates}
    assert list(found.last) == [NOW] * 3


def test_fetches_that_were_not_parsed_say_nothing(tmp_path: Path) -> None:
    crawl = ChangingCrawl(
        tmp_path, {"http://a.example/": 50.0, "http://b.example/": 1e-9}, fetches=4
    ).make()
    shutil.rmtree(tmp_path / "segments" / "20260101000001" / "parse_data")
    found = history(open_crawl(crawl), sample_pages(CrawlDb(tmp_path / "crawldb"), 10))
    assert sorted(found.watched.days) == [INTERVAL, INTERVAL, 2 * INTERVAL, 2 * INTERVAL]
    assert found.watched.changed.sum() == 2
