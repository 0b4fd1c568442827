"""Asks a protocol once more where it says that it needs a second request (WOULDBLOCK), after a
rest; for those who have no queue to do that.
"""

from __future__ import annotations

import asyncio
from typing import Final

from minutch.plugin.points import Protocol, ProtocolOutput
from minutch.records.crawldatum import CrawlDatum
from minutch.records.protocol import WOULDBLOCK, Content
from minutch.urls.robots import RobotRules

MOST: Final = 3
"""Requests for one page."""


async def output_of(protocol: Protocol, url: str, datum: CrawlDatum, rest: float) -> ProtocolOutput:
    """Returns the page at a URL; `rest` in seconds."""
    for _ in range(MOST - 1):
        output = await protocol.get_protocol_output(url, datum)
        if output.status.code != WOULDBLOCK:
            return output
        await asyncio.sleep(rest)
    return await protocol.get_protocol_output(url, datum)


async def rules_of(
    protocol: Protocol, url: str, datum: CrawlDatum, contents: list[Content] | None, rest: float
) -> RobotRules:
    """Returns the robots.txt rules for a URL, as `get_robot_rules` does; `rest` in seconds."""
    for _ in range(MOST - 1):
        rules = await protocol.get_robot_rules(url, datum, contents)
        failure = getattr(rules, "failure", None)
        if failure is None or failure.code != WOULDBLOCK:
            return rules
        await asyncio.sleep(rest)
    return await protocol.get_robot_rules(url, datum, contents)
