"""The choice of pages is the same every time, whatever else lies about."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.benchmarks import htmlpages as module
from tests.benchmarks.htmlpages import corpus, made_up_pages


def write(folder: Path, count: int) -> None:
    for number in range(count):
        page = folder / f"{number % 7}" / f"{number}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_bytes(b"<p>%d</p>" % number + bytes(2000))


def test_the_same_pages_wherever_the_folder_is(tmp_path: Path) -> None:
    write(tmp_path / "a", 300)
    write(tmp_path / "b" / "c", 300)
    first, second = corpus(120, tmp_path / "a"), corpus(120, tmp_path / "b" / "c")
    assert first.pages == second.pages
    assert len(set(first.pages)) == 120
    assert corpus(50, tmp_path / "a").pages == first.pages[:50]
    assert 2000 < first.mean_bytes < 2020
    assert str(tmp_path / "a") in str(first)


def test_sizes_links_and_other_files_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, 100)
    expected = corpus(200, tmp_path).pages
    (tmp_path / "small.html").write_bytes(b"<p>")
    (tmp_path / "large.html").write_bytes(bytes(200_000))
    (tmp_path / "text.txt").write_bytes(bytes(3000))
    (tmp_path / "link.html").symlink_to(tmp_path / "0" / "0.html")
    assert len(expected) == 100
    assert corpus(200, tmp_path).pages == expected


def test_made_up_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "DOCUMENTATION", tmp_path)
    with caplog.at_level(logging.WARNING):
        made = corpus(150)
    assert "made-up" in caplog.text and made.source == "made up"
    assert made.pages == made_up_pages(150)
    assert 20_000 < made.mean_bytes < 24_000
    assert made.pages[0].count(b"<a ") == 50
