"""urlnormalizer-ajax: rewrites `#!state` to `?_escaped_fragment_=state`, and back again for the
index.

Source: org.apache.nutch.net.urlnormalizer.ajax.AjaxURLNormalizer. Its quirk: on the way back the
parameter is cut out as if it were a regular expression, so where it has special characters it stays
in the query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minutch.errors import ConfigError, UrlError
from minutch.plugin.columns import rewrite
from minutch.plugin.points import URLNormalizer
from minutch.urls.javaregex import JavaRegex
from minutch.urls.parts import parse
from minutch.urls.uri import form_decode

if TYPE_CHECKING:
    import polars as pl

_INDEXER = "indexer"
_BANG = "#!"
_PARAMETER = "_escaped_fragment_="
_ESCAPED = {byte: f"%{byte:02X}" for byte in (*range(33), *range(128, 256), *b"#%&+")}


class AjaxURLNormalizer(URLNormalizer):
    """Rewrites hash-bang URLs."""

    def normalize(self, url: str, scope: str) -> str | None:
        if scope == _INDEXER and _PARAMETER in url:
            parsed = parse(url)
            if parsed.query is None:
                raise UrlError(f"{_PARAMETER} outside the query of {url}")
            # normalizeEscapedFragment splits at the first ampersand.
            query, ampersand, pair = parsed.query.partition("&")
            if not ampersand:
                query, pair = "", parsed.query
            else:
                query = _cut(parsed.query, "&" + pair)
            port = "" if parsed.port == -1 else f":{parsed.port}"
            mark = "?" if query else ""
            return f"{parsed.protocol}://{parsed.host}{port}{parsed.path}{mark}{query}{_BANG}{_unescaped(pair)}"
        return _to_parameter(url) if _BANG in url else url

    def normalize_column(self, urls: pl.Series, scope: str) -> pl.Series:
        touched = urls.str.contains(_BANG, literal=True) | urls.str.contains(
            _PARAMETER, literal=True
        )
        return rewrite(urls, touched, lambda url: self.normalize(url, scope))


def _to_parameter(url: str) -> str:
    separator = "?" if parse(url).query is None else "&"
    before, _, state = url.partition(_BANG)
    # Google's scheme for AJAX crawling: these bytes, in UTF-8.
    escaped = "".join(_ESCAPED.get(byte) or chr(byte) for byte in state.encode("utf-8", "replace"))
    return f"{before}{separator}{_PARAMETER}{escaped}"


def _cut(query: str, pattern: str) -> str:
    try:
        return JavaRegex(pattern).replace_first(query, "")
    except (ConfigError, TimeoutError) as exc:
        raise UrlError(f"can't cut {pattern!r} out of the query {query!r}: {exc}") from exc


def _unescaped(pair: str) -> str:
    state = pair.replace(_PARAMETER, "", 1)
    try:
        return form_decode(state)
    except UrlError:
        return state
