"""Reads the arguments of `minutch readlinkdb`; `cycle.linkdb.dump` does the work."""

from __future__ import annotations

import logging
from typing import Final

from minutch.commands.arguments import Flag, database, fail, parse
from minutch.commands.lineserver import LINE_FLAGS, answer_lines
from minutch.cycle.linkdb.dump import LinkDumpOptions, readlinkdb_dump
from minutch.cycle.linkdb.store import LinkDb
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """LinkDbReader <linkdb> (-dump <out_dir> [-regex <regex>] | -url <url> | -listen \
<port>)
\t-dump <out_dir>\twrite the whole LinkDb as text to the new directory <out_dir>
\t\t-regex <regex>\tonly URLs that match the expression as a whole
\t-url <url>\tprint the links to <url>
\t-stdin\tprint the links to URLs that come on standard input, one on each line
\t-listen <port> [-keepClientCnxOpen]\tanswer URLs that come over connections to <port> on this \
machine"""

FLAGS: Final = (
    Flag("-dump", value="out_dir"),
    Flag("-regex", value="regex"),
    Flag("-url", value="url"),
    *LINE_FLAGS,
)


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 and an error."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1, most=1)
    db = LinkDb(database(arguments.positional[0], "linkdb"))
    if arguments["-url"] is not None:
        context.print(answer(db, arguments["-url"]))
    elif arguments["-dump"] is not None:
        options = LinkDumpOptions(arguments["-regex"])
        counters = readlinkdb_dump(db.path, as_path(arguments["-dump"]), options, context=context)
        context.report("LinkDb dump", counters)
    elif arguments["-listen"] is not None or arguments["-stdin"]:
        db.require_parts()
        answer_lines(arguments, lambda url: answer(db, url), context)
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
