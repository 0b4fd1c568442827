"""`minutch export graphml`: the links of a crawl as GraphML, which networkx, Gephi and others read.

Nodes have numbers as ids and, as `label`, the URL or host; edges have the link's words or the
number of links. Source: http://graphml.graphdrawing.org/specification.html
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

import polars as pl

from minutch.commands.arguments import Flag, parse
from minutch.inspect.query.crawl import open_crawl
from minutch.inspect.query.graph import BY_HOST, edges
from minutch.job import Counters, JobContext
from minutch.terminal import visible
from minutch.work.tables.textparts import output_file

USAGE: Final = """export graphml <crawl> <file> [-hosts]
\tcrawl\tthe folder of a crawl that has a linkdb
\tfile\ta new GraphML file: pages, and the links between them with their words
\t-hosts\thosts, and the numbers of links from one to another"""
FLAGS: Final = (Flag(BY_HOST),)
_HEAD: Final = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="label" for="node" attr.name="label" attr.type="string"/>
<key id="{name}" for="edge" attr.name="{name}" attr.type="{kind}"/>
<graph edgedefault="directed">
"""
_TAIL: Final = "</graph>\n</graphml>\n"


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0; 255 and an error."""
    given = parse(args, FLAGS, usage=USAGE, least=2, most=2)
    crawl, path = open_crawl(given.positional[0]), Path(given.positional[1])
    with output_file(path) as new, new.open("wb") as file:
        links = edges(crawl, by_host=given[BY_HOST]).collect(engine="streaming")
        nodes = pl.concat([links["source"], links["target"]]).unique().sort()
        for line in _lines(links, nodes):
            file.write(line.encode("utf-8", "replace"))
    context.report("GraphmlExport", Counters({"nodes": len(nodes), "links": len(links)}))
    return 0


def _lines(links: pl.DataFrame, nodes: pl.Series) -> Iterator[str]:
    name = links.columns[2]
    yield _HEAD.format(name=name, kind="int" if links[name].dtype.is_integer() else "string")
    for number, label in enumerate(nodes):
        yield f'<node id="n{number}"><data key="label">{_text(label)}</data></node>\n'
    ends = [
        column.replace_strict(nodes, pl.Series(range(len(nodes))))
        for column in (links["source"], links["target"])
    ]
    for source, target, value in zip(*ends, links[name], strict=True):
        yield (
            f'<edge source="n{source}" target="n{target}"><data'
            f' key="{name}">{_text(str(value))}</data></edge>\n'
        )
    yield _TAIL


def _text(value: str) -> str:
    """A text as XML has it; control characters, which it can't have, are written out."""
    return escape(visible(value).replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd"))
