"""readlinkdb: the links to one page, or all of a LinkDb as text.

    <url> TAB Inlinks: LF ( SP fromUrl: <url> SP anchor: <text> SP metadata: <metadata> LF )* LF

A dump has a part file for each reducer (mapreduce.job.reduces). Links are printed in the order in
which they are stored; what Nutch 1.20 wrote as 1.20 prints it, without metadata. Unlike in Nutch,
which forgets it, -regex restricts the dump.

Source: org.apache.nutch.crawl.LinkDbReader.
"""

from __future__ import annotations

import logging
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.commands.lineserver import LINE_FLAGS, answer_lines
from minutch.cycle.linkdb.dump import LinkDumpOptions, readlinkdb_dump
from minutch.cycle.linkdb.store import LinkDb
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """LinkDbReader <linkdb> (-dump <out_dir> [-regex <regex>] | -url <url> | -listen <port>)
\t-dump <out_dir>\twrite the whole LinkDb as text to the new directory <out_dir>
\t\t-regex <regex>\tonly URLs that match the expression as a whole
\t-url <url>\tprint the links to <url>
\t-stdin\tprint the links to URLs that come on standard input, one on each line
\t-listen <port> [-keepClientCnxOpen]\tanswer URLs that come over connections to <port> on this machine"""  # noqa: E501

FLAGS: Final = (
    Flag("-dump", value="out_dir"),
    Flag("-regex", value="regex"),
    Flag("-url", value="url"),
    *LINE_FLAGS,
)


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 and an error."""
    given = parse(args, FLAGS, usage=USAGE, least=1, most=1)
    db = LinkDb(as_path(given.positional[0]))
    if given["-url"] is not None:
        context.print(answer(db, given["-url"]))
    elif given["-dump"] is not None:
        options = LinkDumpOptions(given["-regex"])
        counters = readlinkdb_dump(db.path, as_path(given["-dump"]), options, context=context)
        context.report("LinkDb dump", counters)
    elif given["-listen"] is not None or given["-stdin"]:
        db.require_parts()
        answer_lines(given, lambda url: answer(db, url), context)
    else:
        fail("say what to read: -dump or -url", USAGE)
    return 0


def answer(db: LinkDb, url: str) -> str:
    """Returns the links to `url`, a line each, or says that there is no entry. Raises StoreError,
    FormatError.
    """
    inlinks = db.get(url)
    if inlinks is None:
        return " - no link information.\n"
    return "".join(f"{link.to_string(db.layout)}\n" for link in inlinks) + "\n"
