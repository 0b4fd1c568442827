"""The scoreupdater job: copies the scores of a webgraph's nodes into a CrawlDb.

Entries of pages without a node get link.score.updater.clear.score (0). The previous CrawlDb is kept
as `old`, unless db.preserve.backup is false.

Source: org.apache.nutch.scoring.webgraph.ScoreUpdater.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from minutch.cycle.crawldb.matching import last_of_key, match
from minutch.cycle.crawldb.partitions import EntryFilter, EntrySources, rewrite
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.webgraph.store import WebGraph
from minutch.job import Counters, JobContext
from minutch.work.engine import engine_of
from minutch.work.tables.database import OutputSettings
from minutch.work.tables.install import mark_success
from minutch.work.tables.shuffle import Shuffle

log = logging.getLogger(__name__)
CLEAR_PROPERTY: Final = "link.score.updater.clear.score"
SCORED: Final = "entries scored"
CLEARED: Final = "entries without a node"
REPEATED: Final = "repeated entries removed"
_SCORES: Final = pl.Schema({"key": pl.Binary(), "inlink_score": pl.Float32()})


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
    """Returns the entries of a range of keys with their new scores, and counts; both tables are
    sorted by key.
    """
    entries, counters = last_of_key(frame), Counters()
    scores = last_of_key(scores)
    at = match(entries["key"], scores["key"]).at
    known = at >= 0
    new = np.full(len(entries), clear, np.float32)
    new[known] = scores["inlink_score"].to_numpy()[at[known]]
    counters.add(SCORED, int(known.sum()))
    counters.add(CLEARED, len(entries) - int(known.sum()))
    counters.add(REPEATED, len(frame) - len(entries))
    return entries.with_columns(pl.Series("score", new)), counters
