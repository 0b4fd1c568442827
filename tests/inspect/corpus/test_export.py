"""export corpus: which pages become rows, what is left out and counted, shards, and a run that was
killed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from minutch.cycle.segment.store import part_writer
from minutch.errors import QueryError, StoreError, UsageError
from minutch.hadoop.formats import zstd
from minutch.inspect.corpus import export
from minutch.inspect.corpus import rows as corpus_rows
from minutch.inspect.corpus.rows import ABOUT, CorpusTable
from minutch.records.protocol import Content
from tests.inspect.corpus.crawls import HOST, add_crawldb, add_segment
from tests.support.commands import export_corpus
from tests.support.crawldbs import NOW, context

STORY = " ".join(f"word{number}" for number in range(60))


def run(crawl: Path, out: Path, *words: str, **settings: str) -> dict[str, int]:
    """Run the command; returns its counters."""
    job = context({name.replace("__", "."): value for name, value in settings.items()})
    assert export_corpus.run([str(crawl), str(out), *words], job) == 0
    return dict(job.reports["CorpusExport"])


def rows(out: Path) -> list[dict[str, Any]]:
    """The rows of a data set's Parquet files."""
    return pl.read_parquet(out / "parquet/*.parquet").to_dicts()


def lines(out: Path) -> list[dict[str, Any]]:
    """The rows of its JSON Lines."""
    files = sorted((out / "jsonl").glob("part-*"))
    texts = [zstd.decompressor(27).decompress(file.read_bytes()).decode() for file in files]
    return [json.loads(line) for line in "".join(texts).splitlines()]


def files(out: Path) -> dict[str, bytes]:
    """All files of a folder, but what says when the crawl's were made."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in out.rglob("*")
        if path.is_file() and path.name != "corpus.json"
    }


def test_a_row_is_the_newest_success_of_a_url(tmp_path: Path) -> None:
    add_segment(tmp_path, "20260101000001", {"a": "old a", "b": "only b", "c": "c one"})
    meta = {"language": "en", "pagedata.og:title": ["A", "B"], "other": "x"}
    add_segment(tmp_path, "20260101000002", {"a": " new a\n", "c": None, "gone": "no entry"}, meta)
    add_crawldb(tmp_path, "a", "b", "c", "never")
    counters = run(tmp_path, tmp_path / "out")
    assert counters == {
        "pages": 3,
        "left out: without text": 0,
        "rows": 3,
        "near-duplicates of another page": 0,
        "shards": 1,
    }
    found = {row["url"].removeprefix(HOST): row for row in rows(tmp_path / "out")}
    assert {path: row["text"] for path, row in found.items()} == {
        "b": "only b", "c": "c one", "a": "new a",
    }  # fmt: skip
    newest = found["a"]
    assert list(newest) == list(ABOUT)
    assert newest["fetched"] == datetime.fromtimestamp(NOW / 1000, UTC) + timedelta(milliseconds=2)
    assert (newest["title"], newest["language"]) == ("Title a", "en")
    assert newest["digest"] == "0a1b"
    pairs = [{"key": "pagedata.og:title", "value": value} for value in "AB"]
    assert newest["metadata"] == pairs
    assert found["b"]["metadata"] == [] and found["b"]["language"] is None


def test_json_lines_have_the_rows_of_parquet(tmp_path: Path) -> None:
    add_segment(tmp_path, "20260101000001", {"a": 'é\nline "two"\u2028', "b": STORY})
    run(tmp_path, tmp_path / "out")
    of_parquet = rows(tmp_path / "out")
    for row in of_parquet:
        row["fetched"] = row["fetched"].isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert lines(tmp_path / "out") == of_parquet


def test_what_is_left_out_is_counted_by_its_reason(tmp_path: Path) -> None:
    texts = {"empty": " \n", "short": "the end of that", "numbers": "12 " * 60, "good": STORY}
    add_segment(tmp_path, "20260101000001", texts)
    counters = run(tmp_path, tmp_path / "out", "--quality", "gopher")
    left = {name: count for name, count in counters.items() if count and "left out" in name}
    assert left == {
        "left out: without text": 1,
        "left out: gopher short_doc": 1,
        "left out: gopher below_avg_threshold": 1,
        "left out: gopher enough_stop_words": 1,
    }
    assert (counters["pages"], counters["rows"], counters["shards"]) == (4, 0, 0)


def test_pages_that_refuse_a_use_are_left_out_and_counted(tmp_path: Path) -> None:
    add_segment(tmp_path, "20260101000001", {"a": "old words"}, {"robots": "noai"})
    add_segment(tmp_path, "20260101000002", {"a": "new words", "b": "words of b"})
    refusing = {"robots": "noai", "tdm-reservation": "1"}
    add_segment(tmp_path, "20260101000003", {"c": "words of c"}, refusing)
    counters = run(tmp_path, tmp_path / "training", "--for", "training")
    left = {name: count for name, count in counters.items() if count and "left out" in name}
    assert left == {"left out: training refused by tdmrep": 1}
    assert [row["text"] for row in rows(tmp_path / "training")] == ["new words", "words of b"]
    assert run(tmp_path, tmp_path / "search", "--for", "search")["rows"] == 3
    assert run(tmp_path, tmp_path / "any", "--for", "any", "--quality", "c4")["rows"] == 0
    refused = rows(tmp_path / "search")[2]["refused"]
    assert {(one["use"], one["mechanism"], one["statement"]) for one in refused} == {
        (use, *said)
        for use in ("training", "input")
        for said in (("tdmrep", "tdm-reservation: 1"), ("robots-directive", "noai"))
    }


def test_a_condition_is_sql_on_the_columns_and_the_crawl(tmp_path: Path) -> None:
    add_segment(tmp_path, "20260101000001", {"a": STORY, "b": STORY, "c": "short text"})
    counters = run(
        tmp_path, tmp_path / "out", "--where", "is_first and url in (select url from pages) -- x"
    )
    assert counters["left out: --where"] == 1
    assert [row["url"] for row in rows(tmp_path / "out")] == [HOST + "a", HOST + "c"]
    assert [row["cluster_size"] for row in rows(tmp_path / "out")] == [2, 1]
    with pytest.raises(QueryError, match="no column wrds"):
        run(tmp_path, tmp_path / "other", "--where", "wrds > 1")


def test_shards_end_at_their_bounds(tmp_path: Path) -> None:
    texts = {f"{number:02}": f"text {number} " + "x" * 90 for number in range(10)}
    add_segment(tmp_path, "20260101000001", texts)
    assert run(tmp_path, tmp_path / "rows", "--rows", "4")["shards"] == 3
    assert (
        run(tmp_path, tmp_path / "bytes", "--size", "150", "--formats", "parquet")["shards"] == 10
    )
    names = sorted((tmp_path / "rows/parquet").iterdir())
    assert [len(pl.read_parquet(name)) for name in names] == [4, 4, 2]
    assert not (tmp_path / "bytes/jsonl").exists()
    assert rows(tmp_path / "rows") == rows(tmp_path / "bytes")


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A crawl that is read in many pieces: parts of a segment, and segments together."""
    monkeypatch.setattr(corpus_rows, "ROWS", 7)
    for segment in range(4):
        count = 18 if segment == 2 else 3
        texts = {f"{n:02}-{segment}": f"{STORY} {n % 5}\nline {n}" for n in range(count)}
        add_segment(tmp_path / "crawl", f"2026010100000{segment}", texts)
    add_segment(tmp_path / "crawl", "20260101000006", {"05-2": "newer", "06-2": None})
    return tmp_path / "crawl"


def test_pieces_have_every_row_once(large: Path, tmp_path: Path) -> None:
    found = corpus_rows.NewestPages.of(export.open_crawl(large), memory=1 << 20, spill=tmp_path)
    assert len(found.pieces) > 4
    assert [piece.first for piece in found.pieces[1:]] == [
        piece.last for piece in found.pieces[:-1]
    ]
    urls = [url for piece in found.pieces for url in corpus_rows.read(piece, found.counts)["url"]]
    assert len(urls) == len(set(urls)) == found.counts.sum() == 3 * 3 + 18
    assert {piece.low is None for piece in found.pieces} == {True, False}


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_bytes(
    large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters = run(large, tmp_path / "whole", "--rows", "9")
    write, left = export._write, [0]

    def dying(path: Path, make: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            path.parent.mkdir(exist_ok=True)
            make(path.with_name(f".new-{path.name}"))
            raise KeyboardInterrupt
        write(path, make)

    monkeypatch.setattr(export, "_write", dying)
    for at in (3, 8, 10):
        left[0], out = at, tmp_path / f"killed-{at}"
        with pytest.raises(KeyboardInterrupt):
            run(large, out, "--rows", "9")
        seen = {name for name in files(out) if not Path(name).name.startswith(".")}
        assert seen <= set(files(tmp_path / "whole")) | {
            name for name in seen if name.startswith(".work")
        }
        kept = {name: (out / name).stat().st_mtime_ns for name in seen}
        left[0] = 0
        assert run(large, out, "--rows", "9") == counters
        assert files(out) == files(tmp_path / "whole")
        shards = {name: time for name, time in kept.items() if not name.startswith(".")}
        assert {name: (out / name).stat().st_mtime_ns for name in shards} == shards


@pytest.mark.slow
def test_memory_changes_nothing(large: Path, tmp_path: Path) -> None:
    run(large, tmp_path / "much")
    run(large, tmp_path / "little", minutch__memory="2k")
    assert files(tmp_path / "little") == files(tmp_path / "much")


def test_another_data_set_is_not_gone_on_with(tmp_path: Path) -> None:
    add_segment(tmp_path / "crawl", "20260101000001", {"a": STORY})
    first = run(tmp_path / "crawl", tmp_path / "out")
    assert run(tmp_path / "crawl", tmp_path / "out") == first
    with pytest.raises(StoreError, match="in another way"):
        run(tmp_path / "crawl", tmp_path / "out", "--quality", "c4")
    add_segment(tmp_path / "crawl", "20260101000002", {"a": "new"})
    with pytest.raises(StoreError, match="of another crawl"):
        run(tmp_path / "crawl", tmp_path / "out")
    with pytest.raises(StoreError, match="already exists"):
        run(tmp_path / "crawl", tmp_path / "crawl")


def test_a_crawl_without_pages_is_a_data_set_without_shards(tmp_path: Path) -> None:
    (tmp_path / "segments").mkdir()
    assert run(tmp_path, tmp_path / "out", "--where", "words > 1")["rows"] == 0


def test_conditions_name_columns() -> None:
    known: Sequence[str] = list(CorpusTable.columns)
    for name, reasons in export.rules().items():
        for condition in reasons.values():
            assert condition.split()[0] in known, name


def test_markdown_and_chunks_are_of_the_rows_pages_that_were_stored(tmp_path: Path) -> None:
    """Of the version that the row is, not of an older or of another segment."""
    url, other, moved = (f"{HOST}{name}" for name in "abc")
    add_segment(tmp_path, "20260101000001", {"a": "old", "b": "words of b", "none": " "})
    add_segment(tmp_path, "20260101000002", {"a": STORY, "c": "not stored here"})
    first = {url: "<p>old", other: "<h1>B</h1><ul><li>words <b>of</b> b", moved: "x"}
    for name, stored in (
        ("20260101000001", first),
        ("20260101000002", {url: f"<h2 id=x>Story</h2><p>{STORY}"}),
    ):
        with part_writer(tmp_path / "segments" / name, "content", 0) as put:
            for page, html in sorted(stored.items()):
                put(page, Content(page, page, html.encode(), "text/html"))
    counters = run(tmp_path, tmp_path / "out", "--chunks", plugin__includes="parse-html")
    assert counters["rows"] == 3
    expected = {url: f"{STORY}\n", other: "- words **of** b\n", moved: None}
    assert {row["url"]: row["markdown"] for row in rows(tmp_path / "out")} == expected
    assert {row["url"]: row["markdown"] for row in lines(tmp_path / "out")} == expected
    [file] = (tmp_path / "out/chunks").iterdir()
    text = zstd.decompressor(27).decompress(file.read_bytes()).decode()
    found = [json.loads(line) for line in text.splitlines()]
    assert [(chunk["url"], len(chunk["id"])) for chunk in found] == [(other, 32), (url, 32)]
    assert STORY in found[1]["text"]
    sizes = ["--chunks", "--plain", "--tokens", "16", "--overlap", "4"]
    run(tmp_path, tmp_path / "small", *sizes, plugin__includes="parse-html")
    assert [row["markdown"] for row in rows(tmp_path / "small")] == [None] * 3
    [file] = (tmp_path / "small/chunks").iterdir()
    text = zstd.decompressor(27).decompress(file.read_bytes()).decode()
    assert max(json.loads(line)["tokens"] for line in text.splitlines()) in range(10, 17)
    with pytest.raises(UsageError):
        run(tmp_path, tmp_path / "none", "--chunks", "--tokens", "16", "--overlap", "9")
