"""Opens the local index on disk: a tantivy index, and a stamp with the version that has written it.

    crawl/index/current/              tantivy's files
    crawl/index/current/minutch.json  {"format": …, "tantivy": "0.27.0"}
    crawl/index/.locked               while somebody writes

tantivy reads what it has written itself and little else. An index of another version, or of other
fields, is made again from the segments, with `minutch.index.local.rebuild` (see `rebuild_command`).
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Final

import tantivy

from minutch.errors import FormatError, StoreError
from minutch.inspect.search import fields
from minutch.processwide import command_line
from minutch.work.tables.database import Database

STAMP: Final = "minutch.json"
META: Final = "meta.json"
FORMAT: Final = 1
"""Counts the changes of `fields` that older indexes can't be read with."""
REBUILD_PROPERTY: Final = "minutch.index.local.rebuild"


class LocalIndex(Database):
    """The index at a path. Methods raise StoreError if there is none, or one of another version;
    FormatError (damage).
    """

    def _made_by(self) -> str:
        """The version that has written the index."""
        found = self._stamp()
        return f"format {found.get('format')}, tantivy {found.get('tantivy')}"

    def _stamp(self) -> dict[str, object]:
        path = self.current / STAMP
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise StoreError(
                f"{self.path} is not an index of indexer-local: it has no {path.name}"
            ) from None
        except (OSError, ValueError) as exc:
            raise FormatError(f"the stamp of an index can't be read: {exc}", path=path) from exc
        if not isinstance(found, dict):
            raise FormatError(
                "the stamp of an index is none", path=path, expected="an object", found=found
            )
        return found

    def require(self) -> None:
        """Raises StoreError if there is no index, or one that this version can't use."""
        if not self.path.is_dir():
            raise StoreError(
                f"Input path does not exist: {self.path}",
                hint=f"`{command_line('index')}` makes an index of a crawl",
            )
        if not self.exists():
            raise StoreError(
                f"{self.path} has no index",
                hint=f"`{command_line('index')}` makes an index of a crawl",
            )
        made = self._stamp()
        if made.get("format") != FORMAT or not self._is_compatible():
            raise StoreError(
                f"{self.path} was written by another version ({self._made_by()}; this one has"
                f" format {FORMAT}, tantivy {version('tantivy')})",
                hint=f"make it again from the segments: {self.rebuild_command()}",
            )

    def _is_compatible(self) -> bool:
        try:
            return bool(tantivy.Index.is_compatible(str(self.current)))
        except ValueError as exc:
            raise FormatError(f"the index can't be read: {exc}", path=self.current / META) from exc

    def rebuild_command(self) -> str:
        """The command that makes the index again."""
        crawl = self.path.parent
        return command_line(
            f"index -D {REBUILD_PROPERTY}=true {crawl / 'crawldb'} -linkdb"
            f" {crawl / 'linkdb'} -dir {crawl / 'segments'} -deleteGone"
        )

    def open(self) -> tantivy.Index:
        """Opens the index as it is now. Raises StoreError, FormatError."""
        self.require()
        return opened(self.current)

    def state(self) -> tuple[int, int, int]:
        """Returns a value that is different after every commit."""
        try:
            found = (self.current / META).stat()
        except OSError:
            self.require()
            raise StoreError(f"{self.path} has no index: {META} is not there") from None
        return found.st_ino, found.st_mtime_ns, found.st_size


def opened(folder: Path) -> tantivy.Index:
    """Opens the tantivy index in a folder. Raises FormatError."""
    try:
        index = tantivy.Index.open(str(folder))
        index.config_reader("manual")
        fields.register(index)
    except (ValueError, OSError) as exc:
        raise FormatError(f"the index can't be read: {exc}", path=folder) from exc
    return index


def created(folder: Path) -> tantivy.Index:
    """Creates an empty index in an empty folder."""
    (folder / STAMP).write_text(
        json.dumps({"format": FORMAT, "tantivy": version("tantivy")}) + "\n", encoding="utf-8"
    )
    index = tantivy.Index(fields.schema(), str(folder))
    fields.register(index)
    return index
