"""Plans a web from a seed: its hosts, their sizes and latencies, and which of them are hostile.

Everything about a host or a page is a hash of (seed, host, page): the server, the bound and the
audit each make the same web of the same plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

ORDINARY: Final = ""
TRAP: Final = "trap"
"""Has its pages like an ordinary host, and in each one links to ever new ones."""
NO_NAME: Final = "nxdomain"
NO_SERVER: Final = "servfail"
HOSTILE: Final = (
    "hang",
    "reset",
    "error",
    "busy",
    "drip",
    "slowhead",
    "endless",
    "bomb",
    "loop",
    TRAP,
    NO_NAME,
    NO_SERVER,
)
"""The kinds of hostile hosts; `Answers` and `Names` say what each does."""
NO_ROBOTS, SOME_RULES, CRAWL_DELAY = range(3)
"""What a host's robots.txt is: not there, a few rules, twice the delay that all others get."""
MOST_LATENCY: Final = 8_000
"""The longest latency in ms: below http.timeout, so that an ordinary page can always be had."""
_STREAMS: Final = ("rank", "kind", "robots", "host latency", "latency", "body", "link", "target")
_WITHIN: Final = 0.7
"""The share of links that stay on their host. The others lead more often to hosts of low number."""
_ROBOTS_SHARES: Final = (0.5, 0.95)
_BODIES: Final = 64

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """What a web is made from."""

    hosts: int
    pages: int
    """Of all hosts together, about."""
    delay: float
    """Seconds that the fetch is told to leave between two requests to a host."""
    hostile: float = 0.0
    """The share of hosts that are hostile."""
    seed: int = 1
    skew: float = 0.6
    """Zipf's exponent: the host of rank r has about r to the power of -skew of the largest's pages;
    0: all have as many."""
    median: float = 150.0
    """The median latency in ms; 0: none, and small pages."""
    kept: bool = True
    """Connections are kept open after an answer."""
    robots: bool = True
    """Some hosts have a robots.txt, and some of these a Crawl-Delay."""
    only: tuple[str, ...] = HOSTILE
    """The kinds that hostile hosts are of."""
    links: int = 0
    """Links of each page of an ordinary host, to pages there and elsewhere; 0: those of a few
    prepared bodies, which lead nowhere in particular."""


def hashed(seed: int, stream: str, numbers: Numbers) -> npt.NDArray[np.uint64]:
    """One hash for each number, another one in each stream (SplitMix64)."""
    start = (seed * 0x9E3779B97F4A7C15 + _STREAMS.index(stream) * 0xD1B54A32D192ED03) % 2**64
    with np.errstate(over="ignore"):
        x = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(start)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def uniform(seed: int, stream: str, numbers: Numbers) -> Floats:
    """Values in (0, 1)."""
    return ((hashed(seed, stream, numbers) >> np.uint64(12)).astype(np.float64) + 0.5) / 2.0**52


def normal(seed: int, stream: str, numbers: Numbers) -> Floats:
    """Values of the standard normal distribution (Box and Muller)."""
    first, second = uniform(seed, stream, 2 * numbers), uniform(seed, stream, 2 * numbers + 1)
    return np.asarray(np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second))


class Web:
    """The hosts of a plan. A host's slots are its robots.txt and then its pages."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        numbers = np.arange(plan.hosts, dtype=np.int64)
        self.sizes = _sizes(plan, numbers)
        """Pages of each host."""
        self.first = np.concatenate(([0], np.cumsum(self.sizes + 1)))
        """The first slot of each host, and the number of all slots."""
        kinds = hashed(plan.seed, "rank", numbers + plan.hosts) % np.uint64(max(1, len(plan.only)))
        is_hostile = uniform(plan.seed, "kind", numbers) < plan.hostile
        self.kinds = [
            plan.only[kind] if bad else ORDINARY
            for kind, bad in zip(kinds.tolist(), is_hostile.tolist(), strict=True)
        ]
        self.counted = np.array([kind in (ORDINARY, TRAP) for kind in self.kinds], dtype=bool)
        """The hosts whose pages can be had: those of the bound."""
        drawn = uniform(plan.seed, "robots", numbers)
        self.robots = np.digitize(drawn, _ROBOTS_SHARES) if plan.robots else np.zeros_like(numbers)
        if not plan.delay:
            self.robots = np.minimum(self.robots, SOME_RULES)
        self.promised = np.where(self.robots == CRAWL_DELAY, 2.0, 1.0) * plan.delay
        """Seconds between the end of a request to a host and the begin of the next."""
        self.slot_hosts = np.repeat(numbers, self.sizes + 1)
        self.latencies = self._latencies()
        """Of each slot, in ms."""

    def _latencies(self) -> npt.NDArray[np.uint16]:
        plan = self.plan
        if not plan.median:
            return np.zeros(len(self.slot_hosts), dtype=np.uint16)
        numbers = np.arange(plan.hosts, dtype=np.int64)
        medians = plan.median * np.exp(0.6 * normal(plan.seed, "host latency", numbers))
        keys = (self.slot_hosts << 32) + np.arange(len(self.slot_hosts))
        keys -= self.first[self.slot_hosts]
        found = medians[self.slot_hosts] * np.exp(0.5 * normal(plan.seed, "latency", keys))
        return np.clip(found, 1, MOST_LATENCY).astype(np.uint16)

    @cached_property
    def bodies(self) -> npt.NDArray[np.uint8]:
        """Which of the prepared bodies each slot has."""
        numbers = np.arange(len(self.slot_hosts), dtype=np.int64)
        return (hashed(self.plan.seed, "body", numbers) % np.uint64(_BODIES)).astype(np.uint8)

    @cached_property
    def targets(self) -> Numbers:
        """The slots that each slot links to; none is a robots.txt."""
        plan = self.plan
        numbers = np.arange(len(self.slot_hosts) * plan.links, dtype=np.int64)
        drawn = uniform(plan.seed, "link", numbers)
        shares = np.maximum(drawn - _WITHIN, 0) / (1 - _WITHIN)
        elsewhere = (plan.hosts * shares**3).astype(np.int64)
        hosts = np.where(drawn < _WITHIN, np.repeat(self.slot_hosts, plan.links), elsewhere)
        pages = uniform(plan.seed, "target", numbers) * self.sizes[hosts]
        slots = self.first[hosts] + 1 + pages.astype(np.int64)
        return np.asarray(slots.reshape(len(self.slot_hosts), plan.links))

    @property
    def seeds(self) -> Numbers:
        """Slots from which a crawl by links begins: the first page of every second host."""
        return self.first[:-1:2] + 1

    def url(self, slot: int, port: int) -> str:
        """The URL of a slot that is a page."""
        host = int(self.slot_hosts[slot])
        return f"http://{name(host)}:{port}/p/{slot - int(self.first[host]) - 1}"

    @property
    def pages(self) -> int:
        """Of all hosts."""
        return int(self.sizes.sum())

    @property
    def counted_pages(self) -> int:
        """Of the hosts whose pages can be had."""
        return int(self.sizes[self.counted].sum())

    def urls(self, port: int) -> Iterator[str]:
        """The URLs of all pages, host by host."""
        for host, size in enumerate(self.sizes.tolist()):
            start = f"http://{name(host)}:{port}/p/"
            for page in range(size):
                yield f"{start}{page}"


def _sizes(plan: Plan, numbers: Numbers) -> Numbers:
    """Each has a page; what is left is shared out by rank."""
    ranks = np.argsort(np.argsort(hashed(plan.seed, "rank", numbers))) + 1.0
    shares = ranks**-plan.skew
    largest = max(0.0, (plan.pages - plan.hosts) / shares.sum())
    return np.asarray(np.round(largest * shares) + 1, dtype=np.int64)


def name(host: int) -> str:
    """A host's name."""
    return f"www.site{host:06}.example"


def number(host: bytes) -> int:
    """The host of a name, in lower case; -1 if there is none of that name."""
    digits = host[8:14]
    return int(digits) if host[:8] == b"www.site" and digits.isdigit() else -1


def address(host: int) -> bytes:
    """A host's own address, as its four bytes."""
    return bytes((127, 1 + host // 62_500, host // 250 % 250, 1 + host % 250))
