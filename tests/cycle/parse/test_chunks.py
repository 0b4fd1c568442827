"""Chunks of Markdown: bounds, what stays whole, and which ids an edit changes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.cycle.parse.chunks import Chunk, chunks, count_tokens
from minutch.errors import UsageError
from tests.support.examples import examples, tabled

URL = "http://example.org/a"
PAGE = """Before all.

# Tides & *so* `on_it`

## [Spring \\[tides\\]](http://example.org/s)

First one. Second one.

- a
- b

  more of b

- c

### Deep

> quoted
>
> more

## Code

Words.

```python
# no heading

x = 1  # and some more
```

| a | b |
| --- | --- |
| 1 | 2 |
"""


def test_sections_are_chunks() -> None:
    lines = PAGE.split("\n")
    anchors = {lines.index("## Code"): "the code", 2: "tides"}
    found = chunks(PAGE, URL + "#x", anchors)
    title = "Tides & so on_it"
    assert [(chunk.path, chunk.url) for chunk in found] == [
        ([], URL),
        ([title, "Spring [tides]"], f"{URL}#tides"),
        ([title, "Spring [tides]", "Deep"], f"{URL}#tides"),
        ([title, "Code"], f"{URL}#the%20code"),
    ]
    assert "\n\n".join(chunk.text for chunk in found) + "\n" == PAGE
    assert found[1].text.startswith("# Tides"), "a heading with nothing below it but another"


def test_nothing_is_cut_that_fits() -> None:
    found = chunks(PAGE, URL, tokens=16, overlap=0)
    code, table = (
        "```python\n# no heading\n\nx = 1  # and some more\n```",
        "| a | b |\n| --- | --- |\n| 1 | 2 |",
    )
    assert [chunk.text for chunk in found[-3:]] == ["## Code\n\nWords.", code, table]
    assert {tuple(chunk.path[1:]) for chunk in found[-3:]} == {("Code",)}
    assert found[1].text.startswith("First one."), "headings that do not fit are in the path alone"


def test_a_large_table_has_its_head_on_each_piece() -> None:
    rows = "".join(f"| row {number} | b |\n" for number in range(60))
    found = chunks("# T\n\n| a | b |\n| --- | --- |\n" + rows, URL, tokens=64, overlap=16)
    assert len(found) > 5
    for chunk in found:
        text = chunk.text.removeprefix("# T\n\n")
        assert text.startswith("| a | b |\n| --- | --- |\n| row ")
    assert [int(number) for chunk in found for number in re.findall(r"row (\d+)", chunk.text)] == [
        *range(60)
    ]


def test_large_code_has_its_fences_on_each_piece() -> None:
    code = "".join(f"call({number}, `x`)\n" for number in range(60))
    found = chunks(f"````js\n{code}````\n", URL, tokens=64, overlap=16)
    assert len(found) > 5
    for chunk in found:
        lines = chunk.text.split("\n")
        assert (lines[0], lines[-1]) == ("````js", "````")
        assert all(line.startswith("call(") for line in lines[1:-1])


def test_chunks_of_a_section_overlap_by_sentences() -> None:
    text = " ".join(f"This is sentence {number}." for number in range(40))
    first, second, *others = chunks(f"# A\n\n{text}\n\n# B\n\nOther.", URL, tokens=50, overlap=12)
    shared = "This is sentence 4. This is sentence 5."
    assert count_tokens(shared) == 12
    assert first.text.endswith(shared)
    assert second.text.startswith(shared)
    assert others[-1].text == "# B\n\nOther."


@tabled(
    "text, tokens",
    [
        ("", 0),
        ("A word, another.", 6),
        ("1234567 0.5", 6),
        ("données", 3),
        ("日本語", 3),
        ("привет", 3),
        ("| --- | --- |", 5),
        ("a_b  \n c", 4),
    ],
)
def test_tokens_are_counted(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


def test_wrong_bounds() -> None:
    with pytest.raises(UsageError, match="found 15 and 0"):
        chunks("", URL, tokens=15, overlap=0)
    with pytest.raises(UsageError, match="found 100 and 51"):
        chunks("", URL, tokens=100, overlap=51)


WORDS = st.lists(
    st.sampled_from(["a", "words", "incomprehensible", "3.14159", "日本", "ж" * 90, "end.", "!?"]),
    min_size=1,
    max_size=30,
).map(" ".join)
LINES = st.lists(WORDS, min_size=1, max_size=6)
CODE = LINES.map(lambda lines: "\n".join(["```sh", *lines, "", "# x", "```"]))
TABLE = LINES.map(lambda rows: "\n".join(["| a |", "| --- |", *(f"| {row} |" for row in rows)]))
LIST = LINES.map(lambda lines: "\n\n  more\n".join(f"- {line}" for line in lines))
BLOCK = st.one_of(WORDS, LIST, CODE, TABLE)
SECTION = st.tuples(st.integers(1, 6), WORDS, st.lists(BLOCK, max_size=4)).map(
    lambda made: "\n\n".join([f"{'#' * made[0]} {made[1]}", *made[2]])
)
PAGES = st.lists(SECTION, min_size=1, max_size=6)
BOUNDS = st.integers(16, 200).flatmap(
    lambda most: st.tuples(st.just(most), st.integers(0, most // 2))
)


def of(sections: list[str], most: int, overlap: int) -> list[Chunk]:
    return chunks("\n\n".join(sections), URL, tokens=most, overlap=overlap)


@given(PAGES, BOUNDS)
@settings(max_examples=examples(60))
def test_any_page_keeps_the_bound(page: list[str], bounds: tuple[int, int]) -> None:
    found = of(page, *bounds)
    assert all(0 < chunk.tokens == count_tokens(chunk.text) <= bounds[0] for chunk in found)
    assert len({chunk.id for chunk in found}) == len(found)


@given(st.lists(st.lists(st.one_of(WORDS, LIST), min_size=1), min_size=1, max_size=4), BOUNDS)
@settings(max_examples=examples(40))
def test_no_word_of_a_text_is_lost(page: list[list[str]], bounds: tuple[int, int]) -> None:
    text = "\n\n".join(block for blocks in page for block in blocks)
    found = chunks(text, URL, tokens=bounds[0], overlap=0)
    assert "".join("".join(chunk.text for chunk in found).split()) == "".join(text.split())


@given(PAGES, BOUNDS, st.data())
@settings(max_examples=examples(40))
def test_an_edit_changes_the_chunks_of_its_section(
    page: list[str], bounds: tuple[int, int], data: st.DataObject
) -> None:
    page = [f"{section}\n\nLast." for section in page]
    number = data.draw(st.integers(0, len(page) - 1))
    edited = [*page]
    edited[number] += " Edited."
    of_others = {chunk.id for chunk in of(page[:number], *bounds)}
    before, after = of(page, *bounds), of(edited, *bounds)
    assert of_others <= {chunk.id for chunk in before} & {chunk.id for chunk in after}
    changed = [chunk for chunk in after if chunk.id not in {one.id for one in before}]
    path = next(chunk.path for chunk in after if "Edited." in chunk.text)
    assert changed
    assert all(chunk.path == path for chunk in changed)
