"""Appends the log to a file, which may be renamed, or in a crawl that came from somebody else.

Apart from `log`, since few commands have such a file, and what it takes of the standard library
loads sockets and pickle.
"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from errno import ELOOP
from io import TextIOWrapper
from logging.handlers import WatchedFileHandler

from minutch.errors import StoreError

log = logging.getLogger(__name__)


class FileHandler(WatchedFileHandler):
    """A handler that makes a new file where the old one was renamed (logrotate). It says once that
    the file cannot be written, and goes on without it: no job fails because of its log.
    """

    def emit(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError:  # from the look for another file
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
            return
        logging.getLogger().removeHandler(self)
        log.error(
            "can't write %s: %s; what follows is not in it",
            self.baseFilename,
            error.strerror or error,
        )

    def close(self) -> None:
        with suppress(OSError):  # what is still to be written: said already, or too late to say
            super().close()


class CrawlsFileHandler(FileHandler):
    """One in a folder that may have come from somebody else: a link is not followed."""

    def _open(self) -> TextIOWrapper:
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self.baseFilename, flags, 0o644)
        except OSError as exc:
            if exc.errno != ELOOP:
                raise
            raise StoreError(
                f"{self.baseFilename}: expected a file, found a link, which is not followed in a"
                " crawl's folder: remove it, or name another folder by NUTCH_LOG_DIR"
            ) from exc
        return os.fdopen(descriptor, "a", encoding=self.encoding, errors=self.errors)
