"""Rows into Parquet files: whole or not at all, compressed, with statistics by which readers skip rows."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import polars as pl

from minutch.errors import StoreError
from minutch.tables.install import make_directory, sync_path, sync_tree
from minutch.tables.workfolders import make_folder, remove

ROWS_PER_GROUP: Final = 122_880
"""Rows of a row group, each with its own statistics."""


def write_parquet(rows: pl.LazyFrame, path: Path) -> int:
    """Write a file; returns the number of rows. Raises StoreError where there is one, and what reading raises."""
    if path.exists():
        raise StoreError(f"{path} is there already")
    make_directory(path.parent)
    folder = make_folder(path.parent, f".{path.name}-")
    try:
        new = folder / path.name
        sink(rows, new)
        count = int(pl.scan_parquet(new).select(pl.len()).collect().item())
        sync_tree(folder)
        new.rename(path)
    finally:
        remove(folder)
    sync_path(path.parent)
    return count


def sink(rows: pl.LazyFrame, path: Path) -> None:
    """Write rows to a new file as they come."""
    rows.sink_parquet(path, compression="zstd", statistics="full", row_group_size=ROWS_PER_GROUP, engine="streaming")
