"""Makes a link's target absolute: in Nutch's spelling (which its files hold), or by the WHATWG
standard (browsers').

`Resolver` is made once per page and resolves all its links. Most links are one of five shapes whose
answer is a concatenation; they take well under a microsecond, in a kernel over the links of a page
a few nanoseconds. The rest go through `parts.parse`, java.net.URL's rules; property tests hold the
ways together. Nutch's spelling encodes and lower-cases nothing: normalizers do.

A target without a host where its scheme needs one (`http:/c`, of `<a href="http://">`) is no URL in
either way: it could never be fetched (RFC 9110, 4.2.1; Nutch keeps it).

Source: URLUtil.resolveURL, with its repair of java.net.URL for targets that are a query only; URL
and Encoding Standard, HTML Standard (2.4.2 "encoding-parse a URL", 4.2.3 "frozen base URL").
"""

from __future__ import annotations

import re
from functools import cache, cached_property, lru_cache
from typing import Any

from minutch.charsets import UTF_8, Charset
from minutch.conf import Configuration
from minutch.errors import UrlError
from minutch.urls.parts import Url, parse

_BLANK = "".join(map(chr, range(0x21)))
_ABSOLUTE = re.compile(r"https?://[A-Za-z0-9._-]+(?::[0-9]{0,9})?(?:[/?#]|\Z)").match
_SAME_SCHEME = re.compile(r"//[A-Za-z0-9._-]+(?::[0-9]{0,9})?(?:[/?#]|\Z)").match
_RELATIVE = re.compile(r"[^:/?#.][^:/?#]*(?:/(?:[^:/?#.][^:/?#]*)?)*(?:[?#]|\Z)").match
_PLAIN_BASE = re.compile(
    r"https?://[a-z0-9.-]+(?::[0-9]+)?/[\w.~!$&()*+,;=:@/?#%-]*", re.ASCII
).fullmatch
_SCHEMES_OF_PAGES = ("http:", "https:", "ftp:", "file:")
_NO_BASE = ("data:", "javascript:")
_REMOVED = str.maketrans("", "", "\t\n\r")
_ESCAPED = re.compile(rb"\x00([0-9]+)\x00|[\x00-\x20\"#<>'\x7f-\xff]")
"""A reference to a character that a charset lacks; else the query percent-encode set."""


class Resolver:
    """Resolves targets against one base URL; the constructor raises UrlError if the base is not a
    URL. The charset of the document changes nothing here.
    """

    def __init__(self, base: str, charset: Charset = UTF_8) -> None:
        self.base = base
        self._base = hosted(parse(base))

    @cached_property
    def _page(self) -> str:
        return str(self._base._replace(ref=None))

    @cached_property
    def _root(self) -> str:
        url = self._base
        return f"{url.protocol}://{url.authority}" if url.authority else f"{url.protocol}:"

    @cached_property
    def _directory(self) -> str | None:
        """The prefix of a plain relative target; None if dot segments would have to be removed."""
        path = self._base.path[: self._base.path.rfind("/") + 1] or "/"
        plain = self._base.authority is not None and path[0] == "/" and "/." not in path
        return self._root + path if plain and self._base.protocol != "jar" else None

    @cached_property
    def _query(self) -> str | None:
        """The prefix of a target that is a query only."""
        try:
            return str(parse(self._base.path.rpartition("/")[2] + "?", self._base)).removesuffix(
                "?"
            )
        except UrlError:
            return None

    @classmethod
    def of_page(cls, url: str, charset: Charset = UTF_8) -> Resolver:
        """Returns the resolver of a page; UrlError if its URL is not valid."""
        return cls(url, charset)

    def based(self, href: str) -> Resolver:
        """Returns the resolver of a page with this base element, whose URL is java.net.URL's, as in
        Nutch's HtmlParser.
        """
        return Resolver(str(parse(href, self._base)))

    def resolve(self, target: str) -> str:  # noqa: C901, PLR0911 - one return a case
        """Returns the absolute URL of `target`; UrlError if there is none."""
        target = target.strip(_BLANK)
        first = target[:1]
        if first == "/":
            # The five shapes: of the host, of the scheme, fragment, query, absolute, relative.
            if target[1:2] != "/":
                return self._root + target
            if _SAME_SCHEME(target) is not None:
                return f"{self._base.protocol}:{target}"
        elif first == "#":
            return self._page + target
        elif first == "?":
            if self._query is not None:
                return self._query + target
        elif _ABSOLUTE(target) is not None:
            return target
        elif self._directory is not None:
            if _RELATIVE(target) is not None:
                return self._directory + target
            if first == "." and self._base.path and (url := self._climb(target)) is not None:
                return url
        return self.resolve_slowly(target)

    def _climb(self, target: str) -> str | None:
        """Returns the same for a target that starts with `./` or `../`, on a plain directory; None
        leaves it to the full rules. Of what would climb above the root, one `../` or two stay.
        """
        directory, rest = self._directory or "", target
        while rest.startswith(("./", "../")):
            up, rest = rest.startswith(".."), rest.partition("/")[2]
            end = directory.rfind("/", len(self._root), -1) + 1 if up else len(directory)
            if not end:
                plain = _RELATIVE(rest.removeprefix("../")) is not None
                return f"{directory}../{rest}" if plain else None
            directory = directory[:end]
        plain = rest != target and (not rest or rest[0] in "?#" or _RELATIVE(rest) is not None)
        return directory + rest if plain else None

    def resolve_slowly(self, target: str) -> str:
        """Returns the same answer by the full rules alone."""
        target = target.strip(_BLANK)
        if target.startswith("?"):
            # URLUtil.fixPureQueryTargets: RFC 3986, 5.2.2 keeps the last segment.
            target = self._base.path.rpartition("/")[2] + target
        return str(hosted(parse(target, self._base)))

    def prefixes(self) -> list[str | None]:
        """Returns the text to put before a target, in the form the kernel takes; None leaves the
        target to the full rules, as for a bare query.
        """
        return [
            self._root,
            self._directory,
            self._page,
            f"{self._base.protocol}:",
            self._base.path or None,
        ]


def hosted(url: Url) -> Url:
    """Returns the URL; UrlError if it lacks the host that its scheme needs."""
    if url.lacks_host:
        raise UrlError(f"no host: {url}")
    return url


@lru_cache(maxsize=256)
def resolver(base: str) -> Resolver:
    """Returns the Resolver of a base, cached for the next link of the same page."""
    return Resolver(base)


def resolve(base: str, target: str) -> str:
    """Returns `target` made absolute as Nutch spells it; UrlError if base or target is no URL."""
    return resolver(base).resolve(target)


class WhatwgResolver:
    """Resolves targets as browsers do: by the WHATWG URL standard, with the library upa-url.

    `base` may be empty, then targets must be absolute. `charset` is the document's, in which
    queries are encoded.
    """

    __slots__ = ("_base", "_charset", "base")

    def __init__(self, base: str, charset: Charset = UTF_8) -> None:
        self.base = base
        # Encoding Standard, 4.3: the output encoding of UTF-16 is UTF-8.
        self._charset = UTF_8 if charset.is_wide else charset
        self._base = _parsed(base) if base else None

    @property
    def plain_base(self) -> str:
        """The base as the standard spells it, if nothing about it is unusual; else empty."""
        base = "" if self._base is None else str(self._base.href)
        return base if _PLAIN_BASE(base) is not None else ""

    @classmethod
    def of_page(cls, url: str, charset: Charset = UTF_8) -> WhatwgResolver:
        """Returns the resolver of a page; UrlError if Java rejects its URL."""
        hosted(parse(url))
        return cls(url, charset)

    def based(self, href: str) -> WhatwgResolver:
        """Returns the resolver of a page with a base element; UrlError for one that is ignored."""
        base = self.resolve(href)
        # HTML Standard, 4.2.3: such a base would make all links scripts or data.
        if base.startswith(_NO_BASE):
            raise UrlError(f"not for a base element: {base[:80]}")
        return WhatwgResolver(base, self._charset)

    def resolve(self, target: str) -> str:
        """Returns the absolute URL of `target`; UrlError if there is none."""
        if self.base and self._base is None:
            raise UrlError(f"can't resolve {target!r}: {self.base!r} is no URL")
        # The library encodes as UTF-8.
        if self._charset != UTF_8 and not target.isascii():
            target = _with_encoded_query(target, self._charset)
        try:
            made = _library()(target) if self._base is None else _library()(target, self._base)
            return str(made.href)
        except (RuntimeError, ValueError, TypeError) as exc:
            # upa-url reports every failure as RuntimeError, and half a surrogate pair as TypeError
            raise UrlError(f"can't resolve {target!r} against {self.base!r}: {exc}") from exc


@cache
def _library() -> Any:
    """The library's class of URLs, which is loaded when it is needed."""
    from upa_url import URL

    return URL


def _parsed(url: str) -> Any:
    """A URL of the library's; None if it is none."""
    try:
        return _library()(url)
    except (RuntimeError, ValueError, TypeError):
        return None


def _with_encoded_query(target: str, charset: Charset) -> str:
    """Returns a target with its query percent-encoded after encoding (URL Standard, 1.3)."""
    before, sharp, fragment = target.translate(_REMOVED).strip(_BLANK).partition("#")
    start, mark, query = before.partition("?")
    # NUL marks what is to become a reference; a real one is escaped before.
    missing = {ord(char): f"\0{ord(char)}\0" for char in set(query) if not _has(charset, char)}
    encoded = charset.encode(query.replace("\0", "%00").translate(missing))
    return f"{start}{mark}{_ESCAPED.sub(_escape, encoded).decode('ascii')}{sharp}{fragment}"


def _has(charset: Charset, char: str) -> bool:
    try:
        charset.encode(char)
    except UnicodeError:
        return False
    return True


def _escape(found: re.Match[bytes]) -> bytes:
    # `&#…;` in escapes, as the URL Standard has it for what a charset lacks.
    return b"%%26%%23%s%%3B" % found[1] if found[1] else b"%%%02X" % found[0][0]


def resolver_class(conf: Configuration) -> type[Resolver] | type[WhatwgResolver]:
    """Returns the class that `parser.html.outlinks.whatwg` chooses."""
    return WhatwgResolver if conf.get_boolean("parser.html.outlinks.whatwg") else Resolver


def resolved_page(resolver: Resolver | WhatwgResolver, target: str) -> str:
    """Returns the absolute URL of what is to be fetched instead of a page; UrlError if there is
    none, or of a scheme that no page has, which the WHATWG's way knows.
    """
    url = resolver.resolve(target)
    if isinstance(resolver, WhatwgResolver) and not url.startswith(_SCHEMES_OF_PAGES):
        raise UrlError(f"unknown protocol: {url.partition(':')[0]}")
    return url
