"""inspect.query.moves: which pages that are gone have moved to which that are new."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from minutch.inspect.query.changes import EVENTS
from minutch.inspect.query.moves import with_moves

HOST = "http://a.example.org/"
Page = tuple[str, Mapping[int, int]]
"""A title, and the words of lines that few pages have, by number."""
LONG = dict.fromkeys(range(10), 10)


def told(old: Mapping[str, Page], new: Mapping[str, Page]) -> dict[str, str]:
    """Kinds, and where to, of pages of which all `old` are gone when the `new` come."""
    rows = [(HOST + path, "1", "new", None) for path in old]
    rows += [(HOST + path, "2", "gone", "1") for path in old]
    rows += [(HOST + path, "2", "new", None) for path in new]
    events = pl.DataFrame(
        [(url, "a.example.org", segment, kind, before) for url, segment, kind, before in rows],
        schema=["url", "host", "segment", "kind", "before"],
        orient="row",
    )
    events = events.with_columns(pl.col("kind").cast(EVENTS["kind"]), to=pl.lit(None, pl.String))
    texts = pl.DataFrame(
        [
            (
                HOST + path, segment, hash((path, segment)) & 0xFFFF, sum(lines.values()), title,
                [{"still": still, "words": words} for still, words in lines.items()],
            )
            for segment, pages in enumerate((old, new))
            for path, (title, lines) in pages.items()
        ],
        schema={
            "url": pl.String, "segment": pl.UInt32, "said": pl.UInt64, "size": pl.UInt32,
            "title": pl.String,
            "rare": pl.List(pl.Struct({"still": pl.UInt64, "words": pl.UInt32})),
        },
        orient="row",
    )  # fmt: skip
    found = with_moves(events, texts, ["1", "2"]).filter(segment="2")
    return {
        url.removeprefix(HOST): f"{kind} {to.removeprefix(HOST)}" if to else kind
        for url, kind, to in found.select("url", "kind", "to").iter_rows()
    }


def test_a_page_has_moved_to_the_one_that_says_most_of_what_it_said() -> None:
    noisy = {**LONG, 50: 12}
    assert told({"a": ("A", noisy)}, {"b": ("A", {**LONG, 51: 15})}) == {"a": "moved b"}
    # with another title there has to be more of it
    assert told({"a": ("A", noisy)}, {"b": ("B", {**LONG, 51: 15})}) == {"a": "moved b"}
    half = {number: LONG[number] for number in range(6)}
    assert told({"a": ("A", LONG)}, {"b": ("A", half)}) == {"a": "moved b"}
    assert told({"a": ("A", LONG)}, {"b": ("B", half)}) == {"a": "gone", "b": "new"}
    assert told({"a": ("A", {1: 3})}, {"b": ("A", {1: 3})}) == {"a": "gone", "b": "new"}


def test_goods_of_a_series_have_not_moved_to_one_another() -> None:
    lamps = {f"lamp/{n}": (f"Lamp {n}", {**LONG, 100 + n: 4}) for n in range(4)}
    gone = {path: lamps[path] for path in ("lamp/0", "lamp/1")}
    new = {path: lamps[path] for path in ("lamp/2", "lamp/3")}
    assert set(told(gone, new).values()) == {"gone", "new"}
    assert set(told(gone, {"lamp/2": lamps["lamp/2"]}).values()) == {"gone", "new"}


def test_each_page_moves_to_its_own() -> None:
    pages = {f"{n}": (f"Page {n}", {n * 100 + m: 9 for m in range(8)}) for n in range(5)}
    new = {f"new/{path}": page for path, page in pages.items()}
    assert told(pages, new) == {path: f"moved new/{path}" for path in pages}
