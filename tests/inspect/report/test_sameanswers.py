"""The report and an audit give the same answers: depths, broken links, redirects."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from minutch.conf import Configuration
from minutch.hadoop.formats.writables import Text
from minutch.inspect.audit.findings import audit, rules_of
from minutch.inspect.query.crawl import open_crawl
from minutch.records import crawldatum as status
from minutch.records import protocol as codes
from minutch.records.crawldatum import CrawlDatum
from minutch.records.protocol import ProtocolStatus
from tests.inspect.report.conftest import Written, gathered
from tests.inspect.report.madeup import DAY, MadeUp, Page
from tests.support.crawldbs import metadata, write_db, write_segment

HERE, THERE = "http://www.harbour.example/", "http://tides.example.org/"
LINKS = {
    "": ("a", "moved", "chain", "gone"),
    "a": ("b", "circle", "gone", ""),
    "b": ("target",),
    "target": ("deep",),
}
MOVED = {
    "moved": "target",
    "chain": "chain2",
    "chain2": "end",
    "circle": "circle2",
    "circle2": "circle",
}
DEPTHS = {"": 0} | dict.fromkeys(("a", "moved", "target", "chain", "chain2", "end", "gone"), 1)
DEPTHS |= dict.fromkeys(("b", "circle", "circle2", "deep"), 2)
"""`target` by a redirect of one link from the start, though a page at depth 2 links to it, too;
`deep` was at 3 where redirects were steps."""


class ByHand(MadeUp):
    """A crawl of two seeds."""

    def _web(self, count: int) -> list[Page]:
        def page(path: str) -> Page:
            links = [(HERE + to, f"to {to}") for to in LINKS.get(path, ())]
            fate = "moved" if path in MOVED else "gone" if path == "gone" else "fetched"
            to = HERE + MOVED.get(path, "")
            return Page(HERE + path, HERE.split("/")[2], fate, to, links, text=f"text of {path}")

        other = Page(THERE, THERE.split("/")[2], links=[(HERE + "b", "to b")], text="other")
        return [other, *map(page, DEPTHS)]


EXPECTED = {THERE: 0} | {HERE + path: depth for path, depth in DEPTHS.items()} | {HERE + "b": 1}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[MadeUp, Path]:
    """The crawl by hand, in a folder."""
    crawl, folder = ByHand(hosts=4, rounds=6, most=50), tmp_path_factory.mktemp("made") / "crawl"
    crawl.write(folder)
    return crawl, folder


def agree(folder: Path, now: int) -> pl.DataFrame:
    """Compares a report with an audit of the same crawl, and returns the table `site`."""
    facts, crawl = gathered(folder, now), open_crawl(folder)
    every = rules_of(Configuration.load([]))
    rules = [every[name] for name in ("broken-links", "redirect-circles", "redirect-chains")]
    found = {one.rule.id: one.rows for one in audit(crawl, rules, now)}
    site = crawl.tables["site"].scan().collect()
    assert dict(facts["depth"].select("depth", "urls").iter_rows()) == (
        Counter(site["depth"].to_list()) if facts["depth"].height else {}
    )
    assert facts["depth"].height or site["depth"].null_count() == len(site)
    links = found["broken-links"]
    broken = dict(facts["broken"].select("url", "links").iter_rows())
    assert links is not None and broken == Counter(links["url"].to_list())
    chains = facts["chains"].select("addresses", "end").rows()
    circles = {url for addresses, end in chains if end == "a circle" for url in addresses}
    long = {url for addresses, end in chains if end != "a circle" for url in addresses[:-2]}
    assert set(found["redirect-circles"]["url"]) == circles
    assert set(found["redirect-chains"]["url"]) == long
    return site


def depths_of(site: pl.DataFrame) -> dict[str, int]:
    return dict(site.select("url", "depth").iter_rows())


def test_a_crawl_by_hand(made: tuple[MadeUp, Path]) -> None:
    crawl, folder = made
    site = agree(folder, crawl.now)
    assert depths_of(site) == EXPECTED
    ends = dict(site.select("url", "leads_to").drop_nulls().iter_rows())
    names = {"moved": "target", "chain": "end", "chain2": "end"}
    assert ends == {HERE + name: HERE + end for name, end in names.items()}


def test_links_of_a_linkdb(tmp_path: Path) -> None:
    crawl = ByHand(hosts=4, rounds=6, most=50)
    crawl.write(tmp_path)
    crawl.invert(tmp_path)
    assert depths_of(agree(tmp_path, crawl.now)) == EXPECTED


@pytest.mark.slow
def test_a_large_crawl(harbours: Written) -> None:
    assert agree(harbours.folder, harbours.crawl.now)["depth"].null_count() == 0


@pytest.mark.slow
def test_a_crawl_without_its_last_segment(tmp_path: Path) -> None:
    """Its depths are not guessed; what is gone is known from the CrawlDb."""
    crawl = MadeUp(seed=3, hosts=6, pages=200, rounds=6, most=70)
    crawl.write(tmp_path)
    (tmp_path / "segments" / crawl.segment(1)).rename(tmp_path / "removed")
    site = agree(tmp_path, crawl.now)
    assert site["depth"].null_count() == len(site)


def test_what_was_not_asked_for_is_as_it_was(tmp_path: Path) -> None:
    """A fetch list that ended early says nothing of its pages; one that was in no other is in the
    table as a URL that waits.
    """
    crawl = ByHand(hosts=3, rounds=4, most=25)
    crawl.write(tmp_path)
    before = agree(tmp_path, crawl.now)
    late = CrawlDatum(status.STATUS_LINKED, metadata=metadata())
    late.metadata[Text("_pst_")] = ProtocolStatus.of(codes.NOTFETCHING, "hit by time limit")
    write_segment(
        tmp_path / "segments" / crawl.segment(7), [(HERE + "a", late), (HERE + "gone", late)]
    )
    assert agree(tmp_path, crawl.now + DAY).equals(before)


def test_hosts_that_came_later_are_starts(tmp_path: Path) -> None:
    """The fetch list of the first round need not have all seeds; of others it can't be told."""
    urls = ["http://a.org/1", "http://b.org/", "http://c.org/waits"]
    done = CrawlDatum(status.STATUS_FETCH_SUCCESS)
    for number, url in enumerate(urls[:2]):
        write_segment(tmp_path / "segments" / f"2026010{number + 1}000000", [(url, done)])
    codes_of = (2, 2, 1)
    write_db(tmp_path / "crawldb", list(zip(urls, map(CrawlDatum, codes_of), strict=True)))
    crawl = open_crawl(tmp_path)
    assert crawl.tables["site"].scan().collect()["depth"].to_list() == [0, 0, None]
    depths = gathered(tmp_path, DAY)["depth"].select("depth", "urls").rows()
    assert depths == [(0, 2), (None, 1)]
