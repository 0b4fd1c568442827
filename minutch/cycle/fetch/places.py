"""Bounds the requests that may be in flight where nobody does (fetcher.threads.fetch,
`fetch -threads`): a place for each host that may be asked, within memory and file descriptors.
"""

from __future__ import annotations

import logging
import resource
from contextlib import suppress
from typing import Final

log = logging.getLogger(__name__)

PLACE: Final = 1 << 17
"""Bytes that are reckoned for a request in flight: 16 KB for itself, and a page as it comes."""
_OTHERS: Final = 256
"""Descriptors that are left to logs, pipes, name servers and idle connections."""
_LEAST: Final = 16


def places_in(memory: int) -> int:
    """Returns the number of places that so many bytes have room for."""
    return max(_LEAST, memory // PLACE)


def places_here(wanted: int) -> int:
    """Returns `wanted`, or fewer where this process may not open so many connections; lifts the
    limit as far as the system lets it (RLIMIT_NOFILE).
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and soft < hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    most = max(_LEAST, soft - _OTHERS) if soft != resource.RLIM_INFINITY else wanted
    if most < wanted:
        log.info("%d requests at a time: this process may open %d files (ulimit -n)", most, soft)
    return min(wanted, most)
