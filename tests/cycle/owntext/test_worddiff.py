"""cycle.owntext.worddiff: which words blocks have lost and got."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.cycle.owntext.worddiff import ADDED, REMOVED, SAME, as_lines, blocks, says_the_same
from tests.support.examples import examples

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=12).map(" ".join)


def test_a_pair_has_the_words_that_differ_with_some_around() -> None:
    old = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    [block] = blocks([old], [old.replace("nine", "9")])
    assert block.pieces == [
        (SAME, "… three four five six seven eight"), (REMOVED, "nine"), (ADDED, "9"),
        (SAME, "ten eleven twelve thirteen fourteen"),
    ]  # fmt: skip
    assert block.counts == (1, 1)
    assert as_lines(block.pieces) == [
        "- … three four five six seven eight nine ten eleven twelve thirteen fourteen",
        "+ … three four five six seven eight 9 ten eleven twelve thirteen fourteen",
    ]


def test_lines_are_paired_by_their_words() -> None:
    old = ["The price is 10 EUR", "Cats sleep all day long"]
    new = ["Cats sleep all night long", "The price is 12 EUR", "Dogs bark"]
    found = [(block.removed, block.added) for block in blocks(old, new)]
    assert found == [(old[1], new[0]), (old[0], new[1]), ("", new[2])]
    [gone] = blocks(["Birds sing"], [])
    assert (gone.removed, gone.added, gone.counts) == ("Birds sing", "", (0, 2))


@settings(max_examples=examples(200))
@given(st.lists(WORDS, max_size=5), st.lists(WORDS, max_size=5))
def test_every_line_is_in_one_block_and_its_pieces_say_what_it_was_and_is(
    old: list[str], new: list[str]
) -> None:
    found = list(blocks(old, new))
    removed = Counter(block.removed for block in found if block.removed)
    added = Counter(block.added for block in found if block.added)
    assert Counter(old) - removed == Counter(new) - added  # pairs of equal lines
    assert not (removed - Counter(old)) and not (added - Counter(new))
    for block in found:
        for kind, line in ((REMOVED, block.removed), (ADDED, block.added)):
            words = " ".join(words for op, words in block.pieces if op in (SAME, kind))
            if "…" in words:
                assert all(word in line.split() for word in words.split() if word != "…")
            elif line:
                assert words == line


def test_scripts_without_spaces_are_compared_by_letters() -> None:
    old = "次の会議は東京の本社で開催されます。"
    [block] = blocks([old], [old.replace("東京", "大阪")])
    assert block.pieces[1:3] == [(REMOVED, "東京"), (ADDED, "大阪")]
    assert block.counts == (2, 2)
    assert as_lines(block.pieces)[1].startswith("+ 次の会議は大阪の本社で")


def test_blocks_cut_otherwise_and_lists_in_another_order_say_the_same() -> None:
    assert says_the_same(["one two", "three"], ["one", "two three"])
    assert not says_the_same(["dog bites man"], ["man bites dog"])
    assert says_the_same(["Tags: a, b, c"], ["Tags: c, a, b"])
    assert not says_the_same(["Tags: a, b, c"], ["Tags: c, a, d"])
    assert list(blocks(["Tags: a, b, c", "x"], ["Tags: c, a, b"])) == list(blocks(["x"], []))


@pytest.mark.parametrize("names", [["a", "b"], [f"w{number}" for number in range(400)]])
def test_long_lines_are_not_compared_word_by_word(names: list[str]) -> None:
    """What is quadratic would take minutes for these."""
    rng = random.Random(1)
    old, new = (" ".join(["same", *rng.choices(names, k=50_000), end]) for end in ("x", "y"))
    [block] = blocks([old], [new])
    assert [op for op, _ in block.pieces] == [SAME, REMOVED, ADDED]
    short = [" ".join(rng.choices(["a", "b"], k=300)) for _ in range(2)]
    [block] = blocks(["x " + short[0]], ["y " + short[1]])
    assert [op for op, _ in block.pieces] == [REMOVED, ADDED]


def test_of_many_lines_each_is_compared_with_a_few() -> None:
    lines = [[f"line {number} {side}" for number in range(3000)] for side in ("was", "is")]
    found = list(blocks(*lines))
    assert all(block.removed.split()[:2] == block.added.split()[:2] for block in found)
    assert len(found) == 3000
