"""Logging set-up: one line per event to stderr, and to a file where NUTCH_LOG_DIR asks for one.

    2026-11-21 13:05:01,250 INFO  crawldb.inject: …

Every module logs through `logging.getLogger(__name__)`; only the CLI calls `configure`.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import TextIO

FORMAT = "%(asctime)s %(levelname)-5s %(where)s: %(message)s"

# Libraries whose chatter is not ours to print.
_QUIET = ("httpx", "httpcore", "numba", "pypdf", "tldextract", "filelock", "asyncio", "chardet")


_PACKAGE = re.compile(r"^minutch(?:_plugins_\w+?)?\.")


class _Formatter(logging.Formatter):
    """Names modules without the package: `minutch.crawldb.inject` → `crawldb.inject`; a plugin's likewise."""

    def format(self, record: logging.LogRecord) -> str:
        record.where = _PACKAGE.sub("", record.name)
        return super().format(record)


# What bin/crawl shows besides warnings, since its tables say the rest.
_LIVE = ("minutch.progress", "minutch.fetch.display", "minutch.plugin.repository")


def _is_live(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING or record.name in _LIVE


configured: tuple[int, Path | None, bool] | None = None
"""Level, file and `only_live` of the last `configure`: what a process that is started afresh takes over."""


def configure(
    stream: TextIO, *, level: int = logging.INFO, log_file: Path | None = None, only_live: bool = False
) -> list[logging.Handler]:
    """Send everything of `level` and above to `stream`, and to `log_file` (appended) if given.

    With `only_live`, `stream` gets warnings and progress only. Returns the handlers, for whoever wants to take them off
    again. Earlier handlers of the root logger are closed.
    """
    global configured  # noqa: PLW0603
    configured = level, log_file, only_live
    root = logging.getLogger()
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
    handlers: list[logging.Handler] = [logging.StreamHandler(stream)]
    if only_live:
        handlers[0].addFilter(_is_live)
    if log_file is not None:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        handlers.append(logging.FileHandler(log_file, encoding="utf-8", errors="replace"))
    for handler in handlers:
        handler.setFormatter(_Formatter(FORMAT))
        root.addHandler(handler)
    root.setLevel(level)
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    return handlers
