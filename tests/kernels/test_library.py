"""Kernels are compiled once, wherever that can be kept, and called safely."""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from minutch.errors import MinutchError, StoreError
from minutch.kernels import find, library, native
from minutch.kernels.library import address


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A process that has not loaded kernels yet, and compiles none."""
    monkeypatch.setattr(
        library, "compile_all", lambda: dict.fromkeys(library.modules(), b"object code")
    )
    library._objects.cache_clear()
    yield monkeypatch
    library._objects.cache_clear()


def places(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    monkeypatch.setattr(library, "folders", lambda: iter(folders))


def test_wrong_arrays_never_reach_a_kernel() -> None:
    at = np.empty(3, np.int64)
    for length in (
        np.zeros(3, np.int64),
        np.zeros(3, ">i4"),
        np.zeros((3, 1), np.int32),
        np.zeros(6, np.int32)[::2],
        [1, 2, 3],
        None,
        5,
    ):
        with pytest.raises(TypeError, match=r"find\.running_sum: expected \(I32, I64\), found"):
            find.running_sum(length, at)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"expected \(I32, I64\), found"):
        find.running_sum(np.zeros(3, np.int32))  # type: ignore[call-arg]


def test_arrays_that_cant_be_written_can_be_read() -> None:
    length = np.array([3, 4], np.int32)
    length.flags.writeable = False
    at = np.empty(2, np.int64)
    assert find.running_sum(length, at) == 7 and at.tolist() == [0, 3]


def test_another_layout_of_objects_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "DATA_OFFSET", 32)
    native._check_layout.cache_clear()
    try:
        with pytest.raises(MinutchError, match="lays objects out in another way"):
            native._check_layout()
    finally:
        native._check_layout.cache_clear()


def test_every_module_loads() -> None:
    for module in library.modules():
        library._load(module)
    assert address("find", "release")
    with pytest.raises(StoreError, match=r"lacks find\.nothing"):
        address("find", "nothing")


def test_compiled_once_and_said_once(
    tmp_path: Path, fresh: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    places(fresh, tmp_path / "package", tmp_path / "cache")
    with caplog.at_level(logging.WARNING):
        first = library._objects()
        library._objects.cache_clear()
        assert library._objects() == first == tmp_path / "package" / library.version()
    assert [
        record.message for record in caplog.records if "compiling kernels" in record.message
    ] == [
        "compiling kernels, once on this machine (about 20 s); `minutch warm` does it ahead of time"
    ]
    assert {path.stem for path in (tmp_path / "package" / library.version()).iterdir()} == set(
        library.modules()
    )


def test_the_next_folder_where_one_cant_be_written(
    tmp_path: Path, fresh: pytest.MonkeyPatch
) -> None:
    (tmp_path / "package").write_text("a file in the way")
    places(fresh, tmp_path / "package", tmp_path / "cache")
    assert library._objects() == tmp_path / "cache" / library.version()


def test_nowhere_to_write_is_said_with_what_to_do(
    tmp_path: Path, fresh: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("a file in the way")
    places(fresh, tmp_path / "file", tmp_path / "file" / "cache")
    with caplog.at_level(logging.WARNING):
        assert library._objects() == dict.fromkeys(library.modules(), b"object code")
        library._objects()
    said = [record.message for record in caplog.records if "can be written" in record.message]
    assert (
        len(said) == 1
        and str(tmp_path / "file") in said[0]
        and "Make one of them writable" in said[0]
    )
    with pytest.raises(PermissionError, match="can be written"):
        library.warm()


def test_warm_compiles_what_is_missing(tmp_path: Path, fresh: pytest.MonkeyPatch) -> None:
    places(fresh, tmp_path)
    assert library.warm() and not library.warm()


def test_old_versions_go(tmp_path: Path, fresh: pytest.MonkeyPatch) -> None:
    for number in range(6):
        (tmp_path / f"kernels-{number}").mkdir()
    places(fresh, tmp_path)
    library.warm()
    assert len(list(tmp_path.glob("kernels-*"))) == library.KEPT
    assert (tmp_path / library.version()).is_dir()


def test_what_a_killed_process_left_goes(tmp_path: Path, fresh: pytest.MonkeyPatch) -> None:
    (tmp_path / ".new").mkdir()
    (tmp_path / ".new/half.o").write_bytes(b"half")
    places(fresh, tmp_path)
    assert library.warm()
    assert [path.name for path in tmp_path.iterdir()] == [library.version()]
    assert not (tmp_path / library.version() / "half.o").exists()


def test_nothing_is_left_where_the_disk_is_full(tmp_path: Path, fresh: pytest.MonkeyPatch) -> None:
    def no_room(self: Path, data: bytes) -> int:
        if self.is_relative_to(tmp_path / "full"):
            raise OSError(errno.ENOSPC, "No space left on device", str(self))
        return write(self, data)

    write = Path.write_bytes
    fresh.setattr(Path, "write_bytes", no_room)
    places(fresh, tmp_path / "full", tmp_path / "cache")
    assert library._objects() == tmp_path / "cache" / library.version()
    assert not list((tmp_path / "full").iterdir())


def test_another_users_folder_is_not_trusted(tmp_path: Path, fresh: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "tmp"
    fresh.setattr(library, "gettempdir", lambda: str(shared))
    (shared / "minutch-1").mkdir(parents=True)
    (shared / "minutch-1").chmod(0o777)  # anybody may put code there
    places(fresh, shared / "minutch-1", tmp_path / "cache")
    assert library._objects() == tmp_path / "cache" / library.version()


def test_damaged_object_code_is_named(tmp_path: Path, fresh: pytest.MonkeyPatch) -> None:
    places(fresh, tmp_path)
    library._objects()
    path = tmp_path / library.version() / "find.o"
    path.write_bytes(b"O" + path.read_bytes()[1:])
    with pytest.raises(StoreError, match=r"find\.o: damaged object code.*delete its folder"):
        library._read(path)
    assert library._read(path.with_name("sums.o")) == b"object code"
