"""`minutch index`: sends the pages of segments to the index (Nutch: IndexingJob)."""

from __future__ import annotations

import logging
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.index.indexing import IndexOptions, index
from minutch.cycle.segment.store import segments_at
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """Indexer (<crawldb> | -nocrawldb) (<segment> ... | -dir <segments>) \
[general options]

Index given segments using configured indexer plugins

The CrawlDb is optional but it is required to send deletion requests for duplicates
and to read the proper document score/boost/weight passed to the indexers.

Required arguments:

\t<crawldb>\tpath to CrawlDb, or
\t-nocrawldb\tflag to indicate that no CrawlDb shall be used

\t<segment> ...\tpath(s) to segment, or
\t-dir <segments>\tpath to segments/ directory,
\t               \t(all subdirectories are read as segments)

General options:
\t
\t-linkdb <linkdb>\tuse LinkDb to index anchor texts of incoming links
\t-params k1=v1&k2=v2...\tparameters passed to indexer plugins
\t                      \t(via property indexer.additional.params)

\t-noCommit\tdo not call the commit method of indexer plugins
\t-deleteGone\tsend deletion requests for 404s, redirects, duplicates
\t-filter   \tskip documents with URL rejected by configured URL filters
\t-normalize\tnormalize URLs before indexing
\t-addBinaryContent\tindex raw/binary content in field `binaryContent`
\t-base64   \tuse Base64 encoding for binary content
"""

FLAGS: Final = (
    Flag("-nocrawldb"),
    Flag("-linkdb", value="linkdb"),
    Flag("-dir", value="segments", repeats=True),
    Flag("-params", value="k1=v1&k2=v2..."),
    Flag("-noCommit"),
    Flag("-deleteGone"),
    Flag("-filter"),
    Flag("-normalize"),
    Flag("-addBinaryContent"),
    Flag("-base64"),
)


def run(args: list[str], context: JobContext) -> int:
    """Runs the job on all complete segments and reports its counters."""
    arguments = parse(args, FLAGS, usage=USAGE, least=0 if args else 1)
    paths = [as_path(name) for name in arguments.positional]
    crawldb = None if arguments["-nocrawldb"] or not paths else paths.pop(0)
    segments = segments_at(paths, map(as_path, arguments["-dir"] or ()))
    for segment in segments:
        segment.check()
        if not segment.path.is_dir():
            log.error("Input path does not exist: %s", segment.path)
    segments = [segment for segment in segments if segment.path.is_dir() and segment.is_complete()]
    if not segments:
        fail("No indexable segments passed as arguments. At least one segment is required!", USAGE)
    options = IndexOptions(
        linkdb=None if arguments["-linkdb"] is None else as_path(arguments["-linkdb"]),
        delete_gone=arguments["-deleteGone"],
        filtering=arguments["-filter"],
        normalize=arguments["-normalize"],
        add_binary_content=arguments["-addBinaryContent"],
        base64=arguments["-base64"],
        no_commit=arguments["-noCommit"],
        params=arguments["-params"],
    )
    counters = index(crawldb, [segment.path for segment in segments], options, context=context)
    context.report("Indexer", counters)
    return 0
