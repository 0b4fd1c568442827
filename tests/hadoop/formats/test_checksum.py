"""`.crc` siblings: Hadoop's bytes, and every kind of damage."""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.errors import ChecksumError
from minutch.hadoop.formats import checksum
from tests.support.golden import GOLDEN, HAS_ALL, needs_golden


@needs_golden
def test_siblings_of_all_golden_files_are_reproduced(tmp_path: Path) -> None:
    folders = ("sequencefiles", "crawl-small/run-default-r1/steps", "crawl-small/run-rich-r2")
    siblings = [path for folder in folders for path in sorted((GOLDEN / folder).rglob(".*.crc"))]
    for sibling in siblings:
        original = sibling.with_name(sibling.name[1:-4])
        checksum.write_file(tmp_path / "copy", original.read_bytes())
        assert (tmp_path / ".copy.crc").read_bytes() == sibling.read_bytes(), original
        assert checksum.verify_file(original) == original.stat().st_size
    assert len(siblings) > (100 if HAS_ALL else 30)


def test_layout_of_a_sibling(tmp_path: Path) -> None:
    data = bytes(range(256)) * 3
    checksum.write_file(tmp_path / "data", data)
    sums = b"".join(zlib.crc32(part).to_bytes(4, "big") for part in (data[:512], data[512:]))
    assert (tmp_path / ".data.crc").read_bytes() == b"crc\0\0\0\2\0" + sums


def test_empty_file_has_a_sibling_without_sums(tmp_path: Path) -> None:
    checksum.write_file(tmp_path / "data", b"")
    assert (tmp_path / ".data.crc").read_bytes() == b"crc\0\0\0\2\0"
    assert checksum.read_file(tmp_path / "data") == b""


@given(st.lists(st.binary(max_size=70_000), max_size=5))
def test_pieces_written_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("crc") / "data"
    with checksum.ChecksumWriter(path) as writer:
        for piece in pieces:
            writer.write(piece)
        assert writer.position == sum(map(len, pieces))
    assert checksum.read_file(path) == b"".join(pieces)


@given(st.integers(0, 5000), st.integers(0, 5000))
def test_any_range_is_read(tmp_path_factory: pytest.TempPathFactory, start: int, size: int) -> None:
    path = tmp_path_factory.mktemp("crc") / "data"
    data = bytes(i * 7 % 251 for i in range(3000))
    checksum.write_file(path, data)
    with checksum.ChecksumReader(path) as reader:
        reader.seek(start)
        assert reader.read(size) == data[start : start + size]


@pytest.mark.parametrize("at", [0, 511, 512, 1500, 2999])
def test_damage_is_found_and_its_chunk_named(tmp_path: Path, at: int) -> None:
    path = tmp_path / "data"
    checksum.write_file(path, bytes(3000))
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)
    with pytest.raises(ChecksumError) as caught:
        checksum.verify_file(path)
    assert caught.value.path == str(path)
    assert caught.value.offset == at // 512 * 512
    with checksum.ChecksumReader(path, verify=False) as reader:
        assert b"".join(reader.pieces()) == data


def test_undamaged_chunks_of_a_damaged_file_are_readable(tmp_path: Path) -> None:
    path = tmp_path / "data"
    checksum.write_file(path, bytes(3000))
    path.write_bytes(bytes(2999) + b"x")
    with checksum.ChecksumReader(path) as reader:
        assert reader.read(2560) == bytes(2560)
        with pytest.raises(ChecksumError):
            reader.read(1)


@pytest.mark.parametrize("size", range(0, 3000, 100))
def test_cut_off_file_does_not_fit_its_sums(tmp_path: Path, size: int) -> None:
    path = tmp_path / "data"
    checksum.write_file(path, bytes(range(250)) * 12)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ChecksumError) as caught:
        checksum.verify_file(path)
    assert "data" in str(caught.value)


@pytest.mark.parametrize(
    "sibling",
    [b"", b"crc", b"crc\0\0\0", b"crc\0\0\0\0\0", b"crc\0\xff\xff\xff\xff", b"abcdefghijkl"],
)
def test_broken_sibling_is_an_error(tmp_path: Path, sibling: bytes) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"some data")
    checksum.crc_path(path).write_bytes(sibling)
    with pytest.raises(ChecksumError) as caught:
        checksum.read_file(path)
    assert caught.value.path == str(checksum.crc_path(path))


def test_other_chunk_sizes_are_followed(tmp_path: Path) -> None:
    path = tmp_path / "data"
    data = bytes(range(100)) * 50
    path.write_bytes(data)
    checksum.crc_path(path).write_bytes(b"crc\0\0\0\0\x64" + checksum.chunk_sums(data, 100))
    assert checksum.read_file(path) == data


def test_file_without_a_sibling_is_read_unverified(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"some data")
    with checksum.ChecksumReader(path) as reader:
        assert not reader.verified
        assert reader.read(100) == b"some data"


def test_error_inside_the_block_removes_both_files(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), checksum.ChecksumWriter(tmp_path / "data") as writer:
        writer.write(b"half a file")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_new_file_does_not_keep_an_old_sibling(tmp_path: Path) -> None:
    checksum.write_file(tmp_path / "data", bytes(5000))
    checksum.write_file(tmp_path / "data", b"short")
    assert checksum.read_file(tmp_path / "data") == b"short"


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 1000, 1001])
def test_sums_are_the_same_where_numpy_is_not_loaded(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = bytes(n * 31 % 251 for n in range(size))
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "numpy", raising=False)
        by_zlib = checksum.chunk_sums(data, 100)
    import numpy  # noqa: F401 - it is loaded from here on

    assert checksum.chunk_sums(data, 100) == by_zlib
    assert len(by_zlib) == 4 * -(-size // 100)
