"""Rows to their partitions, sorted: what Hadoop's shuffle does between map and reduce, within a bound of memory.

Rows are added in any order and taken out partition by partition, sorted by key, rows of one key in the order in which
they were added. What goes beyond the budget is written to sorted runs in a directory of its own (Arrow IPC files) and
merged as it is read back.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import polars as pl

from minutch.tables.merge import aligned, sort_by_key
from minutch.tables.partition import split

RUN_ROWS = 100_000
"""Rows of a run that are read at a time."""


class Shuffle:
    """Sorts rows into `parts` partitions, holding about `budget` bytes; what is beyond goes to a directory in `spill`.

    A context manager: leaving it deletes what was spilled.
    """

    def __init__(self, parts: int, schema: pl.Schema, *, budget: int, spill: Path) -> None:
        self.parts = parts
        self.schema = schema
        self.rows = 0
        self._budget = budget
        self._spill = spill
        self._directory: Path | None = None
        self._held = 0
        self._memory: list[list[pl.DataFrame]] = [[] for _ in range(parts)]
        self._runs: list[list[Path]] = [[] for _ in range(parts)]

    def add(self, frame: pl.DataFrame) -> None:
        """Take in the rows of `frame`, which has the columns of `schema`, `key` among them."""
        self.rows += len(frame)
        for held, part in zip(self._memory, split(frame, self.parts), strict=True):
            if len(part):
                held.append(part)
        self._held += int(frame.estimated_size())
        if self._held > self._budget:
            self._write_runs()

    def sorted(self, part: int) -> Iterator[pl.DataFrame]:
        """The rows of a partition in frames sorted by key (at least one frame); no key is spread over two frames."""
        held = self._memory[part]
        memory = sort_by_key(pl.concat(held)) if held else pl.DataFrame(schema=self.schema)
        self._memory[part] = []
        if not self._runs[part]:
            yield memory
            return
        streams = [*map(_read_run, self._runs[part]), [memory]]
        for frames in aligned(*streams):
            yield sort_by_key(pl.concat(frames))

    def _write_runs(self) -> None:
        if self._directory is None:
            self._spill.mkdir(parents=True, exist_ok=True)
            self._directory = Path(tempfile.mkdtemp(prefix=".spill-", dir=self._spill))
        for part, held in enumerate(self._memory):
            if held:
                path = self._directory / f"{part}-{len(self._runs[part])}.arrow"
                sort_by_key(pl.concat(held)).write_ipc(path, compression="lz4", record_batch_size=RUN_ROWS)
                self._runs[part].append(path)
        self._memory = [[] for _ in range(self.parts)]
        self._held = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)


def _read_run(path: Path) -> Iterator[pl.DataFrame]:
    run = pl.scan_ipc(path)
    rows = run.select(pl.len()).collect().item()
    for start in range(0, rows, RUN_ROWS):
        yield run.slice(start, RUN_ROWS).collect()
