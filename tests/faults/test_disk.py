"""The disk that loses what was not synced."""

from __future__ import annotations

import os
import random
from pathlib import Path

from tests.faults.disk import KEPT, LOST, TORN, ZEROS, Disk
from tests.faults.syscalls import Call

NEW = os.O_CREAT | os.O_WRONLY | os.O_TRUNC


def found(
    disk: Disk, target: Path, names: str, data: str, seed: int = 0
) -> dict[str, bytes | None]:
    """Path -> content after a power cut; None for a folder."""
    disk.cut(target, names, data, random.Random(seed))
    return {
        str(path.relative_to(target)): None if path.is_dir() else path.read_bytes()
        for path in target.rglob("*")
    }


def written(folder: Path, *calls: Call) -> Disk:
    folder.mkdir()
    (folder / "db").mkdir()
    (folder / "db/data").write_bytes(b"old")
    disk = Disk(folder)
    for call in calls:
        disk.apply(call)
    return disk


REPLACED = (
    Call("open", "db/.next", flags=NEW),
    Call("write", "db/.next", data=b"newer"),
    Call("rename", "db/.next", "db/data"),
)
SYNC_FILE, SYNC_FOLDER = Call("fsync", "db/.next"), Call("fsync", "db")


def test_nothing_synced(tmp_path: Path) -> None:
    disk = written(tmp_path / "disk", *REPLACED)
    assert found(disk, tmp_path / "lost", LOST, LOST) == {"db": None, "db/data": b"old"}
    assert found(disk, tmp_path / "kept", KEPT, KEPT) == {"db": None, "db/data": b"newer"}
    assert found(disk, tmp_path / "empty", KEPT, LOST) == {"db": None, "db/data": b""}
    assert found(disk, tmp_path / "zeros", KEPT, ZEROS) == {"db": None, "db/data": bytes(5)}
    torn = {
        found(disk, tmp_path / f"torn{seed}", KEPT, TORN, seed)["db/data"] for seed in range(60)
    }
    assert torn == {b"newer"[:kept].ljust(5, b"\0") for kept in range(6)}


def test_names_are_lost_from_some_point_on(tmp_path: Path) -> None:
    disk = written(tmp_path / "disk", *REPLACED[:2], SYNC_FILE, REPLACED[2])
    seen = {
        tuple(sorted(found(disk, tmp_path / str(seed), TORN, LOST, seed).items()))
        for seed in range(40)
    }
    assert seen == {
        (("db", None), ("db/data", b"old")),
        (("db", None), ("db/.next", b"newer"), ("db/data", b"old")),
        (("db", None), ("db/data", b"newer")),
    }


def test_what_is_synced_stays(tmp_path: Path) -> None:
    disk = written(tmp_path / "disk", *REPLACED[:2], SYNC_FILE, REPLACED[2], SYNC_FOLDER)
    for names in (LOST, KEPT, TORN):
        for data in (LOST, ZEROS, TORN, KEPT):
            assert found(disk, tmp_path / f"{names}-{data}", names, data) == {
                "db": None,
                "db/data": b"newer",
            }


def test_a_folder_whose_parent_was_not_synced_is_lost_with_all_it_holds(tmp_path: Path) -> None:
    calls = (
        Call("mkdir", "new"),
        Call("open", "new/file", flags=NEW),
        Call("fsync", "new/file"),
        Call("fsync", "new"),
    )
    disk = written(tmp_path / "disk", *calls)
    assert found(disk, tmp_path / "lost", LOST, LOST) == {"db": None, "db/data": b"old"}
    disk.apply(Call("fsync", "."))
    assert found(disk, tmp_path / "safe", LOST, LOST) == {
        "db": None,
        "db/data": b"old",
        "new": None,
        "new/file": b"",
    }


def test_an_exchange_of_folders(tmp_path: Path) -> None:
    disk = written(
        tmp_path / "disk", Call("mkdir", "next"), Call("fsync", "."), Call("exchange", "next", "db")
    )
    assert found(disk, tmp_path / "lost", LOST, LOST) == {
        "db": None,
        "db/data": b"old",
        "next": None,
    }
    assert found(disk, tmp_path / "kept", KEPT, LOST) == {
        "next": None,
        "next/data": b"old",
        "db": None,
    }


def test_calls_that_fail_change_nothing(tmp_path: Path) -> None:
    disk = written(
        tmp_path / "disk",
        Call("mkdir", "db"),
        Call("rmdir", "db"),
        Call("unlink", "db"),
        Call("unlink", "nothing"),
        Call("rename", "nothing", "db/data"),
        Call("open", "db/data", flags=os.O_CREAT | os.O_EXCL),
    )
    assert found(disk, tmp_path / "found", KEPT, KEPT) == {"db": None, "db/data": b"old"}
