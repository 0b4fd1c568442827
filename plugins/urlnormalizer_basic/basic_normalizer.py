"""urlnormalizer-basic: brings each URL to one spelling.

- scheme and host in lower case; percent-encoding in the host decoded; the default port dropped
- no fragment; for http and https no user info
- an empty path becomes `/`; dot segments and empty segments go from the path
- percent-encoding in path and query where it is needed, nowhere else, in capitals

Properties: urlnormalizer.basic.host.idn (toAscii, toUnicode or nothing),
urlnormalizer.basic.host.idna2008 (that standard, else IDNA 2003),
urlnormalizer.basic.host.trim-trailing-dot.

Source: org.apache.nutch.net.urlnormalizer.basic.BasicURLNormalizer. Its quirk: where the path can't
be a URI's, dot segments stay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from minutch.conf import Configuration
from minutch.errors import UrlError
from minutch.plugin.columns import patch, rewrite
from minutch.plugin.points import URLNormalizer
from minutch.urls import hostname
from minutch.urls.javaregex.derivative import NOTHING, found_in
from minutch.urls.javaregex.syntax import parse_regex
from minutch.urls.parts import Url, compose, parse
from minutch.urls.rules import Untouched
from minutch.urls.uri import form_decode, normalize_escapes, parse_uri

if TYPE_CHECKING:
    import polars as pl

_BLANK = "".join(map(chr, range(0x21)))
_HIERARCHICAL = frozenset({"http", "https", "ftp"})
_CROWDED_PATH = re.compile(r"/[./]|\./")
_DOTTED_PATH = re.compile(r"/\.|\./")
_SLASHES = re.compile("/{2,}")
_CLIMB = re.compile(r"\A(?:/\.\.(?=/))+")

# A URL that is normal already, but for a fragment: a plain host, no port that a scheme stands for
# (80, 443), and only escapes that have to be there. A backslash may be none of its characters: with
# one, no path is put in order.
_PORT = "[1-9]|[1-79][0-9]|8[1-9]|[1-35-9][0-9][0-9]|4[0-35-9][0-9]|44[0-24-9]|[1-9][0-9]{3,4}"
_HOST = rf"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*(?::(?:{_PORT}))?"
_SAFE = r"!#$&'()*+,\-0-9:;=@A-Z_a-z~"
_QUERY_SAFE = _SAFE.replace("#", "") + "./?"
_PATH_SAFE = _SAFE.replace("#", "")
_ESCAPE = "%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[BCDF])"
_SHAPE = re.compile(rf"https?://{_HOST}(/[{_PATH_SAFE}./%]*)(?:\?[{_QUERY_SAFE}%]*)?")
_FRAGMENT = r"^([^#]*)#"
_BAD_ESCAPE = re.compile(f"%(?!{_ESCAPE[1:]})")
_CHAR = f"(?:[{_PATH_SAFE}]|{_ESCAPE})"
_INNER = f"(?:[{_PATH_SAFE}.]|{_ESCAPE})*"
_NORMAL = (
    rf"https?://{_HOST}(?:/{_CHAR}(?:{_INNER}{_CHAR})?)*/(?:{_CHAR}{_INNER})?"
    rf"(?:\?(?:[{_QUERY_SAFE}]|{_ESCAPE})*)?"
)
_NORMAL_COLUMN = f"^{_NORMAL}(?:$|#)"


class BasicURLNormalizer(URLNormalizer):
    """The normal form of a URL."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        direction = conf.get_text("urlnormalizer.basic.host.idn").lower()
        self.to_ascii = direction == "toascii"
        self.to_unicode = direction == "tounicode"
        self.idna2008 = conf.get_boolean("urlnormalizer.basic.host.idna2008")
        self.trim_dot = conf.get_boolean("urlnormalizer.basic.host.trim-trailing-dot")

    def normalize(self, url: str, scope: str) -> str | None:
        plain = url.partition("#")[0]
        return plain if self._is_normal(plain) else self._squeezed(plain) or self.rewrite(url)

    def _squeezed(self, url: str) -> str | None:
        """Returns the normal form of a URL that is normal but for empty segments or a climb above
        the root; else None.
        """
        shape = None if "%" in url or (self.to_unicode and "xn--" in url) else _SHAPE.fullmatch(url)
        if shape is None:
            return None
        path = _CLIMB.sub("", shape[1])
        if _DOTTED_PATH.search(path) is not None:
            return None
        return f"{url[: shape.start(1)]}{_SLASHES.sub('/', path)}{url[shape.end(1) :]}"

    def _is_normal(self, url: str) -> bool:
        """Returns True if `rewrite` certainly does not change the URL."""
        shape = _SHAPE.fullmatch(url)
        if shape is None or _CROWDED_PATH.search(shape[1]) is not None:
            return False
        if "%" in url and _BAD_ESCAPE.search(url) is not None:
            return False
        return not (self.to_unicode and "xn--" in url)

    def normalize_column(self, urls: pl.Series, scope: str) -> pl.Series:
        """Normal URLs stay or lose their fragment, the others go through the row method."""
        normal = urls.str.contains(_NORMAL_COLUMN)
        if self.to_unicode:
            normal &= ~urls.str.contains("xn--", literal=True)
        cut = normal & urls.str.contains("#", literal=True)
        if cut.any():
            cut = cut.fill_null(False)
            urls = patch(urls, cut, urls.filter(cut).str.extract(_FRAGMENT, 1))
        return rewrite(urls, ~normal, lambda url: self.normalize(url, scope))

    def untouched(self, scope: str) -> Untouched:
        """Returns the URLs that `normalize_column` leaves unchanged or `_squeezed` handles."""
        normal = found_in(parse_regex(f"^{_NORMAL}$"))
        recoded = found_in(parse_regex("xn--")) if self.to_unicode else None
        assert normal is not None
        return Untouched(normal[0], recoded[0] if recoded else NOTHING, cuts=True, squeezes=True)

    def rewrite(self, url: str) -> str:
        """Returns the normal form by the full rules."""
        if not url:
            return url
        url = url.strip(_BLANK)
        parsed = parse(url)
        if parsed.protocol in _HIERARCHICAL:
            return self._hierarchical(url, parsed)
        # The scheme was in capitals.
        changed = not url.startswith(parsed.protocol)
        file = normalize_escapes(parsed.file)
        changed |= file != parsed.file
        if parsed.protocol == "file":
            before = file
            file = _plain_path(
                compose("file", parsed.host, parsed.port, file) if changed else parsed
            )
            changed |= file != before
        return _spelled(parsed, parsed.host, parsed.port, file) if changed else url

    def _hierarchical(self, url: str, parsed: Url) -> str:
        host, port = parsed.host, parsed.port
        if parsed.authority is not None:
            host = self._host(host)
        changed = (
            not url.startswith(parsed.protocol)
            or parsed.authority != host
            or port == parsed.default_port
            or parsed.ref is not None
        )
        port = -1 if port == parsed.default_port else port
        rooted = parsed.file.startswith("/")
        file = normalize_escapes(parsed.file if rooted else "/" + parsed.file)
        changed |= file != parsed.file
        if rooted:
            before = file
            file = _plain_path(compose(parsed.protocol, host, port, file) if changed else parsed)
            changed |= file != before
        return _spelled(parsed, host, port, file) if changed else url

    def _host(self, host: str) -> str:
        if "%" in host:
            host = form_decode(host)
        host = host.lower()
        if self.to_ascii and not host.isascii():
            host = hostname.to_ascii_2008(host) if self.idna2008 else hostname.to_ascii_2003(host)
        elif self.to_unicode and "xn--" in host:
            host = (
                hostname.to_unicode_2008(host) if self.idna2008 else hostname.to_unicode_2003(host)
            )
        return host.removesuffix(".") if self.trim_dot else host


def _spelled(parsed: Url, host: str, port: int, file: str) -> str:
    """Returns the URL of its parts; user info stays for schemes where it is usual."""
    if parsed.protocol in ("http", "https") or parsed.user_info is None:
        return str(compose(parsed.protocol, host, port, file))
    at_port = "" if port == -1 else f":{port}"
    return f"{parsed.protocol}://{parsed.user_info}@{host}{at_port}{file}"


def _plain_path(url: Url) -> str:
    """Returns the file of a URL without dot segments and empty segments in its path."""
    file = url.file
    if _CROWDED_PATH.search(url.path) is not None:
        try:
            uri = parse_uri(str(url))
        except UrlError:
            return file if file.startswith("/") else "/" + file
        file = _without_climbing(parse(str(uri.normalize())).file)
    return file if file.startswith("/") else "/" + file


def _without_climbing(file: str) -> str:
    """`file` without the `/..` at its start. A quirk: the first decides whether one ends there."""
    start = 0
    while file.startswith("/..", start) and (start + 3 == len(file) or file[3] == "/"):
        start += 3
    return file[start:]
