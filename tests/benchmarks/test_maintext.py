"""The benchmark of main texts, on made-up pages."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest

from tests.benchmarks.maintext import __main__ as benchmark
from tests.benchmarks.maintext import pages_in, word_f1

MAIN = "The sea rises and falls twice a day, as the Moon pulls it."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("html", "ground-truth"):
        (tmp_path / name).mkdir()
    for number in range(12):
        name = f"{number:04}"
        page = f"<nav><a href=/>Home</a></nav><main><p>{MAIN}</main><footer>Imprint</footer>"
        (tmp_path / "html" / f"{name}.html.gz").write_bytes(gzip.compress(page.encode()))
        truth = {
            "url": f"https://www.site{number // 2}.co.uk/tides",
            "_internal": {"page_type": {"primary": "category" if number else "article"}},
            "ground_truth": {"main_content": MAIN},
        }
        (tmp_path / "ground-truth" / f"{name}.json").write_text(json.dumps(truth))
    return tmp_path


def test_pages_of_a_site_are_on_one_side(folder: Path) -> None:
    pages = list(pages_in(folder))
    assert {page.kind for page in pages} == {"article", "collection"}
    assert {page.site for page in pages} == {f"site{number}.co.uk" for number in range(6)}
    sides = [page.is_aside for page in pages]
    assert sides[::2] == sides[1::2]


def test_f1_counts_words() -> None:
    assert word_f1("One two, two", "two TWO three") == pytest.approx(4 / 6)
    assert word_f1("", "") == 1
    assert word_f1("a", "") == word_f1("", "a") == 0


def test_extractors_are_measured_side_by_side(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["maintext", "--pages", str(folder), "--extractors", "main"]
    monkeypatch.setattr(sys, "argv", arguments)
    benchmark.main()
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    scores = {(line[0], line[1]): float(line[2]) for line in lines if line[1] in {"tuned", "aside"}}
    assert scores["page", "tuned"] < scores["main", "tuned"] == 1
