"""The HostDb on disk: plain SequenceFiles of <Text, HostDatum>, uncompressed, one a partition, and
`old/` as a backup.

minutch writes a partition sorted by host; Nutch does so unless it looked hosts up, so that nothing
relies on it.

Source: org.apache.nutch.hostdb.UpdateHostDb, org.apache.nutch.hostdb.ReadHostDb.getHostDbRecord.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from minutch.hadoop.formats.javaio import DataInput, encode_text
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.records.hostdatum import HostDatum
from minutch.records.hostdatum import columns as hostdatum_columns
from minutch.work.tables import spans
from minutch.work.tables.compression import PLAIN, Compression
from minutch.work.tables.database import Database, part_name
from minutch.work.tables.writer import TableWriter

HOST_DATUM = HostDatum.class_name


class HostDb(Database):
    """The HostDb at a path."""

    def get(self, host: str) -> HostDatum | None:
        """The record of `host`; None if there is none. Raises StoreError where there is no
        HostDb.
        """
        value = self.lookup(host)
        return None if value is None else HostDatum.from_bytes(value)

    def __getitem__(self, host: str) -> HostDatum:
        datum = self.get(host)
        if datum is None:
            raise KeyError(host)
        return datum

    def __contains__(self, host: object) -> bool:
        return isinstance(host, str) and self.lookup(host) is not None

    def __len__(self) -> int:
        return sum(
            len(frame) for index in range(len(self.parts())) for frame in self.scan_part(index)
        )

    def __iter__(self) -> Iterator[str]:
        return (host for host, _ in self.items())

    def items(self) -> Iterator[tuple[str, HostDatum]]:
        """All hosts with their records, part by part. Raises FormatError (damage)."""
        for part in self.parts():
            with SequenceFileReader(spans.data_file(part)) as reader:
                for key, value in reader:
                    yield DataInput(key).read_text(), HostDatum.from_bytes(value)

    def lookup(self, url: str) -> bytes | None:
        """The serialized record of a host, found by reading; None if there is none."""
        key = encode_text(url)
        for index in range(len(self.require_parts())):
            for frame in self.scan_part(index):
                found = frame.filter(pl.col("key") == key)
                if len(found):
                    values, at, length = hostdatum_columns.encode(found.head(1))
                    return values[at[0] : at[0] + length[0]].tobytes()
        return None

    def scan_part(self, index: int) -> Iterator[pl.DataFrame]:
        """A partition in tables of HOSTDB_SCHEMA, in the order of its file (at least one table)."""
        return spans.scan(self.require_parts()[index], HOST_DATUM, hostdatum_columns.decode)

    @staticmethod
    def part_writer(
        directory: Path, index: int, compression: Compression = PLAIN
    ) -> TableWriter[pl.DataFrame]:
        """A writer of partition `index` of the HostDb that is being written to `directory` (see
        `replacement`).
        """
        path, options = directory / part_name(index), compression.options
        return TableWriter(path, HOST_DATUM, hostdatum_columns.records, mapfile=False, **options)
