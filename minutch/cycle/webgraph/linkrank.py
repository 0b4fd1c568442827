"""The linkrank job: scores every page of a webgraph by the scores of the pages that link to it.

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

Source: org.apache.nutch.scoring.webgraph.LinkRank.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.conf import Configuration
from minutch.cycle.webgraph.csr import Csr, build
from minutch.cycle.webgraph.rules import Limits
from minutch.cycle.webgraph.settings import GraphSettings
from minutch.cycle.webgraph.store import WebGraph
from minutch.errors import ConfigError, StoreError
from minutch.hadoop.formats.javahash import float_to_string
from minutch.job import Counters, JobContext
from minutch.work.tables.install import SPILL, work_folder
from minutch.work.tables.parallel import for_each
from minutch.work.tables.shuffle import split

log = logging.getLogger(__name__)
ITERATIONS_PROPERTY: Final = "link.analyze.num.iterations"
INITIAL_PROPERTY: Final = "link.analyze.initial.score"
DAMPING_PROPERTY: Final = "link.analyze.damping.factor"
NODES: Final = "nodes scored"
_LINKS_AT_A_TIME: Final = 1 << 20
Scores = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Formula:
    """The constants of the formula."""

    rounds: int = 10
    damping: float = 0.85
    initial: float = 1.0

    @classmethod
    def from_conf(cls, conf: Configuration) -> Self:
        """Reads link.analyze.*. Raises ConfigError for a value out of range."""
        rounds = conf.get_int(ITERATIONS_PROPERTY)
        damping = conf.get_float(DAMPING_PROPERTY)
        if rounds < 0:
            raise ConfigError(f"{ITERATIONS_PROPERTY}: expected a number from 0 on, found {rounds}")
        if not 0 <= damping <= 1:
            raise ConfigError(f"{DAMPING_PROPERTY}: expected a number from 0 to 1, found {damping}")
        return cls(rounds, damping, conf.get_float(INITIAL_PROPERTY))


def linkrank(webgraphdb: Path, *, context: JobContext) -> Counters:
    """Scores the nodes of the graph at `webgraphdb`. Raises StoreError (no graph, no nodes),
    LockedError, FormatError (damage).
    """
    graph = WebGraph(webgraphdb)
    graph.require()
    conf, counters = context.conf, Counters()
    settings, limits = GraphSettings.from_conf(conf), Limits.from_conf(conf)
    formula = Formula.from_conf(conf)
    log.info("LinkRank Analysis: starting")
    with (
        graph.lock(),
        work_folder(graph.path, SPILL) as folder,
        context.progress("linkrank", unit="links") as progress,
    ):
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
    divisors = np.maximum(csr.num_outlinks, 1).astype(np.float32)
    log.info("Analysis: Number of links: %d", csr.nodes)
    log.info("Analysis: Rank One: %s", float_to_string(float(rank_one)))
    scores = np.full(csr.nodes, formula.initial, np.float32)
    for number in range(1, formula.rounds + 1):
        shares = scores / divisors
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
        except BaseException:
            for writer in writers:
                writer.discard()
            raise
