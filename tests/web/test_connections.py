"""Places for connections: those who say nothing, ask slowly or take no answer lose theirs."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from minutch.web.access import listen
from minutch.web.serving import KEPT, MOST, MOST_OF_ONE, PATIENCE, ClientConnection, server
from tests.support.virtualtime import VirtualClock, run

REQUEST = b"GET /fast HTTP/1.1\r\nHost: localhost\r\n\r\n"
SLOW = b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] == "/slow":
        await asyncio.sleep(1000)
    if scope["method"] == "POST":
        while (await receive()).get("more_body"):
            pass
    await PlainTextResponse("done")(scope, receive, send)


class Wire(asyncio.Transport):
    """A connection from an address, as asyncio gives it to a protocol."""

    def __init__(self, house: House, address: str) -> None:
        super().__init__({"peername": (address, 5000), "sockname": ("127.0.0.1", 80)})
        self.sent, self.is_open = b"", True
        self.protocol = ClientConnection(house.config, house.state, {})
        self.protocol.connection_made(self)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)

    def abort(self) -> None:
        if self.is_open:
            self.is_open = False
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    close = abort

    def is_closing(self) -> bool:
        return not self.is_open

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    async def says(self, data: bytes) -> None:
        if data:
            self.protocol.data_received(data)
        for _ in range(5):
            await asyncio.sleep(0)


class House:
    """The connections of one server."""

    def __init__(self) -> None:
        self.config, self.state = server(app).config, ServerState()
        self.config.load()

    def come(self, address: str = "127.0.0.1") -> Wire:
        return Wire(self, address)


def virtual(test: Callable[[House], Awaitable[None]]) -> None:
    async def body() -> None:
        await test(House())

    run(VirtualClock(), body())


@pytest.mark.parametrize(
    ("said", "more"),
    [
        (b"", b""),
        (b"GET / HT", b"TP"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx", b"x"),
        (REQUEST, b""),
        (REQUEST + b"GET", b" "),
        (REQUEST[:-1], b""),
    ],
)
def test_who_keeps_us_waiting_is_let_go(said: bytes, more: bytes) -> None:
    """A piece now and then is no request: the time is that of the whole one."""

    async def test(house: House) -> None:
        wire = house.come()
        await wire.says(said)
        await asyncio.sleep(PATIENCE - 1)
        assert wire.is_open
        await wire.says(more)
        await asyncio.sleep(2)
        assert not wire.is_open and not house.state.connections

    virtual(test)


def test_we_have_all_the_time_that_an_answer_takes() -> None:
    async def test(house: House) -> None:
        wire = house.come()
        await wire.says(SLOW)
        await asyncio.sleep(999)
        assert wire.is_open and not wire.sent
        await asyncio.sleep(2)
        assert wire.sent.endswith(b"done") and wire.is_open
        await wire.says(REQUEST)
        assert wire.sent.count(b"done") == 2

    virtual(test)


def test_an_answer_that_nobody_takes_ends() -> None:
    async def test(house: House) -> None:
        wire = house.come()
        await wire.says(SLOW)
        for _ in range(5):  # a slow reader is none
            wire.protocol.pause_writing()
            await asyncio.sleep(PATIENCE - 1)
            wire.protocol.resume_writing()
        assert wire.is_open
        wire.protocol.pause_writing()
        await asyncio.sleep(PATIENCE + 1)
        assert not wire.is_open

    virtual(test)


def test_the_longest_wait_makes_way() -> None:
    async def test(house: House) -> None:
        busy = house.come()
        await busy.says(SLOW)
        idle = []
        for _ in range(MOST - 1):
            idle.append(house.come())
            await asyncio.sleep(0.01)
        late = house.come()
        assert late.is_open and busy.is_open
        assert [wire.is_open for wire in idle] == [False] + [True] * (MOST - 2)
        await late.says(REQUEST)
        assert late.sent.endswith(b"done")

    virtual(test)


def test_places_that_we_work_for_are_not_taken_away() -> None:
    async def test(house: House) -> None:
        wires = [house.come() for _ in range(MOST)]
        for wire in wires:
            await wire.says(SLOW)
        refused = house.come()
        assert not refused.is_open and refused.sent.startswith(b"HTTP/1.1 503 ")
        assert all(wire.is_open for wire in wires)

    virtual(test)


def test_the_network_leaves_places_for_this_machine() -> None:
    async def test(house: House) -> None:
        wires = [house.come(f"192.0.2.{number}") for number in range(MOST)]
        for wire in wires:
            if wire.is_open:
                await wire.says(SLOW)
        assert sum(wire.is_open for wire in wires) == MOST - KEPT
        owners = [house.come(("127.0.0.1", "::1")[number % 2]) for number in range(KEPT)]
        assert all(wire.is_open for wire in owners)
        assert not house.come("192.0.2.200").is_open

    virtual(test)


def test_one_address_gets_its_share() -> None:
    async def test(house: House) -> None:
        greedy = [house.come("2001:db8::1") for _ in range(MOST_OF_ONE + 5)]
        here = [wire for wire in greedy if wire.is_open]
        assert len(here) == MOST_OF_ONE
        for wire in here:
            await wire.says(SLOW)
        assert not house.come("2001:db8::1").is_open and house.come("2001:db8::2").is_open

    virtual(test)


VISITS = st.lists(
    st.tuples(
        st.sampled_from(("127.0.0.1", "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4")),
        st.sampled_from((b"", REQUEST, SLOW, b"GET")),
        st.sampled_from((0.0, 0.1, 3.0)),
    ),
    min_size=100,
    max_size=150,
)


@settings(max_examples=5, deadline=None)
@given(VISITS)
def test_bounds_hold_whoever_comes(visits: list[tuple[str, bytes, float]]) -> None:
    """After each of them, this machine gets an answer, unless we work for MOST others."""

    async def test(house: House) -> None:
        for address, said, pause in visits:
            wire = house.come(address)
            if wire.is_open:
                await wire.says(said)
            await asyncio.sleep(pause)
            there = [one for one in house.state.connections if isinstance(one, ClientConnection)]
            strangers = [one.address for one in there if not one.is_local]
            assert len(there) <= MOST and len(strangers) <= MOST - KEPT
            assert max(map(strangers.count, strangers), default=0) <= MOST_OF_ONE
            owner = house.come()
            if owner.is_open:
                await owner.says(REQUEST)
                assert owner.sent.endswith(b"done")
                owner.close()
            else:
                assert sum(one.waits_since is None for one in there) >= MOST

    virtual(test)


@contextmanager
def served() -> Iterator[int]:
    listener = listen("localhost", 0)
    running = server(app)
    thread = threading.Thread(target=asyncio.run, args=(running.serve(sockets=[listener]),))
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        running.should_exit = True
        thread.join(20)
        listener.close()


def test_idle_connections_stop_nobody() -> None:
    with served() as port:
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(MOST + 30)]
        assert httpx.get(f"http://127.0.0.1:{port}/fast", trust_env=False).text == "done"
        assert idle[0].recv(1) == b""
        for one in idle:
            one.close()
