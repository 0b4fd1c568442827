"""Answers with a malformed head: read as browsers do, and within all limits."""

from __future__ import annotations

import asyncio
import time

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.lib_http.curlslot import CurlSettings
from plugins.lib_http.curltransport import CurlTransport
from plugins.lib_http.failures import AskAgain, ForbiddenAddress
from plugins.lib_http.lenient import Incoming, Way, Ways
from tests.support.curlrequests import request_to
from tests.support.misbehaving import PAGE, MisbehavingServer

MALFORMED = b"HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 9\r\n\r\n123456789 and more"


async def test_a_malformed_answer_is_read_again_from_allowed_addresses_alone() -> None:
    """The second way to ask obeys the same rules: addresses, limits, lengths."""
    with MisbehavingServer() as server:
        server.pages["/x"] = MALFORMED
        request = request_to(server.port, b"/x", [("Host", "h")], limit=4)
        asked: list[str] = []

        def accepts(address: str) -> bool:
            asked.append(address)
            return len(asked) == 1  # libcurl may connect, the second way may not

        transport = CurlTransport(CurlSettings(), accepts)
        with pytest.raises(AskAgain):
            await transport.ask(request)
        with pytest.raises(ForbiddenAddress):
            await transport.ask(request)
        await transport.aclose()
        assert asked == ["127.0.0.1"] * 2 and server.requests["/x"] == 1


async def test_one_request_at_a_time_and_no_more_once_the_server_is_known() -> None:
    with MisbehavingServer() as server:
        server.pages["/x"] = MALFORMED
        transport = CurlTransport(CurlSettings(), lambda address: True)
        with pytest.raises(AskAgain):
            await transport.ask(request_to(server.port, b"/x", [("Host", "h")]))
        assert server.requests["/x"] == 1
        for limit, body in ((4, b"1234"), (-1, b"123456789")):
            reply = await transport.ask(
                request_to(server.port, b"/x", [("Host", "h")], limit=limit)
            )
            assert (reply.code, reply.body, reply.error) == (200, body, None)
            assert reply.truncated == (None if limit < 0 else "length")
        reply = await transport.ask(request_to(server.port, b"/ok", [("Host", "h")]))
        assert reply.body == PAGE
        assert server.requests == {"/x": 3, "/ok": 1}
        await transport.aclose()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 5\r\n\r\nabcde",
        b"HTTP/1.1 200 OK\r\nno colon\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n",
        b"HTTP/1.1 103 Hints\r\nno colon\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde",
    ],
)
async def test_an_answer_ends_where_it_says_so(answer: bytes) -> None:
    """A server that leaves the connection open is not waited for."""

    async def leave_open(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str
    ) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for start in range(0, len(answer), 7):
            writer.write(answer[start : start + 7])
            await writer.drain()
        await reader.read()

    with MisbehavingServer(answer_all=leave_open) as server:
        transport = CurlTransport(CurlSettings(read_timeout=60_000), lambda address: True)
        request = request_to(server.port, b"/x", [("Host", "h")])
        with pytest.raises(AskAgain):
            await transport.ask(request)
        began = time.monotonic()
        reply = await transport.ask(request)
        assert (reply.body, reply.error) == (b"abcde", None)
        assert time.monotonic() - began < 30
        await transport.aclose()


async def test_servers_are_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plugins.lib_http.lenient.MOST_KEPT", 2)
    ways = Ways()
    for name in "abc":
        ways.note(name, Way.LENIENT)
        ways.of("a")
    assert [ways.of(name) for name in "abc"] == [Way.LENIENT, Way.USUAL, Way.LENIENT]
    assert len(ways) == 2


@given(st.binary(max_size=300), st.integers(-1, 50), st.integers(1, 99))
def test_nonsense_is_refused_or_read(data: bytes, limit: int, size: int) -> None:
    for start in (
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ):
        pieces = Incoming(limit)
        whole = start + data
        for at in range(0, len(whole), size):
            pieces.add(whole[at : at + size])
        try:
            at_once = Incoming(limit)
            at_once.add(whole)
            reply = at_once.reply(("a", 1))
        except httpx.TransportError as error:
            with pytest.raises(type(error)):
                pieces.reply(("a", 1))
        else:
            assert limit < 0 or len(reply.body) <= limit
            other = pieces.reply(("a", 1))
            assert (other.code, other.body, other.truncated) == (
                reply.code,
                reply.body,
                reply.truncated,
            )


@pytest.mark.parametrize("line", [b"5;", b"z", b" "])
def test_a_chunk_line_without_end_is_not_waited_for(line: bytes) -> None:
    incoming, count = Incoming(-1), 0
    incoming.add(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n")
    while not incoming.is_whole:
        incoming.add(line)
        count += len(line)
    assert count < 20_000
    reply = incoming.reply(("a", 1))
    assert (reply.body, str(reply.error)) == (b"ab", "Malformed chunks")
