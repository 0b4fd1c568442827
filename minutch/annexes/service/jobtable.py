"""Manages the jobs of the service: those that wait, run and have ended.

Each runs as `minutch COMMAND …` in a process of its own, so that stopping, crashing and memory use
do not affect the service. Stopping sends the signal of Ctrl-C: fetch closes its segment, every
other job leaves its databases unchanged. Aborting ends a job at once; that does no harm either,
since every job writes to temporary files and renames them. Source: JobManagerImpl, JobWorker and
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
from minutch.annexes.service.configs import write
from minutch.annexes.service.requestchecks import RequestRefused
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
"""Maximum number of jobs that are remembered; the oldest that have ended are forgotten first."""
SECOND: Final = 0.5
"""Seconds between the two signals that abort a job; the second abandons requests, too."""
GRACE: Final = 10.0
"""Seconds after which an aborted job that still runs is killed."""
_LONGEST_LINE: Final = 1 << 16
_STAMP: Final = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ +")
_NOTHING_DUE: Final = {"generate": 1}
"""Exit codes that are not errors."""


@dataclass
class Job:
    """A job (org.apache.nutch.service.model.response.JobInfo)."""

    id: str
    command: str
    kind: str | None
    conf_name: str
    crawl: str | None
    args: dict[str, Any]
    conf: Configuration
    make_arguments: Callable[[], list[str]]
    """Makes the arguments when the job begins, since the newest segment is known only then."""
    state: str = IDLE
    message: str = "idle"
    result: dict[str, str] | None = None
    arguments: list[str] = field(default_factory=list)
    """Arguments of the command, once it runs."""
    process: asyncio.subprocess.Process | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def info(self) -> dict[str, Any]:
        """Returns the job as JSON."""
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
    """All jobs, in the order of their creation."""

    def __init__(self, at_a_time: int) -> None:
        self._jobs: dict[str, Job] = {}
        self._numbers = itertools.count(1)
        self._turn = asyncio.Semaphore(at_a_time)
        self._tasks: set[asyncio.Task[None]] = set()
        self._folder = scratch.make("service")

    def __iter__(self) -> itertools.chain[Job]:
        return itertools.chain(list(self._jobs.values()))

    def running(self) -> list[Job]:
        """Returns the jobs that are running."""
        return [job for job in self._jobs.values() if job.state in (RUNNING, STOPPING, KILLING)]

    def get(self, number: str) -> Job | None:
        """Returns the job of an id."""
        return self._jobs.get(number)

    def create(
        self,
        command: str,
        kind: str | None,
        conf_name: str,
        conf: Configuration,
        crawl: str | None,
        args: dict[str, Any],
        make_arguments: Callable[[], list[str]],
    ) -> Job:
        """Creates a job, which runs when there is capacity. Raises RequestRefused if too many
        wait.
        """
        if sum(job.state == IDLE for job in self._jobs.values()) >= MOST_WAITING:
            raise RequestRefused(f"{MOST_WAITING} jobs wait already")
        number = f"{next(self._numbers):08d}"
        name = "-".join(
            part for part in (_safe(crawl), _safe(conf_name), kind or command, number) if part
        )
        job = Job(name, command, kind, conf_name, crawl, args, conf, make_arguments)
        self._jobs[job.id] = job
        self._forget()
        task = asyncio.create_task(self._run(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    def stop(self, job: Job) -> bool:
        """Stops a job gracefully; returns False if it has ended already."""
        return self._end(job, STOPPING)

    def abort(self, job: Job) -> bool:
        """Ends a job at once; returns False if it has ended already."""
        if not self._end(job, KILLING):
            return False
        loop = asyncio.get_running_loop()
        loop.call_later(SECOND, self._end, job, KILLING)
        loop.call_later(GRACE, self._kill, job)
        return True

    async def close(self) -> None:
        """Stops all jobs, and kills those that run after a grace period."""
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
        except Exception as exc:  # that of one job: it may neither wait nor run for ever
            log.exception("%s: not started", job.id)
            self._ended(job, FAILED, f"ERROR: {type(exc).__name__}: {exc}")
        finally:
            job.over.set()

    async def _do(self, job: Job) -> None:
        job.arguments = await asyncio.to_thread(job.make_arguments)
        file = self._folder / f"{id(job):x}.xml"
        await asyncio.to_thread(write, job.conf, file)
        try:
            if job.state != IDLE:  # stopped meanwhile
                self._ended(job, KILLED, "stopped before it began")
                return
            job.process = await start_command(
                [job.command, "-conf", str(file), *job.arguments], limit=_LONGEST_LINE
            )
            if job.state == IDLE:
                job.state, job.message = RUNNING, "OK"
            else:  # stopped while its process started, which nobody has told yet
                self._end(job, job.state)
            log.info("%s: %s %s", job.id, job.command, " ".join(job.arguments))
            last = await self._listen(job)
            self._set_result(job, await job.process.wait(), last)
        finally:
            file.unlink(missing_ok=True)

    async def _listen(self, job: Job) -> str:
        """Forwards the job's log; returns the text of its last error."""
        assert job.process is not None
        assert job.process.stderr is not None
        last: deque[str] = deque(maxlen=1)
        while True:
            try:
                line = await job.process.stderr.readline()
            except ValueError:  # a line that exceeds the limit
                continue
            if not line:
                return last[0] if last else ""
            text = line.decode("utf-8", "replace").rstrip()
            log.info("%s: %s", job.id, _STAMP.sub("", text))
            if text.startswith("error: "):
                last.append(text.removeprefix("error: "))

    def _set_result(self, job: Job, code: int, error: str) -> None:
        """Sets the final state of a job by its exit code."""
        stopped = job.state in (STOPPING, KILLING)
        if code == 0 or code == _NOTHING_DUE.get(job.command):
            job.result = {"result": str(code)}
            self._ended(job, FINISHED, "OK")
        elif stopped:
            self._ended(job, KILLED, "stopped" if job.state == STOPPING else "aborted")
        else:
            job.result = {"result": "-1"}
            self._ended(job, FAILED, f"ERROR: {error or f'exit code {code}'}")

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
    """Makes a name safe for the path of a URL."""
    return re.sub(r"[^\w.-]+", "_", name or "")[:64]
