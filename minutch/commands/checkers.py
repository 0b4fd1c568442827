"""Checks pages and robots.txt, for people who try a configuration. Nothing is stored.

Source: AbstractChecker, ParserChecker, IndexingFiltersChecker and RobotRulesParser of
org.apache.nutch: data goes to stdout, what went wrong to stderr.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, TextIO

from minutch import eventloops
from minutch.clock import Clock
from minutch.commands.arguments import Arguments
from minutch.commands.declaration import FAILED
from minutch.commands.lineserver import answer_lines
from minutch.conf import Configuration
from minutch.cycle.fetch.decisions import reason
from minutch.cycle.index.indexchecker import IndexChecker, IndexCheckOptions
from minutch.cycle.parse.pagecheck import CheckFailed, PageChecker, PageCheckOptions
from minutch.errors import MinutchError, ProtocolError, UrlError
from minutch.hadoop.formats.javahash import hash_map_order, text_hash
from minutch.hadoop.formats.javaio import encode_text
from minutch.job import JobContext
from minutch.plugin.points import Parse, ParseResult
from minutch.plugin.protocolfactory import ProtocolFactory, rules_of
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import Metadata
from minutch.records.parsedata import ParseData
from minutch.records.protocol import Content
from minutch.urls.parts import parse
from minutch.urls.robots import RobotRules, agent_names, robots_parser

log = logging.getLogger(__name__)

_NAMES_A_PROPERTY: Final = re.compile(r"\([a-z]+(\.[a-z]+)+\)$")


def parsechecker(arguments: Arguments, context: JobContext) -> int:
    """Shows what parsing finds in a page, or in a page of each line."""
    if not arguments.words:
        arguments.fail("")
    options = arguments.made(PageCheckOptions)
    with ParserChecker(context.conf, options, context.clock, arguments["-forceAs"]) as checker:
        return show_pages(checker, arguments, context)


def indexchecker(arguments: Arguments, context: JobContext) -> int:
    """Shows the document of a page, or of a page of each line."""
    if not arguments.words:
        arguments.fail("")
    options = arguments.made(IndexCheckOptions)
    with IndexChecker(context.conf, options, context.clock) as checker:
        return show_pages(checker, arguments, context)


def robotsparser(arguments: Arguments, context: JobContext) -> int:
    """Prints `allowed`, `not allowed` or `allowlisted` for each URL; logs the rest of the file."""
    try:
        listed = arguments["url-file"].read_text(encoding="utf-8", errors="replace").splitlines()
        options = RobotsOptions(arguments["agent-names"] or "")
        source, urls = arguments["robots-file-or-url"], map(str.strip, listed)
        found = check_robots(source, urls, options, context=context)
    except OSError as exc:
        raise MinutchError(f"{exc.filename}: {exc.strerror}") from exc
    except ProtocolError as exc:
        log.error("%s", exc)
        return FAILED
    names = f"[{', '.join(found.agents)}]" if found.agents else "* (any other agent)"
    context.print(f"Testing robots.txt for agent names: {names}")
    for url, verdict in found.verdicts:
        context.print(f"{verdict}:\t{url}")
    for sitemap in found.rules.sitemaps:
        log.info("Sitemap: %s", sitemap)
    for use, answer in found.rules.content_signals.items():
        log.info("Content-Signal: %s=%s", use, answer)
    return 0


def show_pages(checker: PageChecker, arguments: Arguments, context: JobContext) -> int:
    """Checks the page of the command line, or those of -stdin or -listen; returns the exit code."""
    if arguments["url"]:
        try:
            context.print(checker.check(arguments["url"]))
        except CheckFailed as error:
            context.err.write(f"{error}\n")
            why = "" if error.status is None else reason(error.status)
            if _NAMES_A_PROPERTY.search(why):
                context.err.write(f"hint: {why}\n")
            # AbstractChecker prints an empty line for a page that failed.
            context.print("")
            return FAILED
        return 0
    return answer_lines(arguments, page_answers(checker, context.err), context)


def page_answers(checker: PageChecker, err: TextIO) -> Callable[[str], str]:
    """Returns a function that checks one page at a time; the text of a failure goes to `err`."""
    lock = threading.Lock()

    def answer(url: str) -> str:
        # Connections are answered by threads; plugins, and the loop that fetches, belong to one.
        with lock:
            try:
                return checker.check(url)
            except MinutchError as error:
                err.write(f"{error}\n")
                return ""

    return answer


class ParserChecker(PageChecker):
    """Shows what parsing finds."""

    def __init__(
        self,
        conf: Configuration,
        options: PageCheckOptions,
        clock: Clock,
        force_as: str | None = None,
    ) -> None:
        super().__init__(conf, options, clock)
        self.force_as = force_as

    def _shown(self, content: Content, datum: CrawlDatum) -> str:
        result = self._parsed(content, datum)
        log.info("signature: %s", self._signature_of(content, result).hex())
        output = []
        for url, parsed in _in_order(result):
            self._score(partial(self._scoring.pass_score_after_parsing, url, content, parsed))
            text = parsed.text if self._options.dump_text else ""
            output.append(f"{url}\n{_as_fetched(url, parsed.data)}\n{text}")
        return "".join(output)


class Headers(Metadata):
    """The headers of a response before a segment has stored it (CaseInsensitiveMetadata, a tree
    without case).
    """

    def java_names(self) -> Iterator[str]:
        """The names in alphabetic order."""
        return iter(sorted(self, key=str.lower))


def _in_order(result: ParseResult) -> list[tuple[str, Parse]]:
    """The documents of a page in the order of Java's HashMap<Text, …>, as in ParseResult."""
    documents = list(result.items())
    return [documents[i] for i in hash_map_order([text_hash(encode_text(url)) for url in result])]


def _as_fetched(url: str, data: ParseData) -> ParseData:
    return (
        replace(data, content_meta=Headers(data.content_meta))
        # Plugins of HTTP alone have such a tree.
        if url[:4].lower() == "http"
        else data
    )


ALLOWED: Final = "allowed"
NOT_ALLOWED: Final = "not allowed"
ALLOWLISTED: Final = "allowlisted"
_REST: Final = 1.0
"""Seconds before a second request, should one be needed."""
_IS_URL: Final = re.compile(r"(?:https?|ftp|file)://?")


@dataclass(frozen=True, slots=True)
class RobotsOptions:
    """Options of robotsparser."""

    agents: str = ""
    """Names of the crawler, separated by commas; empty: the configured ones, without any `*`."""


@dataclass(frozen=True, slots=True)
class RobotsCheck:
    """The verdicts of a robots.txt."""

    agents: list[str]
    """The names by which its rules were chosen; empty: those for everybody."""
    verdicts: list[tuple[str, str]]
    """Each URL with ALLOWED, NOT_ALLOWED or ALLOWLISTED."""
    rules: RobotRules


def check_robots(
    source: str,
    urls: Iterable[str],
    options: RobotsOptions = RobotsOptions(),
    *,
    context: JobContext,
) -> RobotsCheck:
    """Checks URLs against the robots.txt in a local file, or of the host of a URL.

    What is no URL is logged and left out. Raises MinutchError if the file can't be read, and
    ProtocolError if no protocol takes the URL.
    """
    conf = _with_agents(context.conf, options.agents)
    rules = _rules(source, conf)
    # RobotRulesParser has a SuffixStringMatcher of them: example.org stands for its subdomains.
    allowlist = tuple(host for host in conf.get_strings("http.robot.rules.allowlist") if host)
    verdicts = []
    for url in urls:
        try:
            host = parse(url).host
        except UrlError:
            log.warning("not a URL: %s", url)
            continue
        verdict = ALLOWED if rules.is_allowed(url) else NOT_ALLOWED
        verdicts.append((url, ALLOWLISTED if allowlist and host.endswith(allowlist) else verdict))
    return RobotsCheck(agent_names(conf), verdicts, rules)


def _with_agents(conf: Configuration, agents: str) -> Configuration:
    """Returns the configuration with a name for the crawler: the first of `agents`, the configured
    one, the first of the other agents, or `*`.
    """
    if agents:
        return conf.with_values(
            {"http.agent.name": agents.split(",", maxsplit=1)[0], "http.robots.agents": agents}
        )
    if conf.get("http.agent.name"):
        return conf
    first = conf.get_text("http.robots.agents").split(",")[0].strip()
    # A file can be checked before anybody has a name; requests can't be made so.
    return conf.with_values({"http.agent.name": first or "*"})


def _rules(source: str, conf: Configuration) -> RobotRules:
    if _IS_URL.match(source) is not None:
        # Only then does a protocol hand on the file itself, which is logged below.
        keeps = conf.get_boolean("fetcher.store.robotstxt")
        return eventloops.run(_fetched_rules(source, ProtocolFactory(conf), keeps=keeps))
    try:
        content = Path(source).read_bytes()
    except OSError as exc:
        raise MinutchError(f"{exc.filename}: {exc.strerror}") from exc
    return robots_parser(conf)(content, "text/plain", Path(source).resolve().as_uri())


async def _fetched_rules(url: str, protocols: ProtocolFactory, *, keeps: bool) -> RobotRules:
    fetched: list[Content] | None = [] if keeps else None
    try:
        rules = await rules_of(protocols.get_protocol(url), url, CrawlDatum(), fetched, _REST)
    finally:
        await protocols.close()
    for content in fetched or ():
        log.info("robots.txt of %s:\n%s", content.url, content)
    return rules
