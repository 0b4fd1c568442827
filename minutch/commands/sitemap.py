"""sitemap: put the URLs of sitemaps into the CrawlDb.

Sitemaps are those of a list of URLs, and those of hosts: in that list, or in a HostDb. See
`sitemapfetch` for how they are found and fetched, `sitemapfile` for what they may be,
`sitemapentries` for what becomes of their URLs.

Source: org.apache.nutch.util.SitemapProcessor.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.sitemap.processor import DEFAULT_THREADS, SitemapOptions, sitemap
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """
 SitemapProcessor <crawldb> [-hostdb <hostdb>] [-sitemapUrls <url_dir>] [-threads \
<threads>] [-force] [-noStrict] \
[-noFilter] [-noNormalize]

\t<crawldb>\t\tthe crawldb that gets the URLs of the sitemaps; it is made if there is none
\t-hostdb <hostdb>\ta hostdb: the sitemaps of its hosts are taken
\t-sitemapUrls <url_dir>\ta directory of text files with URLs of sitemaps, or host names
\t-threads <threads>\thow many sitemaps are fetched at a time (default: 8)
\t-force\t\t\tgo on even if the crawldb is locked
\t-noStrict\t\ttake all URLs of a sitemap, not only those below its own folder
\t-noFilter\t\tdo not filter the URLs
\t-noNormalize\t\tdo not normalize the URLs"""

FLAGS: Final = (
    Flag("-hostdb", "hostdb"),
    Flag("-sitemapUrls", "url_dir"),
    Flag("-threads", "threads", convert=int),
    Flag("-force"),
    Flag("-noStrict"),
    Flag("-noFilter"),
    Flag("-noNormalize"),
)


def run(args: list[str], context: JobContext) -> int:
    """Runs the command: exit code 0, or 255 and an error; the CrawlDb is then as before."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1, most=1)
    if arguments["-hostdb"] is None and arguments["-sitemapUrls"] is None:
        fail("neither -hostdb nor -sitemapUrls is given", USAGE)
    threads = arguments.get("-threads", DEFAULT_THREADS)
    if threads < 1:
        fail(f"-threads: expected a positive number, found {threads}", USAGE)
    counters = sitemap(
        Path(arguments.positional[0]),
        SitemapOptions(
            hostdb=None if arguments["-hostdb"] is None else Path(arguments["-hostdb"]),
            urls=None if arguments["-sitemapUrls"] is None else Path(arguments["-sitemapUrls"]),
            threads=threads,
            force=arguments["-force"],
            strict=not arguments["-noStrict"],
            filtering=not arguments["-noFilter"],
            normalize=not arguments["-noNormalize"],
        ),
        context=context,
    )
    context.report("SitemapProcessor", counters)
    return 0
