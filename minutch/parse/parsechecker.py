"""`minutch parsechecker`: fetch one page, parse it and show what comes out; a page of stdin per line.

Nothing is stored. Matches org.apache.nutch.parse.ParserChecker and util.AbstractChecker: data goes to stdout, what went
wrong to stderr. Pages are parsed in a process of their own, within parser.timeout.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from minutch.conf import Configuration
from minutch.errors import MinutchError, UsageError
from minutch.formats.writables import MapWritable, Text
from minutch.job import JobContext
from minutch.parse.dispatch import ParserNotFound, ParseUtil, failed_result
from minutch.parse.mime import MimeUtil
from minutch.parse.page import is_truncated
from minutch.parse.signature import from_conf as signature_from_conf
from minutch.parse.worker import WorkerPool, pool_settings
from minutch.plugin.chains import SCOPE_DEFAULT, ScoringFilters, URLNormalizers
from minutch.plugin.points import ParseResult, ProtocolOutput
from minutch.plugin.protocols import ProtocolFactory
from minutch.records.content import Content
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import CONTENT_TYPE_KEY

log = logging.getLogger(__name__)

FAILED: Final = 255
USAGE: Final = """Usage:
  ParserChecker [OPTIONS] <url>
    Fetch and parse one page
  ParserChecker [OPTIONS] -stdin
    Fetch and parse the pages whose URLs stand on stdin, one per line
Options:
  -D<property>=<value>  set a property (stands before the other options)
  -normalize            normalize the URLs
  -followRedirects      follow redirects
  -checkRobotsTxt       fail if robots.txt forbids the page
  -dumpText             show the text as well
  -forceAs <mimeType>   parse as this type, whatever the page's type is
  -md <key>=<value>     metadata of the CrawlDatum
"""
_MOST_REDIRECTS: Final = 3


@dataclass(slots=True)
class CheckOptions:
    """What the command line asks for."""

    url: str = ""
    normalize: bool = False
    follow_redirects: bool = False
    check_robots: bool = False
    dump_text: bool = False
    force_as: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)


_SWITCHES: Final = {
    "-normalize": "normalize",
    "-followRedirects": "follow_redirects",
    "-checkRobotsTxt": "check_robots",
    "-dumpText": "dump_text",
}


def run(args: list[str], context: JobContext) -> int:
    """The command."""
    options = _options(args)
    with PageChecker(context.conf, options, context) as checker:
        if options.url:
            return checker.check(options.url)
        for line in context.stdin:
            checker.check(line.rstrip("\r\n"))
    return 0


def _options(args: list[str]) -> CheckOptions:
    if not args:
        raise _usage("")
    options = CheckOptions()
    rest = list(args)
    while rest:
        word = rest.pop(0)
        if word in _SWITCHES:
            setattr(options, _SWITCHES[word], True)
        elif word in ("-forceAs", "-md"):
            if not rest:
                raise _usage(f"ERR: {word} needs a value")
            value = rest.pop(0)
            if word == "-md":
                key, _, value = value.partition("=")
                options.metadata[key] = value
            else:
                options.force_as = value
        elif word != "-stdin":
            if rest:
                raise _usage(f"ERR: Not a recognized argument: {word}")
            options.url = word
    return options


def _usage(message: str) -> UsageError:
    error = UsageError(f"{message}\n{USAGE}" if message else USAGE)
    error.exit_code = FAILED
    return error


Checked = tuple[ParseResult | None, str]
"""The parse of a page, or why there is none."""


class CheckTask:
    """The task of the worker: a pickled Content in, its ParseResult out (None if no parser takes it)."""

    def __init__(self, conf: Configuration) -> None:
        self._parsers = ParseUtil(conf)

    def run(self, item: bytes) -> Checked:
        try:
            return self._parsers.parse(pickle.loads(item)), ""
        except ParserNotFound as error:
            return None, str(error)

    def finish(self, results: Sequence[Checked]) -> list[Checked]:
        return list(results)

    def fail(self, item: bytes, reason: str) -> Checked:
        return failed_result(pickle.loads(item).url, reason), ""


class PageChecker:
    """Fetches and parses pages and prints what Nutch prints."""

    def __init__(self, conf: Configuration, options: CheckOptions, context: JobContext) -> None:
        self._options = options
        self._context = context
        self._protocols = ProtocolFactory(conf)
        self._normalizers = URLNormalizers(conf, SCOPE_DEFAULT) if options.normalize else None
        self._scoring = ScoringFilters(conf)
        self._signature = signature_from_conf(conf)
        self._mime = MimeUtil(conf)
        self._most_redirects = conf.get_int("http.redirect.max", _MOST_REDIRECTS)
        if options.follow_redirects and self._most_redirects == 0:
            self._most_redirects = _MOST_REDIRECTS
        settings = pool_settings(conf) | {"workers": 1}
        self._pool: WorkerPool[Checked] = WorkerPool(partial(CheckTask, conf), **settings)

    def __enter__(self) -> PageChecker:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def check(self, url: str) -> int:
        """One page; the exit code. What is wrong with it goes to stderr."""
        try:
            content, datum = asyncio.run(self._fetch(url))
        except CheckFailed as error:
            self._context.err.write(f"{error}\n")
            self._context.print()
            return FAILED
        if content is None:
            self._context.print(f"No content for {url}\n")
            return 0
        return self._show(content, datum)

    async def _fetch(self, url: str) -> tuple[Content | None, CrawlDatum]:
        """The page's content, after redirects if they are to be followed. Raises CheckFailed."""
        datum = CrawlDatum(metadata=_map_writable(self._options.metadata), fetch_time=self._context.clock.now())
        followed = 0
        try:
            url = self._normalized(url)
            output = await self._output(url, datum)
            while self._options.follow_redirects and output.status.is_redirect and followed <= self._most_redirects:
                url = self._normalized(output.status.message or "")
                log.info("Follow redirect to %s", url)
                output = await self._output(url, datum)
                followed += 1
        except MinutchError as error:
            raise CheckFailed(f"Fetch failed: {error}") from error
        finally:
            await self._protocols.close()
        if not output.status.is_success:
            raise CheckFailed(self._failure(output, followed))
        if output.content is not None:
            self._settle_type(output.content, datum)
        return output.content, datum

    def _failure(self, output: ProtocolOutput, followed: int) -> str:
        message = f"Fetch failed with protocol status: {output.status}"
        if output.status.is_redirect:
            message += (
                "\nRedirect(s) not handled due to configuration."
                f"\nMax Redirects to handle per config: {self._most_redirects}"
                f"\nNumber of Redirects handled: {followed}"
            )
        return message

    def _normalized(self, url: str) -> str:
        normalized = self._normalizers.normalize(url) if self._normalizers else url
        if normalized is None:
            raise CheckFailed(f"{url}: dropped by a normalizer")
        return normalized

    async def _output(self, url: str, datum: CrawlDatum) -> ProtocolOutput:
        log.info("fetching: %s", url)
        protocol = self._protocols.get_protocol(url)
        if self._options.check_robots:
            rules = await protocol.get_robot_rules(url, datum, None)
            if not rules.is_allowed(url):
                raise CheckFailed(f"Denied by robots.txt: {url}\nFetch disallowed by robots.txt")
        return await protocol.get_protocol_output(url, datum)

    def _settle_type(self, content: Content, datum: CrawlDatum) -> None:
        """The type that the page is parsed as, into content and datum."""
        found = self._options.force_as
        if found is None:
            found = self._mime.resolve(content.content_type or None, content.url, content.content)
        content.content_type = found
        datum.metadata[Text(CONTENT_TYPE_KEY)] = Text(found)

    def _show(self, content: Content, datum: CrawlDatum) -> int:
        if is_truncated(content):
            log.warning("Content is truncated, parse may fail!")
        self._score(partial(self._scoring.pass_score_before_parsing, content.url, datum, content))
        result, reason = self._pool.run(pickle.dumps(content))
        if result is None:
            self._context.err.write(f"{content.url}: {reason}\n")
            return FAILED
        own = result.get(content.url)
        log.info("parsing: %s", content.url)
        log.info("contentType: %s", content.content_type)
        log.info("signature: %s", self._signature.calculate(content, own.text if own else None).hex())
        output = []
        for url, parse in result.items():
            self._score(partial(self._scoring.pass_score_after_parsing, url, content, parse))
            output.append(f"{url}\n{parse.data}\n{parse.text if self._options.dump_text else ''}")
        self._context.print("".join(output))
        return 0

    def _score(self, step: partial[None]) -> None:
        try:
            step()
        except MinutchError as error:
            log.warning("score not passed on: %s", error)


class CheckFailed(MinutchError):
    """The page could not be had."""


def _map_writable(values: Mapping[str, str]) -> MapWritable:
    return MapWritable([(Text(key), Text(value)) for key, value in values.items()])
