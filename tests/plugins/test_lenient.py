"""Answers with a malformed head: read as browsers do, and within all limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.lib_http.curlslot import CurlSettings
from plugins.lib_http.curltransport import CurlTransport
from plugins.lib_http.failures import ForbiddenAddress, MalformedHead
from plugins.lib_http.lenient import read_answer
from tests.support.curlrequests import reply_to, request_to
from tests.support.misbehaving import MisbehavingServer


async def test_a_malformed_answer_is_read_again_from_allowed_addresses_alone() -> None:
    """The second way to ask obeys the same rules: addresses, limits, lengths."""
    with MisbehavingServer() as server:
        server.pages["/x"] = (
            b"HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 9\r\n\r\n123456789 and more"
        )
        request = request_to(server.port, b"/x", [("Host", "h")], limit=4)
        asked: list[str] = []

        def accepts(address: str) -> bool:
            asked.append(address)
            return len(asked) == 1  # libcurl may connect, the second way may not

        transport = CurlTransport(CurlSettings(), accepts)
        with pytest.raises(ForbiddenAddress):
            await reply_to(transport, request)
        await transport.aclose()
        transport = CurlTransport(CurlSettings(), lambda address: True)
        reply = await reply_to(transport, request)
        assert (reply.code, reply.body, reply.truncated) == (200, b"1234", "length")
        reply = await reply_to(transport, request_to(server.port, b"/x", [("Host", "h")]))
        assert (reply.body, reply.truncated, reply.error) == (b"123456789", None, None)
        await transport.aclose()
        assert asked == ["127.0.0.1"] * 2 and server.requests["/x"] == 5


@given(st.binary(max_size=300), st.integers(-1, 50))
def test_nonsense_is_refused_or_read(data: bytes, limit: int) -> None:
    refused = MalformedHead("x")
    for start in (
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ):
        try:
            reply = read_answer(start + data, limit, ("a", 1), None, refused)
        except MalformedHead as error:
            assert error is refused
        else:
            assert limit < 0 or len(reply.body) <= limit
