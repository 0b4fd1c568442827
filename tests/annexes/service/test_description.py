"""Requests as the description of the service has them, and others: what does not fit is refused,
none leaves anything behind that stops the service, and each job ends.

Schemathesis makes the requests of /openapi.json: fitting ones, and ones that lack or twist a part.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings

from minutch.annexes.service import jobtable, openapi
from minutch.annexes.service.app import Service, make
from minutch.annexes.service.configs import Configs
from minutch.annexes.service.jobtable import FAILED, OVER, JobTable
from minutch.annexes.service.requestchecks import Root
from minutch.web.access import LOCAL, Access, listen
from minutch.web.serving import server
from tests.support.segments import conf_for


@dataclass
class Running:
    client: httpx.Client
    jobs: JobTable

    def is_well(self) -> None:
        """Fails unless the service lists its jobs, each of which ends."""
        assert self.client.get("/job").status_code == 200
        assert self.client.get("/admin").status_code == 200
        deadline = time.monotonic() + 30
        while any(job.state not in OVER for job in list(self.jobs)):
            assert time.monotonic() < deadline, [job.info() for job in self.jobs]
            time.sleep(0.01)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The service on a port; its jobs are a program that ends at once."""

    async def start_command(words: list[str], *, limit: int) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            "true", *words, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )

    root, listener = tmp_path_factory.mktemp("root"), listen("127.0.0.1", 0)
    started, found = threading.Event(), list[Any]()

    async def serve() -> None:
        jobs, access = JobTable(4), Access(None, LOCAL, openapi.OPEN)
        configs = Configs(conf_for(), may_change=True)
        runs = server(
            make(Service(Root(root), access, configs, jobs, "1", lambda: None)), patience=1
        )
        found.extend((jobs, runs))
        started.set()
        try:
            await runs.serve(sockets=[listener])
        finally:
            await jobs.close()

    with pytest.MonkeyPatch.context() as patch, listener:
        patch.setattr(jobtable, "start_command", start_command)
        thread = threading.Thread(target=lambda: asyncio.run(serve()))
        thread.start()
        assert started.wait(30)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with httpx.Client(base_url=url, trust_env=False, verify=False) as client:
            yield Running(client, found[0])
        found[1].should_exit = True
        thread.join(30)


def ask(running: Running, mode: str, examples: int) -> int:
    """Makes requests of each operation; returns how many."""
    import schemathesis  # here, as these take seconds
    from schemathesis.specs.openapi.checks import content_type_conformance, negative_data_rejection

    checks, asked = [content_type_conformance, negative_data_rejection], 0

    def check(case: schemathesis.Case) -> None:
        nonlocal asked
        asked += 1
        response = case.call(base_url=str(running.client.base_url))
        assert response.text != "Internal Server Error", "an exception that nobody expected"
        case.validate_response(response, checks=checks)

    described = schemathesis.openapi.from_dict(openapi.description("1", needs_token=False))
    limits = settings(
        max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    for found in described.get_all_operations():
        operation = found.ok()
        if operation.body or operation.query:
            cases = operation.as_strategy(schemathesis.GenerationMode(mode))
            limits(given(case=cases)(lambda case: check(case)))()  # noqa: PLW0108 - given marks it
    return asked


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_any_request(running: Running, mode: str) -> None:
    assert ask(running, mode, 4) >= 40


@pytest.mark.faults
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_very_many_requests(running: Running, mode: str) -> None:
    assert ask(running, mode, 300) >= 1000


def test_after_all_of_them(running: Running) -> None:
    running.is_well()


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


INJECT = '{"type": "INJECT", "crawlId": "c", "args": {"url_dir": "s", "x": %s}}'
REFUSED = [
    *(INJECT % nested(depth) for depth in (2, 900, 950, 960, 980, 1000, 100_000)),
    *(INJECT % value for value in ("NaN", "1e999", "[null]", '{"a": 1}', '"\\ud800"', "9" * 5000)),
    '{"type": "../../x", "jobClassName": "inject", "crawlId": "c", "args": {"url_dir": "s"}}',
    '{"jobClassName": "commoncrawldump", "crawlId": "c", "args": {"mimetypes": 5}}',
    '{"type": "FETCH", "crawlId": "c", "args": {"segment": {"a": "b"}}}',
    '{"type": "FETCH", "crawlId": 5, "args": {}}',
    '{"type": "FETCH", "crawlId": "c", "confId": [], "args": {}}',
    '{"type": ["FETCH"], "crawlId": "c", "args": {}}',
    '{"type": "GENERATE", "crawlId": "c", "args": {"topN": null}}',
]


@pytest.mark.parametrize("body", REFUSED, ids=lambda body: body[:60])
def test_what_does_not_fit_starts_nothing(running: Running, body: str) -> None:
    before = [job.id for job in running.jobs]
    answer = running.client.post(
        "/job/create",
        content=body.encode(),
        headers={"Content-Type": "application/json"},
    )
    assert answer.status_code == 400
    assert [job.id for job in running.jobs] == before
    running.is_well()


def test_what_is_not_declared_is_ignored_and_shown(running: Running) -> None:
    """As in Nutch, whose clients note things of their own among the arguments."""
    deep = json.loads(nested(300))
    args = {"url_dir": "s", "note": ["a", 1], "noFilter": "yes", "topN": "x"}
    body = {"type": "inject", "crawlId": "c", "note": deep, "args": args}
    answer = running.client.post("/job/create", json=body).json()
    assert (answer["type"], answer["args"]) == ("INJECT", args)
    running.is_well()


def test_long_names_name_no_file(running: Running) -> None:
    name = "\U0001d54f" * 200
    config = {"configId": name, "params": {}}
    assert running.client.post("/config/create", json=config).is_success
    body = {"type": "DEDUP", "crawlId": "c", "confId": name, "args": {}}
    made = running.client.post("/job/create", json=body).json()
    running.is_well()
    (job,) = (job for job in running.jobs if job.id == made["id"])
    assert (job.state, job.message) == ("FINISHED", "OK")


async def test_a_job_ends_whatever_is_raised() -> None:
    def bad() -> list[str]:
        raise TypeError("'int' object is not iterable")

    table = JobTable(1)
    jobs = [
        table.create("dedup", None, "default", conf_for(), "c", {}, make)
        for make in (bad, lambda: ["a\0b"], lambda: ["\ud800"], lambda: ["x" * (1 << 20)] * 9)
    ]
    await asyncio.gather(*(job.over.wait() for job in jobs))
    assert {job.state for job in jobs} == {FAILED}
    assert jobs[0].message == "ERROR: TypeError: 'int' object is not iterable"
    await table.close()
