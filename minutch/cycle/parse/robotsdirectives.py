"""Reads robots directives, and applies those of X-Robots-Tag headers to whatever a page was parsed
to. The one home of both.

    value       item *( "," item )              also separated by ";"
    item        [ agent ":" ] word *( blank word )  /  named ":" anything

An agent's name holds for all items behind it in its line, up to the next one. Words count whole:
`max-image-preview:none` is not `none`. What several lines or elements say adds up.
`unavailable_after: DATE` is noindex from that time on, and nothing before; the date is one of RFC
822, RFC 850 or ISO 8601, in UTC if it names no zone, and without sense otherwise.

Sources: developers.google.com, "Robots meta tag, data-nosnippet, and X-Robots-Tag specifications";
RFC 9110, 5.1 and 5.3 (names of fields, lists). Nutch reads robots meta elements alone, and finds
`none` and `noindex` anywhere in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple

from minutch.clock import http_time
from minutch.conf import Configuration
from minutch.plugin.points import ParseResult
from minutch.records.metadata import CACHING_FORBIDDEN_KEY, ROBOTS_KEY
from minutch.records.protocol import Content

HEADER: Final = "X-Robots-Tag"

_ITEM: Final = re.compile(r"[,;]")
_AGENT: Final = re.compile(r"\s*([\w*.-]+)\s*:", re.ASCII)
_WITH_VALUE: Final = frozenset(
    ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")
)
_VALUE: Final = re.compile(r"\s*\S*")
_UNTIL: Final = "unavailable_after"
"""Its value is a date, with blanks in it, and perhaps a comma behind the day of the week."""
_LONGEST_DATE: Final = 64
_NEVER: Final = 1 << 62
_WEEKDAY: Final = re.compile(
    rf"({_UNTIL}\s*:\s*)(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\s*,", re.IGNORECASE
)


class Directives(NamedTuple):
    """What robots directives forbid."""

    no_index: bool = False
    no_follow: bool = False
    no_cache: bool = False
    later: str = ""
    """The `unavailable_after` whose time is the next to come."""

    @classmethod
    def of(cls, words: Iterable[str], now: int) -> Directives:
        """Returns what these words forbid at the time `now` (ms since 1970)."""
        found = tuple(words)
        # `none` is `noindex, nofollow`.
        none = "none" in found
        later, next_end = "", _NEVER
        no_index = none or "noindex" in found
        for word in found:
            if word.startswith(_UNTIL) and (end := _end(word)) is not None:
                no_index |= end <= now
                # The index job decides later, by the time that comes first.
                if now < end < next_end:
                    later, next_end = word, end
        return cls(no_index, none or "nofollow" in found, "noarchive" in found, later)

    @property
    def noted(self) -> list[str]:
        """Returns what the parse metadata have under ROBOTS_KEY for the index job."""
        return ["noindex"] if self.no_index else [self.later] if self.later else []


def agents_of(conf: Configuration) -> frozenset[str]:
    """Returns the names, in lower case, by which directives may call this crawler."""
    names = conf.get_text("http.agent.name"), *conf.get_trimmed_strings("http.robots.agents")
    return frozenset(name.strip().lower() for name in names) - {""}


def words_for(value: str, agents: frozenset[str]) -> Iterator[str]:
    """Yields the words of a value, in lower case, that are meant for one of the agents or for
    all.
    """
    # Until an agent is named.
    is_ours = True
    value = value.lower()
    # `Mon, 1 Jan` would be two items: the day goes.
    for item in _ITEM.split(_WEEKDAY.sub(r"\1", value) if _UNTIL in value else value):
        words = item
        name, colon, rest = item.partition(":")
        # A crawler's name may have blanks, which _AGENT does not take.
        if colon and name.strip() in agents:
            is_ours, words = True, rest
        # `max-snippet: 5` has a colon too, but names no agent.
        elif (match := _AGENT.match(item)) is not None and match[1] not in _WITH_VALUE:
            is_ours, words = match[1] == "*", item[match.end() :]
        if is_ours:
            yield from _words(words)


def _words(item: str) -> Iterator[str]:
    while (match := _AGENT.match(item)) is not None:
        if match[1] == _UNTIL:
            date = item[match.end() :].strip()
            # It goes into the parse metadata as it is.
            if len(date) <= _LONGEST_DATE:
                yield f"{_UNTIL}: {date}"
            return
        item = item[match.end() :]
        value = _VALUE.match(item)
        item = item[value.end() :] if value else ""
    yield from item.split()


@lru_cache(maxsize=1024)
def _end(word: str) -> int | None:
    """Returns the time (ms) of an `unavailable_after`; None for any other word."""
    name, _, text = word.partition(": ")
    if name != _UNTIL:
        return None
    # A day without a time ends as it begins.
    for date in (text, f"{text} 00:00:00"):
        if (time := http_time(date)) is not None:
            return time
    try:
        found = datetime.fromisoformat(text.upper())
        return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def directives_in(values: Iterable[str], agents: frozenset[str], now: int) -> Directives:
    """Returns what several values forbid at the time `now`: they add up."""
    return Directives.of((word for value in values for word in words_for(value, agents)), now)


def forbids_index(value: str, agents: frozenset[str], now: int, *, none: bool = True) -> bool:
    """Returns whether a value keeps its page out of the index at the time `now`. Nutch's index job
    overlooks the word `none`, which counts if `none` is True.
    """
    words = (word for word in words_for(value, agents) if none or word != "none")
    return Directives.of(words, now).no_index


class RobotsHeader:
    """Applies the X-Robots-Tag header, unless parser.x.robots.tag is false."""

    def __init__(self, conf: Configuration) -> None:
        self._is_obeyed = conf.get_boolean("parser.x.robots.tag")
        self._agents = agents_of(conf)
        self._caching_policy = conf.get_text("parser.caching.forbidden.policy")

    def apply(self, content: Content, result: ParseResult, now: int) -> None:
        """Takes from the page's own document what its header forbids at the time `now`: text and
        title, links, the cached copy.
        """
        # All lines of the field: their directives add up.
        values = content.metadata.field_values(HEADER) if self._is_obeyed else []
        parse = result.get(content.url) if values else None
        if parse is None:
            return
        forbidden = directives_in(values, self._agents, now)
        data = parse.data
        if forbidden.no_index:
            parse.text, data.title = "", ""
        if forbidden.noted:
            data.parse_meta.setdefault(ROBOTS_KEY, [])[:0] = forbidden.noted
        if forbidden.no_follow:
            data.outlinks = []
        if forbidden.no_cache:
            data.parse_meta.set(CACHING_FORBIDDEN_KEY, self._caching_policy)
