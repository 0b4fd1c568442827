"""Clocks."""

from __future__ import annotations

from minutch.clock import FakeClock, SteadyClock


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
