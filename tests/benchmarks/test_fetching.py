"""The fetch benchmark: its URLs, its server, what it makes of measurements."""

from __future__ import annotations

import shutil
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.benchmarks.fetchers import FETCHERS, Work, measure
from tests.benchmarks.fetching import Result, cases, make_urls, markdown, ratios
from tests.benchmarks.pageserver import page_url, serving


def test_urls_are_shared_out_evenly_and_the_same_each_time() -> None:
    urls = make_urls(20_000, 2000, 200, 8080)
    assert urls == make_urls(20_000, 2000, 200, 8080) and len(set(urls)) == 20_000
    assert set(Counter(urlsplit(url).hostname for url in urls).values()) == {100}
    assert set(Counter(url.rsplit("/", 1)[1] for url in urls).values()) == {10}


@pytest.mark.parametrize("with_nginx", [True, False])
def test_every_address_has_the_pages_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_nginx: bool
) -> None:
    if not with_nginx:
        monkeypatch.setattr(shutil, "which", lambda *args, **kwargs: None)
    pages = [b"<p>first", b"<p>second"]
    with serving(pages, tmp_path) as (port, name, _):
        if with_nginx and name != "nginx":
            pytest.skip("nginx is not installed")
        for number in range(4):
            with urllib.request.urlopen(
                page_url(f"127.0.1.{number + 1}", port, number, 2)
            ) as response:
                assert response.read() == pages[number % 2]
                assert response.headers["Content-Type"] == "text/html; charset=utf-8"
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/robots.txt")


@pytest.mark.slow  # fetches as the benchmark does
@pytest.mark.parametrize("name", ["parse", "while"])
def test_our_own_cases_end_with_every_page_parsed(tmp_path: Path, name: str) -> None:
    fetcher = next(fetcher for fetcher in FETCHERS if fetcher.name == name)
    with serving([b"<title>a page</title>"] * 3, tmp_path / "site") as (port, _, _):
        cost = measure(fetcher, Work(tmp_path / "run", make_urls(12, 3, 4, port), threads=4))
    assert cost.cpu_seconds > 0 and not (tmp_path / "run").exists()


def test_ratios() -> None:
    results = [
        Result("parse", 1, 900.0, 1000.0, 100.0),
        Result("parse", 2, 1620.0, 950.0, 90.0),
        Result("scrapy", 1, 300.0, 250.0, 120.0),
    ]
    assert ratios(results) == {"parse: 2 processes/1": 1.8, "parse/scrapy": 4.0}
    assert "| parse/scrapy | 4.00 |" in markdown(results)
    assert "| minutch fetch, parse | 2 | 1,620 | 950 | 90 MB |" in markdown(results)


def test_what_is_missing_is_left_out_with_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NUTCH_HOME", raising=False)
    found = cases([], [1, 2], None)
    assert [(case.fetcher.name, case.processes) for case in found] == [
        (name, count) for name in ("parse", "while", "store") for count in (1, 2)
    ]
    assert capsys.readouterr().err.count("without ") == 3
