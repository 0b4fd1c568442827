"""Writes a folder of files named after URLs, one for each page. Files are complete, and no page
overwrites another.

Files are written to a hidden folder and moved to the output folder at the end. As in Nutch, this
may exist; its files are not changed. Names are compared case-insensitively, as in some file
systems. The table of names is on disk, so memory does not grow with the pages.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from minutch.archives.pagenames import longer_name
from minutch.errors import StoreError
from minutch.hadoop.formats.javaio import encode_text
from minutch.work.tables.install import clear, make_directory, sync_path, sync_tree, work_folder

_WORK: Final = ".pages-"


class PageFile(NamedTuple):
    """The name of a page's file, and whether the file is new: neither in the output folder nor
    claimed before.
    """

    name: str
    is_new: bool


class PageFiles:
    """A writer of the files of one run. See `page_files`."""

    def __init__(self, out: Path, work: Path) -> None:
        self.out = out
        self._files = work / "files"
        self._files.mkdir()
        self._made: set[Path] = set()
        self._names = sqlite3.connect("", isolation_level=None)  # a temporary file without a name
        self._names.execute("PRAGMA journal_mode=OFF")
        self._names.execute("CREATE TABLE names (name TEXT PRIMARY KEY, url BLOB) WITHOUT ROWID")

    def close(self) -> None:
        """Closes the table of names."""
        self._names.close()

    def claim(self, name: str, url: str) -> PageFile:
        """Returns the name of a page's file: `name`, or a longer one if another page has that."""
        key = encode_text(url)
        while True:
            owner = self._owner(name.lower(), key)
            if owner is None:
                return PageFile(name, is_new=not (self.out / name).exists())
            if owner == key:
                return PageFile(name, is_new=False)
            name = longer_name(name, url)

    def _owner(self, name: str, key: bytes) -> bytes | None:
        """Returns the page that has a name; None if it was free, and is now that of `key`."""
        try:
            taken = self._names.execute("SELECT url FROM names WHERE name = ?", (name,)).fetchone()
            if taken is not None:
                return bytes(taken[0])
            self._names.execute("INSERT INTO names VALUES (?, ?)", (name, key))
        except sqlite3.Error as exc:
            raise StoreError(
                f"can't keep the table of file names in a temporary file: {exc}"
            ) from exc
        return None

    def add(self, name: str, url: str, data: bytes) -> PageFile:
        """Writes a page's file unless it exists."""
        file = self.claim(name, url)
        if file.is_new:
            self.path(file.name).write_bytes(data)
        return file

    def path(self, name: str) -> Path:
        """Returns the temporary path of a file with a claimed name; creates its folder."""
        path = self._files / name
        if path.parent not in self._made:
            path.parent.mkdir(parents=True, exist_ok=True)
            if len(self._made) > 10_000:
                self._made.clear()
            self._made.add(path.parent)
        return path

    def install(self) -> None:
        """Moves all files to the output folder."""
        sync_tree(self._files)
        if not self.out.exists():
            self._files.rename(self.out)
            sync_path(self.out.parent)
            return
        for folder, _, names in os.walk(self._files):
            target = self.out / Path(folder).relative_to(self._files)
            make_directory(target)
            for name in names:
                Path(folder, name).replace(target / name)
            sync_path(target)


@contextmanager
def page_files(out: Path) -> Iterator[PageFiles]:
    """Opens a writer of files, which are moved to `out` when the block ends; an error leaves `out`
    unchanged.
    """
    if out.exists() and not out.is_dir():
        raise StoreError(f"Output directory {out} is not a directory")
    make_directory(out.parent)
    clear(out.parent, _WORK)
    parent = out if out.exists() else out.parent
    with work_folder(parent, _WORK) as work, closing(PageFiles(out, work)) as files:
        yield files
        files.install()
