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
    example: str = ""
    usage_exit: int = FAILED
    live: bool = False


WHOLE = "whole"
CRAWL = "crawl"
DATABASES = "databases"
SEGMENTS = "segments"
INDEX = "index"
CHECKS = "checks"
SHELL = "shell"

GROUPS = {
    WHOLE: "All of it",
    CRAWL: "The crawl cycle, in order",
    DATABASES: "Databases",
    INDEX: "The index",
    SEGMENTS: "Segments and files",
    CHECKS: "Looking at one thing",
    SHELL: "The installation",
}

# fmt: off
COMMANDS: dict[str, tuple[Command, ...]] = {
    WHOLE: (
        Command("init", "minutch.console.init", "",
                "", "conf/, seeds/", "make a folder for a crawl: settings, URL rules and a seed list to fill in",
                "minutch init my-crawl"),
        Command("crawl", "minutch.crawl.crawl", "",
                "seed list", "crawldb, linkdb, segments",
                "rounds of generate, fetch, parse, updatedb, invertlinks, dedup",
                "minutch crawl seeds/ crawl/ 3", usage_exit=1, live=True),
    ),
    CRAWL: (
        Command("inject", "minutch.crawldb.inject", "org.apache.nutch.crawl.Injector",
                "seed list, crawldb", "crawldb", "put the URLs of a seed list into the crawldb",
                "minutch inject crawl/crawldb seeds/"),
        Command("generate", "minutch.fetchlist.generate", "org.apache.nutch.crawl.Generator",
                "crawldb", "segment: crawl_generate", "make a segment with the list of pages that are due",
                "minutch generate crawl/crawldb crawl/segments -topN 1000"),
        Command("freegen", "minutch.fetchlist.freegen", "org.apache.nutch.tools.FreeGenerator",
                "URL list", "segment: crawl_generate", "make a segment from a list of URLs, without a crawldb",
                "minutch freegen urls/ crawl/segments"),
        Command("fetch", "minutch.fetch.fetch", "org.apache.nutch.fetcher.Fetcher",
                "segment: crawl_generate", "segment: crawl_fetch, content", "fetch the pages of a segment",
                "minutch fetch crawl/segments/20260101120000"),
        Command("parse", "minutch.parse.parse", "org.apache.nutch.parse.ParseSegment",
                "segment: content", "segment: crawl_parse, parse_data, parse_text",
                "find text, metadata and links in the fetched pages",
                "minutch parse crawl/segments/20260101120000"),
        Command("updatedb", "minutch.crawldb.updatedb", "org.apache.nutch.crawl.CrawlDb",
                "segments: crawl_fetch, crawl_parse; crawldb", "crawldb",
                "bring the results of segments into the crawldb",
                "minutch updatedb crawl/crawldb -dir crawl/segments"),
        Command("invertlinks", "minutch.linkdb.invertlinks", "org.apache.nutch.crawl.LinkDb",
                "segments: parse_data; linkdb", "linkdb", "collect who links to each page",
                "minutch invertlinks crawl/linkdb -dir crawl/segments"),
        Command("dedup", "minutch.crawldb.dedup", "org.apache.nutch.crawl.DeduplicationJob",
                "crawldb", "crawldb", "mark pages with equal content as duplicates",
                "minutch dedup crawl/crawldb -group host", usage_exit=1),
    ),
    DATABASES: (
        Command("readdb", "minutch.crawldb.readdb", "org.apache.nutch.crawl.CrawlDbReader",
                "crawldb", "stdout or a folder", "statistics, dump, top pages or one entry of a crawldb",
                "minutch readdb crawl/crawldb -stats"),
        Command("mergedb", "minutch.crawldb.mergedb", "org.apache.nutch.crawl.CrawlDbMerger",
                "crawldbs", "crawldb", "merge crawldbs into a new one",
                "minutch mergedb all/crawldb one/crawldb two/crawldb"),
        Command("readlinkdb", "minutch.linkdb.readlinkdb", "org.apache.nutch.crawl.LinkDbReader",
                "linkdb", "stdout or a folder", "dump of a linkdb, or the links to one page",
                "minutch readlinkdb crawl/linkdb -url https://www.example.org/"),
        Command("mergelinkdb", "minutch.linkdb.mergelinkdb", "org.apache.nutch.crawl.LinkDbMerger",
                "linkdbs", "linkdb", "merge linkdbs into a new one",
                "minutch mergelinkdb all/linkdb one/linkdb two/linkdb"),
        Command("fsck", "minutch.fsck.fsck", "",
                "crawl folder", "", "whether databases and segments are whole and agree; -repair mends them",
                "minutch fsck crawl/"),
        Command("unlock", "minutch.console.unlock", "",
                "crawl folder or database", "", "remove the locks of commands that no longer run",
                "minutch unlock crawl/"),
    ),
    INDEX: (
        Command("index", "minutch.index.index", "org.apache.nutch.indexer.IndexingJob",
                "crawldb, linkdb, segments", "index writers", "send the pages of segments to search engines or files",
                "minutch index crawl/crawldb -linkdb crawl/linkdb -dir crawl/segments"),
        Command("clean", "minutch.index.clean", "org.apache.nutch.indexer.CleaningJob",
                "crawldb", "index writers", "delete from the index what is gone or a duplicate",
                "minutch clean crawl/crawldb", usage_exit=1),
    ),
    SEGMENTS: (
        Command("readseg", "minutch.segment.readseg", "org.apache.nutch.segment.SegmentReader",
                "segments", "stdout or a folder", "list segments, dump one, or show one page of it",
                "minutch readseg -list -dir crawl/segments"),
        Command("text", "minutch.segment.text", "",
                "any Hadoop file", "stdout", "print SequenceFiles, MapFiles and folders of them as text or JSON",
                "minutch text crawl/linkdb/current -json"),
    ),
    CHECKS: (
        Command("parsechecker", "minutch.parse.parsechecker", "org.apache.nutch.parse.ParserChecker",
                "a URL", "stdout", "fetch and parse one page and show what comes out",
                "minutch parsechecker -dumpText https://www.example.org/"),
        Command("indexchecker", "minutch.index.indexchecker", "org.apache.nutch.indexer.IndexingFiltersChecker",
                "a URL", "stdout", "fetch and parse one page and show the document that would be indexed",
                "minutch indexchecker https://www.example.org/"),
        Command("filterchecker", "minutch.plugin.filterchecker", "org.apache.nutch.net.URLFilterChecker",
                "URLs on stdin", "stdout", "which URLs pass the filters",
                "echo https://www.example.org/ | minutch filterchecker -stdin"),
        Command("normalizerchecker", "minutch.plugin.normalizerchecker", "org.apache.nutch.net.URLNormalizerChecker",
                "URLs on stdin", "stdout", "what the normalizers make of URLs",
                "echo HTTP://www.Example.org:80/a/.. | minutch normalizerchecker -stdin"),
        Command("robotsparser", "minutch.fetch.robotsparser", "org.apache.nutch.protocol.RobotRulesParser",
                "robots.txt, URL list", "stdout", "which URLs a robots.txt allows",
                "minutch robotsparser https://www.example.org/robots.txt urls.txt bot"),
        Command("showproperties", "minutch.console.showproperties", "org.apache.nutch.tools.ShowProperties",
                "configuration", "stdout", "all properties, their values, and which of them this version acts on",
                "minutch showproperties | grep fetcher"),
        Command("plugin", "minutch.plugin.run", "org.apache.nutch.plugin.PluginRepository",
                "plugins", "stdout", "list the plugins, or run the main function of one of a plugin's modules",
                "minutch plugin"),
    ),
    SHELL: (
        Command("warm", "minutch.console.warm", "",
                "kernels", "object code", "compile what jobs on whole databases run in, ahead of time",
                "minutch warm"),
        Command("completion", "minutch.console.completion", "",
                "", "stdout", "a script that completes commands and options in bash, zsh or fish",
                'eval "$(minutch completion bash)"', usage_exit=1),
    ),
}
# fmt: on

REPLACED = {"solrindex": "index", "solrdedup": "dedup", "solrclean": "clean"}
"""Commands that Nutch refuses too, and their successors."""

_HOSTS = "`minutch readdb CRAWLDB -stats -sort` counts by host"
_NO_HOSTDB = "generate.max.count limits pages by host"
_NO_WEBGRAPH = "scoring-opic gives scores while crawling; Nutch's own webgraph reads the same segments"

MISSING = {
    "domainstats": ("util.DomainStatistics", _HOSTS),
    "protocolstats": ("util.ProtocolStatusStatistics", "`minutch crawl` shows why pages failed"),
    "crawlcomplete": ("util.CrawlCompletionStats", _HOSTS),
    "mergesegs": (
        "segment.SegmentMerger",
        "updatedb and invertlinks take many at once: -dir SEGMENTS",
    ),
    "updatehostdb": ("hostdb.UpdateHostDb", _NO_HOSTDB),
    "readhostdb": ("hostdb.ReadHostDb", _NO_HOSTDB),
    "sitemap": ("util.SitemapProcessor", "list the sitemap's URLs in a seed file and inject them"),
    "webgraph": ("scoring.webgraph.WebGraph", _NO_WEBGRAPH),
    "linkrank": ("scoring.webgraph.LinkRank", _NO_WEBGRAPH),
    "scoreupdater": ("scoring.webgraph.ScoreUpdater", _NO_WEBGRAPH),
    "nodedumper": ("scoring.webgraph.NodeDumper", "`minutch readlinkdb LINKDB -dump OUT` has the links to each page"),
    "dump": ("tools.FileDumper", "`minutch readseg -dump SEGMENT OUT` writes a segment as text"),
    "commoncrawldump": ("tools.CommonCrawlDataDumper", "`minutch text SEGMENT/content -json` prints the pages as JSON"),
    "warc": ("tools.warc.WARCExporter", "`minutch text SEGMENT/content -json` prints the pages as JSON"),
    "junit": ("org.junit.runner.JUnitCore", "there is no Java here; `bin/test` runs the tests"),
    "startserver": ("service.NutchServer", "Nutch 1.23 has none either; `minutch crawl` takes all its settings by -D"),
}
"""Commands of Nutch that this version lacks: their classes, and what there is instead."""


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


def missing(name: str) -> tuple[str, str] | None:
    """A command of Nutch that is not here, by name or class: its name, and what there is instead."""
    for command, (java, instead) in MISSING.items():
        if name.removeprefix("org.apache.nutch.") in (command, java):
            return command, instead
    return None


def suggestions(name: str) -> list[str]:
    """Commands whose names come close."""
    from difflib import get_close_matches

    return get_close_matches(name.lower(), commands(), 3, 0.6)
