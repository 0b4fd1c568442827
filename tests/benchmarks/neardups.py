"""Measures near-duplicates: how fast they are found, and how well.

    python -m tests.benchmarks.neardups [--rows 100000 1000000 5000000] [--pages 1000] [--folder
    PAGES]

Four tables in Markdown. How many texts are signed in a second, and get keys of MinHash. What it
takes to find the near-duplicates among so many random signatures, one in five of which is at most
three bits from another. And, on pages that are edited, which part of the pairs of a page and its
edited copy are within k bits (recall), and which part of the pairs within k bits are such pairs
(precision), for each k; and in the last row the same of those that `owntext.near` has for near
each other.

The edits: 1 and 5 of a hundred words changed; a sentence inserted; the page's text in the frame
(menu, footer) of another; the frame of the page around the text of another, which is no duplicate.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from minutch.cycle.crawldb.duplicates import NO_LEADER, leaders
from minutch.cycle.owntext.near import band_keys
from minutch.cycle.parse.simhash import simhash
from minutch.kernels.native import U64, Flags
from tests.benchmarks.htmlpages import corpus

BITS: Final = range(11)
_TAGS: Final = re.compile(rb"(?s)<(script|style)\b.*?</\1>|<[^>]*>")
_NO_GROUPS: Final = np.empty(0, np.uint64)
Edit = Callable[[random.Random, list[str], list[str]], list[str]]
"""A page's words and another page's -> the words of the edited page."""


def changed(share: float) -> Edit:
    """So many of the words are another page's."""

    def edit(rng: random.Random, words: list[str], other: list[str]) -> list[str]:
        return [rng.choice(other) if rng.random() < share else word for word in words]

    return edit


def inserted(rng: random.Random, words: list[str], other: list[str]) -> list[str]:
    """Twenty words of the other page in one place."""
    at, start = rng.randrange(len(words)), rng.randrange(max(len(other) - 20, 1))
    return [*words[:at], *other[start : start + 20], *words[at:]]


def reframed(rng: random.Random, words: list[str], other: list[str]) -> list[str]:
    """The first and the last twenty words are the other page's."""
    return [*other[:20], *words[20:-20], *other[-20:]]


def only_the_frame(rng: random.Random, words: list[str], other: list[str]) -> list[str]:
    """The first and last twenty words stay, all others are the other page's."""
    return [*words[:20], *other[20:-20], *words[-20:]]


EDITS: Final[dict[str, tuple[Edit, bool]]] = {
    "1 % changed": (changed(0.01), True),
    "5 % changed": (changed(0.05), True),
    "inserted": (inserted, True),
    "template": (reframed, True),
    "other text": (only_the_frame, False),
}
"""Name → how a page is edited, and whether the outcome is its near-duplicate."""


def texts(pages: Sequence[bytes]) -> list[list[str]]:
    """The words of the pages that have two hundred or more, different texts only."""
    found = {_TAGS.sub(b" ", page).decode("utf-8", "replace") for page in pages}
    return [words for text in sorted(found) if len(words := text.split()) >= 200]


def edited(pages: list[list[str]], edit: Edit) -> list[str]:
    """Returns an edited copy of each page."""
    rng = random.Random(1)
    result = []
    for words in pages:
        other = rng.choice([each for each in rng.sample(pages, 2) if each is not words])
        result.append(" ".join(edit(rng, words, other)))
    return result


class Measured(NamedTuple):
    """What pages are compared by."""

    words: U64
    keys: np.ndarray

    @classmethod
    def of(cls, texts: Sequence[str]) -> Measured:
        words = np.array([simhash(text) or 0 for text in texts], np.uint64)
        return cls(words, band_keys(pl.Series(texts)).to_numpy())

    def near(self, others: Measured, bits: int | None) -> Flags:
        """Returns which are within so many bits of the others; None: which have a key of theirs."""
        if bits is None:
            return np.asarray((self.keys == others.keys).any(axis=1))
        return np.asarray(np.bitwise_count(self.words ^ others.words) <= bits)

    def pairs(self, bits: int | None) -> int:
        """Counts the pairs of pages near each other."""
        last = range(1, len(self.words))
        each = ((self.upto(at), Measured(self.words[at], self.keys[at])) for at in last)
        return sum(int(before.near(one, bits).sum()) for before, one in each)

    def upto(self, end: int) -> Measured:
        """Returns the first ones."""
        return Measured(self.words[:end], self.keys[:end])


def show_quality(pages: list[list[str]]) -> None:
    """The curve over k."""
    own = Measured.of([" ".join(page) for page in pages])
    copies = {name: Measured.of(edited(pages, edit)) for name, (edit, _) in EDITS.items()}
    print(
        f"\nEdited copies of {len(pages):,} pages; and {len(pages) * (len(pages) - 1) // 2:,} pairs"
        " of different ones\n"
    )
    print(
        "| k |",
        " | ".join(f"recall: {name}" for name, (_, is_near) in EDITS.items() if is_near),
        "| recall | precision | pairs of different pages |",
    )
    print("|--:" * (sum(is_near for _, is_near in EDITS.values()) + 4) + "|")
    for bits in (*BITS, None):
        found = {name: int(own.near(copy, bits).sum()) for name, copy in copies.items()}
        right = [found[name] for name, (_, is_near) in EDITS.items() if is_near]
        others = own.pairs(bits)
        false = sum(found.values()) - sum(right) + others
        shares = [f"{count / len(pages):.3f}" for count in right]
        recall = sum(right) / len(pages) / len(right)
        precision = sum(right) / max(sum(right) + false, 1)
        print(
            f"| {'texts' if bits is None else bits} |",
            " | ".join(shares),
            f"| {recall:.3f} | {precision:.3f} | {others} |",
        )


def _price(rng: random.Random) -> str:
    return f"{rng.randrange(5, 900)}.{rng.randrange(100):02}"


def _date(rng: random.Random) -> str:
    return (
        f"Printed on {rng.randrange(1, 29)} March 2024 at {rng.randrange(24)}:{rng.randrange(60)}"
    )


def series(rng: random.Random, words: list[str], numbers: int) -> tuple[str, str]:
    """Two pages of a series: the same words, in the same places other numbers."""
    places = [rng.randrange(len(words)) for _ in range(numbers)]
    pair = [words.copy(), words.copy()]
    for page in pair:
        for place in places:
            page.insert(place, _price(rng))
    return " ".join(pair[0]), " ".join(pair[1])


def listed(rng: random.Random, words: list[str], each: int) -> tuple[str, str]:
    """Two lists: a price after so many words each."""
    rows = [" ".join(words[at : at + each]) for at in range(0, len(words), each)]
    one, other = (" ".join(f"{row} {_price(rng)}" for row in rows) for _ in range(2))
    return one, other


def dated(rng: random.Random, words: list[str], numbers: int) -> tuple[str, str]:
    """Twins with so many numbers, the one printed at one time, the other at another."""
    text, _ = series(rng, words, numbers)
    return f"{text} {_date(rng)}", f"{text} {_date(rng)}"


def stamped(rng: random.Random, words: list[str], numbers: int) -> tuple[str, str]:
    """Twins of which one has the time of printing."""
    text, _ = series(rng, words, numbers)
    return text, f"{text} {_date(rng)}"


Pair = Callable[[random.Random, list[str], int], tuple[str, str]]
NUMBERS: Final[dict[str, tuple[Pair, int, int]]] = {
    "a series: 100 words, 4 numbers": (series, 100, 4),
    "a series: 300 words, 2 numbers": (series, 300, 2),
    "a series: 300 words, 6 numbers": (series, 300, 6),
    "a series: 600 words, 8 numbers": (series, 600, 8),
    "a list: 300 words, a price each 5": (listed, 300, 5),
    "a list: 600 words, a price each 30": (listed, 600, 30),
    "twins, 100 words: a date in one": (stamped, 100, 0),
    "twins, 300 words, 6 numbers: a date in one": (stamped, 300, 6),
    "twins, 100 words, 3 numbers: other dates": (dated, 100, 3),
    "twins, 300 words, 6 numbers: other dates": (dated, 300, 6),
}
"""Kind of pages → how a pair is made, its words, its numbers."""


def pairs_near(kind: str, pairs: int) -> float:
    """The share of pairs of a kind that are near each other."""
    make, count, numbers = NUMBERS[kind]
    rng = random.Random(1)
    word = [f"{a}{b}{c}" for a in ("ka", "lo", "mi") for b in "rstn" for c in ("e", "an", "ol")]
    made = [make(rng, rng.choices(word, k=count), numbers) for _ in range(pairs)]
    ones, others = (Measured.of(texts) for texts in zip(*made, strict=True))
    return float(ones.near(others, None).mean())


def show_numbers(pairs: int) -> None:
    """Pages that differ in numbers alone."""
    print("\n| differ in numbers alone | near each other |\n|---|--:|")
    for kind in NUMBERS:
        print(f"| {kind} | {pairs_near(kind, pairs):.2f} |")


def show_speed(sizes: Sequence[int], bits: int = 3) -> None:
    """The cost at each size."""
    print("\n| signatures | near-duplicates | CPU s | µs each |\n|--:|--:|--:|--:|")
    rng = np.random.default_rng(1)
    for rows in sizes:
        words = rng.integers(0, 2**64, rows, np.uint64, endpoint=False)
        copies = rows // 5
        words[:copies] = words[rng.integers(copies, rows, copies)]
        for _ in range(bits):
            words[:copies] ^= np.uint64(1) << rng.integers(0, 64, copies, np.uint64)
        words = rng.permutation(words)
        start = time.process_time()
        found = leaders(words, _NO_GROUPS, np.arange(rows), bits)
        took = time.process_time() - start
        print(
            f"| {rows:,} | {np.count_nonzero(found != NO_LEADER):,} | {took:.2f} |"
            f" {took / rows * 1e6:.2f} |"
        )


def show_signing(pages: list[list[str]]) -> None:
    """Prints the number of texts signed per second."""
    joined = [" ".join(words) for words in pages]
    size = sum(map(len, joined)) / len(joined)
    for name, sign in (
        ("signed", lambda: [simhash(text) for text in joined]),
        ("compared by MinHash", lambda: band_keys(pl.Series(joined))),
    ):
        sign()
        start = time.process_time()
        sign()
        took = time.process_time() - start
        print(
            f"\n{len(joined) / took:,.0f} texts of {size / 1000:.1f} KB {name} in a second of CPU"
            " time"
        )


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 5_000_000])
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    found = corpus(given.pages, given.folder)
    print(found)
    pages = texts(found.pages)
    show_signing(pages)
    show_speed(given.rows)
    show_quality(pages)
    show_numbers(given.pages)


if __name__ == "__main__":
    main()
