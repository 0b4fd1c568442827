"""indexer-dummy: writes a line for each action to a text file: `add TAB id`, `delete TAB id`,
`commit`.

    path     the file
    delete   whether deletions are also written (false)

The file appears whole when the job has ended.

Source: org.apache.nutch.indexwriter.dummy.DummyIndexWriter.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from minutch.errors import IndexWriterError
from minutch.plugin.documents import Documents, texts_of
from minutch.plugin.parameters import Parameters
from minutch.plugin.points import Action, IndexWriter, Refused
from minutch.records.document import NutchDocument, value_text
from minutch.work.tables.install import WholeFile


class DummyIndexWriter(IndexWriter):
    """Writes one file."""

    overwrites = True

    def configure(self, parameters: Parameters) -> None:
        self.deletes = parameters.get_boolean("delete", False)
        self.path = Path(parameters.get("path", ""))
        if not self.path.name:
            raise parameters.wrong("path", "the name of a file")

    def encode(self, doc: NutchDocument) -> bytes:
        name = doc.first("id")
        return f"add\t{'null' if name is None else value_text(name)}\n".encode()

    def encode_columns(self, documents: Documents) -> pl.Series:
        names = documents.column("id")
        if names is None:
            return super().encode_columns(documents)
        texts = texts_of(names)
        first = texts.list.first() if isinstance(texts.dtype, pl.List) else texts
        return ("add\t" + first.fill_null("null") + "\n").cast(pl.Binary)

    def open(self) -> None:
        if not self.path.parent.is_dir():
            raise IndexWriterError(f"{self.path}: there is no folder {self.path.parent}")
        try:
            self._file = WholeFile(self.path, sums=False)
        except OSError as exc:
            raise IndexWriterError(f"{self.path}: can't be written: {exc.strerror}") from exc

    def write(self, actions: Sequence[Action]) -> Sequence[Refused]:
        lines = (self._deletion(key) if payload is None else payload for key, payload in actions)
        self._put(b"".join(lines))
        return ()

    def _deletion(self, key: str) -> bytes:
        return f"delete\t{key}\n".encode() if self.deletes else b""

    def _put(self, data: bytes) -> None:
        try:
            self._file.write(data)
        except OSError as exc:
            raise IndexWriterError(f"{self.path}: can't be written: {exc.strerror}") from exc

    def commit(self) -> None:
        self._put(b"commit\n")

    def close(self) -> None:
        self._file.close()

    def abort(self) -> None:
        if hasattr(self, "_file"):  # `open` may have failed
            self._file.discard()

    def describe(self) -> dict[str, tuple[str, object]]:
        return {
            "delete": ("whether deletions are also written", str(self.deletes).lower()),
            "path": ("the file", self.path),
        }
