"""urlnormalizer-pass: leaves every URL unchanged, for scopes that need a normalizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minutch.plugin.points import URLNormalizer
from minutch.urls.rules import Untouched

if TYPE_CHECKING:
    import polars as pl


class PassURLNormalizer(URLNormalizer):
    """org.apache.nutch.net.urlnormalizer.pass.PassURLNormalizer."""

    def normalize(self, url: str, scope: str) -> str | None:
        return url

    def normalize_column(self, urls: pl.Series, scope: str) -> pl.Series:
        return urls

    def untouched(self, scope: str) -> Untouched:
        return Untouched()
