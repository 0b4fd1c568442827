"""Reads the arguments of `minutch mergesegs`; `cycle.segment.mergesegs` does the work."""

from __future__ import annotations

import logging
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.segment.mergesegs import MergesegsOptions, mergesegs
from minutch.cycle.segment.store import segments_in
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """SegmentMerger output_dir (-dir segments | seg1 seg2 ...) [-filter] [-normalize] \
[-slice NNNN]
\toutput_dir\tthe directory in which the merged segment, or its slices, are made; it may not exist \
yet
\t-dir segments\tall segments in this directory
\tseg1 seg2 ...\tthe segments to merge
\t-filter\t\tleave out URLs that the filters reject
\t-normalize\tnormalize the URLs
\t-slice NNNN\tmake several segments, each with NNNN URLs"""

FLAGS: Final = (
    Flag("-dir", "segments", repeats=True),
    Flag("-filter"),
    Flag("-normalize"),
    Flag("-slice", "NNNN", convert=int),
)


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 and an error; then there is no output."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1)
    output, *paths = map(as_path, arguments.positional)
    segments = list(paths)
    for directory in arguments.get("-dir", []):
        segments += [segment.path for segment in segments_in(as_path(directory))]
    if not segments:
        fail("No input segments.", USAGE)
    counters = mergesegs(
        output,
        segments,
        MergesegsOptions(
            filtering=arguments["-filter"],
            normalize=arguments["-normalize"],
            slice_size=arguments["-slice"] or 0,
        ),
        context=context,
    )
    context.report("SegmentMerger", counters)
    return 0
