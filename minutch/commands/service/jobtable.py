"""The jobs of the service: those that wait, run and have ended.

Each runs as `minutch COMMAND …` in a process of its own, so that it can be stopped, crash or eat
memory without the service. To stop one is to send it what Ctrl-C sends: fetch closes its segment,
every other job leaves things as they were. To abort is to end it at once; that harms nothing
either, as every job writes beside and renames. Source: JobManagerImpl, JobWorker and
NutchServerPoolExecutor of org.apache.nutch.service.impl.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import re
import signal
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from minutch import scratch
from minutch.commands.service.configs import write
from minutch.commands.service.confinedpaths import Refused
from minutch.conf import Configuration
from minutch.errors import MinutchError
from minutch.processes import start_command

log = logging.getLogger(__name__)

IDLE: Final = "IDLE"
RUNNING: Final = "RUNNING"
FINISHED: Final = "FINISHED"
FAILED: Final = "FAILED"
STOPPING: Final = "STOPPING"
KILLING: Final = "KILLING"
KILLED: Final = "KILLED"
OVER: Final = frozenset({FINISHED, FAILED, KILLED})

MOST_WAITING: Final = 100
MOST_KEPT: Final = 1000
"""Jobs that have ended are forgotten beyond these, the oldest first."""
SECOND: Final = 0.5
"""Seconds between the two signals that abort a job; at the second one fetch gives up what is under
way, too.
"""
GRACE: Final = 10.0
"""Seconds after which a job that was aborted, and goes on, is killed."""
_LONGEST_LINE: Final = 1 << 16
_STAMP: Final = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ +")
_NOTHING_DUE: Final = {"generate": 1}
"""Exit codes that are results and no errors."""


@dataclass
class Job:
    """One job, and what clients are told of it
    (org.apache.nutch.service.model.response.JobInfo).
    """

    id: str
    command: str
    kind: str | None
    conf_name: str
    crawl: str | None
    args: dict[str, Any]
    conf: Configuration
    words: Callable[[], list[str]]
    """Asked when the job begins: which segment is the newest is known then."""
    state: str = IDLE
    message: str = "idle"
    result: dict[str, str] | None = None
    line: list[str] = field(default_factory=list)
    """Its arguments, once it runs."""
    process: asyncio.subprocess.Process | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def info(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "id": self.id,
            "type": self.kind,
            "confId": self.conf_name,
            "args": self.args,
            "result": self.result,
            "state": self.state,
            "msg": self.message,
            "crawlId": self.crawl,
        }


class JobTable:
    """All jobs, in the order in which they came."""

    def __init__(self, at_a_time: int) -> None:
        self._jobs: dict[str, Job] = {}
        self._numbers = itertools.count(1)
        self._turn = asyncio.Semaphore(at_a_time)
        self._tasks: set[asyncio.Task[None]] = set()
        self._folder = scratch.make("service")

    def __iter__(self) -> itertools.chain[Job]:
        return itertools.chain(list(self._jobs.values()))

    def running(self) -> list[Job]:
        """Those that run now."""
        return [job for job in self._jobs.values() if job.state in (RUNNING, STOPPING, KILLING)]

    def get(self, number: str) -> Job | None:
        """The job of an id."""
        return self._jobs.get(number)

    def create(
        self,
        command: str,
        kind: str | None,
        conf_name: str,
        conf: Configuration,
        crawl: str | None,
        args: dict[str, Any],
        words: Callable[[], list[str]],
    ) -> Job:
        """Have a job done as soon as there is room. Raises Refused if too many wait."""
        if sum(job.state == IDLE for job in self._jobs.values()) >= MOST_WAITING:
            raise Refused(f"{MOST_WAITING} jobs wait already")
        number = f"{next(self._numbers):08d}"
        name = "-".join(
            part for part in (_safe(crawl), _safe(conf_name), kind or command, number) if part
        )
        job = Job(name, command, kind, conf_name, crawl, args, conf, words)
        self._jobs[job.id] = job
        self._forget()
        task = asyncio.create_task(self._run(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    def stop(self, job: Job) -> bool:
        """Let a job end in good order; False if it has ended already."""
        return self._end(job, STOPPING)

    def abort(self, job: Job) -> bool:
        """End a job at once; False if it has ended already."""
        if not self._end(job, KILLING):
            return False
        loop = asyncio.get_running_loop()
        loop.call_later(SECOND, self._end, job, KILLING)
        loop.call_later(GRACE, self._kill, job)
        return True

    async def close(self) -> None:
        """Stop all jobs, wait for them a while, end those that go on."""
        for job in self:
            self.stop(job)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await asyncio.gather(*self._tasks)
        for job in self:
            self._kill(job)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        scratch.remove(self._folder)

    # -- one job -----------------------------------------------------------------------------------

    async def _run(self, job: Job) -> None:
        try:
            async with self._turn:
                if job.state == IDLE:
                    await self._do(job)
                else:
                    self._ended(job, KILLED, "stopped before it began")
        except (MinutchError, OSError) as exc:
            self._ended(job, FAILED, f"ERROR: {exc}")
        finally:
            job.over.set()

    async def _do(self, job: Job) -> None:
        job.line = await asyncio.to_thread(job.words)
        file = self._folder / f"{job.id}.xml"
        await asyncio.to_thread(write, job.conf, file)
        try:
            if job.state != IDLE:  # stopped while its line was made
                self._ended(job, KILLED, "stopped before it began")
                return
            job.process = await start_command(
                [job.command, "-conf", str(file), *job.line], limit=_LONGEST_LINE
            )
            job.state, job.message = RUNNING, "OK"
            log.info("%s: %s %s", job.id, job.command, " ".join(job.line))
            last = await self._listen(job)
            self._judge(job, await job.process.wait(), last)
        finally:
            file.unlink(missing_ok=True)

    async def _listen(self, job: Job) -> str:
        """Pass the job's log on; returns its last complaint."""
        assert job.process is not None
        assert job.process.stderr is not None
        last: deque[str] = deque(maxlen=1)
        while True:
            try:
                line = await job.process.stderr.readline()
            except ValueError:  # longer than any line of a log
                continue
            if not line:
                return last[0] if last else ""
            text = line.decode("utf-8", "replace").rstrip()
            log.info("%s: %s", job.id, _STAMP.sub("", text))
            if text.startswith("error: "):
                last.append(text.removeprefix("error: "))

    def _judge(self, job: Job, code: int, complaint: str) -> None:
        """What an exit code means for the job's state."""
        asked = job.state in (STOPPING, KILLING)
        if code == 0 or code == _NOTHING_DUE.get(job.command):
            job.result = {"result": str(code)}
            self._ended(job, FINISHED, "OK")
        elif asked:
            self._ended(job, KILLED, "stopped" if job.state == STOPPING else "aborted")
        else:
            job.result = {"result": "-1"}
            self._ended(job, FAILED, f"ERROR: {complaint or f'exit code {code}'}")

    def _ended(self, job: Job, state: str, message: str) -> None:
        job.state, job.message = state, message
        log.info("%s: %s, %s", job.id, state, message)

    def _end(self, job: Job, state: str) -> bool:
        if job.state in OVER:
            return False
        job.state = state
        if job.process is not None:
            with contextlib.suppress(ProcessLookupError):
                job.process.send_signal(signal.SIGINT)
        return True

    def _kill(self, job: Job) -> None:
        if job.state not in OVER and job.process is not None:
            with contextlib.suppress(ProcessLookupError):
                job.process.kill()

    def _forget(self) -> None:
        over = [number for number, job in self._jobs.items() if job.state in OVER]
        for number in over[: max(0, len(self._jobs) - MOST_KEPT)]:
            del self._jobs[number]


def _safe(name: str | None) -> str:
    """A name as it may stand in a path of a URL."""
    return re.sub(r"[^\w.-]+", "_", name or "")[:64]
