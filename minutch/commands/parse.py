"""`minutch parse`: parses the fetched pages of a segment (org.apache.nutch.parse.ParseSegment)."""

from __future__ import annotations

from typing import Final

from minutch.commands import arguments
from minutch.commands.arguments import Flag
from minutch.cycle.parse.parsesegment import ParseOptions, parse
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

USAGE: Final = """ParseSegment segment [-noFilter] [-noNormalize]
\tsegment\tthe segment whose pages are parsed
\t-noFilter\tdon't filter the URLs of links
\t-noNormalize\tdon't normalize the URLs of links"""
FLAGS: Final = (Flag("-noFilter"), Flag("-noNormalize"))


def run(args: list[str], context: JobContext) -> int:
    """Parses a segment; accepts its flags in any case, as Nutch does."""
    values = arguments.parse(args, FLAGS, usage=USAGE, least=1, ignore_case=True)
    options = ParseOptions(
        filter=False if values["-noFilter"] else None,
        normalize=False if values["-noNormalize"] else None,
    )
    counters = parse(as_path(values.positional[0]), options, context=context)
    if counters:
        context.report("ParseSegment", counters)
    return 0
