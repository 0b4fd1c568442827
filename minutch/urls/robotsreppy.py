"""robots.txt by the package reppy, for those who want it (extra `reppy`, property http.robots.parser=reppy).

What it can't say is ours: Content-Signal, several agent names at once (the first that the file names counts), an HTML
page in place of the file. Its wildcards take exponential time on hostile files: not for crawls of the open web.
"""

from __future__ import annotations

from typing import Any

from minutch.errors import ConfigError, UrlError
from minutch.urls.parts import parse
from minutch.urls.robots import RobotRules, RobotsParser, parse_robots

_ROOT = "http://robots.invalid/robots.txt"


class ReppyRules(RobotRules):
    """Our record of a file, with reppy's verdicts and delay."""

    agent: Any

    @classmethod
    def of(cls, own: RobotRules, robots: Any, names: list[str]) -> ReppyRules:
        """`own` is our reading of the same file."""
        rules = cls(sitemaps=own.sitemaps, content_signals=own.content_signals)
        star = robots.agent("*")
        found = (robots.agent(name) for name in names)
        rules.agent = next((agent for agent in found if str(agent) != str(star)), star)
        delay = rules.agent.delay
        rules.crawl_delay = None if delay is None else int(delay * 1000 + 0.5)
        return rules

    def is_allowed(self, url: str) -> bool:
        """By path and query: reppy takes URLs of another host than the file's for forbidden."""
        try:
            file = parse(url).file
        except UrlError:
            file = "/"
        return bool(self.agent.allowed(file if file.startswith("/") else "/" + file))


def reppy_parser(names: list[str]) -> RobotsParser:
    """The parser for these agent names; ConfigError if reppy is not installed."""
    try:
        from reppy.robots import Robots
    except ImportError as exc:
        raise ConfigError("http.robots.parser is reppy, which is not installed: pip install minutch[reppy]") from exc

    def parse_file(content: bytes, content_type: str, url: str = "") -> RobotRules:
        own = parse_robots(content, content_type, names, url)
        return own if own.allow_all else ReppyRules.of(own, Robots.parse(url or _ROOT, content), names)

    return parse_file
