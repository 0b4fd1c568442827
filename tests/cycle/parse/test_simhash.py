"""SimHash: texts that hardly differ have numbers that hardly differ, and the number of a text never
changes.
"""

from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.conf import Configuration
from minutch.cycle.parse.signature import MD5Signature, make_signature
from minutch.cycle.parse.simhash import SimHashSignature, simhash
from minutch.records.protocol import Content

MASK = 2**64 - 1


def mixed(value: int) -> int:
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & MASK
    return value ^ (value >> 31)


def plainly(words: list[str]) -> int:
    """The SimHash of words, as the docstring says it."""
    hashes = []
    for word in words:
        value = 0xCBF29CE484222325
        for char in word:
            value = (value ^ ord(char)) * 0x100000001B3 & MASK
        hashes.append(mixed(value))
    shingles = set()
    for i in range(max(len(words) - 2, 1)):
        value = 0
        for number in hashes[i : i + 3]:
            value = mixed((value * 0x100000001B3 + number + 0x9E3779B97F4A7C15) & MASK)
        shingles.add(value)
    bits = range(64)
    return sum(
        1 << bit
        for bit in bits
        if 2 * sum(shingle >> bit & 1 for shingle in shingles) > len(shingles)
    )


@given(st.lists(st.text(alphabet="abéж9", min_size=1, max_size=4), min_size=1, max_size=30))
def test_as_said_plainly(words: list[str]) -> None:
    assert simhash(" ".join(words)) == plainly(words)


@pytest.mark.parametrize(
    ("text", "like"),
    [
        ("Hello,  WORLD!\n", "hello world"),
        ("a b c a b c a b c", "a b c a b c"),
        ("ÉCOLE", "école"),
        ("x\0y", "x y"),
    ],
)
def test_case_punctuation_and_repetition_play_no_part(text: str, like: str) -> None:
    assert simhash(text) == simhash(like)


def test_the_numbers_stay_what_they_are() -> None:
    assert simhash("hello world") == 9214682482690160403
    assert simhash("日本語のテキスト") == plainly_alone("日本語のテキスト")


def plainly_alone(text: str) -> int:
    """The same for characters that are words of their own: they are marked by a bit of their
    own.
    """
    return plainly([chr(ord(char) | 0x10000) for char in text])


@pytest.mark.parametrize("text", ["", " \n", "!?", "…"])
def test_texts_without_words_have_none(text: str) -> None:
    assert simhash(text) is None
    page = Content(url="http://a/", content=b"x")
    assert SimHashSignature(Configuration()).calculate(page, text) == MD5Signature(
        Configuration()
    ).calculate(page, text)


@pytest.mark.parametrize("text", ["\ud800", "a\udfff b", "𠀀𠀁", "😀"])
def test_surrogates_do_no_harm(text: str) -> None:
    assert isinstance(simhash(text), int)


def test_edited_texts_are_near_and_others_are_not() -> None:
    random = Random(2)
    words = ["".join(random.choices("abcdefghij", k=6)) for _ in range(5000)]
    texts = [random.choices(words, k=800) for _ in range(60)]
    edited = [
        [random.choice(words) if random.random() < 0.01 else word for word in text]
        for text in texts
    ]
    numbers, others = ([simhash(" ".join(text)) or 0 for text in some] for some in (texts, edited))
    assert fmean((a ^ b).bit_count() for a, b in zip(numbers, others, strict=True)) < 8
    assert (
        fmean((a ^ b).bit_count() for a, b in zip(numbers, others[1:] + others[:1], strict=True))
        > 28
    )


def test_named_by_its_class() -> None:
    conf = Configuration().with_values(
        {"db.signature.class": "minutch.cycle.parse.simhash:SimHashSignature"}
    )
    signature = make_signature(conf)
    assert isinstance(signature, SimHashSignature)
    assert signature.calculate(Content(), "hello world") == (9214682482690160403).to_bytes(8, "big")
