"""Work in processes: order, crashes, hangs, memory; what goes wrong with one item stays with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from minutch.cycle.parse import workerpool, workerprocess
from minutch.cycle.parse.sandbox import Sandbox
from minutch.cycle.parse.workerpool import BATCH_ITEMS, PoolSettings, WorkerPool
from tests.cycle.parse.workertasks import (
    Answers,
    Bytes,
    Dribbles,
    EndsBadly,
    Sizes,
    Sorts,
    Unpaired,
    Upper,
    Watches,
)
from tests.support.examples import few
from tests.support.golden import PROJECT
from tests.support.pages import configuration

GENEROUS = 60.0
TIMEOUT = 1.0


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is deaf to its alarm is ended after half a second more."""
    monkeypatch.setattr(workerpool, "GRACE", 0.5)


def upper(timeout: float = GENEROUS) -> WorkerPool[str]:
    return WorkerPool(Upper, PoolSettings(workers=2, timeout=timeout, memory=64 << 20))


@pytest.fixture
def pool() -> Iterator[WorkerPool[str]]:
    with upper() as made:
        yield made


def test_results_come_in_the_order_of_the_items(pool: WorkerPool[str]) -> None:
    items = [f"item {number}".encode() for number in range(5 * BATCH_ITEMS + 3)]
    assert list(pool.map(items)) == [item.decode().upper() for item in items]


@pytest.mark.parametrize("timeout", [GENEROUS, -1])
def test_no_alarm_outlives_the_items(timeout: float) -> None:
    with WorkerPool(Watches, PoolSettings(workers=1, timeout=timeout, memory=-1)) as pool:
        *at_items, afterwards = map(float, pool.map([b"a", b"b", b"c"]))
    assert all((0 < left <= GENEROUS) == (timeout > 0) for left in at_items)
    assert afterwards == 0


def test_columns_in_a_worker_of_a_process_that_works_with_columns() -> None:
    assert Sorts().finish(["b", "a"]) == ["A", "B"]
    with WorkerPool(Sorts, PoolSettings(workers=1, timeout=20, memory=1 << 30)) as sorting:
        assert list(sorting.map([b"b", b"a"])) == ["A", "B"]


def test_no_items(pool: WorkerPool[str]) -> None:
    assert list(pool.map([])) == []


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("crash", "the parser crashed"),
        ("segfault", "the parser crashed"),
        pytest.param("spin", "not done within 1 s (parser.timeout)", marks=pytest.mark.slow),
        ("deaf", "not done within 1 s (parser.timeout)"),
        ("eat", "out of memory"),
    ],
)
def test_what_is_wrong_with_one_item_stays_with_it(bad: str, reason: str) -> None:
    items = [f"item {number}" for number in range(BATCH_ITEMS + 6)]
    items[3] = items[-2] = bad
    expected = [f"{bad}: {reason}" if item == bad else item.upper() for item in items]
    with upper(TIMEOUT if "not done" in reason else GENEROUS) as pool:
        assert list(pool.map(item.encode() for item in items)) == expected
        assert list(pool.map([b"after"])) == ["AFTER"]


def test_no_alarm_outlives_its_item() -> None:
    before = signal.signal(signal.SIGALRM, workerprocess._alarm)
    try:
        assert workerprocess._attempt(Upper(), b"a", GENEROUS) == ("a", "")
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("count", "bad", "reason"),
    few(
        [(32, "last", "the parser crashed"), (3, "endless", "not done within 1 s (parser.timeout)")]
    ),
)
def test_who_spoils_the_end_of_a_batch_spoils_it_for_itself(
    count: int, bad: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    items = [str(number) for number in range(count)]
    items[count * 2 // 3] = bad
    timeout = TIMEOUT if "not done" in reason else GENEROUS
    with WorkerPool(EndsBadly, PoolSettings(workers=1, timeout=timeout, memory=64 << 20)) as pool:
        found = list(pool.map(item.encode() for item in items))
    assert found == [f"{bad}: {reason}" if item == bad else item for item in items]
    assert caplog.text.count("a worker was ended") <= count.bit_length()


def test_a_message_that_never_ends_stops_nobody() -> None:
    found: list[str] = []
    settings = PoolSettings(workers=1, timeout=TIMEOUT, memory=64 << 20, sandbox=Sandbox(False))
    with WorkerPool(Dribbles, settings) as pool:
        items = [b"a", b"dribble", b"b"]
        asking = threading.Thread(target=lambda: found.extend(pool.map(items)), daemon=True)
        asking.start()
        asking.join(GENEROUS)
        assert found == ["A", "dribble: not done within 1 s (parser.timeout)", "B"]


def test_a_worker_that_goes_back_and_forth_is_stuck(
    pool: WorkerPool[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = pool.begin([b"a", b"b", b"c"])
    while pool.collect(running) is None:
        wait([running.connection], GENEROUS)
    worker, seconds = running.worker, iter(range(1000))
    monkeypatch.setattr("time.monotonic", lambda: float(next(seconds)))
    worker.batch, worker.seen, worker.since = running.batch, 0, 0.0
    found = []
    for at in (1, 2, 1, 2, 1, 2, 1 << 60, -2, 1, 2, 1, 2):
        worker.at.value = at
        found.append(worker.is_stuck(1.0))
    assert found.index(True) < 6
    assert found[-1]


SETTINGS = PoolSettings(workers=1, timeout=GENEROUS, memory=64 << 20)
FORGED = {
    "nothing": "b''",
    "no MessagePack": r"b'\xc1'",
    "a pickle": r"b'\x80\x04]\x94(K\x01\x86\x94e.'",
    "a list that is none": "5",
    "no result": "[]",
    "results of other pages too": "[(['A'], '')] * 9",
    "no reason": "[(['A'],)]",
    "a reason of another type": "[(None, None)]",
    "neither": "[(None, '')]",
    "both": "[(['A'], 'why')]",
    "another type": "[('A', '')]",
    "a field of another type": "[([b'A'], '')]",
    "a field of a field": "[(['A', [None]], '')]",
    "too many fields": "[(['A', [], b'', 1], '')]",
    "no field": "[([], '')]",
    "a map": "[({'name': 'A'}, '')]",
    "what the task can't use": "[(['A', [1, -1]], '')]",
    "an extension": r"b'\x91\x92\xc7\x01\x05x\xa0'",
    "deep": r"b'\x91' * 100_000",
    "a list of four thousand million": r"b'\xdd\xff\xff\xff\xff'",
    "a string of four thousand million bytes": r"b'\x91\x92\x93\xdb\xff\xff\xff\xff'",
    "text that is no UTF-8": r"b'\x91\x92\x91\xa1\xff\xa0'",
    "something after it": r"msgspec.msgpack.encode([(['A'], '')]) + b'\0'",
}


def test_an_answer_of_another_shape_is_a_crash() -> None:
    """That page fails, the worker is replaced, and later pages are right."""
    reason = "the parser crashed: what it answered makes no sense"
    good = Sizes("A", [1], b"x")
    with WorkerPool(Answers, SETTINGS) as pool:
        for name, answer in FORGED.items():
            assert pool.run(f"!{answer}".encode()) == Sizes(reason), name
            assert pool.run(b"a") == good, name


def test_who_forges_an_answer_fails_alone() -> None:
    items = ["a", "b", "![]", "c"]
    with WorkerPool(Answers, SETTINGS) as pool:
        found = [result.name for result in pool.map(item.encode() for item in items)]
    assert found == ["A", "B", "the parser crashed: what it answered makes no sense", "C"]


def test_an_answer_without_end_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workerprocess, "LARGEST", 1 << 16)
    with WorkerPool(Answers, SETTINGS) as pool:
        for forged in ("bytes(1 << 17)", r"b'\xdc\xff\xff' + bytes(1 << 20)"):
            assert "makes no sense" in pool.run(f"!{forged}".encode()).name
        assert pool.run(b"a").name == "A"


def test_results_that_are_byte_strings() -> None:
    with WorkerPool(Bytes, SETTINGS) as pool:
        assert list(pool.map([b"a", b"", b"b" * 100_000])) == [b"A", b"", b"B" * 100_000]


def test_surrogates_are_replaced() -> None:
    with WorkerPool(Unpaired, SETTINGS) as pool:
        assert list(pool.map([b"a", b"b"])) == ["a?", "b?"]


def test_single_items_from_several_threads() -> None:
    found: dict[str, str] = {}

    def ask(item: str) -> None:
        found[item] = pool.run(item.encode())

    threads = [
        threading.Thread(target=ask, args=(item,)) for item in ("a", "crash", "b", "spin", "c")
    ]
    with upper(TIMEOUT) as pool:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(GENEROUS)
    assert found == {
        "a": "A",
        "b": "B",
        "c": "C",
        "crash": "crash: the parser crashed",
        "spin": "spin: not done within 1 s (parser.timeout)",
    }


def test_batches_are_collected_when_they_are_ready(pool: WorkerPool[str]) -> None:
    bad, good = pool.begin([b"a", b"crash", b"b"]), pool.begin([b"c"])
    while (first := pool.collect(good)) is None:
        wait([good.connection], GENEROUS)
    while (second := pool.collect(bad)) is None:
        wait([bad.connection], GENEROUS)
    assert (first, second) == (["C"], ["A", "crash: the parser crashed", "B"])


def test_an_idle_worker_that_has_died_is_replaced(pool: WorkerPool[str]) -> None:
    pool.warm_up()
    process = pool._idle[0].process
    process.kill()
    process.join()
    assert pool.run(b"a") == "A"


def test_items_are_taken_only_a_little_ahead(pool: WorkerPool[str]) -> None:
    taken = 0

    def items() -> Iterator[bytes]:
        nonlocal taken
        for number in range(100 * BATCH_ITEMS):
            taken += 1
            yield str(number).encode()

    results = pool.map(items())
    assert next(results) == "0"
    assert taken <= 20 * BATCH_ITEMS


UNCLOSED = """
from minutch.cycle.parse.workerpool import PoolSettings, WorkerPool
from tests.cycle.parse.workertasks import Upper
if __name__ == "__main__":
    pool = WorkerPool(Upper, PoolSettings(workers=1, timeout=60, memory=0))
    pool.warm_up()
    print(pool.run(b"a"))
    raise SystemExit(7)
"""


@pytest.mark.slow  # a process
def test_a_pool_that_nobody_closes_does_not_keep_the_interpreter(tmp_path: Path) -> None:
    (tmp_path / "unclosed.py").write_text(UNCLOSED)
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, str(tmp_path / "unclosed.py")]
    found = subprocess.run(
        command, check=False, env=environment, capture_output=True, text=True, timeout=GENEROUS
    )
    assert (found.returncode, found.stdout) == (7, "A\n")


def test_settings() -> None:
    conf = configuration(parser_workers="3", parser_timeout="-1", parser_worker_memory="2")
    assert PoolSettings.from_conf(conf) == PoolSettings(3, -1, 2 << 20, Sandbox())
    assert PoolSettings.from_conf(configuration()).workers == 0
