"""Writes documents to an open index; indexer-local decides which process does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from minutch.inspect.search.fields import KEY
from minutch.inspect.search.localindex import opened
from minutch.kernels.clibrary import give_back_large


class IndexWriting:
    """An index that is written to. Raises what tantivy does (`LocalIndex.reading`)."""

    def __init__(self, folder: Path, memory: int, threads: int) -> None:
        """`memory` is what documents may take that are not on disk yet, in bytes."""
        self._folder = folder
        index = opened(folder)
        give_back_large()  # tantivy's tables, which grew a long crawl by 5 MB a round
        self._before, self._last = index.searcher(), ""
        self._writer = index.writer(memory, threads)
        self._clear()

    def _clear(self) -> None:
        """Removes the files of a job that was killed: tantivy would stop at those that it is to
        make again.
        """
        self._writer.garbage_collect_files()
        for path in self._folder.glob(".tmp*"):
            path.unlink(missing_ok=True)

    def is_open(self) -> bool:
        """Returns True: what stops an index from being opened is raised before."""
        return True

    def write(self, actions: Sequence[tuple[str, bytes | None]]) -> list[tuple[str, str]]:
        """Replaces documents by their JSON, or deletes them (None), by URL; returns those that the
        index does not take, and why.
        """
        refused = []
        for key, payload in actions:
            if self._may_have(key):
                self._writer.delete_documents_by_term(KEY, key)
            if payload is None:
                continue
            try:
                self._writer.add_json(payload.decode())
            except ValueError as exc:
                # of the document: "The field …", "The provided string …"
                if not str(exc).startswith("The "):
                    raise
                refused.append((key, str(exc)))
        return refused

    def _may_have(self, key: str) -> bool:
        """Returns False if the index has no document of this URL; a needless deletion costs as much
        as a document.

        Actions come in the order of the URLs: one that is not behind the last may have come before.
        """
        came, self._last = key <= self._last, max(key, self._last)
        return came or self._before.doc_freq(KEY, key) > 0

    def commit(self) -> bool:
        """Shows what was written, for good."""
        self._writer.commit()
        return True

    def end(self) -> bool:
        """Commits, and waits for the threads that merge."""
        self._writer.commit()
        self._writer.wait_merging_threads()
        return True

    def rollback(self) -> bool:
        """Drops what no commit has shown."""
        self._writer.rollback()
        return True
