"""The engine of this machine: the pieces that it makes of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from minutch.work.engine.local import LocalEngine
from minutch.work.tables import spannedfile
from minutch.work.tables.spans import CombineFileSplit


def test_small_files_are_one_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order; a large one is a piece by itself."""
    monkeypatch.setattr(spannedfile, "SPAN_SIZE", 100)
    paths = []
    for number, size in enumerate((0, 40, 60, 1, 100, 101, 7, 8)):
        path = tmp_path / f"part-r-{number:05}"
        if number % 2:
            path.mkdir()
            (path / "data").write_bytes(bytes(size))
        else:
            path.write_bytes(bytes(size))
        paths.append(path)
    assert LocalEngine(1, 1 << 20).splits(paths) == [
        CombineFileSplit(tuple(paths[:3])),
        paths[3],
        paths[4],
        paths[5],
        CombineFileSplit(tuple(paths[6:])),
    ]
