"""urlnormalizer-querystring: sorts the parameters of a query, so that URLs do not differ only by
their order.

User info is lost on the way, as in
org.apache.nutch.net.urlnormalizer.querystring.QuerystringURLNormalizer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minutch.plugin.columns import rewrite
from minutch.plugin.points import URLNormalizer
from minutch.urls.parts import parse, split_labels

if TYPE_CHECKING:
    import polars as pl

_NO_QUERY = r"^https?://[A-Za-z0-9._-]+(?:/[^?#\x00-\x20]*)?$"


class QuerystringURLNormalizer(URLNormalizer):
    """Sorts what stands between ampersands."""

    def normalize(self, url: str, scope: str) -> str | None:
        parsed = parse(url)
        if parsed.query is None:
            return url
        parts = sorted(split_labels(parsed.query, "&"), key=_utf16)
        port = "" if parsed.port == -1 else f":{parsed.port}"
        ref = "" if parsed.ref is None else f"#{parsed.ref}"
        return f"{parsed.protocol}://{parsed.host}{port}{parsed.path}?{'&'.join(parts)}{ref}"

    def normalize_column(self, urls: pl.Series, scope: str) -> pl.Series:
        # All that is not plain goes to the row method, malformed URLs among them.
        where = ~urls.str.contains(_NO_QUERY)
        return rewrite(urls, where, lambda url: self.normalize(url, scope))


def _utf16(text: str) -> bytes:
    """Java's order of strings."""
    return text.encode("utf-16-be", "surrogatepass")
