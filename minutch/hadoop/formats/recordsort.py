"""Sorts serialized records by key with bounded memory: runs on disk, then one merge.

Records with equal keys stay in the order in which they came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from heapq import merge
from operator import itemgetter
from pathlib import Path

from minutch.hadoop.formats.sequencefile import SequenceFileReader, SequenceFileWriter
from minutch.scratch import scratch

Record = tuple[bytes, bytes]

RUN_BYTES = 128 * 1024 * 1024
"""About how many bytes of keys and values are sorted at once."""

_first = itemgetter(0)


def sort_records(
    records: Iterable[Record],
    *,
    key: Callable[[bytes], bytes] | None = None,
    run_bytes: int = RUN_BYTES,
    directory: Path | None = None,
) -> Iterator[Record]:
    """Yields the records in the order of their keys, or of `key(serialized key)`.

    Runs go into a temporary folder in `directory` (default: the system's), which disappears when
    the iterator ends or is closed.
    """

    def order(record: Record) -> bytes:
        return record[0] if key is None else key(record[0])

    with ExitStack() as stack:
        run: list[Record] = []
        files: list[Path] = []
        folder: Path | None = None
        size = 0
        for record in records:
            run.append(record)
            size += len(record[0]) + len(record[1])
            if size >= run_bytes:
                if folder is None:
                    folder = stack.enter_context(scratch("sort", directory))
                files.append(_write_run(folder / f"run-{len(files)}", sorted(run, key=order)))
                run.clear()
                size = 0
        run.sort(key=order)
        readers = [stack.enter_context(SequenceFileReader(file)) for file in files]
        yield from merge(*readers, run, key=order)


def _write_run(path: Path, records: Iterable[Record]) -> Path:
    with SequenceFileWriter(path, "", "") as writer:
        for key, value in records:
            writer.append_raw(key, value)
    return path


def merge_records(sources: Iterable[Iterable[Record]]) -> Iterator[Record]:
    """Merges sources that are sorted by their keys' bytes; of equal keys, the earlier source goes
    first.
    """
    return merge(*sources, key=_first)
