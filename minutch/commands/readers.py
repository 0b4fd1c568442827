"""Reads databases, segments and files, and prints what is asked for: readdb, readlinkdb,
readhostdb, readseg.

Source: CrawlDbReader, LinkDbReader, ReadHostDb, SegmentReader of org.apache.nutch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from minutch.commands import flow
from minutch.commands.arguments import Arguments, database, fail, parse
from minutch.commands.declaration import Command
from minutch.errors import UrlError
from minutch.job import JobContext
from minutch.paths import as_path
from minutch.terminal import counted

if TYPE_CHECKING:
    from minutch.cycle.crawldb.store import CrawlDb
    from minutch.cycle.linkdb.store import LinkDb
    from minutch.cycle.segment.readseg import ReadsegOptions

log = logging.getLogger(__name__)

# -- readdb ----------------------------------------------------------------------------------------


def readdb(args: list[str], context: JobContext) -> int:
    """Does one thing after the other: a line may name several, each with its own options."""
    command = flow.commands()["readdb"]
    if not args:
        fail("", command)
    # CrawlDbReader.run goes through its arguments and does each as it meets it.
    starts = [i for i, word in enumerate(args) if word in _MODES]
    if starts == [0]:
        fail("too few arguments: no <crawldb>", command)
    alone = replace(command, options=())
    path = database(parse(alone, args[: starts[0]] if starts else args)["crawldb"], "crawldb")
    if not starts:
        fail(f"say what to read: {', '.join(_MODES)}", command)
    # All are parsed before the first is answered: an error in the last one comes at once.
    asked = [
        (_MODES[args[start]], _of_mode(command, args[start], args[start:end]))
        for start, end in pairwise([*starts, len(args)])
    ]
    from minutch.cycle.crawldb.store import CrawlDb

    for answer, arguments in asked:
        answer(CrawlDb(path), arguments, context)
    return 0


def _of_mode(command: Command, mode: str, words: list[str]) -> Arguments:
    """Parses the words of a mode, which has those options that belong to it."""
    lines = ("-stdin", "-listen")
    own = {mode, *(lines if mode in lines else ())}
    options = tuple(one for one in command.options if one.name in own or one.of in own)
    return parse(replace(command, arguments=(), options=options), words)


def _stats(db: CrawlDb, arguments: Arguments, context: JobContext) -> None:
    from minutch.cycle.crawldb.stats import StatsOptions, readdb_stats

    stats = readdb_stats(db.path, StatsOptions(hosts=arguments["-sort"]), context=context)
    context.print(f"Statistics for CrawlDb: {db.path}")
    for line in stats.lines():
        context.print(line)


def _url(db: CrawlDb, arguments: Arguments, context: JobContext) -> None:
    context.print(entry(db, arguments["-url"]), end="")


def entry(db: CrawlDb, url: str) -> str:
    """Returns the entry of a URL as text."""
    datum = db.get(url)
    # CrawlDbReader.readUrl's words.
    return f"URL: {url}\n{'not found' if datum is None else datum}\n"


def _lines(db: CrawlDb, arguments: Arguments, context: JobContext) -> None:
    from minutch.commands.lineserver import answer_lines

    db.require_parts()
    answer_lines(arguments, lambda line: entry(db, line), context)


def _dump(db: CrawlDb, arguments: Arguments, context: JobContext) -> None:
    from minutch.cycle.crawldb.dump import ReaddbDumpOptions, readdb_dump

    options = arguments.made(ReaddbDumpOptions)
    counters = readdb_dump(db.path, arguments["-dump"], options, context=context)
    context.report("CrawlDb dump", counters)


def _top(db: CrawlDb, arguments: Arguments, context: JobContext) -> None:
    from minutch.cycle.crawldb.dump import TopOptions, readdb_top

    try:
        number, out, *least = arguments["-topN"]
        options = TopOptions(int(number), float(*least))
    except (TypeError, ValueError):
        words = " ".join(arguments["-topN"])
        arguments.fail(f"-topN: expected <nnnn> <out_dir> [<min>], found {words!r}")
    readdb_top(db.path, as_path(out), options, context=context)


def _duplicates(db: CrawlDb, arguments: Arguments, context: JobContext) -> None:
    from minutch.cycle.crawldb.dedup import DedupOptions, groups
    from minutch.records.crawldatum import STATUS_NAMES

    options = arguments.made(DedupOptions)
    found = pages = 0
    for duplicates in groups(db, options.group, options.order, options.near):
        context.print(f"{len(duplicates.members) + 1}\t{duplicates.stays}")
        for member in duplicates.members:
            context.print(f"\t{member.bits}\t{STATUS_NAMES[member.status]}\t{member.url}")
        found, pages = found + 1, pages + len(duplicates.members)
    log.info("CrawlDb duplicates: %s, %s", counted(found, "groups"), counted(pages, "duplicates"))


_MODES: Final[dict[str, Callable[[CrawlDb, Arguments, JobContext], None]]] = {
    "-stats": _stats,
    "-url": _url,
    "-dump": _dump,
    "-duplicates": _duplicates,
    "-listen": _lines,
    "-stdin": _lines,
    "-topN": _top,
}

# -- readlinkdb, readhostdb ------------------------------------------------------------------------


def readlinkdb(arguments: Arguments, context: JobContext) -> int:
    """Prints the links to a page, or dumps the LinkDb."""
    from minutch.cycle.linkdb.store import LinkDb

    db = LinkDb(database(arguments["linkdb"], "linkdb"))
    if arguments["-url"] is not None:
        context.print(inlinks(db, arguments["-url"]))
    elif arguments["-dump"] is not None:
        from minutch.cycle.linkdb.dump import LinkDumpOptions, readlinkdb_dump

        options = arguments.made(LinkDumpOptions)
        counters = readlinkdb_dump(db.path, arguments["-dump"], options, context=context)
        context.report("LinkDb dump", counters)
    elif arguments["-listen"] is not None or arguments["-stdin"]:
        from minutch.commands.lineserver import answer_lines

        db.require_parts()
        answer_lines(arguments, lambda url: inlinks(db, url), context)
    else:
        arguments.fail("say what to read: -dump or -url")
    return 0


def inlinks(db: LinkDb, url: str) -> str:
    """Returns the links to `url`, a line each, or that there are none. StoreError, FormatError."""
    found = db.get(url)
    if found is None:
        # LinkDbReader's words.
        return " - no link information.\n"
    return "".join(f"{link.to_string(db.layout)}\n" for link in found) + "\n"


def readhostdb(arguments: Arguments, context: JobContext) -> int:
    """Prints a record, nothing for an unknown host; or dumps the HostDb."""
    from minutch.cycle.hostdb.store import HostDb

    hostdb = database(arguments["hostdb"], "hostdb")
    if arguments["-get"] is not None:
        datum = HostDb(hostdb).get(_host(arguments))
        if datum is not None:
            context.print(datum)
        return 0
    if arguments["output"] is None:
        arguments.fail("say what to read: -get, or a folder to write to")
    from minutch.cycle.hostdb.dump import ReadHostDbOptions
    from minutch.cycle.hostdb.dump import readhostdb as job

    options = arguments.made(ReadHostDbOptions)
    context.report("ReadHostDb", job(hostdb, arguments["output"], options, context=context))
    return 0


def _host(arguments: Arguments) -> str:
    """Returns the host that `-get` names, by itself or by a URL."""
    from minutch.urls import parts

    word: str = arguments["-get"]
    try:
        # The usage of ReadHostDb says a URL, its look-up wants a host.
        return parts.parse(word).host.lower() if "://" in word else word
    except UrlError as exc:
        arguments.fail(f"-get: {exc}")


# -- readseg: different from Nutch on purpose, -list sorts by name and shows `?` for folders that do
# not exist instead of ending in an error; -get does not wait five seconds


def readseg(arguments: Arguments, context: JobContext) -> int:
    """Does what the first word says."""
    from minutch.cycle.segment.readseg import ReadsegOptions
    from minutch.cycle.segment.store import LAYOUTS

    first = next(iter(arguments.words), "")
    if first not in _READSEG:
        arguments.fail(f"say first what to do: {', '.join(_READSEG)}; found {first}")
    folders = [
        name
        # -nocontent, -nofetch, -noparse, -noparsedata ...
        for name in LAYOUTS
        if not arguments[f"-no{name.removeprefix('crawl_').replace('_', '')}"]
    ]
    options = ReadsegOptions(folders, recode=arguments["-recode"] or None)
    _READSEG[first](arguments, options, context)
    return 0


def _words(arguments: Arguments, *names: str) -> list[str]:
    for position, name in enumerate(names):
        if len(arguments.positional) <= position:
            arguments.fail(f"Missing required argument: <{name}>")
    return arguments.positional


def _dump_segment(arguments: Arguments, options: ReadsegOptions, context: JobContext) -> None:
    from minutch.cycle.segment.readseg import readseg_dump

    segment, output = _words(arguments, "segment_dir", "output")[:2]
    readseg_dump(as_path(segment), as_path(output), options, context=context)


def _list_segments(arguments: Arguments, options: ReadsegOptions, context: JobContext) -> None:
    from minutch.cycle.segment.readseg import readseg_list
    from minutch.cycle.segment.store import segments_at

    segments = segments_at(map(as_path, arguments.positional), arguments["-dir"] or ())
    context.print("NAME\t\tGENERATED\tFETCHER START\t\tFETCHER END\t\tFETCHED\tPARSED")
    for segment in segments:
        name = segment.name
        stats = readseg_list(segment.path, options)
        start = "?\t" if stats.start is None else _time(stats.start)
        end = "?" if stats.end is None else _time(stats.end)
        context.print(
            f"{name}\t{_count(stats.generated)}\t\t{start}\t{end}\t{_count(stats.fetched)}\t"
            f"{_count(stats.parsed)}"
        )


def _count(value: int | None) -> str:
    return "?" if value is None else str(value)


def _time(ms: int) -> str:
    """yyyy-MM-ddTHH:mm:ss, in UTC like all dates that minutch prints."""
    from minutch.hadoop.formats.javahash import date_time_to_string

    return date_time_to_string(ms, "T")


def _get_page(arguments: Arguments, options: ReadsegOptions, context: JobContext) -> None:
    from minutch.cycle.segment.readseg import readseg_get

    segment, url = _words(arguments, "segment_dir", "keyValue")[:2]
    for text in readseg_get(as_path(segment), url, options, context=context):
        context.print(text)


_READSEG: Final = {"-dump": _dump_segment, "-list": _list_segments, "-get": _get_page}
