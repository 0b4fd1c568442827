"""Opens a HostDb: uncompressed SequenceFiles of <Text, HostDatum>, one a partition, and `old/` as a
backup.

minutch writes partitions sorted by host; Nutch only if it looked up no hosts, so that readers can't
rely on it.

Source: org.apache.nutch.hostdb.UpdateHostDb, org.apache.nutch.hostdb.ReadHostDb.getHostDbRecord.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from minutch.hadoop.formats.javaio import encode_text, encode_vlong
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.records.hostdatum import HostDatum
from minutch.work.tables.compression import PLAIN, Compression
from minutch.work.tables.database import RecordDatabase, data_file, part_name

if TYPE_CHECKING:
    import polars as pl

    from minutch.work.tables.writer import TableWriter

HOST_DATUM = HostDatum.class_name


class HostDb(RecordDatabase[HostDatum]):
    """The HostDb at a path."""

    def record(self, value: bytes) -> HostDatum:
        return HostDatum.from_bytes(value)

    def lookup(self, url: str) -> bytes | None:
        """Returns the serialized record of a host, None if there is none; reads all parts."""
        host = encode_text(url)
        key = encode_vlong(len(host)) + host
        # Not the partition of its hash: Nutch's records may be in any where hosts were looked up.
        for part in self.require_parts():
            with SequenceFileReader(data_file(part)) as reader:
                value = reader.find(key)
            if value is not None:
                return value
        return None

    def scan_part(self, index: int) -> Iterator[pl.DataFrame]:
        """Reads a partition as tables of HOSTDB_SCHEMA (at least one), in the order of its file."""
        from minutch.records import hostdatum_columns
        from minutch.work.tables import spans

        return spans.scan(self.require_parts()[index], HOST_DATUM, hostdatum_columns.decode)

    @staticmethod
    def part_writer(
        directory: Path, index: int, compression: Compression = PLAIN
    ) -> TableWriter[pl.DataFrame]:
        """Opens a writer of partition `index` in `directory`, which `replacement` made."""
        from minutch.records import hostdatum_columns
        from minutch.work.tables.writer import TableWriter

        path, options = directory / part_name(index), compression.options
        return TableWriter(path, HOST_DATUM, hostdatum_columns.records, mapfile=False, **options)
