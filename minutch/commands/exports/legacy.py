"""export legacy: segments as Nutch 0.4 or 0.5 had them.

    <out>/<segment>/    0.5: fetchlist, fetcher (fetcher_output if it is not parsed), content,
                        parse_text, parse_data 0.4: fetchlist, fetcher, fetcher_content,
                        fetcher_text

Pages stand in the order of their URLs. Left out, and counted: redirects and URLs that were not
asked for, for which the old formats have no word. Strings end after 21,845 characters, as there.
"""

from __future__ import annotations

import logging
from typing import Final

from minutch.archives.captures import segments_at
from minutch.archives.legacy.legacyexport import export_legacy
from minutch.commands.arguments import Flag, fail, parse
from minutch.commands.exports.segmentargs import DIR, given_segments
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """export legacy <segment>... [-dir <segments>] <out> [-version 0.4|0.5]
\t<segment>\ta segment, a folder of segments, or the folder of a crawl
\t-dir <segments>\tall segments in a folder
\t<out>\tthe new folder, which gets a folder for each of them
\t-version 0.4|0.5\tthe Nutch whose format it is (0.5)"""

FLAGS: Final = (
    DIR,
    Flag("-version", value="version", choices=("0.4", "0.5")),
)


def run(args: list[str], context: JobContext) -> int:
    """The command: 0 if done, 255 for a wrong command line."""
    given = parse(args, FLAGS, usage=USAGE, least=1)
    paths, out = given_segments(given, USAGE)
    segments = segments_at(paths)
    if len({segment.name for segment in segments}) < len(segments):
        fail("segments of the same name", USAGE)
    counters = export_legacy(segments, out, given.get("-version", "0.5"), context)
    context.report("Export of old segments", counters)
    return 0
