"""The orders inside generate: hash codes of URLs, and shares of reducers."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.fetchlist import arrange
from minutch.fetchlist.arrange import inverse_sizes, map_outputs, merged, selector_sizes, shuffle_order, url_hashes
from minutch.fetchlist.fetchlists import stamp
from minutch.formats.javaio import DataOutput
from minutch.formats.writables import FloatWritable, MapWritable, Text
from minutch.records.crawldatum import CrawlDatum
from minutch.records.selectorentry import SelectorEntry
from minutch.tables.rows import records, to_frame


def java_hash(url: bytes) -> int:
    """Generator.HashComparator.hash over a serialized Text, step by step."""
    out = DataOutput()
    out.write_text_bytes(url)
    value = 1
    for byte in reversed(bytes(out.getvalue())):
        value = (31 * value + (byte - 256 if byte > 127 else byte)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


@settings(deadline=None)
@given(st.lists(st.binary(max_size=200) | st.binary(min_size=250, max_size=270), max_size=20))
def test_hash_codes_of_urls(urls: list[bytes]) -> None:
    keys = pl.Series(urls, dtype=pl.Binary)
    assert url_hashes(keys).tolist() == [java_hash(url) for url in urls]


def test_the_kernel_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = [0, 1, 11, 12, 13, 70, 127, 128, 255, 256, 257, 65_535, 65_536, 70_000]
    rng = np.random.default_rng(3)
    urls = [rng.integers(0, 256, length, np.uint8).tobytes() for length in lengths]
    monkeypatch.setattr(arrange, "_BULK", 0)
    assert url_hashes(pl.Series(urls, dtype=pl.Binary)).tolist() == [java_hash(url) for url in urls]


def test_sizes_are_those_of_the_records() -> None:
    data = [
        CrawlDatum(score=1.0),
        CrawlDatum(signature=b"0123456789abcdef"),
        CrawlDatum(metadata=MapWritable({Text("key"): Text("v" * 300)})),
    ]
    entries = to_frame((f"http://a/{'x' * (90 * i)}", datum) for i, datum in enumerate(data))
    expected = []
    for url, datum in records(stamp(entries, 7)):
        key, value, text = FloatWritable(1.0).to_bytes(), SelectorEntry(url, datum, 1).to_bytes(), Text(url).to_bytes()
        expected.append((framed(key, value), framed(text, value)))
    assert selector_sizes(entries).tolist() == [by_score for by_score, _ in expected]
    assert inverse_sizes(entries).tolist() == [by_url for _, by_url in expected]


def framed(key: bytes, value: bytes) -> int:
    """A record's bytes in a map task's output: two VInts and what they count."""
    out = DataOutput()
    out.write_vint(len(key))
    out.write_vint(len(value))
    return len(out.getvalue()) + len(key) + len(value)


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_each_reducer_gets_its_rows_in_order() -> None:
    order = shuffle_order(ints(5, 1, 3, 2, 4), [5], ints(0, 1, 0, 1, 0), 2, ints(1, 1, 1, 1, 1))
    assert [rows.tolist() for rows in order] == [[2, 4, 0], [1, 3]]


def test_outputs_of_several_tasks_are_merged() -> None:
    order = shuffle_order(ints(5, 1, 3, 1), [2, 2], ints(0, 0, 0, 0), 2, ints(9, 9, 1, 1))
    assert [rows.tolist() for rows in order] == [[3, 1, 2, 0], []]  # the smaller output leads


def test_nothing() -> None:
    assert [rows.tolist() for rows in shuffle_order(ints(), [0], ints(), 1, ints())] == [[]]


@given(st.lists(st.lists(st.integers(0, 5), max_size=40), min_size=1, max_size=6), st.integers(0, 200))
def test_the_first_rows_come_out_the_same_alone(tasks: list[list[int]], first: int) -> None:
    keys = np.array([key for task in tasks for key in task], dtype=np.int64)
    sizes = np.arange(1, len(keys) + 1)
    (segments,) = map_outputs(keys, list(map(len, tasks)), np.zeros(len(keys), np.int64), 1)
    whole = merged(keys, sizes, segments)
    assert sorted(whole.tolist()) == list(range(len(keys)))
    assert merged(keys, sizes, segments, first).tolist() == whole[:first].tolist()
