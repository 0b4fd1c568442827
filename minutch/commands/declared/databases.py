"""Declares what reads, merges, counts and judges databases."""

from __future__ import annotations

from dataclasses import replace

from minutch.commands.declaration import Argument, Command, Option, path, paths, switch
from minutch.commands.declared.cycle import DUPLICATES, FORCE, NO_RULES

# fmt: off
LINES = (
    switch("-stdin", "read lines from standard input, and answer each"),
    Option("-listen", "port", int, "read them from connections to this port of this machine"),
    switch("-keepClientCnxOpen", "more than one line on each connection"),
)
"""Options of commands that answer lines."""
CRAWL = Argument("crawl", "the folder of a crawl", path)
_JSON = switch("-json", "write an object of JSON for each line", field="as_json")
_MERGE = (
    switch("-normalize", "normalize the URLs, those of links on both ends (seldom needed)"),
    switch("-filter", "filter the URLs, those of links on both ends", field="filtering"),
)
_INPUTS = Argument(
    "inputDirs", "the crawldbs, with commas between them: crawl1/crawldb,crawl2/crawldb", paths,
)
_OUTPUT = Argument("outDir", "the directory to write to, which may not exist yet", path)
_PARTS = Argument(
    "numOfReducers", "number of files to write, 1 if not given", int, field="parts",
    is_optional=True, least=1,
)
_DATABASES = "the databases to merge; one will do"


def _fraction(word: str) -> float:
    """A number above 0."""
    number = float(word)
    if not 0 < number < float("inf"):
        raise ValueError(word)
    return number


def _budget(word: str) -> float:
    return _fraction(word.removesuffix("/day"))


DATABASES = (
    Command(
        "readdb", java="crawl.CrawlDbReader",
        reads="crawldb", writes="stdout or a folder",
        help="show statistics, a dump, the top pages or one entry of a crawldb",
        example="minutch readdb crawl/crawldb -stats",
        synopsis=(
            "<crawldb> (-stats | -dump <out_dir> | -topN <nnnn> <out_dir> [<min>] | -url <url> |"
            " -duplicates | -stdin | -listen <port>) ...",
        ),
        arguments=(Argument("crawldb", "the CrawlDb to read"),),
        options=(
            switch("-stats", "print statistics"),
            switch("-sort", "and for each status its hosts", of="-stats"),
            Option("-url", "url", help="print the entry of a URL"),
            Option("-dump", "out_dir", path, "write the entries to files in a folder"),
            Option("-format", "normal|csv|json|crawldb",
                   help="as text (the default), CSV, JSON Lines, or a CrawlDb's part files",
                   of="-dump", field="kind", choices=("normal", "csv", "json", "crawldb")),
            Option("-regex", "expr", help="only URLs that match as a whole", of="-dump"),
            Option("-retry", "num", int, "only entries with at least so many retries", of="-dump",
                   field="retries"),
            Option("-status", "status", help="only entries of this status", of="-dump"),
            Option("-expr", "expr", help="only entries for which the JEXL expression is true",
                   of="-dump", field="expression"),
            Option("-sample", "fraction", float,
                   "only a sample of about this size; the same URLs each time", of="-dump"),
            switch("-duplicates",
                   "print the groups of duplicates, the largest first: their size, the page that"
                   " stays, and each page that dedup marks or has marked, by how many bits its"
                   " signature differs"),
            *(replace(option, of='-duplicates') for option in DUPLICATES),
            switch("-stdin", "print the entries of URLs that come on standard input"),
            Option("-listen", "port", int,
                   "answer URLs that come over connections to this port of this machine"),
            switch("-keepClientCnxOpen", "more than one on each connection", of="-listen"),
            Option("-topN", "nnnn out_dir [min]",
                   help="write the URLs with the highest scores, from <min> up, to a file in"
                        " <out_dir>", many=True),
        ),
        note="Several of these may follow one another on one line; they run in that order.",
        code="minutch.commands.readers:readdb", takes_words=True, remote=True,
    ),
    Command(
        "mergedb", java="crawl.CrawlDbMerger",
        reads="crawldbs", writes="crawldb",
        help="merge crawldbs into a new one",
        example="minutch mergedb all/crawldb one/crawldb two/crawldb",
        arguments=(
            Argument("output_crawldb", "the CrawlDb to write; one that is there is replaced", path),
            Argument("crawldb", _DATABASES, path, many=True),
        ),
        options=_MERGE,
        job="minutch.cycle.crawldb.mergedb:mergedb", settings="MergeOptions",
        report="CrawlDb merge", remote=True,
    ),
    Command(
        "readlinkdb", java="crawl.LinkDbReader",
        reads="linkdb", writes="stdout or a folder",
        help="dump a linkdb, or show the links to one page",
        example="minutch readlinkdb crawl/linkdb -url https://www.example.org/",
        arguments=(Argument("linkdb", "the LinkDb to read"),),
        options=(
            Option("-dump", "out_dir", path, "write the whole LinkDb as text to a new directory"),
            Option("-regex", "regex", help="only URLs that match the expression as a whole",
                   of="-dump"),
            Option("-url", "url", help="print the links to a URL"),
            *LINES,
        ),
        code="minutch.commands.readers:readlinkdb", remote=True,
    ),
    Command(
        "mergelinkdb", java="crawl.LinkDbMerger",
        reads="linkdbs", writes="linkdb",
        help="merge linkdbs into a new one",
        example="minutch mergelinkdb all/linkdb one/linkdb two/linkdb",
        arguments=(
            Argument("output_linkdb", "the LinkDb to make", path),
            Argument("linkdb", _DATABASES, path, many=True),
        ),
        options=_MERGE,
        job="minutch.cycle.linkdb.invertlinks:mergelinkdb", settings="MergeOptions",
        report="LinkDb merge", remote=True,
    ),
    Command(
        "updatehostdb", java="hostdb.UpdateHostDb",
        reads="crawldb, hostdb, scores of hosts", writes="hostdb",
        help="count pages by host, and look up hosts in the DNS",
        example="minutch updatehostdb -hostdb crawl/hostdb -crawldb crawl/crawldb",
        options=(
            Option("-hostdb", "hostdb", path,
                   "the HostDb to update; it is created if it does not exist", required=True),
            Option("-crawldb", "crawldb", path,
                   "count the pages of this CrawlDb by host and status"),
            Option("-tophosts", "tophosts", path,
                   "read the scores of hosts from text files: host, a tab, the score"),
            switch("-checkAll", "look up all hosts that are due in the DNS", field="check",
                   gives=frozenset(("new", "known", "failed"))),
            switch("-checkFailed", "look up those that had no address the last time", field="check",
                   gives=frozenset(("failed",))),
            switch("-checkNew", "look up those that were never looked up", field="check",
                   gives=frozenset(("new",))),
            switch("-checkKnown", "look up those that had an address", field="check",
                   gives=frozenset(("known",))),
            switch("-force", "look up hosts that are not due yet as well"),
            switch("-filter", "drop hosts if the URL filters reject http://host/",
                   field="filtering"),
            switch("-normalize", "normalize http://host/ for each host"),
            Option("-urlLimit", "N", int, "only hosts with at least N pages"),
        ),
        job="minutch.cycle.hostdb.update:updatehostdb", settings="UpdateHostDbOptions",
    ),
    Command(
        "readhostdb", java="hostdb.ReadHostDb",
        reads="hostdb", writes="stdout or a folder",
        help="dump a hostdb, or show the record of one host",
        example="minutch readhostdb crawl/hostdb -get www.example.org",
        synopsis=(
            "<hostdb> [-get <url>] [<output> [-dumpHomepages | -dumpHostnames | -expr <expr.>]]",
        ),
        arguments=(
            Argument("hostdb", "the HostDb to read"),
            Argument("output", "write all records as text to this new folder", path,
                     is_optional=True),
        ),
        options=(
            Option("-get", "url", help="print the record of a host, named by itself or by a URL"),
            switch("-dumpHomepages", "only the home pages, of hosts that have one",
                   field="homepages"),
            switch("-dumpHostnames", "only the names of the hosts", field="hostnames"),
            Option("-expr", "expr.", field="expression",
                   help='only hosts for which the JEXL expression is true, such as "unfetched >'
                        ' 100 && gone == 0"'),
        ),
        code="minutch.commands.readers:readhostdb",
    ),
    Command(
        "sitemap", java="util.SitemapProcessor",
        reads="sitemaps; hostdb, URL list; crawldb", writes="crawldb",
        help="add the URLs of sitemaps to the crawldb",
        example="minutch sitemap crawl/crawldb -sitemapUrls sitemaps/",
        arguments=(
            Argument("crawldb",
                     "the crawldb that gets the URLs of the sitemaps; it is made if there is none",
                     path),
        ),
        options=(
            Option("-hostdb", "hostdb", path, "a hostdb: the sitemaps of its hosts are taken"),
            Option("-sitemapUrls", "url_dir", path,
                   "a directory of text files with URLs of sitemaps, or host names", field="urls"),
            Option("-threads", "threads", int,
                   "how many sitemaps are fetched at a time (default: 8)", least=1),
            FORCE,
            switch("-noStrict", "take all URLs of a sitemap, not only those below its own folder",
                   field="strict", gives=False),
            *NO_RULES,
        ),
        job="minutch.cycle.sitemap.processor:sitemap", settings="SitemapOptions",
        code="minutch.commands.jobcommands:sitemap",
    ),
    Command(
        "domainstats", java="util.DomainStatistics",
        reads="crawldbs", writes="text files",
        help="count the fetched pages of each host, domain or suffix",
        example="minutch domainstats crawl/crawldb stats host",
        arguments=(
            _INPUTS,
            _OUTPUT,
            Argument("mode",
                     "what is counted: hosts, registered domains (domain), public suffixes, or"
                     " top-level domains (tld)", field="mode",
                     choices=("host", "domain", "suffix", "tld")),
            _PARTS,
        ),
        options=(_JSON,),
        job="minutch.cycle.crawldb.groupcounts:domainstats", settings="PageCountOptions",
        usage_exit=0, remote=True,
    ),
    Command(
        "protocolstats", java="util.ProtocolStatusStatistics",
        reads="crawldbs", writes="text files",
        help="count the status codes of HTTP",
        example="minutch protocolstats crawl/crawldb codes",
        arguments=(_INPUTS, _OUTPUT, _PARTS),
        options=(_JSON,),
        job="minutch.cycle.crawldb.groupcounts:protocolstats", settings="CountOptions",
        report="ProtocolStatistics",
        usage_exit=0, remote=True,
    ),
    Command(
        "crawlcomplete", java="util.CrawlCompletionStats",
        reads="crawldbs", writes="text files",
        help="count the fetched and unfetched pages of each host or domain",
        example="minutch crawlcomplete -inputDirs db1,db2 -outputDir done -mode host",
        options=(
            Option("-inputDirs", "inputDirs", paths, _INPUTS.help, required=True),
            Option("-outputDir", "outputDir", path, _OUTPUT.help, required=True),
            Option("-mode", "host|domain", help="what is counted", choices=("host", "domain")),
            Option("-numReducers", "numReducers", int, _PARTS.help, field="parts", least=1),
            _JSON,
        ),
        job="minutch.cycle.crawldb.groupcounts:crawlcomplete", settings="PageCountOptions",
        usage_exit=0, remote=True,
    ),
    Command(
        "report",
        reads="crawl folder", writes="HTML file",
        help="write a page about a crawl, with plots and tables",
        example="minutch report crawl/",
        arguments=(CRAWL,),
        options=(
            Option("-o", "file", path,
                   "the file to write; <crawl>-report.html in the working directory is the default",
                   field="file"),
            Option("--compare", "report", path,
                   "an earlier report of the crawl, to show what has changed since"),
            switch("--force", "replace the file even if it is not a report"),
        ),
        job="minutch.inspect.report.reportfile:report", settings="ReportOptions",
        finish="minutch.commands.jobcommands:report",
    ),
    Command(
        "sql",
        reads="crawl folder", writes="stdout or a file",
        help="query a crawl in SQL, from its files",
        example='minutch sql crawl "select host, count(*) from pages group by host"',
        arguments=(
            CRAWL,
            Argument("statement",
                     'a question: "select status, count(*) from crawldb group by status"; without'
                     " one there is a prompt, or statements are read from standard input. The"
                     " tables are crawldb, linkdb, links, pages, parses, hosts and duplicates;"
                     " `show tables` lists them, `select * from pages limit 1` shows the columns"
                     " of one", is_optional=True),
        ),
        options=(
            switch("-csv", "the rows as CSV"),
            switch("-json", "each row as an object of JSON on a line"),
            Option("-parquet", "file", path, "the rows into a Parquet file"),
        ),
        code="minutch.commands.sql:run",
    ),
    Command(
        "audit",
        reads="crawl folder", writes="stdout or CSV files",
        help="find what is wrong with a site: broken links, titles, redirects, sitemaps …",
        example="minutch audit crawl/",
        synopsis=(
            "<crawl> [--csv <folder>] [--json] [--only <ids>] [--fail-on <severity>]",
            "--explain <id>",
        ),
        arguments=(Argument("crawl", "the folder of a crawl", path, is_optional=True),),
        options=(
            Option("--csv", "folder", path, "write all findings, a file for each rule"),
            switch("--json", "the findings as JSON, with the first URLs"),
            Option("--only", "ids", help="ask these rules alone; several with commas"),
            Option("--fail-on", "severity",
                   help="exit with 1 if a rule of this severity, or a worse one, found something:"
                        " error, warning or notice", choices=("error", "warning", "notice")),
            Option("--explain", "id",
                   help="show the statement of a rule, for `sql`, and ask nothing"),
        ),
        code="minutch.commands.audit:run",
    ),
    Command(
        "learn",
        reads="crawl folder", writes="stdout; rule files with --apply",
        help="learn from what is stored which URLs are twins, traps or soft 404s, as rules",
        example="minutch learn crawl/",
        arguments=(Argument("crawl", "the folder of a crawl", path),),
        options=(
            switch("--apply",
                   "write the rules that lose no page into the crawl's rule files, with their"
                   " evidence as comments"),
            switch("--json", "the rules as JSON"),
        ),
        code="minutch.commands.learn:run",
    ),
    Command(
        "changes",
        reads="segments", writes="stdout",
        help="show what changed between visits: new, changed, gone, moved and returned pages",
        example="minutch changes crawl/ --since 7d",
        arguments=(CRAWL,),
        options=(
            Option("--since", "time|segment",
                   help="visits from then on: a segment's name, 2026-03-16, 2026-03-16T09:30, 7d,"
                        " 24h or 30m before now (all visits)"),
            switch("--all", "also what changes at each visit, and why it is left out otherwise"),
            switch("--jsonl", "each change as an object of JSON on a line"),
            switch("--atom", "the newest changes as an Atom feed"),
        ),
        code="minutch.commands.changes:run",
    ),
    Command(
        "check",
        reads="crawl folder", writes="crawl folder: checks",
        help="ask for images, styles, scripts and other sites' pages that pages name",
        example="minutch check crawl/ --external",
        arguments=(
            Argument("crawl",
                     "the folder of a crawl, whose pages' images, styles, scripts, files and"
                     " fragments are checked; each is asked for once a day at most; `audit` shows"
                     " what is broken", path),
        ),
        options=(
            switch("--external", "also ask for links to other sites"),
            switch("--requisites",
                   "keep what is asked for, in <crawl>/checks/segments, for archives"),
        ),
        job="minutch.inspect.audit.checks:check", settings="CheckOptions",
        code="minutch.commands.audit:check",
    ),
    Command(
        "simulate",
        reads="crawldb, segments",
        help="show how fetch schedules would work, given the changes seen so far",
        example="minutch simulate crawl/ -schedule adaptive -days 90",
        arguments=(CRAWL,),
        options=(
            Option("-schedule", "names",
                   help="default, adaptive, mimeadaptive, fresh, or a class"
                        " (db.fetch.schedule.class); several with commas"),
            Option("-days", "n", int, "for how long; 90 is the default", least=1),
            Option("-budget", "n[/day]", _budget,
                   "fetch no more a day; the pages with the highest scores go first, as in"
                   " generate"),
            Option("-rounds", "n", int, "rounds of the crawl a day (1)", least=1),
            Option("-assume", "days", _fraction,
                   "pages that were not fetched twice change every so many days; else they are"
                   " like the others"),
            Option("-sample", "n", int,
                   "pages that are looked at, at most; they stand for all (1000000)", least=1),
            Option("-seed", "n", int, "of what is left to chance (0)"),
            switch("-json", "the numbers of each day as JSON"),
            Option("-svg", "file", path, "the plot as a picture"),
        ),
        code="minutch.annexes.simulate.simulate:run",
    ),
    Command(
        "fsck",
        reads="crawl folder",
        help="check databases and segments; -repair mends them",
        example="minutch fsck crawl/",
        arguments=(
            Argument("crawl_dir",
                     "the folder of crawldb, linkdb, segments, hostdb and webgraphs, or some of"
                     " them", path),
        ),
        options=(
            switch("-repair", "repair what can be repaired without losing a record"),
            switch("-drop",
                   "with -repair: also drop unreadable records and older entries of one URL, and"
                   " say which"),
        ),
        job="minutch.inspect.fsck.crawlcheck:fsck", settings="FsckOptions",
        code="minutch.commands.jobcommands:fsck",
    ),
    Command(
        "unlock",
        reads="crawl folder or database",
        help="remove the locks of commands that no longer run",
        example="minutch unlock crawl/",
        arguments=(
            Argument("folder",
                     "the folder of a crawl, or a database: its lock, and those of the databases"
                     " and segments in it", path, many=True),
        ),
        options=(
            switch("-force",
                   "also remove locks of other machines, of unknown owners and of running"
                   " processes"),
        ),
        code="minutch.commands.jobcommands:unlock",
    ),
)
