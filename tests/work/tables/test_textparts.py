"""Folders of part files: complete, or not there at all."""

from pathlib import Path

import pytest

from minutch.errors import StoreError
from minutch.hadoop.formats.checksum import verify_file
from minutch.work.tables.textparts import output_folder, text_part


def test_a_complete_folder(tmp_path: Path) -> None:
    out = tmp_path / "new/out"
    with output_folder(out) as folder:
        for index, text in enumerate((b"one\n", b"")):
            with text_part(folder, index, None) as part:
                part.write(text)
        assert not out.exists()
    assert (out / "part-r-00000").read_bytes() == b"one\n"
    assert (out / "part-r-00001").read_bytes() == b""
    verify_file(out / "part-r-00000")
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_nothing_stays_after_an_error(tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError),
        output_folder(tmp_path / "out") as folder,
        text_part(folder, 0, None) as part,
    ):
        part.write(b"half")
        raise RuntimeError
    assert not list(tmp_path.iterdir())


def test_an_existing_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(StoreError, match="already exists"), output_folder(tmp_path / "out"):
        pytest.fail("not reached")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="already exists"), output_folder(tmp_path / "out"):
        (tmp_path / "out").mkdir()
        (tmp_path / "out/file").touch()
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "file"]
