"""Decides which URLs of a list a robots.txt allows.

Source: org.apache.nutch.protocol.RobotRulesParser.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minutch import eventloops
from minutch.conf import Configuration
from minutch.errors import MinutchError, UrlError
from minutch.job import JobContext
from minutch.plugin.protocolfactory import ProtocolFactory, rules_of
from minutch.records.crawldatum import CrawlDatum
from minutch.records.protocol import Content
from minutch.urls.parts import parse
from minutch.urls.robots import RobotRules, agent_names, robots_parser

log = logging.getLogger(__name__)

ALLOWED: Final = "allowed"
NOT_ALLOWED: Final = "not allowed"
ALLOWLISTED: Final = "allowlisted"
_REST: Final = 1.0
"""Seconds before a second request, should one be needed."""
_IS_URL: Final = re.compile(r"(?:https?|ftp|file)://?")


@dataclass(frozen=True, slots=True)
class RobotsOptions:
    """Options of robotsparser."""

    agents: str = ""
    """Names of the crawler, separated by commas; empty: the configured ones, without any `*`."""


@dataclass(frozen=True, slots=True)
class RobotsCheck:
    """The verdicts of a robots.txt."""

    agents: list[str]
    """The names by which its rules were chosen; empty: those for everybody."""
    verdicts: list[tuple[str, str]]
    """Each URL with ALLOWED, NOT_ALLOWED or ALLOWLISTED."""
    rules: RobotRules


def robotsparser(
    source: str,
    urls: Iterable[str],
    options: RobotsOptions = RobotsOptions(),
    *,
    context: JobContext,
) -> RobotsCheck:
    """Checks URLs against the robots.txt in a local file, or of the host of a URL.

    What is no URL is logged and left out. Raises MinutchError if the file can't be read, and
    ProtocolError if no protocol takes the URL.
    """
    conf = _with_agents(context.conf, options.agents)
    rules = _rules(source, conf)
    allowlist = tuple(host for host in conf.get_strings("http.robot.rules.allowlist") if host)
    verdicts = []
    for url in urls:
        try:
            host = parse(url).host
        except UrlError:
            log.warning("not a URL: %s", url)
            continue
        verdict = ALLOWED if rules.is_allowed(url) else NOT_ALLOWED
        verdicts.append((url, ALLOWLISTED if allowlist and host.endswith(allowlist) else verdict))
    return RobotsCheck(agent_names(conf), verdicts, rules)


def _with_agents(conf: Configuration, agents: str) -> Configuration:
    """Returns the configuration with a name for the crawler: the first of `agents`, the configured
    one, the first of the other agents, or `*`.
    """
    if agents:
        return conf.with_values(
            {"http.agent.name": agents.split(",", maxsplit=1)[0], "http.robots.agents": agents}
        )
    if conf.get("http.agent.name"):
        return conf
    first = conf.get_text("http.robots.agents").split(",")[0].strip()
    return conf.with_values({"http.agent.name": first or "*"})


def _rules(source: str, conf: Configuration) -> RobotRules:
    if _IS_URL.match(source) is not None:
        keeps = conf.get_boolean("fetcher.store.robotstxt")
        return eventloops.run(_fetched_rules(source, ProtocolFactory(conf), keeps=keeps))
    try:
        content = Path(source).read_bytes()
    except OSError as exc:
        raise MinutchError(f"{exc.filename}: {exc.strerror}") from exc
    return robots_parser(conf)(content, "text/plain", Path(source).resolve().as_uri())


async def _fetched_rules(url: str, protocols: ProtocolFactory, *, keeps: bool) -> RobotRules:
    fetched: list[Content] | None = [] if keeps else None
    try:
        rules = await rules_of(protocols.get_protocol(url), url, CrawlDatum(), fetched, _REST)
    finally:
        await protocols.close()
    for content in fetched or ():
        log.info("robots.txt of %s:\n%s", content.url, content)
    return rules
