"""Records of several files on their way into a shuffle, and the sizes by which Hadoop merges them."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.crawldb import ties
from minutch.crawldb.ties import Gathering, Source, datum_sizes, job_order, output_size, take, text_sizes
from minutch.formats.javaio import encode_vlong
from minutch.formats.writables import Text
from minutch.records.crawldatum import CrawlDatum
from minutch.tables import rows
from minutch.tables.frame import CRAWLDB_SCHEMA
from minutch.tables.shuffle import Shuffle
from tests.support.crawldbs import metadata

texts = st.lists(st.sampled_from(["a", "é" * 80, "x" * 126, "x" * 127, "x" * 128, "x" * 300, "y" * 70_000]), max_size=4)


@given(texts)
def test_sizes(some: list[str]) -> None:
    keys = pl.Series([text.encode() for text in some], dtype=pl.Binary)
    expected = [len(Text(text).to_bytes()) for text in some]
    assert text_sizes(keys).tolist() == expected
    lengths = np.array(expected, np.int64)
    each = [2 * len(encode_vlong(size)) + 2 * size for size in expected]
    assert output_size(lengths, lengths) == sum(each)


def test_sizes_of_records() -> None:
    data = [CrawlDatum(), CrawlDatum(signature=b"12345"), CrawlDatum(metadata=metadata(k="v"))]
    frame = rows.to_frame([("http://a/", datum) for datum in data])
    assert datum_sizes(frame).tolist() == [len(datum.to_bytes()) for datum in data]


@given(st.lists(st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=20), min_size=1, max_size=3), st.integers(1, 3))
def test_each_record_once_by_key(tasks: list[list[bytes]], parts: int) -> None:
    keys = [pl.Series(task, dtype=pl.Binary) for task in tasks]
    sizes = [np.ones(len(task), np.int64) for task in tasks]
    seen = []
    for found in job_order(keys, sizes, sizes, parts):
        read = [tasks[task][record] for task, record in found]
        assert read == sorted(read)
        seen += [(int(task), int(record)) for task, record in found]
    assert sorted(seen) == [(i, j) for i, task in enumerate(tasks) for j in range(len(task))]


def frame(*scores: float) -> pl.DataFrame:
    return rows.to_frame([("http://a/", CrawlDatum(score=score)) for score in scores])


def gathered(tmp_path: Path, others: list[Source], *, matters: bool) -> list[float]:
    with Shuffle(1, CRAWLDB_SCHEMA, budget=1 << 20, spill=tmp_path) as shuffle:
        gathering = Gathering(shuffle)
        for size, scores in ((10, (1, 2, 3)), (1000, (4, 5))):
            gathering.begin(size)
            gathering.add(frame(*scores))
        gathering.finish(lambda _: matters, lambda: others, 1)
        (table,) = shuffle.sorted(0)
        return table["score"].to_list()


def test_without_ties_records_come_as_they_are(tmp_path: Path) -> None:
    assert gathered(tmp_path, [], matters=False) == [1, 2, 3, 4, 5]


def test_with_ties_records_come_in_hadoops_order(tmp_path: Path) -> None:
    other = Source(5000)
    other.frames.append(frame(9))
    found = gathered(tmp_path, [other], matters=True)
    assert sorted(found) == [1, 2, 3, 4, 5]  # the other file's records go their own way
    assert found != [1, 2, 3, 4, 5]


def test_too_many_records_are_not_held_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ties, "FOLLOWED", 2)
    assert gathered(tmp_path, [], matters=True) == [1, 2, 3, 4, 5]
    monkeypatch.setattr(ties, "FOLLOWED", 5)
    other = Source(5000)
    other.frames.append(frame(9))
    assert gathered(tmp_path, [other], matters=True) == [1, 2, 3, 4, 5]


def test_rows_of_several_tables() -> None:
    found = take([frame(1, 2), frame(3)], np.array([[1, 0], [0, 1]]))
    assert found["score"].to_list() == [3, 2]
    assert len(Source(0).frame) == 0
