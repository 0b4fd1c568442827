"""Reads the options that select visits of an archive: -host, -mime, -status, -from and -to."""

from __future__ import annotations

import re
from typing import Final

from minutch.archives.replay.replayer import EVER, VisitFilter
from minutch.commands.arguments import Arguments, Flag
from minutch.warc.reading.visits import arc_time

_STATUS: Final = re.compile(r"[0-9xX]{3}")
_LAST: Final = "99991231235959"
_SECOND: Final = 999
"""Milliseconds after a time to the second."""


def _digits(text: str) -> str:
    digits = re.sub(r"[-:TZtz ]", "", text.partition(".")[0])
    if not re.fullmatch(r"[0-9]{4}(?:[0-9]{2}){0,5}", digits):
        raise ValueError(text)
    return digits


def _time(text: str) -> int:
    digits = _digits(text)
    time = arc_time(digits)
    if not time and not digits.startswith("1970"):
        raise ValueError(text)
    return time


def _end(text: str) -> int:
    """Returns the last millisecond of the period `text`."""
    digits = _digits(text)
    _time(text)
    last = digits + _LAST[len(digits) :]
    if len(digits) <= 6:
        month = int(last[4:6])
        following = f"{int(digits[:4]) + month // 12:04}{month % 12 + 1:02}"
        return arc_time(following) - 1
    return arc_time(last) + _SECOND


FLAGS: Final = (
    Flag("-host", value="host", repeats=True),
    Flag("-mime", value="type", repeats=True),
    Flag("-status", value="status", repeats=True),
    Flag("-from", value="time", convert=_time),
    Flag("-to", value="time", convert=_end),
)


def visit_filter(arguments: Arguments) -> VisitFilter:
    """Returns the filter of a command line. Raises ValueError for an invalid status."""
    statuses = tuple(text.lower() for text in arguments.get("-status", []))
    for text in statuses:
        if not _STATUS.fullmatch(text):
            raise ValueError(f"-status: expected three digits, as 200 or 3xx, found {text}")
    return VisitFilter(
        tuple(text.lower() for text in arguments.get("-host", [])),
        tuple(text.lower() for text in arguments.get("-mime", [])),
        statuses,
        arguments.get("-from", -EVER),
        arguments.get("-to", EVER),
    )
