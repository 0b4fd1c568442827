"""The command line of crawl: with the seeds first, with Nutch's -s, or with URLs.

    crawl [options] <seed_dir> <crawl_dir> <num_rounds>
    crawl [options] [-s <seed_dir>] <crawl_dir> <num_rounds>
    crawl [options] <url>... [<crawl_dir>] [<num_rounds>]

Matched: the options of Nutch's src/bin/crawl, its defaults included. A wait of 1h is an hour. What
people know from other tools is in `cycle/crawl/wishes`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import dropwhile, takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

from minutch.commands.arguments import Arguments, Flag, fail, parse
from minutch.conf import NEW_CRAWLS, Configuration
from minutch.conf.sources import is_a_crawl
from minutch.cycle.crawl.crawls import crawl
from minutch.cycle.crawl.preflight import Wishes, failed_seeds, with_schemes
from minutch.cycle.crawl.screen import Screen
from minutch.cycle.crawl.steps import CrawlOptions
from minutch.cycle.crawldb.duplicates import MOST_BITS
from minutch.cycle.crawldb.seeds import read_seeds
from minutch.cycle.fetch.watch import Watch
from minutch.errors import ConfigError, MinutchError, UrlError
from minutch.hadoop.stores import as_path
from minutch.inspect.live.liveserver import LiveServer, LiveSettings
from minutch.job import JobContext, set_up_process
from minutch.processwide import command_line
from minutch.terminal import counted
from minutch.urls.domains import suffix_of
from minutch.urls.javaregex import JavaRegex

USAGE = """crawl [options] <seed_dir> <crawl_dir> <num_rounds>
       crawl [options] [-s <seed_dir>] <crawl_dir> <num_rounds>
       crawl [options] <url>... | <seed_file> [<crawl_dir>] [<num_rounds>]

  <url>           crawl these sites, until nothing is due, in a folder with the name of the first;
                  without a scheme by https, or else by http; links to other domains are left out
                  (db.ignore.external.links); the folder's conf/nutch-site.xml keeps what is set
                  here, for all commands on it
  <seed_dir>      file or folder with URLs, one per line; may be left out once the crawl has begun
  <crawl_dir>     where crawldb, linkdb and segments are (made if missing)
  <num_rounds>    rounds of generate, fetch, parse, updatedb, invertlinks and dedup; \
-1: see --forever;
                  a file .STOP in the working directory or in <crawl_dir> ends it after a round

of a site:
  --depth <n>                       follow at most so many links from a seed (scoring.depth.max)
  --max-pages <n>                   ask for at most so many pages
  --include <regex>, --exclude <regex>
                                    take only URLs that match, or none of them \
(urlfilter.regex.rules)
  --delay <seconds>                 time between two requests to a host (fetcher.server.delay)
  --agent <name>                    your crawler's name, for site owners (http.agent.name)

of any crawl:
  -s <seed_dir>                     the seeds, in Nutch's way
  --forever                         go on round after round; when nothing is due, rest until the \
next page is
  -w, --wait <number>[s|m|h|d]      when nothing is due, wait so long and look again; \
-1: stop
                                    (default with a number of rounds)
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

_WITHOUT_SCHEME = re.compile(
    r"((?P<name>(?:[\w-]+\.)+(?:xn--[\w-]+|[^\W\d_]{2,})|localhost)|\d{1,3}(?:\.\d{1,3}){3}|\[[0-9A-Fa-f:.]+\])"
    r"(?P<port>:\d{1,5})?(?:[/?].*)?"
)
"""A URL without its scheme: a host, perhaps a port, a path, a query."""
_OF_A_SITE = ("--depth", "--include", "--exclude", "--delay", "--agent")
_MOST_SEEDS = 20
"""Failed seeds that are listed."""
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
    Flag("--depth", "n", int),
    Flag("--max-pages", "n", int),
    Flag("--forever"),
    Flag("--include", "regex", repeats=True),
    Flag("--exclude", "regex", repeats=True),
    Flag("--delay", "seconds", float),
    Flag("--agent", "name"),
)


def run(args: list[str], context: JobContext) -> int:
    """Runs the command: exit code 0, or 255 and an error; `--status` serves a live page."""
    crawl_dir, options, wishes, port = parse_options(args)
    with ExitStack() as stack:
        if wishes is not None:
            conf, told = _wished(wishes, crawl_dir, context)
            set_up_process(conf)
            context, options = replace(context, conf=conf), replace(options, remembered=told)
            wishes = replace(wishes, urls=with_schemes(crawl_dir, wishes.urls, context))
            are_typed = options.seeds is None
            if options.seeds is None:
                options = replace(options, seeds=stack.enter_context(_seed_file(wishes.urls)))
        serving: Callable[[Screen], AbstractContextManager[object]] = nullcontext
        crawling = context
        if port is not None:
            watch = Watch(f"crawl {crawl_dir}", context.clock, can_stop=True)
            serving = partial(served, watch, context, port)
            crawling = replace(context, watch=watch)
        crawled = crawl(crawl_dir, options, context=crawling, serving=serving)
    context.reports.update(crawled.by_step)
    if wishes is not None:
        _say_failures(crawl_dir, wishes.urls, context, are_typed=are_typed)
    return 0


def _say_failures(
    crawl_dir: Path, urls: Sequence[str], context: JobContext, *, are_typed: bool
) -> None:
    """Says which seeds could not be had, and why. Raises MinutchError if that is all of them, or
    one that was typed; of a file of seeds, some fail on any day.
    """
    failed = failed_seeds(crawl_dir, urls, context.conf)
    if not failed:
        return
    said, total = [f"{url}: {why}" for url, why in failed.items()], len(set(urls))
    for line in said[:_MOST_SEEDS] if len(said) > 1 or not are_typed else ():
        context.print(f"  seed not fetched: {line}")
    if len(said) > _MOST_SEEDS:
        context.print(f"  and {counted(len(said) - _MOST_SEEDS, 'seeds')} more")
    if are_typed or len(said) == total:
        count = "no seed was" if len(said) == total else f"{len(said)} of {total} seeds not"
        text = f"{count} fetched{f': {said[0]}' if len(said) == 1 else ''}"
        asked = f"{shlex.quote(next(iter(failed)))} {shlex.quote(str(crawl_dir))}"
        raise MinutchError(text, hint=command_line(f"explain {asked}"))


def _wished(
    wishes: Wishes, crawl_dir: Path, context: JobContext
) -> tuple[Configuration, frozenset[str]]:
    """Returns the configuration of the crawl in a folder with what is wished, and the names of what
    is; asks for the crawler's name where people can answer.
    """
    conf = context.conf.of_crawl(crawl_dir, NEW_CRAWLS)
    wished = wishes.properties(conf)
    if not conf.with_values(wished).get_trimmed("http.agent.name") and context.stdin.isatty():
        context.print("Site owners see who calls. What is your crawler's name (http.agent.name)?")
        wished["http.agent.name"] = context.stdin.readline().strip()
    return conf.with_values(wished).freeze(), frozenset(wished)


@contextmanager
def _seed_file(urls: Sequence[str]) -> Iterator[Path]:
    with TemporaryDirectory(prefix="minutch-") as folder:
        path = Path(folder) / "seeds.txt"
        path.write_text("".join(f"{url}\n" for url in urls), "utf-8", "surrogateescape")
        yield path


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


def parse_options(args: Sequence[str]) -> tuple[Path, CrawlOptions, Wishes | None, int | None]:
    """Takes the command line apart: the crawl's folder, options, what is wished of a site, the live
    page's port. Raises UsageError.
    """
    arguments = parse(args, _FLAGS, usage=USAGE, least=1)
    wishes = _wishes(arguments)
    if wishes is None:
        words = arguments.positional
        if arguments["--forever"] and not _is_number(words[-1]):
            words = [*words, "-1"]
        if not 2 <= len(words) <= 3:
            few = len(words) < 2
            fail("too few arguments: no <num_rounds>" if few else "too many arguments", USAGE)
        *seeds, crawl_dir, rounds = words
    else:
        seeds, crawl_dir, rounds = _places(arguments, wishes)
    if seeds and arguments["-s"]:
        fail("the seeds are given twice", USAGE)
    near = arguments["--dedup-near"]
    if near is not None and not 0 <= near <= MOST_BITS:
        fail(f"--dedup-near: expected 0 to {MOST_BITS} bits, found {near}", USAGE)
    has_wait = any(name == "--wait" for name, _ in arguments.in_order)
    where = seeds[0] if seeds else arguments["-s"]
    options = CrawlOptions(
        _rounds(rounds or "-1"),
        forever=arguments["--forever"] or (rounds == "-1" and not has_wait),
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
        most=arguments["--max-pages"],
        again="" if wishes is None else shlex.join(args),
        shown_as=crawl_dir,
    )
    return as_path(crawl_dir), options, wishes, arguments["--status"]


def _wishes(arguments: Arguments) -> Wishes | None:
    """Returns what is wished of a site: where the first word is a URL, or a file of URLs."""
    words = arguments.positional
    urls = [] if arguments["-s"] else list(takewhile(_is_url, words))
    if not (urls or _is_number(words[-1])) and len(words) < 3 and as_path(words[0]).is_file():
        urls = [url for frame in read_seeds(as_path(words[0])) for url in frame["url"]]
        if not urls:
            fail(f"{words[0]} has no URL", USAGE)
    for name in ("--include", "--exclude"):
        for pattern in arguments[name] or ():
            try:
                JavaRegex(pattern)
            except ConfigError as exc:
                fail(f"{name}: {exc}", USAGE)
    given = [name for name in _OF_A_SITE if arguments[name]]
    if not urls and given:
        fail(f"{given[0]} is for a crawl of URLs: crawl <url>", USAGE)
    return (
        None
        if not urls
        else Wishes(
            urls,
            arguments["--depth"],
            arguments["--include"] or (),
            arguments["--exclude"] or (),
            arguments["--delay"],
            arguments["--agent"],
        )
    )


def _places(arguments: Arguments, wishes: Wishes) -> tuple[list[str], str, str]:
    """Returns the seed file, if it is one, the crawl's folder and the number of rounds, if any."""
    words = list(dropwhile(_is_url, arguments.positional))
    seeds = [] if len(words) < len(arguments.positional) else [words.pop(0)]
    rounds = words.pop() if words and _is_number(words[-1]) else ""
    if len(words) > 1:
        fail(f"expected one folder after the URLs, found {shlex.join(words)}", USAGE)
    try:
        return seeds, words[0] if words else wishes.folder, rounds
    except UrlError as exc:
        fail(str(exc), USAGE)


def _is_url(word: str) -> bool:
    """Tells a page from a folder, also of another file system: by its scheme, or by its host if no
    file has that name but the folder of a crawl, which the host may have given it.
    """
    if re.match(r"(https?|ftp)://", word, re.IGNORECASE):
        return True
    match = _WITHOUT_SCHEME.fullmatch(word)
    if match is None or (Path(word).exists() and not is_a_crawl(Path(word))):
        return False
    is_named = match["port"] or not match["name"] or match["name"].lower() == "localhost"
    return bool(is_named) or suffix_of(match["name"].lower()) is not None


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-1|[0-9]+", text) is not None


def _rounds(text: str) -> int:
    if not _is_number(text):
        fail(f"<num_rounds>: expected a number, found {text!r}", USAGE)
    return int(text)
