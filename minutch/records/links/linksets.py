"""Inlinks records as rows of a table, which stay where they are: sorting and merging moves the
rows' numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import polars as pl

Rows = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class LinkSets:
    """Inlinks records: number i has the links `rows[starts[i] : starts[i + 1]]`, in this order.

    `links` is a table with the columns of INLINKS_SCHEMA, or without the last one.
    """

    links: pl.DataFrame
    rows: Rows
    starts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, links: pl.DataFrame) -> Self:
        """Returns the records of a table in which the rows of a key lie together."""
        is_first = links["key"].ne_missing(links["key"].shift()).to_numpy()
        starts = np.append(np.flatnonzero(is_first), len(links))
        return cls(links, np.arange(len(links), dtype=np.uint32), starts.astype(np.int64))

    def __len__(self) -> int:
        """Number of links."""
        return int(self.starts[-1] - self.starts[0])

    @property
    def records(self) -> int:
        """Number of records."""
        return len(self.starts) - 1

    def batches(self, records: int) -> Iterator[Self]:
        """Yields the same, so many records at a time."""
        for first in range(0, self.records, records):
            yield type(self)(self.links, self.rows, self.starts[first : first + records + 1])

    def table(self) -> pl.DataFrame:
        """Returns the rows in a table of INLINKS_SCHEMA of their own, in which those of a key lie
        together.
        """
        table = self.links[self.rows[self.starts[0] : self.starts[-1]]]
        return (
            table
            if "metadata" in table.columns
            else table.with_columns(metadata=pl.lit(None, pl.Binary))
        )
