"""language-identifier: detects the language of an HTML page and stores its ISO 639-1 code in the
parse metadata as `language`.

lang.extraction.policy lists how the language is found, in order:

    detect      what the page says: metadata of other filters (dc.language, content-language, lang),
                the first lang attribute, meta dc.language, meta http-equiv content-language, at
                last the Content-Language header
    identify    what the first lang.analyze.max.length characters of title and text look like
                (py3langid, 97 languages); with lang.identification.only.certain only a sure guess
                counts

Source: org.apache.nutch.analysis.lang.HTMLLanguageParser, which identifies by another library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from minutch.conf import Configuration
from minutch.plugin.points import HTMLMetaTags, HtmlParseFilter, Parse, ParseResult
from minutch.records.protocol import Content

from .codes import CODES

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

LANGUAGE = "language"
CERTAIN = 0.95
"""Minimum probability of a guess that is accepted."""
_SEPARATORS = re.compile(r"[, ;.()=]")


class HTMLLanguageParser(HtmlParseFilter):
    """The filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self._length = conf.get_int("lang.analyze.max.length")
        self._only_certain = conf.get_boolean("lang.identification.only.certain")
        ways: dict[str, Callable[[Parse, LexborHTMLParser], str | None]] = {
            "detect": self._detect,
            "identify": self._identify,
        }
        self._ways = [
            ways[name] for name in conf.get_strings("lang.extraction.policy") if name in ways
        ]
        if self._identify in self._ways:
            _identifier()  # unpacks a file, which no parse worker may do later on

    def filter(
        self,
        content: Content,
        result: ParseResult,
        metatags: HTMLMetaTags,
        document: LexborHTMLParser,
    ) -> ParseResult:
        parse = result[content.url]
        language = next(filter(None, (way(parse, document) for way in self._ways)), None)
        if language is not None:
            parse.data.parse_meta.set(LANGUAGE, language)
        return result

    def _detect(self, parse: Parse, document: LexborHTMLParser) -> str | None:
        metadata = parse.data.parse_meta
        named = next(
            filter(None, map(metadata.get, ("dc.language", "content-language", "lang"))), None
        )
        return named or _stated(document) or parse.data.content_meta.field("Content-Language")

    def _identify(self, parse: Parse, document: LexborHTMLParser) -> str | None:
        text = f"{parse.data.title} {parse.text}"
        text = text[: self._length] if self._length != -1 else text
        if not any(map(str.isalpha, text)):
            return None
        language, probability = _identifier().classify(text)
        return None if self._only_certain and probability < CERTAIN else str(language)


@lru_cache(maxsize=1)
def _identifier() -> Any:
    """py3langid's model, loaded once (half a second)."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _stated(document: LexborHTMLParser) -> str | None:
    """Returns the language that a page states: lang attribute, then dc.language, then
    content-language.
    """
    for values in (
        _attributes(document),
        _metas(document, "name", "dc.language"),
        _equivalents(document),
    ):
        for value in values:
            language = primary_language(value)
            if language is not None:
                return language
    return None


def _attributes(document: LexborHTMLParser) -> Iterator[str]:
    return (node.attributes["lang"] or "" for node in _nodes(document, "[lang]"))


def _equivalents(document: LexborHTMLParser) -> Iterator[str]:
    return _metas(document, "http-equiv", "content-language")


def _metas(document: LexborHTMLParser, attribute: str, name: str) -> Iterator[str]:
    for node in _nodes(document, "meta"):
        values = node.attributes
        if (values.get(attribute) or "").lower() == name and "content" in values:
            yield values["content"] or ""


def _nodes(document: LexborHTMLParser, query: str) -> list[LexborNode]:
    return document.css(query)


def primary_language(value: str) -> str | None:
    """Returns the first language that a value names, as ISO 639-1 code: `de-AT, en` is de, `deu`
    too; None if there is none.
    """
    for part in _SEPARATORS.split(value):
        code = CODES.get(re.split("[-_]", part)[0].lower())
        if code is not None:
            return code
    return None
