"""A web behind a proxy, by a seed: hosts whose robots.txt differ, pages of many kinds, links of all
spellings. A third of the pages changes from one round to the next.
"""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import quote

from tests.support.proxyserver import ProxyServer
from tests.support.timedserver import TimedServer

PAGES: Final = 30
"""Of a host."""
_HOSTS: Final = (
    "www.{}.example.com", "sub.{}.example.com", "{}.example.com", "{}.example.org", "{}.other.net",
    "a.{}.co.uk", "xn--bcher-kva.{}.example",
)  # fmt: skip
_WORDS: Final = ("alpha", "beta", "gamma", "delta", "eins", "über", "naïve", "日本", "end.")
_LINKS: Final = (
    "/p{n}", "p{n}", "./p{n}", "../p{n}", "/d{m}/p{n}", "http://{host}/p{n}",
    "HTTP://{HOST}:80/p{n}", "http://{HOST}/p{n}", "/p{n}?a=1&b={m}",
    "/p{n}?b={m}&amp;a=1", "/p{n}#frag{m}",
    "//{host}/p{n}", "/p{n};jsessionid={n:032X}", "/x/../p{n}", "/x//p{n}", "/p{n}/",
    "mailto:a@{host}", "javascript:go({n})", "/p+{n}", "/pä{n}", "/p%7E{n}", "/p%c3%a4{n}",
    "/i{n}.gif", "?q={n}", "/p{n}/index.html",
)  # fmt: skip
_ELEMENTS: Final = (
    *["<a href='{}'>anchor {word} <b>{i}</b></a>\n"] * 7, "<a href='{}' rel=nofollow>{word}</a>",
    "<img src='{}' alt='pic {i}'>", "<iframe src='{}'></iframe>", "<form action='{}'></form>",
    "<form action='{}' method=post></form>", "<map><area href='{}'></map>", "<link href='{}'>",
    "<script src='{}'></script>", "<embed src='{}'><blockquote cite='{}'>q</blockquote>",
)  # fmt: skip
_ROBOTS: Final = (
    (404, ""), (403, ""), (500, ""), (302, ""), (200, "User-agent: *\nCrawl-delay: 100\n"),
    (200, "User-agent: *\nDisallow: /d1/\nCrawl-delay: 0\n"), (200, "User-agent: *\nDisallow:\n"),
    (200, "User-agent: side\nDisallow: /p7\nAllow: /p77\n\nUser-agent: *\nDisallow: /\n"),
)  # fmt: skip
_HTML: Final = "text/html; charset=utf-8"


@dataclass(frozen=True)
class _Page:
    """What makes a page: its random numbers are the same at each visit of a round."""

    host: str
    path: str
    hosts: Sequence[str]
    chance: random.Random

    def html(self, head: str = "") -> str:
        """A page, with `head` in its head."""
        chance, body = self.chance, []
        for number in range(chance.randrange(14)):
            host, word = chance.choice(self.hosts), chance.choice(_WORDS)
            link = chance.choice(_LINKS).format(
                n=chance.randrange(PAGES), m=chance.randrange(4), host=host, HOST=host.upper()
            )
            body.append(chance.choice(_ELEMENTS).format(link, link, word=word, i=number))
        text = " ".join(chance.choices(_WORDS, k=5 + chance.randrange(60)))
        title = f"Title {self.host} {self.path}" if chance.random() < 0.9 else ""
        return (
            f"<html lang=en><head><title>{title}</title>{head}</head><body><h1>{text[:9]}</h1>"
            f"<h2>Sub</h2><p>{text}</p>{''.join(body)}<!-- a comment --><script>var a = '/p1';"
            "</script><style>b {}</style><div class=footer>foot &amp; &copy; &nbsp; x</div></body>"
        )

    def target(self) -> str:
        """A link to a page somewhere."""
        return f"http://{self.chance.choice(self.hosts)}/p{self.chance.randrange(PAGES)}"


def _answer(body: bytes, *headers: str, status: int = 200, kind: str = _HTML) -> bytes:
    lines = [f"HTTP/1.1 {status} X", *headers, "Connection: close"]
    lines += [f"Content-Type: {kind}"] * bool(kind)
    body = b"" if status == 204 else body
    # Without a length Nutch waits for the end of the connection.
    lines.append(f"Content-Length: {len(body)}")
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode() + body


def _raw_deflate(text: str) -> bytes:
    packing = zlib.compressobj(wbits=-zlib.MAX_WBITS)  # with a header Nutch finds nothing in it
    return packing.compress(text.encode()) + packing.flush()


def _meta(head: str) -> Callable[[_Page], bytes]:
    return lambda page: _answer(page.html(head.format(page.target())).encode())


def _moved(status: int, target: str = "{}") -> Callable[[_Page], bytes]:
    return lambda page: _answer(
        b"<a href=/moved>moved</a>",
        f"Location: {target.format(page.target(), page.path)}",
        status=status,
        kind="text/html",
    )


def _fails(status: int) -> Callable[[_Page], bytes]:
    return lambda _: _answer(b"<a href=/err>e</a>", status=status, kind="text/html")


def _typed(kind: str, body: str | None = None, charset: str = "utf-8") -> Callable[[_Page], bytes]:
    return lambda page: _answer(
        (page.html() if body is None else body).encode(charset, "replace"), kind=kind
    )


_KINDS: Final[Sequence[Callable[[_Page], bytes]]] = (
    *[_typed(_HTML)] * 12,
    *map(_moved, (301, 302, 307, 308)),
    _moved(302, "{1}"),
    _moved(301, "../p1;jsessionid=ABCDEF0123456789ABCDEF0123456789"),
    *map(_fails, (404, 410, 403, 401, 500, 503, 204)),
    *(_meta(f"<meta name=robots content={word}>") for word in ("noindex", "nofollow", "none")),
    _meta("<meta name=robots content=noarchive>"),
    _meta("<meta http-equiv=refresh content='5;url={}'>"),
    _meta("<meta http-equiv=Refresh content='0; URL={}'>"),
    _meta("<link rel=canonical href='{}'>"),
    _meta("<base href='{}'>"),
    _meta("<meta name=description content='A d'><meta name=Keywords content='k1, k2'>"),
    lambda page: _answer(
        gzip.compress(page.html().encode(), mtime=0), "Content-Encoding: gzip"
    ),
    lambda page: _answer(_raw_deflate(page.html()), "Content-Encoding: deflate"),
    lambda page: _answer(page.html().encode(), "Set-Cookie: a=b", "Set-Cookie: c=d", "X-Multi: 1"),
    lambda page: _answer(page.html().encode(), "Last-Modified: Tue, 03 Mar 2020 10:00:00 GMT"),
    lambda page: _answer(f"<frameset><frame src={page.target()}></frameset>".encode()),
    lambda page: _answer(f"<?xml version='1.0'?>{page.html()}".encode(), kind=""),
    _typed("text/html; charset=ISO-8859-1", charset="latin-1"),
    _typed("text/html", charset="utf-16"),
    _typed("application/xhtml+xml"),
    _typed(""),
    _typed(_HTML, ""),
    *[_typed(_HTML, "<title>same</title>the same text <a href=/p1>one</a>")] * 2,
    _typed("text/plain", "plain text http://www.example.com/p3 and more\n"),
    _typed("application/json", '{"a": "http://example.org/p1"}'),
    _typed("application/xml", "<r><a href='/p1'>x</a></r>"),
    _typed("application/javascript", "var u = 'http://example.org/p2'; location.href = '/p4';"),
)  # fmt: skip


@dataclass
class SideWeb:
    """The web of a seed, in a round."""

    seed: int
    visit: int = 0
    asked: list[tuple[int, str, str]] = field(default_factory=list)
    """The round, host and path of requests for pages."""

    def __post_init__(self) -> None:
        # Nutch keeps robots.txt by host for as long as its JVM lives: each web has its own hosts.
        self.hosts = [host.format(f"s{self.seed}") for host in _HOSTS]

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        server = self._stack.enter_context(TimedServer(self._of_request))
        self.port = self._stack.enter_context(ProxyServer(server.port)).port
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def seeds(self) -> str:
        """A file of seeds: some with metadata, some that are none."""
        www, sub, plain, org, net, uk, idn = self.hosts
        return (
            f"http://{www}/\nhttp://{sub}/p1\tnutch.score=2.5\ttag=hello\n"
            f"http://{org.upper()}:80/p2\tnutch.fetchInterval=7200\n"
            f"http://{net}/p3#x\tx=y\thttp://bad\nhttp://{uk}/a/../p4?b=2&a=1\nnot a url\n"
            f"# comment\n\nhttp://{idn}/p5\n  http://{plain}/p10  \n"
            f"http://{www}/p9;jsessionid=0123456789ABCDEF0123456789ABCDEF\n"
            f"http://{plain}/p11\tnutch.fetchInterval.fixed=100\n"
        )

    def _of_request(self, host: str, target: str) -> bytes:
        host, path = host.lower(), "/" + target.partition("://")[2].partition("/")[2]
        path = quote(path, "".join(map(chr, range(33, 127))), "latin-1")
        if path.partition("?")[0] in ("/robots.txt", "/r.txt"):
            return self._robots(host, path)
        self.asked.append((self.visit, host, path))
        return self.page(host, path)

    def _robots(self, host: str, path: str) -> bytes:
        status, text = random.Random(f"{self.seed} robots {host}").choice(_ROBOTS)
        if path == "/r.txt":
            status, text = 200, "User-agent: *\nDisallow: /p3\n"
        more = [f"Location: http://{self.hosts[2]}/r.txt"] * (status == 302)
        return _answer(text.encode(), *more, status=status, kind="text/plain")

    def page(self, host: str, path: str) -> bytes:
        """The whole answer for a page."""
        path = path.partition("?")[0]
        if path.endswith(".gif"):
            return _answer(b"GIF89a\1\0\1\0\0\0\0;", kind="image/gif")
        chance = random.Random(f"{self.seed} {host} {path}")
        kind = _KINDS[0] if path == "/" else chance.choice(_KINDS)
        if chance.random() < 1 / 3:
            chance.seed(f"{self.seed} {host} {path} {self.visit}")
        return kind(_Page(host, path, self.hosts, chance))
