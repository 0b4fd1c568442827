"""export commoncrawl: texts and metadata of segments as in Common Crawl's data set of 2012.

    <out>/segment/<millis>/textData-nnnnn     SequenceFile <Text, Text>, gzip: URL → title,
                                              description and text
    <out>/segment/<millis>/metadata-nnnnn     SequenceFile <Text, Text>, gzip: URL → JSON
                                              (`metadata`)

`millis` is the date in the segment's name. Every URL that was asked for has its line of metadata;
HTML pages and feeds have a text, in the file of the same number and in the same order.
conf/commoncrawl-metadata.schema.json describes the JSON. Pages are read in processes of their own,
as in a parse; texts are those that it found. A page that it could not parse, or refused, is not
read.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from minutch.archives.captures import segments_at
from minutch.archives.dataset.datasetexport import FOLDERS, URLS, export
from minutch.commands.arguments import Flag, fail, parse
from minutch.commands.exports.segmentargs import DIR, given_segments
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """export commoncrawl <segment>... [-dir <segments>] <out> [-urls <n>] [-arcs <folder>]
\t<segment>\ta parsed segment, a folder of segments, or the folder of a crawl
\t-dir <segments>\tall segments in a folder
\t<out>\tthe folder of the data set; <out>/segment/<millis> must not be there yet
\t-urls <n>\tURLs in a file (25000)
\t-arcs <folder>\tthe ARC files of the segment, <millis>_<n>.arc.gz: the metadata say where in them a page lies; \
once for each segment"""  # noqa: E501
FLAGS: Final = (
    DIR,
    Flag("-urls", value="n", convert=int),
    Flag("-arcs", value="folder", repeats=True),
)


def run(args: list[str], context: JobContext) -> int:
    """The command: 0 if done, 255 for a wrong command line."""
    given = parse(args, FLAGS, usage=USAGE, least=1)
    paths, out = given_segments(given, USAGE)
    urls = given.get("-urls", URLS)
    if urls < 1:
        fail(f"-urls: expected 1 or more, found {urls}", USAGE)
    arcs = [Path(folder) for folder in given.get("-arcs", [])]
    segments = segments_at(paths, FOLDERS)
    if arcs and len(arcs) != len(segments):
        fail(f"-arcs: expected one for each of {len(segments)} segments, found {len(arcs)}", USAGE)
    counters = export(segments, out, context, urls=urls, arcs=arcs)
    context.report("Common Crawl data set", counters)
    return 0
