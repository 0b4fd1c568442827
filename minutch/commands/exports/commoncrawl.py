"""export commoncrawl: writes texts and metadata as in Common Crawl's data set of 2012
(`minutch/archives/dataset/`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.archives.dataset.datasetexport import URLS, DatasetOptions, export_commoncrawl
from minutch.commands.arguments import Flag, fail, parse
from minutch.commands.exports.segmentargs import DIR, paths_and_output
from minutch.job import JobContext

USAGE: Final = """export commoncrawl <segment>... [-dir <segments>] <out> [options]
\t<segment>\ta parsed segment, a folder of segments, or the folder of a crawl
\t-dir <segments>\tall segments in a folder
\t<out>\tthe folder of the data set; <out>/segment/<millis> must not exist
\t-urls <n>\tthe number of URLs in a file (25000)
\t-arcs <folder>\tthe ARC files of the segment, <millis>_<n>.arc.gz: metadata then \
have the positions of pages in them; once for each segment"""
FLAGS: Final = (
    DIR,
    Flag("-urls", value="n", convert=int),
    Flag("-arcs", value="folder", repeats=True),
)


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1)
    paths, out = paths_and_output(arguments, USAGE)
    urls = arguments.get("-urls", URLS)
    if urls < 1:
        fail(f"-urls: expected 1 or more, found {urls}", USAGE)
    options = DatasetOptions(urls, [Path(folder) for folder in arguments.get("-arcs", [])])
    counters = export_commoncrawl(paths, out, options, context=context)
    context.report("Common Crawl data set", counters)
    return 0
