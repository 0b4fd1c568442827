"""export arc: the pages of segments as ARC files, where Common Crawl put them.

    <out>/segment/<segment's time, ms>/<first page's time, ms>_<number>.arc.gz     -layout
    parse-output (2012)
    <out>/<yyyy>/<MM>/<dd>/<number>/<first page's time, ms>_<number>.arc.gz        -layout crawl-001
    (2008 to 2010)

An ARC record has the answer of the server, so pages without content have none. The head is as it
was stored (store.http.headers), fitted to the body; where none was stored, one is made and says so
(`X-Crawler-Head`). ARC keeps neither requests, nor that a page is cut off, nor milliseconds.
"""

from __future__ import annotations

import logging
from typing import Final

from minutch.archives.arcexporter import CRAWL_001, PARSE_OUTPUT, export
from minutch.archives.captures import find_segments
from minutch.commands.arguments import Flag, parse
from minutch.commands.exports.segmentargs import DIR, given_segments
from minutch.job import JobContext
from minutch.warc.arcfile import DEFAULT_LIMIT

log = logging.getLogger(__name__)

USAGE: Final = """export arc <segment>... [-dir <segments>] <out> [options]
\t<segment>\ta segment, a folder of segments, or the folder of a crawl
\t-dir <segments>\tall segments in a folder
\t<out>\tthe new folder of the ARC files
\t-layout name\tparse-output: segment/<millis>/ (default), or crawl-001: yyyy/MM/dd/<number>/
\t-size bytes\tafter how many bytes the next file begins (default: 100000000)"""

FLAGS: Final = (
    DIR,
    Flag("-layout", value="name", choices=(PARSE_OUTPUT, CRAWL_001)),
    Flag("-size", value="bytes", convert=int),
)


def run(args: list[str], context: JobContext) -> int:
    """The command: 0 if done."""
    given = parse(args, FLAGS, usage=USAGE, least=1)
    paths, out = given_segments(given, USAGE)
    layout, size = given.get("-layout", PARSE_OUTPUT), given.get("-size", DEFAULT_LIMIT)
    counters = export(find_segments(paths), out, context, layout=layout, size=size)
    context.report("export arc", counters)
    return 0
