"""Pages that lie in other parts than those of the job, in its partitions: for engines of more than
one process.

Lists are fetched into parts of their own, so that each partition has pages in all of them. Values
travel as they are stored, compressed; nothing is parsed twice, and no part is read by more than one
task.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import polars as pl

from minutch.cycle.segment.store import CONTENT, LAYOUTS
from minutch.cycle.segment.storedrecords import RawRecord
from minutch.hadoop.formats.batch import Batch, string_column
from minutch.work.engine import Partition, Task
from minutch.work.tables.spans import InputSplit, scan

PAGES_SCHEMA: Final = pl.Schema({"key": pl.Binary(), "value": pl.Binary()})
"""URLs, and serialized Contents as zlib streams."""


def stored_pages(task: Task, place: InputSplit) -> Iterator[pl.DataFrame]:
    """Yields the pages of a place, in tables of PAGES_SCHEMA. Raises FormatError."""
    return scan(place, LAYOUTS[CONTENT].value_class, _decode, stored=True)


def _decode(batch: Batch) -> pl.DataFrame:
    key = string_column("key", batch.keys, batch.key_at, batch.key_len)
    return pl.DataFrame(
        [key, string_column("value", batch.values, batch.value_at, batch.value_len)]
    )


def pages_of(partition: Partition) -> Iterator[RawRecord]:
    """Yields the pages of a partition, in the order of their URLs."""
    for frame in partition.sorted():
        yield from zip(frame["key"], frame["value"], strict=True)
