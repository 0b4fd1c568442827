"""Reads the arguments of `minutch readdb`, and prints statistics, entries or groups of a CrawlDb.

    -stats [-sort]                              the table of `stats`, on standard output
    -url <url>                                  one entry, on standard output
    -dump <out_dir> [-format …] [selection]     all entries, or some, in the formats of
                                                `dump`
    -topN <nnnn> <out_dir> [<min>]              score and URL of the highest scores
    -duplicates [-near [bits]] …                the groups of pages that dedup makes, on standard
                                                output
    -listen <port> [-keepClientCnxOpen]         one entry for each line of a connection
    -stdin                                      one entry for each line of standard input

Several of these may follow one another on one line; they run in that order.
Source: org.apache.nutch.crawl.CrawlDbReader.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from minutch.commands.arguments import Arguments, Flag, database, fail, parse
from minutch.commands.dedupargs import criteria, near_bits
from minutch.commands.lineserver import LINE_FLAGS, answer_lines
from minutch.hadoop.stores import as_path
from minutch.job import JobContext
from minutch.records.crawldatum import STATUS_NAMES
from minutch.terminal import counted

if TYPE_CHECKING:
    from minutch.cycle.crawldb.store import CrawlDb

log = logging.getLogger(__name__)

USAGE: Final = """CrawlDbReader <crawldb> (-stats | -dump <out_dir> | -topN <nnnn> <out_dir> \
[<min>] | -url <url> | \
-listen <port>)
\t<crawldb>\tthe CrawlDb to read
\t-stats [-sort] \tprint statistics
\t\t[-sort]\tand for each status its hosts
\t-dump <out_dir> [-format normal|csv|crawldb|json]\twrite the entries to files in <out_dir>
\t\t[-format csv]\tas CSV
\t\t[-format normal]\tas text (the default)
\t\t[-format crawldb]\tas a CrawlDb's part files
\t\t[-format json]\tas JSON Lines
\t\t[-regex <expr>]\tonly URLs that match as a whole
\t\t[-retry <num>]\tonly entries with at least so many retries
\t\t[-status <status>]\tonly entries of this status
\t\t[-expr <expr>]\tonly entries for which the JEXL expression is true
\t\t[-sample <fraction>]\tonly a sample of about this size; the same URLs each time
\t-url <url>\tprint the entry of <url>
\t-topN <nnnn> <out_dir> [<min>]\twrite the <nnnn> URLs with the highest scores to a file in \
<out_dir>
\t\t[<min>]\tonly scores from this one up
\t-duplicates [-near [bits]]\tprint the groups of duplicates, the largest first: their size, the \
page that stays, \
and each page that dedup marks or has marked, by how many bits its signature differs
\t\t[-near [bits]], [-group <none|host|domain>], [-compareOrder <criteria>]\tas for dedup
\t-stdin\tprint the entries of URLs that come on standard input, one on each line
\t-listen <port> [-keepClientCnxOpen]\tanswer URLs that come over connections to <port> on this \
machine"""


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 for a wrong command line."""
    starts = [i for i, word in enumerate(args) if word in _COMMANDS]
    if starts == [0]:
        fail("too few arguments: no <crawldb>", USAGE)
    path = parse(
        args[: starts[0]] if starts else args, (), usage=USAGE, least=1, most=1
    ).positional[0]
    if not starts:
        fail(f"say what to read: {', '.join(_COMMANDS)}", USAGE)
    commands = [_COMMANDS[args[start]] for start in starts]
    words = [args[start:end] for start, end in pairwise([*starts, len(args)])]
    parsed = [
        parse(own, command.flags, usage=USAGE, most=0)
        for command, own in zip(commands, words, strict=True)
    ]
    from minutch.cycle.crawldb.store import CrawlDb

    for command, arguments in zip(commands, parsed, strict=True):
        command.run(CrawlDb(database(path, "crawldb")), arguments, context)
    return 0


def _stats(db: CrawlDb, arguments: Arguments, context: JobContext) -> None:
    from minutch.cycle.crawldb.stats import StatsOptions, readdb_stats

    stats = readdb_stats(db.path, StatsOptions(hosts=arguments["-sort"]), context=context)
    context.print(f"Statistics for CrawlDb: {db.path}")
    for line in stats.lines():
        context.print(line)


def _url(db: CrawlDb, arguments: Arguments, context: JobContext) -> None:
    context.print(answer(db, arguments["-url"]), end="")


def answer(db: CrawlDb, url: str) -> str:
    """Returns the entry of a URL as text."""
    datum = db.get(url)
    return f"URL: {url}\n{'not found' if datum is None else datum}\n"


def _listen(db: CrawlDb, arguments: Arguments, context: JobContext) -> None:
    db.require_parts()
    answer_lines(arguments, lambda line: answer(db, line), context)


def _dump(db: CrawlDb, arguments: Arguments, context: JobContext) -> None:
    from minutch.cycle.crawldb.dump import FORMATS, ReaddbDumpOptions, readdb_dump

    kind = arguments.get("-format", "normal")
    if kind not in FORMATS:
        fail(f"-format: expected one of {', '.join(FORMATS)}, found {kind!r}", USAGE)
    options = ReaddbDumpOptions(
        kind, *(arguments[name] for name in ("-regex", "-retry", "-status", "-expr", "-sample"))
    )
    counters = readdb_dump(db.path, as_path(arguments["-dump"]), options, context=context)
    context.report("CrawlDb dump", counters)


def _top(db: CrawlDb, arguments: Arguments, context: JobContext) -> None:
    from minutch.cycle.crawldb.dump import TopOptions, readdb_top

    try:
        number, out, *least = arguments["-topN"]
        options = TopOptions(int(number), float(*least))
    except (TypeError, ValueError):
        words = " ".join(arguments["-topN"])
        fail(f"-topN: expected <nnnn> <out_dir> [<min>], found {words!r}", USAGE)
    readdb_top(db.path, as_path(out), options, context=context)


def _duplicates(db: CrawlDb, arguments: Arguments, context: JobContext) -> None:
    from minutch.cycle.crawldb.dedup import GROUPS, groups

    group, order, near = (
        arguments.get("-group", "none"),
        criteria(arguments, USAGE),
        near_bits(arguments, USAGE),
    )
    if group not in GROUPS:
        fail(f"-group: expected none, host or domain, found {group!r}", USAGE)
    found = pages = 0
    for duplicates in groups(db, group, order, near):
        context.print(f"{len(duplicates.members) + 1}\t{duplicates.stays}")
        for member in duplicates.members:
            context.print(f"\t{member.bits}\t{STATUS_NAMES[member.status]}\t{member.url}")
        found, pages = found + 1, pages + len(duplicates.members)
    log.info("CrawlDb duplicates: %s, %s", counted(found, "groups"), counted(pages, "duplicates"))


class _Command(NamedTuple):
    run: Callable[[CrawlDb, Arguments, JobContext], None]
    flags: tuple[Flag, ...]


_COMMANDS: Final = {
    "-stats": _Command(_stats, (Flag("-stats"), Flag("-sort"))),
    "-url": _Command(_url, (Flag("-url", value="url"),)),
    "-dump": _Command(
        _dump,
        (
            Flag("-dump", value="out_dir"),
            Flag("-format", value="format"),
            Flag("-regex", value="expr"),
            Flag("-retry", value="num", convert=int),
            Flag("-status", value="status"),
            Flag("-expr", value="expr"),
            Flag("-sample", value="fraction", convert=float),
        ),
    ),
    "-duplicates": _Command(
        _duplicates,
        (
            Flag("-duplicates"),
            Flag("-near", value="[bits]", convert=int),
            Flag("-group", value="none|host|domain"),
            Flag("-compareOrder", value="criteria"),
        ),
    ),
    "-listen": _Command(_listen, LINE_FLAGS),
    "-stdin": _Command(_listen, LINE_FLAGS),
    "-topN": _Command(_top, (Flag("-topN", value="nnnn", many=True),)),
}
"""The command's word -> what it does, and its flags."""
