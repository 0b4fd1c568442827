"""A file that appears whole or not at all: written in a folder beside its place, and renamed when
it is finished.

A file that is there before is replaced then. Its checksum sibling, if it is to have one, comes with
it: at any instant the file has its own sums or none.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from minutch.hadoop.formats.checksum import ChecksumWriter, WholeOrNothing, crc_path
from minutch.work.tables.install import make_directory, sync_path, sync_tree
from minutch.work.tables.workfolders import make_folder, remove


class WholeFile(WholeOrNothing):
    """A new file at `path`; the folders above it are made. `sums`: with a `.crc` sibling, as
    Hadoop's files have.
    """

    def __init__(self, path: Path, *, sums: bool) -> None:
        """Raises OSError where it can't be written."""
        self.path = path
        make_directory(path.parent)
        self._folder = make_folder(path.parent, f".{path.name}-")
        new = self._folder / path.name
        try:
            self._file = ChecksumWriter(new) if sums else new.open("wb")
        except BaseException:
            remove(self._folder)
            raise

    def write(self, data: bytes) -> None:
        """Appends bytes."""
        self._file.write(data)

    def close(self) -> None:
        """Puts the file in its place; if that fails, leave what was there before."""
        try:
            self._install()
        except BaseException:
            self.discard()
            raise

    def _install(self) -> None:
        self._file.close()
        sync_tree(self._folder)
        new = self._folder / self.path.name
        crc_path(self.path).unlink(missing_ok=True)
        new.replace(self.path)
        if crc_path(new).exists():
            crc_path(new).replace(crc_path(self.path))
        self._folder.rmdir()
        sync_path(self.path.parent)

    def discard(self) -> None:
        """Leaves what was there before."""
        with suppress(OSError):
            self._file.close()
        remove(self._folder)
