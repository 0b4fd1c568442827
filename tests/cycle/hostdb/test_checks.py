"""Hosts that are due are looked up, and their records updated."""

from __future__ import annotations

import polars as pl
import pytest

from minutch.cycle.hostdb import hostrecords
from minutch.cycle.hostdb.hostrecords import NEVER, HostChecks
from minutch.records.hostdatum import COUNTS
from minutch.records.hostdatum_columns import HOSTDB_SCHEMA
from tests.support.examples import tabled

NOW = 1_800_000_000_000
HOUR = 3_600_000
NEW, KNOWN, LONG_KNOWN, LOST, LONG_LOST = range(5)
ROWS = [(0, 0), (NOW - HOUR, 0), (NOW - 3 * HOUR, 0), (NOW - 3 * HOUR, 2), (NOW - 4 * HOUR, 2)]
"""Last check and failures; the interval is two hours."""


def hosts() -> pl.DataFrame:
    rows = [
        {"key": b"h%d" % row, "last_check": last, "homepage_url": b"", "score": 0.0}
        | dict.fromkeys(COUNTS, 0)
        | {"dns_failures": failures}
        for row, (last, failures) in enumerate(ROWS)
    ]
    return pl.DataFrame(rows, schema=HOSTDB_SCHEMA)


@tabled(
    ("wanted", "expected"),
    [
        ({}, []),
        ({"new": True}, [NEW]),
        ({"known": True}, [LONG_KNOWN]),
        ({"failed": True}, [LONG_LOST]),
        ({"known": True, "force": True}, [KNOWN, LONG_KNOWN]),
        ({"failed": True, "force": True}, [LOST, LONG_LOST]),
        ({"new": True, "known": True, "failed": True}, [NEW, LONG_KNOWN, LONG_LOST]),
        ({"force": True}, []),
    ],
)
def test_who_is_due(wanted: dict[str, bool], expected: list[int]) -> None:
    due = HostChecks(interval=2 * HOUR, **wanted).due(hosts(), NOW)  # type: ignore[arg-type]
    assert due.arg_true().to_list() == expected
    assert HostChecks(**wanted).any == bool(set(wanted) - {"force"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("threshold", "lost"),
    [
        (NEVER, hostrecords.EXISTING_UNKNOWN),
        (3, hostrecords.EXISTING_UNKNOWN),
        (2, hostrecords.PURGED_UNKNOWN),
        (0, hostrecords.PURGED_UNKNOWN),
    ],
)
def test_no_address(threshold: int, lost: str) -> None:
    found = pl.Series([False] * len(ROWS))
    after = HostChecks(threshold=threshold).after(hosts(), found, NOW)
    assert after["dns_failures"].to_list() == [1, 1, 1, 3, 3]
    assert after["last_check"].unique().to_list() == [NOW]
    first_loss = hostrecords.PURGED_UNKNOWN if threshold == 0 else hostrecords.EXISTING_UNKNOWN
    assert after["outcome"].to_list() == [
        hostrecords.NEW_UNKNOWN,
        first_loss,
        first_loss,
        lost,
        lost,
    ]


def test_an_address() -> None:
    after = HostChecks(threshold=0).after(hosts(), pl.Series([True] * len(ROWS)), NOW)
    assert after["dns_failures"].to_list() == [0] * 5
    known, again = hostrecords.EXISTING_KNOWN, hostrecords.REDISCOVERED
    assert after["outcome"].to_list() == [hostrecords.NEW_KNOWN, known, known, again, again]
