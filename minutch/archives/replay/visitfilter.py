"""Decides which visits of an archive are wanted: by host, media type, status and time. The only
module that does. Pure: no I/O.

    -host example.org       a host, or `*.example.org`: it and all hosts below it
    -mime text/html         the media type that the response declares, or `text/*`
    -status 200             a status, or `3xx`
    -from, -to              times: 2012, 201201, 2012-01-31, 20120131120000,
                            2012-01-31T12:00:00Z; -to includes all of the period

Of each option that is given, one value must match.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from minutch.mediatypes import essence
from minutch.urls.parts import host_of
from minutch.warc.reading.visits import Visit

EVER: Final = 0x7FFF_FFFF_FFFF_FFFF


@dataclass(frozen=True, slots=True)
class VisitFilter:
    """A filter of visits. Times are in ms, both ends are included."""

    hosts: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    first: int = -EVER
    last: int = EVER

    def matches_target(self, url: str, time: int) -> bool:
        """Returns whether a visit to `url` at `time` may be wanted."""
        if not self.first <= time <= self.last:
            return False
        return not self.hosts or any(_is_host(host_of(url) or "", wanted) for wanted in self.hosts)

    def matches_answer(self, status: int, media_type: str) -> bool:
        """Returns whether a response is wanted."""
        if self.statuses and not any(
            _is_status(f"{status:03}", wanted) for wanted in self.statuses
        ):
            return False
        declared = essence(media_type)
        return not self.types or any(_is_type(declared, wanted) for wanted in self.types)

    def matches(self, visit: Visit) -> bool:
        """Returns whether a visit with a known response is wanted."""
        return self.matches_target(visit.url, visit.time) and self.matches_answer(
            visit.status, media_type(visit)
        )


def media_type(visit: Visit) -> str:
    """Returns the media type that a response declares."""
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
