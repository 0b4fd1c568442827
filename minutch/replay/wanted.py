"""Which visits of an archive are wanted: by host, media type, status and time. The one home of that. Pure: no I/O.

    -host example.org       the host, or `*.example.org`: all below it, and itself
    -mime text/html         the type that the answer declares, or `text/*`
    -status 200             the status, or `3xx`
    -from, -to              times: 2012, 201201, 2012-01-31, 20120131120000, 2012-01-31T12:00:00Z; -to has all of it

Of each kind one must match; a kind that is not given lets all pass.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from minutch.archive.reading.visits import Visit, arc_time
from minutch.arguments import Arguments, Flag
from minutch.urls.parts import host_of

_STATUS: Final = re.compile(r"[0-9xX]{3}")
_LAST: Final = "99991231235959"
_EVER: Final = 0x7FFF_FFFF_FFFF_FFFF
_SECOND: Final = 999
"""ms that a time to the second leaves open."""


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
    """The last millisecond that `text` may mean."""
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


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for. Times in ms, both ends included."""

    hosts: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    first: int = -_EVER
    last: int = _EVER

    @classmethod
    def given(cls, given: Arguments) -> Wanted:
        """By the flags. ValueError for a status that is none."""
        statuses = tuple(text.lower() for text in given.get("-status", []))
        for text in statuses:
            if not _STATUS.fullmatch(text):
                raise ValueError(f"-status: expected three digits, as 200 or 3xx, found {text}")
        return cls(
            tuple(text.lower() for text in given.get("-host", [])),
            tuple(text.lower() for text in given.get("-mime", [])),
            statuses,
            given.get("-from", -_EVER),
            given.get("-to", _EVER),
        )

    def place(self, url: str, time: int) -> bool:
        """Whether a visit to `url` at `time` may be wanted."""
        if not self.first <= time <= self.last:
            return False
        return not self.hosts or any(_is_host(host_of(url) or "", wanted) for wanted in self.hosts)

    def result(self, status: int, media_type: str) -> bool:
        """Whether what the visit brought is wanted."""
        if self.statuses and not any(_is_status(f"{status:03}", wanted) for wanted in self.statuses):
            return False
        declared = media_type.partition(";")[0].strip().lower()
        return not self.types or any(_is_type(declared, wanted) for wanted in self.types)

    def visit(self, visit: Visit) -> bool:
        """Whether a visit is wanted, its content known."""
        return self.place(visit.url, visit.time) and self.result(visit.status, media_type(visit))


def media_type(visit: Visit) -> str:
    """The type that an answer declares."""
    for line in [] if visit.answer is None else visit.answer.head[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-type":
            return value.decode("latin-1").strip()
    return visit.media_type


def _is_host(host: str, wanted: str) -> bool:
    if wanted.startswith("*."):
        return host == wanted[2:] or host.endswith(wanted[1:])
    return host == wanted


def _is_status(status: str, wanted: str) -> bool:
    return all(w in ("x", c) for c, w in zip(status, wanted, strict=True))


def _is_type(declared: str, wanted: str) -> bool:
    return declared.startswith(wanted[:-1]) if wanted.endswith("/*") else declared == wanted
