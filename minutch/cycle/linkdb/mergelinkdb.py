"""mergelinkdb: merge LinkDbs into a new one, with URLs normalized and filtered if wished.

A URL's links from all LinkDbs are put together, in the order of the LinkDbs, up to
linkdb.max.inlinks. With one LinkDb it filters that one.

Source: org.apache.nutch.crawl.LinkDbMerger.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from minutch.cycle.linkdb.build import build
from minutch.cycle.linkdb.rules import UrlChain
from minutch.cycle.linkdb.store import LinkDb
from minutch.errors import StoreError
from minutch.job import Counters, JobContext

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """The options of mergelinkdb."""

    normalize: bool = False
    """Whether the URL normalizers apply."""
    filtering: bool = False
    """Whether the URL filters apply."""


def mergelinkdb(
    output: Path,
    sources: Sequence[Path],
    options: MergeOptions = MergeOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Merge the LinkDbs `sources` into a new one at `output`.

    Raises StoreError (a source that does not exist, an output that does), FormatError (damage,
    mixed layouts).
    """
    conf, db, dbs = context.conf, LinkDb(output), [LinkDb(source) for source in sources]
    log.info("LinkDb merge: starting")
    counters = Counters()
    chain = UrlChain(conf, normalize=options.normalize, filtering=options.filtering)
    with db.lock(), context.progress("mergelinkdb") as progress:
        if db.exists():
            raise StoreError(f"output LinkDb {output} already exists")
        build(db, dbs, None, chain, conf, counters, progress)
    log.info("LinkDb merge: finished")
    return counters
