"""Each case of the corpus has the right answer."""

from __future__ import annotations

import pytest

from minutch.hadoop.formats.writables import Text
from minutch.records.metadata import CHAR_ENCODING_FOR_CONVERSION_KEY
from tests.corpus.cases import PAGES, Case, cases
from tests.corpus.crawled import Crawled, crawl

LEAST = 200


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    return crawl(tmp_path_factory.mktemp("corpus"))


def _whole(url: str) -> str:
    return PAGES + url if url.startswith("/") else url


def test_there_are_enough() -> None:
    found = [case for kind in ("page", "robots", "sitemap") for case in cases(kind)]
    assert len(found) >= LEAST
    assert len({(case.kind, case.name) for case in found}) == len(found)
    assert [case.name for case in found if not case.table.get("by")] == []


@pytest.mark.parametrize("case", cases("page"), ids=str)
def test_pages(crawled: Crawled, case: Case) -> None:
    table = case.table
    if "redirect" in table:
        wanted = _whole(table["redirect"])
        data = crawled.parses.get(case.url)
        led = (data.status.args or [])[:1] if data is not None else []
        status = str(crawled.fetched[case.url].metadata.get(Text("_pst_")))
        assert wanted in led or status.endswith(f": {wanted}")
        return
    data = crawled.parses[case.url]
    answers = {
        "links": [link.to_url for link in data.outlinks],
        "title": data.title,
        "text": " ".join(crawled.texts[case.url].split()),
        "charset": (data.parse_meta.first(CHAR_ENCODING_FOR_CONVERSION_KEY) or "").lower(),
    }
    expected = {name: table[name] for name in answers if name in table}
    if "links" in expected:
        expected["links"] = [_whole(url) for url in expected["links"]]
    assert expected
    assert {name: answers[name] for name in expected} == expected


@pytest.mark.parametrize("case", cases("robots"), ids=str)
def test_robots(crawled: Crawled, case: Case) -> None:
    fetched = {
        url.removeprefix(case.host): str(datum.metadata.get(Text("_pst_"))).partition("(")[0]
        for url, datum in crawled.fetched.items()
        if url.startswith(f"{case.host}/")
    }
    assert fetched == dict.fromkeys(case.table.get("allowed", ()), "success") | dict.fromkeys(
        case.table.get("refused", ()), "robots_denied"
    )


@pytest.mark.parametrize("case", cases("sitemap"), ids=str)
def test_sitemaps(crawled: Crawled, case: Case) -> None:
    found = sorted(url for url in crawled.listed if url.startswith(f"{case.host}/"))
    listed = {case.url, *(case.host + path for path in case.table.get("more", {}))}
    expected = [case.host + path for path in case.table["urls"]]
    assert [url for url in found if url not in listed] == sorted(expected)
