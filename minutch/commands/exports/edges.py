"""`minutch export edges`: the links of a crawl as CSV, a link a line, as Gephi imports it and
networkx reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import polars as pl

from minutch.commands.arguments import Flag, parse
from minutch.inspect.query.crawl import open_crawl
from minutch.inspect.query.graph import BY_HOST, edges
from minutch.inspect.query.results import csv_lines
from minutch.job import Counters, JobContext
from minutch.work.tables.textparts import output_file

USAGE: Final = """export edges <crawl> <file> [-hosts]
\tcrawl\tthe folder of a crawl that has a linkdb
\tfile\ta new CSV file: Source, Target and Label, the link's words
\t-hosts\tlinks between hosts: Source, Target and Weight, the number of links"""
FLAGS: Final = (Flag(BY_HOST),)
_NAMES: Final = {"source": "Source", "target": "Target", "anchor": "Label", "weight": "Weight"}


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0; 255 and an error."""
    given = parse(args, FLAGS, usage=USAGE, least=2, most=2)
    crawl, path = open_crawl(given.positional[0]), Path(given.positional[1])
    rows = edges(crawl, by_host=given[BY_HOST])
    rows = rows.rename({name: _NAMES[name] for name in rows.collect_schema()})
    counters = Counters({"links": 0})
    with output_file(path) as new, new.open("wb") as file:
        frames = rows.collect_batches(maintain_order=True, engine="streaming")
        for text in csv_lines(_counted(frames, counters), rows.collect_schema()):
            file.write(text.encode("utf-8", "replace"))
    context.report("EdgesExport", counters)
    return 0


def _counted(frames: Iterator[pl.DataFrame], counters: Counters) -> Iterator[pl.DataFrame]:
    for frame in frames:
        counters.add("links", len(frame))
        yield frame
