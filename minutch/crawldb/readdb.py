"""readdb: look into a CrawlDb: statistics, one URL, a dump, the highest scores.

    -stats [-sort]                              the table of `statistics`, on standard output
    -url <url>                                  one entry, on standard output
    -dump <out_dir> [-format …] [filters]       all entries, or some, in the formats of `dump`
    -topN <nnnn> <out_dir> [<min>]              score and URL of the highest scores

Commands may follow one another on one line.
Matched: org.apache.nutch.crawl.CrawlDbReader.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from minutch.arguments import fail
from minutch.crawldb.store import CrawlDb
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """CrawlDbReader <crawldb> (-stats | -dump <out_dir> | -topN <nnnn> <out_dir> [<min>] | -url <url>)
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
\t\t[-sample <fraction>]\tonly a random sample of this size
\t-url <url>\tprint the entry of <url>
\t-topN <nnnn> <out_dir> [<min>]\twrite the <nnnn> URLs with the highest scores to a file in <out_dir>
\t\t[<min>]\tonly scores from this one up"""


class _Words:
    """The command line, word by word."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._words)

    def peek(self) -> str | None:
        return self._words[self._at] if self else None

    def take(self, after: str, convert: Callable[[str], Any] = str) -> Any:
        """The next word, converted; a usage error if there is none or it is not of the kind."""
        word = self.peek()
        if word is None:
            fail(f"{after} needs a value", USAGE)
        self._at += 1
        try:
            return convert(word)
        except ValueError:
            fail(f"{after}: can't use {word!r}", USAGE)


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 for a wrong command line."""
    if len(args) < 2:
        fail("", USAGE)
    db, words = CrawlDb(Path(args[0])), _Words(args[1:])
    while words:
        word = words.take("")
        command = _COMMANDS.get(word)
        if command is None:
            fail(f"wrong argument {word}", USAGE)
        command(db, words, context)
    return 0


def _stats(db: CrawlDb, words: _Words, context: JobContext) -> None:
    hosts = words.peek() == "-sort"
    if hosts:
        words.take("-stats")
    print_stats(db, context, hosts=hosts)


def print_stats(db: CrawlDb, context: JobContext, *, hosts: bool = False) -> None:
    """Print the statistics of a CrawlDb, with `hosts` for each status by host. StoreError where there is none."""
    from minutch.crawldb.statistics import Statistics

    log.info("CrawlDb statistics start: %s", db.path)
    stats = Statistics(hosts=hosts)
    with context.progress("readdb -stats", db.estimate) as progress:
        for part, path in enumerate(db.require_parts()):
            stats.begin_part((path / "data").stat().st_size)
            for frame in db.scan_part(part):
                stats.add(frame)
                progress.advance(len(frame))
    context.print(f"Statistics for CrawlDb: {db.path}")
    for line in stats.lines(context.conf):
        context.print(line)
    log.info("CrawlDb statistics: done")


def _url(db: CrawlDb, words: _Words, context: JobContext) -> None:
    url = words.take("-url")
    datum = db.get(url)
    context.print(f"URL: {url}")
    context.print("not found" if datum is None else datum)


def _dump(db: CrawlDb, words: _Words, context: JobContext) -> None:
    from minutch.crawldb.dump import Selection, dump
    from minutch.crawldb.dumpformats import FORMATS

    out = Path(words.take("-dump"))
    chosen: dict[str, Any] = {}
    converters: dict[str, Callable[[str], Any]] = {"-retry": int, "-sample": float}
    while words.peek() in ("-format", "-regex", "-retry", "-status", "-expr", "-sample"):
        name = words.take("-dump")
        chosen[name[1:]] = words.take(name, converters.get(name, str))
    kind = chosen.pop("format", "normal")
    if kind not in FORMATS:
        fail(f"-format: expected one of {', '.join(FORMATS)}, found {kind!r}", USAGE)
    log.info("CrawlDb dump: starting")
    log.info("CrawlDb db: %s", db.path)
    counters = dump(db, out, context, kind, Selection(**chosen))
    context.report("CrawlDb dump", counters)
    log.info("CrawlDb dump: done")


def _top(db: CrawlDb, words: _Words, context: JobContext) -> None:
    from minutch.crawldb.top import write_top

    count, out = words.take("-topN", int), Path(words.take("-topN"))
    least = 0.0
    if words and not str(words.peek()).startswith("-"):
        least = words.take("-topN", float)
    log.info("CrawlDb topN: starting (topN=%d, min=%s)", count, least)
    log.info("CrawlDb db: %s", db.path)
    written = write_top(db, count, least, out, context)
    log.info("CrawlDb topN: done, %d URLs", written)


_COMMANDS: Final[dict[str, Callable[[CrawlDb, _Words, JobContext], None]]] = {
    "-stats": _stats,
    "-url": _url,
    "-dump": _dump,
    "-topN": _top,
}
