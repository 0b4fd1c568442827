"""Makes what the hosts of a web answer, once and for all: whole answers, and hostile ways.

hang       nothing, ever
reset      the connection is reset
error      500 or 503
busy       429, with Retry-After: 20 or 7200
drip       a byte of the body each second
slowhead   a byte of the head each second
endless    a body without an end
bomb       100 MB of zeros in 100 KB of gzip
loop       a redirect to the next page, which redirects to the one after it
trap       pages with links to ever new pages
"""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import formatdate
from enum import Enum, auto
from functools import cache
from typing import Final

from tests.benchmarks.broad.web import CRAWL_DELAY, ORDINARY, SOME_RULES, Web

_WORDS: Final = b"web page host queue delay crawl link graph score round list seed name".split()
_SMALLEST, _LARGEST, _BODIES = 2_000, 60_000, 64
_BOMB: Final = 100_000_000
_LINK: Final = re.compile(rb"<a .*?</a>")
_END: Final = b"</body></html>\n"


class Way(Enum):
    """What follows when the bytes of an answer are sent."""

    WHOLE = auto()
    """It was all; the connection is kept."""
    CLOSE = auto()
    """It was all; the connection is closed."""
    SILENCE = auto()
    """Nothing, ever."""
    RESET = auto()
    DRIP = auto()
    """A byte each second, for ever."""
    FLOOD = auto()
    """Bytes without an end, as fast as they are taken."""


@dataclass(frozen=True)
class Answer:
    """The bytes of an answer, its status, and what follows."""

    data: bytes
    status: int
    way: Way = Way.WHOLE


class Answers:
    """All answers of a web. The latency is the caller's business."""

    def __init__(self, web: Web, port: int) -> None:
        self._web = web
        self._port = port
        self._way = Way.WHOLE if web.plan.kept else Way.CLOSE
        sizes = [
            int(_SMALLEST * (_LARGEST / _SMALLEST) ** (number / (_BODIES - 1)))
            for number in range(_BODIES)
        ]
        bodies = [
            body(number, size if web.plan.median else 200) for number, size in enumerate(sizes)
        ]
        self._texts = [_LINK.sub(b"", made).removesuffix(_END) for made in bodies]
        self._pages = [self._answer(200, made) for made in bodies]
        self._bodies = web.bodies.tobytes()
        self._first: list[int] = web.first.tolist()
        self._robots_kinds = web.robots.tolist()
        delay = f"User-agent: *\nCrawl-delay: {2 * web.plan.delay:g}\nDisallow: /private/\n"
        self._robots = {
            SOME_RULES: self._answer(200, b"User-agent: *\nDisallow: /private/\n", b"text/plain"),
            CRAWL_DELAY: self._answer(200, delay.encode(), b"text/plain"),
        }
        self._missing = self._answer(404, b"none")

    def _answer(
        self, status: int, content: bytes, kind: bytes = b"text/html", more: bytes = b""
    ) -> Answer:
        if self._way is Way.CLOSE:
            more += b"Connection: close\r\n"
        return Answer(_head(status, len(content), kind, more) + content, status, self._way)

    def robots(self, host: int) -> Answer:
        """The robots.txt of a host."""
        return self._robots.get(self._robots_kinds[host], self._missing)

    def missing(self) -> Answer:
        """The answer to any other path."""
        return self._missing

    def page(self, host: int, page: int, head: bytes = b"") -> Answer:
        """What a host answers for one of its pages, whatever the request's head says."""
        kind = self._web.kinds[host]
        if kind != ORDINARY:
            return self._hostile(kind, host, page)
        slot = self._first[host] + 1 + page
        if self._web.plan.links:
            return self._linked(slot)
        return self._pages[self._bodies[slot]]

    def _linked(self, slot: int) -> Answer:
        urls = [self._web.url(target, self._port) for target in self._web.targets[slot].tolist()]
        links = "".join(f'<a href="{url}">{url}</a>\n' for url in urls).encode()
        return self._answer(200, self._texts[self._bodies[slot]] + links + _END)

    def _hostile(self, kind: str, host: int, page: int) -> Answer:
        if kind == "error":
            made = self._answer(500 if page % 2 else 503, b"oops")
        elif kind == "busy":
            after = 20 if host % 2 else 7200
            made = self._answer(429, b"later", more=b"Retry-After: %d\r\n" % after)
        elif kind == "loop":
            target = (page + 1) % int(self._web.sizes[host])
            made = self._answer(302, b"", more=b"Location: /p/%d\r\n" % target)
        elif kind == "bomb":
            made = self._answer(200, bomb(), more=b"Content-Encoding: gzip\r\n")
        elif kind == "trap":
            links = b"".join(b'<a href="/p/%d?day=%d">next</a> ' % (page, n) for n in range(20))
            made = self._answer(200, b"<title>%d</title>%s" % (page, links))
        else:
            made = BAD_WAYS[kind]
        return made


_ENDLESS_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n"
BAD_WAYS: Final[Mapping[str, Answer]] = {
    "hang": Answer(b"", 200, Way.SILENCE),
    "reset": Answer(b"", 200, Way.RESET),
    "drip": Answer(_ENDLESS_HEAD, 200, Way.DRIP),
    "slowhead": Answer(b"HTTP/1.1 200 OK\r\nX-Slow: ", 200, Way.DRIP),
    "endless": Answer(_ENDLESS_HEAD, 200, Way.FLOOD),
}


def _head(status: int, length: int, kind: bytes, more: bytes) -> bytes:
    return (
        b"HTTP/1.1 %d Status\r\nServer: broad\r\nDate: %s\r\n"
        b"Content-Type: %s\r\nContent-Length: %d\r\n%s\r\n"
        % (status, formatdate(usegmt=True).encode(), kind, length, more)
    )


def body(number: int, size: int) -> bytes:
    """A page of about that many bytes, with a link in each paragraph."""
    chance = random.Random(number)
    parts = [b"<!DOCTYPE html><html><head><title>Page %d</title></head><body>\n" % number]
    while size > 0:
        words = b" ".join(chance.choices(_WORDS, k=40))
        parts.append(b'<p>%s <a href="/p/%d">more</a></p>\n' % (words, chance.randrange(500)))
        size -= len(parts[-1])
    return b"".join([*parts, _END])


@cache
def bomb() -> bytes:
    """The same zeros, many times."""
    return gzip.compress(bytes(_BOMB), 6, mtime=0)
