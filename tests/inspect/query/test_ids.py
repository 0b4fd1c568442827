"""Ids are found among sorted ones, however these are spread."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from minutch.inspect.query.columns import SortedIds

_MOST = (1 << 64) - 1
IDS = st.integers(0, _MOST) | st.integers(0, 40) | st.integers(_MOST - 40, _MOST)


@given(st.sets(IDS, max_size=60), st.lists(IDS, max_size=40))
def test_each_id_is_found_where_it_is(known: set[int], others: list[int]) -> None:
    ids = np.array(sorted(known), np.uint64)
    wanted = np.array([*others, *known, *[one for one in known for _ in range(3)]], np.uint64)
    found = SortedIds(ids)
    for at, there in (found.places_of(wanted), found.places_of_runs(wanted)):
        assert there.tolist() == [one in known for one in wanted.tolist()]
        assert (ids[at[there]] == wanted[there]).all() and len(at) == len(wanted)
