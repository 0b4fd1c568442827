"""The web of traps, and a crawl of it."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path

import pytest

from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.segment.store import CRAWL_GENERATE
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from tests.benchmarks.traps import others
from tests.benchmarks.traps.__main__ import APACHE, WAYS, Way, crawl, nutch, served
from tests.benchmarks.traps.columns import ColumnCrawl
from tests.benchmarks.traps.web import Page, Site, answer, catalogue, contents_of, sites, text_of


def test_the_web() -> None:
    web = sites(100)
    assert len(contents_of(web["catalogue"])) == 1 + 5 + 100
    assert len(contents_of(web["wiki"])) == 1 + 5 * 20
    for name in ("calendar", "facets", "maze", "tarpit", "noise", "relative", "softecho"):
        seen, targets = set[str](), ["/"]
        while targets and len(seen) < 1500:
            target = targets.pop()
            new = set(answer(web[name], target).links) - seen
            targets += sorted(new)
            seen |= new
        assert len(seen) >= 1500, name  # as good as endless
        assert len(contents_of(web[name])) == 20
    assert answer(web["softhome"], "/nothing").location == "/"
    assert answer(web["catalogue"], "/item?id=x").status == 404
    first = answer(web["session"], "/").links[0]
    assert answer(web["session"], first).content == "session page 0"


def test_the_second_web() -> None:
    found = others.sites(100)
    assert len(contents_of(found["encyclopedia"])) == 1 + 4 * 25
    assert len(contents_of(found["lang"])) == 3 * 33
    for name in ("agenda", "filters", "nested", "labyrinth", "poison", "spew", "lostecho"):
        seen, targets = set[str](), ["/"]
        while targets and len(seen) < 1000:
            new = set(answer(found[name], targets.pop()).links) - seen
            targets += sorted(new)
            seen |= new
        assert len(seen) >= 1000, name
        assert len(contents_of(found[name])) == 15
    first = answer(found["jsession"], "/").links[0]
    assert answer(found["jsession"], first).content == "others jsession node 1"


@pytest.mark.parametrize(("make", "found"), [(sites, 1.0), (others.sites, 0.96)])
def test_requests_are_well_spent_in_columns(
    make: Callable[[int], dict[str, Site]], found: float
) -> None:
    """By 1.1 requests for each honest page, and by 1.5 they are found: a thirtieth was not, where
    URLs with sessions shared what their pattern got.
    """
    crawl = ColumnCrawl({f"{name}.example": site for name, site in make(30).items()}, 20)
    honest = len(set().union(*(contents_of(site) for site in crawl.web.values())))
    for requests, good in ((1.1, 0.85), (1.5, found)):
        crawl.cap = round(requests * honest)
        while crawl.asked.total() < crawl.cap and crawl.rounds < 40:
            crawl.round()
        assert crawl.good.total() >= good * honest


def test_a_site_that_grows_until_it_is_known_is_read_in_few_rounds() -> None:
    """As any wiki does: each page leads to twenty others. A round asks for half as many more,
    a hundred at most."""

    def wiki(path: str, _: dict[str, str]) -> Page:
        links = random.Random(path).sample(range(800), 20)
        return Page(text_of(path, 40), tuple(f"/wiki/{page}" for page in links), content=path)

    crawl = ColumnCrawl({"wiki.example": wiki}, 20)
    while crawl.round():
        assert crawl.rounds < 16
    assert len(crawl.contents) == 801


def test_a_tunnel_leads_to_the_same_pages_as_a_proxy() -> None:
    """Nutch asks for one where other crawlers ask the proxy itself."""
    bodies = []
    with served(sites(20)) as server:
        for is_tunnel in (False, True):
            connection = HTTPConnection("127.0.0.1", server.server_address[1])
            if is_tunnel:
                connection.set_tunnel("plain.example", 80)
            connection.request("GET", "http://plain.example/")
            bodies.append(connection.getresponse().read())
            connection.close()
        assert server.requests == [("plain", True), ("plain", False)]
    assert bodies[0] == bodies[1] != b""


@pytest.mark.slow
@pytest.mark.skipif("NUTCH_HOME" not in os.environ, reason="NUTCH_HOME is not set")
def test_nutch_itself_has_the_same_lists_and_knows_the_same_urls(tmp_path: Path) -> None:
    known, lists = list[object](), list[list[bytes]]()
    for name in ("nutch", "apache-nutch"):
        (folder := tmp_path / name).mkdir()
        with served(sites(20)) as server:
            if name in APACHE:
                home = Path(os.environ["NUTCH_HOME"])
                nutch(server, folder, home, name, rounds=3, cap=2000)
            else:
                crawl(server, folder, WAYS[name], rounds=3, cap=2000)
                folder /= "crawl"
        entries = CrawlDb(folder / "crawldb").items()
        known.append({url: (one.score, one.signature) for url, one in entries})
        lists.append([])
        for path in sorted(folder.glob(f"segments/*/{CRAWL_GENERATE}/part-*")):
            with SequenceFileReader(path) as reader:
                lists[-1] += [bytes(url) for url, _ in reader]
        assert len(server.requests) == len(lists[-1]) > 300
    assert known[0] == known[1] and lists[0] == lists[1]


@pytest.mark.slow
def test_the_seed_of_hashes_decides_nothing() -> None:
    asked = []
    web = {f"{name}.example": site for name, site in sites(20).items()}
    web |= {f"mirror{number}.example": catalogue(40) for number in range(4)}
    for _ in range(2):
        crawl = ColumnCrawl(web, 20)
        for _ in range(9):
            crawl.round()
        asked.append(crawl.asked)
    assert asked[0] == asked[1]


@pytest.mark.slow
def test_a_budget_finds_more_with_the_same_requests(tmp_path: Path) -> None:
    good = []
    for name in ("none", "budget"):
        (folder := tmp_path / name).mkdir()
        with served(sites(60)) as server:
            crawl(server, folder, WAYS[name], rounds=20, cap=700)
            assert 400 < len(server.requests) <= 700 + 22
            good.append(sum(is_good for _, is_good in server.requests) / len(server.requests))
    assert good[1] > good[0] + 0.04  # 0.80 and 0.74, of 0.93 at most


@pytest.mark.slow
def test_a_crawl_that_fails_is_no_result(tmp_path: Path) -> None:
    with served(sites(20)) as server, pytest.raises(RuntimeError, match="ends with"):
        crawl(server, tmp_path, Way({"http.timeout": "soon"}), rounds=1, cap=50)
