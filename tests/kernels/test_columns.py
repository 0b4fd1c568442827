"""What an update asks of its columns: which URLs name no host, which rows lead to which."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from minutch.kernels import keycolumns
from minutch.kernels.arrow import from_series
from minutch.kernels.patterns import unsure_of_host
from minutch.urls.hostcolumns import lack_host
from minutch.urls.parts import lacks_host
from tests.urls.strategies import urls

HOSTS = ["http://a@b/", "http://@/", "http://a.b", "http://a/@", "http://a?@", "https://1:80/c@d"]


@given(st.lists(urls | st.sampled_from(HOSTS), max_size=8))
def test_urls_without_host(some: list[str]) -> None:
    # What follows a string in memory must not count, so they are of every length at every place.
    some = [url.encode("utf-8", "replace").decode() for url in some]
    asked = pl.Series([*some, None], dtype=pl.String)
    assert lack_host(asked).to_list() == [*map(lacks_host, some), False]


def test_usual_urls_are_sure_to_have_one() -> None:
    sure = ["http://ab", "https://a.b/@c", "http://1.example.org/?a=@", "https://a.example:80"]
    unsure = ["http:///a", "https://", "ftp://a/", "http://a.example.org@b/", "HTTP://a/", "", "a"]
    strings, rows = from_series(pl.Series(sure + unsure)), np.empty(11, np.int64)
    assert unsure_of_host(strings.views, strings.addresses, rows) == len(unsure)
    assert rows[: len(unsure)].tolist() == [*range(len(sure), len(sure + unsure))]


@given(st.data(), st.lists(st.integers(-1, 5), min_size=1, max_size=5))
def test_rows_that_lead_to_rows(data: st.DataObject, row_of: list[int]) -> None:
    numbers = st.integers(0, len(row_of) - 1)
    group = data.draw(st.lists(numbers, min_size=1, max_size=9).map(sorted))
    rows = data.draw(st.lists(st.integers(0, len(group) - 1), max_size=9))
    chosen, led_to = np.empty(len(rows), np.int64), np.empty(len(rows), np.uint32)
    arrays = (np.array(values, np.int64) for values in (group, rows, row_of))
    count = keycolumns.rows_led_to(*arrays, chosen, led_to)
    expected = [(row, row_of[group[row]]) for row in rows if row_of[group[row]] >= 0]
    assert [*zip(chosen[:count].tolist(), led_to[:count].tolist(), strict=True)] == expected
