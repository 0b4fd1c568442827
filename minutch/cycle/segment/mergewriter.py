"""Writes merged segments: a part of a slice at a time, each with all folders that are merged.

Source: org.apache.nutch.segment.SegmentMerger.SegmentOutputFormat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import polars as pl

from minutch.cycle.segment.mergerules import Piece
from minutch.cycle.segment.mergestreams import as_batch, as_places
from minutch.cycle.segment.store import LAYOUTS, PARSE_DATA
from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch, string_column
from minutch.hadoop.formats.sequencewriter import RECORD
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import SEGMENT_NAME_KEY
from minutch.records.parsedata_columns import with_content_meta
from minutch.work.tables.compression import MOST, deflated, inflated
from minutch.work.tables.database import part_name
from minutch.work.tables.writer import TableWriter


class SegmentsWriter:
    """Writes pieces below `directory`: the segment `name`, or its slices `name-0`, `name-1`, ...; a
    context manager.

    `compressions` tells how each folder is to be compressed. Pieces of one part come in order.
    """

    def __init__(self, directory: Path, name: str, compressions: Mapping[str, str]) -> None:
        self._directory, self._name = directory, name
        self._compressions = compressions
        self._open: dict[
            int, tuple[int | None, ExitStack, dict[str, TableWriter[pl.DataFrame]]]
        ] = {}
        self.written: list[tuple[int, int | None]] = []
        """Parts, with the numbers of their slices."""

    def write_missing(self, written: Iterable[tuple[int, int | None]], parts: int) -> list[str]:
        """Writes the parts that nobody has `written`, empty: a slice has all. Returns the names of
        the segments.
        """
        found = set(written)
        slices = {number for _, number in found} or {None}
        for number in slices:
            for part in range(parts):
                if (part, number) not in found:
                    self._writers(part, number)
        return [
            self.segment_name(number) for number in sorted(slices, key=lambda number: number or 0)
        ]

    def segment_name(self, number: int | None) -> str:
        """Returns the name of a slice's segment."""
        return self._name if number is None else f"{self._name}-{number}"

    def encode(self, piece: Piece) -> Piece:
        """Returns the piece with its values as they go into the files. Raises FormatError."""
        name = self.segment_name(piece.slice)
        return replace(
            piece,
            tables={
                folder: self._encode(folder, table, name) for folder, table in piece.tables.items()
            },
        )

    def _encode(self, folder: str, table: pl.DataFrame, name: str) -> pl.DataFrame:
        compressed = self._compressions[folder] == RECORD
        if folder != PARSE_DATA and (
            LAYOUTS[folder].value_class != CrawlDatum.class_name or not compressed
        ):
            return table
        batch = as_batch(table)
        if folder == PARSE_DATA:
            plain = inflated_values(batch, folder) if compressed else batch
            batch = with_content_meta(plain, SEGMENT_NAME_KEY, name)
        if compressed:
            batch = deflated(batch)
        return table.with_columns(
            string_column("value", batch.values, batch.value_at, batch.value_len)
        )

    def write(self, piece: Piece) -> int:
        """Appends an encoded piece; returns how many records that are."""
        for folder, table in piece.tables.items():
            self._writers(piece.part, piece.slice)[folder].write(table)
        return sum(map(len, piece.tables.values()))

    def _writers(self, part: int, number: int | None) -> dict[str, TableWriter[pl.DataFrame]]:
        """Returns the files of a part; those of the slice before are finished."""
        current = self._open.get(part)
        if current is not None and current[0] == number:
            return current[2]
        if current is not None:
            current[1].close()
        stack = ExitStack()
        writers: dict[str, TableWriter[pl.DataFrame]] = {}
        self._open[part] = number, stack, writers
        for folder, compression in self._compressions.items():
            path = self._directory / self.segment_name(number) / folder / part_name(part)
            path.parent.mkdir(parents=True, exist_ok=True)
            writer: TableWriter[pl.DataFrame] = TableWriter(
                path,
                LAYOUTS[folder].value_class,
                as_places,
                mapfile=LAYOUTS[folder].map_file,
                compression=compression,
                deflated=compression == RECORD,
            )
            writers[folder] = stack.enter_context(writer)
        self.written.append((part, number))
        return writers

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for _, stack, _ in self._open.values():
            stack.__exit__(kind, error, trace)


def inflated_values(batch: Batch, folder: str) -> Batch:
    """Returns records of a folder with what their streams hold. Raises FormatError."""
    plain = inflated(batch)
    if plain is None:
        raise FormatError(
            "damaged record", path=folder, expected=f"a zlib stream of at most {MOST} bytes"
        )
    return plain
