"""`minutch parsechecker`: fetch one page, parse it and show what comes out; a page of stdin per line.

Nothing is stored. Source: org.apache.nutch.parse.ParserChecker and util.AbstractChecker: data goes to stdout, what went
wrong to stderr. Pages are parsed in a process of their own, within parser.timeout.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from minutch.arguments import Arguments, Flag, parse
from minutch.conf import Configuration
from minutch.errors import MinutchError
from minutch.formats.javahash import hash_map_order, text_hash
from minutch.formats.javaio import encode_text
from minutch.formats.writables import MapWritable, Text, Writable
from minutch.job import JobContext
from minutch.parse.dispatch import ParserNotFound, ParseUtil, failed_result
from minutch.parse.mime import MimeUtil
from minutch.parse.page import is_truncated
from minutch.parse.signature import from_conf as signature_from_conf
from minutch.parse.worker import WorkerPool, pool_settings
from minutch.plugin.chains import SCOPE_DEFAULT, ScoringFilters, URLNormalizers
from minutch.plugin.lineserver import LINE_FLAGS, answer_lines
from minutch.plugin.points import Parse, ParseResult, ProtocolOutput
from minutch.plugin.protocolfactory import ProtocolFactory
from minutch.records.content import Content
from minutch.records.crawldatum import CrawlDatum
from minutch.records.links import Outlink
from minutch.records.metadata import CONTENT_TYPE_KEY, Metadata
from minutch.records.outlinkrun import OutlinkRun
from minutch.records.parsedata import ParseData

log = logging.getLogger(__name__)

FAILED: Final = 255
USAGE: Final = """\
ParserChecker [OPTIONS] (<url> | -stdin | -listen <port> [-keepClientCnxOpen])

  -D<property>=<value>  set a property (stands before the other options)
  -normalize            normalize the URLs
  -followRedirects      follow redirects
  -checkRobotsTxt       fail if robots.txt forbids the page
  -dumpText             show the text as well
  -forceAs <mimeType>   parse as this type, whatever the page's type is
  -md <key>=<value>     metadata of the CrawlDatum; may be repeated
  -stdin                fetch and parse the pages whose URLs stand on stdin, one on each line
  -listen <port>        those that come from connections to this port
  -keepClientCnxOpen    more than one on each connection"""
FLAGS: Final = (
    Flag("-normalize"),
    Flag("-followRedirects"),
    Flag("-checkRobotsTxt"),
    Flag("-dumpText"),
    Flag("-forceAs", value="mimeType"),
    Flag("-md", value="key>=<value", repeats=True),
    *LINE_FLAGS,
)
_MOST_REDIRECTS: Final = 3


def run(args: list[str], context: JobContext) -> int:
    """The command."""
    given = parse(args, FLAGS, usage=USAGE, least=0 if args else 1, most=1)
    with PageChecker(context.conf, given, context) as checker:
        if not given.positional:
            return answer_lines(given, checker.answer, context)
        code, output = checker.check(given.positional[0])
        context.print(output)
        return code


Checked = tuple[ParseResult | None, str]
"""The parse of a page, or why there is none."""


class CheckTask:
    """The task of the worker: a pickled Content in, its ParseResult out (None if no parser takes it)."""

    answers = (ParseResult, Parse, OutlinkRun, Outlink, Writable)

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
    """Fetches and parses pages and says what Nutch says; `given` holds the values of FLAGS."""

    def __init__(self, conf: Configuration, given: Arguments, context: JobContext) -> None:
        self._given = given
        self._context = context
        self._protocols = ProtocolFactory(conf)
        self._normalizers = URLNormalizers(conf, SCOPE_DEFAULT) if given["-normalize"] else None
        self._scoring = ScoringFilters(conf)
        self._signature = signature_from_conf(conf)
        self._mime = MimeUtil(conf)
        self._follows = given["-followRedirects"]
        self._most_redirects = conf.get_int("http.redirect.max", _MOST_REDIRECTS)
        if self._follows and self._most_redirects == 0:
            self._most_redirects = _MOST_REDIRECTS
        settings = pool_settings(conf) | {"workers": 1}
        self._pool: WorkerPool[Checked] = WorkerPool(partial(CheckTask, conf), **settings)
        self._turn = threading.Lock()

    def __enter__(self) -> PageChecker:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def answer(self, url: str) -> str:
        """What is shown of one page of many, nothing for one that can't be had; connections wait for one another."""
        with self._turn:
            try:
                return self.check(url)[1]
            except MinutchError as error:
                self._complain(error)
                return ""

    def check(self, url: str) -> tuple[int, str]:
        """Exit code, and what is shown of one page. Raises CheckError where Nutch ends with an exception."""
        try:
            content, datum = asyncio.run(self._fetch(url))
        except CheckFailed as error:
            self._complain(error)
            return FAILED, ""
        return (0, f"No content for {url}\n") if content is None else (0, self._shown(content, datum))

    def _complain(self, error: MinutchError) -> None:
        self._context.err.write(f"{error}\n")

    async def _fetch(self, url: str) -> tuple[Content | None, CrawlDatum]:
        """The page's content, after redirects if they are to be followed. Raises CheckFailed, CheckError."""
        datum = CrawlDatum(metadata=_map_writable(self._given["-md"] or ()), fetch_time=self._context.clock.now())
        followed = 0
        try:
            url = self._normalized(url)
            output = await self._output(url, datum)
            while self._follows and output.status.is_redirect and followed <= self._most_redirects:
                url = self._normalized(output.status.message or "")
                log.info("Follow redirect to %s", url)
                output = await self._output(url, datum)
                followed += 1
        except MinutchError as error:
            raise error if isinstance(error, CheckFailed) else CheckError(f"Fetch failed: {error}") from error
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
            raise CheckError(f"{url}: dropped by a normalizer")
        return normalized

    async def _output(self, url: str, datum: CrawlDatum) -> ProtocolOutput:
        log.info("fetching: %s", url)
        protocol = self._protocols.get_protocol(url)
        if self._given["-checkRobotsTxt"]:
            rules = await protocol.get_robot_rules(url, datum, None)
            if not rules.is_allowed(url):
                raise CheckFailed(f"Denied by robots.txt: {url}\nFetch disallowed by robots.txt")
        return await protocol.get_protocol_output(url, datum)

    def _settle_type(self, content: Content, datum: CrawlDatum) -> None:
        """The type that the page is parsed as, into content and datum."""
        found = self._given["-forceAs"]
        if found is None:
            found = self._mime.resolve(content.content_type or None, content.url, content.content)
        content.content_type = found
        datum.metadata[Text(CONTENT_TYPE_KEY)] = Text(found)

    def _shown(self, content: Content, datum: CrawlDatum) -> str:
        if is_truncated(content):
            log.warning("Content is truncated, parse may fail!")
        self._score(partial(self._scoring.pass_score_before_parsing, content.url, datum, content))
        result, reason = self._pool.run(pickle.dumps(content))
        if result is None:
            raise CheckError(f"{content.url}: {reason}")
        own = result.get(content.url)
        log.info("parsing: %s", content.url)
        log.info("contentType: %s", content.content_type)
        log.info("signature: %s", self._signature.calculate(content, own.text if own else None).hex())
        output = []
        for url, parsed in _in_order(result):
            self._score(partial(self._scoring.pass_score_after_parsing, url, content, parsed))
            text = parsed.text if self._given["-dumpText"] else ""
            output.append(f"{url}\n{_as_fetched(url, parsed.data)}\n{text}")
        return "".join(output)

    def _score(self, step: partial[None]) -> None:
        try:
            step()
        except MinutchError as error:
            log.warning("score not passed on: %s", error)


class CheckFailed(MinutchError):
    """The page could not be had."""


class CheckError(MinutchError):
    """There is no protocol or no parser for the page, or its URL is none: Nutch ends with an exception."""

    exit_code = 1


class Headers(Metadata):
    """What came over HTTP, before a segment has stored it (CaseInsensitiveMetadata, a tree without case)."""

    def java_names(self) -> Iterator[str]:
        """The names in alphabetic order."""
        return iter(sorted(self, key=str.lower))


def _in_order(result: ParseResult) -> list[tuple[str, Parse]]:
    """The documents of a page in the order of Java's HashMap<Text, …>, which ParseResult keeps them in."""
    documents = list(result.items())
    return [documents[i] for i in hash_map_order([text_hash(encode_text(url)) for url in result])]


def _as_fetched(url: str, data: ParseData) -> ParseData:
    return replace(data, content_meta=Headers(data.content_meta)) if url[:4].lower() == "http" else data


def _map_writable(values: Sequence[str]) -> MapWritable:
    pairs = (value.partition("=") for value in values)
    return MapWritable({Text(key): Text(value) for key, _, value in pairs})
