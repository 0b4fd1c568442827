"""Opens the databases of a WebGraph: links by source and by target, nodes with their scores; and
what all its jobs are set to: partitions, compression, memory.

Each has partitions of MapFiles:

    <webgraphdb>/.locked
    <webgraphdb>/outlinks/current/part-r-NNNNN     page -> LinkDatum, one for each link out of it;
                                                   old/ as a backup
    <webgraphdb>/inlinks/part-r-NNNNN              page -> LinkDatum, one for each link to it
    <webgraphdb>/nodes/part-r-NNNNN                page -> Node
    <webgraphdb>/linkdump/part-r-NNNNN             page -> LinkNodes (LinkDumper)
    <webgraphdb>/loops/part-NNNNN                  page -> LoopSet (Loops, until Nutch 1.11)

Jobs read a database as one stream in the order of its keys, so that their results do not depend on
the partitions.

Source: org.apache.nutch.scoring.webgraph.WebGraph, LinkDumper, Loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from minutch.conf import Settings, made_by
from minutch.errors import StoreError
from minutch.hadoop.formats.javaio import DataInput
from minutch.processwide import command_line
from minutch.records.webgraph import LinkNodes, LoopSet, Node
from minutch.work.tables import install
from minutch.work.tables.compression import Compression, output_compression
from minutch.work.tables.database import Database, part_name
from minutch.work.tables.frame import merged
from minutch.work.tables.parallel import number_of_parts, sorting_memory
from minutch.work.tables.recordfiles import LinkDataWriter, NodeWriter, scan_link_data, scan_nodes


@dataclass(frozen=True, slots=True)
class GraphSettings(Settings):
    """Settings for reading and writing the databases of a WebGraph."""

    parts: int = made_by(number_of_parts)
    """Number of partitions that are written."""
    compression: Compression = made_by(output_compression)
    memory: int = made_by(sorting_memory)
    """Bytes that the tables of a job may take before they are sorted on disk."""


OUTLINKS = "outlinks"


class GraphPart(Database):
    """A database of a webgraph."""

    def require_parts(self) -> list[Path]:
        """Returns the directories of the partitions. Raises StoreError if there is none."""
        parts = super().require_parts()
        if not parts:
            raise StoreError(f"{self.current} has no parts: no database of a webgraph")
        return parts


class OutlinkDb(GraphPart):
    """A database of links by the page at one end."""

    @classmethod
    def at(cls, directory: Path) -> OutlinkDb:
        """Opens the links whose partitions are in `directory`."""
        # A work folder, before it is installed under its own name.
        database = cls(directory.parent)
        database.name = directory.name
        return database

    def in_order(self) -> Iterator[pl.DataFrame]:
        """Reads all links as tables of GRAPH_LINKS_SCHEMA, in the order of the pages; no page is
        spread over two tables.
        """
        return merged(*map(scan_link_data, self.require_parts()))

    def writer(self, directory: Path, part: int, compression: Compression) -> LinkDataWriter:
        """Opens a writer of a partition in `directory`, which `replacement` made."""
        return LinkDataWriter(directory / part_name(part), **compression.options)


class InlinkDb(OutlinkDb):
    """The links by the page that they lead to."""

    name = "inlinks"


class NodeDb(GraphPart):
    """The pages with their link counts and scores."""

    name = "nodes"

    def in_order(self) -> Iterator[pl.DataFrame]:
        """Reads all nodes as tables of NODES_SCHEMA, in the order of their URLs."""
        return merged(*map(scan_nodes, self.require_parts()))

    def writer(self, directory: Path, part: int, compression: Compression) -> NodeWriter:
        """Opens a writer of a partition in `directory`, which `replacement` made."""
        return NodeWriter(directory / part_name(part), **compression.options)

    def get(self, url: str) -> Node | None:
        """Looks up the node of a page, None if there is none. Raises StoreError if there is no
        database.
        """
        value = self.lookup(url)
        return None if value is None else Node.read(DataInput(value))


class LinkDump(GraphPart):
    """The nodes that link to each page."""

    name = "linkdump"

    def get(self, url: str) -> LinkNodes | None:
        """Looks up the nodes that link to a page. Raises StoreError if there is no database."""
        value = self.lookup(url)
        return None if value is None else LinkNodes.read(DataInput(value))


class LoopSets(GraphPart):
    """The pages of the loops that each page is in."""

    name = "loops"

    def get(self, url: str) -> LoopSet | None:
        """Looks up the loop set of a page. Raises StoreError if there is no database."""
        value = self.lookup(url)
        return None if value is None else LoopSet.read(DataInput(value))


class WebGraph:
    """The WebGraph at `path`, which need not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outlinks = OutlinkDb(path / OUTLINKS)
        self.inlinks = InlinkDb(path)
        self.nodes = NodeDb(path)
        self.linkdump = LinkDump(path)
        self.loops = LoopSets(path)

    def is_another(self) -> bool:
        """Returns whether the path holds a database of another kind."""
        return (self.path / install.CURRENT).exists() and not self.outlinks.exists()

    def require(self) -> None:
        """Raises StoreError if there is no graph: outlinks and nodes."""
        if not self.path.is_dir():
            raise StoreError(
                f"{self.path}: no such folder",
                hint=f"`{command_line('webgraph')}` makes a webgraphdb from segments",
            )
        self.outlinks.require_parts()
        self.nodes.require_parts()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Holds the lock, once the files of a killed job are cleared away. Raises LockedError."""
        with self.nodes.lock():
            # The databases lie in the graph's folder itself, not each in one of its own with a
            # lock.
            install.recover(self.path, (self.inlinks.name, self.nodes.name, self.linkdump.name))
            if self.outlinks.path.is_dir():
                install.recover(self.outlinks.path)
            try:
                yield
            except BaseException:
                with suppress(OSError):  # not empty
                    self.outlinks.path.rmdir()
                raise
