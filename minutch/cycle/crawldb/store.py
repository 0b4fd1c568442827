"""The CrawlDb on disk: MapFiles of <Text, CrawlDatum>, uncompressed, one per partition, and `old/`
as a backup.

Source: org.apache.nutch.crawl.CrawlDb (createJob, install),
org.apache.nutch.crawl.CrawlDbReader.get.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from minutch.records.crawldatum import CrawlDatum
from minutch.work.tables.compression import PLAIN, Compression
from minutch.work.tables.database import Database, part_name

if TYPE_CHECKING:
    import polars as pl

    from minutch.work.tables.recordfiles import CrawlDataWriter, PatchedWriter


class CrawlDb(Database):
    """The CrawlDb at a path."""

    def get(self, url: str) -> CrawlDatum | None:
        """Returns the entry of `url` or None. Raises StoreError if there is no CrawlDb."""
        value = self.lookup(url)
        return None if value is None else CrawlDatum.from_bytes(value)

    def __getitem__(self, url: str) -> CrawlDatum:
        datum = self.get(url)
        if datum is None:
            raise KeyError(url)
        return datum

    def __contains__(self, url: object) -> bool:
        return isinstance(url, str) and self.lookup(url) is not None

    def __len__(self) -> int:
        return sum(
            len(frame) for index in range(len(self.parts())) for frame in self.scan_part(index)
        )

    def __iter__(self) -> Iterator[str]:
        return (url for url, _ in self.items())

    def items(self) -> Iterator[tuple[str, CrawlDatum]]:
        """Yields all URLs with their entries, part by part. Raises FormatError (damage)."""
        from minutch.records.crawldatum_columns import records

        for index in range(len(self.parts())):
            for frame in self.scan_part(index):
                yield from records(frame)

    def scan_part(self, index: int) -> Iterator[pl.DataFrame]:
        """Returns a partition in tables of CRAWLDB_SCHEMA, at least one, sorted by key over all."""
        from minutch.work.tables.recordfiles import scan

        return scan(self.require_parts()[index])

    def scan_packed(self, index: int) -> Iterator[pl.DataFrame]:
        """Scans like `scan_part`, in tables of PACKED_SCHEMA."""
        from minutch.work.tables.recordfiles import scan_packed

        return scan_packed(self.require_parts()[index])

    def read_part(self, index: int) -> pl.DataFrame:
        """Returns a whole partition as a table of CRAWLDB_SCHEMA, sorted by key."""
        from minutch.work.tables.recordfiles import read

        return read(self.require_parts()[index])

    @staticmethod
    def part_writer(
        directory: Path, index: int, compression: Compression = PLAIN
    ) -> CrawlDataWriter:
        """Returns a writer of a partition of the CrawlDb written to `directory` (`replacement`)."""
        from minutch.work.tables.recordfiles import CrawlDataWriter

        return CrawlDataWriter(directory / part_name(index), mapfile=True, **compression.options)

    @staticmethod
    def patched_writer(
        directory: Path, index: int, compression: Compression = PLAIN
    ) -> PatchedWriter:
        """Opens a writer like `part_writer`, for packed tables with some rows replaced."""
        from minutch.work.tables.recordfiles import PatchedWriter

        return PatchedWriter(directory / part_name(index), **compression.options)
