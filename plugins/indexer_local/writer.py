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

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import polars as pl

from minutch.errors import IndexWriterError, LockedError
from minutch.hadoop.stores import as_path, is_local
from minutch.inspect.search.fields import KEY
from minutch.inspect.search.localindex import REBUILD_PROPERTY, LocalIndex, created, is_panic, stamp
from minutch.kernels.clibrary import give_back_large
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
            if store.exists() and not self.conf.get_boolean(REBUILD_PROPERTY, False):
                self._folder = store.current
                index = store.open()
            else:
                self._folder = self._held.enter_context(store.replacement(keep_old=False))
                index = created(self._folder)
            give_back_large()  # tantivy's tables, which grew a long crawl by 5 MB a round
            with store.reading():
                self._before, self._last = index.searcher(), ""
                self._writer = index.writer(
                    max(self.memory, LEAST_MEMORY * self.threads) * 1_000_000, self.threads
                )
                self._clear()
        except BaseException as exc:
            self._release(exc)
            if isinstance(exc, LockedError):
                raise IndexWriterError(
                    f"another job writes to the index: {exc}", hint=exc.hint
                ) from exc
            if isinstance(exc, OSError):
                raise IndexWriterError(f"{self.path}: can't be written: {exc.strerror}") from exc
            raise

    def _clear(self) -> None:
        """Removes the files of a job that was killed: tantivy would stop at those that it is to
        make again.
        """
        self._committed(self._writer.garbage_collect_files)
        for path in self._folder.glob(".tmp*"):
            path.unlink(missing_ok=True)

    def write(self, actions: Sequence[Action]) -> Sequence[Refused]:
        refused = []
        for key, payload in actions:
            if self._may_have(key):
                self._writer.delete_documents_by_term(KEY, key)
            if payload is None:
                continue
            try:
                self._writer.add_json(payload.decode())
            except ValueError as exc:
                if not str(exc).startswith(
                    "The "
                ):  # of the document: "The field …", "The provided string …"
                    raise IndexWriterError(f"{self.path}: can't be written: {exc}") from exc
                refused.append(Refused(key, str(exc)))
        return refused

    def _may_have(self, key: str) -> bool:
        """Returns False if the index has no document of this URL; a needless deletion costs as much
        as a document.

        Actions come in the order of the URLs: one that is not behind the last may have come before.
        """
        came, self._last = key <= self._last, max(key, self._last)
        return came or self._before.doc_freq(KEY, key) > 0

    def commit(self) -> None:
        self._committed(self._writer.commit)

    def close(self) -> None:
        self._committed(self._writer.commit)
        self._committed(self._writer.wait_merging_threads)
        del self._writer
        self._committed(lambda: stamp(self._folder))
        self._held.close()

    def _committed(self, step: Callable[[], object]) -> None:
        try:
            step()
        except BaseException as exc:
            if not isinstance(exc, ValueError | OSError) and not is_panic(exc):
                raise
            raise IndexWriterError(f"{self.path}: can't be written: {exc}") from exc

    def abort(self) -> None:
        if hasattr(self, "_writer"):
            self._writer.rollback()
            del self._writer
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
