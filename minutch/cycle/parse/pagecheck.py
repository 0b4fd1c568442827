"""Fetches and parses one page for parsechecker and indexchecker; stores nothing.

Pages are parsed in a process of their own, within parser.timeout.

Source: org.apache.nutch.util.AbstractChecker, ParserChecker, IndexingFiltersChecker.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple, Self

from minutch import eventloops
from minutch.clock import Clock
from minutch.conf import Configuration
from minutch.cycle.parse.dispatch import ParserNotFound, ParseUtil, failed_result
from minutch.cycle.parse.mime import MimeUtil
from minutch.cycle.parse.signature import make_signature, signs_parses
from minutch.cycle.parse.workerpool import PoolSettings, WorkerPool
from minutch.cycle.parse.workerprocess import WorkerTask
from minutch.errors import FormatError, MinutchError
from minutch.hadoop.formats.javaio import decode_text, encode_text
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.plugin.chains import SCOPE_DEFAULT, ScoringFilters, URLNormalizers
from minutch.plugin.points import Parse, ParseResult, ProtocolOutput
from minutch.plugin.protocolfactory import ProtocolFactory, output_of, rules_of
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import CONTENT_TYPE_KEY
from minutch.records.parsedata import ParseData
from minutch.records.protocol import Content, ProtocolStatus, is_truncated

log = logging.getLogger(__name__)

_MOST_REDIRECTS: Final = 3


class CheckedDocument(NamedTuple):
    """A parsed document as a worker answers it: its URL, text and data, serialized."""

    url: bytes
    text: bytes
    data: bytes
    is_original: bool


class Checked(NamedTuple):
    """The parse of a page, or the reason why there is none."""

    documents: list[CheckedDocument]
    reason: str = ""

    @classmethod
    def of(cls, result: ParseResult) -> Checked:
        """Serializes a parse."""
        return cls(
            [
                CheckedDocument(
                    encode_text(url), parse.utf8, parse.data.to_bytes(), parse.is_original
                )
                for url, parse in result.items()
            ]
        )

    def result(self, url: str) -> ParseResult:
        """Returns the parse of the page of this URL. Raises FormatError."""
        return ParseResult(
            url,
            {
                decode_text(one.url): Parse(
                    decode_text(one.text), ParseData.from_bytes(one.data), one.is_original
                )
                for one in self.documents
            },
        )


@dataclass(frozen=True, slots=True)
class PageCheckOptions:
    """Options that parsechecker and indexchecker share."""

    normalize: bool = False
    """Whether URLs are normalized."""
    follow_redirects: bool = False
    check_robots: bool = False
    """Whether a page that robots.txt forbids is an error."""
    dump_text: bool = False
    """Whether texts are shown whole."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Metadata of the CrawlDatum."""


class CheckTask:
    """The task of the worker: parses a serialized Content."""

    result_type = Checked

    def __init__(self, conf: Configuration) -> None:
        self._parsers = ParseUtil(conf)

    def run(self, item: bytes) -> Checked:
        try:
            return Checked.of(self._parsers.parse(Content.from_bytes(item)))
        except ParserNotFound as error:
            return Checked([], str(error))

    def finish(self, results: Sequence[Checked]) -> list[Checked]:
        return list(results)

    def fail(self, item: bytes, reason: str) -> Checked:
        return Checked.of(failed_result(Content.from_bytes(item).url, reason))

    def accepts(self, result: Checked) -> bool:
        try:
            result.result("")
        except FormatError:
            return False
        return True


class PageChecker(ABC):
    """A checker of pages, which it fetches and parses; subclasses show the result."""

    force_as: str | None = None
    """The type that pages are parsed as, regardless of their own."""

    def __init__(
        self,
        conf: Configuration,
        options: PageCheckOptions,
        clock: Clock,
        task: Callable[[Configuration], WorkerTask[Any]] = CheckTask,
        workers: int | None = 1,
    ) -> None:
        """`workers`: processes that parse; None: parser.workers."""
        self._options = options
        self._clock = clock
        self._protocols = ProtocolFactory(conf)
        self._normalizers = URLNormalizers(conf, SCOPE_DEFAULT) if options.normalize else None
        self._scoring = ScoringFilters(conf)
        self._signature = make_signature(conf)
        self._signs = signs_parses(self._signature)
        self._mime = MimeUtil(conf)
        self._follows = options.follow_redirects
        self._most_redirects = conf.get_int("http.redirect.max")
        self._rest = conf.get_float("fetcher.server.delay")
        # 0 has the fetcher put redirects off to the next round; a checker has none.
        if self._follows and self._most_redirects == 0:
            self._most_redirects = _MOST_REDIRECTS
        settings = PoolSettings.from_conf(conf)
        settings = settings if workers is None else replace(settings, workers=workers)
        self._pool: WorkerPool[Any] = WorkerPool(partial(task, conf), settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def check(self, url: str) -> str:
        """Fetches and parses a page; returns the text to show. Raises CheckFailed, or CheckError
        where Nutch fails with an exception.
        """
        content, datum = eventloops.run(self._fetch(url))
        return f"No content for {url}\n" if content is None else self._shown(content, datum)

    @abstractmethod
    def _shown(self, content: Content, datum: CrawlDatum) -> str:
        """Returns the text to show for a page that was fetched."""

    def _parsed(self, content: Content, datum: CrawlDatum) -> ParseResult:
        """Parses a page. Raises CheckError if there is no parser for it."""
        if is_truncated(content):
            log.warning("Content is truncated, parse may fail!")
        self._score(partial(self._scoring.pass_score_before_parsing, content.url, datum, content))
        # In a worker: a page asked for by hand hangs parsers as well as any other.
        checked: Checked = self._pool.run(content.to_bytes())
        if checked.reason:
            raise CheckError(f"{content.url}: {checked.reason}")
        log.info("parsing: %s", content.url)
        log.info("contentType: %s", content.content_type)
        return checked.result(content.url)

    def _signature_of(self, content: Content, result: ParseResult) -> bytes:
        own = result.get(content.url)
        return self._signs(content, own) if own else self._signature.calculate(content, None)

    async def _fetch(self, url: str) -> tuple[Content | None, CrawlDatum]:
        """The page's content, after redirects if they are to be followed. Raises CheckFailed,
        CheckError.
        """
        metadata = {Text(key): Text(value) for key, value in self._options.metadata.items()}
        datum = CrawlDatum(metadata=MapWritable(metadata), fetch_time=self._clock.now())
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
                error
                if isinstance(error, CheckFailed)
                else CheckError(f"Fetch failed: {error}", hint=error.hint)
            ) from error
        finally:
            # Before the loop ends, to which its connections belong.
            await self._protocols.close()
        if not output.status.is_success:
            failure = CheckFailed(self._failure(output, followed))
            failure.status = output.status
            raise failure
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
        if self._options.check_robots:
            rules = await rules_of(protocol, url, datum, None, self._rest)
            if not rules.is_allowed(url):
                failed = rules.failure and (rules.failure.message or str(rules.failure))
                raise CheckFailed(
                    f"Denied by robots.txt: {url}\nFetch disallowed by robots.txt",
                    hint=f"its robots.txt could not be read: {failed}" if failed else "",
                )
        return await output_of(protocol, url, datum, self._rest)

    def _settle_type(self, content: Content, datum: CrawlDatum) -> None:
        """Detects the type that the page is parsed as, and stores it in content and datum."""
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
    """The page could not be fetched or processed; `status` says how its fetch ended, if it did."""

    status: ProtocolStatus | None = None


class CheckError(MinutchError):
    """Raised if the page has no protocol or no parser, or its URL is malformed."""

    exit_code = 1
