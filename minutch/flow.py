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
FAILED_LATE = 254
"""That of some of Nutch's commands whose arguments were right; Java's -2."""
UNKNOWN = 1
"""Exit code for a command that does not exist."""
INTERRUPTED = 130
"""Exit code after Ctrl-C (128 + SIGINT)."""
NOBODY_READS = 141
"""Exit code when whoever read the output has gone (128 + SIGPIPE)."""


@dataclass(frozen=True)
class Command:
    """One command; `module` has `run(args, context) -> exit code` and is imported only when the command runs.

    `usage_exit` is the exit code for wrong arguments, `error_exit` that for other errors. A `live` command shows its
    progress itself: of the log only warnings go to the terminal.
    """

    name: str
    module: str
    nutch_class: str
    reads: str
    writes: str
    help: str
    example: str = ""
    usage_exit: int = FAILED
    error_exit: int = FAILED
    live: bool = False


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
    WHOLE: "All of it",
    CRAWL: "The crawl cycle, in order",
    DATABASES: "Databases",
    SCORES: "Scores from links, in order",
    INDEX: "The index",
    SEGMENTS: "Segments and files",
    EXPORT: "Pages for other programs",
    CHECKS: "Looking at one thing",
    SHELL: "The installation",
}

FAR = ("hdfs://", "viewfs://", "webhdfs://", "s3a://", "abfs://", "abfss://", "gs://", "ofs://", "o3fs://")
"""How paths on Hadoop's file systems begin (`minutch.stores`)."""
FAR_COMMANDS = frozenset(
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
"""The commands that take such paths."""

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
                "crawldb", "crawldb", "mark pages with equal or nearly equal content as duplicates",
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
        Command("updatehostdb", "minutch.hostdb.updatehostdb", "org.apache.nutch.hostdb.UpdateHostDb",
                "crawldb, hostdb, scores of hosts", "hostdb", "count pages by host, and look hosts up in the DNS",
                "minutch updatehostdb -hostdb crawl/hostdb -crawldb crawl/crawldb"),
        Command("readhostdb", "minutch.hostdb.readhostdb", "org.apache.nutch.hostdb.ReadHostDb",
                "hostdb", "stdout or a folder", "dump of a hostdb, or the record of one host",
                "minutch readhostdb crawl/hostdb -get www.example.org"),
        Command("sitemap", "minutch.hostdb.sitemap", "org.apache.nutch.util.SitemapProcessor",
                "sitemaps; hostdb, URL list; crawldb", "crawldb", "put the URLs of sitemaps into the crawldb",
                "minutch sitemap crawl/crawldb -sitemapUrls sitemaps/"),
        Command("domainstats", "minutch.crawldb.domainstats", "org.apache.nutch.util.DomainStatistics",
                "crawldbs", "text files", "how many pages of each host, domain or suffix were fetched",
                "minutch domainstats crawl/crawldb stats host", usage_exit=0),
        Command("protocolstats", "minutch.crawldb.protocolstats", "org.apache.nutch.util.ProtocolStatusStatistics",
                "crawldbs", "text files", "how often each status code of HTTP came",
                "minutch protocolstats crawl/crawldb codes", usage_exit=0),
        Command("crawlcomplete", "minutch.crawldb.crawlcomplete", "org.apache.nutch.util.CrawlCompletionStats",
                "crawldbs", "text files", "how many pages of each host or domain are fetched, and how many not yet",
                "minutch crawlcomplete -inputDirs db1,db2 -outputDir done -mode host", usage_exit=0),
        Command("report", "minutch.report.report", "",
                "crawl folder", "HTML file", "what came of a crawl: one page with plots and tables",
                "minutch report crawl/"),
        Command("sql", "minutch.query.sql", "",
                "crawl folder", "stdout or a file", "questions about a crawl in SQL, answered from its files",
                'minutch sql crawl "select host, count(*) from pages group by host"'),
        Command("simulate", "minutch.report.simulate", "",
                "crawldb, segments", "", "what fetch schedules would do in the next months, by the changes seen so far",
                "minutch simulate crawl/ -schedule adaptive -days 90"),
        Command("fsck", "minutch.fsck.fsck", "",
                "crawl folder", "", "whether databases and segments are whole and agree; -repair mends them",
                "minutch fsck crawl/"),
        Command("unlock", "minutch.console.unlock", "",
                "crawl folder or database", "", "remove the locks of commands that no longer run",
                "minutch unlock crawl/"),
    ),
    SCORES: (
        Command("webgraph", "minutch.webgraph.webgraph", "org.apache.nutch.scoring.webgraph.WebGraph",
                "segments: parse_data; webgraphdb", "webgraphdb",
                "make the graph of links between pages, or add segments to it",
                "minutch webgraph -webgraphdb crawl/graph -segmentDir crawl/segments", error_exit=FAILED_LATE),
        Command("linkrank", "minutch.webgraph.linkrank", "org.apache.nutch.scoring.webgraph.LinkRank",
                "webgraphdb", "webgraphdb", "score each page by the pages that link to it",
                "minutch linkrank -webgraphdb crawl/graph", error_exit=FAILED_LATE),
        Command("scoreupdater", "minutch.webgraph.scoreupdater", "org.apache.nutch.scoring.webgraph.ScoreUpdater",
                "webgraphdb, crawldb", "crawldb", "put these scores into the crawldb",
                "minutch scoreupdater -crawldb crawl/crawldb -webgraphdb crawl/graph"),
        Command("nodedumper", "minutch.webgraph.nodedumper", "org.apache.nutch.scoring.webgraph.NodeDumper",
                "webgraphdb", "a folder", "the pages, hosts or domains with most links or the highest scores",
                "minutch nodedumper -topn 20 -webgraphdb crawl/graph -output top/",
                error_exit=FAILED_LATE),
    ),
    INDEX: (
        Command("index", "minutch.index.index", "org.apache.nutch.indexer.IndexingJob",
                "crawldb, linkdb, segments", "index writers", "send the pages of segments to search engines or files",
                "minutch index crawl/crawldb -linkdb crawl/linkdb -dir crawl/segments"),
        Command("clean", "minutch.index.clean", "org.apache.nutch.indexer.CleaningJob",
                "crawldb", "index writers", "delete from the index what is gone or a duplicate",
                "minutch clean crawl/crawldb", usage_exit=1),
        Command("search", "minutch.search.search", "",
                "local index", "stdout", "find pages in the local index of a crawl",
                "minutch search crawl/index words"),
        Command("serve", "minutch.search.serve", "",
                "crawl folder", "", "a search page for a crawl, with cached pages, links and history",
                "minutch serve crawl/ -port 8080"),
    ),
    SEGMENTS: (
        Command("readseg", "minutch.segment.readseg", "org.apache.nutch.segment.SegmentReader",
                "segments", "stdout or a folder", "list segments, dump one, or show one page of it",
                "minutch readseg -list -dir crawl/segments"),
        Command("mergesegs", "minutch.segment.mergesegs", "org.apache.nutch.segment.SegmentMerger",
                "segments", "segments", "merge segments into one or several; of each page the newest stays",
                "minutch mergesegs crawl/merged -dir crawl/segments"),
        Command("text", "minutch.segment.text", "",
                "any Hadoop file", "stdout", "print SequenceFiles, MapFiles and folders of them as text or JSON",
                "minutch text crawl/linkdb/current -json"),
    ),
    EXPORT: (
        Command("dump", "minutch.archive.dump", "org.apache.nutch.tools.FileDumper",
                "segments: content", "a folder", "each page as a file of its own",
                "minutch dump -outputDir pages/ -segment crawl/segments"),
        Command("commoncrawldump", "minutch.archive.commoncrawldump", "org.apache.nutch.tools.CommonCrawlDataDumper",
                "segments: content; linkdb", "a folder", "each page with its headers as CBOR, or all of them as WARC",
                "minutch commoncrawldump -outputDir pages/ -segment crawl/segments"),
        Command("warc", "minutch.archive.warc", "org.apache.nutch.tools.warc.WARCExporter",
                "segments: content, crawl_fetch", "WARC files", "the pages of segments as a web archive",
                "minutch warc archive/ -dir crawl/segments -includeParseText"),
        Command("export", "minutch.archive.export", "",
                "segments", "files of another format", "segments as an archive, or in another format",
                "minutch export warc crawl/segments/* archive/"),
        Command("import", "minutch.archive.import_", "",
                "files of another format", "segments", "an archive as segments, as if its pages had been fetched",
                "minutch import warc archive/*.warc.gz crawl/segments"),
        Command("arc2segment", "minutch.replay.arc2segment", "",
                "ARC files", "segments: content, crawl_fetch", "the pages of ARC files as a segment",
                "minutch arc2segment arcs/ crawl/segments"),
    ),
    CHECKS: (
        Command("explain", "minutch.explain.explain", "",
                "crawldb, linkdb, segments", "stdout", "why a URL was not fetched, or what is left to do in a crawl",
                "minutch explain https://www.example.org/ crawl/"),
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
        Command("completion", "minutch.console.completion", "",
                "", "stdout", "a script that completes commands and options in bash, zsh or fish",
                'eval "$(minutch completion bash)"', usage_exit=1),
        Command("startserver", "minutch.service.startserver", "org.apache.nutch.service.NutchServer",
                "crawl folders", "crawl folders", "Nutch's REST service: start, watch and stop jobs over HTTP",
                "minutch startserver -port 8081", usage_exit=1),
    ),
}

CLASSES: tuple[Command, ...] = (
    Command("scoring.webgraph.LinkDumper", "minutch.webgraph.linkdumper",
            "org.apache.nutch.scoring.webgraph.LinkDumper",
            "webgraphdb", "webgraphdb: linkdump", "for each page the nodes that link to it, to look into",
            "minutch scoring.webgraph.LinkDumper -webgraphdb crawl/graph", error_exit=FAILED_LATE),
    Command("scoring.webgraph.LinkDumper$Reader", "minutch.webgraph.linkdumpreader",
            "org.apache.nutch.scoring.webgraph.LinkDumper$Reader",
            "webgraphdb: linkdump", "stdout", "the nodes that link to a page",
            "minutch 'scoring.webgraph.LinkDumper$Reader' crawl/graph http://x/", usage_exit=0),
    Command("scoring.webgraph.NodeReader", "minutch.webgraph.nodereader",
            "org.apache.nutch.scoring.webgraph.NodeReader",
            "webgraphdb", "stdout", "the node of a page: numbers of links and score",
            "minutch scoring.webgraph.NodeReader -webgraphdb graph -url http://x/",
            usage_exit=0),
    Command("scoring.webgraph.LoopReader", "minutch.webgraph.loopreader",
            "org.apache.nutch.scoring.webgraph.LoopReader",
            "webgraphdb: loops", "stdout", "the loop that a page is in, as older Nutch found it",
            "minutch scoring.webgraph.LoopReader -webgraphdb graph -url http://x/",
            usage_exit=0),
    Command("crawl.AdaptiveFetchSchedule", "minutch.crawldb.adaptivefetchschedule",
            "org.apache.nutch.crawl.AdaptiveFetchSchedule",
            "", "stdout", "when the adaptive schedule fetches a page that changes every 30 days",
            "minutch crawl.AdaptiveFetchSchedule"),
    Command("crawl.MimeAdaptiveFetchSchedule", "minutch.crawldb.mimeadaptivefetchschedule",
            "org.apache.nutch.crawl.MimeAdaptiveFetchSchedule",
            "", "stdout", "the same of the schedule that goes by media type",
            "minutch crawl.MimeAdaptiveFetchSchedule"),
    Command("crawl.TextProfileSignature", "minutch.parse.textprofilesignature",
            "org.apache.nutch.crawl.TextProfileSignature",
            "a folder of texts", "stdout", "the text profile signature of each file",
            "minutch crawl.TextProfileSignature texts/"),
    Command("util.EncodingDetector", "minutch.parse.encodingdetector", "org.apache.nutch.util.EncodingDetector",
            "an HTML file", "stdout", "the charset of a page",
            "minutch util.EncodingDetector page.html", usage_exit=1),
    Command("util.URLUtil", "minutch.urls.urlutil", "org.apache.nutch.util.URLUtil",
            "a URL", "stdout", "the registered domain of a URL",
            "minutch util.URLUtil https://www.example.co.uk/", usage_exit=0),
    Command("tools.arc.ArcSegmentCreator", "minutch.replay.arc2segment", "org.apache.nutch.tools.arc.ArcSegmentCreator",
            "ARC files", "segments: content, crawl_fetch", "the pages of ARC files as a segment",
            "minutch tools.arc.ArcSegmentCreator arcs/ crawl/segments"),
    Command("tools.ResolveUrls", "minutch.urls.resolveurls", "org.apache.nutch.tools.ResolveUrls",
            "URL list", "stdout", "which hosts have an address",
            "minutch tools.ResolveUrls -urls urls.txt"),
)
"""Commands that Nutch runs by the names of their classes alone."""
# fmt: on

REPLACED = {"solrindex": "index", "solrdedup": "dedup", "solrclean": "clean"}
"""Commands that Nutch refuses too, and their successors."""

ENDED = {
    "tools.DmozParser": "the directory closed in 2017; `minutch inject` takes any list of URLs",
}
"""Classes whose subject is no more, and what to do instead."""

MISSING = {
    "junit": ("org.junit.runner.JUnitCore", "there is no Java here; `bin/test` runs the tests"),
}
"""Commands of Nutch that this version lacks: their classes, and what there is instead."""


def commands() -> dict[str, Command]:
    """All commands by name."""
    return {command.name: command for group in COMMANDS.values() for command in group}


def find(name: str) -> Command | None:
    """The command of a name or of one of Nutch's class names, with or without its package."""
    for command in (*commands().values(), *CLASSES):
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


def ended(name: str) -> str | None:
    """What to do instead of a class whose subject is no more; None for any other name."""
    return ENDED.get(name.removeprefix("org.apache.nutch."))


def suggestions(name: str) -> list[str]:
    """Commands whose names come close."""
    from difflib import get_close_matches

    return get_close_matches(name.lower(), commands(), 3, 0.6)
