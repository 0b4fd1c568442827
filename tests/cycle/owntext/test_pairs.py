"""Pairs of pages with own texts near each other: as texts say, and asked of these once."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.cycle.owntext import near
from minutch.cycle.owntext.frames import FRAMES
from minutch.cycle.owntext.near import NearPairs
from minutch.errors import FormatError
from minutch.records.parsedata import ParseText
from tests.cycle.owntext.test_texts import html, prose, site, write
from tests.support.examples import examples

A = "http://sea.example"


def asked(crawl: Path, *names: str, version: int = 1, keep: bool = True) -> list[bool]:
    """Whether pages named "a b" are near each other."""
    both = [name.split() for name in names]
    table = pl.DataFrame(
        {
            "url": [f"{A}/{one}".encode() for one, _ in both],
            "version": [version] * len(both),
            "other": [f"{A}/{other}".encode() for _, other in both],
            "other_version": [version] * len(both),
        }
    )
    found = NearPairs(crawl)
    answers = found.ask(table).to_list()
    if keep:
        found.keep()
    return answers


def test_texts_are_read_once_until_a_parse_or_a_frame_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"1": prose(1, 9), "2": f"{prose(1, 9)} Printed on 3 May", "3": prose(3, 9), "4": ""}
    write(tmp_path, "20240101000000", {f"{A}/{name}": ParseText(t) for name, t in texts.items()})
    read, keys_of_pages = [], near.keys_of_pages

    def noted(*words: object) -> pl.DataFrame:
        read.append(len(words[-1]))  # type: ignore[arg-type]
        return keys_of_pages(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(near, "keys_of_pages", noted)
    names, expected = ("1 2", "3 2", "4 4", "1 none"), [True, False, False, False]
    assert asked(tmp_path, *names) == expected
    assert asked(tmp_path, *names) == expected
    assert asked(tmp_path, "1 2", keep=False) == [True]
    assert asked(tmp_path, *names, "1 3") == [*expected, False]
    assert read == [5, 2], "that pair alone"
    assert asked(tmp_path, "1 2", version=2) == [True]
    assert asked(tmp_path, "1 2") == [True], "what is not told again is forgotten"
    write(tmp_path, "20240102000000", site(range(5)))
    assert asked(tmp_path, "1 2") == [True], "its host has a frame now"
    assert read == [5, 2, 2, 2, 2]


@settings(max_examples=examples(5), deadline=None)
@given(st.lists(st.dictionaries(st.integers(0, 4), st.integers(0, 3)), min_size=2, max_size=4))
def test_what_is_remembered_is_what_would_be_told(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[dict[int, int]]
) -> None:
    crawl = tmp_path_factory.mktemp("crawl")
    names = [f"{a} {b}" for a in range(5) for b in range(a)]
    for day, some in enumerate(rounds):
        pages: dict[str, str | ParseText] = {f"{A}/{page}": html(n) for page, n in some.items()}
        write(crawl, f"2024010{day}000000", pages)
        kept = asked(crawl, *names, version=day)
        assert asked(crawl, *names, version=day) == kept
        shutil.rmtree(crawl / FRAMES)
        assert asked(crawl, *names, version=day) == kept


def test_damage_names_the_folder_that_may_be_deleted(tmp_path: Path) -> None:
    write(tmp_path, "20240101000000", site(range(3)))
    asked(tmp_path, "000 001")
    [file] = (tmp_path / FRAMES).glob("pairs.*")
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(FormatError, match=r"frames.*delete the folder"):
        asked(tmp_path, "000 001")
