"""The LinkDb on disk: MapFiles of <Text, Inlinks>, each record compressed with zlib, one per
partition; no `old/`.

All records of a LinkDb have one of two layouts (see `records.links`), which shows in nothing but
the records.

Source: org.apache.nutch.crawl.LinkDb (createJob, install),
org.apache.nutch.crawl.LinkDbReader.getInlinks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from minutch.errors import FormatError
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.records.links import LAYOUT_METADATA, Inlinks, layout_of
from minutch.work.tables.compression import DEFLATED, Compression
from minutch.work.tables.database import RecordDatabase, part_name

if TYPE_CHECKING:
    import polars as pl

    from minutch.work.tables.recordfiles import InlinksWriter

LAYOUT_PROPERTY: Final = "linkdb.inlink.layout"
"""The layout in which a LinkDb is written; by default the merged LinkDb's, or the newer."""
AUTO: Final = "auto"


class LinkDb(RecordDatabase[Inlinks]):
    """The LinkDb at a path."""

    @cached_property
    def layout(self) -> str:
        """The layout of the records; LAYOUT_METADATA if none decides it. Raises FormatError."""
        self.require_class(Inlinks.class_name)
        try:
            # The first record with a link tells it: one without links is 4 zero bytes in both.
            return layout_of(self._values())
        except FormatError as exc:
            raise exc.at(self.path) from None

    def _values(self) -> Iterator[bytes]:
        for part in self.parts():
            with SequenceFileReader(part / "data") as reader:
                yield from (value for _, value in reader)

    def record(self, value: bytes) -> Inlinks:
        return Inlinks.read(DataInput(value), self.layout)

    def __len__(self) -> int:
        return sum(1 for _ in self.items())  # a row of its tables is a link

    def scan_part(self, index: int) -> Iterator[pl.DataFrame]:
        """Returns a partition in tables of INLINKS_SCHEMA, sorted by key as a whole."""
        from minutch.work.tables.recordfiles import scan_inlinks

        return scan_inlinks(self.require_parts()[index], self.layout)

    @staticmethod
    def part_writer(
        directory: Path, index: int, layout: str, compression: Compression = DEFLATED
    ) -> InlinksWriter:
        """Returns a writer of a partition of the LinkDb written to `directory` (`replacement`)."""
        from minutch.work.tables.recordfiles import InlinksWriter

        return InlinksWriter(directory / part_name(index), layout, **compression.options)


def layout_for(wanted: str, sources: Sequence[LinkDb]) -> str:
    """Decides which layout to write: `wanted` (`linkdb.inlink.layout`), if that is not AUTO, else
    the one that all `sources` have.

    Where there is none, or they differ, it is the newer one. Raises FormatError for a source with
    records in both.
    """
    if wanted != AUTO:
        return wanted
    # One without parts would count as the newer layout.
    layouts = {db.layout for db in sources if db.parts()}
    return layouts.pop() if len(layouts) == 1 else LAYOUT_METADATA
