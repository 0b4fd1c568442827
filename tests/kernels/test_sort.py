"""The sort is Python's: ascending bytes, equal keys in their order."""

from __future__ import annotations

from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.kernels.arrow import from_series
from minutch.work.tables.frame import sort_by_key
from tests.support.examples import examples, few
from tests.support.tables import a_key


def sorted_rows(keys: list[bytes]) -> list[int]:
    """The row numbers of `keys` in the order that the kernel gives them."""
    frame = pl.DataFrame(
        {"key": keys, "row": range(len(keys))}, schema={"key": pl.Binary, "row": pl.Int64}
    )
    return sort_by_key(frame)["row"].to_list()


def expected(keys: list[bytes]) -> list[int]:
    return sorted(range(len(keys)), key=keys.__getitem__)


@settings(max_examples=examples(150))
@given(
    st.lists(
        st.text(alphabet="\0\x01ab\xff", max_size=30).map(lambda text: text.encode("latin-1")),
        max_size=60,
    )
)
def test_strings_that_begin_or_end_alike(keys: list[bytes]) -> None:
    assert sorted_rows(keys) == expected(keys)


@pytest.mark.parametrize("seed", few(range(4)))
@pytest.mark.parametrize("count", few([0, 1, 2, 100, 500, 20_000], 3))
def test_many_urls_with_duplicates(seed: int, count: int) -> None:
    random = Random(seed)
    keys = [a_key(random) for _ in range(count // 2)]
    keys += random.choices(keys, k=count - len(keys)) if keys else [b"x"] * count
    assert sorted_rows(keys) == expected(keys)


def test_one_string_many_times() -> None:
    keys = [b"http://www.example.org/the/same/page.html"] * 5000
    assert sorted_rows(keys) == list(range(5000))


def test_strings_of_zeros_differ_by_length() -> None:
    random = Random(2)
    keys = [bytes(random.randrange(40)) for _ in range(5000)]
    assert sorted_rows(keys) == expected(keys)


def test_shared_prefixes_longer_than_many_words() -> None:
    random = Random(3)
    keys = [b"/" * 5000 + b"%d" % random.randrange(1000) for _ in range(3000)]
    assert sorted_rows(keys) == expected(keys)


def test_sorted_tables_stay_as_they_are() -> None:
    keys = sorted(a_key(Random(i)) for i in range(100))
    assert sorted_rows(keys) == list(range(100))


def test_equal_keys_lie_in_memory_once() -> None:
    keys = [b"http://www.example.org/%d.html" % (i * 7 % 10) for i in range(1000)]
    ordered = sort_by_key(pl.DataFrame({"key": keys}, schema={"key": pl.Binary}))["key"]
    strings = from_series(ordered)
    assert ordered.to_list() == sorted(keys)
    assert len({tuple(view) for view in strings.views.tolist()}) == 10
