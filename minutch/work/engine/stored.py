"""A database as a source of a job: where its parts are the partitions of the job already, they are
read where they lie.

Nothing of it is shuffled, and nothing is held in memory but what is at hand. As in a shuffle, rows
of one key keep the order of the input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from minutch.job import Counters
from minutch.work.engine.interface import Partition
from minutch.work.tables.frame import empty
from minutch.work.tables.merge import Rows

ReadPart = Callable[[Path, Counters], Iterator[pl.DataFrame]]
"""A function of a part that gives its rows in tables sorted by key, at least one, and counts what
it leaves out.
"""


@dataclass(frozen=True)
class StoredParts:
    """The parts of a database as a source (see `Source`). Without any parts there are no rows."""

    paths: Sequence[Path]
    read: ReadPart
    schema: pl.Schema
    counters: Counters = field(default_factory=Counters)

    def open(self, part: int) -> Partition:
        """Returns the part of this number."""
        return _StoredPart(self, self.paths[part] if self.paths else None)


@dataclass(frozen=True)
class _StoredPart:
    """A part; None where there is no database yet."""

    stored: StoredParts
    path: Path | None
    counters: Counters = field(default_factory=Counters)

    def sorted(self) -> Iterator[pl.DataFrame]:
        if self.path is None:
            return iter((empty(self.stored.schema),))
        return self.stored.read(self.path, self.counters)

    def grouped(self) -> Iterator[pl.DataFrame]:
        return self.sorted()

    def ordered(self) -> Iterator[tuple[pl.DataFrame, Rows]]:
        return ((frame, np.arange(len(frame), dtype=np.uint32)) for frame in self.sorted())
