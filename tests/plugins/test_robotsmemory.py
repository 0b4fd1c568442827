"""The rules of hosts in memory: a budget in bytes, and who goes first."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from minutch.urls.robots import ALLOW_ALL, RobotRules, parse_robots
from plugins.lib_http.robotscache import RobotsMemory
from tests.plugins.test_robotstxt import Hosts
from tests.support.examples import few


def rules_of(count: int) -> RobotRules:
    lines = (f"Disallow: /folder-{number}/" for number in range(count))
    return parse_robots("\n".join(["User-agent: *", *lines]).encode(), "", ["x"])


def test_those_that_were_asked_for_longest_ago_go_first() -> None:
    memory = RobotsMemory(2000)
    for name in "abcde":
        memory.keep(name, ALLOW_ALL, 10)
        assert memory.get("a", 0) is ALLOW_ALL
    assert [name for name in "abcde" if memory.get(name, 0)] == ["a", "b", "c", "d", "e"]
    for name in "fgh":
        memory.get("a", 0)
        memory.keep(name, ALLOW_ALL, 10)
    assert memory.get("a", 0) is ALLOW_ALL and memory.get("b", 0) is None
    assert memory.bytes <= 2000


def test_large_files_push_out_small_ones_but_are_kept_themselves() -> None:
    memory = RobotsMemory(100_000)
    for name in "abc":
        memory.keep(name, ALLOW_ALL, 10)
    large = rules_of(10_000)
    assert large.cost > 100_000
    memory.keep("large", large, 10)
    assert memory.get("large", 0) is large and len(memory) == 1
    memory.keep("d", ALLOW_ALL, 10)
    assert memory.get("large", 0) is None and memory.get("d", 0) is ALLOW_ALL


def test_a_host_counts_once() -> None:
    memory = RobotsMemory()
    memory.keep("a", rules_of(100), 10)
    memory.keep("a", ALLOW_ALL, 20)
    once = memory.bytes
    memory.keep("a", ALLOW_ALL, 30)
    assert memory.bytes == once < 500
    assert memory.get("a", 30) is None and memory.get("a", 29) is ALLOW_ALL
    memory.forget("a")
    assert memory.bytes == 0


@pytest.mark.parametrize(
    ("rules", "hosts", "most"),
    few([(0, 60, 450), (20, 60, 2_500), (0, 500, 450), (20, 500, 2_500)], 2),
)
async def test_the_budget_is_what_it_takes(rules: int, hosts: int, most: int) -> None:
    body = "".join(f"Disallow: /folder-{number}/\n" for number in range(rules)).encode()
    answer = (200, b"User-agent: *\n" + body) if rules else (404, b"")
    web = Hosts(**{f"www.host-{number}.example": answer for number in range(hosts)})
    store = web.store()
    await store.rules("http://www.other.example/")
    urls = [f"http://{name[7:-11]}/x" for name in web.answers]
    gc.freeze()  # only what is new is looked at; all objects took a second
    gc.collect()  # empties the free lists: what comes from them is not counted
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for url in urls:
            await store.rules(url)
            web.asked.clear()
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert store.memory.bytes == pytest.approx(taken, rel=0.25)
    assert taken / hosts < most
