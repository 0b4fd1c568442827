"""The line between a fetch and its tasks: who is listened to, and what is heard at the other
end.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from queue import SimpleQueue

import pytest

from minutch.cycle.fetch.stats import FetchStats, Snapshot
from minutch.cycle.fetch.tasks import taskchannel as line
from minutch.cycle.fetch.tasks.taskchannel import ChannelAddress, ChannelServer, TaskChannel
from minutch.cycle.fetch.worker import HoldFetch, WorkerOrder

PATIENCE = 10
STATE = Snapshot(
    active=3, threads=5, waiting=7, queues=2, blocked=0, pages=11, errors=1, bytes=1000, pages_last_second=4,  # noqa: E501
    bytes_last_second=400, seconds=1.0, longest_rest=0.0, done=12, total=20,
)  # fmt: skip


class Fetch:
    """A fetch of two lists, with what its tasks tell it."""

    def __init__(self) -> None:
        self.shown: SimpleQueue[Snapshot] = SimpleQueue()
        self.board = ChannelServer("127.0.0.1", 2, self.shown.put)


@pytest.fixture
def fetch(monkeypatch: pytest.MonkeyPatch) -> Fetch:
    monkeypatch.setattr(line, "TICK", 0.05)
    return Fetch()


@pytest.fixture
def number(fetch: Fetch) -> Iterator[ChannelAddress]:
    with fetch.board.open() as number:
        yield number


def test_pause_and_go_on_reach_a_task(fetch: Fetch, number: ChannelAddress) -> None:
    heard: SimpleQueue[bool] = SimpleQueue()
    with closing(TaskChannel(number, 0)) as task, task.obeying(heard.put):
        for wanted in (True, False, True):
            fetch.board.tell(HoldFetch(wanted))
            assert heard.get(timeout=PATIENCE) is wanted


def test_a_task_that_begins_later_is_held_and_stopped_as_well(
    fetch: Fetch, number: ChannelAddress
) -> None:
    fetch.board.tell(HoldFetch(wanted=True))
    fetch.board.tell(WorkerOrder.LEAVE_RESTING)
    fetch.board.tell(WorkerOrder.STOP)
    held, stopped = threading.Event(), threading.Event()
    with closing(TaskChannel(number, 1)) as task:
        with task.stopping(stopped.set):
            assert stopped.wait(PATIENCE)
        with task.obeying(lambda wanted: held.set() if wanted else None):
            assert held.is_set()  # at once: it was told while nobody obeyed
        assert task.stopped and task.leaves_resting


def test_the_states_of_all_lists_are_shown_together(fetch: Fetch, number: ChannelAddress) -> None:
    with closing(TaskChannel(number, 0)) as first, closing(TaskChannel(number, 1)) as second:
        first.show(STATE)
        assert fetch.shown.get(timeout=PATIENCE).total is None  # nobody knows the other list yet
        second.show(replace(STATE, pages=100, total=200))
        while (shown := fetch.shown.get(timeout=PATIENCE)).pages != 111:
            pass
        assert (shown.total, shown.active) == (220, 6)
        first.fetched(FetchStats(), 20)
    while (shown := fetch.shown.get(timeout=PATIENCE)).active:
        pass
    assert shown.done == 32  # what ended tasks have done stays


@pytest.mark.parametrize(
    "said", [b"", b"\0\0\0\4abcd", b"GET / HTTP/1.1\r\n\r\n", b"\x7f\xff\xff\xff"]
)
def test_a_stranger_is_not_listened_to_and_not_waited_for(
    fetch: Fetch, number: ChannelAddress, said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "SECONDS", 1)
    with socket.create_connection(number[:2]) as stranger:
        stranger.settimeout(PATIENCE)
        stranger.sendall(said)
        with suppress(ConnectionResetError):
            while stranger.recv(100):  # the challenge, then the end
                pass
    with closing(TaskChannel(number, 0)) as task:
        task.show(STATE)
        assert fetch.shown.get(timeout=PATIENCE).pages == STATE.pages


def test_a_task_with_another_key_fetches_without_a_line(
    number: ChannelAddress, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(TaskChannel(number._replace(key=b"x" * 32), 0)) as task:
        task.show(STATE)
        assert not task.stopped
    assert "no connection to 127.0.0.1" in caplog.text
