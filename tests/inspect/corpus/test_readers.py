"""Data sets as the programs read them that they are for, where these are installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minutch.inspect.corpus.rows import ABOUT
from tests.inspect.corpus.crawls import HOST, add_segment
from tests.inspect.corpus.test_export import STORY, run


def made(folder: Path, *words: str) -> Path:
    """A data set of three pages, in two shards."""
    texts = {"a": "one é\ntwo", "b": STORY, "c": STORY}
    add_segment(folder / "crawl", "20260101000001", texts, {"pagedata.author": "A"})
    run(folder / "crawl", folder / "out", "--rows", "2", *words)
    return folder / "out"


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["--formats", "jsonl"]])
def test_datasets_reads_the_folder(tmp_path: Path, words: list[str]) -> None:
    """Also lists of which a shard has only empty ones."""
    datasets = pytest.importorskip("datasets")
    folder, cache = made(tmp_path, *words), tmp_path / "cache"
    table = datasets.load_dataset(str(folder), split="train", cache_dir=str(cache))
    assert table["url"][:] == [HOST + path for path in "abc"]
    assert table["text"][:] == ["one é\ntwo", STORY, STORY]
    assert table["cluster_size"][:] == [1, 2, 2]
    assert table["duplicate_lines"][:] == [[], [], [0]]


@pytest.mark.parametrize("words", [[], ["--formats", "jsonl"]])
def test_the_card_has_files_and_the_types_of_columns(tmp_path: Path, words: list[str]) -> None:
    out = made(tmp_path, *words)
    lines = (out / "README.md").read_text().split("\n")
    [config] = json.loads(lines[1].removeprefix("configs: "))
    assert [path.name[:10] for path in sorted(out.glob(config["data_files"]))] == [
        "part-00000",
        "part-00001",
    ]
    features = json.loads(lines[2].removeprefix("dataset_info: "))["features"]
    assert [feature["name"] for feature in features] == [*ABOUT]
    types = {feature["name"]: feature for feature in features}
    assert types["fetched"]["dtype"] == "timestamp[ms, tz=UTC]"
    assert types["duplicate_lines"]["list"] == "int32"
    assert {"name": "value", "dtype": "string"} in types["metadata"]["list"]


@pytest.mark.slow
def test_datatrove_reads_both_formats(tmp_path: Path) -> None:
    readers = pytest.importorskip("datatrove.pipeline.readers")
    pytest.importorskip("orjson")
    out = made(tmp_path)
    for reader, folder in ((readers.ParquetReader, "parquet"), (readers.JsonlReader, "jsonl")):
        documents = list(reader(str(out / folder)).run())
        assert [document.text for document in documents] == ["one é\ntwo", STORY, STORY]
        assert documents[2].metadata["cluster"] == HOST + "b"
        assert documents[0].metadata["metadata"] == [{"key": "pagedata.author", "value": "A"}]
