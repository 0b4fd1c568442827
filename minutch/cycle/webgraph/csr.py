"""Numbers the nodes of a graph and holds its links by target, as compressed sparse rows (CSR).

    nodes     numbered from 0 in the order of their URLs
    starts    index in `sources` of the first link to each node, and the end of the last
    sources   the nodes that links come from, ascending for each target

Strings are read twice, in streams sorted by key; `sources` is a file that is mapped into memory.
Memory is about 20 bytes a node.

Source: org.apache.nutch.scoring.webgraph.LinkRank.Inverter, Analyzer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.cycle.crawldb.matching import match
from minutch.cycle.webgraph.rules import Limits
from minutch.cycle.webgraph.store import WebGraph
from minutch.errors import StoreError
from minutch.job import Counters, Progress
from minutch.processwide import command_line
from minutch.work.tables.frame import aligned, decode_keys
from minutch.work.tables.shuffle import Shuffle

REPEATED: Final = "further links from a page or domain ignored"
COUNTED: Final = "links that count"
_MOST_NODES: Final = 1 << 32
_INVERTED: Final = pl.Schema({"key": pl.Binary(), "source": pl.UInt32(), "group": pl.String()})
"""Links by the URL that they lead to; `group` is the page or domain of which one link counts."""


@dataclass(frozen=True, slots=True)
class Csr:
    """The links of a graph by target node."""

    starts: npt.NDArray[np.int64]
    sources: npt.NDArray[np.uint32]
    num_outlinks: npt.NDArray[np.int32]
    """Number of outlinks of each node, as the node has it."""

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.num_outlinks)


def build(
    graph: WebGraph,
    limits: Limits,
    folder: Path,
    budget: int,
    counters: Counters,
    progress: Progress,
) -> Csr:
    """Numbers the nodes and links of `graph`; the result uses files in `folder`.

    Raises StoreError if a link has an end without a node.
    """
    num_outlinks = [np.empty(0, np.int32)]
    starts = [np.zeros(1, np.int64)]
    path = folder / "sources"
    with Shuffle(1, _INVERTED, budget=budget, spill=folder) as shuffle, path.open("wb") as file:
        for links, counts in _inverted(graph, limits, progress):
            num_outlinks.append(counts)
            shuffle.add(links)
        progress.expect(lambda: shuffle.rows)
        written = 0
        for nodes, links in aligned(graph.nodes.in_order(), shuffle.sorted(0)):
            kept = links
            if limits.any:
                kept = links.unique(["key", "group"], keep="first", maintain_order=True)
            counters.add(REPEATED, len(links) - len(kept))
            counters.add(COUNTED, len(kept))
            targets = rows_of(kept["key"], nodes["key"], graph)
            file.write(np.ascontiguousarray(kept["source"].to_numpy()).data)
            ends = written + np.cumsum(np.bincount(targets, minlength=len(nodes)))
            starts.append(ends)
            written += len(kept)
            progress.advance(len(links))
    sources = np.memmap(path, np.uint32, "r") if written else np.empty(0, np.uint32)
    return Csr(np.concatenate(starts), sources, np.concatenate(num_outlinks))


def _inverted(
    graph: WebGraph, limits: Limits, progress: Progress
) -> Iterator[tuple[pl.DataFrame, npt.NDArray[np.int32]]]:
    """Reads the links of ranges of pages as tables of _INVERTED, each with the numbers of outlinks
    of the range's nodes.
    """
    first = 0
    for nodes, links in aligned(graph.nodes.in_order(), graph.outlinks.in_order()):
        rows = rows_of(links["key"], nodes["key"], graph)
        if first + len(nodes) > _MOST_NODES:
            raise StoreError(f"{graph.path}: more than {_MOST_NODES} nodes")
        groups = pl.Series([""], dtype=pl.String).new_from_index(0, len(nodes))
        if limits.any:
            urls = decode_keys(nodes["key"])
            groups = limits.groups(urls).fill_null(urls)
        yield (
            links.select(
                key="url",
                source=pl.Series(rows + first, dtype=pl.UInt32),
                group=groups.gather(rows),
            ),
            nodes["num_outlinks"].to_numpy(),
        )
        first += len(nodes)
        progress.advance(len(links))


def rows_of(keys: pl.Series, nodes: pl.Series, graph: WebGraph) -> npt.NDArray[np.int64]:
    """Returns the row of each of `keys` in `nodes`; both are sorted. Raises StoreError if one is
    missing.
    """
    found = match(keys, nodes)
    lost = np.flatnonzero(found.at < 0)
    if len(lost):
        url = keys[int(np.flatnonzero(found.group == lost[0])[0])]
        raise StoreError(
            f"{graph.nodes.current} has no node for {decode_keys(pl.Series([url])).item()}, an end"
            f" of a link in {graph.outlinks.current}",
            hint=f"the two are of different runs; `{command_line('webgraph')}` writes both again",
        )
    return found.at[found.group]
