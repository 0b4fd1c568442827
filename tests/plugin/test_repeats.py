"""A second request where a protocol needs one, after a rest."""

from __future__ import annotations

import pytest

from minutch.plugin.points import Protocol, ProtocolOutput
from minutch.plugin.protocolfactory import MOST, output_of, rules_of
from minutch.records.crawldatum import CrawlDatum
from minutch.records.protocol import WOULDBLOCK, Content, ProtocolStatus
from minutch.urls.robots import ALLOW_ALL, RobotRules
from plugins.protocol_http.http import Http
from tests.support.segments import conf_for
from tests.support.timedserver import TimedServer

MALFORMED = b"HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 2\r\n\r\nab"


@pytest.mark.parametrize("rest", [0.0, 0.3])
async def test_a_second_request_comes_after_a_rest(rest: float) -> None:
    with TimedServer(lambda host, path: MALFORMED) as server:
        protocol = Http(conf_for(), {})
        url, datum = server.url("127.0.0.2", "/x"), CrawlDatum()
        rules = await rules_of(protocol, url, datum, None, rest)
        assert rules.is_allowed(url)
        output = await output_of(protocol, url, datum, rest)
        await protocol.close()
    assert output.content is not None and output.content.content == b"ab"
    assert server.of("127.0.0.2") == ["/robots.txt", "/robots.txt", "/x"]
    assert server.asked[1].time - server.asked[0].time >= rest


class Blocking(Protocol):
    """Always wants a second request."""

    asked = 0

    async def get_protocol_output(self, url: str, datum: CrawlDatum) -> ProtocolOutput:
        self.asked += 1
        return ProtocolOutput(None, ProtocolStatus(WOULDBLOCK))

    async def get_robot_rules(
        self, url: str, datum: CrawlDatum, robots_content: list[Content] | None
    ) -> RobotRules:
        return ALLOW_ALL


async def test_there_is_an_end_to_it() -> None:
    protocol = Blocking(conf_for(), {})
    output = await output_of(protocol, "http://a/", CrawlDatum(), 0)
    assert output.status.code == WOULDBLOCK and protocol.asked == MOST
