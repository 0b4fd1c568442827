"""Logging set-up: one line per event to stderr, and to a file where NUTCH_LOG_DIR asks for one.

    2026-11-21 13:05:01,250 INFO  crawldb.inject: …

Messages quote URLs, headers and titles. Their control characters are written out and line ends
become `\\n`, so nobody outside can write a line of the log; lines of a traceback are indented.

Every module logs through `logging.getLogger(__name__)`; only the CLI calls `configure`.
"""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from minutch import processwide
from minutch.job import CLEAR
from minutch.processwide import LogSettings
from minutch.terminal import folded, raw, visible, visible_line, width_of

FORMAT = "%(asctime)s %(levelname)-5s %(where)s: %(message)s"

# Libraries whose chatter is not ours to print.
_QUIET = ("httpx", "httpcore", "tldextract", "filelock", "asyncio", "chardet")


_PACKAGE = re.compile(
    r"^minutch(?:_plugins_\w+?|\.(?:cycle|commands|archives|inspect|work|hadoop)(?=\.))?\."
)


class _Formatter(logging.Formatter):
    """Names modules without package and wing: `minutch.cycle.crawldb.inject` → `crawldb.inject`."""

    def format(self, record: logging.LogRecord) -> str:
        record.where = _PACKAGE.sub("", record.name)
        return super().format(record)

    def formatMessage(self, record: logging.LogRecord) -> str:
        return visible_line(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        return _indented(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:
        return _indented(super().formatStack(stack_info))


def _indented(text: str) -> str:
    return "    " + visible(text).replace("\n", "\n    ")


# What a command that shows its progress itself lets through besides warnings.
_LIVE = ("minutch.progress", "minutch.cycle.fetch.watch")
_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+")
_COMPLAINT = re.compile(r"\d{4}-\d\d-\d\d \S+ (?:WARNING|ERROR) +(\S+): (.*)")
_SAID = ("minutch.cycle.fetchlist.generate",)
"""Modules whose warnings such a command says in its own words."""
_NAMED = ("crawldb.inject", "crawl.preflight")
"""Modules that name URLs one by one on purpose."""


def _is_live(record: logging.LogRecord) -> bool:
    if record.levelno < logging.WARNING:
        return record.name in _LIVE
    if record.levelno == logging.WARNING and record.name in _SAID:
        return False
    return _kind(_PACKAGE.sub("", record.name), record.getMessage()) is None


def _kind(where: str, message: str) -> str | None:
    """Returns the subject of a message about one page, without the URL; None for others."""
    if where in _NAMED or not _URL.search(message):
        return None
    return " ".join(_URL.sub("", message).split()).strip(" :,")


def complaints(log_file: Path, offset: int) -> Counter[str]:
    """Counts the messages about single pages in a log, by subject, from `offset` on; all of them in
    a shorter log, which was begun since.
    """
    found: Counter[str] = Counter()
    if not log_file.is_file():
        return found
    with log_file.open("rb") as stream:
        stream.seek(offset if offset <= stream.seek(0, os.SEEK_END) else 0)
        for line in stream.read().decode("utf-8", "replace").splitlines():
            match = _COMPLAINT.match(line)
            kind = _kind(match[1], match[2]) if match else None
            if kind is not None:
                found[kind] += 1
    return found


class _TerminalHandler(logging.StreamHandler[TextIO]):
    """A handler that clears the live line before it writes."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._is_live = stream.isatty()

    def emit(self, record: logging.LogRecord) -> None:
        if self._is_live:
            raw(self.stream).write(CLEAR)
        super().emit(record)


class _ShortFormatter(_Formatter):
    """A formatter for people who watch: `warning: …`."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(FORMAT)
        self._stream = stream

    def format(self, record: logging.LogRecord) -> str:
        if record.levelno < logging.WARNING:
            return visible_line(record.getMessage())
        kind = "warning" if record.levelno == logging.WARNING else "error"
        return folded(f"{kind}: {visible_line(record.getMessage())}", width_of(self._stream))


def log_to(path: Path, stream: TextIO) -> Path | None:
    """Also logs to a file, if the log is configured and has none; returns the file in use."""
    used = processwide.settings().log
    if used is None:
        return None
    if used.file is None:
        configure(stream, level=used.level, log_file=path, only_live=used.only_live, in_crawl=True)
    return used.file or path


@contextmanager
def also_to(path: Path) -> Iterator[None]:
    """While this lasts, a file also has what minutch logs, for a program that has its own way to
    log; its handlers get no more than before.
    """
    from minutch.logfile import CrawlsFileHandler

    root, own = logging.getLogger(), CrawlsFileHandler(path, encoding="utf-8", errors="replace")
    own.setFormatter(_Formatter(FORMAT))
    own.addFilter(lambda record: record.name.startswith("minutch"))
    least, others = root.level, list(root.handlers)

    def is_heard(record: logging.LogRecord) -> bool:
        logger = logging.getLogger(record.name)
        while logger.level == logging.NOTSET and logger.parent is not None:
            logger = logger.parent
        return logger is not root or record.levelno >= least

    last = [logging.lastResort] if logging.lastResort is not None and not others else []
    for handler in others:
        handler.addFilter(is_heard)
    for handler in (own, *last):
        root.addHandler(handler)
    root.setLevel(min(least, logging.INFO))
    try:
        yield
    finally:
        root.setLevel(least)
        for handler in (own, *last):
            root.removeHandler(handler)
        for handler in others:
            handler.removeFilter(is_heard)
        own.close()


def configure(
    stream: TextIO,
    *,
    level: int = logging.INFO,
    log_file: Path | None = None,
    only_live: bool = False,
    in_crawl: bool = False,
) -> list[logging.Handler]:
    """Sends everything of `level` and above to `stream`, and appends it to `log_file` if there is
    one.

    With `only_live`, `stream` gets progress and warnings only, and of these none about a single
    page. A file `in_crawl`, a crawl's folder, may be no link. Returns the handlers, so that they
    can be removed again. Earlier handlers of the root logger are closed.
    """
    if log_file is not None:
        log_file = log_file.absolute()  # a fork server's processes may have another working folder
    processwide.change(log=LogSettings(level, log_file, only_live, in_crawl))
    root = logging.getLogger()
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
    handlers: list[logging.Handler] = [_TerminalHandler(stream)]
    if only_live:
        handlers[0].addFilter(_is_live)
    if log_file is not None:
        from minutch.logfile import CrawlsFileHandler, FileHandler

        log_file.parent.mkdir(parents=True, exist_ok=True)
        kind = CrawlsFileHandler if in_crawl else FileHandler
        handlers.append(kind(log_file, encoding="utf-8", errors="replace"))
    for handler in handlers:
        handler.setFormatter(_Formatter(FORMAT))
        root.addHandler(handler)
    if only_live and stream.isatty():
        handlers[0].setFormatter(_ShortFormatter(stream))
    root.setLevel(level)
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    return handlers
