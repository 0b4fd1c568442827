"""Runs the commands that a case needs, and watches a fetch from outside."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.benchmarks.broad.server import PROJECT, Serving
from tests.benchmarks.broad.web import Web
from tests.benchmarks.measure import Failed, adopting, cpu_of, family

_EVERY: Final = 0.5
"""Seconds between two looks."""
_START: Final = 10.0
"""Seconds at the start with a look at each tenth of them: a list is read, and memory has a peak."""
_END: Final = 120.0
"""Seconds after which a fetch that was told to stop is killed."""


@dataclass(frozen=True)
class Sample:
    """A fetch and all its processes at one time (seconds, monotonic)."""

    time: float
    cpu: float
    """Seconds, user and system."""
    waited: float
    """Seconds for which its own process could have run, and others did."""
    rss: int
    """Of the largest process; bytes, as all the following."""
    pss: int
    """Of all processes; memory that they share counts once."""
    own: int
    """The part of it that is no mapped file."""
    server_cpu: float


@dataclass
class Fetched:
    """A fetch that has ended."""

    started: float
    """Monotonic, as all times."""
    ended: float
    cpu: float
    """Seconds."""
    peak_rss: int
    """Bytes, of the fetch's own process."""
    stopped: float | None
    """When it was told to stop."""
    code: int
    samples: list[Sample] = field(default_factory=list)

    @property
    def peak_pss(self) -> int:
        """Bytes."""
        return max((sample.pss for sample in self.samples), default=0)

    @property
    def peak_own(self) -> int:
        """Bytes."""
        return max((sample.own for sample in self.samples), default=0)


def _waited(pid: int) -> float:
    """Seconds that the threads of a process waited for a CPU; 0 where the system does not tell."""
    found = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):
            found += int(task.read_text().split()[1])
    return found / 1e9


def _memory(pid: int) -> tuple[int, int, int]:
    """RSS, PSS and its part that is no mapped file, in bytes."""
    with suppress(OSError):
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        found = dict(re.findall(r"^(\w+): +(\d+) kB", rollup, re.MULTILINE))
        rss, pss, own = (1024 * int(found.get(name, 0)) for name in ("Rss", "Pss", "Pss_Anon"))
        return rss, pss, own
    return 0, 0, 0


def sample(pid: int, server: int) -> Sample:
    """Looks at a fetch now."""
    processes = family(pid)
    memory = [_memory(one) for one in processes]
    return Sample(
        time.monotonic(),
        sum(map(cpu_of, processes)),
        _waited(pid),
        max(rss for rss, _, _ in memory),
        sum(pss for _, pss, _ in memory),
        sum(own for _, _, own in memory),
        cpu_of(server),
    )


class Crawl:
    """A crawl of one web in a folder of its own: of one segment, or in rounds."""

    def __init__(self, folder: Path, serving: Serving, properties: Mapping[str, str]) -> None:
        self._folder = folder
        self._serving = serving
        self._properties = {
            "http.agent.name": "benchmark",
            "http.filter.ipaddress.include": "loopback",
            "http.dns.servers": serving.dns,
            **properties,
        }

    def _words(self, command: str, *words: str | Path) -> list[str]:
        options = [f"-D{name}={value}" for name, value in self._properties.items()]
        return [sys.executable, "-m", "minutch", command, *options, *map(str, words)]

    @property
    def _environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        return {**kept, "PYTHONPATH": str(PROJECT), "MINUTCH_HOME": str(PROJECT)}

    def _popen(self, command: str, *words: str | Path) -> subprocess.Popen[bytes]:
        with (self._folder / f"{command}.log").open("wb") as log:
            return subprocess.Popen(
                self._words(command, *words),
                cwd=self._folder,
                env=self._environment,
                stdout=log,
                stderr=log,
            )

    def _check(self, command: str, code: int) -> None:
        if code:
            log = (self._folder / f"{command}.log").read_text(errors="replace")[-3000:]
            raise Failed(f"minutch {command}: exit code {code}\n{log}")

    def _seeds(self, urls: Iterable[str]) -> Path:
        seeds = self._folder / "seeds"
        seeds.mkdir()
        with (seeds / "seeds.txt").open("w") as file:
            file.writelines(f"{url}\n" for url in urls)
        return seeds

    def prepare(self, web: Web) -> Path:
        """Inject the URLs of all pages and generate a fetch list of them; returns the segment."""
        seeds = self._seeds(web.urls(self._serving.port))
        for command, words in (
            ("inject", ("crawldb", seeds)),
            ("generate", ("crawldb", "segments")),
        ):
            with self._popen(command, *words) as process:
                code = process.wait()
            self._check(command, code)
        (segment,) = (self._folder / "segments").glob("2*")
        return segment

    def fetch(self, segment: Path, stop: Callable[[float], bool]) -> Fetched:
        """Fetch until the end, or until `stop` says so (asked twice a second with the seconds since
        the start): then the fetch gets SIGTERM.
        """
        return self._watched(stop, "fetch", segment)

    def crawl(self, web: Web, rounds: int) -> Fetched:
        """Crawl from a web's seeds, in so many rounds."""
        seeds = self._seeds(web.url(slot, self._serving.port) for slot in web.seeds.tolist())
        return self._watched(lambda _: False, "crawl", "-s", seeds, "crawl", str(rounds))

    def _watched(self, stop: Callable[[float], bool], command: str, *words: str | Path) -> Fetched:
        samples: list[Sample] = []
        stopped: float | None = None
        with adopting() as orphans:
            started = time.monotonic()
            process = self._popen(command, *words)
            while True:
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                if pid:
                    break
                seen = time.monotonic()
                samples.append(sample(process.pid, self._serving.pid))
                if stopped is None and stop(seen - started):
                    stopped = time.monotonic()
                    process.send_signal(signal.SIGTERM)
                elif stopped is not None and seen - stopped > _END:
                    process.kill()
                # an end is to be seen at once, not at the next sample
                pause = 0.02 if stopped is not None else 0.1 if seen - started < _START else _EVERY
                time.sleep(max(0.0, pause - (time.monotonic() - seen)))
            ended = time.monotonic()
            used = [usage, *orphans()]
        code = process.returncode = os.waitstatus_to_exitcode(status)
        if stopped is None:
            self._check(command, code)
        return Fetched(
            started,
            ended,
            sum(one.ru_utime + one.ru_stime for one in used),
            1024 * usage.ru_maxrss,
            stopped,
            code,
            samples,
        )
