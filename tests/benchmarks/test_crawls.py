"""The benchmark of whole crawls: its web, what it counts, small crawls by those that are here."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections import deque
from pathlib import Path

import pytest

from tests.benchmarks.crawls.__main__ import Run, by_step, compared, main, one_run, reached
from tests.benchmarks.crawls.crawlers import CRAWLERS, Crawler, Work, measure
from tests.benchmarks.crawls.web import Web, title
from tests.benchmarks.pageserver import free_port, serving


def links(body: bytes) -> list[str]:
    return re.findall(r'href="(.*?)"', body.decode())


@pytest.mark.smoke
@pytest.mark.parametrize(("pages", "levels"), [(1, 1), (2, 2), (9, 2), (10, 3), (300, 4)])
def test_one_seed_leads_to_every_page_in_as_many_rounds_as_there_are_levels(
    pages: int, levels: int
) -> None:
    web = Web(pages, 7, 80)
    bodies = dict(zip(map(web.url, range(pages)), web.bodies(), strict=True))
    depth = {web.url(0): 1}
    queue = deque(depth)
    while queue:
        url = queue.popleft()
        for link in links(bodies[url]):
            if link not in depth:
                depth[link] = depth[url] + 1
                queue.append(link)
    assert depth.keys() == bodies.keys() and max(depth.values()) == web.levels == levels


def test_pages_are_as_large_as_said_and_none_is_like_another() -> None:
    bodies = list(Web(400, 100, 80).bodies())
    assert len(set(bodies)) == 400 and bodies == list(Web(400, 100, 80).bodies())
    assert sum(map(len, bodies)) / 400 == pytest.approx(15_000, rel=0.05)
    assert f"<title>{title(7)}</title>".encode() in bodies[7]
    assert Web(20_000, 100, 80).levels == 6
    assert len({Web(20_000, 100, 80).url(page).split("/")[2] for page in range(20_000)}) == 100


def run(crawler: str, **other: object) -> Run:
    values = {"seconds": 10.0, "cpu": 5.0, "server_cpu": 1.0, "peak_bytes": 10**8}
    return Run(crawler, **{**values, "stored": 20_000, "pages": 20_000, "steps": {}, **other})  # type: ignore[arg-type]


def test_the_table_shows_who_fetched_too_little_and_who_is_not_here() -> None:
    runs = [run("minutch", steps={"fetch": (2.0, 4.0)}), run("colly", pages=19_999, stored=30_000)]
    text = compared(runs, {"nutch": "no java"}, Web(20_000, 100, 80))
    assert (
        "| minutch crawl, all steps | 5.0 | 10.0 | 20,000 | 20,000 | 0.25 | 2,000 | 100 MB | 1.0 |"
        in text
    )
    assert "| colly (Go) | 5.0 | 10.0 | ONLY 19,999 | 30,000 |" in text
    assert "- Apache Nutch bin/crawl is not here: no java" in text
    assert "| fetch | 2.00 | 4.00 | 0.100 |" in by_step(runs) and not by_step(runs[1:])


def test_figures_to_be_reached() -> None:
    assert reached([run("minutch")]).count(" yes |") == 2
    assert reached([run("minutch", cpu=17.0, seconds=16.0)]).count(" NO |") == 2
    assert not reached([run("colly")])


@pytest.mark.parametrize("name", ["scrapy", "crawlee"])
def test_a_peer_stores_every_page_once(tmp_path: Path, name: str) -> None:
    if not importlib.util.find_spec(name):
        pytest.skip(f"{name} is not installed")
    crawler = next(one for one in CRAWLERS if one.name == name)
    web = Web(30, 4, free_port())
    with serving(web.bodies(), tmp_path / "site", web.port):
        work = Work(tmp_path / "run", web.url(0), 4)
        cost, stored, pages = measure(crawler, Path(sys.executable), work)
    assert stored == pages == 30
    assert cost.cpu_seconds > 0 and cost.tree_bytes >= cost.private_bytes > 0


@pytest.mark.slow  # a whole crawl
def test_minutch_stores_every_page_once_and_says_what_its_steps_took(tmp_path: Path) -> None:
    crawler = next(one for one in CRAWLERS if one.name == "minutch")
    web = Web(9, 2, free_port())
    with serving(web.bodies(), tmp_path / "site", web.port) as server:
        work = Work(tmp_path / "run", web.url(0), 4)
        found = one_run(crawler, crawler.build(tmp_path), work, server)
    assert found.pages == found.stored == 9 and found.peak_bytes > 0
    named = {"inject", "generate", "fetch", "updatedb", "invertlinks", "dedup"}
    assert named <= found.steps.keys()
    assert 0.6 * found.cpu < sum(cpu for cpu, _ in found.steps.values()) < found.cpu + 0.1


def test_who_is_not_here_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no go, cargo or java in it
    monkeypatch.delenv("NUTCH_HOME", raising=False)
    given = ["--pages", "2", "--keep", str(tmp_path)]
    assert main([*given, "--only", "colly", "spider", "nutch"]) == 0
    out = capsys.readouterr().out
    assert "- colly (Go) is not here: no go on this machine" in out
    assert "- spider (Rust) is not here: no cargo on this machine" in out
    assert "- Apache Nutch bin/crawl is not here: " in out
    found = json.loads(out.splitlines()[-1])
    assert found["crawls"] == {} and found["not here"].keys() == {"colly", "spider", "nutch"}


def test_every_crawler_has_a_name_of_its_own() -> None:
    assert len({crawler.name for crawler in CRAWLERS}) == len(CRAWLERS)
    assert all(isinstance(crawler, Crawler) for crawler in CRAWLERS)
