"""Holds what `whatif` finds as facts, and writes it for a terminal. No I/O

Times are seconds but for `now` (ms since the epoch), sizes bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from minutch.cycle.crawl.screen import size
from minutch.inspect.explain.facts import interval
from minutch.terminal import counted, folded, visible_line

_LISTED: Final = 10
_WIDTH: Final = 100
_DAY: Final = 86_400
_LITTLE: Final = 0.01


@dataclass(frozen=True, slots=True)
class RuleShare:
    """What one rule, or one host, has of some URLs; `stored` are those that the crawl has a copy
    of.
    """

    name: str
    urls: int
    stored: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UrlShift:
    """URLs of which the same becomes (`fate`); `rules` and `hosts` are the greatest shares."""

    kind: str
    fate: str
    urls: int
    stored: int
    rules: tuple[RuleShare, ...]
    hosts: tuple[RuleShare, ...]


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A property or rule file that differs; of a file the values are digests."""

    name: str
    before: str | None
    after: str | None
    is_file: bool = False


@dataclass(frozen=True, slots=True)
class QueueOutlook:
    """The pages of a queue of the fetcher, and the time that they take, one after the other:
    `pause` between two, `answer` the mean time to an answer.
    """

    queue: str
    pages: int
    pause: float
    answer: float
    threads: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Outlook:
    """What comes next under one configuration."""

    listed: int
    """Pages in the next fetch list."""
    left_out: dict[str, int]
    """Entries that are not in it, by generate's counters."""
    not_asked: int
    """Pages in the list that the fetcher's own filters leave out (fetcher.filter.urls)."""
    queues: tuple[QueueOutlook, ...]
    """Of the list, those that take longest first; `queue_count` in all."""
    queue_count: int
    seconds: float
    beyond: int
    """Pages of the list that are left to later rounds when the fetch's time is over."""
    due_pages: int
    """Pages that are due, without those that updatedb is to remove."""
    rounds: int
    """Rounds that all of them take at least."""
    due_queue: QueueOutlook | None
    """The queue that is done last."""
    due_seconds: float
    requests_a_day: tuple[float, float]
    """By intervals: if no page is found changed, and if all are; the lower number first."""
    busiest: QueueOutlook | None
    """The queue with the most to do each day: its pages and seconds of a day."""
    bytes_for_due: int
    bytes_a_day: int


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The whole answer. `before` and `after` are the outlooks of both configurations."""

    crawl: str
    now: int
    changes: tuple[SettingChange, ...]
    rules_compared: bool
    urls: int
    stored: int
    segment_bytes: int
    bytes_a_page: int
    shifts: tuple[UrlShift, ...]
    before: Outlook
    after: Outlook
    notes: tuple[str, ...]
    """What people take for granted of settings that differ, and is not so."""
    unknown: tuple[str, ...]


# -- text ------------------------------------------------------------------------------------------


def text(found: WhatIf, width: int | None = None) -> Iterator[str]:
    """Yields the lines for a terminal, in a width if there is one."""
    wide = width or _WIDTH
    for line in _lines(found):
        indent = len(line) - len(line.lstrip()) + 4
        shown = visible_line(line)
        yield shown if width is None else folded_line(shown, wide, indent)


def folded_line(line: str, width: int, indent: int) -> str:
    """Returns a line that goes on below its own text where it is too long."""
    if len(line) <= width:
        return line
    start = line[: len(line) - len(line.lstrip())]
    return start + folded(line.lstrip(), width, indent)


def _lines(found: WhatIf) -> Iterator[str]:
    yield f"{found.crawl}: {counted(found.urls, 'URLs')} known, {found.stored:,} of them stored"
    yield from _changes(found.changes)
    yield from (f"  note: {line}" for line in found.notes)
    yield ""
    yield "URLs"
    if not found.rules_compared:
        yield "  the rules for URLs are the same"
    elif not any(shift.urls for shift in found.shifts):
        yield "  none of those that are known is lost, renamed or gained"
    for shift in found.shifts:
        if shift.urls:
            yield from _shift(shift)
    yield ""
    yield from _table(found)
    yield ""
    yield from _queues(found.after)
    yield ""
    yield "Not known"
    yield from (f"  {line}" for line in found.unknown)


def _changes(changes: Sequence[SettingChange]) -> Iterator[str]:
    if not changes:
        yield "  nothing differs from the crawl's own files: this is what they make of it"
    for change in changes[:_LISTED]:
        values = change.before, change.after
        words = ["not set" if value is None else value or "empty" for value in values]
        # Digests of files, and a plugin.includes of three lines, say nothing side by side.
        is_short = not change.is_file and sum(map(len, words)) <= _WIDTH
        yield f"  {change.name}: {' -> '.join(words) if is_short else 'changed'}"
    if len(changes) > _LISTED:
        yield f"  and {len(changes) - _LISTED} more"


def _shift(shift: UrlShift) -> Iterator[str]:
    stored = f", {shift.stored:,} of them stored" if shift.stored else ""
    yield f"  {shift.kind} {shift.urls:,}{stored}: {shift.fate}"
    for share in shift.rules:
        yield f"    {share.urls:>9,}  {share.name}"
        yield from (f"               {url}" for url in share.examples)
    hosts = [f"{share.name} {share.urls:,}" for share in shift.hosts]
    yield f"    by host: {', '.join(hosts)}"


def _table(found: WhatIf) -> Iterator[str]:
    """Makes a row for each number, with a column for each configuration."""
    both = found.before, found.after
    rows = [
        ("Next round: pages in its list", [f"{one.listed:,}" for one in both]),
        ("  on hosts (queues)", [f"{one.queue_count:,}" for one in both]),
        ("  takes at least", [_time(one.seconds) for one in both]),
        ("  not asked for (fetcher.filter.urls)", [f"{one.not_asked:,}" for one in both]),
        ("  left for later, when time is over", [f"{one.beyond:,}" for one in both]),
        ("Due now", [f"{one.due_pages:,}" for one in both]),
        ("  all done after, at least", [_time(one.due_seconds) for one in both]),
        ("  in rounds, at least", [f"{one.rounds:,}" for one in both]),
        ("  longest queue", [_queue_name(one.due_queue) for one in both]),
        ("  new on disk, at most", [size(one.bytes_for_due) for one in both]),
        ("From then on: requests a day", [_range(one.requests_a_day) for one in both]),
        ("  busiest queue, of each day", [_load(one.busiest) for one in both]),
        ("  new on disk a day, at most", [size(one.bytes_a_day) for one in both]),
    ]
    optional = ("not asked", "left for later")
    rows = [
        (name, cells)
        for name, cells in rows
        if not (name.strip().startswith(optional) and cells == ["0", "0"])
    ]
    left = max(len(name) for name, _ in rows)
    wide = max(14, *(len(cell) for _, cells in rows for cell in cells))
    yield f"{'':{left}}  {'now':>{wide}}  {'then':>{wide}}"
    for name, cells in rows:
        yield f"{name:{left}}  " + "  ".join(f"{cell:>{wide}}" for cell in cells)


def _queues(outlook: Outlook) -> Iterator[str]:
    yield "Queues of the next round that take longest"
    for one in outlook.queues:
        more = f", {one.threads} at a time" if one.threads > 1 else ""
        pace = f"pauses of {one.pause:g} s, answers in {one.answer:.2g} s{more}"
        pages = counted(one.pages, "pages")
        yield f"  {_time(one.seconds):>12}  {one.queue}: {pages}, {pace}"
    if not outlook.queues:
        yield "  none: nothing is due"


def _queue_name(queue: QueueOutlook | None) -> str:
    return "-" if queue is None else f"{queue.queue} {queue.pages:,}"


def _load(queue: QueueOutlook | None) -> str:
    if queue is None:
        return "-"
    share = queue.seconds / _DAY
    return f"{queue.queue} {f'{share:.0%}' if share >= _LITTLE else 'below 1 %'}"


def _time(seconds: float) -> str:
    return interval(seconds) if seconds >= 1 else f"{seconds:.1f} s"


def _range(numbers: tuple[float, float]) -> str:
    least, most = (f"{number:,.{1 if number < 100 else 0}f}" for number in numbers)
    return least if least == most else f"{least} to {most}"
