"""Two and three jobs at once on one crawl, which take their steps in the order that a seed sets.

Each job waits at every call that changes a file below `work`, or opens one, until all of them wait;
then one of them goes on. In some races a job was killed before: what it left is there, and
nobody's. In the end

- each has ended as it would have alone, or was refused because another was at work;
- what is seen is what the others leave one after the other, in one order or another;
- whoever was refused can do it now, and nothing is left behind.
"""

from __future__ import annotations

import os
import random
import select
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import permutations
from tempfile import TemporaryFile
from typing import IO, Final

from minutch.errors import MinutchError
from tests.faults.campaign import Point, difference
from tests.faults.disk import copy
from tests.faults.jobs import JOBS, Job, Stage, View, left_over, restore, view
from tests.faults.syscalls import Stopped, next_stop
from tests.faults.watch import KILL, LIMIT, NOW, Hung, Ran, end, ended, run, start, text_of, warm

TOGETHER: Final = {
    "empty": ("inject-first", "freegen"),
    "updated": ("inject", "generate", "generate-mark", "dedup", "invertlinks", "readdb"),
    "generated": ("fetch", "generate", "inject", "readdb"),
    "fetched": ("parse", "generate", "inject"),
    "parsed": ("updatedb", "inject", "dedup", "invertlinks", "generate", "readdb"),
    "linked": ("mergedb", "mergelinkdb", "readdb", "readlinkdb", "invertlinks", "dedup", "inject"),
}
"""Jobs that somebody may start in the same state of a crawl."""
REFUSED: Final = (
    "already exists, held by",
    "already has crawl_parse",
    "another job made it meanwhile",
)
"""What is said to somebody who comes second: to a lock, or with the result of the same work."""
PATIENCE: Final = 0.5
"""Seconds for a job that doesn't come to a call: it may wait for another one (SQLite does)."""
COUNT: Final = 10_000


@dataclass
class _Racer:
    """A job under way."""

    child: int
    listener: int
    said: IO[bytes]
    waiting: deque[Stopped] = field(default_factory=deque)
    running: bool = True


def race(lines: list[list[str]], stage: Stage, chance: random.Random) -> list[Ran]:
    """Run command lines at once; `chance` picks who goes on."""
    with ExitStack() as stack:
        racers = []
        for words in lines:
            said = stack.enter_context(TemporaryFile())
            child, listener = start(words, said, lambda: NOW, reads=True)
            stack.callback(os.close, listener)
            racers.append(_Racer(child, listener, said))
        try:
            _steps(racers, stage, chance)
        finally:
            for racer in racers:
                end(racer.child)
        return [Ran(ended(racer.child), text_of(racer.said)) for racer in racers]


def _steps(racers: list[_Racer], stage: Stage, chance: random.Random) -> None:
    of = {racer.listener: racer for racer in racers}
    poll = select.poll()
    for listener in of:
        poll.register(listener, select.POLLIN)
    last = time.monotonic()
    while any(racer.running for racer in racers):
        waiting = [racer for racer in racers if racer.waiting]
        all_wait = all(racer.waiting for racer in racers if racer.running)
        events = poll.poll(0 if all_wait else PATIENCE * 1000)
        for listener, event in events:
            _come(of[listener], stage) if event & select.POLLIN else _leave(of[listener], poll)
        if events:
            last = time.monotonic()
        elif waiting:
            chance.choice(waiting).waiting.popleft().go_on()
        elif time.monotonic() - last > LIMIT:
            raise Hung(f"no call for {LIMIT} s")


def _come(racer: _Racer, stage: Stage) -> None:
    """Somebody of a job is at a call."""
    stop = next_stop(racer.listener)
    if stop is None:
        return
    call = None
    with suppress(FileNotFoundError, ProcessLookupError):
        call = stop.describe(stage.work)
    if call is None:
        stop.go_on()
    else:
        racer.waiting.append(stop)


def _leave(racer: _Racer, poll: select.poll) -> None:
    poll.unregister(racer.listener)
    racer.waiting.clear()
    racer.running = False


class Races:
    """Races from the states of a stage."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self.stage, self.seed = stage, seed
        self._orders: dict[tuple[str, ...], tuple[int, View]] = {}

    def points(self) -> Iterator[tuple[str, Point]]:
        """Races with their names."""
        self._warm()
        for number in range(COUNT):
            chance = random.Random(f"{self.seed} race {number}")
            state = chance.choice(list(TOGETHER))
            names = [chance.choice(TOGETHER[state]) for _ in range(chance.choice((2, 2, 3)))]
            killed = chance.random() < 0.3
            title = f"race {number}: {' + '.join(names)}{' after a kill' if killed else ''}"
            yield title, lambda a=state, b=names, c=killed, d=chance: self._race(a, b, c, d)  # type: ignore[misc]

    def _warm(self) -> None:
        for state, names in TOGETHER.items():
            for name in names:
                restore(self.stage.state(state), self.stage.work)
                warm(self.stage.words(JOBS[name]), forks=False)

    def _race(
        self, state: str, names: list[str], killed: bool, chance: random.Random
    ) -> str | None:
        jobs = [JOBS[name] for name in names]
        restore(self.stage.state(state), self.stage.work)
        if killed:
            run(self.stage.words(jobs[0]), self.stage.work, at=chance.randrange(60), fault=KILL)
        ran = race([self.stage.words(job) for job in jobs], self.stage, chance)
        refused = [_is_refused(one) for one in ran]
        for one, name in zip(ran, names, strict=True):
            if "Traceback" in one.text:
                return f"{name}: a traceback:\n{one.text[-1500:]}"
        if not killed and all(refused):
            return "all are refused"
        codes = {index: one.code for index, one in enumerate(ran) if not refused[index]}
        try:
            seen = view(self.stage.work)
        except (MinutchError, OSError) as exc:
            return f"what is seen is not whole: {exc}"
        if not self._is_an_order(state, jobs, codes, seen, killed):
            said = "\n".join(
                f"{name} {one.code}: {one.text[-700:]}"
                for name, one in zip(names, ran, strict=True)
            )
            done = tuple(names[index] for index in codes)
            return (
                f"no order of {done} ends so:"
                f" {difference(seen, self._after(state, done)[1])}\n{said}"
            )
        return self._afterwards(
            [job for job, no in zip(jobs, refused, strict=True) if no] or jobs[:1] * killed
        )

    def _is_an_order(
        self, state: str, jobs: list[Job], codes: dict[int, int], seen: View, killed: bool
    ) -> bool:
        """Returns whether running the jobs one after the other, in some order, gives these exit
        codes and leaves the same files.
        """
        for order in permutations(codes):
            wanted = [codes[index] for index in order]
            names = [jobs[index].name for index in order]
            if self._matches(state, names, wanted, seen):
                return True
            if killed and self._matches(
                state, [jobs[0].name, *names], [None, *wanted], seen
            ):  # it was as good as done
                return True
        return False

    def _matches(self, state: str, names: list[str], codes: list[int | None], seen: View) -> bool:
        for length, code in enumerate(codes, 1):
            if code is not None and self._after(state, tuple(names[:length]))[0] != code:
                return False
        return self._after(state, tuple(names))[1] == seen

    def _after(self, state: str, names: tuple[str, ...]) -> tuple[int, View]:
        """The exit code of the last of these jobs, one after the other, and what is seen then;
        found once.
        """
        key = (state, *names)
        if key not in self._orders:
            aside = (
                copy(self.stage.work, self.stage.state("aside"))
                if self.stage.work.exists()
                else None
            )
            restore(self.stage.state(state), self.stage.work)
            code = 0
            for name in names:
                code = self.stage.run(JOBS[name]).code
            self._orders[key] = code, view(self.stage.work)
            if aside is not None:
                restore(aside, self.stage.work)
        return self._orders[key]

    def _afterwards(self, refused: list[Job]) -> str | None:
        for job in refused:
            again = self.stage.run(job)
            if "Traceback" in again.text or _is_refused(again):
                return (
                    f"{job.name}, which was refused, ends with {again.code}:\n{again.text[-700:]}"
                )
        left = left_over(self.stage.work)
        return f"left behind: {left}" if left else None


def _is_refused(ran: Ran) -> bool:
    return ran.code == 255 and any(text in ran.text for text in REFUSED)
