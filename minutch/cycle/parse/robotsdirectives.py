"""Reads robots directives, and applies those of X-Robots-Tag headers to whatever a page was parsed
to. The one home of both.

    value       item *( "," item )              also separated by ";"
    item        [ agent ":" ] word *( blank word )  /  named ":" anything

An agent's name holds for all items behind it in its line, up to the next one. Words count whole:
`max-image-preview:none` is not `none`. What several lines or elements say adds up.

Sources: developers.google.com, "Robots meta tag, data-nosnippet, and X-Robots-Tag specifications";
RFC 9110, 5.1 and 5.3 (names of fields, lists). Nutch reads robots meta elements alone, and finds
`none` and `noindex` anywhere in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from minutch.conf import Configuration
from minutch.plugin.points import ParseResult
from minutch.records.content import Content
from minutch.records.metadata import (
    CACHING_FORBIDDEN_CONTENT,
    CACHING_FORBIDDEN_KEY,
    ROBOTS_KEY,
)

HEADER: Final = "X-Robots-Tag"

_ITEM: Final = re.compile(r"[,;]")
_AGENT: Final = re.compile(r"\s*([\w*.-]+)\s*:", re.ASCII)
_WITH_VALUE: Final = frozenset(
    ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")
)
_VALUE: Final = re.compile(r"\s*\S*")
_UNTIL: Final = "unavailable_after"
"""Its value is a date, with blanks in it."""


class Directives(NamedTuple):
    """What is forbidden."""

    no_index: bool = False
    no_follow: bool = False
    no_cache: bool = False

    @classmethod
    def of(cls, words: Iterable[str]) -> Directives:
        """Returns what these words forbid."""
        found = frozenset(words)
        none = "none" in found
        return cls(none or "noindex" in found, none or "nofollow" in found, "noarchive" in found)


def agents_of(conf: Configuration) -> frozenset[str]:
    """Returns the names, in lower case, by which directives may call this crawler."""
    names = conf.get("http.agent.name") or "", *conf.get_trimmed_strings("http.robots.agents")
    return frozenset(name.strip().lower() for name in names) - {""}


def words_for(value: str, agents: frozenset[str]) -> Iterator[str]:
    """Yields the words of a value, in lower case, that are meant for one of the agents or for
    all.
    """
    is_ours = True
    for item in _ITEM.split(value.lower()):
        words = item
        name, colon, rest = item.partition(":")
        if colon and name.strip() in agents:
            is_ours, words = True, rest
        elif (match := _AGENT.match(item)) is not None and match[1] not in _WITH_VALUE:
            is_ours, words = match[1] == "*", item[match.end() :]
        if is_ours:
            yield from _words(words)


def _words(item: str) -> Iterator[str]:
    while (match := _AGENT.match(item)) is not None:
        if match[1] == _UNTIL:
            return
        item = item[match.end() :]
        value = _VALUE.match(item)
        item = item[value.end() :] if value else ""
    yield from item.split()


class RobotsHeader:
    """Applies the X-Robots-Tag header, unless parser.x.robots.tag is false."""

    def __init__(self, conf: Configuration) -> None:
        self._is_obeyed = conf.get_boolean("parser.x.robots.tag", True)
        self._agents = agents_of(conf)
        self._caching_policy = conf.get(
            "parser.caching.forbidden.policy", CACHING_FORBIDDEN_CONTENT
        )

    def apply(self, content: Content, result: ParseResult) -> None:
        """Takes from the page's own document what its header forbids: text and title, links, the
        cached copy.
        """
        values = content.metadata.field_values(HEADER) if self._is_obeyed else []
        parse = result.get(content.url) if values else None
        if parse is None:
            return
        words = (word for value in values for word in words_for(value, self._agents))
        forbidden = Directives.of(words)
        data = parse.data
        if forbidden.no_index:
            parse.text, data.title = "", ""
            data.parse_meta.setdefault(ROBOTS_KEY, []).insert(0, "noindex")
        if forbidden.no_follow:
            data.outlinks = []
        if forbidden.no_cache:
            data.parse_meta.set(CACHING_FORBIDDEN_KEY, self._caching_policy)
