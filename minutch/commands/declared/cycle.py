"""Declares a whole crawl, and the steps of the cycle in their order."""

from __future__ import annotations

from dataclasses import replace

from minutch.commands.declaration import (
    Argument,
    Command,
    Option,
    path,
    segment,
    segments_in,
    switch,
)

# fmt: off
MOST_BITS = 10
"""Beyond, unrelated pages meet, and there is no cheap way to find them."""
"""As `cycle.crawldb.duplicates` has it."""
_SITE, _CRAWL = "of a site:", "of any crawl:"
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def wait(text: str) -> int | None:
    """`90`, `90s`, `15m`, `1h`, `2d` in seconds, None for -1. Raises ValueError."""
    if text == "-1":
        return None
    number, unit = (text[:-1], text[-1:].lower()) if text[-1:].isalpha() else (text, "")
    if not (number.isascii() and number.isdecimal()) or unit not in _SECONDS:
        raise ValueError(text)
    return int(number) * _SECONDS[unit]


def _bits(word: str) -> int:
    """The bits of -near; without a number, texts are compared."""
    from minutch.cycle.crawldb.duplicates import TEXTS

    return int(word) if word else TEXTS


WHOLE = (
    Command(
        "init", writes="conf/, seeds/",
        help="create a folder for a crawl: settings, URL rules and a seed list to fill in",
        example="minutch init my-crawl",
        arguments=(
            Argument("folder", "where conf/ and seeds/ are made; by default the working folder",
                     path, is_optional=True),
        ),
        code="minutch.commands.init:run",
    ),
    Command(
        "crawl",
        reads="seed list", writes="crawldb, linkdb, segments",
        help="run rounds of generate, fetch, parse, updatedb, invertlinks, dedup",
        example="minutch crawl seeds/ crawl/ 3",
        synopsis=(
            "[options] <seed_dir> <crawl_dir> <num_rounds>",
            "[options] [-s <seed_dir>] <crawl_dir> <num_rounds>",
            "[options] <url>... | <seed_file> [<crawl_dir>] [<num_rounds>]",
        ),
        arguments=(
            Argument("url",
                     "crawl these sites, until nothing is due, in a folder with the name of the"
                     " first; without a scheme by https, or else by http; links to other domains"
                     " are left out (db.ignore.external.links); the folder's conf/nutch-site.xml"
                     " keeps what is set here, for all commands on it", many=True),
            Argument("seed_dir",
                     "file or folder with URLs, one per line; may be left out once the crawl has"
                     " begun", is_optional=True),
            Argument("crawl_dir", "where crawldb, linkdb and segments are (made if missing)",
                     is_optional=True),
            Argument("num_rounds",
                     "rounds of generate, fetch, parse, updatedb, invertlinks and dedup; -1: see"
                     " --forever; a file .STOP in the working directory or in <crawl_dir> ends it"
                     " after a round", is_optional=True),
        ),
        options=(
            Option("--depth", "n", int,
                   "follow at most so many links from a seed (scoring.depth.max)", group=_SITE),
            Option("--max-pages", "n", int, "ask for at most so many pages", field="most"),
            Option("--include", "regex", help="take only URLs that match (urlfilter.regex.rules)",
                   repeats=True),
            Option("--exclude", "regex", help="take none of the URLs that match", repeats=True),
            Option("--delay", "seconds", float,
                   "time between two requests to a host (fetcher.server.delay)"),
            Option("--agent", "name",
                   help="your crawler's name, for site owners (http.agent.name)"),
            Option("-s", "seed_dir", help="the seeds, in Nutch's way", group=_CRAWL),
            switch("--forever",
                   "go on round after round; when nothing is due, rest until the next page is"),
            Option("--wait", "number[s|m|h|d]", wait,
                   "when nothing is due, wait so long and look again; -1: stop (default with a"
                   " number of rounds)", aliases=("-w",)),
            Option("--num-tasks", "n", int, "parts that databases and segments are written in (2)",
                   field="tasks"),
            Option("--size-fetchlist", "n", int, "pages per round (50000)", field="size"),
            Option("--time-limit-fetch", "minutes", int, "longest time to fetch in one round (180)",
                   field="time_limit"),
            Option("--num-threads", "n", int, "pages fetched at the same time at most",
                   field="threads"),
            Option("--num-fetchers", "n", int,
                   "fetch lists with minutch.engine=spark (1); else one (--num-slaves: its older"
                   " name)", field="fetchers", aliases=("--num-slaves",)),
            Option("--dedup-group", "none|host|domain",
                   help="find duplicates everywhere, or within a host or domain (none)",
                   choices=("none", "host", "domain")),
            Option("--dedup-near", "[bits]", _bits,
                   "find near-duplicates, too, as dedup -near does", least=0, most=MOST_BITS),
            Option("--status", "port", int,
                   "show a live page at this port of this machine; 0: any port", field="port"),
            Option("-adddays", "n", int, "fetch also what will be due in so many days (0)",
                   field="add_days"),
            switch("--index", "send each round's pages to the index", aliases=("-i",)),
            Option("-sm", "sitemap_dir", path, "sitemaps to take URLs from, before the first round",
                   field="sitemaps"),
            switch("--hostdbupdate", "update the HostDb in each round", field="hostdb_update"),
            switch("--hostdbgenerate", "let generate use the HostDb", field="hostdb_generate"),
            Option("--sitemaps-from-hostdb", "never|always|once",
                   help="take the sitemaps of the HostDb's hosts: in no, every, the first round"
                        " (never)", choices=("never", "always", "once")),
        ),
        code="minutch.commands.crawl:run",
        usage_exit=1, live=True, remote=True,
    ),
)


def _criteria(word: str) -> list[str]:
    from minutch.cycle.crawldb.duplicates import REQUIRED

    if not all(name in word for name in REQUIRED):
        raise ValueError(f"expected {', '.join(REQUIRED)} among others")
    return word.split(",")


DUPLICATES = (
    Option("-group", "none|host|domain",
           help="duplicates everywhere (none), or within a host or domain",
           choices=("none", "host", "domain")),
    Option("-compareOrder", "criteria", _criteria,
           "what decides which page stays, most important first:"
           " score,fetchTime,httpsOverHttp,urlLength", field="order"),
    Option("-near", "[bits]", _bits,
           "near-duplicates as well: pages whose own texts have most words in common; with a"
           " number, or without segments beside the CrawlDb, those whose SimHash signatures differ"
           " in at most so many bits (3)", least=0, most=MOST_BITS),
)
DIR = Option(
    "-dir", "segments", segments_in, "all segments in this directory", field="segment",
    repeats=True, rest="",
)
_DIR = replace(DIR, value="segments_dir", field="segments")
FORCE = switch("-force", "go on even if the database is locked")
RULES = (
    switch("-filter", "drop URLs that the filters reject", field="filtering"),
    switch("-normalize", "normalize the URLs"),
)
NO_RULES = (
    switch("-noFilter", "don't filter the URLs", field="filtering", gives=False),
    switch("-noNormalize", "don't normalize the URLs", field="normalize", gives=False),
)
PARTS = Option(
    "-numFetchers", "n", int,
    "parts of a fetch list; always one in local mode, unless minutch.engine=spark",
    field="fetchers",
)

CYCLE = (
    Command(
        "inject", java="crawl.Injector",
        reads="seed list, crawldb", writes="crawldb",
        help="add the URLs of a seed list to the crawldb",
        example="minutch inject crawl/crawldb seeds/",
        arguments=(
            Argument("crawldb", "the CrawlDb; made if there is none", path),
            Argument("url_dir",
                     "a seed file, or a directory of seed files: a URL per line, perhaps followed"
                     " by metadata, key=value between tabs. Blank lines and lines that begin with"
                     " # are skipped", path),
        ),
        options=(
            switch("-overwrite", "replace entries of the CrawlDb by the seeds (before -update)"),
            switch("-update", "merge seeds into entries of the CrawlDb, whose metadata stays"),
            *NO_RULES,
            switch("-filterNormalizeAll", "normalize and filter the entries of the CrawlDb, too"),
        ),
        note="Three keys of metadata have a meaning of their own:\n"
             "  nutch.score: the score of the URL\n"
             "  nutch.fetchInterval: its fetch interval in seconds\n"
             "  nutch.fetchInterval.fixed: a fetch interval that adaptive schedules leave"
             " alone\n"
             "Example, with tabs for \\t:\n"
             "  http://www.nutch.org/ \\t nutch.score=10 \\t userType=open_source\n"
             "\n"
             "-Ddb.update.purge.404=true removes entries that are gone (404) from the CrawlDb.",
        job="minutch.cycle.crawldb.inject:inject", settings="InjectOptions", remote=True,
        ignore_case=True,
    ),
    Command(
        "generate", java="crawl.Generator",
        reads="crawldb", writes="segment: crawl_generate",
        help="make a segment with the fetch list of the pages that are due",
        example="minutch generate crawl/crawldb crawl/segments -topN 1000",
        arguments=(
            Argument("crawldb", "the CrawlDb to choose from", path),
            Argument("segments_dir", "the directory in which the segment is made", path),
        ),
        options=(
            Option("-hostdb", "hostdb", path,
                   "the HostDb whose facts generate.max.count.expr and generate.fetch.delay.expr"
                   " use"),
            FORCE,
            Option("-topN", "N", int,
                   "at most N pages in each segment, those with the highest scores"),
            PARTS,
            Option("-expr", "expr",
                   help='only pages for which the expression is true, such as "score > 0.5 &&'
                        " status == 'db_unfetched'\"", field="expression"),
            Option("-adddays", "numDays", int, "take the pages that will be due in so many days",
                   field="add_days"),
            switch("-noFilter", "don't apply URL filters", field="filtering", gives=False),
            switch("-noNorm", "don't normalize URLs when counting the pages of a host",
                   field="normalize", gives=False),
            Option("-maxNumSegments", "num", int, "make up to so many segments",
                   field="max_segments"),
        ),
        job="minutch.cycle.fetchlist.generate:generate", settings="GenerateOptions",
        code="minutch.commands.jobcommands:generate", remote=True,
    ),
    Command(
        "freegen", java="tools.FreeGenerator",
        reads="URL list", writes="segment: crawl_generate",
        help="make a segment from a list of URLs, without a crawldb",
        example="minutch freegen urls/ crawl/segments",
        arguments=(
            Argument("inputDir", "the directory of the text files, one URL per line", path),
            Argument("segmentsDir", "the directory in which the segment is made", path),
        ),
        options=(
            *RULES,
            PARTS,
        ),
        job="minutch.cycle.fetchlist.generate:freegen", settings="FreegenOptions",
        finish="minutch.commands.jobcommands:freegen", remote=True,
    ),
    Command(
        "fetch", java="fetcher.Fetcher",
        reads="segment: crawl_generate", writes="segment: crawl_fetch, content",
        help="fetch the pages of a segment",
        example="minutch fetch crawl/segments/20260101120000",
        arguments=(Argument("segment", "the segment whose fetch list is fetched", path),),
        options=(
            Option("-threads", "n", int, "pages fetched at the same time (fetcher.threads.fetch)"),
            Option("-metrics", "port", int,
                   "serve a live page and figures for Prometheus (/metrics) at this port, 0: any",
                   rest=""),
        ),
        job="minutch.cycle.fetch.fetcher:fetch", settings="FetchOptions",
        code="minutch.commands.jobcommands:fetch", remote=True,
    ),
    Command(
        "parse", java="parse.ParseSegment",
        reads="segment: content", writes="segment: crawl_parse, parse_data, parse_text",
        help="extract text, metadata and links from the fetched pages",
        example="minutch parse crawl/segments/20260101120000",
        arguments=(Argument("segment", "the segment whose pages are parsed", path),),
        options=(
            switch("-noFilter", "don't filter the URLs of links", field="filter", gives=False,
                   rest="nofilter"),
            switch("-noNormalize", "don't normalize the URLs of links", field="normalize",
                   gives=False, rest="nonormalize"),
        ),
        job="minutch.cycle.parse.parsesegment:parse", settings="ParseOptions", remote=True,
        ignore_case=True,
    ),
    Command(
        "updatedb", java="crawl.CrawlDb",
        reads="segments: crawl_fetch, crawl_parse; crawldb", writes="crawldb",
        help="update the crawldb with the results of segments",
        example="minutch updatedb crawl/crawldb -dir crawl/segments",
        arguments=(
            Argument("crawldb", "the CrawlDb to update; made if there is none", path),
            Argument("segments", "the segments to update from", segment, many=True),
        ),
        options=(
            _DIR,
            FORCE,
            switch("-normalize",
                   "normalize the URLs of the CrawlDb and the segments (seldom needed)"),
            switch("-filter", "filter the URLs of the CrawlDb and the segments", field="filtering"),
            switch("-noAdditions", "update known URLs only, add none", field="additions",
                   gives=False),
        ),
        job="minutch.cycle.crawldb.updatedb:updatedb", settings="UpdateOptions",
        report="CrawlDb update", remote=True,
    ),
    Command(
        "invertlinks", java="crawl.LinkDb",
        reads="segments: parse_data; linkdb", writes="linkdb",
        help="collect the links to each page",
        example="minutch invertlinks crawl/linkdb -dir crawl/segments",
        arguments=(
            Argument("linkdb", "the LinkDb to make or to add to", path),
            Argument("segments", "the segments", segment, many=True),
        ),
        options=(
            _DIR,
            FORCE,
            *NO_RULES,
        ),
        job="minutch.cycle.linkdb.invertlinks:invertlinks", settings="InvertOptions", remote=True,
        ignore_case=True,
    ),
    Command(
        "dedup", java="crawl.DeduplicationJob",
        reads="crawldb", writes="crawldb",
        help="mark pages with equal or nearly equal content as duplicates",
        example="minutch dedup crawl/crawldb -group host",
        arguments=(Argument("crawldb", "the CrawlDb whose duplicates are marked", path),),
        options=DUPLICATES,
        job="minutch.cycle.crawldb.dedup:dedup", settings="DedupOptions", report="Deduplication",
        usage_exit=1, remote=True,
    ),
)
