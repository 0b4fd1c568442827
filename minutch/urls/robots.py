"""Decides which URLs robots.txt allows one crawler to fetch (RFC 9309), by the names that this one
answers to.

The longest rule that matches decides, `Allow` wins a tie, and what no rule mentions is allowed. `*`
stands for anything, `$` at the end for the end. Rules and URLs are compared after the same
percent-encoding. How the file is read, and its rules kept and looked up, is `robotsfile`'s; it
takes bounded time whatever a file says.

Properties: http.agent.name and http.robots.agents (the names), http.robots.parser (`minutch`, or
`reppy` for the package of that name, extra `reppy`), http.robots.content.limit (bytes). What reppy
can't say is ours: Content-Signal, several agent names at once (the first that the file names
counts), an HTML page in place of the file. Its wildcards take exponential time on hostile files:
not for crawls of the open web.

Source: RFC 9309; Nutch's RobotRulesParser (agent names) over SimpleRobotRules of crawler-commons
1.6, whose additions are kept: an Allow of …/index.html also allows the folder's page.
(crawler-commons lets a Disallow forbid it, too.)
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from minutch.conf import Configuration
from minutch.errors import ConfigError, UrlError
from minutch.urls.parts import parse
from minutch.urls.robotsfile import (
    MAX_BYTES,
    PathRule,
    RobotsFile,
    RobotsGroup,
    RuleTable,
    read_robots,
    whole_lines,
)

if TYPE_CHECKING:
    from minutch.records.protocol import ProtocolStatus
from minutch.urls.uri import normalize_escapes, parse_uri

_TOKEN = re.compile("[a-z_-]+")
_PLAIN_URL = re.compile(
    r"https?://[A-Za-z0-9._-]+(?::[0-9]{1,5})?(/[A-Za-z0-9/._~?=&;,:+!()'@-]*)?(?:#.*)?"
)
_PLAIN_RULE = re.compile(r"[A-Za-z0-9/._~?=&;,:+!()'@*-]*\$?")

NO_SIGNALS: Final[Mapping[str, str]] = MappingProxyType({})
NO_RULES: Final = RuleTable(())
ROBOTS_TXT: Final = "/robots.txt"
TDM_FILE: Final = "/.well-known/tdmrep.json"
"""Where a host reserves rights of text and data mining (TDM Reservation Protocol)."""
HOST_FILES: Final = (ROBOTS_TXT, TDM_FILE)
"""What is kept beside the pages of a host and is none."""
_REPPY = 8
"""Bytes in memory for each byte of a file: a rule of ten bytes is a string and an object."""
_ROOT = "http://robots.invalid/robots.txt"


class RobotRules:
    """The rules for one crawler on one host.

    `crawl_delay` in milliseconds, None if not set; `defer_visits`: the file could not be fetched,
    come back later; `content_signals`: uses and whether they are wanted, as Content-Signal lines
    say.

    Where a host did not give its rules, `failure` is the status for its pages, or why visits are
    deferred, and `retry_after` the header that says until when.
    """

    failure: ProtocolStatus | None = None
    retry_after: str | None = None

    __slots__ = (
        "_sitemaps", "_table", "allow_all", "allow_none", "content_signals", "crawl_delay",
        "defer_visits",
    )  # fmt: skip

    def __init__(
        self,
        rules: Iterable[PathRule] = (),
        crawl_delay: int | None = None,
        sitemaps: Iterable[str] = (),
        content_signals: Mapping[str, str] = NO_SIGNALS,
        *,
        allow_all: bool = False,
        allow_none: bool = False,
        defer_visits: bool = False,
    ) -> None:
        self._table = RuleTable(rules) if rules else NO_RULES
        self._sitemaps = "\n".join(sitemaps)
        self.crawl_delay = crawl_delay
        self.content_signals = content_signals or NO_SIGNALS
        self.allow_all = allow_all
        self.allow_none = allow_none
        self.defer_visits = defer_visits

    @property
    def rules(self) -> tuple[PathRule, ...]:
        """All rules, in no meaningful order."""
        return tuple(self._table)

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The URLs of the sitemaps that the file names."""
        return tuple(self._sitemaps.split("\n")) if self._sitemaps else ()

    @property
    def cost(self) -> int:
        """Bytes in memory, without what all hosts share."""
        signals = self.content_signals
        words = () if signals is NO_SIGNALS else (signals, *signals, *signals.values())
        own = sum(map(sys.getsizeof, (self, self._sitemaps, *words)))
        return own + (0 if self._table is NO_RULES else self._table.cost)

    def is_allowed(self, url: str) -> bool:
        """Returns whether the crawler may fetch `url`. What is no URL counts as the host's root."""
        if self.allow_all or self.allow_none:
            return self.allow_all
        return self.is_path_allowed(normal_path(url))

    def is_path_allowed(self, path: str) -> bool:
        """Returns the same for a path with query, in normal form; robots.txt is always allowed."""
        return path == ROBOTS_TXT or self._table.allows(path)

    def deciding(self, path: str) -> PathRule | None:
        """Returns the rule that decides about a path with query, in normal form; or None."""
        return None if path == ROBOTS_TXT else self._table.deciding(path)


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
UNSAID = RobotRules()
"""A robots.txt that has nothing for this crawler."""
ALLOW_NONE = RobotRules(allow_none=True)
"""Nothing may be fetched."""


def normal_path(url: str) -> str:
    """Returns path and query of a URL in the form that rules are compared with."""
    # Nearly all URLs: nothing in them would be escaped or unescaped.
    plain = _PLAIN_URL.fullmatch(url)
    if plain is not None:
        return plain[1] or "/"
    try:
        file = parse(url).file
    except UrlError:
        return "/"
    if not file.startswith("/"):
        file = "/" + file
    # In a URL they are characters like others; in a rule they mean something (RFC 9309, 2.2.3).
    return _escaped(file).replace("*", "%2A").replace("$", "%24")


def normal_rule(path: str) -> str:
    """Returns a rule's path in the form of URLs; stars and a dollar at its end are kept."""
    if _PLAIN_RULE.fullmatch(path) is not None:
        return path
    to_end = path.endswith("$")
    return _escaped(path.removesuffix("$")).replace("$", "%24") + ("$" if to_end else "")


def _escaped(file: str) -> str:
    """Escapes what requests do; Nutch's normal form lets a backslash be."""
    return normalize_escapes(file).replace("\\", "%5C")


def parse_robots(
    content: bytes,
    content_type: str,
    agents: Collection[str],
    url: str = "",
    limit: int = MAX_BYTES,
) -> RobotRules:
    """Returns a file's rules for a crawler with these names (in lower case, without `*`).

    Groups that name one of them count together; without any, those for `*`. `url` is where the file
    was found, for sitemaps given relative to it. At most `limit` bytes are read.
    """
    robots = read_robots(content, content_type, limit)
    if robots is None:
        return ALLOW_ALL
    groups, delays = groups_for(robots, agents)
    rules = path_rules(groups)
    delay = min(delays, default=None)
    sitemaps = tuple(dict.fromkeys(_sitemaps(robots.sitemaps, url)))
    signals: dict[str, str] = {}
    for group in (robots.above, *groups):
        for line in group.uses:
            signals |= line.signals() if line.key == "content-signal" else {}
    if not (rules or sitemaps or signals) and delay is None:
        # One object for all such hosts, which are many.
        return UNSAID
    return RobotRules(rules, delay, sitemaps, signals)


def path_rules(groups: Iterable[RobotsGroup]) -> list[PathRule]:
    """Returns the rules of groups that count together, each once, with its first line."""
    rules: dict[tuple[str, bool], int] = {}
    for group in groups:
        for written in group.rules:
            rules.setdefault((normal_rule(written.path), written.allow), written.line)
    # The longest first, then Allow: RFC 9309, 2.2.2.
    ordered = sorted(rules, key=lambda rule: (-len(rule[0]), not rule[1], rule[0]))
    return [PathRule(path, allow, rules[path, allow]) for path, allow in ordered]


def groups_for(robots: RobotsFile, agents: Collection[str]) -> tuple[list[RobotsGroup], list[int]]:
    """Returns the groups for these agents, and the delay that each of their lines is given."""
    # `*` counts only where no group names the crawler (2.2.1).
    for is_ours in (lambda name: is_named(name, agents), _is_anyone):
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


def is_named(name: str, agents: Collection[str]) -> bool:
    """Returns the whole name, or the product token that it starts with."""
    if name in agents:
        return True
    token = _TOKEN.match(name)
    return token is not None and token[0] in agents


def _sitemaps(values: Iterable[str], base: str) -> Iterable[str]:
    """Absolute URLs with a host; others are skipped. A quirk: an empty value is the folder."""
    for value in values:
        try:
            parse_uri(value)
            url = parse(value or ".", parse(base) if base else None)
        except UrlError:
            continue
        if url.host:
            yield str(url)


class RobotsParser(Protocol):
    """Makes rules of a file's bytes, its content type and the URL that it was found at."""

    def __call__(self, content: bytes, content_type: str, url: str = "") -> RobotRules: ...


def robots_parser(conf: Configuration) -> RobotsParser:
    """Returns the parser that http.robots.parser names, for the configured agent names."""
    names = agent_names(conf)
    choice = conf.get_word("http.robots.parser").lower()
    return _PARSERS[choice](names, robots_limit(conf))


def robots_limit(conf: Configuration) -> int:
    """http.robots.content.limit: the most bytes of a robots.txt that are fetched and read."""
    return max(0, conf.get_int("http.robots.content.limit"))


def agent_names(conf: Configuration) -> list[str]:
    """http.agent.name and http.robots.agents in lower case, without `*`; ConfigError if there is no
    name.
    """
    name = conf.get_text("http.agent.name").strip()
    if not name:
        raise ConfigError(
            "http.agent.name is not set: a crawler has to say who it is",
            hint=f"give it a name in {conf.file_to_edit('nutch-site.xml')}, or by"
            " -D http.agent.name=my-crawler",
        )
    names = [
        name.lower(),
        *(other.lower() for other in conf.get_trimmed_strings("http.robots.agents")),
    ]
    return [name for name in dict.fromkeys(names) if name != "*"]


def own_parser(names: list[str], limit: int = MAX_BYTES) -> RobotsParser:
    """Returns minutch's own parser for these agent names."""

    def parse_file(content: bytes, content_type: str, url: str = "") -> RobotRules:
        return parse_robots(content, content_type, names, url, limit)

    return parse_file


class ReppyRules(RobotRules):
    """Our record of a file, with reppy's verdicts and delay."""

    agent: Any
    size: int

    @classmethod
    def of(cls, own: RobotRules, robots: Any, names: list[str], size: int) -> ReppyRules:
        """`own` is our reading of the same file, which has `size` bytes."""
        rules = cls(sitemaps=own.sitemaps, content_signals=own.content_signals)
        rules.size = size
        star = robots.agent("*")
        found = (robots.agent(name) for name in names)
        # reppy gives the group of `*` for a name that it does not know.
        rules.agent = next((agent for agent in found if str(agent) != str(star)), star)
        delay = rules.agent.delay
        rules.crawl_delay = None if delay is None else int(delay * 1000 + 0.5)
        return rules

    @property
    def cost(self) -> int:
        """Bytes in memory, by the size of the file: reppy does not say what its rules take."""
        return super().cost + _REPPY * self.size

    def is_allowed(self, url: str) -> bool:
        """Decides by path and query: reppy forbids URLs of another host than the file's."""
        try:
            file = parse(url).file
        except UrlError:
            file = "/"
        return bool(self.agent.allowed(file if file.startswith("/") else "/" + file))


def reppy_parser(names: list[str], limit: int = MAX_BYTES) -> RobotsParser:
    """Returns the parser for these agent names; ConfigError if reppy is not installed."""
    try:
        from reppy.robots import Robots
    except ImportError as exc:
        raise ConfigError(
            "http.robots.parser is reppy, which is not installed: pip install minutch[reppy]"
        ) from exc

    def parse_file(content: bytes, content_type: str, url: str = "") -> RobotRules:
        content = content if len(content) <= limit else whole_lines(content[:limit])
        own = parse_robots(content, content_type, names, url, limit)
        return (
            own
            if own.allow_all
            else ReppyRules.of(own, Robots.parse(url or _ROOT, content), names, len(content))
        )

    return parse_file


_PARSERS: dict[str, Callable[[list[str], int], RobotsParser]] = {
    "minutch": own_parser,
    "reppy": reppy_parser,
}
