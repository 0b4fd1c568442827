"""Opens the local index on disk: a tantivy index, and a stamp with the version that has written it.

    crawl/index/current/              tantivy's files
    crawl/index/current/minutch.json  {"format": …, "tantivy": "0.27.0", "files": …, "ours": true}
    crawl/index/.locked               while somebody writes

tantivy reads what it has written itself and little else. An index of another version, or of other
fields, or a damaged one, is made again from the segments, with `minutch.index.local.rebuild` (see
`rebuild_command`). `indexfiles` checks files before tantivy has them; `files` are those that need
no more of it. An index all of whose files were written by jobs of this user on this machine, since
it was made, is `ours`. Any other, such as a copy, is opened in a process of its own (`apart`).
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Final

import tantivy

from minutch import strictjson
from minutch.errors import FormatError, MinutchError, StoreError
from minutch.inspect.search import fields
from minutch.inspect.search.indexfiles import META, check
from minutch.processwide import command_line
from minutch.work.tables.database import Database

STAMP: Final = "minutch.json"
FORMAT: Final = 2
"""Counts the changes of `fields` that older indexes can't be read with."""
REBUILD_PROPERTY: Final = "minutch.index.local.rebuild"
_TRIES: Final = 5
"""Commits that may take place while the files are checked."""


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
            found = strictjson.loads(path.read_text(encoding="utf-8"))
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

    def require(self) -> bool:
        """Returns whether the index is ours. Raises StoreError if there is none, or one that this
        version can't use; FormatError (damage).
        """
        made = self._found()
        compatible, is_ours = made.get("format") == FORMAT, False
        if compatible:
            is_ours = self.check(made.get("files")) and made.get("ours") is not False
            with self.reading():
                owners = {path.stat().st_uid for path in (self.current, self.current / STAMP)}
                is_ours &= owners <= {os.getuid(), 0}
                compatible = not is_ours or tantivy.Index.is_compatible(str(self.current))
        if not compatible:
            raise StoreError(
                f"{self.path} was written by another version ({self._made_by()}; this one has"
                f" format {FORMAT}, tantivy {version('tantivy')})",
                hint=f"make it again from the segments: {self.rebuild_command()}",
            )
        return is_ours

    def _found(self) -> dict[str, object]:
        """Returns the stamp. Raises StoreError if there is no index, FormatError."""
        if not self.path.is_dir():
            raise StoreError(
                f"Input path does not exist: {self.path}",
                hint="an index, or the folder of a crawl that has one",
            )
        if not self.exists():
            crawl, words = shlex.quote(str(self.path)), "index"
            if (self.path / "crawldb").is_dir():
                words += f" {crawl}/crawldb -linkdb {crawl}/linkdb -dir {crawl}/segments"
            raise StoreError(
                f"{self.path} has no index",
                hint=f"`{command_line(words)}` makes one",
            )
        return self._stamp()

    def rebuild_command(self) -> str:
        """The command that makes the index again."""
        crawl = self.path.parent
        return command_line(
            f"index -D {REBUILD_PROPERTY}=true {crawl / 'crawldb'} -linkdb"
            f" {crawl / 'linkdb'} -dir {crawl / 'segments'} -deleteGone"
        )

    def check(self, known: object = None) -> bool:
        """Reads all files of the index but those that are as `known` has them, and returns whether
        all are. Raises FormatError, with a hint.
        """
        with self.reading():
            for _ in range(_TRIES):
                before = self.state()
                try:
                    return check(self.current, known if isinstance(known, Mapping) else {}) == known
                except FileNotFoundError:
                    if self.state() == before:
                        raise
        raise StoreError(f"{self.path} is written to at this moment", hint="try again")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Translates the errors of tantivy, its panics among them, to FormatError, and says what to
        do about them.
        """
        try:
            try:
                yield
            except (ValueError, OSError) as exc:
                if isinstance(exc, MinutchError):
                    raise
                raise FormatError(f"the index can't be read: {exc}", path=self.current) from exc
            except BaseException as exc:
                if not is_panic(exc):
                    raise
                raise FormatError(f"the index can't be read: {exc}", path=self.current) from exc
        except FormatError as exc:
            exc.hint = f"make it again from the segments: {self.rebuild_command()}"
            raise

    def state(self) -> tuple[int, ...]:
        """Returns a value that is different after every commit, and when that is stamped."""
        try:
            found = [(self.current / name).stat() for name in (META, STAMP)]
        except OSError:
            self._found()
            raise StoreError(f"{self.path} has no index: {META} is not there") from None
        return tuple(n for one in found for n in (one.st_ino, one.st_mtime_ns, one.st_size))


def is_panic(error: BaseException) -> bool:
    """Returns True for a panic of tantivy's, whose class can't be imported and is no Exception."""
    return type(error).__name__ == "PanicException"


def opened(folder: Path) -> tantivy.Index:
    """Opens the tantivy index in a folder, whose files were checked. Raises ValueError,
    FormatError.
    """
    index = tantivy.Index.open(str(folder))
    if index.schema != fields.schema():
        raise FormatError("other fields than those of an index of pages", path=folder / META)
    index.config_reader("manual")
    fields.register(index)
    return index


def create(folder: Path) -> None:
    """Creates an empty index in an empty folder."""
    tantivy.Index(fields.schema(), str(folder))
    stamp(folder, ours=True)


def stamp(folder: Path, *, ours: bool) -> None:
    """Writes the stamp of an index that a job has just written; `ours` says whether it was before.
    Raises FormatError.
    """
    made = {
        "format": FORMAT,
        "tantivy": version("tantivy"),
        "files": check(folder, None),
        "ours": ours,
    }
    new = folder / f"{STAMP}.new"
    with new.open("w", encoding="utf-8") as file:
        file.write(json.dumps(made) + "\n")
        file.flush()
        os.fsync(file.fileno())
    new.replace(folder / STAMP)
