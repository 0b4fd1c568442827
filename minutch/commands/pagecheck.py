"""What parsechecker and indexchecker share: one page is fetched and parsed, and nothing is stored.

Pages are parsed in a process of their own, within parser.timeout. Source:
org.apache.nutch.util.AbstractChecker, and what ParserChecker and IndexingFiltersChecker have in
common.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from minutch.commands.arguments import Arguments, Flag
from minutch.commands.lineserver import LINE_FLAGS, answer_lines
from minutch.conf import Configuration
from minutch.cycle.parse.dispatch import ParserNotFound, ParseUtil, failed_result
from minutch.cycle.parse.mime import MimeUtil
from minutch.cycle.parse.signature import make_signature
from minutch.cycle.parse.workerpool import PoolSettings, WorkerPool
from minutch.errors import MinutchError
from minutch.hadoop.formats.writables import MapWritable, Text, Writable
from minutch.job import JobContext
from minutch.plugin.chains import SCOPE_DEFAULT, ScoringFilters, URLNormalizers
from minutch.plugin.points import Parse, ParseResult, ProtocolOutput
from minutch.plugin.protocolfactory import ProtocolFactory
from minutch.records.content import Content
from minutch.records.crawldatum import CrawlDatum
from minutch.records.links import Outlink
from minutch.records.links.outlinkrun import OutlinkRun
from minutch.records.metadata import CONTENT_TYPE_KEY
from minutch.records.truncation import is_truncated

log = logging.getLogger(__name__)

FAILED: Final = 255
PAGE_FLAGS: Final = (
    Flag("-normalize"),
    Flag("-followRedirects"),
    Flag("-checkRobotsTxt"),
    Flag("-dumpText"),
    Flag("-md", value="key>=<value", repeats=True),
    *LINE_FLAGS,
)
_MOST_REDIRECTS: Final = 3

Checked = tuple[ParseResult | None, str]
"""The parse of a page, or why there is none."""


class CheckTask:
    """The task of the worker: a pickled Content in, its ParseResult out (None if no parser takes
    it).
    """

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


class PageChecker(ABC):
    """Fetches and parses pages and says what Nutch says; `given` holds the values of PAGE_FLAGS."""

    force_as: str | None = None
    """The type that pages are parsed as, whatever their type is."""

    def __init__(self, conf: Configuration, given: Arguments, context: JobContext) -> None:
        self._given = given
        self._context = context
        self._protocols = ProtocolFactory(conf)
        self._normalizers = URLNormalizers(conf, SCOPE_DEFAULT) if given["-normalize"] else None
        self._scoring = ScoringFilters(conf)
        self._signature = make_signature(conf)
        self._mime = MimeUtil(conf)
        self._follows = given["-followRedirects"]
        self._most_redirects = conf.get_int("http.redirect.max", _MOST_REDIRECTS)
        if self._follows and self._most_redirects == 0:
            self._most_redirects = _MOST_REDIRECTS
        settings = replace(PoolSettings.from_conf(conf), workers=1)
        self._pool: WorkerPool[Checked] = WorkerPool(partial(CheckTask, conf), settings)
        self._turn = threading.Lock()

    def __enter__(self) -> PageChecker:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def run(self) -> int:
        """Show the page of the command line, or those that -stdin or -listen bring; the exit
        code.
        """
        if not self._given.positional:
            return answer_lines(self._given, self.answer, self._context)
        code, output = self.check(self._given.positional[0])
        self._context.print(output)
        return code

    def answer(self, url: str) -> str:
        """What is shown of one page of many, nothing for one that can't be had; connections wait
        for one another.
        """
        with self._turn:
            try:
                return self.check(url)[1]
            except MinutchError as error:
                self._complain(error)
                return ""

    def check(self, url: str) -> tuple[int, str]:
        """Exit code, and what is shown of one page. Raises CheckError where Nutch ends with an
        exception.
        """
        try:
            content, datum = asyncio.run(self._fetch(url))
            return (
                (0, f"No content for {url}\n")
                if content is None
                else (0, self._shown(content, datum))
            )
        except CheckFailed as error:
            self._complain(error)
            return FAILED, ""

    @abstractmethod
    def _shown(self, content: Content, datum: CrawlDatum) -> str:
        """What is shown of a page that was fetched."""

    def _parsed(self, content: Content, datum: CrawlDatum) -> ParseResult:
        """What parsing makes of a page. Raises CheckError where there is no parser."""
        if is_truncated(content):
            log.warning("Content is truncated, parse may fail!")
        self._score(partial(self._scoring.pass_score_before_parsing, content.url, datum, content))
        result, reason = self._pool.run(pickle.dumps(content))
        if result is None:
            raise CheckError(f"{content.url}: {reason}")
        log.info("parsing: %s", content.url)
        log.info("contentType: %s", content.content_type)
        return result

    def _signature_of(self, content: Content, result: ParseResult) -> bytes:
        own = result.get(content.url)
        return self._signature.calculate(content, own.text if own else None)

    def _complain(self, error: MinutchError) -> None:
        self._context.err.write(f"{error}\n")

    async def _fetch(self, url: str) -> tuple[Content | None, CrawlDatum]:
        """The page's content, after redirects if they are to be followed. Raises CheckFailed,
        CheckError.
        """
        datum = CrawlDatum(
            metadata=_map_writable(self._given["-md"] or ()), fetch_time=self._context.clock.now()
        )
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
            raise (
                error if isinstance(error, CheckFailed) else CheckError(f"Fetch failed: {error}")
            ) from error
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
        found = self.force_as
        if found is None:
            found = self._mime.resolve(content.content_type or None, content.url, content.content)
        content.content_type = found
        datum.metadata[Text(CONTENT_TYPE_KEY)] = Text(found)

    def _score(self, step: partial[None]) -> None:
        try:
            step()
        except MinutchError as error:
            log.warning("score not passed on: %s", error)


class CheckFailed(MinutchError):
    """The page could not be had."""


class CheckError(MinutchError):
    """There is no protocol or no parser for the page, or its URL is none: Nutch ends with an
    exception.
    """

    exit_code = 1


def _map_writable(values: Sequence[str]) -> MapWritable:
    pairs = (value.partition("=") for value in values)
    return MapWritable({Text(key): Text(value) for key, _, value in pairs})
