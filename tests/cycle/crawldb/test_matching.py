"""Keys become numbers; rows of one key."""

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.cycle.crawldb.matching import (
    by_score,
    first_of_each,
    last,
    last_of_key,
    latest,
    match,
    merge_sorted,
    put_rows,
)
from minutch.work.tables.frame import has_repeats
from tests.support.examples import examples

keys = st.binary(max_size=20) | st.sampled_from([b"http://a/", b"http://a/b", b"http://a/bc", b""])


def column(values: list[bytes]) -> pl.Series:
    return pl.Series("key", values, dtype=pl.Binary)


@settings(max_examples=examples(100))
@given(st.lists(keys, max_size=12), st.sets(keys, max_size=12))
def test_match(some: list[bytes], known: set[bytes]) -> None:
    table = sorted(known)
    distinct = sorted(set(some))
    found = match(column(sorted(some)), column(table))
    assert found.group.tolist() == [distinct.index(key) for key in sorted(some)]
    assert found.at.tolist() == [table.index(key) if key in known else -1 for key in distinct]
    assert found.before.tolist() == [sum(other < key for other in table) for key in distinct]


LONG = [b"http://host.example.org/a/long/path/%d" % i for i in range(9, 12)]


@given(st.lists(keys | st.sampled_from(LONG), max_size=6))
def test_repeats(some: list[bytes]) -> None:
    assert has_repeats(column(sorted(some))) == (len(set(some)) < len(some))


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=90), st.integers(0, 5))
def test_lowest_scores_highest_first(links: list[tuple[int, int]], limit: int) -> None:
    links.sort(key=lambda link: link[0])
    group = np.array([g for g, _ in links], np.int64)
    scores = np.array([s for _, s in links], np.float32)
    expected: list[int] = []
    for number in sorted(set(group.tolist())):
        rows = sorted(np.flatnonzero(group == number).tolist(), key=lambda row: -scores[row])
        expected += rows[max(0, len(rows) - limit) :]
    assert by_score(np.arange(len(links)), group, scores, limit).tolist() == expected


def test_latest_and_last_and_first() -> None:
    group = np.array([0, 0, 1, 2, 2, 2])
    times = np.array([5, 5, 1, 3, 9, 9])
    rows = np.arange(6)
    assert latest(rows, group, times).tolist() == [0, 2, 4]
    assert last(rows, group).tolist() == [1, 2, 5]
    assert first_of_each(rows, group).tolist() == [0, 2, 3]
    assert latest(rows[2:4], group, times).tolist() == [2, 3]


def test_rows_go_into_a_table_in_their_places() -> None:
    table = pl.DataFrame({"key": column([b"b", b"d", b"f"]), "n": [1, 2, 3]})
    rows = pl.DataFrame({"n": [10, 20, 30], "key": column([b"a", b"d", b"g"])})
    found = put_rows(table, np.array([-1, 1, -1]), np.array([0, 1, 3]), rows)
    assert found.rows() == [(b"a", 10), (b"b", 1), (b"d", 20), (b"f", 3), (b"g", 30)]
    assert put_rows(table, np.zeros(0, int), np.zeros(0, int), rows.clear()) is table


def test_rows_of_one_key() -> None:
    frame = pl.DataFrame({"key": column([b"a", b"a", b"b"]), "x": [7, 8, 9]})
    assert last_of_key(frame)["x"].to_list() == [8, 9]
    assert merge_sorted(frame[:1], frame[2:])["x"].to_list() == [7, 9]
    assert merge_sorted(frame.clear(), frame) is frame
