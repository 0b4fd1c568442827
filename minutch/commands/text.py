"""`minutch text`: shows what a page says, or what a file of Hadoop's holds.

A page is that of a URL, a file, or one that a crawl has stored. Of files, those that are text
already, SequenceFiles, packed files and folders are printed as `hadoop fs -text` does it, beyond
which go folders, JSON and both layouts of Inlinks.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Final, Self

from minutch.commands.arguments import Arguments
from minutch.conf import Configuration
from minutch.cycle.owntext.frames import SiteFrames
from minutch.cycle.owntext.pagetext import PageText, TextReader
from minutch.cycle.owntext.texts import frames_of
from minutch.cycle.parse.chunks import OVERLAP, TOKENS, chunks
from minutch.cycle.parse.mime import MimeUtil
from minutch.errors import FormatError, MinutchError
from minutch.hadoop.formats import text as texts
from minutch.hadoop.formats.compress import codec_for
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.inspect.query.crawl import open_crawl
from minutch.inspect.search.crawlfiles import HTML, CrawlFiles
from minutch.job import JobContext
from minutch.records.links import LAYOUT_METADATA, Inlinks, layout_of
from minutch.records.protocol import Content
from minutch.terminal import BOLD, DIM, counted, folded, width_of

log = logging.getLogger(__name__)

_URL: Final = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*://", re.IGNORECASE)
_TEXTUAL: Final = re.compile(r"text/.*|.*(?:xml|json|script)|application/octet-stream")

_FORMS: Final = ("--markdown", "--chunks", "--show-frame")


def run(arguments: Arguments, context: JobContext) -> int:
    """Runs the command. Exit code 0, 1 if some could not be read: errors are logged, the others are
    still printed.
    """
    words = arguments["path"]
    if sum(map(bool, map(arguments.__getitem__, _FORMS))) > 1:
        arguments.fail(f"one of {' and '.join(_FORMS)}")
    # `text crawl http://...`: pages that are stored; nothing is fetched.
    if _URL.match(words[-1]) and Path(words[0]).is_dir():
        return _of_crawl(Path(words[0]), words[1:], arguments, context)
    failed = 0
    with _Pages(arguments, context, context.conf) as show:
        for word in words:
            try:
                if _URL.match(word):
                    show.page(show.reader.fetch(word))
                # As `hadoop fs -text` takes a local file.
                elif show.is_page(path := Path(word.removeprefix("file:"))):
                    show.page(show.reader.of_file(path))
                else:
                    failed += _print_files(path, arguments, context)
            except (MinutchError, OSError) as exc:
                if len(words) == 1:
                    raise
                log.error("%s", exc)
                failed += 1
    return 1 if failed else 0


def _of_crawl(crawl: Path, urls: list[str], arguments: Arguments, context: JobContext) -> int:
    files = CrawlFiles(open_crawl(crawl).path)
    frames = frames_of(crawl, files.segments())
    with _Pages(arguments, context, context.conf.of_crawl(crawl).freeze(), frames) as show:
        for url in urls:
            show.page(files.require_content(url))
    return 0


class _Pages:
    """Prints pages in the form that the command line asks for."""

    def __init__(
        self,
        arguments: Arguments,
        context: JobContext,
        conf: Configuration,
        frames: SiteFrames | None = None,
    ) -> None:
        self._arguments, self._context, self._conf = arguments, context, conf
        self._frames = frames
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @cached_property
    def reader(self) -> TextReader:
        """What reads pages; files of Hadoop's are printed without."""
        return self._open.enter_context(TextReader(self._conf, self._context.clock))

    def is_page(self, path: Path) -> bool:
        """Tells whether a file is to be parsed. Raises OSError."""
        if any(map(self._arguments.__getitem__, _FORMS)):
            return True
        is_plain = self._arguments["-json"] or path.is_dir() or texts.is_sequence_file(path)
        if is_plain or codec_for(path.name) is not None:
            return False
        # By content, too: a page that was saved has any name.
        kind = MimeUtil(self._conf).resolve(None, path.absolute().as_uri(), path.read_bytes())
        return kind in HTML or _TEXTUAL.fullmatch(kind) is None

    def page(self, content: Content) -> None:
        """Prints a page."""
        page = self.reader.read(content, self._frames)
        arguments, context = self._arguments, self._context
        if not page.text:
            log.warning("%s has no text", content.url)
        if arguments["--show-frame"]:
            self._show_frame(page)
        elif arguments["--chunks"]:
            markdown, anchors = self.reader.markdown(content, page)
            limits = arguments.get("--tokens", TOKENS), arguments.get("--overlap", OVERLAP)
            for chunk in chunks(
                markdown, content.url, anchors, tokens=limits[0], overlap=limits[1]
            ):
                context.print(chunk.as_json())
        elif arguments["--markdown"]:
            context.out.write(self.reader.markdown(content, page)[0])
        else:
            for line in page.text.splitlines():
                context.print(folded(line, width_of(context.out)))

    def _show_frame(self, page: PageText) -> None:
        """Prints all lines, and why some are left out."""
        context, before = self._context, ""
        width = width_of(context.out)
        style = DIM if context.colour else ""
        for line, left_out in page.lines:
            if left_out != before and left_out:
                context.print(f"-- {left_out}:", style=style)
            before = left_out
            mark = "-  " if left_out else "   "
            context.print(mark + folded(line, width, len(mark)), style=style if left_out else "")
        counts = Counter(line.left_out for line in page.lines)
        said = [f"{counts.pop('', 0):,} of {counted(len(page.lines), 'lines')} kept"]
        said += [f"{count:,} left out, {why}" for why, count in counts.items()]
        context.print(f"\n{'; '.join(said)}", style=BOLD if context.colour else "")


def _print_files(named: Path, arguments: Arguments, context: JobContext) -> int:
    """Prints a file of Hadoop's, or those in a folder; returns how many could not be read."""
    failed = 0
    make = texts.as_json if arguments["-json"] else texts.as_text
    for path in texts.files_below(named):
        try:
            for piece in make(path, _decoders(path)):
                context.out.write(piece)
        except (FormatError, OSError) as exc:
            log.error("%s", exc)
            failed += 1
    return failed


def _decoders(path: Path) -> texts.Decoders:
    """Returns a decoder for Inlinks that prints them in the layout of their file."""
    if not texts.is_sequence_file(path):
        return {}
    with SequenceFileReader(path) as reader:
        if reader.value_class != Inlinks.class_name:
            return {}
        # Nothing in a file says which Nutch wrote it.
        layout = layout_of(value for _, value in reader)

    class InlinksOfLayout(Inlinks):
        """Inlinks that are printed as the Nutch that wrote them prints them."""

        __slots__ = ()

        def __str__(self) -> str:
            return self.to_string(layout)

    if layout == LAYOUT_METADATA:
        return {}
    return {Inlinks.class_name: lambda data: InlinksOfLayout.read(DataInput(data), layout)}
