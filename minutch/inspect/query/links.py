"""The tables `linkdb` and `links`: the links to each page, with their anchor texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Final

import polars as pl

from minutch.cycle.linkdb.store import LinkDb
from minutch.hadoop.formats.batch import Batch
from minutch.inspect.query.skipping import piecewise
from minutch.inspect.query.table import Column, Request, Table, part_file
from minutch.records.links import Inlinks
from minutch.records.links.columns import decode_inlinks
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.spans import batchwise

LINK: Final = pl.Struct({"from_url": pl.String(), "anchor": pl.String()})


class _LinkTable(Table):
    def __init__(self, db: LinkDb, part: Path | None = None) -> None:
        self._db, self._part = db, part

    def partitions(self) -> Mapping[str, Table]:
        parts = self._db.require_parts()
        return {part_file(number): type(self)(self._db, part) for number, part in enumerate(parts)}

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        parts = self._db.require_parts() if self._part is None else [self._part]
        layout = self._db.layout

        def decode(batch: Batch) -> pl.DataFrame:
            return self.make(self._rows(decode_inlinks(batch, layout)), request)

        return piecewise(parts, Inlinks.class_name, batchwise(decode), request)

    @staticmethod
    def _rows(links: pl.DataFrame) -> pl.DataFrame:
        """Returns the rows of the table from one of INLINKS_SCHEMA."""
        raise NotImplementedError


class LinksTable(_LinkTable):
    """A table with one row per link. A URL without links has none."""

    name = "links"
    columns: ClassVar = {
        "url": Column(pl.String(), lambda rows: decode_keys(rows["key"])),
        "from_url": Column(pl.String(), lambda rows: decode_keys(rows["from_url"])),
        "anchor": Column(pl.String(), lambda rows: decode_keys(rows["anchor"])),
    }

    @staticmethod
    def _rows(links: pl.DataFrame) -> pl.DataFrame:
        return links.filter(pl.col("from_url").is_not_null())


class LinkDbTable(_LinkTable):
    """A table with one row per URL of the LinkDb, with the list of links to it."""

    name = "linkdb"
    key = "url"
    columns: ClassVar = {
        "url": Column(pl.String(), lambda rows: decode_keys(rows["key"])),
        "inlinks": Column(pl.List(LINK), lambda rows: rows["inlinks"]),
    }

    @staticmethod
    def _rows(links: pl.DataFrame) -> pl.DataFrame:
        link = pl.struct(
            from_url=decode_keys(links["from_url"]), anchor=decode_keys(links["anchor"])
        )
        pairs = links.select("key", link.alias("link"), there=pl.col("from_url").is_not_null())
        return pairs.group_by("key", maintain_order=True).agg(
            inlinks=pl.col("link").filter("there")
        )
