"""What visits of pages found that the visits before did not: the table, and its makers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

import minutch
from minutch.cycle.segment.compaction import compact
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    CRAWL_GENERATE,
    CRAWL_PARSE,
    PARSE_DATA,
    PARSE_TEXT,
    part_writer,
    segments_in,
)
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.inspect.query import changes
from minutch.inspect.query.changes import UNCHANGED, Changes, Since
from minutch.records import crawldatum as status
from minutch.records import protocol
from minutch.records.crawldatum import CrawlDatum
from minutch.records.parsedata import SUCCESS, ParseData, ParseStatus, ParseText
from minutch.records.protocol import ProtocolStatus
from tests.support.changingsite import ChangingSite
from tests.support.crawldbs import DAY, NOW

HOST = "http://a.example.org/"
GONE = (status.STATUS_FETCH_GONE, protocol.NOTFOUND, "")
DENIED = (status.STATUS_FETCH_GONE, protocol.ROBOTS_DENIED, "")
RETRY = (status.STATUS_FETCH_RETRY, protocol.EXCEPTION, "")
SAME = (status.STATUS_FETCH_NOTMODIFIED, protocol.NOTMODIFIED, "")
AWAY = (status.STATUS_FETCH_REDIR_TEMP, protocol.TEMP_MOVED, HOST)
Answer = str | tuple[int, int, str]
PROSE = "A page about the tides of the sea, and about the moon above it."


def moved(path: str) -> tuple[int, int, str]:
    return status.STATUS_FETCH_REDIR_PERM, protocol.MOVED, HOST + path


def crawl_of(folder: Path, *rounds: Mapping[str, Answer]) -> Path:
    """A crawl whose rounds had these answers, by path: a text, or status, protocol code, target."""
    for number, answers in enumerate(rounds):
        segment = folder / "segments" / f"{20260101000000 + number}"
        for empty in (CONTENT, CRAWL_GENERATE, CRAWL_PARSE):
            with part_writer(segment, empty, 0):
                pass
        with (
            part_writer(segment, CRAWL_FETCH, 0) as fetched,
            part_writer(segment, PARSE_DATA, 0) as data,
            part_writer(segment, PARSE_TEXT, 0) as texts,
        ):
            for path, answer in sorted(answers.items()):
                is_text = isinstance(answer, str)
                state, code, to = (
                    (status.STATUS_FETCH_SUCCESS, protocol.SUCCESS, "") if is_text else answer
                )
                datum = CrawlDatum(state, 0, 1.0, fetch_time=NOW + number * DAY)
                ended = ProtocolStatus(code, [to] if to else [])
                datum.metadata = MapWritable({Text("_pst_"): ended})
                url = path if path.startswith("http") else HOST + path
                fetched(url, datum)
                if is_text:
                    data(url, ParseData(ParseStatus(SUCCESS), path))
                    texts(url, ParseText(str(answer)))
    return folder


def told(folder: Path, since: Since | None = None) -> list[tuple[int, str, str, str | None]]:
    """Round, path, kind and target of the changes."""
    events = Changes(folder, segments_in(folder / "segments"), since).events()
    return [
        (
            int(segment[-2:]),
            url.removeprefix(HOST),
            kind,
            to if to in (None, HOST) else to.removeprefix(HOST),
        )
        for segment, url, kind, to in events.select("segment", "url", "kind", "to").iter_rows()
    ]


def test_what_becomes_of_a_page_is_told_once(tmp_path: Path) -> None:
    crawl_of(
        tmp_path,
        {"a": "A page.", "b": PROSE, "c": PROSE, "d": GONE},
        {"a": "A page.", "b": GONE, "c": SAME, "d": GONE},
        {"a": RETRY, "b": GONE, "c": f"{PROSE} More.", "d": "New."},
        {"a": DENIED, "b": PROSE, "c": SAME, "d": AWAY},
        {"a": "A page of ours.", "b": PROSE, "c": f"{PROSE} More.", "d": "New."},
    )
    assert told(tmp_path) == [
        (0, "a", "new", None),
        (0, "b", "new", None),
        (0, "c", "new", None),
        (1, "b", "gone", None),
        (2, "c", "changed", None),
        (2, "d", "new", None),
        (3, "b", "back", None),
        (3, "d", "gone", HOST),
        (4, "a", "changed", None),
        (4, "d", "back", None),
    ]


def test_a_page_moves_by_a_redirect_or_with_its_text(tmp_path: Path) -> None:
    first = {
        "a": f"First. {PROSE}",
        "b": f"Second. {PROSE}",
        "c": f"Third. {PROSE}",
        "d": "Few words",
    }
    crawl_of(
        tmp_path,
        first,
        {**first, "a": moved("a2"), "a2": first["a"], "b": GONE, "c2": first["c"]},
        {"b2": first["b"], "c": GONE, "d": GONE, "d2": first["d"]},
    )
    assert told(tmp_path)[4:] == [
        (1, "a", "moved", "a2"),
        (1, "b", "moved", "b2"),
        (2, "c", "moved", "c2"),
        (2, "d", "gone", None),
        (2, "d2", "new", None),
    ]


def test_a_page_that_is_back_before_it_moves_was_gone(tmp_path: Path) -> None:
    crawl_of(tmp_path, {"a": PROSE}, {"a": GONE}, {"a": PROSE}, {"a": GONE, "b": PROSE})
    assert told(tmp_path)[1:] == [
        (1, "a", "gone", None), (2, "a", "back", None), (3, "a", "moved", "b"),
    ]  # fmt: skip


def test_a_page_that_was_there_before_is_no_place_to_move_to(tmp_path: Path) -> None:
    crawl_of(tmp_path, {"a": PROSE, "b": PROSE}, {"a": GONE, "b": PROSE})
    assert told(tmp_path)[2:] == [(1, "a", "gone", None)]


def test_forms_of_a_page_that_end_with_it_are_no_places_to_move_to(tmp_path: Path) -> None:
    forms = {"a?print": PROSE, "a?from=feed": PROSE}
    over = dict.fromkeys(["a", *forms], GONE)
    crawl_of(tmp_path, {"a": PROSE}, forms, over, {"a?print": PROSE}, {"a?print": GONE})
    assert [one for one in told(tmp_path) if one[1] == "a"] == [
        (0, "a", "new", None), (2, "a", "gone", None),
    ]  # fmt: skip
    assert [one for one in told(tmp_path) if one[1] == "a?print"][1:] == [
        (2, "a?print", "gone", None), (3, "a?print", "back", None), (4, "a?print", "gone", None),
    ]  # fmt: skip
    other = crawl_of(tmp_path / "b", {"a": PROSE}, forms, {**over, "a2": PROSE})
    assert (2, "a", "moved", "a2") in told(other)


def test_since_asks_for_visits_and_compares_them_with_the_ones_before(tmp_path: Path) -> None:
    rounds = [{"a": f"{PROSE} {text}", "b": PROSE} for text in ("", "More.", "", "And so on.")]
    crawl_of(tmp_path, *rounds, {"b": PROSE})
    every = told(tmp_path)[2:]
    assert every == [(number, "a", "changed", None) for number in (1, 2, 3)]
    assert told(tmp_path, Since(segment="20260101000002")) == every[1:]
    assert told(tmp_path, Since(time=NOW + 3 * DAY)) == every[2:]
    assert told(tmp_path, Since(time=NOW + 4 * DAY)) == []
    assert told(tmp_path, Since(segment="20270101000000")) == []


def test_texts_without_marks_are_compared_by_sentences(tmp_path: Path) -> None:
    """Nutch's texts, and those of documents that are no HTML."""
    texts = [f"One thing. Version {n}.1. {PROSE} Viewed {n}00 times." for n in range(4)]
    crawl_of(tmp_path, *({"a": f"{text} And {text[:3]}{n // 3}"} for n, text in enumerate(texts)))
    found = minutch.open(tmp_path).sql("select kind, diff from changes order by segment")
    assert found.rows() == [("new", None), ("changed", "- And One0\n+ And One1")]


def test_what_a_compaction_has_left_is_not_told_as_new(tmp_path: Path) -> None:
    first = {"a": PROSE, "b": PROSE, "c": PROSE}
    crawl_of(
        tmp_path, first, {"a": "Other words.", "b": GONE}, {"c": SAME}, {"a": PROSE}, {"a": PROSE}
    )
    merged = compact(tmp_path / "segments", context=minutch.open(tmp_path).context)
    assert merged["segments merged"]
    crawl_of(tmp_path / "more", {"a": f"{PROSE} More.", "b": PROSE, "d": "New."})
    (tmp_path / "more/segments/20260101000000").rename(tmp_path / "segments/20260201000000")
    assert [(path, kind) for _, path, kind, _ in told(tmp_path)] == [
        ("b", "gone"), ("a", "changed"), ("b", "back"), ("d", "new"),
    ]  # fmt: skip


def test_ranges_give_what_the_whole_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges of some records, so that those of a site are in many."""
    rounds: list[dict[str, Answer]] = [
        {
            f"http://{n % 3}.example.org/{n}": f"Page {n} says {'more' if n == at else 'this'}."
            f" Viewed {n}{at} times. {PROSE}"
            for n in range(600)
        }
        for at in range(4)
    ]
    crawl_of(tmp_path, *rounds)
    segments = segments_in(tmp_path / "segments")
    whole = Changes(tmp_path, segments).events()
    cuts: list[int] = []
    cut = changes.cut
    monkeypatch.setattr(changes, "RANGE_SIZE", 1 << 13)
    monkeypatch.setattr(
        changes, "cut", lambda *args: (found := cut(*args), cuts.append(len(found)))[0]
    )
    assert Changes(tmp_path, segments).events().equals(whole)
    assert cuts[0] > 3
    counts = dict(whole["kind"].value_counts().iter_rows())
    assert counts == {"new": 600, "changed": 6, UNCHANGED: 1794}


def shares(site: ChangingSite, folder: Path) -> list[float]:
    """Precision and recall of changed pages, and of lines that were edited."""
    expected = site.write(folder)
    events = Changes(folder, segments_in(folder / "segments")).events()
    found = {
        (row["segment"], row["url"]): row
        for row in events.filter(pl.col("kind") != UNCHANGED).iter_rows(named=True)
    }
    pages = {(*key, row["kind"]) for key, row in found.items()}
    wanted = {(*key, kind) for key, (kind, _, _) in expected.items()}
    lines, edited = (set[tuple[str, ...]]() for _ in range(2))
    for key, row in found.items():
        for block in row["blocks"]:
            sides = [side for side in ("removed", "added") if block[side] and not block["muted"]]
            lines |= {(*key, side, block[side]) for side in sides}
    for key, (_, removed, added) in expected.items():
        edited |= {(*key, "removed", line) for line in removed}
        edited |= {(*key, "added", line) for line in added}
    right, edits = len(pages & wanted), len(lines & edited)
    return [right / len(pages), right / len(wanted), edits / len(lines), edits / len(edited)]


def test_edits_are_told_from_noise(tmp_path: Path) -> None:
    assert min(shares(ChangingSite(1, pages=20, visits=4), tmp_path)) >= 0.98


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("pages", "visits"), [(200, 5), (60, 8), (60, 3)])
def test_edits_are_told_from_noise_on_sites_of_all_kinds(
    tmp_path: Path, seed: int, pages: int, visits: int
) -> None:
    assert min(shares(ChangingSite(100 + seed, pages, visits), tmp_path)) >= 0.98
