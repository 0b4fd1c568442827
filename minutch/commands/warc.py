"""warc: the pages of segments as WARC files (org.apache.nutch.tools.warc.WARCExporter).

    <output>/part-r-00000.seg-NNNNN.attempt-00000.warc[.gz]

`warc.output.segment.size` says after how many bytes the next file begins; with
`mapreduce.output.fileoutputformat .compress` each record is a gzip member. Each fetch of a page is
a capture: a page of two segments is written twice.

Different from Nutch on purpose: `WARC-IP-Address` is the address, not `IP`; cut-off pages are
marked; resource records have a type, and all records digests; what no URI may hold is encoded,
where Nutch left the page out; of a page in several segments Nutch wrote one fetch, by chance.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from minutch.archives.warcexporter import export
from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    PARSE_DATA,
    PARSE_TEXT,
    Segment,
    segments_in,
)
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """WARCExporter <output> (<segment> ... | -dir <segments>) [options]
\t<output>\tthe new folder of the WARC files
\t-dir <segments>\tall segments in a folder
\t-onlySuccessfulResponses\tonly pages that were fetched, or that had not changed
\t-includeParseData\twith a metadata record for each parsed page
\t-includeParseText\twith the text of each parsed page, as a conversion record"""

FLAGS: Final = (
    Flag("-dir", value="segments", repeats=True),
    Flag("-onlySuccessfulResponses"),
    Flag("-includeParseData"),
    Flag("-includeParseText"),
)
ONLY_SUCCESSFUL_PROPERTY: Final = "warc.exporter.only.successful.responses"


def run(args: list[str], context: JobContext) -> int:
    """The command: 0 if done, 255 for a wrong command line."""
    if len(args) < 2:
        fail("", USAGE)
    given = parse(args, FLAGS, usage=USAGE, least=1)
    output, *paths = given.positional
    segments = [Segment(Path(path)) for path in paths]
    for folder in given.get("-dir", []):
        segments += segments_in(Path(folder))
    if not segments:
        fail("no segments", USAGE)
    folders = [CONTENT, CRAWL_FETCH]
    folders += [PARSE_DATA] * given["-includeParseData"] + [PARSE_TEXT] * given["-includeParseText"]
    only = given["-onlySuccessfulResponses"] or context.conf.get_boolean(
        ONLY_SUCCESSFUL_PROPERTY, False
    )
    log.info("WARCExporter: starting")
    counters = export(segments, Path(output), folders, context, only_successful=bool(only))
    context.report("WARCExporter", counters)
    log.info("WARCExporter: finished")
    return 0
