"""Extracts the main text of an HTML page, without navigation, advertisements and footers
(tika.extractor=boilerpipe).

    tika.extractor.boilerpipe.algorithm    one of ALGORITHMS
    tika.extractor.boilerpipe.mime.types   the types it is for

boilerpy3 has the algorithms of Java's boilerpipe (Kohlschütter, Fankhauser, Nejdl 2010), which
Nutch gets with Tika. It is given the tree that the browser's rules make of a page, written out
again. The text begins with the title; links, meta tags and all else come from the whole page.
Source: TikaParser and BoilerpipeExtractorRepository.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

from selectolax.lexbor import LexborHTMLParser

from minutch.conf import Configuration
from minutch.errors import ConfigError

from ..lib_html.walk import ParsedMarkup

log = logging.getLogger(__name__)

ALGORITHMS: Final = (
    "ArticleExtractor",
    "ArticleSentencesExtractor",
    "CanolaExtractor",
    "DefaultExtractor",
    "KeepEverythingExtractor",
    "LargestContentExtractor",
    "NumWordsRulesExtractor",
)
EXTRACTORS: Final = ("none", "boilerpipe")


@dataclass
class MainText:
    """The algorithm for the main text, and the types that it is for; none at all by default."""

    algorithm: str
    types: frozenset[str]

    @classmethod
    def from_conf(cls, conf: Configuration) -> Self:
        """tika.extractor and what follows from it. Raises ConfigError."""
        extractor = conf.get_trimmed("tika.extractor") or "none"
        if extractor not in EXTRACTORS:
            raise ConfigError(
                f"tika.extractor: expected {' or '.join(EXTRACTORS)}, found {extractor!r}"
            )
        algorithm = conf.get_trimmed("tika.extractor.boilerpipe.algorithm") or "ArticleExtractor"
        if algorithm not in ALGORITHMS:
            known = ", ".join(ALGORITHMS)
            raise ConfigError(
                f"tika.extractor.boilerpipe.algorithm: expected one of {known}, found {algorithm!r}"
            )
        types = conf.get_trimmed_strings("tika.extractor.boilerpipe.mime.types")
        return cls(algorithm, frozenset(types if extractor == "boilerpipe" else ()))

    def of(self, media_type: str) -> Callable[[bytes, ParsedMarkup], str] | None:
        """Returns the extractor of main text for a page of this type; None if all of its text is
        kept.
        """
        return self.text if media_type in self.types else None

    def text(self, markup: bytes, page: ParsedMarkup) -> str:
        """Title and main text of a page in UTF-8; all of its text where the algorithm fails."""
        try:
            found = self._extractor.get_doc(LexborHTMLParser(markup).html or "").content
        except Exception as error:  # noqa: BLE001 - whatever a page makes boilerpy3 raise
            log.warning("no main text: %s: %s", type(error).__name__, error)
            return page.text.decode()
        lines = (" ".join(line.split()) for line in [page.title, *found.split("\n")])
        return "\n".join(line for line in lines if line)

    @cached_property
    def _extractor(self) -> Any:
        from boilerpy3 import extractors

        logging.getLogger("boilerpy3").setLevel(logging.CRITICAL)
        return getattr(extractors, self.algorithm)(raise_on_failure=True)
