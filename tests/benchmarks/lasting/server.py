"""Serves a web that changes, as `tests.benchmarks.broad.server` serves one that does not.

    python -m tests.benchmarks.lasting.server LOG PORT PLAN          (PLAN is JSON)

Its answers are honest: 304 means that the page is as it was when it had that validator.
"""

from __future__ import annotations

import json
import re
import sys
import time
from email.utils import formatdate, parsedate_to_datetime
from pathlib import Path
from typing import Final

from tests.benchmarks.broad.answers import BAD_WAYS, Answer, Answers
from tests.benchmarks.broad.requestlog import now
from tests.benchmarks.broad.server import Server, run
from tests.benchmarks.broad.web import name
from tests.benchmarks.lasting.history import (
    BOTH,
    DATE,
    MOVED,
    NOT_MODIFIED,
    OK,
    PRESENT,
    TAG,
    History,
    LifePlan,
    Page,
)

_TAG: Final = re.compile(rb"\r\nIf-None-Match: *([^\r]+)", re.IGNORECASE)
_DATE: Final = re.compile(rb"\r\nIf-Modified-Since: *([^\r]+)", re.IGNORECASE)
_DAY: Final = 86_400
_SIZES: Final = 24
"""Of the prepared bodies, those of up to 7 kB are served."""


class ChangingAnswers(Answers):
    """The answers of a web that changes."""

    def __init__(self, web: History, port: int) -> None:
        super().__init__(web, port)
        self._history = web
        self._begin = web.plan.begin
        self._ahead = time.time() - time.monotonic()
        self._epoch = int(time.time() - (now() - self._begin) / 1e6)
        self._texts = [text.partition(b"<body>")[2] for text in self._texts]
        self._down = self._answer(503, b"down"), BAD_WAYS["reset"]

    def robots(self, host: int) -> Answer:
        if self._history.hosts[host].is_dead(self._time()):
            return self._down[host % 2]
        return super().robots(host)

    def page(self, host: int, page: int, head: bytes = b"") -> Answer:
        moment = self._time()
        if self._history.hosts[host].is_dead(moment):
            return self._down[host % 2]
        slot = self._first[host] + 1 + page
        life = self._history.life(slot)
        status = life.status(moment)
        if status == MOVED:
            return self._answer(MOVED, b"", more=b"Location: /p/%d\r\n" % (page + 1))
        if status != OK:
            return self._answer(status, b"gone")
        version = life.version(moment)
        date = self._epoch + (life.changes[version - 1] if version else -_DAY * (1 + slot % 400))
        tag = b'"%d-%d"' % (slot, version)
        validators = b"ETag: %s\r\n" % tag if life.validator in (BOTH, TAG) else b""
        if _is_current(life, head, tag, date):
            return self._answer(NOT_MODIFIED, b"", more=validators)
        if life.validator == PRESENT:
            date = self._epoch + moment
        if life.validator in (BOTH, DATE, PRESENT):
            validators += b"Last-Modified: %s\r\n" % formatdate(date, usegmt=True).encode()
        return self._answer(OK, self._body(host, page, slot, version, moment), more=validators)

    def _time(self) -> float:
        """Seconds after the begin of all."""
        was_set = time.time() - time.monotonic() - self._ahead if self._history.plan.set_too else 0
        return (now() - self._begin) / 1e6 + was_set

    def _body(self, host: int, page: int, slot: int, version: int, moment: float) -> bytes:
        links = "".join(
            f'<a href="http://{name(kin)}:{self._port}/p/{number}">page {number} of {kin}</a>\n'
            for kin, number in self._history.links(host, page, moment)
        )
        return (
            b"<!DOCTYPE html><html><head><title>Page %d of host %d, version %d</title></head><body>"
            b"\n<p>token%dx%d</p>\n%s%s</body></html>\n"
            % (
                page,
                host,
                version,
                slot,
                version,
                links.encode(),
                self._texts[self._bodies[slot] % _SIZES],
            )
        )


def _is_current(life: Page, head: bytes, tag: bytes, date: float) -> bool:
    """True if a request has a validator that holds. Source: RFC 9110, 13.2.2."""
    asked = _TAG.search(head)
    if asked is not None:
        return life.validator in (BOTH, TAG) and asked[1].strip() == tag
    since = _DATE.search(head)
    if since is None or life.validator not in (BOTH, DATE):
        return False
    try:
        return date <= parsedate_to_datetime(since[1].decode("ascii")).timestamp()
    except ValueError:
        return False


def main(log: str, port: str, plan: str) -> None:
    """Serve a web that changes."""
    given = json.loads(plan)
    web = History(LifePlan(**given | {"only": tuple(given["only"])}))
    run(Server(web, Path(log), int(port), ChangingAnswers))  # type: ignore[arg-type]


if __name__ == "__main__":
    main(*sys.argv[1:])
