"""Clocks."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from minutch.clock import FakeClock, OnwardClock, SteadyClock, SystemClock, http_time
from tests.support.examples import tabled


class Jumping(FakeClock):
    """A clock that somebody sets."""

    def set(self, now: int) -> None:
        self._now = now


def test_a_steady_clock_goes_on_when_another_jumps() -> None:
    machine = Jumping(5_000)
    steady = SteadyClock(machine)
    machine.advance(1.5)
    assert steady.now() == machine.now() == 6_500
    for somewhere in (0, 10**15):
        machine.set(somewhere)
        machine.advance(1)
    assert steady.now() == 8_500
    assert steady.monotonic() == machine.monotonic() == 3.5


HOUR, DAY = 3_600_000, 86_400_000


def test_dates_of_a_steady_clock_are_anchored() -> None:
    machine = Jumping(5_000)
    steady = SteadyClock(machine)
    machine.set(5_000 + DAY)
    assert steady.date(steady.now()) == steady.now() == 5_000
    assert steady.anchor() == DAY
    assert steady.date(steady.now()) == machine.now()
    machine.set(5_000 + 900)  # what two readings may differ by
    assert steady.anchor() == 0


def test_an_onward_clock_follows_forward_and_never_goes_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    machine = Jumping(10 * DAY)
    crawl = OnwardClock(machine)
    machine.advance(60)
    assert crawl.now() == machine.now() == 10 * DAY + 60_000
    machine.set(50 * DAY)
    assert crawl.now() == 50 * DAY
    machine.advance(1)
    machine.set(machine.now() - 4 * HOUR)
    for _ in range(3):
        machine.advance(1)
        assert crawl.now() == machine.now() + 4 * HOUR
    machine.set(51 * DAY)  # back, and beyond
    assert crawl.now() == 51 * DAY
    said = [record.getMessage() for record in caplog.records]
    assert [line.partition(":")[0] for line in said] == [
        "the machine's clock was set forward by 39 days, 23",
        "the machine's clock was set back",
        "the machine's clock was set forward by 23",
    ]
    assert "goes on, 4:00:00 ahead" in said[1]


def test_a_copy_of_an_onward_clock_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """One in a worker process does as the first, which says so."""
    machine = Jumping(DAY)
    copied = pickle.loads(pickle.dumps(OnwardClock(machine)))
    assert copied.now() == DAY
    copied._clock.set(2 * DAY)
    copied._maker = 0
    assert copied.now() == 2 * DAY
    assert not caplog.records


class Set(SystemClock):
    """The machine's clock, as somebody has set it."""

    wrong = 0

    def now(self) -> int:
        return super().now() + self.wrong


def test_an_onward_clock_goes_on_from_process_to_process(tmp_path: Path) -> None:
    machine, right, file = Set(), SystemClock(), tmp_path / "state" / "clock"
    OnwardClock(machine, file)
    machine.wrong = -4 * HOUR
    assert abs(OnwardClock(machine, file).now() - right.now()) < 10_000
    machine.wrong = DAY
    assert OnwardClock(machine, file).now() > right.now() + DAY - 10_000
    machine.wrong = 0
    assert OnwardClock(machine, file).now() > right.now() + DAY - 10_000
    boot, ahead = file.read_text().split()
    file.write_text(f"{boot[::-1]}x {ahead}")  # the machine was started anew since
    assert abs(OnwardClock(machine, file).now() - right.now()) < 10_000
    for damage in ("", "x", f"{boot} x", f"{boot}"):
        file.write_text(damage)
        assert abs(OnwardClock(machine, file).now() - right.now()) < 10_000


NOVEMBER = 784_111_777_000


@tabled(
    ("text", "found"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", NOVEMBER),
        ("Sunday, 06-Nov-94 08:49:37 GMT", NOVEMBER),
        ("Sun Nov  6 08:49:37 1994", NOVEMBER),
        ("Mon, 06 Nov 1994 08:49:37 GMT", NOVEMBER),
        ("6 nov 1994 09:49:37 +0100", NOVEMBER),
        ("6 Nov 94 03:49:37 EST", NOVEMBER),
        ("6 Nov 1994 08:49:37", NOVEMBER),
        ("6 Nov 1994 08:49", NOVEMBER - 37_000),
        ("6 Nov 2024", None),
        ("31 Feb 2024 10:00 GMT", None),
        ("01 Foo 2024 10:00 GMT", None),
        ("Mon, 1 Jan 2024 25:00 GMT", None),
        ("2024-01-01", None),
        ("0", None),
        ("", None),
        ("\u0666 Nov 1994 08:49:37 GMT", None),
        (f"6 Nov {'9' * 5000} 08:49:37 GMT", None),
        ("6 Nov 99999 08:49:37 GMT", None),
    ],
)
def test_dates_as_servers_write_them(text: str, found: int | None) -> None:
    assert http_time(text) == found
