"""Lists what is measured: each case is a web, a way to fetch it, and a name."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from tests.benchmarks.broad.web import Plan


class Mode(Enum):
    """What is measured."""

    RATE = "rate beside the bound"
    CPU = "CPU per request"
    START = "start and stop"
    ROUNDS = "rounds that overlap"


@dataclass(frozen=True)
class Case:
    """A web to be fetched."""

    name: str
    mode: Mode
    plan: Plan


_FULL: Final = (
    ("2k", 2_000, 1.0, 11_100),
    ("2k-slow", 2_000, 5.0, 5_300),
    ("20k", 20_000, 1.0, 46_000),
    ("20k-slow", 20_000, 5.0, 28_000),
)
"""Name, hosts, delay, pages: the largest host takes four to five minutes."""


def _cpu(name: str, hosts: int, requests: int) -> Case:
    """A connection for each request, so that only the number of hosts differs."""
    plan = Plan(hosts, max(hosts, requests - hosts), 0.0, skew=0.0, median=0.0, kept=False)
    return Case(name, Mode.CPU, plan)


CASES: Final = (
    *(
        Case(f"{name}{ending}", Mode.RATE, Plan(hosts, pages, delay, share))
        for name, hosts, delay, pages in _FULL
        for ending, share in (("", 0.0), ("-hostile", 0.05))
    ),
    _cpu("cpu-200", 200, 200_000),
    _cpu("cpu-100k", 100_000, 200_000),
    Case("list-5m", Mode.START, Plan(100_000, 5_000_000, 5.0)),
    Case("overlap", Mode.ROUNDS, Plan(1_000, 8_000, 1.0, skew=0.1, links=15)),
)
QUICK: Final = (
    Case("quick", Mode.RATE, Plan(100, 300, 0.3, 0.1)),
    _cpu("quick-cpu-20", 20, 2_000),
    _cpu("quick-cpu-1000", 1_000, 2_000),
    Case("quick-list", Mode.START, Plan(2_000, 50_000, 5.0)),
    Case("quick-overlap", Mode.ROUNDS, Plan(40, 200, 0.3, skew=0.3, links=10)),
)
