"""Computes what a disk may hold after a power cut: from a folder as it was, the calls that a job
made, and those that had been synced.

A file's bytes are safe once it is fsynced, a directory's names once the directory is (and, as file
systems keep their journal in order, whatever happened to these names before). The rest is up to the
disk, within what POSIX allows:

    names    un-synced changes of names are kept up to some point in their order, and lost from
             there on
    bytes    un-synced writes are lost, kept, torn, or kept in length alone (zeros)
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.syscalls import Call

LOST, KEPT, ZEROS, TORN = "lost", "kept", "zeros", "torn"


@dataclass(eq=False)
class File:
    """Bytes as a running system sees them, as they are on disk, and the writes that make the
    difference.
    """

    live: bytearray = field(default_factory=bytearray)
    safe: bytes = b""
    writes: list[tuple[int, bytes]] = field(default_factory=list)

    def write(self, at: int, data: bytes) -> None:
        if at > len(self.live):
            self.live.extend(bytes(at - len(self.live)))
        self.live[at : at + len(data)] = data
        self.writes.append((at, data))

    def resize(self, size: int) -> None:
        del self.live[size:]
        self.live.extend(bytes(size - len(self.live)))

    def sync(self) -> None:
        self.safe = bytes(self.live)
        self.writes.clear()

    def after_cut(self, how: str, chance: random.Random) -> bytes:
        """Returns what may be found after a power cut."""
        if how == KEPT:
            return bytes(self.live)
        if how == LOST:
            return self.safe
        found = bytearray(self.safe[: len(self.live)].ljust(len(self.live), b"\0"))
        for at, data in self.writes if how == TORN else ():
            kept = chance.choice((0, len(data), chance.randrange(len(data) + 1)))
            found[at : at + kept] = data[:kept]
        return bytes(found[: len(self.live)])


@dataclass(eq=False)
class Folder:
    """Names as a running system sees them, and as they are on disk."""

    live: dict[str, File | Folder] = field(default_factory=dict)
    safe: dict[str, File | Folder] = field(default_factory=dict)


Change = list[tuple[Folder, str, "File | Folder | None"]]
"""Names that change at once, and what they stand for then."""


class Disk:
    """A disk that holds what lies below `folder`, all of it safe; `apply` makes a job's calls."""

    def __init__(self, folder: Path) -> None:
        self.root = _load(folder)
        self._pending: list[Change] = []

    def apply(self, call: Call) -> None:
        """Make a call; one that fails on a real disk (a name that is there, or is not) changes
        nothing.
        """
        _APPLY[call.kind](self, call)

    def cut(self, target: Path, names: str, data: str, chance: random.Random) -> None:
        """Write to `target` what is found after a power cut: `names` LOST, KEPT or TORN, `data` any
        of the four.
        """
        count = {LOST: 0, KEPT: len(self._pending), TORN: chance.randrange(len(self._pending) + 1)}[
            names
        ]
        found = {id(folder): dict(folder.safe) for folder in self._folders()}
        for change in self._pending[:count]:
            for folder, name, node in change:
                _put(found.setdefault(id(folder), dict(folder.safe)), name, node)
        self._write(self.root, target, found, data, chance)

    def _folders(self) -> list[Folder]:
        return [folder for change in self._pending for folder, _, _ in change]

    def _write(
        self,
        folder: Folder,
        target: Path,
        found: dict[int, dict[str, File | Folder]],
        data: str,
        chance: random.Random,
    ) -> None:
        target.mkdir(exist_ok=True)
        for name, node in found.get(id(folder), folder.safe).items():
            if isinstance(node, Folder):
                self._write(node, target / name, found, data, chance)
            else:
                (target / name).write_bytes(node.after_cut(data, chance))

    def find(self, path: str) -> File | Folder | None:
        """Returns what a running system finds at a path."""
        node: File | Folder | None = self.root
        for name in () if path == "." else path.split("/"):
            node = node.live.get(name) if isinstance(node, Folder) else None
        return node

    def _place(self, path: str) -> tuple[Folder | None, str]:
        parent, _, name = path.rpartition("/")
        folder = self.find(parent or ".")
        return (folder if isinstance(folder, Folder) else None), name

    def _change(self, change: Change) -> None:
        for folder, name, node in change:
            _put(folder.live, name, node)
        self._pending.append(change)

    def _new(self, call: Call, node: File | Folder) -> None:
        folder, name = self._place(call.path)
        if folder is not None and name not in folder.live:
            self._change([(folder, name, node)])

    def _open(self, call: Call) -> None:
        node = self.find(call.path)
        if node is None and call.flags & os.O_CREAT:
            self._new(call, File())
        elif isinstance(node, File) and call.flags & os.O_TRUNC and not call.flags & os.O_EXCL:
            node.resize(0)

    def _write_file(self, call: Call) -> None:
        node = self.find(call.path)
        if isinstance(node, File):
            node.write(call.offset, call.data)

    def _truncate(self, call: Call) -> None:
        node = self.find(call.path)
        if isinstance(node, File):
            node.resize(call.offset)

    def _remove(self, call: Call) -> None:
        folder, name = self._place(call.path)
        node = self.find(call.path)
        if folder is None or node is None or isinstance(node, Folder) is not (call.kind == "rmdir"):
            return
        if not (isinstance(node, Folder) and node.live):
            self._change([(folder, name, None)])

    def _rename(self, call: Call) -> None:
        (old, old_name), (new, new_name) = self._place(call.path), self._place(call.target)
        node, there = self.find(call.path), self.find(call.target)
        if old is None or new is None or node is None or (isinstance(there, Folder) and there.live):
            return
        self._change([(old, old_name, None), (new, new_name, node)])

    def _exchange(self, call: Call) -> None:
        (old, old_name), (new, new_name) = self._place(call.path), self._place(call.target)
        node, there = self.find(call.path), self.find(call.target)
        if old is not None and new is not None and node is not None and there is not None:
            self._change([(old, old_name, there), (new, new_name, node)])

    def _link(self, call: Call) -> None:
        node = self.find(call.path)
        if node is not None:
            self._new(Call("link", call.target), node)

    def _sync(self, call: Call) -> None:
        node = self.find(call.path)
        if isinstance(node, File):
            node.sync()
        elif node is not None:
            self._sync_names(node)

    def _sync_names(self, folder: Folder) -> None:
        """Make safe what happened to the names in `folder`, and what happened before to the folders
        involved.
        """
        involved, rest = {id(folder)}, []
        for change in reversed(self._pending):
            folders = {id(place) for place, _, _ in change}
            if folders & involved:
                involved |= folders
            else:
                rest.append(change)
        kept = set(map(id, rest))
        for change in self._pending:
            if id(change) not in kept:
                for place, name, node in change:
                    _put(place.safe, name, node)
        self._pending = [change for change in self._pending if id(change) in kept]


_APPLY: dict[str, Callable[[Disk, Call], None]] = {
    "open": Disk._open,
    "read": lambda disk, call: None,
    "write": Disk._write_file,
    "truncate": Disk._truncate,
    "mkdir": lambda disk, call: disk._new(call, Folder()),
    "rmdir": Disk._remove,
    "unlink": Disk._remove,
    "rename": Disk._rename,
    "exchange": Disk._exchange,
    "link": Disk._link,
    "fsync": Disk._sync,
}


def _put(names: dict[str, File | Folder], name: str, node: File | Folder | None) -> None:
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node


def _load(folder: Path) -> Folder:
    names: dict[str, File | Folder] = {}
    for path in folder.iterdir():
        if path.is_dir():
            names[path.name] = _load(path)
        else:
            data = path.read_bytes()
            names[path.name] = File(bytearray(data), data)
    return Folder(names, dict(names))


def copy(folder: Path, target: Path) -> Path:
    """`folder` with all it holds, in place of what was at `target`."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    return target
