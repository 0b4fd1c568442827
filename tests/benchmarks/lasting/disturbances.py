"""Plans from a seed what happens to a crawl: kills, stops, signals and jumps of the clock. Pure.

The second and the last tenth of a run are left alone, so that they can be compared, and the process
that sees the end has been running since the sixth tenth: what it leaks shows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

KILL: Final = "kill -9"
"""Its own process is killed; what it has started has to end by itself."""
KILL_ALL: Final = "kill -9 of all"
STOP: Final = ".STOP"
INTERRUPT: Final = "SIGINT"
CTRL_C: Final = "Ctrl-C"
"""SIGINT to all of its processes, as from a terminal."""
TERMINATE: Final = "SIGTERM"
JUMP: Final = "clock"
ENDING: Final = (KILL, KILL_ALL, STOP, INTERRUPT, CTRL_C, TERMINATE)
KILLS: Final = (KILL, KILL_ALL)
_HOUR: Final = 3600
JUMPS: Final = (-20, 4 * _HOUR, -4 * _HOUR, 20, 40 * 24 * _HOUR)
"""Seconds: small ones, as of NTP, and large ones, as after a flat battery."""
FOR_ENDS: Final = (0, 2, 3, 4, 5)
FOR_JUMPS: Final = (3, 5, 6, 7, 8)
"""The tenths in which there are some."""


@dataclass(frozen=True)
class Disturbance:
    """Something that happens at a time, in seconds."""

    time: float
    kind: str
    seconds: int = 0
    """By how much the clock is set forward, or back."""


def planned(span: float, seed: int, ends: int, jumps: Sequence[int]) -> list[Disturbance]:
    """All of a run, by time: so many ends, of different kinds, and these jumps, each kind spread
    over the tenths that may have some.
    """
    chance = random.Random(seed)
    kinds: list[str] = []
    found = []
    for time in _times(span, FOR_ENDS, ends, chance):
        kinds = kinds or chance.sample(ENDING, len(ENDING))
        found.append(Disturbance(time, kinds.pop()))
    set_by = chance.sample(jumps, len(jumps))
    for time, seconds in zip(_times(span, FOR_JUMPS, len(jumps), chance), set_by, strict=True):
        found.append(Disturbance(time, JUMP, seconds))
    return sorted(found, key=lambda one: one.time)


def _times(
    span: float, tenths: Sequence[int], count: int, chance: random.Random
) -> Iterator[float]:
    """So many times, as far apart as the tenths allow."""
    for number in range(count):
        at = len(tenths) * (number + chance.uniform(0.2, 0.8)) / count
        yield span / 10 * (tenths[int(at)] + at % 1)
