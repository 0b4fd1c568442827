"""Jobs that wait, run and end, as real processes."""

from __future__ import annotations

import asyncio

import pytest

from minutch.annexes.service import jobtable
from minutch.annexes.service.confinedpaths import RequestRefused
from minutch.annexes.service.jobtable import FINISHED, KILLED, Job, JobTable
from tests.support.examples import few
from tests.support.segments import conf_for


def begun(table: JobTable, count: int) -> list[Job]:
    """Jobs that end soon; commands of the service's own are not slower."""
    return [
        table.create("completion", None, "default", conf_for(), "c", {}, lambda: ["bash"])
        for _ in range(count)
    ]


@pytest.mark.parametrize("at_a_time", few([1, 2]))
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
