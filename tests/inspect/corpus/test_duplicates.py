"""Near-duplicates: which texts are one cluster; lines that came before; both within any memory."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.cycle.owntext.near import band_keys
from minutch.inspect.corpus import rows

WORDS = [f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(600)]


def clusters(texts: list[str], memory: int = 1 << 20) -> list[int]:
    """The first text of the cluster of each."""
    keys = band_keys(pl.Series(texts, dtype=pl.String))
    counts = np.ones(len(texts), np.bool_)
    found = rows.clusters(lambda band: keys[band].to_numpy(), counts, memory)
    return [int(row) for row in found]


def altered(words: list[str], share: float, seed: int) -> list[str]:
    """The words, of whose runs about this share is another, in a block at the end."""
    kept = words[: round(len(words) * (1 - share))]
    more = words[len(kept) :]
    return kept + [f"{word}{chr(97 + seed % 26)}" for word in more]


def test_spelling_and_signs_do_not_count() -> None:
    texts = [
        "The café has 12 chairs, and 3.50 is the price!",
        "the CAFE  has \uff11\uff12 chairs and\n3,50 is; the price",
        "the cafe has 12 chairs and 350 is the price",
        "the cafe has 7 chairs and 9 is the price",
        "the cafe has chairs and is the price",
    ]
    assert clusters(texts) == [0, 0, 2, 3, 4]


def test_texts_with_few_words_are_as_a_whole() -> None:
    assert clusters(["one two", "One, two.", "one", "", "!", "one two three"]) == [0, 0, 2, 3, 4, 5]


@pytest.mark.parametrize(("similar", "least", "most"), [(0.95, 0.99, 1.0), (0.4, 0.0, 0.1)])
def test_the_share_of_the_runs_decides(similar: float, least: float, most: float) -> None:
    """Two texts of n runs that have m in common are similar by m / (2 n - m)."""
    share = 1 - 2 * similar / (1 + similar)
    together = 0
    for seed in range(60):
        random.Random(seed).shuffle(words := WORDS.copy())
        pair = [" ".join(words), " ".join(altered(words, share, seed))]
        together += clusters(pair) == [0, 0]
    assert least <= together / 60 <= most


def test_a_cluster_is_all_that_are_near_by_way_of_others() -> None:
    texts = [" ".join(altered(WORDS, share, 1)) for share in (0.12, 0.06, 0.0)]
    texts += ["another text " * 20, " ".join(altered(WORDS, 0.0, 2))]
    assert clusters([texts[3], *texts[:3], texts[4]]) == [0, 1, 1, 1, 1]


@given(st.lists(st.integers(0, 6), max_size=30), st.integers(1, 2000))
def test_memory_changes_no_cluster_and_no_line(numbers: list[int], memory: int) -> None:
    texts = [WORDS[number] for number in numbers]
    assert clusters(texts, memory) == [numbers.index(number) for number in numbers]
    hashes = np.array(numbers, np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)  # 0 is no line

    def lines() -> Iterator[npt.NDArray[np.uint64]]:
        yield hashes[:7]
        yield hashes[7:]

    found = rows.came_before(lines, len(hashes), memory)
    assert found.tolist() == [
        number > 0 and number in numbers[:at] for at, number in enumerate(numbers)
    ]
