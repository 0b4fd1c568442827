"""The WebGraph on disk: links from both ends, nodes with their scores, each database in partitions
of MapFiles.

    <webgraphdb>/.locked
    <webgraphdb>/outlinks/current/part-r-NNNNN     page -> LinkDatum, one for each link out of it;
                                                   old/ as a backup
    <webgraphdb>/inlinks/part-r-NNNNN              page -> LinkDatum, one for each link to it
    <webgraphdb>/nodes/part-r-NNNNN                page -> Node
    <webgraphdb>/linkdump/part-r-NNNNN             page -> LinkNodes (LinkDumper)
    <webgraphdb>/loops/part-NNNNN                  page -> LoopSet (Loops, until Nutch 1.11)

Jobs read a database as one stream in the order of its keys: what they make of it does not depend on
the partitions.

Source: org.apache.nutch.scoring.webgraph.WebGraph, LinkDumper, Loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl

from minutch.errors import StoreError
from minutch.hadoop.formats.javaio import DataInput
from minutch.records.webgraph import LinkNodes, LoopSet, Node
from minutch.work.tables import install
from minutch.work.tables.compression import Compression
from minutch.work.tables.database import Database, part_name
from minutch.work.tables.merge import merged
from minutch.work.tables.webgraphfiles import LinkDataWriter, NodeWriter, scan_link_data, scan_nodes

OUTLINKS = "outlinks"


class Part(Database):
    """One of the databases of a webgraph."""

    def require_parts(self) -> list[Path]:
        """The directories of the partitions, one at least. Raises StoreError where there is
        none.
        """
        parts = super().require_parts()
        if not parts:
            raise StoreError(f"{self.current} has no parts: no database of a webgraph")
        return parts


class Links(Part):
    """Links, by the page at one end."""

    @classmethod
    def at(cls, directory: Path) -> Links:
        """The links whose partitions lie in `directory`, under whatever name."""
        database = cls(directory.parent)
        database.name = directory.name
        return database

    def in_order(self) -> Iterator[pl.DataFrame]:
        """All links in tables of GRAPH_LINKS_SCHEMA, in the order of the pages, none spread over
        two tables.
        """
        return merged(*map(scan_link_data, self.require_parts()))

    def writer(self, directory: Path, part: int, compression: Compression) -> LinkDataWriter:
        """A writer of a partition of the links that are being written to `directory` (see
        `replacement`).
        """
        return LinkDataWriter(directory / part_name(part), **compression.options)


class Inlinks(Links):
    """Links by the page that they lead to."""

    name = "inlinks"


class Nodes(Part):
    """The pages with their link counts and scores."""

    name = "nodes"

    def in_order(self) -> Iterator[pl.DataFrame]:
        """All nodes in tables of NODES_SCHEMA, in the order of their URLs."""
        return merged(*map(scan_nodes, self.require_parts()))

    def writer(self, directory: Path, part: int, compression: Compression) -> NodeWriter:
        """As that of `Links`."""
        return NodeWriter(directory / part_name(part), **compression.options)

    def get(self, url: str) -> Node | None:
        """The node of a page, None if there is none. Raises StoreError where there is no such
        database.
        """
        value = self.lookup(url)
        return None if value is None else Node.read(DataInput(value))


class LinkDump(Part):
    """For each page the nodes that link to it."""

    name = "linkdump"

    def get(self, url: str) -> LinkNodes | None:
        """The nodes that link to a page. Raises StoreError where there is no such database."""
        value = self.lookup(url)
        return None if value is None else LinkNodes.read(DataInput(value))


class LoopSets(Part):
    """For each page the pages of the loops that it is in."""

    name = "loops"

    def get(self, url: str) -> LoopSet | None:
        """The loop set of a page. Raises StoreError where there is no such database."""
        value = self.lookup(url)
        return None if value is None else LoopSet.read(DataInput(value))


class WebGraph:
    """The WebGraph at `path`, which need not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outlinks = Links(path / OUTLINKS)
        self.inlinks = Inlinks(path)
        self.nodes = Nodes(path)
        self.linkdump = LinkDump(path)
        self.loops = LoopSets(path)

    def is_another(self) -> bool:
        """Whether another kind of database lies at the path."""
        return (self.path / install.CURRENT).exists() and not self.outlinks.exists()

    def require(self) -> None:
        """Raise StoreError where there is no graph: pages with links and nodes."""
        if not self.path.is_dir():
            raise StoreError(
                f"{self.path}: no such folder",
                hint="`minutch webgraph` makes a webgraphdb of segments",
            )
        self.outlinks.require_parts()
        self.nodes.require_parts()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock, with all cleared away that a killed job left behind. Raises
        LockedError.
        """
        with self.nodes.lock():
            install.recover(self.path, (self.inlinks.name, self.nodes.name, self.linkdump.name))
            if self.outlinks.path.is_dir():
                install.recover(self.outlinks.path)
            try:
                yield
            except BaseException:
                with suppress(OSError):  # there are links in it
                    self.outlinks.path.rmdir()
                raise
