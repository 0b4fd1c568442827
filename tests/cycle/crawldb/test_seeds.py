"""Seed lists: lines, metadata, files."""

import bz2
import gzip
import logging
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.cycle.crawldb import seeds
from minutch.cycle.crawldb.seeds import SeedText, parse_metadata, read_seeds, seed_files, seeds_in
from minutch.errors import FormatError, StoreError
from minutch.hadoop.formats.writables import FloatWritable, Text


def lines(path: Path) -> list[tuple[int, str, str | None]]:
    return [row for table in read_seeds(path) for row in table.iter_rows()]


def written(tmp_path: Path, data: bytes, name: str = "seeds.txt") -> Path:
    (tmp_path / name).write_bytes(data)
    return tmp_path / name


def test_lines(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbfhttp://a/\n# comment\n\n  http://b/ \t x=1 \ty=2\t\r\nhttp://c/\rhttp://d/\x00\n\t\nhttp://e/"
    assert lines(written(tmp_path, text)) == [
        (1, "http://a/", None),
        (4, "http://b/", "x=1 \ty=2"),
        (5, "http://c/", None),
        (6, "http://d/", None),
        (8, "http://e/", None),
    ]


_BLANKS = "".join(map(chr, range(0x21)))  # what java.lang.String.trim takes off
_PARTS = (
    "http://a/",
    "#",
    "\t",
    " ",
    "\x00",
    "\x1f",
    "\x7f",
    "é",
    "😀",
    "a" * 13,
    "=",
    "\n",
    "\n",
    "\n# c\n",
)


def by_line(text: str, number: int) -> list[tuple[int, str, str | None]]:
    found = []
    for at, line in enumerate(text.split("\n"), number):
        url, tab, extra = line.partition("\t")
        url = url.strip(_BLANKS)
        if url and url[0] != "#":
            found.append((at, url, extra.strip(_BLANKS) if tab else None))
    return found


@given(
    st.lists(st.one_of(st.sampled_from(_PARTS), st.text(max_size=9))).map("".join),
    st.integers(1, 1 << 40),
)
def test_seeds_are_those_found_line_by_line(text: str, number: int) -> None:
    data = text.encode("utf-8", "replace")
    assert seeds_in(SeedText(number, data)).rows() == by_line(data.decode(), number)


def test_damaged_characters_are_replaced() -> None:
    found = seeds_in(SeedText(7, b"http://a/\xff\xfe \t\xe2\x82x\n#\n\xc3"))
    assert found.rows() == [(7, "http://a/\ufffd\ufffd", "\ufffdx"), (9, "\ufffd", None)]


def test_an_empty_file(tmp_path: Path) -> None:
    assert lines(written(tmp_path, b"")) == []


def test_bytes_that_are_no_utf8_are_replaced(tmp_path: Path) -> None:
    assert lines(written(tmp_path, b"http://a/\xff\n")) == [(1, "http://a/\ufffd", None)]


@given(
    st.lists(st.sampled_from([b"http://a/", b"x\ty=1", b"", b"# c", b"\xc3\xa9"]), max_size=20),
    st.integers(1, 9),
)
def test_pieces_of_a_file_make_the_same_lines(
    tmp_path_factory: pytest.TempPathFactory, some: list[bytes], size: int
) -> None:
    folder = tmp_path_factory.mktemp("seeds")
    for end in (b"\n", b"\r\n", b"\r"):
        path = written(folder, end.join(some))
        whole = lines(path)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(seeds, "CHUNK_BYTES", size)
            assert lines(path) == whole


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".gz", gzip.compress), (".bz2", bz2.compress), (".deflate", zlib.compress)],
)
def test_compressed_files(tmp_path: Path, suffix: str, compress) -> None:  # type: ignore[no-untyped-def]
    path = written(tmp_path, compress(b"http://a/\nhttp://b/\n"), f"seeds.txt{suffix}")
    assert [url for _, url, _ in lines(path)] == ["http://a/", "http://b/"]


@pytest.mark.parametrize("suffix", [".gz", ".deflate"])
def test_damaged_compressed_files_are_named(tmp_path: Path, suffix: str) -> None:
    compress = {".gz": gzip.compress, ".deflate": zlib.compress}[suffix]
    path = written(tmp_path, compress(b"http://a/\n" * 100)[:-12], f"seeds{suffix}")
    with pytest.raises(FormatError, match=f"seeds{suffix}"):
        lines(path)


def test_files_of_a_directory(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("b.txt", "a.txt", ".hidden", "_logs"):
        written(tmp_path, b"", name)
    (tmp_path / "folder").mkdir()
    assert [path.name for path in seed_files(tmp_path)] == ["a.txt", "b.txt"]
    assert "folder" in caplog.text
    assert seed_files(tmp_path / "a.txt") == [tmp_path / "a.txt"]


def test_no_files(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No seed files"):
        seed_files(tmp_path)
    with pytest.raises(StoreError, match="no such seed file"):
        seed_files(tmp_path / "none")


def test_metadata() -> None:
    found = parse_metadata(
        "nutch.score=2.5\tnutch.fetchInterval=+77\ta=b=c\tnoequals\t=d\te=", "f:1"
    )
    assert (found.score, found.interval) == (2.5, 77)
    assert found.metadata == {Text("a"): Text("b=c"), Text(""): Text("d"), Text("e"): Text("")}


def test_a_fixed_interval() -> None:
    found = parse_metadata("nutch.fetchInterval.fixed=60", "f:1")
    assert (found.interval, found.metadata) == (60, {Text("fixedInterval"): FloatWritable(60.0)})
    assert parse_metadata("nutch.fetchInterval.fixed=-1", "f:1").interval is None


@pytest.mark.parametrize(
    ("text", "score"),
    [(" 1.5 ", 1.5), ("1f", 1.0), (".5D", 0.5), ("0x1p3", 8.0), ("-Infinity", float("-inf"))],
)
def test_scores_as_java_reads_them(text: str, score: float) -> None:
    assert parse_metadata(f"nutch.score={text}", "f:1").score == score


@pytest.mark.parametrize(
    "part",
    [
        "nutch.score=x",
        "nutch.score=",
        "nutch.score=1_0",
        "nutch.score=inf",
        "nutch.fetchInterval=1.5",
        "nutch.fetchInterval= 7",
        "nutch.fetchInterval=2147483648",
        "nutch.fetchInterval.fixed=y",
    ],
)
def test_numbers_that_are_none_are_named(part: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        found = parse_metadata(f"{part}\ta=b", "seeds.txt:3")
    assert (found.score, found.interval, found.metadata) == (None, None, {Text("a"): Text("b")})
    assert "seeds.txt:3" in caplog.text
