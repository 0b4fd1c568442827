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

from minutch.commands.arguments import Arguments
from minutch.conf import NEW_CRAWLS, Configuration
from minutch.conf.sources import is_a_crawl
from minutch.cycle.crawl.crawler import crawl
from minutch.cycle.crawl.preflight import Wishes, failed_seeds, with_schemes
from minutch.cycle.crawl.screen import Screen
from minutch.cycle.crawl.steps import CrawlOptions
from minutch.cycle.crawldb.seeds import read_seeds
from minutch.cycle.fetch.watch import Watch
from minutch.errors import ConfigError, MinutchError, UrlError
from minutch.inspect.live.liveserver import LiveServer, LiveSettings
from minutch.job import JobContext, set_up_process
from minutch.paths import as_path
from minutch.processwide import command_line
from minutch.terminal import counted
from minutch.urls.domains import suffix_of
from minutch.urls.javaregex import JavaRegex

_WITHOUT_SCHEME = re.compile(
    r"((?P<name>(?:[\w-]+\.)+(?:xn--[\w-]+|[^\W\d_]{2,})|localhost)|\d{1,3}(?:\.\d{1,3}){3}|\[[0-9A-Fa-f:.]+\])"
    r"(?P<port>:\d{1,5})?(?:[/?].*)?"
)
"""A URL without its scheme: a host, perhaps a port, a path, a query."""
_OF_A_SITE = ("--depth", "--include", "--exclude", "--delay", "--agent")
_MOST_SEEDS = 20
"""Failed seeds that are listed."""


def run(arguments: Arguments, context: JobContext) -> int:
    """Runs the command: exit code 0, or 255 and an error; `--status` serves a live page."""
    crawl_dir, options, wishes, port = parse_options(arguments)
    with ExitStack() as stack:
        if wishes is not None:
            conf, told = _wished(wishes, crawl_dir, context)
            # Again: what is wished may change what a process shares, such as memory or the suffix
            # list.
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
    # In a script nobody answers: there the fetch fails, and says which property is missing.
    if not conf.with_values(wished).get_trimmed("http.agent.name") and context.stdin.isatty():
        context.print("Site owners see who calls. What is your crawler's name (http.agent.name)?")
        wished["http.agent.name"] = context.stdin.readline().strip()
    return conf.with_values(wished).freeze(), frozenset(wished)


@contextmanager
def _seed_file(urls: Sequence[str]) -> Iterator[Path]:
    with TemporaryDirectory(prefix="minutch-") as folder:
        path = Path(folder) / "seeds.txt"
        # argv has bytes that are no UTF-8 as surrogates.
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


def parse_options(arguments: Arguments) -> tuple[Path, CrawlOptions, Wishes | None, int | None]:
    """Takes the command line apart: the crawl's folder, options, what is wished of a site, the live
    page's port. Raises UsageError.
    """
    wishes = _wishes(arguments)
    if wishes is None:
        words = arguments.positional
        if arguments["--forever"] and not _is_number(words[-1]):
            words = [*words, "-1"]
        if not 2 <= len(words) <= 3:
            few = len(words) < 2
            arguments.fail("too few arguments: no <num_rounds>" if few else "too many arguments")
        *seeds, crawl_dir, rounds = words
    else:
        seeds, crawl_dir, rounds = _places(arguments, wishes)
    if seeds and arguments["-s"]:
        arguments.fail("the seeds are given twice")
    if rounds and not _is_number(rounds):
        arguments.fail(f"<num_rounds>: expected a number, found {rounds!r}")
    # Nutch's crawl with -1 rounds ends when nothing is due, or waits: --wait says how long.
    has_wait = "--wait" in arguments.given
    where = seeds[0] if seeds else arguments["-s"]
    options = arguments.made(
        CrawlOptions,
        rounds=int(rounds or "-1"),
        forever=arguments["--forever"] or (rounds == "-1" and not has_wait),
        seeds=None if where is None else as_path(where),
        again="" if wishes is None else shlex.join(arguments.words),
        shown_as=crawl_dir,
    )
    return as_path(crawl_dir), options, wishes, arguments["--status"]


def _wishes(arguments: Arguments) -> Wishes | None:
    """Returns what is wished of a site: where the first word is a URL, or a file of URLs."""
    words = arguments.positional
    urls = [] if arguments["-s"] else list(takewhile(_is_url, words))
    # With a number of rounds it is Nutch's own form, whose seeds may be a file, too.
    if not (urls or _is_number(words[-1])) and len(words) < 3 and as_path(words[0]).is_file():
        urls = [url for frame in read_seeds(as_path(words[0])) for url in frame["url"]]
        if not urls:
            arguments.fail(f"{words[0]} has no URL")
    for name in ("--include", "--exclude"):
        for pattern in arguments[name] or ():
            try:
                JavaRegex(pattern)
            except ConfigError as exc:
                arguments.fail(f"{name}: {exc}")
    given = [name for name in _OF_A_SITE if arguments[name]]
    if not urls and given:
        arguments.fail(f"{given[0]} is for a crawl of URLs: crawl <url>")
    return arguments.made(Wishes, urls=urls) if urls else None


def _places(arguments: Arguments, wishes: Wishes) -> tuple[list[str], str, str]:
    """Returns the seed file, if it is one, the crawl's folder and the number of rounds, if any."""
    words = list(dropwhile(_is_url, arguments.positional))
    seeds = [] if len(words) < len(arguments.positional) else [words.pop(0)]
    rounds = words.pop() if words and _is_number(words[-1]) else ""
    if len(words) > 1:
        arguments.fail(f"expected one folder after the URLs, found {shlex.join(words)}")
    try:
        return seeds, words[0] if words else wishes.folder, rounds
    except UrlError as exc:
        arguments.fail(str(exc))


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
    # `seeds.d` is a folder to be, `example.org` a host: .org is a public suffix, .d is none.
    return bool(is_named) or suffix_of(match["name"].lower()) is not None


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-1|[0-9]+", text) is not None
