"""Lists the values that properties take, where their defaults do not show it: words, lists, sizes,
patterns, networks.

This is the only such list. A property that is not in it, and has neither a truth value nor a number
as its default, takes any text. `minutch/conf/check.py` checks values before the first job, and
`conf.wrong` is raised for the same reason where they are read. Values that need more than a look at
the text (classes, expressions, rule files) are checked only there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Final


@dataclass(frozen=True)
class Kind:
    """A kind of values: how it is called in an error, and what belongs to it."""

    expected: str
    fits: Callable[[str], bool]
    wrong: str = "\N{REPLACEMENT CHARACTER}"
    """A value that does not belong to it."""


def one_of(*words: str, ignore_case: bool = False) -> Kind:
    """One of some words."""
    known = {word.lower() for word in words} if ignore_case else set(words)
    text = f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]
    return Kind(text, lambda value: (value.lower() if ignore_case else value) in known)


def some_of(*words: str, but: str = "") -> Kind:
    """Returns a list of some words, in front of which `but` may stand."""
    return Kind(
        f"some of {', '.join(words)}",
        lambda value: all(item.removeprefix(but) in words for item in _items(value)),
    )


def _items(value: str) -> list[str]:
    return [item for item in re.split(r"[\s,]+", value) if item]


def _is_number(text: str, least: float, most: float) -> bool:
    try:
        return least <= float(text) <= most
    except ValueError:
        return False


def _numbers(least: float, most: float) -> Kind:
    expected = f"numbers from {least:g} to {most:g}, separated by commas"
    return Kind(
        expected, lambda value: all(_is_number(item, least, most) for item in _items(value))
    )


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _is_network(text: str) -> bool:
    if text.lower() in ("localhost", "loopback", "sitelocal"):
        return True
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True


WHOLE: Final = Kind(
    "a whole number", lambda value: re.fullmatch(r"[+-]?(\d+|0[xX][0-9a-fA-F]+)", value) is not None
)
_A_SIZE: Final = re.compile(r"[+-]?\d+(\.\d+)?[kmgtpe]?", re.IGNORECASE)
SIZE: Final = Kind("a size such as 512m or 4g", lambda value: _A_SIZE.fullmatch(value) is not None)
PATTERN: Final = Kind("a regular expression", _is_pattern, wrong="(")
NETWORKS: Final = Kind(
    "networks, addresses, loopback or sitelocal, separated by commas",
    lambda value: all(_is_network(item) for item in _items(value)),
)
POOL: Final = Kind(
    "three numbers: pools, connections in each, seconds",
    lambda value: (
        len(_items(value)) == 3 and all(item.isdecimal() and int(item) for item in _items(value))
    ),
)
NGRAMS: Final = Kind(
    "one or two whole numbers, separated by a comma",
    lambda value: 1 <= len(_items(value)) <= 2 and all(item.isdecimal() for item in _items(value)),
)

KINDS: Final[dict[str, Kind]] = {
    "crawl.compact": one_of("endless", "true", "false"),
    "db.ignore.external.links.mode": one_of("byHost", "byDomain", ignore_case=True),
    "db.stats.score.quantiles": _numbers(0, 1),
    "fetcher.queue.mode": one_of("byHost", "byDomain", "byIP"),
    "generate.count.mode": one_of("host", "domain"),
    "hostdb.percentiles": _numbers(0, 100),
    "http.connection.pool.okhttp": POOL,
    "http.dns.resolver": one_of("cares", "system", ignore_case=True),
    "http.filter.ipaddress.exclude": NETWORKS,
    "http.filter.ipaddress.include": NETWORKS,
    "http.proxy.port": WHOLE,
    "http.proxy.type": one_of("HTTP", "HTTPS", "SOCKS", "SOCKS4", "SOCKS5", ignore_case=True),
    "http.robots.cache.memory": SIZE,
    "http.robots.parser": one_of("minutch", "reppy", ignore_case=True),
    "index.arbitrary.function.count": WHOLE,
    "lang.extraction.policy": some_of("detect", "identify"),
    "linkdb.inlink.layout": one_of("auto", "1.21", "1.20"),
    "minutch.browser.bytes.max": SIZE,
    "minutch.browser.memory.max": SIZE,
    "minutch.engine": one_of("local", "spark"),
    "minutch.memory": SIZE,
    "parse.js.strings": one_of("all", "urls"),
    "parser.caching.forbidden.policy": one_of("content", "none", "all"),
    "parser.html.impl": one_of("neko", "tagsoup", ignore_case=True),
    "parser.sandbox.allow": some_of("network", "files", "processes"),
    "partition.url.mode": one_of("byHost", "byDomain", "byIP"),
    "plugin.excludes": PATTERN,
    "plugin.includes": PATTERN,
    "scoring.depth.max.override": WHOLE,
    "scoring.depth.override.pattern": PATTERN,
    "scoring.similarity.model": one_of("cosine"),
    "scoring.similarity.ngrams": NGRAMS,
    "selenium.hub.protocol": one_of("http", "https", ignore_case=True),
    "tika.extractor": one_of("none", "boilerpipe"),
    "urlnormalizer.basic.host.idn": one_of("toAscii", "toUnicode", ignore_case=True),
}
"""Property → what its values are."""
