"""urlfilter-suffix: accepts or rejects URLs by their ends (suffix-urlfilter.txt).

    file   = *( mode | suffix | comment )
    mode   = ( "+" | "-" ) [ "P" ] [ "I" ]
             "+": listed suffixes are rejected, "-" (and no mode at all): only listed ones pass
             P: look at the URL's path only; I: ignore case

The last sign counts; P and I stay once given. Lines are trimmed. Without the file every URL is
rejected. Properties: urlfilter.suffix.rules (inline), urlfilter.suffix.file.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from minutch.conf import Configuration
from minutch.errors import UrlError
from minutch.plugin.columns import keep, map_strings, patch
from minutch.plugin.points import URLFilter
from minutch.urls.parts import parse
from minutch.urls.rules import allowing_rules, rule_lines, rule_place

if TYPE_CHECKING:
    import polars as pl

_BLANK = "".join(map(chr, range(0x21)))
_PLAIN = r"^https?://[A-Za-z0-9._-]+(?::[0-9]{1,5})?(/[^?#\x00-\x20]*)(?:[?][^\x00-\x20#]*)?$"


class SuffixURLFilter(URLFilter):
    """org.apache.nutch.urlfilter.suffix.SuffixURLFilter."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        text = allowing_rules(conf, "urlfilter.suffix.rules", "urlfilter.suffix.file", parameters)
        self.source = rule_place(conf, "urlfilter.suffix", parameters)
        self.lines: dict[int, str] = {}
        self.accept_others = self.path_only = self.ignore_case = False
        self.suffixes = self._read(text)

    def _read(self, text: str) -> tuple[str, ...]:
        suffixes: dict[int, str] = {}
        for number, line in enumerate((line.strip(_BLANK) for line in rule_lines(text)), 1):
            if line[:1] in ("+", "-") and line:
                self.accept_others = line[0] == "+"
                # SuffixURLFilter never takes a flag back.
                self.path_only |= "P" in line
                self.ignore_case |= "I" in line
            elif line and line[0] != "#":
                suffixes[number] = line
        # At the end: an I further down holds for suffixes above, too.
        self.lines = {n: s.lower() if self.ignore_case else s for n, s in suffixes.items()}
        return tuple(self.lines.values())

    def filter(self, url: str) -> str | None:
        return url if self._judged(url).endswith(self.suffixes) is not self.accept_others else None

    def _judged(self, url: str) -> str:
        """Returns the part of the URL that suffixes are compared with."""
        text = url.lower() if self.ignore_case else url
        if self.path_only:
            # What is no URL is compared as a whole.
            with suppress(UrlError):
                text = parse(text).path
        return text

    def explain(self, url: str) -> str:
        text, mode = self._judged(url), "rejects" if self.accept_others else "takes"
        found = next(
            (number for number, suffix in self.lines.items() if text.endswith(suffix)), None
        )
        if found is None:
            return f"{self.source}: none of the suffixes that it {mode}"
        return f"{self.source}:{found}: {mode} {self.lines[found]}"

    def filter_column(self, urls: pl.Series) -> pl.Series:
        """Plain URLs (or all, unless only paths count) by expressions, others by row."""
        import polars as pl

        text = urls.str.to_lowercase() if self.ignore_case else urls
        odd = urls.is_null() & urls.is_not_null()
        if self.path_only:
            text = text.str.extract(_PLAIN, 1)
            odd = text.is_null() & urls.is_not_null()
        ends = pl.Series([False]).new_from_index(0, len(urls))
        # A look into one set for each length, not one for each suffix.
        for length in {len(suffix) for suffix in self.suffixes}:
            tails = text.str.tail(length)
            ends |= tails.is_in(
                [suffix for suffix in self.suffixes if len(suffix) == length]
            ).fill_null(False)
        result = keep(urls, ~ends if self.accept_others else ends)
        return patch(result, odd, map_strings(urls.filter(odd), self.filter))
