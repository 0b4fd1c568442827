"""HadoopPath by itself, and jobs on it, with a folder of this machine for a store."""

from __future__ import annotations

import mmap
import os
import pickle
import shutil
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from minutch.annexes.stores.path import HadoopPath
from minutch.cycle.fetch.results.closing import copy_folder
from minutch.errors import ConfigError
from minutch.hadoop.formats.checksum import read_file, write_file
from minutch.paths import as_path, copies, is_local, local_scratch
from tests.annexes.spark.test_spark import random_pages
from tests.annexes.stores.test_stores import answers, replace_and_fail, run_commands
from tests.cycle.linkdb.test_jobs import segment
from tests.properties.test_order import crawldb
from tests.support.crawldbs import context
from tests.support.diskstore import disk_store


@pytest.fixture(params=["hdfs", "s3a"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> HadoopPath:
    return disk_store(tmp_path / "store", monkeypatch, request.param)


def test_names_are_split_and_joined_as_those_of_this_machine() -> None:
    path = HadoopPath("hdfs://name:8020/crawl") / "crawldb" / "part-r-00000.crc"
    assert str(path) == "hdfs://name:8020/crawl/crawldb/part-r-00000.crc"
    assert (path.name, path.stem, path.suffix) == ("part-r-00000.crc", "part-r-00000", ".crc")
    assert path.parts == ("hdfs:", "name:8020", "crawl", "crawldb", "part-r-00000.crc")
    assert path.parent == HadoopPath("hdfs://name:8020/crawl/crawldb/")
    assert [*map(str, path.parents)] == [
        "hdfs://name:8020/crawl/crawldb",
        "hdfs://name:8020/crawl",
        "hdfs://name:8020",
    ]
    root = HadoopPath("hdfs://name:8020")
    assert root.parent == root
    assert path.with_name("b") == path.parent / "b"
    assert path.parent.with_name("b") < path.parent.with_name("c")
    assert path.relative_to(root / "crawl") == Path("crawldb/part-r-00000.crc")
    with pytest.raises(ValueError, match="not in the subpath"):
        path.relative_to(HadoopPath("s3a://name:8020"))
    assert pickle.loads(pickle.dumps(path)) == path
    assert len({path, path.parent / path.name}) == 1
    assert path != Path(str(path))


def test_what_a_name_stands_for() -> None:
    assert as_path("crawl/db") == Path("crawl/db")
    assert as_path("file:///crawl") == Path("/crawl")
    found = as_path("s3a://bucket/crawl")
    assert isinstance(found, HadoopPath)
    assert as_path(found) is found
    assert (found.scheme, found.renames, copies(found)) == ("s3a", False, True)
    assert not is_local(found)
    assert local_scratch(Path("here")) == Path("here")
    with pytest.raises(ConfigError, match="names no host or bucket"):
        as_path("hdfs:///crawl")
    with pytest.raises(ValueError, match="expected SCHEME://HOST/PATH"):
        HadoopPath("crawl/db")


def test_the_system_is_never_handed_one(tmp_path: Path) -> None:
    """Its calls would look for a file of that name on this machine."""
    path = cast(Any, HadoopPath("hdfs://name:8020/crawl"))
    assert not isinstance(path, Path | os.PathLike)
    (tmp_path / "file").write_bytes(b"content")
    for call in (
        os.fspath,
        os.stat,
        os.listdir,
        os.remove,
        Path,
        open,
        shutil.rmtree,
        lambda path: os.open(path, os.O_RDONLY),
        lambda path: os.path.join(path, "db"),  # noqa: PTH118
        lambda path: shutil.copyfile(tmp_path / "file", path),
        (tmp_path / "file").rename,
        lambda path: path.rename(tmp_path / "file"),
        lambda path: path.replace(tmp_path / "file"),
        lambda path: tmp_path / path,
    ):
        with pytest.raises(TypeError):
            call(path)
    for name in ("chmod", "touch", "symlink_to", "hardlink_to", "resolve", "expanduser", "owner"):
        with pytest.raises(AttributeError):
            getattr(path, name)


def test_a_path_answers_as_one_of_this_machine(store: HadoopPath, tmp_path: Path) -> None:
    (store / "paths").mkdir()
    (tmp_path / "paths").mkdir()
    assert answers(store / "paths") == answers(tmp_path / "paths")


def test_a_file_is_there_when_it_is_closed(store: HadoopPath) -> None:
    path = store / "file"
    with path.open("w", encoding="utf-8") as stream:
        stream.write("ä\n")
        stream.flush()
        assert not path.exists()
    assert path.read_text(encoding="utf-8") == "ä\n"
    with pytest.raises(FileExistsError):
        path.open("x")
    with pytest.raises(OSError, match="read or written whole"):
        path.open("a")
    with path.open("rb") as stream, pytest.raises((OSError, ValueError)):
        mmap.mmap(stream.fileno(), 0)


def test_a_file_has_no_checksum_sibling(store: HadoopPath) -> None:
    write_file(store / "file", b"content")
    assert read_file(store / "file") == b"content"
    assert [path.name for path in store.iterdir()] == ["file"]


def test_a_replacement_is_finished_by_the_next(
    store: HadoopPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not store.renames:
        replace_and_fail(store, monkeypatch)


def test_commands_leave_there_what_they_leave_here(store: HadoopPath, tmp_path: Path) -> None:
    far, near = store / "commands", tmp_path / "commands"
    crawldb(Random(1), near / "crawldb", 2)
    pages = random_pages(Random(2))
    for name in ("20260101000000", "20260101000001"):
        segment(near / "segments" / name, pages, parts=2)
    copy_folder(near, far)
    left = [run_commands(root, context()) for root in (near, far)]
    assert left[0] == left[1]
    assert len(left[0]) > 15
