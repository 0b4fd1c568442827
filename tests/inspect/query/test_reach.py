"""Chains of redirects."""

from __future__ import annotations

import random
from itertools import pairwise

import polars as pl
import pytest

from minutch.inspect.query.reach import MOST_HOPS, longest
from tests.support.examples import tabled


def of(leads: dict[int, int]) -> pl.DataFrame:
    return pl.DataFrame(
        {"id": list(leads), "to": list(leads.values())}, schema={"id": pl.UInt64, "to": pl.UInt64}
    )


def test_no_redirects() -> None:
    assert longest(of({}), 10) == (0, [])
    assert longest(of({1: 2, 3: 4}), 10) == (0, [])


def test_the_longest_first() -> None:
    leads = {1: 2, 2: 3, 3: 4, 11: 12, 12: 4, 21: 22}
    assert longest(of(leads), 10) == (2, [[1, 2, 3, 4], [11, 12, 4]])
    assert longest(of(leads), 1) == (2, [[1, 2, 3, 4]])


@pytest.mark.parametrize(
    ("leads", "chain"),
    [
        ({1: 2, 2: 1}, [1, 2, 1]),
        ({1: 2, 2: 3, 3: 2}, [1, 2, 3, 2]),
        ({3: 5, 5: 9, 9: 3}, [3, 5, 9, 3]),
    ],
)
def test_circles(leads: dict[int, int], chain: list[int]) -> None:
    assert longest(of(leads), 10)[1][0][: len(chain)] == chain


def test_a_redirect_to_itself_is_no_chain() -> None:
    assert longest(of({7: 7}), 10) == (0, [])


def test_a_very_long_chain_is_cut() -> None:
    count, (chain,) = longest(of({number: number + 1 for number in range(1000)}), 1)
    assert count == 1
    assert chain == list(range(MOST_HOPS + 1))


@tabled("seed", range(20))
def test_every_redirect_is_in_a_chain_or_alone(seed: int) -> None:
    chance = random.Random(seed)
    leads = {chance.randrange(1, 60): chance.randrange(1, 90) for _ in range(40)}
    count, chains = longest(of(leads), 1000)
    assert len(chains) == count
    for chain in chains:
        assert all(leads[a] == b for a, b in pairwise(chain))
        assert chain[-1] not in leads or chain[-1] in chain[:-1]
    covered = {one for chain in chains for one in chain[:-1]}
    for one, to in leads.items():
        assert one in covered or to not in leads or one == to, one
