"""Disturbs jobs at their calls and judges what becomes of it.

    kill      SIGKILL at a call
    power     a power cut at a call, in five ways (see `disk`)
    error     ENOSPC, EDQUOT, EIO or EMFILE at a call, once or from there on; half a write
    signal    SIGINT, SIGTERM or SIGHUP at a call
    damage    a bit of an input file flipped, or the file cut off
    clock     a clock that jumps, forward and back, by seconds to years, while the job runs

After each: what a reader sees is the state before the job or the one after it; the same command
again ends as it does where nothing went wrong; nothing is left behind. Damage ends in an error that
names the file and leaves everything as it was, or makes no difference. A clock changes dates and
the names of segments, nothing else. Points come in a random order that `seed` sets: the first N of
them for N points.
"""

from __future__ import annotations

import errno
import random
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from minutch.errors import MinutchError
from minutch.work.tables.lock import LOCK_NAME
from tests.faults.disk import KEPT, LOST, TORN, ZEROS, Disk, copy
from tests.faults.jobs import Job, Stage, View, fingerprint, left_over, restore, view
from tests.faults.syscalls import Call
from tests.faults.watch import KILL, NOW, SHORT, Fault, Ran, Ticks, run, run_unseen, warm

CUTS: Final = ((LOST, LOST), (KEPT, LOST), (KEPT, ZEROS), (TORN, TORN), (TORN, LOST))
_CHANGES: Final = frozenset({"open", "write", "mkdir", "rename", "exchange", "link"})
ERRORS: Final[dict[int, frozenset[str]]] = {
    errno.ENOSPC: _CHANGES | {"fsync"},
    errno.EDQUOT: _CHANGES | {"fsync"},
    errno.EIO: _CHANGES | {"fsync", "unlink", "rmdir", "truncate", "read"},
    errno.EMFILE: frozenset({"open", "read"}),
}
_DAY: Final = 86_400_000
JUMPS: Final = tuple(
    sign * days * _DAY // 10_000 for days in (1, 10_000, 400_000, 36_500_000) for sign in (1, -1)
)
"""Milliseconds: nine seconds, a day, forty days, ten years."""
CLOCKS: Final = 1000
NOTHING_DUE: Final = 1
"""generate's exit code when the clock is before all dates."""
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Found:
    """The result of a campaign."""

    points: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


Point = Callable[[], str | None]
"""Disturbs a job once; returns what is wrong, None if nothing is."""


class Campaign:
    """All that can be done to one job."""

    def __init__(self, stage: Stage, job: Job, seed: int) -> None:
        self.stage, self.job, self.seed = stage, job, seed
        self.work = stage.work
        self._clean: list[tuple[View, Path]] = []
        self._ends: list[tuple[int, View] | None] = []
        self._well: set[bytes] = set()
        """Fingerprints of `work` after which all was well."""
        self._prepare()

    def _prepare(self) -> None:
        """Run the job where nothing goes wrong: its calls, and the states that may be seen."""
        before = self.stage.state(self.job.state)
        restore(before, self.work)
        warm(self.stage.words(self.job), forks=self.job.forks)
        restore(before, self.work)
        ran = self._run(reads=True)
        self.calls, self.code = ran.calls, ran.code
        self.sound = run_unseen(["fsck", str(self.work)]).code
        after = copy(self.work, self.stage.state(f"after-{self.job.name}"))
        self._allow(before)
        for number, between in enumerate(self.job.between):
            middle = self.stage.state(f"middle-{self.job.name}-{number}")
            between(before, after, middle)
            self._allow(middle)
        self._allow(after)
        self.end = self.job.ends_in(self._clean[-1][0])

    def _allow(self, state: Path) -> None:
        self._clean.append((view(state), state))
        self._ends.append(None)

    def _run(
        self,
        at: int | None = None,
        fault: Fault = KILL,
        *,
        lasting: bool = False,
        reads: bool = False,
    ) -> Ran:
        return run(
            self.stage.words(self.job), self.work, at=at, fault=fault, lasting=lasting, reads=reads
        )

    def _run_again(self) -> Ran:
        return run_unseen(self.stage.words(self.job))

    def judge(self, *, tidy: bool = False, after: bool = False) -> str | None:
        """Returns what is wrong with `work` after a disturbance; `tidy`: nothing may be left over
        even now; `after`: the job is done.
        """
        if tidy and (left := left_over(self.work)):
            return f"left behind at once: {left}"
        found = fingerprint(self.work) + bytes([after])
        if found in self._well:  # what the same command makes of these files is known
            return None
        problem = self._judge_crawl() if self.job.name == "crawl" else self._judge_job(after)
        if problem is None:
            self._well.add(found)
        return problem

    def _judge_job(self, after: bool) -> str | None:
        try:
            seen = view(self.work)
        except (MinutchError, OSError) as exc:
            return f"what is seen is not whole: {exc}"
        states = [number for number, (known, _) in enumerate(self._clean) if known == seen]
        if not states:
            return (
                f"neither the old nor the new state is seen: {difference(seen, self._clean[-1][0])}"
            )
        if after and states[-1] != len(self._clean) - 1:
            return "the job had ended, and its result is not there"
        again = self._run_again()
        wanted = self._end_of(states[0])
        try:
            found = again.code, view(self.work)
        except (MinutchError, OSError) as exc:
            return f"the second run's result is not whole: {exc}"
        done = (
            again.code == 0 and found[1] == self._clean[-1][0]
        )  # once more, where it might have said: done already
        if found != wanted and not done:
            what = difference(found[1], wanted[1])
            return (
                f"the same command again ends with {again.code} instead of {wanted[0]}:"
                f" {what}\n{again.text[-800:]}"
            )
        left = left_over(self.work)
        return f"left behind: {left}" if left else None

    def _judge_crawl(self) -> str | None:
        """A crawl has many states; all of them end in the same CrawlDb."""
        again = self._run_again()
        if again.code:
            return f"the same command again ends with {again.code}:\n{again.text[-800:]}"
        end = self.job.ends_in(view(self.work))
        if end != self.end:
            return f"another end: {end} instead of {self.end}"
        left = left_over(self.work)
        return f"left behind: {left}" if left else None

    def _end_of(self, state: int) -> tuple[int, View]:
        """Exit code and view of the job started in one of the clean states; found once."""
        end = self._ends[state]
        if end is None:
            disturbed = copy(self.work, self.stage.state("aside"))
            restore(self._clean[state][1], self.work)
            code = self._run_again().code
            end = self._ends[state] = code, view(self.work)
            restore(disturbed, self.work)
        return end

    def points(self, kind: str) -> Iterator[tuple[str, Point]]:
        """All disturbances of a kind with their names, in random order."""
        every = list(_KINDS[kind](self))
        random.Random(f"{self.seed} {self.job.name} {kind}").shuffle(every)
        return iter(every)

    def _changing(self) -> list[Call]:
        return [call for call in self.calls if call.kind != "read"]

    def kills(self) -> Iterator[tuple[str, Point]]:
        for at, call in enumerate(self._changing()):
            yield f"{at}: {call}", lambda at=at: self._disturbed(at, KILL)  # type: ignore[misc]

    def signals(self) -> Iterator[tuple[str, Point]]:
        for at, call in enumerate(self._changing()):
            for number in SIGNALS:
                yield f"{number.name} {at}: {call}", lambda at=at, n=number: self._disturbed(at, -n)  # type: ignore[misc]

    def errors(self) -> Iterator[tuple[str, Point]]:
        for at, call in enumerate(self.calls):
            for number, kinds in ERRORS.items():
                for lasting in (False, True) if call.kind in kinds else ():
                    name = f"{errno.errorcode[number]}{'...' if lasting else ''} {at}: {call}"
                    yield (
                        name,
                        lambda at=at, n=number, lasting=lasting: self._failing(at, n, lasting),
                    )  # type: ignore[misc]
            if call.kind == "write":
                yield f"short {at}: {call}", lambda at=at: self._failing(at, SHORT, False)  # type: ignore[misc]

    def cuts(self) -> Iterator[tuple[str, Point]]:
        count = len(self._changing())
        for at in range(count + 1):
            what = self._changing()[at] if at < count else "the end"
            for names, data in CUTS:
                name = f"names {names}, bytes {data} {at}: {what}"
                yield name, lambda at=at, names=names, data=data: self._cut(at, names, data)  # type: ignore[misc]

    def damages(self) -> Iterator[tuple[str, Point]]:
        before = self.stage.state(self.job.state)
        for path in sorted(before.rglob("*")):
            if (
                path.is_file()
                and path.name != LOCK_NAME
                and not {".fetchstate", "old"} & set(path.parts)
            ):
                name, size = str(path.relative_to(before)), path.stat().st_size
                for at in range(size):
                    yield (
                        f"flip {name} {at}",
                        lambda name=name, at=at: self._damaged(name, at, cut=False),
                    )  # type: ignore[misc]
                    yield (
                        f"cut {name} {at}",
                        lambda name=name, at=at: self._damaged(name, at, cut=True),
                    )  # type: ignore[misc]

    def clocks(self) -> Iterator[tuple[str, Point]]:
        for number in range(CLOCKS):
            yield f"clock {number}", lambda number=number: self._jumping(number)  # type: ignore[misc]

    def _start(self) -> None:
        restore(self.stage.state(self.job.state), self.work)

    def _disturbed(self, at: int, fault: Fault) -> str | None:
        self._start()
        self._run(at, fault)
        return self.judge()

    def _failing(self, at: int, fault: Fault, lasting: bool) -> str | None:
        self._start()
        ran = self._run(at, fault, lasting=lasting, reads=True)
        if "Traceback" in ran.text:
            return f"a traceback instead of a message:\n{ran.text[-1200:]}"
        if fault == SHORT and ran.code:
            return f"a short write is no error, and ended with {ran.code}:\n{ran.text[-800:]}"
        hit = ran.hit
        alone = (
            not lasting and hit is not None and hit.kind in _CHANGES and self.job.name != "crawl"
        )
        kept = hit is not None and re.search(
            r"/(\.|_fetch/)", f"/{hit.path}"
        )  # a log of pages is the next run's
        return self.judge(tidy=alone and not kept and bool(ran.code))

    def _jumping(self, number: int) -> str | None:
        """The job under a clock that jumps; a crawl then goes on under one that is right again, and
        late enough.
        """
        self._start()
        ran = run_unseen(
            self.stage.words(self.job), _jumps(random.Random(f"{self.seed} clock {number}"))
        )
        if self.job.words[0] == "generate" and ran.code == NOTHING_DUE:
            ran = self._run_again()
        if ran.code != self.code:
            return f"ends with {ran.code} instead of {self.code}:\n{ran.text[-1200:]}"
        if self.job.name == "crawl":
            run_unseen(self.stage.words(self.job), lambda: NOW + 2 * max(map(abs, JUMPS)))
        found, wanted = _pages(view(self.work)), _pages(self._clean[-1][0])
        if found != wanted:
            return f"other pages: {sorted(found ^ wanted)[:10]}"
        checked = run_unseen(["fsck", str(self.work)])
        if checked.code != self.sound:
            return f"fsck finds something:\n{checked.text[-800:]}"
        left = left_over(self.work)
        return f"left behind: {left}" if left else None

    def _cut(self, at: int, names: str, data: str) -> str | None:
        disk = Disk(self.stage.state(self.job.state))
        changing = self._changing()
        for call in changing[:at]:
            disk.apply(call)
        restore(self.stage.state("empty"), self.work)
        disk.cut(self.work, names, data, random.Random(f"{self.seed} {at} {names} {data}"))
        return self.judge(after=at == len(changing))

    def _damaged(self, name: str, at: int, *, cut: bool) -> str | None:
        self._start()
        path = self.work / name
        data = bytearray(path.read_bytes())
        if cut:
            del data[at:]
        else:
            data[at] ^= 1 << random.Random(f"{self.seed} {at}").randrange(8)
        path.write_bytes(data)
        ran = self._run_again()
        if "Traceback" in ran.text:
            return f"a traceback instead of a message:\n{ran.text[-1200:]}"
        if ran.code == 0:
            return self._unnoticed(name, bytes(data))
        folder, file = path.parent.name, path.name.removeprefix(".").removesuffix(".crc")
        if file not in ran.text or (file in {"data", "index"} and folder not in ran.text):
            if ran.code == self.code:  # fsck finds something in any case
                return self._unnoticed(name, bytes(data))
            return f"the error does not name the file:\n{ran.text[-800:]}"
        path.write_bytes((self.stage.state(self.job.state) / name).read_bytes())
        return self.judge(tidy=True)

    def _unnoticed(self, name: str, damaged: bytes) -> str | None:
        """The job has ended well over a damaged file: it had no need of that, or has read it and
        noticed nothing.
        """
        whole = self.stage.state(self.job.state) / name
        if (self.work / name).exists() and (self.work / name).read_bytes() == damaged:
            (self.work / name).write_bytes(whole.read_bytes())
        return (
            None
            if view(self.work) == self._clean[-1][0]
            else "damage went unnoticed, the result is another"
        )


def _jumps(chance: random.Random) -> Ticks:
    """A clock that jumps now and then when it is looked at."""
    offset = 0

    def now() -> int:
        nonlocal offset
        if chance.random() < 0.4:
            offset = chance.choice(JUMPS)
        return NOW + offset

    return now


def _pages(view: View) -> set[tuple[str, bytes]]:
    """Returns each URL with the folders that hold a record of it; segments count as one, since
    their names depend on the clock.
    """
    return {
        (re.sub(r"segments/\d+/|merged/\d{14}|part-r-\d+.*", "", path), key)
        for path, records in view.items()
        if isinstance(records, list)
        for key, _ in records
    }


def difference(seen: View, wanted: View) -> str:
    """Describes which paths differ."""
    missing, more = sorted(wanted.keys() - seen.keys()), sorted(seen.keys() - wanted.keys())
    other = sorted(path for path in seen.keys() & wanted.keys() if seen[path] != wanted[path])
    return f"missing {missing}, more {more}, different {other}"


_KINDS: dict[str, Callable[[Campaign], Iterator[tuple[str, Point]]]] = {
    "kill": Campaign.kills,
    "power": Campaign.cuts,
    "error": Campaign.errors,
    "signal": Campaign.signals,
    "damage": Campaign.damages,
    "clock": Campaign.clocks,
}
KINDS: Final = tuple(_KINDS)
