"""readlinkdb: the links to one page, or all of a LinkDb as text.

    <url> TAB Inlinks: LF ( SP fromUrl: <url> SP anchor: <text> SP metadata: <metadata> LF )* LF

A dump has a part file for each reducer (mapreduce.job.reduces). What Nutch 1.20 wrote is printed as 1.20 prints it,
without metadata. Unlike in Nutch, which forgets it, -regex restricts the dump.
Matched: org.apache.nutch.crawl.LinkDbReader.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from minutch.arguments import Flag, fail, parse
from minutch.errors import ConfigError, StoreError, UsageError
from minutch.job import Counters, JobContext
from minutch.linkdb.store import LinkDb
from minutch.urls.javaregex import JavaRegex

log = logging.getLogger(__name__)

USAGE: Final = """LinkDbReader <linkdb> (-dump <out_dir> [-regex <regex>] | -url <url>)
\t-dump <out_dir>\twrite the whole LinkDb as text to the new directory <out_dir>
\t\t-regex <regex>\tonly URLs that match the expression as a whole
\t-url <url>\tprint the links to <url>"""

FLAGS: Final = (
    Flag("-dump", value="out_dir"),
    Flag("-regex", value="regex"),
    Flag("-url", value="url"),
)


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 and an error."""
    given = parse(args, FLAGS, usage=USAGE, least=1, most=1)
    db = LinkDb(Path(given.positional[0]))
    if given["-url"] is not None:
        print_links(db, given["-url"], context)
    elif given["-dump"] is not None:
        counters = dump(db, Path(given["-dump"]), context, given["-regex"])
        context.report("LinkDb dump", counters)
    else:
        fail("say what to read: -dump or -url", USAGE)
    return 0


def print_links(db: LinkDb, url: str, context: JobContext) -> None:
    """Print the links to `url`, or that nothing is known of them. Raises StoreError, FormatError."""
    inlinks = db.get(url)
    if inlinks is None:
        context.print(" - no link information.")
    else:
        for link in inlinks.java_order():
            context.print(link.to_string(db.layout))
        context.print()
    context.print()


def dump(db: LinkDb, out: Path, context: JobContext, regex: str | None = None) -> Counters:
    """Write the records of `db`, or those whose URL matches `regex`, as text to part files in the new directory `out`.

    Raises StoreError (no LinkDb, `out` exists), UsageError (the expression), FormatError (damage).
    """
    from minutch.linkdb.textdump import write_dump

    pattern = None if regex is None else _compiled(regex)
    log.info("LinkDb dump: starting")
    log.info("LinkDb dump: db: %s", db.path)
    if out.exists():
        raise StoreError(f"Output directory {out} already exists")
    counters = write_dump(db, out, context.conf, pattern)
    log.info("LinkDb dump: finished")
    return counters


def _compiled(regex: str) -> JavaRegex:
    try:
        return JavaRegex(regex)
    except ConfigError as exc:
        raise UsageError(f"-regex: {exc}") from exc
