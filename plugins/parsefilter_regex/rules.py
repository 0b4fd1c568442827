"""parsefilter-regex: sets a field of the parse metadata to `true` if a regular expression matches
the page, else to `false`.

A rule is a line of three words, field, source (html or text), Java regular expression. Rules stand
in parsefilter.regex.rules, else in the file that parsefilter.regex.file or plugin.xml names. A
match that takes longer than a second counts as none. Source:
org.apache.nutch.parsefilter.regex.RegexParseFilter.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from minutch.conf import Configuration
from minutch.plugin.points import HTMLMetaTags, HtmlParseFilter, ParseResult
from minutch.records.protocol import Content
from minutch.urls.javaregex import JavaRegex

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

log = logging.getLogger(__name__)

_BLANK = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class FieldRule:
    """A field, and what decides its value."""

    field: str
    source: str
    regex: JavaRegex


def read_rules(text: str) -> list[FieldRule]:
    """Returns the rules; of several for a field the last counts. A malformed line is reported and
    skipped.

    One blank stands between the three. A rule for neither html nor text is reported and never
    matches.
    """
    rules: dict[str, FieldRule] = {}
    for line in text.splitlines():
        words = _BLANK.split(line.strip())
        if words == [""] or line.startswith("#"):
            continue
        if len(words) == 3:
            rules[words[0]] = FieldRule(words[0], words[1].lower(), JavaRegex(words[2]))
        if len(words) != 3 or words[1].lower() not in ("html", "text"):
            log.warning(
                "parsefilter-regex: expected field, html or text, and a regular expression: %s",
                line,
            )
    return list(rules.values())


class RegexParseFilter(HtmlParseFilter):
    """The filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        text = conf.get("parsefilter.regex.rules")
        if text is None:
            # RegexParseFilter takes the property before the attribute of plugin.xml.
            text = conf.read_resource(
                conf.get("parsefilter.regex.file") or parameters.get("file", "")
            )
        self.rules = read_rules(text)

    def filter(
        self,
        content: Content,
        result: ParseResult,
        metatags: HTMLMetaTags,
        document: LexborHTMLParser,
    ) -> ParseResult:
        parse = result[content.url]
        # new String(bytes) in Nutch, whatever the page's charset.
        sources = {"html": content.content.decode("utf-8", "replace"), "text": parse.text}
        for rule in self.rules:
            parse.data.parse_meta.set(
                rule.field, "true" if _matches(rule, sources.get(rule.source)) else "false"
            )
        return result


def _matches(rule: FieldRule, text: str | None) -> bool:
    try:
        return text is not None and rule.regex.search(text)
    except TimeoutError:
        log.warning("parsefilter-regex: %s took too long", rule.regex.pattern)
        return False
