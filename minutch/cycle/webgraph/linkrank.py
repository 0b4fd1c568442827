"""The linkrank job: scores every page of a webgraph by the scores of the pages that link to it; and
scoreupdater, which copies them into a CrawlDb.

    share of a link   the score of its page / the number of the page's outlinks
    score of a page   (1 - damping) + damping * (1 / nodes + the sum of the shares of the links to
                      it)

    link.analyze.initial.score    score of every page before the first round (1)
    link.analyze.num.iterations   number of rounds (10)
    link.analyze.damping.factor   damping (0.85)
    link.ignore.limit.page, link.ignore.limit.domain   count only the first link from a page or
                                                       domain, in the order of URLs

A page without outlinks passes nothing on. Numbers are 32-bit floats as in Nutch; they are summed in
64 bits, so that the order of links makes no difference.

Nodes are numbered from 0 in the order of their URLs, and links held by target, as compressed sparse
rows (`Csr`):

    starts    index in `sources` of the first link to each node, and the end of the last
    sources   the nodes that links come from, ascending for each target

Strings are read twice, in streams sorted by key; `sources` is a file that is mapped into memory.
Memory is about 20 bytes a node.

Entries of pages without a node get link.score.updater.clear.score (0). The previous CrawlDb is kept
as `old`, unless db.preserve.backup is false.

Source: org.apache.nutch.scoring.webgraph.LinkRank, its Inverter and Analyzer; ScoreUpdater.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.conf import Configuration, Settings, prop
from minutch.cycle.crawldb.matching import last_of_key, match
from minutch.cycle.crawldb.partitions import EntryFilter, EntrySources, rewrite
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.webgraph.rules import LinkLimits
from minutch.cycle.webgraph.store import GraphSettings, WebGraph
from minutch.errors import StoreError
from minutch.hadoop.formats.javahash import float_to_string
from minutch.job import Counters, JobContext, Progress
from minutch.processwide import command_line
from minutch.work.engine import engine_of
from minutch.work.tables.database import OutputSettings
from minutch.work.tables.frame import aligned, decode_keys
from minutch.work.tables.install import SPILL, mark_success, work_folder
from minutch.work.tables.parallel import for_each
from minutch.work.tables.shuffle import Shuffle, split

REPEATED: Final = "further links from a page or domain ignored"
COUNTED: Final = "links that count"
_MOST_NODES: Final = 1 << 32
_INVERTED: Final = pl.Schema({"key": pl.Binary(), "source": pl.UInt32(), "group": pl.String()})
"""Links by the URL that they lead to; `group` is the page or domain of which one link counts."""
log = logging.getLogger(__name__)
NODES: Final = "nodes scored"
_LINKS_AT_A_TIME: Final = 1 << 20
Scores = npt.NDArray[np.float32]
CLEAR_PROPERTY: Final = "link.score.updater.clear.score"
SCORED: Final = "entries scored"
CLEARED: Final = "entries without a node"
REPEATED_ENTRIES: Final = "repeated entries removed"
_SCORES: Final = pl.Schema({"key": pl.Binary(), "inlink_score": pl.Float32()})


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
    limits: LinkLimits,
    folder: Path,
    budget: int,
    counters: Counters,
    progress: Progress,
) -> Csr:
    """Numbers the nodes and links of `graph`; the result uses files in `folder`.

    Raises StoreError if a link has an end without a node.
    """
    num_outlinks = [np.empty(0, np.int32)]
    # 64 bits: a graph has more than 2^31 links before it has 2^32 nodes.
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
                # LinkRank.Analyzer applies the limits of WebGraph a second time, to the inlinks of
                # a page.
                kept = links.unique(["key", "group"], keep="first", maintain_order=True)
            counters.add(REPEATED, len(links) - len(kept))
            counters.add(COUNTED, len(kept))
            targets = rows_of(kept["key"], nodes["key"], graph)
            file.write(np.ascontiguousarray(kept["source"].to_numpy()).data)
            ends = written + np.cumsum(np.bincount(targets, minlength=len(nodes)))
            starts.append(ends)
            written += len(kept)
            progress.advance(len(links))
    # An empty file can't be mapped.
    sources = np.memmap(path, np.uint32, "r") if written else np.empty(0, np.uint32)
    return Csr(np.concatenate(starts), sources, np.concatenate(num_outlinks))


def _inverted(
    graph: WebGraph, limits: LinkLimits, progress: Progress
) -> Iterator[tuple[pl.DataFrame, npt.NDArray[np.int32]]]:
    """Reads the links of ranges of pages as tables of _INVERTED, with their outlink counts."""
    first = 0
    for nodes, links in aligned(graph.nodes.in_order(), graph.outlinks.in_order()):
        rows = rows_of(links["key"], nodes["key"], graph)
        if first + len(nodes) > _MOST_NODES:
            raise StoreError(f"{graph.path}: more than {_MOST_NODES} nodes")
        groups = pl.Series([""], dtype=pl.String).new_from_index(0, len(nodes))
        if limits.any:
            urls = decode_keys(nodes["key"])
            # A page that is no URL is a group of its own.
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


def _rounds(conf: Configuration, name: str) -> int:
    rounds = conf.get_int(name)
    if rounds < 0:
        raise conf.wrong(name, "a number from 0 on", str(rounds))
    return rounds


def _share(conf: Configuration, name: str) -> float:
    share = conf.get_float(name)
    if not 0 <= share <= 1:
        raise conf.wrong(name, "a number from 0 to 1", str(share))
    return share


@dataclass(frozen=True)
class Formula(Settings):
    """The constants of the formula."""

    rounds: int = prop("link.analyze.num.iterations", _rounds)
    damping: float = prop("link.analyze.damping.factor", _share)
    initial: float = prop("link.analyze.initial.score")


def linkrank(webgraphdb: Path, *, context: JobContext) -> Counters:
    """Scores the nodes of the graph at `webgraphdb`. Raises StoreError (no graph, no nodes),
    LockedError, FormatError (damage).
    """
    graph = WebGraph(webgraphdb)
    graph.require()
    conf, counters = context.conf, Counters()
    settings, limits = GraphSettings.from_conf(conf), LinkLimits.from_conf(conf)
    formula = Formula.from_conf(conf)
    log.info("LinkRank Analysis: starting")
    with (
        graph.lock(),
        work_folder(graph.path, SPILL) as folder,
        context.progress("linkrank", unit="links") as progress,
    ):
        # Links are read by page, then by target.
        progress.expect(lambda: 2 * graph.outlinks.estimate())
        csr = build(graph, limits, folder, settings.memory, counters, progress)
        if not csr.nodes:
            raise StoreError("No links to process, is the webgraph empty?")
        scores = analyze(csr, formula)
        log.info("Analysis: Installing web graph nodes")
        _install(graph, scores, settings)
    counters.add(NODES, csr.nodes)
    log.info("LinkRank Analysis: finished")
    return counters


def analyze(csr: Csr, formula: Formula) -> Scores:
    """Returns the scores of all nodes after the last round."""
    rank_one = np.float32(1) / np.float32(csr.nodes)
    damping = np.float32(formula.damping)
    # No link asks for the share of a page without outlinks; 0 / 0 would warn.
    divisors = np.maximum(csr.num_outlinks, 1).astype(np.float32)
    # Nutch's words: it is the number of nodes that LinkRank.runCounter counts.
    log.info("Analysis: Number of links: %d", csr.nodes)
    log.info("Analysis: Rank One: %s", float_to_string(float(rank_one)))
    scores = np.full(csr.nodes, formula.initial, np.float32)
    for number in range(1, formula.rounds + 1):
        shares = scores / divisors
        # Rounded to 32 bits where LinkRank has a float variable.
        sums = (rank_one + _sums(csr, shares)).astype(np.float32)
        scores = ((np.float32(1) - damping) + damping * sums).astype(np.float32)
        log.info("Analysis: finished iteration %d of %d", number, formula.rounds)
    return scores


def _sums(csr: Csr, shares: Scores) -> npt.NDArray[np.float64]:
    """Sums up the shares of the links to each node."""
    sums = np.zeros(csr.nodes, np.float64)

    def add(nodes: slice) -> None:
        starts = csr.starts[nodes.start : nodes.stop + 1]
        inherited = shares[csr.sources[starts[0] : starts[-1]]].astype(np.float64)
        # reduceat gives a node without links the first number of the next one.
        linked = np.flatnonzero(np.diff(starts))
        if len(linked):
            sums[nodes.start + linked] = np.add.reduceat(inherited, starts[linked] - starts[0])

    for_each(add, _ranges(csr))
    return sums


def _ranges(csr: Csr) -> Iterator[slice]:
    """Splits the nodes into ranges with about the same number of links, at least one node each."""
    first = 0
    while first < csr.nodes:
        goal = csr.starts[first] + _LINKS_AT_A_TIME
        last = max(first + 1, int(np.searchsorted(csr.starts, goal, side="right")) - 1)
        yield slice(first, min(last, csr.nodes))
        first = last


def _install(graph: WebGraph, scores: Scores, settings: GraphSettings) -> None:
    """Rewrites the nodes with their new scores."""
    parts, compression = settings.parts, settings.compression
    with graph.nodes.replacement(keep_old=False) as directory:
        # Scores are by number, in the order of all nodes: partitions are written side by side.
        writers = [graph.nodes.writer(directory, part, compression) for part in range(parts)]
        try:
            first = 0
            for nodes in graph.nodes.in_order():
                own = pl.Series("inlink_score", scores[first : first + len(nodes)])
                for writer, rows in zip(
                    writers, split(nodes.with_columns(own), parts), strict=True
                ):
                    writer.write(rows)
                first += len(nodes)
            for writer in writers:
                writer.close()
        # Half-written files would stay open until the folder is cleared away.
        except BaseException:
            for writer in writers:
                writer.discard()
            raise


def scoreupdater(crawldb: Path, webgraphdb: Path, *, context: JobContext) -> Counters:
    """Sets the scores of the CrawlDb's entries to those of the graph's nodes.

    Raises StoreError (no CrawlDb, no graph), LockedError, FormatError (damage).
    """
    db, graph = CrawlDb(crawldb), WebGraph(webgraphdb)
    db.require_parts()
    graph.require()
    conf = context.conf
    engine, output = engine_of(conf), OutputSettings.from_conf(conf)
    clear = conf.get_float(CLEAR_PROPERTY)
    log.info("ScoreUpdater: starting")
    log.info("Running crawldb update %s", db.path)
    with (
        db.lock(),
        EntrySources([db], engine, EntryFilter(), spill=db.path) as entries,
        # The other half is for entries, which may be shuffled, too.
        Shuffle(engine.parts, _SCORES, budget=engine.memory // 2, spill=db.path) as scores,
        context.progress("scoreupdater") as progress,
    ):
        for nodes in graph.nodes.in_order():
            scores.add(nodes.select(_SCORES.names()))
        counters = rewrite(
            db,
            engine,
            output,
            [*entries.sources, engine.local_source(scores)],
            lambda both: _scored(*both, clear=clear),
            progress,
        )
        mark_success(conf, db.current)
    log.info("ScoreUpdater: finished")
    return counters


def _scored(
    frame: pl.DataFrame, scores: pl.DataFrame, *, clear: float
) -> tuple[pl.DataFrame, Counters]:
    """Returns a range's entries with their new scores, and counts; both tables are sorted."""
    entries, counters = last_of_key(frame), Counters()
    scores = last_of_key(scores)
    at = match(entries["key"], scores["key"]).at
    known = at >= 0
    # ScoreUpdaterReducer: no node, the clear score.
    new = np.full(len(entries), clear, np.float32)
    new[known] = scores["inlink_score"].to_numpy()[at[known]]
    counters.add(SCORED, int(known.sum()))
    counters.add(CLEARED, len(entries) - int(known.sum()))
    counters.add(REPEATED_ENTRIES, len(frame) - len(entries))
    return entries.with_columns(pl.Series("score", new)), counters
