"""An interrupted round is found and finished."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from minutch.cycle.crawl.rounds import Round, clear_left_overs, segments, steps_left, unfinished
from minutch.errors import StoreError
from tests.support.examples import tabled

STEPS = ["fetch", "parse", "updatedb", "invertlinks", "dedup"]
FETCHED = {"crawl_generate", "crawl_fetch", "content"}
PARSED = FETCHED | {"crawl_parse", "parse_data", "parse_text"}


@tabled(
    ("parts", "done", "left"),
    [
        (set(), None, []),
        ({"content"}, None, []),
        ({"crawl_generate"}, None, STEPS),
        ({"crawl_generate"}, ["generate", "fetch"], STEPS),
        (FETCHED | {"_fetch"}, None, STEPS),
        (FETCHED, None, STEPS[1:]),
        (FETCHED, ["generate", "fetch"], STEPS[1:]),
        (PARSED, None, []),
        (PARSED, ["generate", "fetch"], STEPS[2:]),
        (PARSED, ["generate", "fetch", "parse"], STEPS[2:]),
        (PARSED, ["generate", "fetch", "parse", "updatedb"], STEPS[3:]),
        (PARSED, ["generate", *STEPS], []),
    ],
)
def test_steps_left(parts: set[str], done: list[str] | None, left: list[str]) -> None:
    assert steps_left(parts, STEPS, done) == left


def make(crawl: Path, name: str, parts: set[str]) -> None:
    for part in parts:
        (crawl / "segments" / name / part).mkdir(parents=True)


def test_unfinished_segments_oldest_first(tmp_path: Path) -> None:
    assert unfinished(tmp_path, STEPS, Round.load(tmp_path)) == []
    make(tmp_path, "20260103000000", {"crawl_generate"})
    make(tmp_path, "20260101000000", PARSED)
    make(tmp_path, "20260102000000", FETCHED)
    assert segments(tmp_path) == ["20260101000000", "20260102000000", "20260103000000"]
    assert unfinished(tmp_path, STEPS, Round.load(tmp_path)) == [
        (Round("20260102000000", ["fetch"]), STEPS[1:]),
        (Round("20260103000000", []), STEPS),
    ]


def test_a_fetch_is_unfinished_while_it_has_a_log(tmp_path: Path) -> None:
    make(tmp_path, "1", FETCHED | {"_fetch"})
    assert unfinished(tmp_path, STEPS, Round.load(tmp_path)) == [(Round("1", ["fetch"]), STEPS[1:])]
    (tmp_path / "segments" / "1" / "_fetch" / "log-0").touch()
    assert unfinished(tmp_path, STEPS, Round.load(tmp_path)) == [(Round("1"), STEPS)]


def test_the_record_tells_what_a_segment_cannot(tmp_path: Path) -> None:
    make(tmp_path, "1", PARSED)
    make(tmp_path, "2", PARSED)
    Round("2", ["generate", "fetch", "parse", "updatedb"]).save(tmp_path)
    assert unfinished(tmp_path, STEPS, Round.load(tmp_path)) == [(Round("2", STEPS[:3]), STEPS[3:])]
    Round.forget(tmp_path)
    assert unfinished(tmp_path, STEPS, Round.load(tmp_path)) == []
    Round.forget(tmp_path)


def test_the_record_round_trips(tmp_path: Path) -> None:
    current = Round("20260101000000", ["fetch"])
    current.save(tmp_path)
    assert Round.load(tmp_path) == current
    assert [path.name for path in tmp_path.iterdir()] == [".round"]


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"segment": "1"}', '{"segment": "1", "done": 3}', "\xff"]
)
def test_a_damaged_record_stops_the_crawl(tmp_path: Path, text: str) -> None:
    """Without it, nobody would know that a round has stopped before updatedb."""
    (tmp_path / ".round").write_text(text, encoding="latin-1")
    with pytest.raises(StoreError, match=r"\.round: expected the record of a round"):
        Round.load(tmp_path)


def test_what_killed_jobs_left_goes(tmp_path: Path) -> None:
    gone = f".new-{2**22 + 1}"
    make(tmp_path, "1", {"crawl_generate", gone})
    names = (
        "crawldb/current",
        "crawldb/.previous",
        f"linkdb/.spill-{2**22 + 1}",
        "linkdb/current",
        "x/.next",
    )
    imported = f"segments/.import-{2**22 + 1}-1-{socket.gethostname()}.0/20260101000000"
    for folder in (*names, "segments/1/_fetch-done", imported):
        (tmp_path / folder).mkdir(parents=True)
    clear_left_overs(tmp_path)
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*")} == {
        "segments/1", "segments/20260101000000", "crawldb/current", "linkdb/current", "x/.next",
    }  # fmt: skip
    assert [path.name for path in (tmp_path / "segments/1").iterdir()] == ["crawl_generate"]


def test_hidden_folders_are_no_segments(tmp_path: Path) -> None:
    make(tmp_path, ".new-1", {"crawl_generate"})
    assert segments(tmp_path) == [] and unfinished(tmp_path, STEPS, Round.load(tmp_path)) == []
