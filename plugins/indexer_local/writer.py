"""indexer-local: writes an index beside the crawl, without a server; `minutch search` and `minutch
serve` read it.

    path       folder of the index, below that of the crawl unless it is absolute (index);
               indexchecker, which knows no crawl, takes the working folder
    memory     megabytes for documents that are not on disk yet (128)
    threads    that make the index (0: half as many as there are cores, four at most)

Documents are replaced and deleted by their URLs. What is written shows at the end of the job: a job
that is killed leaves the index of the one before. The end of a job is a commit, with -noCommit too,
as nobody else could make one. With `minutch.index.local.rebuild` a new index takes the place of the
old one, whatever version wrote that.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, TypeVar

import polars as pl

from minutch.errors import IndexWriterError, LockedError
from minutch.hadoop.stores import as_path, is_local
from minutch.inspect.search.apart import Apart
from minutch.inspect.search.localindex import (
    REBUILD_PROPERTY,
    IndexWriting,
    LocalIndex,
    create,
    is_panic,
    stamp,
)
from minutch.plugin.documents import Documents
from minutch.plugin.parameters import Parameters
from minutch.plugin.points import Action, IndexWriter, Refused
from minutch.records.document import NutchDocument

from .encoding import encoded

CRAWL_PROPERTY = "minutch.index.crawl"
"""The folder of the crawl that is indexed; jobs set it."""
LEAST_MEMORY = 16
"""Megabytes that tantivy asks for, for each thread."""
MOST_THREADS = 4
MERGING: Final = 2 << 30
"""Bytes that tantivy may take for merges, beside its documents, for an index that is not ours."""

T = TypeVar("T")


class LocalIndexWriter(IndexWriter):
    """Writes one index."""

    def configure(self, parameters: Parameters) -> None:
        crawl, own = (
            as_path(self.conf.get(CRAWL_PROPERTY) or "."),
            Path(parameters.get("path") or "index"),
        )
        self.path = own if own.is_absolute() else crawl / own
        if not is_local(self.path):
            raise parameters.wrong(
                "path", f"the whole path of a folder on this machine, as the crawl is in {crawl}"
            )
        self.memory = parameters.get_int("memory", 128)
        self.threads = parameters.get_int("threads", 0)
        if self.threads < 0:
            raise parameters.wrong("threads", "0 or more")
        if self.memory < LEAST_MEMORY:
            raise parameters.wrong("memory", f"{LEAST_MEMORY} or more")
        self.threads = self.threads or max(1, min(MOST_THREADS, (os.cpu_count() or 1) // 2))

    def encode(self, doc: NutchDocument) -> bytes:
        return bytes(self.encode_columns(Documents.of(doc))[0])

    def encode_columns(self, documents: Documents) -> pl.Series:
        """Returns the JSON of each document."""
        return encoded(documents)

    def open(self) -> None:
        self._held = ExitStack()
        store = LocalIndex(self.path)
        if self.path.is_dir() and not store.exists() and any(self.path.iterdir()):
            leftovers = [path.name for path in self.path.iterdir() if not path.name.startswith(".")]
            if leftovers:
                raise IndexWriterError(f"{self.path} is no index: {leftovers[0]} is in it")
        try:
            self._held.enter_context(store.lock())
            if store.exists() and not self.conf.get_boolean(REBUILD_PROPERTY):
                self._folder, self._is_ours = store.current, store.require()
            else:
                self._folder = self._held.enter_context(store.replacement(keep_old=False))
                create(self._folder)
                self._is_ours = True
            memory = max(self.memory, LEAST_MEMORY * self.threads) * 1_000_000
            where = (self._folder, memory, self.threads)
            with store.reading():
                self._open: IndexWriting | Apart = (
                    IndexWriting(*where)
                    if self._is_ours
                    else Apart(IndexWriting, where, memory=2 * memory + MERGING, seconds=math.inf)
                )
                self._call(bool, "is_open")
        except BaseException as exc:
            self._release(exc)
            if isinstance(exc, LockedError):
                raise IndexWriterError(
                    f"another job writes to the index: {exc}", hint=exc.hint
                ) from exc
            if isinstance(exc, OSError):
                raise IndexWriterError(f"{self.path}: can't be written: {exc.strerror}") from exc
            raise

    def _call(self, returns: type[T], name: str, *args: object) -> T:
        if isinstance(self._open, Apart):
            return self._open.call(returns, name, *args)
        found: T = getattr(self._open, name)(*args)
        return found

    def write(self, actions: Sequence[Action]) -> Sequence[Refused]:
        kind = list[tuple[str, str]]
        refused = self._committed(lambda: self._call(kind, "write", list(actions)))
        return [Refused(*one) for one in refused]

    def commit(self) -> None:
        self._committed(lambda: self._call(bool, "commit"))

    def close(self) -> None:
        self._committed(lambda: self._call(bool, "end"))
        self._let_go()
        self._committed(lambda: stamp(self._folder, ours=self._is_ours))
        self._held.close()

    def _let_go(self) -> None:
        if isinstance(self._open, Apart):
            self._open.close()
        del self._open

    def _committed(self, step: Callable[[], T]) -> T:
        try:
            return step()
        except BaseException as exc:
            if not isinstance(exc, ValueError | OSError) and not is_panic(exc):
                raise
            raise IndexWriterError(f"{self.path}: can't be written: {exc}") from exc

    def abort(self) -> None:
        if hasattr(self, "_open"):
            with suppress(IndexWriterError):  # there is nothing to drop in a process that has died
                self._committed(lambda: self._call(bool, "rollback"))
            self._let_go()
        if hasattr(self, "_held"):
            self._release(IndexWriterError("aborted"))

    def _release(self, error: BaseException) -> None:
        """Releases locks and removes incomplete files."""
        self._held.__exit__(type(error), error, error.__traceback__)

    def describe(self) -> dict[str, tuple[str, object]]:
        return {
            "path": ("folder of the index", self.path),
            "memory": ("megabytes for documents that are not on disk yet", self.memory),
            "threads": ("threads that make the index", self.threads),
        }
