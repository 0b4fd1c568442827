"""Jobs that wait, run and end, as real processes: of a shell, which starts at once;
test_startserver.py runs the commands that they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from minutch.annexes.service import jobtable
from minutch.annexes.service.jobtable import FAILED, FINISHED, KILLED, RUNNING, Job, JobTable
from minutch.annexes.service.requestchecks import RequestRefused
from tests.support.segments import conf_for


@pytest.fixture(autouse=True)
def _commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """The word after the configuration is what the shell does."""

    async def start_command(words: list[str], *, limit: int) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            "sh", "-c", words[-1], stderr=asyncio.subprocess.PIPE, limit=limit
        )

    monkeypatch.setattr(jobtable, "start_command", start_command)


def begun(table: JobTable, count: int, does: str = "sleep 0.05") -> list[Job]:
    """Jobs that end soon."""
    return [
        table.create("inject", None, "default", conf_for(), "c", {}, lambda: [does])
        for _ in range(count)
    ]


@pytest.mark.parametrize("at_a_time", [1, 2])
async def test_so_many_at_a_time(at_a_time: int) -> None:
    """`minutch.service.jobs` jobs run at a time; the others wait their turn."""
    table, most = JobTable(at_a_time), 0
    jobs = begun(table, 3)
    while not all(job.over.is_set() for job in jobs):
        most = max(most, len(table.running()))
        await asyncio.sleep(0.001)
    assert most == at_a_time
    assert [job.state for job in jobs] == [FINISHED] * 3
    await table.close()


async def test_a_job_that_waits_can_be_stopped() -> None:
    table = JobTable(1)
    first, second = begun(table, 2)
    assert table.stop(second)
    await second.over.wait()
    assert (second.state, second.message) == (KILLED, "stopped before it began")
    assert first.state == FINISHED
    assert not table.stop(first)
    await table.close()


async def test_a_job_that_starts_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    start, table = jobtable.start_command, JobTable(1)

    async def slowly(words: list[str], *, limit: int) -> asyncio.subprocess.Process:
        process = await start(words, limit=limit)
        assert table.stop(job)
        return process

    monkeypatch.setattr(jobtable, "start_command", slowly)
    (job,) = begun(table, 1, "exec sleep 60")
    await job.over.wait()
    assert (job.state, job.message) == (KILLED, "stopped")
    await table.close()


async def test_waiting_jobs_and_memory_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobtable, "MOST_WAITING", 2)
    monkeypatch.setattr(jobtable, "MOST_KEPT", 1)
    table = JobTable(1)
    jobs = begun(table, 2)
    with pytest.raises(RequestRefused, match="2 jobs wait already"):
        begun(table, 1)
    await asyncio.gather(*(job.over.wait() for job in jobs))
    (last,) = begun(table, 1)
    await last.over.wait()
    assert list(table) == [last]
    await table.close()


async def test_closing_ends_what_runs() -> None:
    table = JobTable(1)
    jobs = begun(table, 2)
    await table.close()
    assert all(job.over.is_set() for job in jobs)


@pytest.mark.parametrize(
    ("how", "signals", "message"),
    [
        (JobTable.stop, "", "stopped"),
        (JobTable.abort, "", "aborted"),
        (JobTable.abort, "trap '' INT;", "aborted"),
    ],
)
async def test_a_job_that_runs_is_ended(
    how: Callable[[JobTable, Job], bool],
    signals: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the signal of Ctrl-C; who does not heed it is killed."""
    monkeypatch.setattr(jobtable, "GRACE", 0.1)
    table = JobTable(1)
    (job,) = begun(table, 1, f"{signals} touch {tmp_path}/begun; exec sleep 60")
    while not (tmp_path / "begun").exists() or job.state != RUNNING:
        await asyncio.sleep(0.001)
    assert how(table, job)
    await job.over.wait()
    assert (job.state, job.message) == (KILLED, message)
    assert not table.stop(job)
    await table.close()


async def test_a_job_that_fails_says_why() -> None:
    table = JobTable(1)
    (job,) = begun(table, 1, "echo error: no such thing >&2; exit 1")
    await job.over.wait()
    assert (job.state, job.message) == (FAILED, "ERROR: no such thing")
    await table.close()
