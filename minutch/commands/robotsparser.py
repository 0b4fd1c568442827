"""`minutch robotsparser`: tells which URLs of a list a robots.txt allows.

Source: org.apache.nutch.protocol.RobotRulesParser.
"""

from __future__ import annotations

import asyncio
import logging
import re
from pathlib import Path

from minutch.commands import arguments
from minutch.conf import Configuration
from minutch.errors import MinutchError, ProtocolError, UrlError
from minutch.job import JobContext
from minutch.plugin.protocolfactory import ProtocolFactory
from minutch.records.content import Content
from minutch.records.crawldatum import CrawlDatum
from minutch.urls.parts import parse
from minutch.urls.robots import RobotRules
from minutch.urls.robotsagent import agent_names, robots_parser

log = logging.getLogger(__name__)

USAGE = """\
RobotRulesParser [ -Dproperty=... ] <robots-file-or-url> <url-file> [<agent-names>]

<robots-file-or-url>  a local file, or a URL (http, https, ftp or file) whose host's robots.txt is fetched
<url-file>            a local file with one URL on each line; what counts of them is path and query
<agent-names>         names of the crawler, separated by commas; without them http.agent.name and http.robots.agents,
                      and without those the rules for everybody (`*`)

 -D fetcher.store.robotstxt=true          show the fetched robots.txt
 -D http.robot.rules.allowlist=<hosts>    hosts whose robots.txt is not asked for"""  # noqa: E501

_IS_URL = re.compile(r"(?:https?|ftp|file)://?")
_FAILED = 255


def run(args: list[str], context: JobContext) -> int:
    """Prints `allowed`, `not allowed` or `allowlisted` for each URL; logs what else the file
    says.
    """
    source, listed, *agents = arguments.parse(args, (), usage=USAGE, least=2).positional
    conf = _with_agents(context.conf, agents[0] if agents else "")
    names = agent_names(conf)
    try:
        rules = _rules(source, conf)
        urls = Path(listed).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as exc:
        raise MinutchError(f"{exc.filename}: {exc.strerror}") from exc
    except ProtocolError as exc:
        log.error("%s", exc)
        return _FAILED
    context.print(f"Testing robots.txt for agent names: {_listed(names)}")
    allow_list = tuple(host for host in conf.get_strings("http.robot.rules.allowlist") if host)
    for url in map(str.strip, urls):
        try:
            host = parse(url).host
        except UrlError:
            log.warning("not a URL: %s", url)
            continue
        context.print(f"{_status(url, host, rules, allow_list)}:\t{url}")
    for sitemap in rules.sitemaps:
        log.info("Sitemap: %s", sitemap)
    for use, answer in rules.content_signals.items():
        log.info("Content-Signal: %s=%s", use, answer)
    return 0


def _with_agents(conf: Configuration, agents: str) -> Configuration:
    """Returns the configuration with a name for the crawler: the one given, that of the other
    agents, or `*`.
    """
    if agents:
        return conf.with_values(
            {"http.agent.name": agents.split(",", maxsplit=1)[0], "http.robots.agents": agents}
        )
    if conf.get("http.agent.name"):
        return conf
    first = (conf.get("http.robots.agents") or "").split(",")[0].strip()
    return conf.with_values({"http.agent.name": first or "*"})


def _listed(names: list[str]) -> str:
    return f"[{', '.join(names)}]" if names else "* (any other agent)"


def _status(url: str, host: str, rules: RobotRules, allow_list: tuple[str, ...]) -> str:
    if allow_list and host.endswith(allow_list):
        return "allowlisted"
    return "allowed" if rules.is_allowed(url) else "not allowed"


def _rules(source: str, conf: Configuration) -> RobotRules:
    if _IS_URL.match(source) is not None:
        return asyncio.run(_fetched_rules(source, conf))
    content = Path(source).read_bytes()
    return robots_parser(conf)(content, "text/plain", Path(source).resolve().as_uri())


async def _fetched_rules(url: str, conf: Configuration) -> RobotRules:
    factory = ProtocolFactory(conf)
    fetched: list[Content] | None = (
        [] if conf.get_boolean("fetcher.store.robotstxt", False) else None
    )
    try:
        rules = await factory.get_protocol(url).get_robot_rules(url, CrawlDatum(), fetched)
    finally:
        await factory.close()
    for content in fetched or ():
        log.info("robots.txt of %s:\n%s", content.url, content)
    return rules
