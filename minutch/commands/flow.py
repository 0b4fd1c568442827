"""Lists all commands in the order of a crawl: input, output, help and module of each.

    seed list → inject → crawldb → generate → crawl_generate → fetch → content → parse → parse_data
                            ↑                                                               │
                            └──────────────────── updatedb ←───────────────────────────────┤
                                                                 linkdb ← invertlinks ←─────┘

The command line, its help, the table in docs/crawling and tests use this table. Exit codes are
defined here, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FAILED = 255
"""Exit code of a command that failed; Java's -1."""
FAILED_LATE = 254
"""Exit code of some of Nutch's commands that fail after reading their arguments; Java's -2."""
UNKNOWN = 1
"""Exit code of an unknown command."""
INTERRUPTED = 130
"""Exit code after Ctrl-C (128 + SIGINT)."""
BROKEN_PIPE = 141
"""Exit code if the reader of the output has closed it (128 + SIGPIPE)."""


@dataclass(frozen=True)
class Command:
    """A command, whose module is imported when it runs.

    `java` is its class in Nutch, without the package. `module_name` is its module in
    `minutch.commands`, if that differs from the command's name. `usage_exit` is the exit code for
    wrong arguments, `error_exit` that for other errors. A `live` command shows progress itself, so
    the terminal shows no log but warnings.
    """

    name: str
    java: str
    reads: str
    writes: str
    help: str
    example: str = ""
    module_name: str = ""
    usage_exit: int = FAILED
    error_exit: int = FAILED
    live: bool = False

    @property
    def module(self) -> str:
        """Name of the module, which has `USAGE`, `FLAGS` and `run(args, context) -> exit code`."""
        return f"minutch.commands.{self.module_name or self.name}"

    @property
    def nutch_class(self) -> str:
        """Name of the class that Nutch runs; empty if Nutch lacks the command."""
        return f"org.apache.nutch.{self.java}" if self.java else ""


WHOLE = "whole"
CRAWL = "crawl"
DATABASES = "databases"
SCORES = "scores"
SEGMENTS = "segments"
EXPORT = "export"
INDEX = "index"
CHECKS = "checks"
SHELL = "shell"

GROUPS = {
    WHOLE: "The whole crawl",
    CRAWL: "The crawl cycle, in order",
    DATABASES: "Databases",
    SCORES: "Scores from links, in order",
    INDEX: "The index",
    SEGMENTS: "Segments and files",
    EXPORT: "Pages for other programs",
    CHECKS: "Checks and explanations",
    SHELL: "The installation",
}

REMOTE_PREFIXES = (
    "hdfs://",
    "viewfs://",
    "webhdfs://",
    "s3a://",
    "abfs://",
    "abfss://",
    "gs://",
    "ofs://",
    "o3fs://",
)
"""Prefixes of paths on Hadoop's file systems (`minutch.hadoop.stores`)."""
REMOTE_COMMANDS = frozenset(
    (
        "crawl",
        "inject",
        "generate",
        "freegen",
        "fetch",
        "parse",
        "updatedb",
        "invertlinks",
        "dedup",
        "mergedb",
        "mergelinkdb",
        "mergesegs",
        "index",
        "readdb",
        "readlinkdb",
        "readseg",
        "domainstats",
        "protocolstats",
        "crawlcomplete",
    )
)
"""Commands that accept such paths."""

# fmt: off
COMMANDS: dict[str, tuple[Command, ...]] = {
    WHOLE: (
        Command("init", "",
                reads="", writes="conf/, seeds/",
                help="create a folder for a crawl: settings, URL rules and a seed list to fill in",
                example="minutch init my-crawl"),
        Command("crawl", "",
                reads="seed list", writes="crawldb, linkdb, segments",
                help="run rounds of generate, fetch, parse, updatedb, invertlinks, dedup",
                example="minutch crawl seeds/ crawl/ 3",
                usage_exit=1, live=True),
    ),
    CRAWL: (
        Command("inject", "crawl.Injector",
                reads="seed list, crawldb", writes="crawldb",
                help="add the URLs of a seed list to the crawldb",
                example="minutch inject crawl/crawldb seeds/"),
        Command("generate", "crawl.Generator",
                reads="crawldb", writes="segment: crawl_generate",
                help="make a segment with the fetch list of the pages that are due",
                example="minutch generate crawl/crawldb crawl/segments -topN 1000"),
        Command("freegen", "tools.FreeGenerator",
                reads="URL list", writes="segment: crawl_generate",
                help="make a segment from a list of URLs, without a crawldb",
                example="minutch freegen urls/ crawl/segments"),
        Command("fetch", "fetcher.Fetcher",
                reads="segment: crawl_generate", writes="segment: crawl_fetch, content",
                help="fetch the pages of a segment",
                example="minutch fetch crawl/segments/20260101120000"),
        Command("parse", "parse.ParseSegment",
                reads="segment: content", writes="segment: crawl_parse, parse_data, parse_text",
                help="extract text, metadata and links from the fetched pages",
                example="minutch parse crawl/segments/20260101120000"),
        Command("updatedb", "crawl.CrawlDb",
                reads="segments: crawl_fetch, crawl_parse; crawldb", writes="crawldb",
                help="update the crawldb with the results of segments",
                example="minutch updatedb crawl/crawldb -dir crawl/segments"),
        Command("invertlinks", "crawl.LinkDb",
                reads="segments: parse_data; linkdb", writes="linkdb",
                help="collect the links to each page",
                example="minutch invertlinks crawl/linkdb -dir crawl/segments"),
        Command("dedup", "crawl.DeduplicationJob",
                reads="crawldb", writes="crawldb",
                help="mark pages with equal or nearly equal content as duplicates",
                example="minutch dedup crawl/crawldb -group host",
                usage_exit=1),
    ),
    DATABASES: (
        Command("readdb", "crawl.CrawlDbReader",
                reads="crawldb", writes="stdout or a folder",
                help="show statistics, a dump, the top pages or one entry of a crawldb",
                example="minutch readdb crawl/crawldb -stats"),
        Command("mergedb", "crawl.CrawlDbMerger",
                reads="crawldbs", writes="crawldb",
                help="merge crawldbs into a new one",
                example="minutch mergedb all/crawldb one/crawldb two/crawldb"),
        Command("readlinkdb", "crawl.LinkDbReader",
                reads="linkdb", writes="stdout or a folder",
                help="dump a linkdb, or show the links to one page",
                example="minutch readlinkdb crawl/linkdb -url https://www.example.org/"),
        Command("mergelinkdb", "crawl.LinkDbMerger",
                reads="linkdbs", writes="linkdb",
                help="merge linkdbs into a new one",
                example="minutch mergelinkdb all/linkdb one/linkdb two/linkdb"),
        Command("updatehostdb", "hostdb.UpdateHostDb",
                reads="crawldb, hostdb, scores of hosts", writes="hostdb",
                help="count pages by host, and look up hosts in the DNS",
                example="minutch updatehostdb -hostdb crawl/hostdb -crawldb crawl/crawldb"),
        Command("readhostdb", "hostdb.ReadHostDb",
                reads="hostdb", writes="stdout or a folder",
                help="dump a hostdb, or show the record of one host",
                example="minutch readhostdb crawl/hostdb -get www.example.org"),
        Command("sitemap", "util.SitemapProcessor",
                reads="sitemaps; hostdb, URL list; crawldb", writes="crawldb",
                help="add the URLs of sitemaps to the crawldb",
                example="minutch sitemap crawl/crawldb -sitemapUrls sitemaps/"),
        Command("domainstats", "util.DomainStatistics",
                reads="crawldbs", writes="text files",
                help="count the fetched pages of each host, domain or suffix",
                example="minutch domainstats crawl/crawldb stats host",
                usage_exit=0),
        Command("protocolstats", "util.ProtocolStatusStatistics",
                reads="crawldbs", writes="text files",
                help="count the status codes of HTTP",
                example="minutch protocolstats crawl/crawldb codes",
                usage_exit=0),
        Command("crawlcomplete", "util.CrawlCompletionStats",
                reads="crawldbs", writes="text files",
                help="count the fetched and unfetched pages of each host or domain",
                example="minutch crawlcomplete -inputDirs db1,db2 -outputDir done -mode host",
                usage_exit=0),
        Command("report", "",
                reads="crawl folder", writes="HTML file",
                help="write a page about a crawl, with plots and tables",
                example="minutch report crawl/"),
        Command("sql", "",
                reads="crawl folder", writes="stdout or a file",
                help="query a crawl in SQL, from its files",
                example='minutch sql crawl "select host, count(*) from pages group by host"'),
        Command("audit", "",
                reads="crawl folder", writes="stdout or CSV files",
                help="find what is wrong with a site: broken links, titles, redirects, sitemaps …",
                example="minutch audit crawl/"),
        Command("check", "",
                reads="crawl folder", writes="crawl folder: checks",
                help="ask for images, styles, scripts and other sites' pages that pages name",
                example="minutch check crawl/ --external"),
        Command("simulate", "",
                reads="crawldb, segments", writes="",
                help="show how fetch schedules would work, given the changes seen so far",
                example="minutch simulate crawl/ -schedule adaptive -days 90"),
        Command("fsck", "",
                reads="crawl folder", writes="",
                help="check databases and segments; -repair mends them",
                example="minutch fsck crawl/"),
        Command("unlock", "",
                reads="crawl folder or database", writes="",
                help="remove the locks of commands that no longer run",
                example="minutch unlock crawl/"),
    ),
    SCORES: (
        Command("webgraph", "scoring.webgraph.WebGraph",
                reads="segments: parse_data; webgraphdb", writes="webgraphdb",
                help="build the graph of links between pages, or add segments to it",
                example="minutch webgraph -webgraphdb crawl/graph -segmentDir crawl/segments",
                error_exit=FAILED_LATE),
        Command("linkrank", "scoring.webgraph.LinkRank",
                reads="webgraphdb", writes="webgraphdb",
                help="score each page by the pages that link to it",
                example="minutch linkrank -webgraphdb crawl/graph",
                error_exit=FAILED_LATE),
        Command("scoreupdater", "scoring.webgraph.ScoreUpdater",
                reads="webgraphdb, crawldb", writes="crawldb",
                help="write these scores to the crawldb",
                example="minutch scoreupdater -crawldb crawl/crawldb -webgraphdb crawl/graph"),
        Command("nodedumper", "scoring.webgraph.NodeDumper",
                reads="webgraphdb", writes="a folder",
                help="list the pages, hosts or domains with the most links or highest scores",
                example="minutch nodedumper -topn 20 -webgraphdb crawl/graph -output top/",
                error_exit=FAILED_LATE),
    ),
    INDEX: (
        Command("index", "indexer.IndexingJob",
                reads="crawldb, linkdb, segments", writes="index writers",
                help="send the pages of segments to search engines or files",
                example="minutch index crawl/crawldb -linkdb crawl/linkdb -dir crawl/segments"),
        Command("clean", "indexer.CleaningJob",
                reads="crawldb", writes="index writers",
                help="delete gone pages and duplicates from the index",
                example="minutch clean crawl/crawldb",
                usage_exit=1),
        Command("search", "",
                reads="local index", writes="stdout",
                help="search the local index of a crawl",
                example="minutch search crawl/index words"),
        Command("serve", "",
                reads="crawl folder", writes="",
                help="serve a search page for a crawl, with cached pages, links and history",
                example="minutch serve crawl/ -port 8080"),
    ),
    SEGMENTS: (
        Command("readseg", "segment.SegmentReader",
                reads="segments", writes="stdout or a folder",
                help="list segments, dump one, or show one page of it",
                example="minutch readseg -list -dir crawl/segments"),
        Command("mergesegs", "segment.SegmentMerger",
                reads="segments", writes="segments",
                help="merge segments into one or several, with the newest version of each page",
                example="minutch mergesegs crawl/merged -dir crawl/segments"),
        Command("text", "",
                reads="any Hadoop file", writes="stdout",
                help="print SequenceFiles, MapFiles and folders of them as text or JSON",
                example="minutch text crawl/linkdb/current -json"),
    ),
    EXPORT: (
        Command("dump", "tools.FileDumper",
                reads="segments: content", writes="a folder",
                help="write the content of each page to a file of its own",
                example="minutch dump -outputDir pages/ -segment crawl/segments"),
        Command("commoncrawldump", "tools.CommonCrawlDataDumper",
                reads="segments: content; linkdb", writes="a folder",
                help="write each page with its headers as CBOR, or all pages as WARC",
                example="minutch commoncrawldump -outputDir pages/ -segment crawl/segments"),
        Command("warc", "tools.warc.WARCExporter",
                reads="segments: content, crawl_fetch", writes="WARC files",
                help="write the pages of segments as a web archive, as Nutch does",
                example="minutch warc archive/ -dir crawl/segments -includeParseText"),
        Command("export", "",
                reads="segments", writes="files of another format",
                help="write segments, or the tables of a crawl, in another format",
                example="minutch export warc crawl/segments/* archive/"),
        Command("import", "",
                reads="files of another format", writes="segments",
                help="make segments of an archive, as if its pages had been fetched",
                example="minutch import warc archive/*.warc.gz crawl/segments",
                module_name="import_"),
        Command("arc2segment", "",
                reads="ARC files", writes="segments: content, crawl_fetch",
                help="make segments of the pages in ARC files",
                example="minutch arc2segment arcs/ crawl/segments"),
    ),
    CHECKS: (
        Command("explain", "",
                reads="crawldb, linkdb, segments", writes="stdout",
                help="explain why a URL was not fetched, or what is left to do in a crawl",
                example="minutch explain https://www.example.org/ crawl/"),
        Command("parsechecker", "parse.ParserChecker",
                reads="a URL", writes="stdout",
                help="fetch and parse one page, and show the result",
                example="minutch parsechecker -dumpText https://www.example.org/"),
        Command("indexchecker", "indexer.IndexingFiltersChecker",
                reads="a URL", writes="stdout",
                help="fetch and parse one page, and show the document to index",
                example="minutch indexchecker https://www.example.org/"),
        Command("filterchecker", "net.URLFilterChecker",
                reads="URLs on stdin", writes="stdout",
                help="show which URLs pass the filters",
                example="echo https://www.example.org/ | minutch filterchecker -stdin"),
        Command("normalizerchecker", "net.URLNormalizerChecker",
                reads="URLs on stdin", writes="stdout",
                help="show how the normalizers change URLs",
                example="echo HTTP://www.Example.org:80/a/.. | minutch normalizerchecker -stdin"),
        Command("robotsparser", "protocol.RobotRulesParser",
                reads="robots.txt, URL list", writes="stdout",
                help="show which URLs a robots.txt allows",
                example="minutch robotsparser https://www.example.org/robots.txt urls.txt bot"),
        Command("showproperties", "tools.ShowProperties",
                reads="configuration", writes="stdout",
                help="list all properties, their values, and which of them this version uses",
                example="minutch showproperties | grep fetcher"),
        Command("plugin", "plugin.PluginRepository",
                reads="plugins", writes="stdout",
                help="list the plugins, or run the main function of one of a plugin's modules",
                example="minutch plugin"),
    ),
    SHELL: (
        Command("init-plugin", "",
                reads="", writes="a package with its test",
                help="write a plugin to begin with: a package that works, with its test",
                example="minutch init-plugin urlfilter-length --point url-filter",
                module_name="init_plugin", usage_exit=1),
        Command("completion", "",
                reads="", writes="stdout",
                help="print a script that completes commands and options in bash, zsh or fish",
                example='eval "$(minutch completion bash)"',
                usage_exit=1),
        Command("startserver", "service.NutchServer",
                reads="crawl folders", writes="crawl folders",
                help="start Nutch's REST service, which runs jobs for HTTP clients",
                example="minutch startserver -port 8081",
                usage_exit=1),
    ),
}

CLASSES: tuple[Command, ...] = (
    Command("scoring.webgraph.LinkDumper", "scoring.webgraph.LinkDumper",
            reads="webgraphdb", writes="webgraphdb: linkdump",
            help="dump the nodes that link to each page, for look-ups",
            example="minutch scoring.webgraph.LinkDumper -webgraphdb crawl/graph",
            module_name="classes.linkdumper", error_exit=FAILED_LATE),
    Command("scoring.webgraph.LinkDumper$Reader", "scoring.webgraph.LinkDumper$Reader",
            reads="webgraphdb: linkdump", writes="stdout",
            help="show the nodes that link to a page",
            example="minutch 'scoring.webgraph.LinkDumper$Reader' crawl/graph http://x/",
            module_name="classes.linkdumpreader", usage_exit=0),
    Command("scoring.webgraph.NodeReader", "scoring.webgraph.NodeReader",
            reads="webgraphdb", writes="stdout",
            help="show the node of a page: numbers of links, and score",
            example="minutch scoring.webgraph.NodeReader -webgraphdb graph -url http://x/",
            module_name="classes.nodereader", usage_exit=0),
    Command("scoring.webgraph.LoopReader", "scoring.webgraph.LoopReader",
            reads="webgraphdb: loops", writes="stdout",
            help="show the loop of a page, as found by older versions of Nutch",
            example="minutch scoring.webgraph.LoopReader -webgraphdb graph -url http://x/",
            module_name="classes.loopreader", usage_exit=0),
    Command("crawl.AdaptiveFetchSchedule", "crawl.AdaptiveFetchSchedule",
            reads="", writes="stdout",
            help="show when the adaptive schedule fetches a page that changes every 30 days",
            example="minutch crawl.AdaptiveFetchSchedule",
            module_name="classes.adaptivefetchschedule"),
    Command("crawl.MimeAdaptiveFetchSchedule", "crawl.MimeAdaptiveFetchSchedule",
            reads="", writes="stdout",
            help="show the same for the schedule by media type",
            example="minutch crawl.MimeAdaptiveFetchSchedule",
            module_name="classes.mimeadaptivefetchschedule"),
    Command("crawl.TextProfileSignature", "crawl.TextProfileSignature",
            reads="a folder of texts", writes="stdout",
            help="print the text profile signature of each file",
            example="minutch crawl.TextProfileSignature texts/",
            module_name="classes.textprofilesignature"),
    Command("util.EncodingDetector", "util.EncodingDetector",
            reads="an HTML file", writes="stdout",
            help="detect the charset of a page",
            example="minutch util.EncodingDetector page.html",
            module_name="classes.encodingdetector", usage_exit=1),
    Command("util.URLUtil", "util.URLUtil",
            reads="a URL", writes="stdout",
            help="print the registered domain of a URL",
            example="minutch util.URLUtil https://www.example.co.uk/",
            module_name="classes.urlutil", usage_exit=0),
    Command("tools.arc.ArcSegmentCreator", "tools.arc.ArcSegmentCreator",
            reads="ARC files", writes="segments: content, crawl_fetch",
            help="make segments of the pages in ARC files",
            example="minutch tools.arc.ArcSegmentCreator arcs/ crawl/segments",
            module_name="arc2segment"),
    Command("tools.ResolveUrls", "tools.ResolveUrls",
            reads="URL list", writes="stdout",
            help="check which hosts have an address",
            example="minutch tools.ResolveUrls -urls urls.txt",
            module_name="classes.resolveurls"),
)
"""Commands that Nutch runs by class name only."""
# fmt: on

REPLACED = {"solrindex": "index", "solrdedup": "dedup", "solrclean": "clean"}
"""Commands that Nutch has removed, too, and their successors."""

ENDED = {
    "tools.DmozParser": "the directory closed in 2017; `inject` takes any list of URLs",
}
"""Classes that have no purpose any more, and alternatives."""

MISSING = {
    "junit": ("org.junit.runner.JUnitCore", "there is no Java here; `bin/test` runs the tests"),
}
"""Commands of Nutch that this version lacks: their classes, and alternatives."""


def commands() -> dict[str, Command]:
    """Returns all commands by name."""
    return {command.name: command for group in COMMANDS.values() for command in group}


def find(name: str) -> Command | None:
    """Returns the command of a name, or of a class of Nutch, with or without its package."""
    for command in (*commands().values(), *CLASSES):
        java = command.nutch_class
        if name == command.name or (
            java and name in (java, java.removeprefix("org.apache.nutch."))
        ):
            return command
    return None


def missing(name: str) -> tuple[str, str] | None:
    """Returns name and alternative of a command of Nutch that this version lacks, by name or
    class.
    """
    for command, (java, instead) in MISSING.items():
        if name.removeprefix("org.apache.nutch.") in (command, java):
            return command, instead
    return None


def ended(name: str) -> str | None:
    """Returns the alternative to a class that has no purpose any more; None for other names."""
    return ENDED.get(name.removeprefix("org.apache.nutch."))


def suggestions(name: str, others: Sequence[str] = ()) -> list[str]:
    """Returns commands, and names among `others`, that are similar to `name`."""
    from difflib import get_close_matches

    return get_close_matches(name.lower(), [*commands(), *others], 3, 0.6)
