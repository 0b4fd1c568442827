"""Runs `minutch crawl -1` through all that is planned for it, and samples it from outside."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.benchmarks import soak
from tests.benchmarks.broad.requestlog import now
from tests.benchmarks.broad.runs import Crawl
from tests.benchmarks.broad.server import Serving
from tests.benchmarks.lasting import disturbances
from tests.benchmarks.lasting.clock import MachineClock
from tests.benchmarks.lasting.disturbances import JUMP, STOP, Disturbance
from tests.benchmarks.measure import Failed, adopting, cpu_of, family

_TICK: Final = 0.1
_EVERY: Final = 1.0
"""Seconds between two samples."""
_DISK_EVERY: Final = 5.0
_LEFT_SECONDS: Final = 15.0
"""For how long processes may outlive the one that started them."""
_MOST_DEATHS: Final = 10
_STOP_SECONDS: Final = 180.0
"""After which a crawl that was told to stop is killed."""
_ROUND: Final = re.compile(r"Round \d+")
_STEP: Final = re.compile(r"  (\w+) +([\d.]+) s")
_SIGNALS: Final = {
    disturbances.INTERRUPT: signal.SIGINT,
    disturbances.TERMINATE: signal.SIGTERM,
    disturbances.KILL: signal.SIGKILL,
}
_TO_ALL: Final = {
    disturbances.CTRL_C: signal.SIGINT,
    disturbances.KILL_ALL: signal.SIGKILL,
}


@dataclass(frozen=True)
class Sample:
    """A crawl at one time (seconds after the begin)."""

    time: float
    cpu: float
    """Seconds that it and all before it have used."""
    megabytes: float
    """Private memory of all its processes."""
    files: int
    """Descriptors that they have open."""
    processes: int
    segments: int
    disk: int
    """Bytes of its folder, in blocks, without the log."""


@dataclass(frozen=True)
class Ending:
    """The end of a process of the crawl."""

    kind: str
    """The disturbance that ended it; empty: none."""
    time: float
    seconds: float
    """From the disturbance to the end."""
    code: int
    left: int
    """Processes that were still there long after it, and were killed."""
    was_killed: bool
    """It did not end within the time for that."""


@dataclass
class Life:
    """All that was seen of a crawl."""

    samples: list[Sample] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)
    jumps: list[float] = field(default_factory=list)
    rounds: list[float] = field(default_factory=list)
    """When each began."""
    steps: list[tuple[float, str, float]] = field(default_factory=list)
    """When each step was done, its name, its seconds."""


class Living(Crawl):
    """A crawl that is begun again whenever it has ended."""

    def __init__(
        self,
        folder: Path,
        serving: Serving,
        properties: Mapping[str, str],
        words: Sequence[str],
        begin: int,
    ) -> None:
        super().__init__(folder, serving, properties)
        self._given = words
        self._begin = begin
        self.place = folder / "crawl"
        self._clock = MachineClock(folder / "clock")
        self._out = folder / "crawl.out"
        self._out.touch()
        self._read = 0
        self.life = Life()
        self._used = 0.0
        """CPU seconds of all processes that have ended."""
        self._disk = (0, 0)
        self._sampled = self._walked = 0.0
        self._known: set[int] = set()
        """Processes that are not the crawl's."""

    @property
    def _environment(self) -> dict[str, str]:
        return {**super()._environment, **self._clock.environment}

    def time(self) -> float:
        """Seconds after the begin."""
        return (now() - self._begin) / 1e6

    def run(
        self,
        seeds: Sequence[str],
        planned: Sequence[Disturbance],
        is_over: Callable[[float], bool],
    ) -> Life:
        """Crawls from seeds until it `is_over`, which is asked often (seconds after the begin), and
        then lets it be stopped.
        """
        self._given = ["-s", str(self._seeds(seeds)), *self._given]
        self._known = set(family(os.getpid()))
        with adopting():
            self._live(list(planned), is_over)
        return self.life

    def _live(self, waiting: list[Disturbance], is_over: Callable[[float], bool]) -> None:
        process = self._start()
        told, told_at = "", 0.0
        is_last = was_killed = False
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            at = self.time()
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                self._used += usage.ru_utime + usage.ru_stime
                took = at - told_at if told else 0.0
                ending = Ending(told, at, took, process.returncode, self._reap(), was_killed)
                self.life.endings.append(ending)
                if sum(not one.kind for one in self.life.endings) > _MOST_DEATHS:
                    log = (self._folder / "crawl.err").read_text(errors="replace")[-3000:]
                    raise Failed(f"the crawl ends by itself, again and again\n{log}")
                self._follow()
                if is_last:
                    return
                told, was_killed = "", False
                process = self._start()
            self._look(process.pid)
            if told:
                if at - told_at > _STOP_SECONDS and not was_killed:
                    was_killed = True
                    process.kill()
            elif is_over(at):
                is_last, told, told_at = True, STOP, self.time()
                self._end(process.pid, STOP)
            elif waiting and waiting[0].time <= at:
                one = waiting.pop(0)
                if one.kind == JUMP:
                    self._jump(one.seconds)
                else:
                    told, told_at = one.kind, at
                    self._end(process.pid, one.kind)
            time.sleep(_TICK)

    def newest(self) -> int:
        """Bytes of one segment with the newest copy of each page of all that are closed."""
        folder = self._folder / "merged"
        closed = [
            path
            for path in sorted((self.place / "segments").glob("[0-9]*"))
            if (path / "crawl_parse").is_dir()
        ]
        with self._popen("mergesegs", folder, *closed) as process:
            code = process.wait()
        self._check("mergesegs", code)
        return bytes_of(folder)

    def _start(self) -> subprocess.Popen[bytes]:
        with self._out.open("ab") as out, (self._folder / "crawl.err").open("ab") as err:
            return subprocess.Popen(
                self._words("crawl", *self._given, "crawl", "-1"),
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    def _end(self, pid: int, kind: str) -> None:
        if kind == STOP:
            (self.place if self.place.is_dir() else self._folder).joinpath(STOP).touch()
        elif kind in _TO_ALL:
            for one in family(pid):
                with suppress(ProcessLookupError):
                    os.kill(one, _TO_ALL[kind])
        else:
            os.kill(pid, _SIGNALS[kind])

    def _jump(self, seconds: int) -> None:
        self._clock.ahead += seconds
        self.life.jumps.append(self.time())

    def _reap(self) -> int:
        """Waits for what an ended crawl has left, which is this process's to wait for; returns how
        many had to be killed.
        """
        until = time.monotonic() + _LEFT_SECONDS
        left: set[int] = set()
        while rest := set(family(os.getpid())) - self._known:
            if time.monotonic() > until:
                left |= rest
            for pid in rest:
                with suppress(ProcessLookupError):
                    if pid in left:
                        os.kill(pid, signal.SIGKILL)
                with suppress(ChildProcessError):
                    _, _, usage = os.wait4(pid, os.WNOHANG)
                    self._used += usage.ru_utime + usage.ru_stime
            time.sleep(_TICK)
        return len(left)

    # -- looks -------------------------------------------------------------------------------------

    def _look(self, pid: int) -> None:
        self._follow()
        at = self.time()
        if at - self._sampled < _EVERY:
            return
        self._sampled = at
        if at - self._walked >= _DISK_EVERY:
            self._walked = at
            self._disk = segments_of(self.place), bytes_of(self.place)
        seen = soak.sample(pid, at)
        if seen.processes:
            cpu = self._used + sum(map(cpu_of, family(pid)))
            self.life.samples.append(
                Sample(at, cpu, seen.megabytes, seen.descriptors, seen.processes, *self._disk)
            )

    def _follow(self) -> None:
        """Reads what the crawl has printed since the last look."""
        with self._out.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        at = self.time()
        for line in whole.decode(errors="replace").splitlines():
            if _ROUND.match(line):
                self.life.rounds.append(at)
            elif step := _STEP.match(line):
                self.life.steps.append((at, step[1], float(step[2])))


def segments_of(crawl: Path) -> int:
    """How many segments a crawl has."""
    return sum(1 for path in (crawl / "segments").glob("[0-9]*") if path.is_dir())


def bytes_of(folder: Path) -> int:
    """Bytes of the blocks of all files of a crawl, but for its log."""
    found = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            if not name.startswith("crawl.log"):
                with suppress(OSError):
                    found += Path(parent, name).lstat().st_blocks * 512
    return found
