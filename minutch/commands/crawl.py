"""The command line of crawl, in both forms: with the seeds first, and with Nutch's -s.

    crawl [options] <seed_dir> <crawl_dir> <num_rounds>
    crawl [options] [-s <seed_dir>] <crawl_dir> <num_rounds>

Matched: the options of Nutch's src/bin/crawl, its defaults included. A wait of 1h is an hour.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.crawl.crawler import Crawler
from minutch.cycle.crawl.options import CrawlOptions
from minutch.cycle.crawl.screen import Screen
from minutch.cycle.crawldb.nearduplicates import MOST_BITS
from minutch.cycle.fetch.watch import Watch
from minutch.hadoop.stores import as_path
from minutch.inspect.live.liveserver import LiveServer, LiveSettings
from minutch.job import JobContext

USAGE = """crawl [options] <seed_dir> <crawl_dir> <num_rounds>
       crawl [options] [-s <seed_dir>] <crawl_dir> <num_rounds>

  <seed_dir>      file or folder with URLs, one per line; may be left out once the crawl has begun
  <crawl_dir>     where crawldb, linkdb and segments are (made if missing)
  <num_rounds>    rounds of generate, fetch, parse, updatedb, invertlinks and dedup; \
-1: go on until a file .STOP
                  lies in the working directory or in <crawl_dir>

  -s <seed_dir>                     the seeds, in Nutch's way
  -w, --wait <number>[s|m|h|d]      when nothing is due, wait so long and look again; \
-1: stop (default)
  --num-tasks <n>                   parts that databases and segments are written in (2)
  --size-fetchlist <n>              pages per round (50000)
  --time-limit-fetch <minutes>      longest time to fetch in one round (180)
  --num-threads <n>                 pages fetched at the same time at most
  --num-fetchers <n>                fetch lists with minutch.engine=spark (1); else one
                                    (--num-slaves: its older name)
  --dedup-group none|host|domain    find duplicates everywhere, or within a host or domain (none)
  --dedup-near <bits>               find near-duplicates, too: SimHash signatures that differ in \
so many bits
  --status <port>                   show a live page at this port of this machine; 0: any port
  -adddays <n>                      fetch also what will be due in so many days (0)
  -i, --index                       send each round's pages to the index
  -sm <sitemap_dir>                 sitemaps to take URLs from, before the first round
  --hostdbupdate                    update the HostDb in each round
  --hostdbgenerate                  let generate use the HostDb
  --sitemaps-from-hostdb never|always|once
                                    take the sitemaps of the HostDb's hosts: in no, every, the \
first round (never)"""

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_wait(text: str) -> int | None:
    """`90`, `90s`, `15m`, `1h`, `2d` in seconds, None for -1. Raises ValueError."""
    if text == "-1":
        return None
    match = re.fullmatch(r"([0-9]+)([smhd]?)", text.lower())
    if not match:
        raise ValueError(text)
    return int(match[1]) * _SECONDS[match[2]]


_FLAGS = (
    Flag("-s", "seed_dir"),
    Flag("-sm", "sitemap_dir"),
    Flag("--wait", "number[s|m|h|d]", parse_wait, aliases=("-w",)),
    Flag("--index", aliases=("-i",)),
    Flag("--status", "port", int),
    Flag("-adddays", "n", int),
    Flag("--hostdbupdate"),
    Flag("--hostdbgenerate"),
    Flag("--num-fetchers", "n", int, aliases=("--num-slaves",)),
    Flag("--num-tasks", "n", int),
    Flag("--size-fetchlist", "n", int),
    Flag("--time-limit-fetch", "minutes", int),
    Flag("--num-threads", "n", int),
    Flag("--sitemaps-from-hostdb", "never|always|once", choices=("never", "always", "once")),
    Flag("--dedup-group", "none|host|domain", choices=("none", "host", "domain")),
    Flag("--dedup-near", "bits", int),
)


def run(args: list[str], context: JobContext) -> int:
    """Runs the command: exit code 0, or 255 and an error; `--status` serves a live page."""
    crawl_dir, options, port = parse_options(args)
    if port is None:
        crawled = Crawler(crawl_dir, options, context).run()
    else:
        watch = Watch(f"crawl {crawl_dir}", context.clock, can_stop=True)
        serving = partial(served, watch, context, port)
        crawled = Crawler(crawl_dir, options, replace(context, watch=watch), serving).run()
    context.reports.update(crawled.by_step)
    return 0


@contextmanager
def served(watch: Watch, context: JobContext, port: int, screen: Screen) -> Iterator[None]:
    """Serves a crawl's live page at a port of this machine."""
    with (
        closing(
            LiveServer(watch, LiveSettings.from_conf(context.conf), port, "--status")
        ) as server,
        server.running(),
    ):
        screen.note(server.says)
        yield


def parse_options(args: Sequence[str]) -> tuple[Path, CrawlOptions, int | None]:
    """Takes the command line apart: the crawl's folder, options, the live page's port. Raises
    UsageError.
    """
    arguments = parse(args, _FLAGS, usage=USAGE, least=2, most=3)
    *seeds, crawl_dir, rounds = arguments.positional
    if seeds and arguments["-s"]:
        fail("the seeds are given twice", USAGE)
    near = arguments["--dedup-near"]
    if near is not None and not 0 <= near <= MOST_BITS:
        fail(f"--dedup-near: expected 0 to {MOST_BITS} bits, found {near}", USAGE)
    where = seeds[0] if seeds else arguments["-s"]
    options = CrawlOptions(
        _rounds(rounds),
        seeds=None if where is None else as_path(where),
        wait=arguments["--wait"],
        index=arguments["--index"],
        sitemaps=None if arguments["-sm"] is None else Path(arguments["-sm"]),
        hostdb_update=arguments["--hostdbupdate"],
        hostdb_generate=arguments["--hostdbgenerate"],
        sitemaps_from_hostdb=arguments.get("--sitemaps-from-hostdb", "never"),
        fetchers=arguments.get("--num-fetchers", 1),
        tasks=arguments.get("--num-tasks", 2),
        size=arguments.get("--size-fetchlist", 50000),
        time_limit=arguments.get("--time-limit-fetch", 180),
        threads=arguments["--num-threads"],
        dedup_group=arguments.get("--dedup-group", "none"),
        dedup_near=near,
        add_days=arguments.get("-adddays", 0),
        shown_as=crawl_dir,
    )
    return as_path(crawl_dir), options, arguments["--status"]


def _rounds(text: str) -> int:
    if not re.fullmatch(r"-1|[0-9]+", text):
        fail(f"<num_rounds>: expected a number, found {text!r}", USAGE)
    return int(text)
