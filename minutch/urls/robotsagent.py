"""robots.txt for this crawler: the names that it answers to, and the parser that it reads the file
with.

Properties: http.agent.name and http.robots.agents (the names), http.robots.parser (`minutch`, or
`reppy` for the package of that name, extra `reppy`), http.robots.content.limit (bytes). What reppy
can't say is ours: Content-Signal, several agent names at once (the first that the file names
counts), an HTML page in place of the file. Its wildcards take exponential time on hostile files:
not for crawls of the open web.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from minutch.conf import Configuration
from minutch.errors import ConfigError, UrlError
from minutch.urls.parts import parse
from minutch.urls.robots import RobotRules, parse_robots
from minutch.urls.robotsfile import MAX_BYTES, whole_lines


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
    """minutch's parser for these agent names."""

    def parse_file(content: bytes, content_type: str, url: str = "") -> RobotRules:
        return parse_robots(content, content_type, names, url, limit)

    return parse_file


_REPPY = 8
"""Bytes in memory for each byte of a file: a rule of ten bytes is a string and an object."""
_ROOT = "http://robots.invalid/robots.txt"


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
