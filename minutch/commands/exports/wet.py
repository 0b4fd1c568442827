"""`export wet`: the text of pages, as the Common Crawl publishes it: one conversion record a page.

    <out>/<prefix>-NNNNN.warc.wet.gz     WARC 1.0; its records refer to those of
                                         <prefix>-NNNNN.warc.gz (`export warc`)

Source: files of the Common Crawl of 2024, and org.archive.extract.WETExtractorOutput, which made
them.
"""

from __future__ import annotations

from typing import Final

from minutch.archives.web.wetfiles import WetFiles
from minutch.commands.exports.companions import export_derived
from minutch.commands.exports.segmentargs import FLAGS as COMMON
from minutch.commands.exports.segmentargs import OPTIONS
from minutch.job import JobContext

USAGE: Final = f"""export wet <segment>... [-dir <segments>] <out> [options]
{OPTIONS}
\t<out>\tthe new folder of the WET files"""
FLAGS: Final = COMMON


def run(args: list[str], context: JobContext) -> int:
    """The command: 0 if done."""
    return export_derived("export wet", args, FLAGS, USAGE, context, WetFiles)
