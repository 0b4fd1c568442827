"""What a fetch shows: a live line in a terminal, Nutch's status lines in a pipe, tables at the end.

    fetch 01:23  12,345 pages  148.2/s  3,210 KB/s  queues 87  active 50/50  errors 12  oldest wait 4.8 s  left 02:10
    01:23 12,345 pages 148/s 3,210 KB/s q 87 act 50/50 err 12 wait 4.8s left 02:10          where the first does not fit

The oldest wait is that of the request that has been under way for longest.
Nutch's lines are those of Fetcher.FetcherRun: `-activeThreads=…, spinWaiting=…, fetchQueues.totalSize=…` and the
task status with threads, queues, pages, errors and rates.
"""

from __future__ import annotations

import logging
import shutil
from typing import Final, TextIO

from minutch.fetch.ledger import Ledger
from minutch.fetch.loop import Snapshot
from minutch.fetch.stats import FetchStats

log = logging.getLogger(__name__)

SLOWEST: Final = 10
"""Hosts in the table at the end."""
_KILOBIT: Final = 128
"""Bytes."""


def clock_time(seconds: float) -> str:
    """`mm:ss`, with hours where there are any."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def time_left(snapshot: Snapshot) -> str:
    """By the rate so far; `?` as long as nothing is done or the total is not known."""
    if snapshot.total is None or not snapshot.done:
        return "?"
    return clock_time(max(0, snapshot.total - snapshot.done) * snapshot.seconds / snapshot.done)


def live_line(snapshot: Snapshot, width: int) -> str:
    """The line in a terminal that is `width` characters wide."""
    seconds = max(snapshot.seconds, 0.001)
    line = (
        f"fetch {clock_time(snapshot.seconds)}  {snapshot.pages:,} pages  {snapshot.pages / seconds:,.1f}/s  "
        f"{snapshot.bytes / seconds / 1024:,.0f} KB/s  queues {snapshot.queues}  "
        f"active {snapshot.active}/{snapshot.threads}  errors {snapshot.errors}  "
        f"oldest wait {snapshot.oldest_wait:.1f} s  left {time_left(snapshot)}"
    )
    if len(line) < width:
        return line
    line = (
        f"{clock_time(snapshot.seconds)} {snapshot.pages:,} pages {snapshot.pages / seconds:,.0f}/s "
        f"{snapshot.bytes / seconds / 1024:,.0f} KB/s q {snapshot.queues} act {snapshot.active}/{snapshot.threads} "
        f"err {snapshot.errors} wait {snapshot.oldest_wait:.1f}s left {time_left(snapshot)}"
    )
    return line[: width - 1]


def status_lines(snapshot: Snapshot) -> tuple[str, str]:
    """Nutch's two lines."""
    seconds = max(snapshot.seconds, 1.0)
    waiting = snapshot.threads - snapshot.active
    blocked = f"{snapshot.blocked} queues.max.except., " if snapshot.blocked else ""
    return (
        f"-activeThreads={snapshot.threads}, spinWaiting={waiting}, "
        f"fetchQueues.totalSize={snapshot.waiting}, fetchQueues.getQueueCount={snapshot.queues}",
        f"{snapshot.threads} threads ({waiting} waiting), {snapshot.queues} queues, {blocked}"
        f"{snapshot.waiting} URLs queued, {snapshot.pages} pages, {snapshot.errors} errors, "
        f"{snapshot.pages / seconds:.2f} pages/s ({snapshot.pages_last_second} last sec), "
        f"{int(snapshot.bytes / _KILOBIT / seconds)} kbits/s ({snapshot.bytes_last_second // _KILOBIT} last sec)",
    )


class Display:
    """Shows snapshots as they come: one line that is written over in a terminal, else lines in the log."""

    def __init__(self, err: TextIO) -> None:
        self._err = err
        self._live = err.isatty()
        self._shown = False
        self.latest: Snapshot | None = None
        """What was shown last."""

    def tick(self, snapshot: Snapshot) -> None:
        """Show the state of the fetch."""
        self.latest = snapshot
        if not self._live:
            for line in status_lines(snapshot):
                log.info("%s", line)
            return
        self._err.write("\r\x1b[2K" + live_line(snapshot, shutil.get_terminal_size().columns))
        self._err.flush()
        self._shown = True

    def clear(self) -> None:
        """Take the live line away."""
        if self._shown:
            self._err.write("\r\x1b[2K")
            self._err.flush()
            self._shown = False


def result_table(ledger: Ledger) -> list[str]:
    """URLs by outcome."""
    rows = [(label, count) for label, count in ledger.counters().items()]
    width = max(len(label) for label, _ in rows)
    return [f"{label:<{width}} {count:>10,}" for label, count in rows]


def host_table(stats: FetchStats) -> list[str]:
    """The slowest hosts: requests, mean and longest time, failures."""
    slowest = stats.slowest(SLOWEST)
    if not slowest:
        return []
    width = max(len("slowest hosts"), *(len(name) for name, _ in slowest))
    lines = [f"{'slowest hosts':<{width}} {'requests':>9} {'mean ms':>9} {'max ms':>9} {'errors':>7}"]
    for name, times in slowest:
        lines.append(
            f"{name:<{width}} {times.requests:>9,} {times.mean_ms:>9,.0f} {times.longest_ms:>9,} {times.errors:>7,}"
        )
    return lines
