"""The hash of the tables of kernels: all of a string counts, who does not know the seed can't make
strings collide.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from minutch.cycle.parse import linkverdicts, simhash
from minutch.kernels import hash, keycolumns
from minutch.kernels.arrow import from_series
from minutch.records.links import Outlink, OutlinkRun

ONE, OTHER = 0x0123_4567_89AB_CDEF, 0x7EDC_BA98_7654_3210
WORD = (1 << 64) - 1
SLOTS = 1024


def numbered(keys: list[str], seed: int) -> tuple[list[int], list[int], list[int]]:
    """Returns the first row of each string, each string's number, and the hash of each number."""
    count = len(keys)
    strings = from_series(pl.Series(keys, dtype=pl.String))
    slots = np.zeros(1 << max(4, (2 * count).bit_length()), np.int32)
    hashes, rows, numbers = (
        np.empty(count, np.uint64),
        np.empty(count, np.uint32),
        np.empty(count, np.uint32),
    )
    found = keycolumns.number(*strings[:2], seed, slots, hashes, rows, numbers)
    return rows[:found].tolist(), numbers.tolist(), hashes[:found].tolist()


def hashes_of(keys: list[str], seed: int) -> list[int]:
    return numbered(keys, seed)[2]


def folded(a: int, b: int) -> int:
    product = a * b
    return (product & WORD) ^ (product >> 64)


def expected_hash(key: bytes, seed: int) -> int:
    """The same hash with Python's integers."""
    odd, other = int(hash._ODD), int(hash._OTHER)
    secret = folded(seed ^ other, odd)
    state = seed ^ len(key)
    words = [key[i : i + 8] for i in range(0, max(0, (len(key) - 1) // 16 * 16), 8)]
    for first, second in zip(words[::2], words[1::2], strict=True):
        state = folded(
            int.from_bytes(first, "little") ^ secret, int.from_bytes(second, "little") ^ state
        )
    if len(key) >= 8:
        rest = key[max(len(key) - 16, 0) :]
        first, last = int.from_bytes(rest[:8], "little"), int.from_bytes(key[-8:], "little")
    else:
        first, last = int.from_bytes(key, "big"), 0
    return folded(folded(first ^ secret, last ^ state) ^ odd, secret ^ other)


def probes(hashes: list[int], size: int) -> int:
    """Places that a table of `size` looks at while these are put in, one after the other."""
    taken: set[int] = set()
    looked = 0
    for code in hashes:
        slot = code & (size - 1)
        looked += 1
        while slot in taken:
            slot = (slot + 1) & (size - 1)
            looked += 1
        taken.add(slot)
    return looked


@pytest.mark.parametrize("seed", [ONE, OTHER, hash.SEED], ids=["one", "other", "of this process"])
def test_every_byte_of_a_string_counts(seed: int) -> None:
    keys = [
        "http://host.example/a/path?of=sixty-five&characters=123456789abc"[:size]
        for size in range(1, 65)
    ]
    assert hashes_of(["", *keys], seed) == [
        expected_hash(key.encode(), seed) for key in ["", *keys]
    ]
    for key in keys:
        others = [key[:at] + chr(ord(key[at]) ^ 1) + key[at + 1 :] for at in range(len(key))]
        found = hashes_of([key, *others, key + "\0"], seed)
        assert len(set(found)) == len(others) + 2


def test_strings_that_collide_with_one_seed_are_spread_by_another() -> None:
    keys = [f"http://host.example/{number}" for number in range(400_000)]
    found = hashes_of(keys, ONE)
    chosen = [key for key, code in zip(keys, found, strict=True) if not code & (SLOTS - 1)]
    count = len(chosen)
    assert count > 300
    assert probes(hashes_of(chosen, ONE), SLOTS) == count * (count + 1) // 2
    assert (
        max(probes(hashes_of(chosen, seed), SLOTS) for seed in range(OTHER, OTHER + 40)) < 2 * count
    )


def test_each_process_draws_a_seed_that_fits_an_integer_of_kernels() -> None:
    assert 0 <= hash.SEED < 1 << 63


def test_numbers_do_not_depend_on_the_seed() -> None:
    keys = [f"http://host{number % 7}/{number % 40}" for number in range(500)]
    assert numbered(keys, ONE)[:2] == numbered(keys, OTHER)[:2]


def test_links_that_are_kept_do_not_depend_on_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    links = [
        Outlink(f"http://host{number % 7}/{number % 40}", f"anchor {number}")
        for number in range(500)
    ]
    run = OutlinkRun.of(links)
    assert run is not None

    def judge(url: str) -> str | None:
        return None if url.endswith("7") else url.replace("host1", "host2")

    def kept(seed: int) -> Any:
        monkeypatch.setattr(linkverdicts, "SEED", seed)
        table = linkverdicts.LinkVerdicts(
            lambda urls: pl.Series([judge(url) for url in urls], dtype=pl.String), judge
        )
        return table.keep([("http://host3/3", run), ("http://host3/4", run)], 300, 100)

    assert kept(ONE) == kept(OTHER)
    assert [len(links) for links, *_ in kept(ONE)] == [300, 300]


def test_a_simhash_does_not_depend_on_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(f"word{number % 60}" for number in range(1000))
    found = []
    for seed in (ONE, OTHER):
        monkeypatch.setattr(simhash, "SEED", seed)
        found.append(simhash.simhash(text))
    assert found[0] == found[1]
