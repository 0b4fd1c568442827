"""mergelinkdb: merges LinkDbs into a new one, with URLs normalized and filtered on request.

A URL's links from all LinkDbs are put together, in the order of the LinkDbs, up to
linkdb.max.inlinks. With one LinkDb it filters that one.

Source: org.apache.nutch.crawl.LinkDbMerger.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from minutch.cycle.crawldb.mergedb import MergeOptions
from minutch.cycle.linkdb.build import LinkDbSettings, build
from minutch.cycle.linkdb.rules import UrlChain
from minutch.cycle.linkdb.store import LinkDb
from minutch.errors import StoreError
from minutch.job import Counters, JobContext
from minutch.work.engine import engine_of

log = logging.getLogger(__name__)
_DEFAULTS: Final = MergeOptions()


def mergelinkdb(
    output: Path,
    sources: Sequence[Path],
    options: MergeOptions = _DEFAULTS,
    *,
    context: JobContext,
) -> Counters:
    """Merges the LinkDbs `sources` into a new one at `output`.

    Raises StoreError (a source that does not exist, an output that does), FormatError (damage,
    mixed layouts).
    """
    conf, db, dbs = context.conf, LinkDb(output), [LinkDb(source) for source in sources]
    log.info("LinkDb merge: starting")
    chain = UrlChain.from_conf(conf, normalize=options.normalize, filtering=options.filtering)
    settings, engine = LinkDbSettings.from_conf(conf), engine_of(conf)
    with db.lock(), context.progress("mergelinkdb") as progress:
        if db.exists():
            raise StoreError(f"output LinkDb {output} already exists")
        counters = build(
            db, dbs, None, chain=chain, settings=settings, engine=engine, progress=progress
        )
    log.info("LinkDb merge: finished")
    return counters
