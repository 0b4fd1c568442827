"""Runs a job per partition on all cores: how many partitions, how many threads, how much memory.

Kernels and Polars let go of Python's lock, so threads of one process are enough.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from minutch import processwide

if TYPE_CHECKING:
    from minutch.conf import Configuration

MEMORY_PROPERTY = "minutch.memory"
"""Bytes (k, m, g suffixes allowed) that a job's tables may take; 0 or unset is an eighth of the
memory that this process may have.
"""

T = TypeVar("T")
R = TypeVar("R")


def memory_budget(conf: Configuration | None = None) -> int:
    """Returns the bytes that a job's tables may take together: `minutch.memory`, where there is no
    configuration the process's; else an eighth of what this process may have.

    Jobs that hold several tables at a time share it out; files that are mapped into memory don't
    count.
    """
    asked = processwide.settings().memory if conf is None else conf.get_size(MEMORY_PROPERTY, 0)
    return asked or available_memory() // 8


def sorting_memory(conf: Configuration) -> int:
    """Returns the bytes that rows may take before they are sorted on disk: half of the job's."""
    return memory_budget(conf) // 2


def available_memory(root: Path = Path("/")) -> int:
    """Returns the bytes of memory that this process may have: the machine's, or fewer where a
    container or a systemd unit has a limit (--memory; MemoryMax, MemoryHigh).
    """
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for group in _control_groups(root):
        for name in ("memory.max", "memory.high"):
            with suppress(OSError, ValueError):  # no such file; `max` is no limit
                limits.append(int((group / name).read_text(encoding="ascii")))
    return min(limits)


def cores(root: Path = Path("/")) -> int:
    """Returns the number of cores that this process may use: those it may run on, or fewer where a
    container or a systemd unit gets a share of their time (--cpus; CPUQuota).
    """
    may_run = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    limits = [may_run or 1]
    for group in _control_groups(root):
        with suppress(OSError, ValueError):
            # "max", no quota, is a ValueError.
            quota, period = map(int, (group / "cpu.max").read_text(encoding="ascii").split())
            limits.append(max(1, math.ceil(quota / period)))  # half a core is still one thread
    return min(limits)


def _control_groups(root: Path) -> Iterator[Path]:
    """Yields the folders of this process's control group and of all above it, whose limits hold,
    too. In a container its own path may be the host's, which is not there.

    Source: Linux, Documentation/admin-guide/cgroup-v2.rst.
    """
    groups = root / "sys/fs/cgroup"
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text("utf-8", "replace").splitlines():
            if line.startswith("0::/"):  # cgroup v2
                own = groups / line.removeprefix("0::/")
                yield from (group for group in (own, *own.parents) if group.is_relative_to(groups))


def number_of_parts(conf: Configuration) -> int:
    """Returns the number of partitions that a job writes: mapreduce.job.reduces."""
    return max(1, conf.get_int("mapreduce.job.reduces", 1))


def workers() -> int:
    """Returns how many threads work at the same time: one per core that this process may use."""
    return processwide.settings().cores or cores()


def for_each(work: Callable[[T], R], items: Iterable[T], threads: int = 0) -> list[R]:
    """Calls `work` on each item in `threads` threads (0 = one per core); returns results in the
    order of the items.

    The first error is raised after running work has ended; work that has not begun by then is
    dropped.
    """
    return list(ordered(work, items, threads))


def ordered(
    work: Callable[[T], R], items: Iterable[T], threads: int = 0, *, leave: bool = False
) -> Iterator[R]:
    """Yields the results of `for_each` as they come; only as many items as there are threads are in
    progress.

    Where the rest is not wanted, the iterator is closed when work under way has ended. With `leave`
    such work, which must change nothing, is left to itself: the iterator may be dropped anywhere,
    even in one of the threads.
    """
    count = threads or workers()
    if count == 1:
        yield from map(work, items)
        return
    pool = ThreadPoolExecutor(count)
    ended = False
    try:
        running: list[Future[R]] = []
        for item in items:
            running.append(pool.submit(work, item))
            # One item more than there are threads: none idles while the caller works.
            if len(running) > count:
                yield running.pop(0).result()
        while running:
            yield running.pop(0).result()
        ended = True
    finally:
        pool.shutdown(wait=ended or not leave, cancel_futures=True)
