"""Writes rows into Parquet files: whole or not at all, compressed, with statistics by which readers
skip rows."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import polars as pl

from minutch.work.tables.textparts import output_file

ROWS_PER_GROUP: Final = 122_880
"""Rows of a row group, each with its own statistics."""
_OS_ERROR: Final = re.compile(r"\(os error (\d+)\)")


def write_parquet(rows: pl.LazyFrame, path: Path) -> int:
    """Writes a file and returns the number of rows. Raises StoreError if it exists, and what
    reading raises.
    """
    with output_file(path) as new:
        sink(rows, new)
        return count(new)


def sink(rows: pl.LazyFrame, path: Path) -> None:
    """Writes rows to a new file as they come. Raises OSError, and what reading them raises."""
    with _os_errors(path):
        rows.sink_parquet(
            path,
            compression="zstd",
            statistics="full",
            row_group_size=ROWS_PER_GROUP,
            engine="streaming",
        )


def count(path: Path) -> int:
    """Returns the number of rows in a file, or in the files that a pattern names. Raises
    OSError.
    """
    with _os_errors(path):
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())


@contextmanager
def _os_errors(path: Path) -> Iterator[None]:
    """Turns Polars' errors about files into the system's."""
    try:
        yield
    except pl.exceptions.ComputeError as exc:
        if found := _OS_ERROR.search(str(exc)):
            raise OSError(int(found[1]), os.strerror(int(found[1])), str(path)) from exc
        raise
