"""The readers of whatever comes from outside: how each is called, samples of what it reads, and the
tokens of its grammar.

A new reader joins with an entry of `WEB` (what servers send) or `FILES` (what lies in a folder).
`growth.py` gives those of the web ever longer input of few tokens, and looks at their time;
`fuzz.py` gives all of them damaged input, and looks at what comes out.
"""

from __future__ import annotations

import gzip
import re
import tempfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import httpx
from backports import zstd

from minutch.archives.web.cdxjindex import surt
from minutch.archives.web.htmlfacts import html_facts
from minutch.conf import Configuration
from minutch.cycle.fetch.decisions import retry_after
from minutch.cycle.parse.charset import CharsetDetector
from minutch.cycle.parse.dispatch import ParseUtil
from minutch.cycle.parse.mime import MimeUtil
from minutch.cycle.parse.outlinks import text_outlinks
from minutch.cycle.parse.robotsdirectives import Directives, words_for
from minutch.cycle.parse.signature import TextProfileSignature
from minutch.cycle.parse.simhash import simhash
from minutch.cycle.sitemap.sitemapfile import read_sitemap
from minutch.cycle.sitemap.sitemapurls import ListedUrls
from minutch.errors import MinutchError
from minutch.inspect.search.crawlfiles import still
from minutch.inspect.search.query import Vocabulary, rewritten
from minutch.plugin.chains import URLFilters, URLNormalizers
from minutch.records.metadata import Metadata
from minutch.urls.domains import domain_name
from minutch.urls.hostname import canonical_host
from minutch.urls.parts import parse
from minutch.urls.resolve import Resolver, WhatwgResolver
from minutch.urls.robots import parse_robots
from minutch.urls.uri import parse_uri
from minutch.warc.reading.archivefiles import IndexFile, entries_of, find_archives
from minutch.warc.reading.visits import read_answer as read_stored
from minutch.warc.warcfile import uri_of
from plugins.lib_html.elements import header_links, read_refresh
from plugins.lib_http.credentials import challenges
from plugins.lib_http.decoding import decode
from plugins.lib_http.exchange import SpellCheckedMetadata, parse_date
from plugins.lib_http.failures import MalformedHead, TooLarge
from plugins.lib_http.lenient import Incoming
from plugins.parse_js.script import script_links
from plugins.protocol_ftp.ftpsession import facts, listed
from tests.plugins.test_parse_others import ATOM, RSS, SITEMAP, archive
from tests.support.golden import PROJECT
from tests.support.officefiles import samples as office_files
from tests.support.pages import configuration, content
from tests.support.pdffiles import link, pdf


@dataclass(frozen=True)
class Reader:
    """A reader of bytes."""

    read: Callable[[bytes], object]
    """Raises MinutchError or `errors` for what it can't read."""
    samples: Callable[[], Iterable[bytes]]
    tokens: str
    """Tokens of its grammar, separated by blanks, with Python's escapes (`\\x20`)."""
    errors: tuple[type[Exception], ...] = ()
    most: int = 1 << 20
    """The longest input that it is ever given."""
    once: tuple[bytes, ...] = ()
    """What once failed."""

    @property
    def words(self) -> list[bytes]:
        """The tokens as bytes."""
        return [
            word.encode().decode("unicode_escape").encode("latin-1") for word in self.tokens.split()
        ]


def text(data: bytes) -> str:
    """What is read as text; bytes of no character become lone surrogates, which URLs may have."""
    return data.decode("utf-8", "surrogateescape")


def _old_office(name: str) -> bytes:
    """A file that LibreOffice has written."""
    path = PROJECT / "tests" / "plugins" / "documents" / f"{name}.gz"
    return gzip.decompress(path.read_bytes())


# -- the web ---------------------------------------------------------------------------------------

URL: Final = (
    "a/ /.. http:// https:// : / // \\\\ ? # @ [ ] . .. ../ ./ /a/../ % %41 %zz & = ; + a.b xn--"
    " \\xc3\\xa9 0 1. \\x20 \\t \\n"
)
HTML: Final = (
    "< </ <a <a\\x20href= <b> </b> <p> <!-- --> <! <![CDATA[ ]]> > \" ' = & &amp; &# ; <table> <tr>"
    " <td> <svg> <math> <title> </title> <script> </script> <style> <template> <select> <option>"
    " <meta\\x20http-equiv=refresh\\x20content= <base\\x20href= <iframe> <noscript> \\0 \\n \\xff"
)
XML: Final = (
    "< </ <a> </a> <a/> <a\\x20b='c' <a\\x20xmlns:b='c'> &amp; &lt; & ; <!-- --> <![CDATA[ ]]>"
    " <? ?>"
    " <!DOCTYPE\\x20a\\x20[ <!ENTITY\\x20a\\x20'b'> &a; \" ' > \\n x"
)


ENCODINGS: Final = ("xyz", "idna", "rot13", "shift_jis", "utf-16", "undefined")
"""That Python does not know, or not for XML."""


@cache
def _conf() -> Configuration:
    return configuration(
        "parse-(html|tika|zip|js|text)|feed|headings|parse-(metatags|canonical)|microformats-reltag|"
        ""
        "language-identifier|creativecommons|urlnormalizer-(basic|regex|host|protocol|querystring|"
        "slash|ajax|pass)|urlfilter-(regex|validator|suffix|prefix|domain|fast|automaton|"
        "domaindenylist)"
    )


@cache
def _parsers() -> ParseUtil:
    return ParseUtil(_conf())


def _parse(media_type: str) -> Callable[[bytes], object]:
    def read(data: bytes) -> object:
        result = _parsers().parse(content(data, media_type))
        for _, found in result.items():
            found.data.to_bytes()
            said = (found.data.status.args or [""])[0] or ""
            assert found.data.status.major in (1, 2) and not _FOREIGN.match(said), said
        return result

    return read


_FOREIGN: Final = re.compile(r"[A-Z]\w*(?:Error|Exception): ")
"""What a status says of an exception that is not ours."""


@cache
def _normalizers() -> URLNormalizers:
    return URLNormalizers(_conf())


@cache
def _filters() -> URLFilters:
    return URLFilters(_conf())


@cache
def _mime() -> MimeUtil:
    return MimeUtil(_conf())


@cache
def _charsets() -> CharsetDetector:
    return CharsetDetector(_conf())


def _robots(data: bytes) -> object:
    rules = parse_robots(data, "text/plain", ["x"], "http://a/robots.txt")
    longest = max((len(rule.path) for rule in rules.rules), default=0)
    paths = ("/", "/" + "a" * 2000, "/" + "ab/" * 700, "/" + data[-2000:].decode("latin-1"))
    return longest, [rules.is_allowed(f"http://a{path}") for path in paths]


def _sitemap(data: bytes) -> object:
    listed = ListedUrls("http://a/", strict=False)
    return read_sitemap("", data, listed, most_bytes=1 << 22)


def _incoming(data: bytes) -> object:
    incoming = Incoming(1 << 16)
    for at in range(0, len(data), 100):
        if incoming.is_whole:
            break
        incoming.add(data[at : at + 100])
    return incoming.reply(("127.0.0.1", 80))


def _headers(data: bytes) -> object:
    metadata = SpellCheckedMetadata()
    metadata.put_lines(data.split(b"\n"), 1)
    links = header_links(metadata, Resolver("http://a/"), {"header"})
    return links, metadata.get("Content-Type"), list(metadata.java_names())


def _values(data: bytes) -> object:
    value = text(data)
    metadata = Metadata.of({"Link": value, "Refresh": value})
    links = header_links(metadata, WhatwgResolver("http://a/"), {"header"})
    words = [*words_for(value, frozenset({"x"}))]
    dates = parse_date(value), retry_after(value, 0, 10**9), Directives.of(words, 0)
    return challenges([value, value]), read_refresh(value), links, dates


def _url(data: bytes) -> object:
    url = text(data)
    return [
        _outcome(call, url)
        for call in (
            parse,
            lambda url: parse(url, parse("http://a/b/c")),
            lambda url: parse_uri(url).normalize(),
            domain_name,
            canonical_host,
            uri_of,
            surt,
            Resolver("http://a/b/c").resolve,
            lambda url: Resolver(url).resolve("../x"),
            WhatwgResolver("http://a/b/c").resolve,
        )
    ]


def _outcome(call: Callable[[str], object], url: str) -> object:
    try:
        return call(url)
    except MinutchError as error:
        return error


def from_file(read: Callable[[Path], object], name: str) -> Callable[[bytes], object]:
    """A reader of files, which gets what it reads as one."""

    def wrapped(data: bytes) -> object:
        with tempfile.TemporaryDirectory(prefix="reader-", dir=memory()) as folder:
            path = Path(folder) / name
            path.write_bytes(data)
            return read(path)

    return wrapped


@cache
def memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _archive(path: Path) -> object:
    found: list[object] = []
    for one in find_archives([path]):
        if isinstance(one, IndexFile):
            found += entries_of(one)
            continue
        opened = one.open(1 << 20)
        try:
            found += opened.visits()
        finally:
            opened.close()
    return found


def _pages() -> list[bytes]:
    site = PROJECT / "tests" / "support" / "site"
    return [_page("/x"), *(path.read_bytes() for path in sorted(site.rglob("*.html"))[:12])]


def _page(text: str) -> bytes:
    return (
        f"<html><head><title>t</title><meta name=robots content=noindex><base href='/b/'></head>"
        f"<body style='background:url(x.png)'><a href='{text}' rel=tag>é"
        f" &amp;</a><script>go('/a/b')"
        "</script><img srcset='a 1x, b 2x'><table><tr><td>x</table></body></html>"
    ).encode()


_ROBOTS: Final = (
    b"User-agent: *\nDisallow: /a*b$\nAllow: /a/index.html\nCrawl-delay: 1.5\nSitemap: /s.xml\n"
)
_ANSWER: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nLink: </a>; rel=next\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
)
_VALUES: Final = (
    b'Basic realm="a", Digest nonce=b, charset="UTF-8"',
    b'</a>; rel="next", <b>; title=c',
    b"5; url='http://a/'",
    b"x: noindex, unavailable_after: Sun, 06 Nov 2094 08:49:37 GMT",
    b"Sun, 06 Nov 1994 08:49:37 GMT",
    b"120",
)
_URLS: Final = (
    b"http://user:pw@www.example.co.uk:8080/a/../b/./c.html?q=1&PHPSESSID=1234#f",
    b"https://[::1]/%C3%A9;jsessionid=1",
    b"../x?y",
    "http://bücher.example/ü".encode(),
)
_LONG_PORT: Final = b"http://a:" + b"1" * 5000
"""Beyond the digits that Python makes a number of."""
_BODY: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>x</title>"


def _warc(*bodies: bytes) -> bytes:
    return b"".join(
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:%d>\r\n"
        b"WARC-Date: 2027-01-01T00:00:00Z\r\nWARC-Target-URI: http://a/%d\r\n"
        b"Content-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n"
        % (number, number, len(body), body)
        for number, body in enumerate(bodies)
    )


def _arc() -> bytes:
    head = b"1 0 Test\nURL IP-address Archive-date Content-type Archive-length\n"
    return (
        b"filedesc://x.arc 0.0.0.0 20200101000000 text/plain %d\n%b\n"
        b"http://a/ 1.2.3.4 20200101000000 text/html %d\n%b\n"
        % (len(head), head, len(_BODY), _BODY)
    )


def _tar() -> bytes:
    import io
    import tarfile

    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, data in (("a.html", _page("x")), ("b.txt", b"http://a/")):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return made.getvalue()


def _wacz() -> bytes:
    import io
    import zipfile

    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("archive/a.warc", _warc(_BODY, _ANSWER))
        file.writestr("datapackage.json", '{"profile": "data-package"}')
    return made.getvalue()


_DECODED: Final = _page("x") * 20
_CODED: Final = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstd.compress,
}

WEB: Final[Mapping[str, Reader]] = {
    "html": Reader(_parse("text/html"), _pages, HTML, once=(b"<a href='%b/'>x</a>" % _LONG_PORT,)),
    "xhtml": Reader(_parse("application/xhtml+xml"), lambda: [_page("/x")], f"{HTML} {XML}"),
    "xml": Reader(_parse("application/xml"), lambda: [SITEMAP.encode()], XML),
    "rss": Reader(
        _parse("application/rss+xml"),
        lambda: [RSS.encode()],
        f"{XML} <item> </item> <link> <title>",
    ),
    "atom": Reader(
        _parse("application/atom+xml"),
        lambda: [ATOM.encode()],
        f"{XML} <entry> </entry> <link\\x20",
    ),
    "text": Reader(
        _parse("text/plain"),
        lambda: ["plain http://e.org/ and žluťoučký www.x.y".encode()],
        "http:// www. a.b / a \\x20 \\n \\xff \\xe9 @ : ?",
    ),
    "script": Reader(
        lambda data: script_links(text(data), "http://a/b"),
        lambda: [b"window.open('/a/b.html'); var x = \"http://a.b/\" // c\n/* d */ `e`"],
        "' \" / // /* */ \\\\ http:// a.b .html ( ) = ; \\n ` ${ } a",
    ),
    "zip": Reader(
        _parse("application/zip"),
        lambda: [archive(a_html="<a href=x>y</a>", b_js="go('a/b')")],
        "PK\\x03\\x04 PK\\x01\\x02 PK\\x05\\x06 \\0 \\xff a",
        once=(archive(xyz="data").replace(b"xyz", b"\0yz"),),
    ),
    "tar": Reader(_parse("application/x-tar"), lambda: [_tar()], "\\0 ustar a 0000 L K x"),
    "gzip": Reader(
        _parse("application/gzip"),
        lambda: [gzip.compress(_page("x")), gzip.compress(_tar())],
        "\\x1f\\x8b\\x08 \\x1f\\x8b\\x08\\0\\0\\0\\0\\0\\0\\xff\\x03\\0\\0\\0\\0\\0\\0\\0\\0\\0"
        " \\0 \\xff",
    ),
    "pdf": Reader(
        _parse("application/pdf"),
        lambda: [pdf("text", page=f"/Annots[{link('http://e.org/')}]")],
        "1\\x200\\x20obj endobj << >> [ ] ( ) /A /Kids stream endstream xref trailer %%EOF %PDF- <"
        " > 0\\x200\\x20R startxref",
    ),
    "office": Reader(
        _parse("application/x-tika-ooxml"),
        lambda: office_files().values(),
        "PK\\x03\\x04 PK\\x01\\x02 PK\\x05\\x06 \\0 \\xff",
    ),
    "rtf": Reader(
        _parse("application/rtf"),
        lambda: [_old_office("word.rtf")],
        "{\\x5crtf1 { } \\x5c \\x5c* \\x5c' \\x5c'e4 \\x5cu228? \\x5cpar \\x5cbin9 \\x5cfield"
        ' {\\x5c*\\x5cfldinst {\\x5cfldrslt HYPERLINK " \\x5cansicpg1252 \\x5cfonttbl \\x5cf0'
        " \\x5cheader \\x5cinfo \\x5ctitle \\x20 \\n \\xff",
    ),
    "binary office": Reader(
        _parse("application/msword"),
        lambda: [_old_office("word.doc"), _old_office("slides.ppt")],
        "\\xd0\\xcf\\x11\\xe0\\xa1\\xb1\\x1a\\xe1 \\0 \\xff \\xff\\xff\\xff\\xff"
        " \\xfe\\xff\\xff\\xff \\x13\\0 \\x14\\0 \\x15\\0 \\x0f\\0\\xa0\\x0f",
    ),
    "robots.txt": Reader(
        _robots,
        lambda: [_ROBOTS],
        "User-agent:\\x20*\\n User-agent:\\x20x\\n Disallow:\\x20/a\\n Disallow:\\x20/*a\\n"
        " Disallow:/*a$\\n Disallow:/*a*a*\\n Allow:\\x20/\\n Crawl-delay:1\\n Sitemap:\\x20/s\\n"
        " * $ % < > # : \\n \\r \\x20 a <html> 9",
        most=512_000,
        once=(b"User-agent: *\n" + b"Disallow: /*a*b\n" * 30_000,),
    ),
    "sitemap": Reader(
        _sitemap,
        lambda: [SITEMAP.encode(), RSS.encode(), ATOM.encode(), b"http://a/b\nhttp://a/c\n"],
        f"{XML} <urlset> <url> </url> <loc> </loc> <lastmod> <sitemapindex> <sitemap> http://a/\\n"
        " \\x1f\\x8b\\x08\\0\\0\\0\\0\\0\\0\\xff\\x03\\0\\0\\0\\0\\0\\0\\0\\0\\0",
        once=(b"<urlset><url><loc>%b/</loc></url></urlset>" % _LONG_PORT,),
    ),
    "answer": Reader(
        _incoming,
        lambda: [_ANSWER, _BODY],
        "HTTP/1.1\\x20200\\x20OK\\r\\n HTTP/1.1\\x20100\\x20\\r\\n\\r\\n a:b\\r\\n : , ; \\r\\n"
        " \\n \\r"
        " Transfer-Encoding:chunked\\r\\n 1\\r\\na\\r\\n 0 f Content-Length:1\\r\\n \\x20 \\t \\0",
        errors=(MalformedHead, TooLarge, httpx.TransportError),
    ),
    "headers": Reader(
        _headers,
        lambda: [_ANSWER],
        'a:b\\n Link:<a>\\n Content-Type:a\\n Cotnent-Tpye:a\\n , ; = \\" < > \\x20 \\t \\n : a'
        " - \\xff",
        most=300_000,
    ),
    "values": Reader(
        _values,
        lambda: _VALUES,
        "Basic realm= a=b , ; = \\\" \\\\ < > \\x20 \\t rel= url= ' 0 9 : noindex"
        " unavailable_after: GMT"
        " Sun, - + \\xc3\\xa9",
        most=100_000,
        once=(b'Digest realm="a", algorithm=x, qop=auth-int', b"Basic", b"Basic realm", b""),
    ),
    **{
        f"coding {coding}": Reader(
            lambda data, coding=coding: decode(data, coding, 1 << 20),  # type: ignore[misc]
            lambda pack=pack: [pack(_DECODED), pack(b"") * 50, pack(b"\0" * 100_000)],  # type: ignore[misc]
            "\\0 \\xff \\x1f\\x8b\\x08 \\x28\\xb5\\x2f\\xfd \\x28\\xb5\\x2f\\xfd\\0\\0\\x01\\0\\0"
            " \\x78\\x9c \\x1f\\x8b\\x08\\0\\0\\0\\0\\0\\0\\xff\\x03\\0\\0\\0\\0\\0\\0\\0\\0\\0"
            " \\x06"
            " \\x50\\x2a\\x4d\\x18\\0\\0\\0\\0",
        )
        for coding, pack in _CODED.items()
    },
    "coding br": Reader(
        lambda data: decode(data, "br", 1 << 20),
        lambda: [b"\x06", b"\x0b\x02\x80hello\x03"],
        "\\0 \\x06 \\xff \\x0b\\x02\\x80hello\\x03 \\x03 \\x1b",
    ),
    "codings, stacked": Reader(
        lambda data: decode(data, "zstd, gzip, deflate, br", 1 << 20),
        lambda: [b"\x06" * 9],
        "\\0 \\x06 \\xff \\x0b\\x02\\x80hello\\x03",
    ),
    "charset": Reader(
        lambda data: _charsets().detect(data, text(data[:200]), "text/html"),
        lambda: [_page("x"), "рыжий кот".encode("cp1251"), "日本語".encode("shift_jis")],
        "<meta charset= http-equiv=content-type content= \" ' < > ; \\x1b$B \\xe9 \\xc3\\xa9"
        " \\x82\\xa0"
        " \\0 <!-- --> <?xml encoding= \\x20 \\n a",
    ),
    "mime": Reader(
        lambda data: (_mime().resolve(None, "http://a/b", data), _mime().by_url(text(data))),
        lambda: [_page("x"), b"%PDF-1.4", b"<?xml version='1.0'?><a xmlns='b'/>"],
        f"{XML} %PDF- PK\\x03\\x04 . / # <html",
    ),
    "url": Reader(
        _url,
        lambda: _URLS,
        URL,
        most=65_536,
        once=(_LONG_PORT, b"http://a\0b/", b"http://a/" + b"../x/" * 13_000),
    ),
    "normalizers": Reader(
        lambda data: _normalizers().normalize(text(data)), lambda: _URLS, URL, most=65_536
    ),
    "filters": Reader(lambda data: _filters().filter(text(data)), lambda: _URLS, URL, most=65_536),
    "links in text": Reader(
        lambda data: text_outlinks(text(data)),
        lambda: [b"see http://a.b/c (ftp://x) or www.x.y."],
        "http:// ftp:// www. . / ( ) : a @ \\x20 \\n , \\xe9",
    ),
    "signatures": Reader(
        lambda data: (TextProfileSignature(_conf()).profile(text(data)), simhash(text(data))),
        lambda: [b"some words, and words again"],
        "a ab \\x20 \\n . \\xc3\\xa9 \\xe6\\x97\\xa5 0",
    ),
    "facts of html": Reader(html_facts, lambda: [_page("x")], HTML),
    "stored page": Reader(still, lambda: [_page("x")], HTML),
    "stored answer": Reader(
        read_stored,
        lambda: [_ANSWER, _BODY],
        "HTTP/1.1\\x20200\\x20OK\\r\\n HTTP/1.1\\x20100\\x20a\\r\\n\\r\\n a:b\\r\\n \\r\\n \\n \\r"
        " Transfer-Encoding:chunked\\r\\n\\r\\n 1\\r\\na\\r\\n 0 1"
        " X-Crawler-Content-Encoding:a\\r\\n \\x20",
    ),
    "warc": Reader(
        from_file(_archive, "a.warc"),
        lambda: [_warc(_BODY, _ANSWER)],
        "WARC/1.0\\r\\n WARC/1.0 Content-Length:1\\r\\n Content-Length:\\x2099\\r\\n\\r\\n"
        " \\r\\n \\n a:b\\r\\n"
        " \\x20a\\r\\n \\x1f\\x8b \\x1f\\x8b\\x08 \\0 a",
    ),
    "warc.gz": Reader(
        from_file(_archive, "a.warc.gz"),
        lambda: [gzip.compress(_warc(_BODY)) + gzip.compress(_warc(_ANSWER))],
        "\\x1f\\x8b \\x1f\\x8b\\x08 \\x1f\\x8b\\x08\\0 \\x1f\\x8b\\x08\\0\\0\\0\\0\\0\\0\\xff"
        " \\x1f\\x8b\\x08\\0\\0\\0\\0\\0\\0\\xff\\x03\\0\\0\\0\\0\\0\\0\\0\\0\\0 \\0 \\xff"
        " WARC/1.0\\r\\n"
        # members that begin a record and are damaged: each with a wrong sum, each in the one before
        " \\x1f\\x8b\\x08\\0\\0\\0\\0\\0\\0\\xff\\x01\\x0a\\0\\xf5\\xffWARC/1.0\\r\\n\\0\\0"
        "\\0\\0\\0\\0\\0\\0"
        " \\x1f\\x8b\\x08\\0\\0\\0\\0\\0\\0\\xff\\0\\xff\\x7f\\0\\x80WARC/1.0\\r\\n",
    ),
    "warc.zst": Reader(
        from_file(_archive, "a.warc.zst"),
        lambda: [zstd.compress(_warc(_BODY)) + zstd.compress(_warc(_ANSWER))],
        "\\x28\\xb5\\x2f\\xfd \\x28\\xb5\\x2f\\xfd\\0\\0\\x01\\0\\0"
        " \\x50\\x2a\\x4d\\x18\\0\\0\\0\\0"
        " \\x5d\\x2a\\x4d\\x18 \\0 \\xff"
        # as above: raw blocks of 10 bytes, and of 100 KB
        " \\x28\\xb5\\x2f\\xfd\\0\\x58\\x50\\0\\0WARC/1.0\\r\\n\\x07\\0\\0"
        " \\x28\\xb5\\x2f\\xfd\\0\\x58\\0\\x35\\x0cWARC/1.0\\r\\n",
        once=(b"\x5d\x2a\x4d\x18\0",),
    ),
    "arc": Reader(
        from_file(_archive, "a.arc"),
        lambda: [_arc()],
        "http://a/\\x201.2.3.4\\x2020200101000000\\x20text/html\\x201\\na\\n \\n a \\x20"
        " filedesc:// 9",
    ),
    "cdxj": Reader(
        from_file(_archive, "a.cdxj"),
        lambda: [b'com,a)/ 20200101000000 {"url":"http://a/","filename":"f.warc","offset":"0"}\n'],
        'com,a)/\\x20 20200101000000\\x20 { } [ " : , \\n \\\\ 9 a',
    ),
    "cdx": Reader(
        from_file(_archive, "a.cdx"),
        lambda: [
            b" CDX N b a m s k r M S V g\n"
            b"com,a)/ 20200101000000 http://a/ text/html 200 ABC - - 5 0 f.warc.gz\n"
        ],
        "\\x20CDX\\x20 N b a m s k r V g \\x20 \\n - 9 99999999999999999999 a 2020 \\x1f\\x8b\\x08",
    ),
    "wacz": Reader(
        from_file(_archive, "a.wacz"),
        lambda: [_wacz()],
        "PK\\x03\\x04 PK\\x01\\x02 PK\\x05\\x06 \\0 \\xff \\xff\\xff\\xff\\xff archive/a.warc",
    ),
    "ftp list": Reader(
        lambda data: [*facts(text(data).splitlines()), *listed(text(data).splitlines())],
        lambda: [
            b"type=file;size=12;modify=20260101120000; a\n"
            b"-rw-r--r-- 1 a b 12 Jan  1 12:00 name\n01-01-26 12:00PM <DIR> x\n"
        ],
        "type=file; size= ; = \\x20 \\n -rw-r--r-- 1 Jan 12:00 a 9 <DIR>",
    ),
    "search": Reader(
        lambda data: rewritten(text(data), Vocabulary(["en"])),
        lambda: [b'title:word "a b"~2 date:2024 -x (a OR b)^2 h*'],
        'a : " ( ) - + * ? ~ ^ [ ] { } TO OR AND NOT / \\\\ date: \\x20 2024',
        most=1000,
    ),
}
