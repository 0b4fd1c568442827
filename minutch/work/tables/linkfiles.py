"""Files of <Text, Inlinks> (LinkDb parts) and the outlinks of <Text, ParseData> (parse_data) as
tables.

Source: org.apache.nutch.crawl.LinkDb, org.apache.nutch.parse.ParseOutputFormat.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from minutch.hadoop.formats.sequencefile import RECORD
from minutch.records.links import LAYOUT_METADATA, Inlinks
from minutch.records.links_columns import InlinksEncoder, LinkSets, decode_inlinks, decode_outlinks
from minutch.records.parsedata import ParseData
from minutch.work.tables import spans
from minutch.work.tables.spannedfile import SPAN_SIZE
from minutch.work.tables.spans import InputSplit
from minutch.work.tables.writer import TableWriter

LINKS_SPAN = SPAN_SIZE // 4
"""Bytes of a compressed file that are read at a time: they grow by inflating."""


def scan_inlinks(path: InputSplit, layout: str, *, threads: int = 0) -> Iterator[pl.DataFrame]:
    """Returns the links of a LinkDb part, in its order, in tables of INLINKS_SCHEMA; no record is
    spread over two tables.

    A key whose Inlinks are empty has one row, with null in `from_url`. Raises FormatError for a
    record that is not in `layout`.
    """
    decode = partial(decode_inlinks, layout=layout)
    return spans.scan(path, Inlinks.class_name, decode, threads=threads, span_size=LINKS_SPAN)


def scan_outlinks(path: InputSplit, *, threads: int = 0) -> Iterator[pl.DataFrame]:
    """Returns the outlinks of a parse_data part, in its order, in tables of OUTLINKS_SCHEMA."""
    return spans.scan(
        path, ParseData.class_name, decode_outlinks, threads=threads, span_size=LINKS_SPAN
    )


def scan_all_outlinks(paths: Iterable[Path]) -> Iterator[pl.DataFrame]:
    """Returns the outlinks of several parse_data parts as `scan_outlinks` does, with the numbers of
    the parts as `of`.
    """
    return spans.scan_numbered(paths, ParseData.class_name, decode_outlinks, span_size=LINKS_SPAN)


class InlinksWriter(TableWriter[LinkSets]):
    """Writes sets of links to a LinkDb part, a MapFile whose records are compressed one by one.

    Options are those of `TableWriter`. Keys ascend. A row with null in `from_url` makes a key
    without links.
    """

    def __init__(self, path: Path, layout: str = LAYOUT_METADATA, **options: Any) -> None:
        encoder = InlinksEncoder(layout)
        super().__init__(
            path,
            Inlinks.class_name,
            encoder.records,
            deflated=True,
            **{"compression": RECORD, **options},
        )
