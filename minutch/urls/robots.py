"""Decides which URLs robots.txt allows one crawler to fetch (RFC 9309).

The longest rule that matches decides, `Allow` wins a tie, and what no rule mentions is allowed. `*`
stands for anything, `$` at the end for the end. Rules and URLs are compared after the same
percent-encoding. Matching looks up plain rules by length and takes wildcards apart at their stars,
so it is linear in the path whatever a file says.

Source: RFC 9309; Nutch's RobotRulesParser (agent names) over SimpleRobotRules of crawler-commons
1.6, whose additions are kept: an Allow of …/index.html also allows the folder's page.
(crawler-commons lets a Disallow forbid it, too.)
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from minutch.errors import UrlError
from minutch.urls.parts import parse
from minutch.urls.robotsfile import MAX_BYTES, Group, RobotsFile, read_robots
from minutch.urls.uri import normalize_escapes, parse_uri

_TOKEN = re.compile("[a-z_-]+")
_PLAIN_URL = re.compile(
    r"https?://[A-Za-z0-9._-]+(?::[0-9]{1,5})?(/[A-Za-z0-9/._~?=&;,:+!()'@-]*)?(?:#.*)?"
)
_PLAIN_RULE = re.compile(r"[A-Za-z0-9/._~?=&;,:+!()'@*-]*\$?")
_INDEX = re.compile(r"index\.html?$")


@dataclass(frozen=True, slots=True)
class PathRule:
    """One rule with its path in normal form, and the line of the file that it stands on first (0:
    none).
    """

    path: str
    allow: bool
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class _Wildcard:
    length: int
    rule: PathRule
    pieces: tuple[str, ...]
    to_end: bool

    def matches(self, path: str) -> bool:
        """Returns each piece at its first place behind the one before; one that has to end the
        path, there.
        """
        first, *middle = self.pieces
        if not path.startswith(first):
            return False
        at = len(first)
        last = middle.pop() if self.to_end else ""
        for piece in middle:
            found = path.find(piece, at)
            if found < 0:
                return False
            at = found + len(piece)
        return not self.to_end or (path.endswith(last) and len(path) - len(last) >= at)


@dataclass(eq=False)
class RobotRules:
    """The rules for one crawler on one host.

    `crawl_delay` in milliseconds, None if not set; `defer_visits`: the file could not be fetched,
    come back later; `content_signals`: uses and whether they are wanted, as Content-Signal lines
    say.
    """

    rules: tuple[PathRule, ...] = ()
    crawl_delay: int | None = None
    sitemaps: tuple[str, ...] = ()
    content_signals: dict[str, str] = field(default_factory=dict)
    allow_all: bool = False
    allow_none: bool = False
    defer_visits: bool = False

    def __post_init__(self) -> None:
        self._prefixes: dict[str, PathRule] = {}
        self._exact: dict[str, PathRule] = {}
        self._wildcards: list[_Wildcard] = []
        for rule in self.rules:
            self._index(rule.path, rule)
            if rule.allow and _INDEX.search(rule.path) is not None:
                self._index(rule.path[: rule.path.index("index.htm")] + "$", rule)
        self._lengths = sorted({len(path) for path in self._prefixes}, reverse=True)
        self._wildcards.sort(key=lambda wildcard: (-wildcard.length, not wildcard.rule.allow))

    def _index(self, path: str, rule: PathRule) -> None:
        to_end = path.endswith("$")
        text = path[:-1] if to_end else path
        if "*" in text:
            pieces = tuple(re.sub(r"\*+", "*", text).split("*"))
            self._wildcards.append(_Wildcard(len(path), rule, pieces, to_end))
        else:
            table = self._exact if to_end else self._prefixes
            if text not in table or (rule.allow and not table[text].allow):
                table[text] = rule

    def is_allowed(self, url: str) -> bool:
        """Returns whether the crawler may fetch `url`. A string that is not a URL counts as the
        host's root.
        """
        if self.allow_all or self.allow_none:
            return self.allow_all
        return self.is_path_allowed(normal_path(url))

    def is_path_allowed(self, path: str) -> bool:
        """Returns the same for a path with its query, in normal form; robots.txt itself is always
        allowed.
        """
        rule = self.deciding(path)
        return rule is None or rule.allow

    def deciding(self, path: str) -> PathRule | None:
        """Returns the rule that decides about a path with its query, in normal form; None where
        none speaks of it.
        """
        if path == "/robots.txt":
            return None
        length, found = self._longest_plain(path)
        for wildcard in self._wildcards:
            if wildcard.length < length or (
                wildcard.length == length and (found is None or found.allow)
            ):
                break
            if wildcard.matches(path):
                return wildcard.rule if wildcard.length > length or wildcard.rule.allow else found
        return found

    def _longest_plain(self, path: str) -> tuple[int, PathRule | None]:
        """Length and rule of the longest match without a wildcard; -1 if there is none."""
        exact = self._exact.get(path)
        if exact is not None:
            return len(path) + 1, exact
        for length in self._lengths:
            if length <= len(path):
                found = self._prefixes.get(path[:length])
                if found is not None:
                    return length, found
        return -1, None


@dataclass(frozen=True, slots=True)
class KnownRobots:
    """A host's robots.txt as remembered: its rules, the answer that they came in, and when it was
    fetched (ms).

    An answer is good until `expires` (ms), then the host is asked again. `exempt`: the host is
    never asked.
    """

    rules: RobotRules
    fetched: int = 0
    expires: int = 0
    code: int = 0
    url: str = ""
    content: bytes = b""
    exempt: bool = False


ALLOW_ALL = RobotRules(allow_all=True)
"""No robots.txt: everything may be fetched."""
ALLOW_NONE = RobotRules(allow_none=True)
"""Nothing may be fetched."""


def normal_path(url: str) -> str:
    """Path and query of a URL as rules are compared with them."""
    plain = _PLAIN_URL.fullmatch(url)
    if plain is not None:
        return plain[1] or "/"
    try:
        file = parse(url).file
    except UrlError:
        return "/"
    if not file.startswith("/"):
        file = "/" + file
    return normalize_escapes(file).replace("*", "%2A").replace("$", "%24")


def normal_rule(path: str) -> str:
    """Returns a rule's path as URLs are compared with it: its stars and a dollar at its end keep
    their meaning.
    """
    if _PLAIN_RULE.fullmatch(path) is not None:
        return path
    to_end = path.endswith("$")
    return normalize_escapes(path.removesuffix("$")).replace("$", "%24") + ("$" if to_end else "")


def parse_robots(
    content: bytes,
    content_type: str,
    agents: Collection[str],
    url: str = "",
    limit: int = MAX_BYTES,
) -> RobotRules:
    """Returns the rules of a file for a crawler that goes by these names (in lower case, without
    `*`).

    Groups that name one of them count together; without any, those for `*`. `url` is where the file
    was found, for sitemaps given relative to it. At most `limit` bytes are read.
    """
    robots = read_robots(content, content_type, limit)
    if robots is None:
        return RobotRules(allow_all=True)
    groups, delays = _choose(robots, agents)
    rules: dict[tuple[str, bool], int] = {}
    for group in groups:
        for written in group.rules:
            rules.setdefault((normal_rule(written.path), written.allow), written.line)
    ordered = sorted(rules, key=lambda rule: (-len(rule[0]), not rule[1], rule[0]))
    return RobotRules(
        rules=tuple(PathRule(path, allow, rules[path, allow]) for path, allow in ordered),
        crawl_delay=min(delays, default=None),
        sitemaps=tuple(dict.fromkeys(_sitemaps(robots.sitemaps, url))),
        content_signals={
            name: answer for group in groups for name, answer in group.signals.items()
        },
    )


def _choose(robots: RobotsFile, agents: Collection[str]) -> tuple[list[Group], list[int]]:
    """Returns the groups for these agents, and the delay that each of their lines is given."""
    for is_ours in (lambda name: _is_named(name, agents), _is_anyone):
        groups = [group for group in robots.groups if any(map(is_ours, group.agents))]
        if groups:
            delays = (
                group.delay_for(index)
                for group in groups
                for index, name in enumerate(group.agents)
                if is_ours(name)
            )
            return groups, [delay for delay in delays if delay is not None]
    return [], []


def _is_anyone(name: str) -> bool:
    return name == "*" or name[:2] in ("* ", "*\t")


def _is_named(name: str, agents: Collection[str]) -> bool:
    """Returns the whole name, or the product token that it starts with."""
    if name in agents:
        return True
    token = _TOKEN.match(name)
    return token is not None and token[0] in agents


def _sitemaps(values: Iterable[str], base: str) -> Iterable[str]:
    """Absolute URLs with a host; other values are skipped. A quirk: an empty value is the file's
    folder.
    """
    for value in values:
        try:
            parse_uri(value)
            url = parse(value or ".", parse(base) if base else None)
        except UrlError:
            continue
        if url.host:
            yield str(url)
