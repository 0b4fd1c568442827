"""The transport over libcurl: takes orders, returns replies."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager

import httpx
import pytest

from plugins.lib_http.curlslot import CurlSettings, CurlSlot
from plugins.lib_http.curltransport import CurlTransport
from plugins.lib_http.failures import AskAgain
from plugins.lib_http.lenient import Way
from tests.support.curlrequests import request_to

CHUNKED = (
    b"HTTP/1.1 200 Fine\r\nX-A: 1\r\nx-a: 2\r\nTransfer-Encoding: chunked\r\n"
    b"Connection: close\r\n\r\n5\r\nfirst\r\n6\r\nsecond\r\n0\r\nX-Last: yes\r\n\r\n"
)
PLAIN = b"HTTP/1.1 404 No\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"
SHORT = b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nabc"


@asynccontextmanager
async def serving(answer: bytes) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server that says `answer` to everything; its port, and the requests that it got."""
    requests: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], requests
    finally:
        server.close()


async def test_a_request_is_sent_as_it_was_given() -> None:
    transport = CurlTransport(CurlSettings(), lambda address: True)
    async with serving(PLAIN) as (port, requests):
        headers = [("Host", "a.example"), ("User-Agent", "b")]
        reply = await transport.ask(request_to(port, b"/p?q", headers))
        await transport.aclose()
    assert requests == [b"GET /p?q HTTP/1.1\r\nHost: a.example\r\nUser-Agent: b\r\n\r\n"]
    assert reply.code == 404 and reply.error is None


async def test_what_a_reply_holds() -> None:
    transport = CurlTransport(CurlSettings(), lambda address: True)
    orders = []
    replies = []
    for answer in (CHUNKED, PLAIN, SHORT):
        async with serving(answer) as (port, _):
            orders.append(request_to(port, limit=7))
            replies.append(await transport.ask(orders[-1]))
    await transport.aclose()
    chunked, plain, short = replies
    assert (chunked.body, chunked.truncated, chunked.error) == (b"firstse", "length", None)
    assert (
        chunked.head[:2] == [b"HTTP/1.1 200 Fine\r\n", b"X-A: 1\r\n"]
        and chunked.version == b"HTTP/1.1"
    )
    assert (plain.code, plain.body, plain.truncated) == (404, b"abc", None)
    assert plain.address == ("127.0.0.1", orders[1].port)
    assert short.body == b"abc" and isinstance(short.error, httpx.RemoteProtocolError)


async def test_no_answer_at_all_is_an_error() -> None:
    transport = CurlTransport(CurlSettings(), lambda address: False)
    with pytest.raises(httpx.ConnectError, match=r"127\.0\.0\.1"):
        await transport.ask(request_to(9))
    await transport.aclose()


async def test_transfers_that_fail_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot is used again after whatever happened; without, each holds its memory until cycles are
    looked for.
    """
    made: list[CurlSlot] = []

    def make(settings: CurlSettings, accepts: Callable[[str], bool]) -> CurlSlot:
        made.append(CurlSlot(settings, accepts))
        return made[-1]

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    monkeypatch.setattr("plugins.lib_http.curltransport.CurlSlot", make)
    monkeypatch.setattr("plugins.lib_http.curltransport.MOST_IDLE", 1)
    transport = CurlTransport(CurlSettings(read_timeout=50), lambda address: address != "127.0.0.2")
    ended = []
    async with (
        serving(b"") as (silent, _),
        serving(b"HTTP/1.1 200\r\n") as (cut, _),
        serving(PLAIN) as (fine, _),
    ):
        hanging = await asyncio.start_server(hang, "127.0.0.1", 0)
        orders = [request_to(port) for port in (silent, cut, hanging.sockets[0].getsockname()[1])]
        orders += [
            request_to(fine, host="127.0.0.2"),
            request_to(70_000),
        ]
        for order in orders:
            with pytest.raises(httpx.TransportError) as error:
                await transport.ask(order)
            ended.append(type(error.value))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(transport.ask(orders[2]), 0.01)
        reply = await transport.ask(request_to(fine))
        hanging.close()
    await transport.aclose()
    assert len(set(ended)) > 2 and reply.body == b"abc"
    assert len(made) == 1


async def test_closed_in_the_turn_in_which_a_transfer_begins() -> None:
    transport, errors = CurlTransport(CurlSettings(), lambda address: True), []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: errors.append(context))
    async with serving(PLAIN) as (port, requests):
        transfer = asyncio.create_task(transport.ask(request_to(port)))
        await asyncio.sleep(0)
        await transport.aclose()
        await asyncio.sleep(0.05)
        assert not transfer.done() and not requests
        transfer.cancel()
        await asyncio.gather(transfer, return_exceptions=True)
    assert not errors


async def test_connecting_has_its_time_whatever_else_goes_on() -> None:
    transport = CurlTransport(CurlSettings(connect_timeout=300), lambda address: True)
    with socket.socket() as full:  # accepts nobody; what is beyond its queue gets no answer
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        with ExitStack() as stack:
            for _ in range(3):
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(("127.0.0.1", port))
            async with serving(PLAIN) as (other, _):
                stuck = asyncio.create_task(transport.ask(request_to(port)))
                while not stuck.done():
                    assert (await transport.ask(request_to(other))).code == 404
                with pytest.raises(httpx.ConnectTimeout):
                    await asyncio.wait_for(stuck, 5)
    await transport.aclose()


async def test_pages_are_asked_for_with_get_after_a_form_was_sent() -> None:
    transport = CurlTransport(CurlSettings(), lambda address: True)
    async with serving(PLAIN) as (port, requests):
        for method, content in (("GET", b""), ("POST", b"a=b"), ("GET", b"")):
            await transport.ask(request_to(port, method=method, content=content))
    await transport.aclose()
    assert [request.split()[0] for request in requests] == [b"GET", b"POST", b"GET"]


async def test_more_servers_than_idle_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot that served another server is told all about the new one."""
    monkeypatch.setattr("plugins.lib_http.curltransport.MOST_IDLE", 1)
    transport = CurlTransport(CurlSettings(), lambda address: True)
    async with serving(PLAIN) as (first, to_first), serving(CHUNKED) as (second, to_second):
        replies = [
            await transport.ask(request_to(port, b"/%d" % number, [("Host", str(port))]))
            for number, port in enumerate((first, second, first, first, second))
        ]
    await transport.aclose()
    assert [reply.code for reply in replies] == [404, 200, 404, 404, 200]
    assert [request.split()[1] for request in to_first] == [b"/0", b"/2", b"/3"]
    assert [request.split()[1] for request in to_second] == [b"/1", b"/4"]
    assert all(b"Host: %d\r\n" % first in request for request in to_first)


class Closing:
    """A server that closes the connection when a second request comes on it."""

    def __init__(self) -> None:
        self.requests: list[tuple[float, str]] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            try:
                request = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            self.requests.append((time.monotonic(), request.split()[1].decode()))
            if _ == 0:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")
                await writer.drain()
        writer.close()


async def test_a_request_is_not_sent_again_by_itself() -> None:
    """libcurl would, at once, where a connection that it kept is closed in place of an answer."""
    closing = Closing()
    server = await asyncio.start_server(closing.handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport = CurlTransport(CurlSettings(), lambda address: True)
    assert (await transport.ask(request_to(port, b"/1"))).body == b"abc"
    with pytest.raises(AskAgain):
        await transport.ask(request_to(port, b"/2"))
    assert [target for _, target in closing.requests] == ["/1", "/2"]
    for target in (b"/2", b"/3", b"/4"):  # the server is known now
        assert (await transport.ask(request_to(port, target))).body == b"abc"
    await transport.aclose()
    server.close()
    assert [target for _, target in closing.requests] == ["/1", "/2", "/2", "/3", "/4"]


class Names:
    """Says that every host is here, as long as it says anything."""

    silent = False

    def known(self, host: str) -> list[str]:
        return [] if self.silent else ["127.0.0.1"]


async def test_libcurl_forgets_hosts_that_no_slot_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would look through all that it knows at the end of each transfer, else."""
    monkeypatch.setattr("plugins.lib_http.curltransport.MOST_IDLE", 2)
    names = Names()
    settings = CurlSettings(connect_timeout=300)
    transport = CurlTransport(settings, lambda address: True, names=names)  # type: ignore[arg-type]
    async with serving(PLAIN) as (port, _):
        for number in (*range(9), 8, 7, 8):
            reply = await transport.ask(request_to(port, host=f"h{number}.invalid"))
            assert reply.code == 404
        assert transport._pinned == {f"h7.invalid:{port}": 1, f"h8.invalid:{port}": 1}
        names.silent = True
        assert (await transport.ask(request_to(port, host="h8.invalid"))).code == 404
        with pytest.raises(httpx.TransportError):
            await transport.ask(request_to(port, host="h0.invalid"))
    await transport.aclose()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n", "Malformed chunks"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 40 + b"\r\na\r\n",
            "Malformed chunks",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nab",
            "Connection closed before the end of the content",
        ),
    ],
)
@pytest.mark.parametrize("is_lenient", [False, True])
async def test_what_is_wrong_is_said_in_our_words(
    answer: bytes, words: str, is_lenient: bool
) -> None:
    """And in the same words by both readers; libcurl's change with its version."""
    transport = CurlTransport(CurlSettings(), lambda address: True)
    async with serving(answer) as (port, _):
        if is_lenient:
            transport._ways.note(f"127.0.0.1:{port}", Way.LENIENT)
        reply = await transport.ask(request_to(port, b"/x", [("Host", "h")]))
        await transport.aclose()
    assert str(reply.error) == words


async def test_a_coding_that_nobody_asked_for_is_left_to_the_page() -> None:
    """As Nutch and browsers do, which look for `chunked` alone; libcurl refuses such an answer."""
    transport = CurlTransport(CurlSettings(), lambda address: True)
    async with serving(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: foo\r\n\r\npage") as (port, _):
        request = request_to(port, b"/x", [("Host", "h")])
        with pytest.raises(AskAgain):
            await transport.ask(request)
        assert (await transport.ask(request)).body == b"page"
        await transport.aclose()
