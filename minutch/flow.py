"""The flow of a crawl as one table: every command, what it reads, what it writes, and where it is written.

    seed list → inject → crawldb → generate → crawl_generate → fetch → content → parse → parse_data
                            ↑                                                               │
                            └──────────────────── updatedb ←───────────────────────────────┤
                                                                 linkdb ← invertlinks ←─────┘

The CLI, the help, the README's table and the tests all go by it. Exit codes have their home here, too.
"""

from __future__ import annotations

from dataclasses import dataclass

FAILED = 255
"""Exit code of a command that failed; Java's -1."""
UNKNOWN = 1
"""Exit code for a command that does not exist."""
INTERRUPTED = 130
"""Exit code after Ctrl-C (128 + SIGINT)."""
NOBODY_READS = 141
"""Exit code when whoever read the output has gone (128 + SIGPIPE)."""


@dataclass(frozen=True)
class Command:
    """One command; `module` has `run(args, context) -> exit code` and is imported only when the command runs.

    `usage_exit` is the exit code for wrong arguments. A `live` command shows its progress itself: of the log only
    warnings go to the terminal.
    """

    name: str
    module: str
    nutch_class: str
    reads: str
    writes: str
    help: str
    usage_exit: int = FAILED
    live: bool = False


WHOLE = "whole"
CRAWL = "crawl"
DATABASES = "databases"
SEGMENTS = "segments"
CHECKS = "checks"

GROUPS = {
    WHOLE: "All of it",
    CRAWL: "The crawl cycle, in order",
    DATABASES: "Databases",
    SEGMENTS: "Segments and files",
    CHECKS: "Looking at one thing",
}

# fmt: off
COMMANDS: dict[str, tuple[Command, ...]] = {
    WHOLE: (
        Command("crawl", "minutch.crawl", "",
                "seed list", "crawldb, linkdb, segments", "crawl: rounds of the commands below, from generate to dedup",
                usage_exit=1, live=True),
    ),
    CRAWL: (
        Command("inject", "minutch.crawldb.inject", "org.apache.nutch.crawl.Injector",
                "seed list, crawldb", "crawldb", "put the URLs of a seed list into the crawldb"),
        Command("generate", "minutch.fetchlist.generate", "org.apache.nutch.crawl.Generator",
                "crawldb", "segment: crawl_generate", "make a segment with the list of pages that are due"),
        Command("freegen", "minutch.fetchlist.freegen", "org.apache.nutch.tools.FreeGenerator",
                "URL list", "segment: crawl_generate", "make a segment from a list of URLs, without a crawldb"),
        Command("fetch", "minutch.fetch.fetch", "org.apache.nutch.fetcher.Fetcher",
                "segment: crawl_generate", "segment: crawl_fetch, content", "fetch the pages of a segment"),
        Command("parse", "minutch.parse.parse", "org.apache.nutch.parse.ParseSegment",
                "segment: content", "segment: crawl_parse, parse_data, parse_text",
                "find text, metadata and links in the fetched pages"),
        Command("updatedb", "minutch.crawldb.updatedb", "org.apache.nutch.crawl.CrawlDb",
                "segments: crawl_fetch, crawl_parse; crawldb", "crawldb",
                "bring the results of segments into the crawldb"),
        Command("invertlinks", "minutch.linkdb.invertlinks", "org.apache.nutch.crawl.LinkDb",
                "segments: parse_data; linkdb", "linkdb", "collect who links to each page"),
        Command("dedup", "minutch.crawldb.dedup", "org.apache.nutch.crawl.DeduplicationJob",
                "crawldb", "crawldb", "mark pages with equal content as duplicates", usage_exit=1),
    ),
    DATABASES: (
        Command("readdb", "minutch.crawldb.readdb", "org.apache.nutch.crawl.CrawlDbReader",
                "crawldb", "stdout or a folder", "statistics, dump, top pages or one entry of a crawldb"),
        Command("mergedb", "minutch.crawldb.mergedb", "org.apache.nutch.crawl.CrawlDbMerger",
                "crawldbs", "crawldb", "merge crawldbs into a new one"),
        Command("readlinkdb", "minutch.linkdb.readlinkdb", "org.apache.nutch.crawl.LinkDbReader",
                "linkdb", "stdout or a folder", "dump of a linkdb, or the links to one page"),
        Command("mergelinkdb", "minutch.linkdb.mergelinkdb", "org.apache.nutch.crawl.LinkDbMerger",
                "linkdbs", "linkdb", "merge linkdbs into a new one"),
    ),
    SEGMENTS: (
        Command("readseg", "minutch.segment.readseg", "org.apache.nutch.segment.SegmentReader",
                "segments", "stdout or a folder", "list segments, dump one, or show one page of it"),
        Command("text", "minutch.segment.text", "",
                "any Hadoop file", "stdout", "print SequenceFiles, MapFiles and folders of them as text or JSON"),
    ),
    CHECKS: (
        Command("parsechecker", "minutch.parse.parsechecker", "org.apache.nutch.parse.ParserChecker",
                "a URL", "stdout", "fetch and parse one page and show what comes out"),
        Command("filterchecker", "minutch.plugin.filterchecker", "org.apache.nutch.net.URLFilterChecker",
                "URLs on stdin", "stdout", "which URLs pass the filters"),
        Command("normalizerchecker", "minutch.plugin.normalizerchecker", "org.apache.nutch.net.URLNormalizerChecker",
                "URLs on stdin", "stdout", "what the normalizers make of URLs"),
        Command("robotsparser", "minutch.fetch.robotsparser", "org.apache.nutch.protocol.RobotRulesParser",
                "robots.txt, URL list", "stdout", "which URLs a robots.txt allows"),
        Command("showproperties", "minutch.showproperties", "org.apache.nutch.tools.ShowProperties",
                "configuration", "stdout", "all properties, their values, and which of them this version acts on"),
        Command("warm", "minutch.warm", "",
                "kernels", "object code", "compile what jobs on whole databases run in, ahead of time"),
        Command("plugin", "minutch.plugin.run", "org.apache.nutch.plugin.PluginRepository",
                "plugins", "stdout", "list the plugins, or run the main function of one of a plugin's modules"),
    ),
}
# fmt: on

REPLACED = {
    "solrindex": "use index",
    "solrdedup": "use dedup",
    "solrclean": "use clean",
}
"""Commands that Nutch refuses too, and what to use instead."""


def commands() -> dict[str, Command]:
    """All commands by name."""
    return {command.name: command for group in COMMANDS.values() for command in group}


def find(name: str) -> Command | None:
    """The command of a name or of one of Nutch's class names, with or without its package."""
    for command in commands().values():
        java = command.nutch_class
        if name == command.name or (java and name in (java, java.removeprefix("org.apache.nutch."))):
            return command
    return None


def suggestions(name: str) -> list[str]:
    """Commands whose names come close."""
    from difflib import get_close_matches

    return get_close_matches(name.lower(), commands(), 3, 0.6)
