"""Files of <Text, LinkDatum> and <Text, Node>, of which a WebGraph is made, as tables; parse_data
with dates.

Source: org.apache.nutch.scoring.webgraph.WebGraph.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from minutch.records import webgraph
from minutch.records.parsedata import ParseData
from minutch.records.webgraph import LinkDatum, Node
from minutch.work.tables import spans
from minutch.work.tables.linkfiles import LINKS_SPAN
from minutch.work.tables.writer import TableWriter


def scan_link_data(path: Path) -> Iterator[pl.DataFrame]:
    """Returns the links of a part, in its order, in tables of GRAPH_LINKS_SCHEMA."""
    return spans.scan(path, LinkDatum.class_name, webgraph.decode_link_data)


def scan_nodes(path: Path) -> Iterator[pl.DataFrame]:
    """Returns the nodes of a part, in its order, in tables of NODES_SCHEMA."""
    return spans.scan(path, Node.class_name, webgraph.decode_nodes)


def scan_dated_outlinks(path: Path) -> Iterator[pl.DataFrame]:
    """Returns the outlinks of a parse_data part, in its order, in tables of OUTLINKS_SCHEMA and
    `timestamp` (may be null).
    """
    return spans.scan(
        path, ParseData.class_name, webgraph.decode_dated_outlinks, span_size=LINKS_SPAN
    )


class LinkDataWriter(TableWriter[pl.DataFrame]):
    """Writes tables of GRAPH_LINKS_SCHEMA; options as `TableWriter`."""

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(path, LinkDatum.class_name, webgraph.link_data_records, **options)


class NodeWriter(TableWriter[pl.DataFrame]):
    """Writes tables of NODES_SCHEMA; options as `TableWriter`."""

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(path, Node.class_name, webgraph.node_records, **options)
