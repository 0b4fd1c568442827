"""Reads the arguments of `minutch invertlinks`; `cycle.linkdb.invertlinks` does the work."""

from __future__ import annotations

import logging
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.linkdb.invertlinks import InvertOptions, invertlinks
from minutch.cycle.segment.store import segments_at
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """LinkDb <linkdb> (-dir <segmentsDir> | <seg1> <seg2> ...) [-force] [-noNormalize] \
[-noFilter]
\tlinkdb\tthe LinkDb to make or to add to
\t-dir segmentsDir\tthe directory of the segments
\tseg1 seg2 ...\tthe segments
\t-force\tgo past another's lock on the LinkDb
\t-noNormalize\tdon't normalize the URLs of links
\t-noFilter\tdon't filter the URLs of links"""

FLAGS: Final = (
    Flag("-dir", value="segmentsDir", repeats=True),
    Flag("-force"),
    Flag("-noNormalize"),
    Flag("-noFilter"),
)


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 (and an error) where the LinkDb stays as it was."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1, ignore_case=True)
    linkdb, *segments = map(as_path, arguments.positional)
    directories = arguments.get("-dir", [])
    if not segments and not directories:
        fail("no segments given", USAGE)
    given = segments_at(segments, map(as_path, directories))
    counters = invertlinks(
        linkdb,
        [segment.path for segment in given],
        InvertOptions(
            normalize=not arguments["-noNormalize"],
            filtering=not arguments["-noFilter"],
            force=arguments["-force"],
        ),
        context=context,
    )
    context.report("LinkDb", counters)
    return 0
