"""Values as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from minutch.web import cells
from tests.inspect.report.madeup import BAD, HOSTILE
from tests.support.examples import tabled


@tabled(
    ("shown", "value", "text"),
    [
        (cells.count, None, "–"),
        (cells.count, 0, "0"),
        (cells.count, 1234567, "1,234,567"),
        (cells.short, 0, "0"),
        (cells.short, 2.5, "2.5"),
        (cells.short, 999, "999"),
        (cells.short, 1500, "1.5k"),
        (cells.short, 2_000_000, "2M"),
        (cells.size, 0, "0 B"),
        (cells.size, 999, "999 B"),
        (cells.size, 1000, "1 kB"),
        (cells.size, 123_456, "123 kB"),
        (cells.size, 999_600, "1 MB"),
        (cells.size, 5_250_000_000, "5.25 GB"),
        (cells.milliseconds, 85, "85 ms"),
        (cells.milliseconds, 1250, "1.25 s"),
        (cells.span, 45, "45 s"),
        (cells.span, 3600, "1 h"),
        (cells.span, 86400, "1 day"),
        (cells.span, 30 * 86400, "30 days"),
        (cells.span, 2000 * 86400, "2,000 days"),
    ],
)
def test_numbers(shown: object, value: float | None, text: str) -> None:
    assert callable(shown) and shown(value) == text


def test_times() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert cells.moment(moment) == '<time datetime="2026-01-02T03:04:05Z">2026-01-02 03:04</time>'
    assert cells.moment(None) == "–"


@pytest.mark.parametrize("scheme", ["http://a.org/", "https://a.org/?x=1&y", "HTTP://a.org/"])
def test_addresses_of_the_web_are_links(scheme: str) -> None:
    assert cells.address(scheme).startswith("<a href=")
    assert 'rel="noopener noreferrer nofollow"' in cells.address(scheme)


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "http://[",
        HOSTILE,
        "http://a/" * 999,
        "",
    ],
)
def test_others_are_not(address: str) -> None:
    assert "href" not in cells.address(address)


@pytest.mark.parametrize("shown", [cells.words, cells.address])
def test_what_comes_from_the_web_is_text(shown: object) -> None:
    assert callable(shown)
    found = shown(f"{BAD}\x1b[31m\u202e\x00\ud800")
    assert "<script" not in found and "<img" not in found
    assert not set(found) & set("\x1b\u202e\x00\ud800")
    assert "\\u202e" in found


def test_long_texts_are_cut() -> None:
    assert len(cells.words("x" * 10_000)) < 200
    assert cells.words("x" * 10_000).endswith("…</bdi>")


def test_a_table_sorts_by_values() -> None:
    columns = [cells.text("Name", "name"), cells.number("Size", "size", cells.size)]
    found = cells.table(
        "Files", [{"name": "<a>", "size": 1500}, {"name": None, "size": None}], columns, "2 of 9"
    )
    assert '<td class="number" data-value="1500">1.5 kB</td>' in found
    assert '<td class="number">–</td>' in found
    assert '<th scope="row"><bdi>&lt;a&gt;</bdi></th>' in found
    assert "<caption>Files</caption>" in found and "2 of 9" in found
