"""A store without Java: the calls of `minutch.annexes.stores.hadoop`, answered by a folder of this
machine.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import mkstemp

import pytest

from minutch.annexes.stores import hadoop
from minutch.annexes.stores.path import HadoopPath


def disk_store(folder: Path, monkeypatch: pytest.MonkeyPatch, scheme: str = "hdfs") -> HadoopPath:
    """The root of a new store, whose files are in `folder` until the test ends."""
    store = _DiskStore(folder, f"{scheme}://disk:1/root")
    for name in ("look", "list_folder", "make_folder", "rename", "delete", "create", "upload"):
        monkeypatch.setattr(hadoop, name, getattr(store, name))
    monkeypatch.setattr(hadoop, "new_file", store.new_file)
    monkeypatch.setattr(hadoop, "scratch", lambda: str(store.scratch))
    monkeypatch.setattr(hadoop, "Ranges", partial(_Ranges, store.local))
    return HadoopPath(store.root)


class _DiskStore:
    def __init__(self, folder: Path, root: str) -> None:
        self.folder, self.root = folder / "root", root
        self.folder.mkdir(parents=True)
        self.scratch = folder / "scratch"
        self.scratch.mkdir()

    def local(self, uri: str) -> Path:
        assert uri.startswith(self.root), uri
        return self.folder / uri.removeprefix(self.root).strip("/")

    def look(self, uri: str) -> hadoop.FileStatus:
        path = self.local(uri)
        found = path.stat()
        modified = found.st_mtime_ns // 1_000_000
        return hadoop.FileStatus(path.name, path.is_dir(), found.st_size, modified)

    def list_folder(self, uri: str) -> list[hadoop.FileStatus]:
        return [self.look(f"{uri}/{path.name}") for path in self.local(uri).iterdir()]

    def make_folder(self, uri: str) -> None:
        self.local(uri).mkdir(parents=True, exist_ok=True)

    def rename(self, uri: str, target: str) -> None:
        if self.local(target).exists():
            raise FileExistsError(17, "File exists", target)
        self.local(uri).rename(self.local(target))

    def delete(self, uri: str, *, tree: bool = False) -> bool:
        path = self.local(uri)
        if not path.exists():
            return False
        if not path.is_dir():
            path.unlink()
        elif tree:
            shutil.rmtree(path)
        else:
            path.rmdir()
        return True

    def create(self, uri: str, content: bytes) -> None:
        self.local(uri).parent.mkdir(parents=True, exist_ok=True)
        with self.local(uri).open("xb") as file:
            file.write(content)

    def upload(self, file: str, uri: str) -> None:
        self.local(uri).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(file, self.local(uri))

    def new_file(self) -> str:
        descriptor, name = mkstemp(dir=self.scratch)
        os.close(descriptor)
        return name


class _Ranges:
    def __init__(self, local: Callable[[str], Path], uri: str) -> None:
        self._data = local(uri).read_bytes()
        self.size = len(self._data)

    def read(self, start: int, end: int) -> bytearray:
        return bytearray(self._data[start:end])

    def close(self) -> None:
        pass
