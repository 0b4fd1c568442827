"""What `scan` finds in bytes, beside Python's own codec and the patterns that say it in full."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.cycle.parse.mimerules import BytesKind, Magic, MagicBytes, TypeRegistry
from minutch.kernels import languages, scan, tags, textlinks
from plugins.lib_html.tree import next_tag_of
from tests.support import plainscan
from tests.support.examples import examples

_MARKUP = st.lists(
    st.sampled_from(
        [
            *(
                "<script",
                "</script",
                "</SCRIPT>",
                "<iframe",
                "</iframe>",
                "<Template",
                "</template>",
            ),
            *(
                "<p",
                "</p>",
                "<title",
                "<x-",
                "<!--",
                "-->",
                "--!>",
                "--",
                "-",
                ">",
                "=",
                '"',
                "'",
                "/",
                "a",
            ),
            *("<xmp", "<!", "<textarea>", "</textarea>", "\t", " ", 'x="<iframe"', "y='<template'"),
            *("<scripts", "é"),
        ]
    ),
    max_size=14,
).map(lambda parts: "".join(parts).encode())
_PIECES = (
    *(b"a", b"plain text ", "é".encode(), "水".encode(), "𠀀".encode()),
    *(b"\xff", b"\xc0\xaf", b"\xe0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"),
    *(b"\xf0\x8f", b"\x80", b"\xc3", b"\xe2\x80", b"\xf1\x80\x80"),
)
_PIECES_OF_SUMS = (
    *("+", " + ", "\u00a0+\n", "++", "'a'", '"/b"', "name", "$ab", "_1x", "ab", "größe", "a.bcd"),
    *(")", "]", ".", "(", ";", "=", "'", '"', "\\", "é", "1234", " "),
)
_SCRIPT = st.text(alphabet="ab/.h:t\\\"'\"' \n\u00a0\u2028é𠀀+", max_size=30)


def _bytes(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=9).map(b"".join) | st.binary(max_size=12))
def test_utf8_is_pythons(data: bytes) -> None:
    try:
        data.decode()
        expected = True
    except UnicodeDecodeError:
        expected = False
    assert scan.is_utf8(_bytes(data)) is expected


@settings(max_examples=examples(500), deadline=None)
@given(_MARKUP)
def test_tags_are_those_that_the_patterns_find(data: bytes) -> None:
    found, at = [], 0
    while (at := next_tag_of(_bytes(data), at)) >= 0:
        found.append(at)
        at += 2
    assert found == [*plainscan.tags(data)]


@settings(max_examples=examples(500), deadline=None)
@given(_SCRIPT)
def test_strings_are_those_that_the_pattern_finds(script: str) -> None:
    """Where characters beyond ASCII may decide, Python is asked."""
    data = script.encode()
    rows, place = np.zeros((2, textlinks.STRING_ROW), np.int64), np.zeros(1, np.int64)
    found: list[tuple[str, str, int]] = []
    while count := textlinks.find_strings(_bytes(data), place, rows):
        found += [
            (data[start:end].decode(), data[text:text_end].decode(), kind)
            for start, end, text, text_end, kind in rows[:count].tolist()
        ]
    wanted = [*plainscan.strings(script)]
    kinds = {True: textlinks.JOINED, False: textlinks.ALONE}
    if script.isascii():
        assert found == [(whole, text, kinds[joined]) for whole, text, joined in wanted]
    sure = [(whole, text, kind) for whole, text, kind in found if kind != textlinks.ASK]
    assert {*sure} <= {(whole, text, kinds[joined]) for whole, text, joined in wanted}
    assert {(whole, text) for whole, text, _ in wanted} <= {tuple(row[:2]) for row in found}


@settings(max_examples=examples(500), deadline=None)
@given(st.lists(st.sampled_from(_PIECES_OF_SUMS), max_size=12).map("".join))
def test_no_plus_of_a_sum_is_left_out(script: str) -> None:
    data = script.encode()
    rows, place, found = np.zeros((2, 1), np.int64), np.zeros(1, np.int64), []
    while count := textlinks.find_pluses(_bytes(data), place, rows):
        found += rows[:count, 0].tolist()
    pluses = {len(script[:at].encode()) for at in plainscan.pluses(script)}
    assert pluses <= {*found}
    assert not script.isascii() or {*found} <= {at for at, sign in enumerate(script) if sign == "+"}


_TAGS = st.lists(
    st.sampled_from(
        [
            *("<Meta", "<meta", "<frame", "<FRAMESET", "<base", "<!--[if", "<!--[IF IE]", "<!--"),
            *("</meta", "<p", "<li", "<", ">", " rel=", "h", "refresh", "Refresh", "refres"),
            *("é", " "),
        ]
    ),
    max_size=10,
).map(lambda parts: "".join(parts).encode())


@settings(max_examples=examples(500), deadline=None)
@given(_TAGS)
def test_marks_are_those_of_the_tags(data: bytes) -> None:
    assert tags.marks_of(_bytes(data)) == plainscan.marks(data)


@settings(max_examples=examples(500), deadline=None)
@given(
    st.lists(
        st.sampled_from([*"ab09/ \n\v\x1c\x85\u00a0é", "some words ", "longest", "  "]), max_size=30
    ).map(lambda parts: "".join(parts).encode())
)
def test_words_without_numbers(text: bytes) -> None:
    out = np.empty(len(text) + 1, np.uint8)
    size = scan.drop_numbers(_bytes(text), out)
    words = plainscan.without_numbers(text)
    assert out[:size].tobytes() == words
    bag = scan.bag_of_words(out, size, 1)
    back = b" ".join(words.split(b" ")[::-1])
    assert bag == scan.bag_of_words(np.frombuffer(back + b"x", np.uint8), len(back), 1)
    more = b" ".join([*words.split(b" "), b"more"])
    assert bag != scan.bag_of_words(np.frombuffer(more, np.uint8), len(more), 1)


@settings(max_examples=examples(100), deadline=None)
@given(st.binary(max_size=300), st.integers(0, 1 << 32))
def test_features_are_counted_as_they_come(text: bytes, seed: int) -> None:
    rng = np.random.default_rng(seed)
    moves = rng.integers(0, 5, 3 << 8).astype(np.int32)
    rows = rng.integers(0, 3, 5) << 8
    outputs = rng.integers(-1, 4, 5)
    counts, found = np.zeros((2, 4), np.int32)
    expected = Counter[int]()
    state = 0
    for byte in text:
        state = moves[rows[state] + byte]
        if outputs[state] >= 0:
            expected[int(outputs[state])] += 1
    tables = languages.Transitions(moves, rows << languages.ROW_AT | (outputs + 1))
    path = np.empty(len(text), np.int32)
    count = languages.count_features(_bytes(text), tables, path, counts, found)
    assert [*zip(found[:count], counts[found[:count]], strict=True)] == [*expected.items()]
    weights = rng.integers(-9, 9, (4, 3)).astype(np.float32)
    logarithms, sums = np.arange(4, dtype=np.float32), np.zeros(3, np.float32)
    languages.sum_features(found, count, counts, logarithms, weights, sums)
    wanted = sum((min(times, 3) * weights[one] for one, times in expected.items()), np.zeros(3))
    assert sums.tolist() == wanted.tolist()
    assert not counts.any()


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(
        st.sampled_from(
            (
                *(b"application/ld+json", b"og:type", b"generator", b"gg", b"application/ld+jso"),
                *(b"+", b":", b"og:", b"gener", b" ", b"\0"),
            )
        ),
        max_size=9,
    ).map(b"".join),
    st.integers(0, 60),
    st.integers(0, 60),
)
def test_names_are_found(page: bytes, at: int, head: int) -> None:
    found = np.empty(3, np.int64)
    scan.find_names(_bytes(page), at, head, found)
    assert found.tolist() == [
        page.find(b"application/ld+json", at),
        page.find(b"og:type", 0, head),
        page.find(b"generator", 0, head),
    ]


_LITERALS = st.builds(
    lambda first, more, value, kind: MagicBytes(
        first,
        first if kind is BytesKind.ONE_OF_THEM else first + more,
        value.lower() if kind is BytesKind.IN_ANY_CASE else value,
        kind,
    ),
    st.integers(0, 6),
    st.sampled_from([0, 0, 1, 5, 90]),
    st.text("aAb\n\0", min_size=1, max_size=4).map(str.encode),
    st.sampled_from(BytesKind),
)


@settings(deadline=None, max_examples=examples(300))
@given(
    st.lists(
        st.tuples(st.integers(-1, 2), st.lists(_LITERALS, max_size=3), st.sampled_from([0, 1, 2])),
        max_size=6,
    ),
    st.lists(st.sampled_from("aAb\n\0"), min_size=1, max_size=40).map("".join).map(str.encode),
)
def test_rules_of_media_types_by_their_literals(
    rules: list[tuple[int, list[MagicBytes], int]], page: bytes
) -> None:
    tests = (None, lambda _: True, lambda _: False)
    magics = [
        Magic(priority, str(number), literals, tests[test])
        for number, (priority, literals, test) in enumerate(rules)
    ]
    registry = TypeRegistry(magics=list(magics)).prepare()
    holding = [
        magic
        for magic in sorted(magics, key=lambda magic: -magic.priority)
        if plainscan.holds(magic, page)
    ]
    best = [magic.name for magic in holding if magic.priority == holding[0].priority]
    assert registry.by_magic(page) == best
    assert [name for name in map(str, range(len(rules))) if registry.holds(name, page)] == sorted(
        (magic.name for magic in holding), key=int
    )
