"""mergelinkdb: merge LinkDbs into a new one, with URLs normalized and filtered if wished.

A URL's links from all LinkDbs are put together, in the order of the LinkDbs, up to linkdb.max.inlinks. With one LinkDb
it filters that one.

Source: org.apache.nutch.crawl.LinkDbMerger.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from minutch.arguments import Flag, parse
from minutch.errors import StoreError
from minutch.job import Counters, JobContext
from minutch.linkdb.build import build
from minutch.linkdb.rules import UrlChain
from minutch.linkdb.store import LinkDb
from minutch.stores import as_path

log = logging.getLogger(__name__)

USAGE: Final = """LinkDbMerger <output_linkdb> <linkdb1> [<linkdb2> <linkdb3> ...] [-normalize] [-filter]
\toutput_linkdb\tthe LinkDb to make
\tlinkdb1 ...\tthe LinkDbs to merge; one will do
\t-normalize\tnormalize the URLs on both ends of the links (seldom needed)
\t-filter\tfilter the URLs on both ends of the links"""

FLAGS: Final = (Flag("-normalize"), Flag("-filter"))


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 and an error."""
    given = parse(args, FLAGS, usage=USAGE, least=2)
    output, *sources = map(as_path, given.positional)
    counters = mergelinkdb(output, sources, context, normalize=given["-normalize"], filtering=given["-filter"])
    context.report("LinkDb merge", counters)
    return 0


def mergelinkdb(
    output: Path, sources: Sequence[Path], context: JobContext, *, normalize: bool = False, filtering: bool = False
) -> Counters:
    """Merge the LinkDbs `sources` into a new one at `output`.

    Raises StoreError (a source that does not exist, an output that does), FormatError (damage, mixed layouts).
    """
    conf, db, dbs = context.conf, LinkDb(output), [LinkDb(source) for source in sources]
    log.info("LinkDb merge: starting")
    counters = Counters()
    chain = UrlChain(conf, normalize=normalize, filtering=filtering)
    with db.lock(), context.progress("mergelinkdb") as progress:
        if db.exists():
            raise StoreError(f"output LinkDb {output} already exists")
        build(db, dbs, None, chain, conf, counters, progress)
    log.info("LinkDb merge: finished")
    return counters
