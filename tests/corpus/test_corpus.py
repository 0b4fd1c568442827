"""Each case of the corpus has the right answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from minutch.hadoop.formats.writables import Text
from minutch.records.metadata import CHAR_ENCODING_FOR_CONVERSION_KEY
from minutch.urls.robots import parse_robots
from tests.corpus.cases import PAGES, Case, cases
from tests.corpus.crawled import DEFAULT, LOADS, SETTINGS, WAYS, Crawled, crawl
from tests.support.examples import few

LEAST = 450


WAYS_BY_DEFAULT = sorted(WAYS, key=lambda way: way != DEFAULT)
Crawls = Callable[[str], Crawled]


@pytest.fixture(scope="module")
def crawls(tmp_path_factory: pytest.TempPathFactory) -> Crawls:
    """Returns what came out of a way."""
    return cache(lambda way: crawl(tmp_path_factory.mktemp(way), way))


def _in_way(kind: str, way: str) -> list[Case]:
    """The cases of a kind that have answers for a way: only some in `loads`."""
    return [case for case in cases(kind) if way != LOADS or way in case.table]


def _whole(url: str) -> str:
    return PAGES + url if url.startswith("/") else url


def _answers(case: Case, way: str) -> dict[str, Any]:
    own = case.table.get(way, {})
    return own if way == LOADS else {**case.table, **own}


def test_there_are_enough() -> None:
    found = [case for kind in ("page", "robots", "sitemap") for case in cases(kind)]
    assert len(found) >= LEAST
    assert len({(case.kind, case.name) for case in found}) == len(found)
    assert [case.name for case in found if not case.table.get("by")] == []


@pytest.mark.parametrize("way", few(WAYS_BY_DEFAULT))
def test_pages(crawls: Crawls, way: str) -> None:
    found = crawls(way)
    compared = {case.name: _of_a_page(found, case, way) for case in _in_way("page", way)}
    assert _wrong(compared) == {}


def _wrong(compared: dict[str, tuple[Any, Any]]) -> dict[str, tuple[Any, Any]]:
    """The cases whose answers, the first of each pair, are not as expected."""
    assert compared
    return {name: pair for name, pair in compared.items() if pair[0] != pair[1]}


def _of_a_page(found: Crawled, case: Case, way: str) -> tuple[Any, Any]:
    """What was found of a page, and what was expected."""
    table = _answers(case, way)
    data = found.parses.get(case.url)
    if "redirect" in table:
        led = (data.status.args or [])[:1] if data is not None else []
        status = str(found.fetched[case.url].metadata.get(Text("_pst_")))
        led += [url for moved, _, url in [status.partition(": ")] if "moved" in moved]
        return led, [_whole(table["redirect"])] if table["redirect"] else []
    if data is None:
        return None, table
    answers = {
        "links": [link.to_url for link in data.outlinks],
        "title": data.title,
        "text": " ".join(found.texts[case.url].split()),
        "charset": (data.parse_meta.get(CHAR_ENCODING_FOR_CONVERSION_KEY) or "").lower(),
    }
    expected = {name: table[name] for name in answers if name in table}
    if "links" in expected:
        expected["links"] = [_whole(url) for url in expected["links"]]
    assert expected, case.name
    return {name: answers[name] for name in expected}, expected


def test_robots(crawls: Crawls) -> None:
    compared = {}
    for case in cases("robots"):
        fetched = {
            url.removeprefix(case.host): str(datum.metadata.get(Text("_pst_"))).partition("(")[0]
            for url, datum in crawls(DEFAULT).fetched.items()
            if url.startswith(f"{case.host}/")
        }
        allowed = dict.fromkeys(case.table.get("allowed", ()), "success")
        refused = dict.fromkeys(case.table.get("refused", ()), "robots_denied")
        compared[case.name] = fetched, allowed | refused
    assert _wrong(compared) == {}


def test_delays() -> None:
    compared = {}
    for case in (case for case in cases("robots") if "delay" in case.table):
        body = case.answers()[case.url].body
        delay = parse_robots(body, "text/plain", [SETTINGS["http.agent.name"]]).crawl_delay
        compared[case.name] = -1 if delay is None else delay, case.table["delay"]
    assert _wrong(compared) == {}


@pytest.mark.parametrize("way", few(way for way in WAYS_BY_DEFAULT if _in_way("sitemap", way)))
def test_sitemaps(crawls: Crawls, way: str) -> None:
    compared = {}
    for case in _in_way("sitemap", way):
        listed = {case.url, *(case.host + path for path in case.table.get("more", {}))}
        found = sorted(
            url
            for url in crawls(way).listed.keys() - listed
            if url.lower().startswith((f"{case.host}/", f"{case.host}:"))
        )
        compared[case.name] = (
            found,
            sorted(
                case.host + url if url.startswith("/") else url
                for url in _answers(case, way)["urls"]
            ),
        )
    assert _wrong(compared) == {}
