"""Reads what one page says, as text and as Markdown: a page of a host, which is fetched as the
checkers do it, a file, or a stored page. Stores nothing.

Of an HTML page that is its own text: the main text, less the frame of its site where a crawl has
more of it. Whoever sets `parser.html.text` to another text (page, trafilatura …) gets that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import polars as pl

from minutch import eventloops
from minutch.clock import Clock
from minutch.conf import Configuration
from minutch.cycle.owntext.frames import SiteFrames
from minutch.cycle.owntext.own import SHARE
from minutch.cycle.owntext.texts import judged, own_of
from minutch.cycle.parse.dispatch import ParserNotFound, ParseUtil
from minutch.cycle.parse.pagecheck import CheckFailed, PageChecker, PageCheckOptions
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import Metadata
from minutch.records.protocol import Content
from minutch.records.textblocks import BLOCKS_KEY

log = logging.getLogger(__name__)
TEXT_PROPERTY: Final = "parser.html.text"
FRAME: Final = "frame of the site"
NOT_MAIN: Final = "not main text"
_OPTIONS: Final = PageCheckOptions(follow_redirects=True, check_robots=True)


class PageLine(NamedTuple):
    """A line of a page."""

    text: str
    left_out: str
    """Why it is not its own: FRAME, NOT_MAIN; "" if it is."""


class PageText(NamedTuple):
    """What a page says."""

    title: str
    lines: list[PageLine]
    are_blocks: bool = False
    """Whether they are blocks of its tree, of which Markdown may have some."""

    @property
    def text(self) -> str:
        """The own lines."""
        return "\n".join(line.text for line in self.lines if not line.left_out)


@dataclass(slots=True)
class FoundText:
    """What a worker finds in a page."""

    title: str = ""
    text: str = ""
    marks: str = ""
    """Those of the lines of its text."""
    markdown: str | None = None
    """None of a type that has none."""
    anchors: dict[int, str] = field(default_factory=dict)
    """Fragments of headings, by the numbers of their lines in the Markdown."""
    failure: str = ""
    """Why nothing is found."""


class TextTask:
    """The task of the worker: parses a Content, or writes the Markdown of lines of its text."""

    result_type = FoundText

    def __init__(self, conf: Configuration) -> None:
        self._parsers = ParseUtil(conf)

    def run(self, item: bytes) -> FoundText:
        data, wants_markdown, kept = msgspec.msgpack.decode(item)
        content = Content.from_bytes(data)
        try:
            return self._markdown(content, kept) if wants_markdown else self._parsed(content)
        except ParserNotFound as error:
            return FoundText(failure=str(error))

    def _parsed(self, content: Content) -> FoundText:
        result = self._parsers.parse(content)
        own = result.get(content.url) or next(iter(result.values()))
        if not result.is_any_success:
            return FoundText(failure=f"not parsed: {own.data.status.message}")
        text = "\n".join(filter(None, (parse.text for parse in result.values())))
        marks = own.data.parse_meta.get(BLOCKS_KEY) or ""
        return FoundText(" ".join(own.data.title.split()), text, marks)

    def _markdown(self, content: Content, kept: list[int] | None) -> FoundText:
        page = FoundText()
        for parser in self._parsers.factory.parsers(content.content_type):
            page.markdown = parser.markdown(content, page.anchors, kept)
            if page.markdown is not None:
                break
        return page

    def finish(self, results: Sequence[FoundText]) -> list[FoundText]:
        return list(results)

    def fail(self, item: bytes, reason: str) -> FoundText:
        return FoundText(failure=reason)

    def accepts(self, result: FoundText) -> bool:
        return True


class TextReader(PageChecker):
    """A reader of pages."""

    def __init__(self, conf: Configuration, clock: Clock, workers: int | None = 1) -> None:
        if conf.get_trimmed(TEXT_PROPERTY) == "main" or not conf.is_set(TEXT_PROPERTY):
            # With "main" the parser itself drops lines, by the page alone; here the site's frame
            # decides.
            conf = conf.with_values({TEXT_PROPERTY: "blocks"}).freeze()
        super().__init__(conf, _OPTIONS, clock, TextTask, workers)
        self._has_asked = False

    def fetch(self, url: str) -> Content:
        """Returns a page from its host, after redirects. Raises CheckFailed, CheckError: robots.txt
        may forbid it.
        """
        content, _ = eventloops.run(self._politely(url))
        if content is None:
            raise CheckFailed(f"No content for {url}")
        return content

    async def _politely(self, url: str) -> tuple[Content | None, CrawlDatum]:
        if self._has_asked:
            await asyncio.sleep(self._rest)
        self._has_asked = True
        return await self._fetch(url)

    def of_file(self, path: Path) -> Content:
        """Returns a file as a page. Raises OSError."""
        url, data = path.absolute().as_uri(), path.read_bytes()
        kind = self._mime.resolve(None, url, data)
        return Content(url, url, data, kind, Metadata())

    def read(self, content: Content, frames: SiteFrames | None = None) -> PageText:
        """Parses a page in a process of its own; one of a crawl is judged by its `frames`. Raises
        CheckFailed where it can't be parsed.
        """
        page = self._ask(content, wants_markdown=False)
        lines = judged(frames, content.url, page.title, page.text, page.marks)
        if lines is None:
            return PageText(page.title, [PageLine(line, "") for line in page.text.splitlines()])
        found = []
        for line, is_own, at, of in lines.iter_rows():
            is_frame = of > 1 and at >= SHARE * of
            found.append(PageLine(line, "" if is_own else FRAME if is_frame else NOT_MAIN))
        return PageText(page.title, found, are_blocks=True)

    def markdown(self, content: Content, page: PageText) -> tuple[str, dict[int, str]]:
        """Returns the Markdown of the own lines of a page that was read, the text itself of types
        that have none; and the fragments of its headings, by the numbers of their lines. Raises
        CheckFailed.
        """
        if not page.text:  # such as of what says noindex
            return "", {}
        own = [number for number, line in enumerate(page.lines) if not line.left_out]
        kept = own if page.are_blocks else None
        found = self._ask(content, wants_markdown=True, kept=kept)
        return (page.text + "\n" if found.markdown is None else found.markdown), found.anchors

    def markdowns(
        self, contents: Sequence[Content], frames: SiteFrames
    ) -> list[tuple[str, dict[int, str]] | None]:
        """Returns what `markdown` does for each of some pages of a crawl, several at a time; None
        where one can't be parsed.
        """
        found = list(self._pool.map(_item(content) for content in contents))
        columns = [[one.url for one in contents], [page.title for page in found]]
        own = own_of(
            frames,
            pl.DataFrame(
                [*columns, [page.text for page in found], [page.marks.encode() for page in found]],
                {"url": pl.String, "title": pl.String, "text": pl.String, "marks": pl.Binary},
            ),
        )
        texts, kept = own["text"].to_list(), own["kept"].to_list()
        # A second pass: which lines are own is known only when all pages have been looked at.
        asked = [row for row, page in enumerate(found) if texts[row] and not page.failure]
        made = self._pool.map(
            _item(contents[row], wants_markdown=True, kept=kept[row]) for row in asked
        )
        result: list[tuple[str, dict[int, str]] | None] = [
            None if page.failure else ("", {}) for page in found
        ]
        for row, page in zip(asked, made, strict=True):
            text = f"{texts[row]}\n" if page.markdown is None else page.markdown
            result[row] = None if page.failure else (text, page.anchors)
        for content, page, one in zip(contents, found, result, strict=True):
            if one is None:
                log.warning("no Markdown of %s: %s", content.url, page.failure or "not written")
        return result

    def _ask(
        self, content: Content, *, wants_markdown: bool, kept: list[int] | None = None
    ) -> FoundText:
        page: FoundText = self._pool.run(_item(content, wants_markdown=wants_markdown, kept=kept))
        if page.failure:
            raise CheckFailed(f"{content.url}: {page.failure}")
        return page

    def _shown(self, content: Content, datum: CrawlDatum) -> str:
        return self.read(content).text


def _item(
    content: Content, *, wants_markdown: bool = False, kept: list[int] | None = None
) -> bytes:
    """What a worker takes."""
    return msgspec.msgpack.encode((content.to_bytes(), wants_markdown, kept))
