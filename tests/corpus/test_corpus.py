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

LEAST = 450


Crawls = Callable[[str], Crawled]


@pytest.fixture(scope="module")
def crawls(tmp_path_factory: pytest.TempPathFactory) -> Crawls:
    """Returns what came out of a way."""
    return cache(lambda way: crawl(tmp_path_factory.mktemp(way), way))


def _in_ways(kind: str) -> list[Any]:
    """The cases of a kind in the ways that they have answers for: only some in `loads`."""
    return [
        pytest.param(way, case, id=f"{case}-{way}")
        for way in WAYS
        for case in cases(kind)
        if way != LOADS or way in case.table
    ]


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


@pytest.mark.parametrize(("way", "case"), _in_ways("page"))
def test_pages(crawls: Crawls, way: str, case: Case) -> None:
    found, table = crawls(way), _answers(case, way)
    if "redirect" in table:
        data = found.parses.get(case.url)
        led = (data.status.args or [])[:1] if data is not None else []
        status = str(found.fetched[case.url].metadata.get(Text("_pst_")))
        led += [url for moved, _, url in [status.partition(": ")] if "moved" in moved]
        assert led == ([_whole(table["redirect"])] if table["redirect"] else [])
        return
    data = found.parses[case.url]
    answers = {
        "links": [link.to_url for link in data.outlinks],
        "title": data.title,
        "text": " ".join(found.texts[case.url].split()),
        "charset": (data.parse_meta.first(CHAR_ENCODING_FOR_CONVERSION_KEY) or "").lower(),
    }
    expected = {name: table[name] for name in answers if name in table}
    if "links" in expected:
        expected["links"] = [_whole(url) for url in expected["links"]]
    assert expected
    assert {name: answers[name] for name in expected} == expected


@pytest.mark.parametrize("case", cases("robots"), ids=str)
def test_robots(crawls: Crawls, case: Case) -> None:
    fetched = {
        url.removeprefix(case.host): str(datum.metadata.get(Text("_pst_"))).partition("(")[0]
        for url, datum in crawls(DEFAULT).fetched.items()
        if url.startswith(f"{case.host}/")
    }
    assert fetched == dict.fromkeys(case.table.get("allowed", ()), "success") | dict.fromkeys(
        case.table.get("refused", ()), "robots_denied"
    )


@pytest.mark.parametrize("case", [c for c in cases("robots") if "delay" in c.table], ids=str)
def test_delays(case: Case) -> None:
    rules = parse_robots(case.answers()[case.url].body, "text/plain", [SETTINGS["http.agent.name"]])
    assert (-1 if rules.crawl_delay is None else rules.crawl_delay) == case.table["delay"]


@pytest.mark.parametrize(("way", "case"), _in_ways("sitemap"))
def test_sitemaps(crawls: Crawls, way: str, case: Case) -> None:
    found = sorted(
        url
        for url in crawls(way).listed
        if url.lower().startswith((f"{case.host}/", f"{case.host}:"))
    )
    listed = {case.url, *(case.host + path for path in case.table.get("more", {}))}
    urls = _answers(case, way)["urls"]
    assert [url for url in found if url not in listed] == sorted(
        case.host + url if url.startswith("/") else url for url in urls
    )
