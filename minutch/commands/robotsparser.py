"""`minutch robotsparser`: shows which URLs of a list a robots.txt allows.

Source: org.apache.nutch.protocol.RobotRulesParser.
"""

from __future__ import annotations

import logging
from pathlib import Path

from minutch.commands import arguments
from minutch.cycle.fetch.robotscheck import RobotsOptions, robotsparser
from minutch.errors import MinutchError, ProtocolError
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE = """\
RobotRulesParser [ -Dproperty=... ] <robots-file-or-url> <url-file> [<agent-names>]

<robots-file-or-url>  a local file, or a URL (http, https, ftp or file) whose host's robots.txt is
                      fetched
<url-file>            a local file with one URL on each line, of which path and query count
<agent-names>         names of the crawler, separated by commas; without them http.agent.name and
                      http.robots.agents, and without those the rules for everybody (`*`)

 -D fetcher.store.robotstxt=true          show the fetched robots.txt
 -D http.robot.rules.allowlist=<hosts>    hosts whose robots.txt is not asked for"""

_FAILED = 255


def run(args: list[str], context: JobContext) -> int:
    """Prints `allowed`, `not allowed` or `allowlisted` for each URL; logs the rest of the file."""
    source, listed, *agents = arguments.parse(args, (), usage=USAGE, least=2).positional
    try:
        urls = Path(listed).read_text(encoding="utf-8", errors="replace").splitlines()
        options = RobotsOptions(agents[0] if agents else "")
        found = robotsparser(source, map(str.strip, urls), options, context=context)
    except OSError as exc:
        raise MinutchError(f"{exc.filename}: {exc.strerror}") from exc
    except ProtocolError as exc:
        log.error("%s", exc)
        return _FAILED
    names = f"[{', '.join(found.agents)}]" if found.agents else "* (any other agent)"
    context.print(f"Testing robots.txt for agent names: {names}")
    for url, verdict in found.verdicts:
        context.print(f"{verdict}:\t{url}")
    for sitemap in found.rules.sitemaps:
        log.info("Sitemap: %s", sitemap)
    for use, answer in found.rules.content_signals.items():
        log.info("Content-Signal: %s=%s", use, answer)
    return 0
