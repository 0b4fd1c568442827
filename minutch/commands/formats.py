"""Lists the modules that read or write each format, for the commands `export` and `import`.

A module has USAGE, FLAGS and `run(args, context) -> exit code`, as a command has; args are the
words after the format.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

from minutch.commands.arguments import fail
from minutch.job import JobContext
from minutch.processwide import command_line


@dataclass(frozen=True)
class FileFormat:
    """A format: the module, imported only when it is needed, and a line that describes it."""

    module: str
    help: str


EXPORTS: Mapping[str, FileFormat] = {
    "arc": FileFormat(
        "minutch.commands.exports.arc",
        "ARC files of version 1, as in the Common Crawl data set of 2012",
    ),
    "cdxj": FileFormat("minutch.commands.exports.cdxj", "the index of a web archive"),
    "commoncrawl": FileFormat(
        "minutch.commands.exports.commoncrawl",
        "texts and metadata as in Common Crawl's data set of 2012",
    ),
    "edges": FileFormat(
        "minutch.commands.exports.edges",
        "the links between pages or hosts as CSV, for Gephi and networkx",
    ),
    "graphml": FileFormat(
        "minutch.commands.exports.graphml", "the links between pages or hosts as GraphML"
    ),
    "legacy": FileFormat(
        "minutch.commands.exports.legacy", "segments in the formats of Nutch 0.4 and 0.5"
    ),
    "parquet": FileFormat(
        "minutch.commands.exports.parquet", "the tables of a crawl, for DuckDB, Spark and pandas"
    ),
    "wacz": FileFormat(
        "minutch.commands.exports.wacz",
        "a web archive with its index and page list in one file, for replay",
    ),
    "warc": FileFormat(
        "minutch.commands.exports.warc", "a web archive: requests, responses, revisits, texts"
    ),
    "wat": FileFormat(
        "minutch.commands.exports.wat",
        "metadata of each record of a web archive as JSON (Common Crawl)",
    ),
    "wet": FileFormat("minutch.commands.exports.wet", "the text of pages (Common Crawl)"),
}
IMPORTS: Mapping[str, FileFormat] = {
    "warc": FileFormat(
        "minutch.commands.imports.archives",
        "WARC files, plain or compressed: pages, redirects, revisits",
    ),
    "arc": FileFormat(
        "minutch.commands.imports.archives",
        "ARC files, the format of the Internet Archive and Common Crawl until 2012",
    ),
    "wacz": FileFormat("minutch.commands.imports.archives", "WACZ files: the WARC files in them"),
    "cdxj": FileFormat(
        "minutch.commands.imports.archives",
        "CDXJ or CDX files: the records that they refer to",
    ),
    "legacy": FileFormat(
        "minutch.commands.imports.legacy", "segments of Nutch 0.4 to 0.7; also makes a CrawlDb"
    ),
}


FORMATS: Mapping[str, Mapping[str, FileFormat]] = {"export": EXPORTS, "import": IMPORTS}
"""Formats by command."""


def usage(command: str, rest: str, formats: Mapping[str, FileFormat]) -> str:
    """Returns the usage of `export` or `import`."""
    lines = [f"  {name:<12} {format.help}" for name, format in formats.items()]
    return "\n".join(
        [
            f"{command} <format> {rest}",
            *lines,
            "",
            f"`{command_line(f'help {command} <format>')}` shows the options of a format.",
        ]
    )


def run_format(
    args: list[str], formats: Mapping[str, FileFormat], usage: str, context: JobContext
) -> int:
    """Runs the module of the format that the first word names. Raises UsageError."""
    if not args:
        fail("", usage)
    name, *rest = args
    if name not in formats:
        fail(f"unknown format {name}: expected one of {', '.join(formats)}", usage)
    code: int = import_module(formats[name].module).run(rest, context)
    return code
