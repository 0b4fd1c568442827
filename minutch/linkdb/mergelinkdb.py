"""mergelinkdb: merge LinkDbs into a new one, with URLs normalized and filtered if wished.

A URL's links from all LinkDbs are put together, up to linkdb.max.inlinks. With one LinkDb it filters that one.
Matched: org.apache.nutch.crawl.LinkDbMerger.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from minutch.arguments import Flag, parse
from minutch.errors import StoreError
from minutch.job import Counters, JobContext
from minutch.linkdb.building import (
    layout_for,
    merge_parts,
    number_of_parts,
    stored,
    stored_parts,
    write,
    write_streams,
)
from minutch.linkdb.bulk import is_small, united
from minutch.linkdb.linkrules import MAX_INLINKS_PROPERTY, UrlChain
from minutch.linkdb.store import LinkDb

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
    output, *sources = map(Path, given.positional)
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
    if db.exists():
        raise StoreError(f"output LinkDb {output} already exists")
    counters = Counters()
    chain = UrlChain(conf, normalize=normalize, filtering=filtering)
    parts, limit = number_of_parts(conf), conf.get_int(MAX_INLINKS_PROPERTY, 10_000)
    layout = layout_for(conf, dbs)
    with db.lock(), context.progress("mergelinkdb") as progress:
        if is_small(dbs):
            tables = [table for source in dbs for table in stored_parts(source)]
            progress.advance(sum(map(len, tables)))
            write(db, merge_parts(tables, chain, parts, limit, counters), parts, layout, counters)
        else:
            with ExitStack() as stack:
                shuffles = [stack.enter_context(stored(source, parts, chain, conf, counters)) for source in dbs]
                progress.advance(sum(shuffle.rows for shuffle in shuffles))
                progress.expect(lambda: sum(shuffle.rows for shuffle in shuffles))
                write_streams(db, lambda part: united(shuffles, part, limit), parts, layout, counters, progress)
    log.info("LinkDb merge: finished")
    return counters
