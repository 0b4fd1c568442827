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
from minutch.work.tables.database import RecordDatabase, part_name

if TYPE_CHECKING:
    import polars as pl

    from minutch.work.tables.recordfiles import CrawlDataWriter, PatchedWriter


class CrawlDb(RecordDatabase[CrawlDatum]):
    """The CrawlDb at a path."""

    def record(self, value: bytes) -> CrawlDatum:
        return CrawlDatum.from_bytes(value)

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
