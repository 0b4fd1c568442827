"""Counters and progress."""

from __future__ import annotations

import io
import logging

import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.job import Counters, JobContext


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def context(err: io.StringIO | None = None) -> JobContext:
    return JobContext(Configuration(), FakeClock(), io.StringIO(), err or io.StringIO())


def test_counters_add_up_in_order() -> None:
    counters = Counters()
    counters.add("read", 3)
    counters.add("dropped", 0)
    counters.merge({"read": 2, "new": 1})
    assert str(counters) == "read 5, dropped 0, new 1"


def test_report_is_logged_and_kept(caplog: pytest.LogCaptureFixture) -> None:
    job = context()
    with caplog.at_level(logging.INFO):
        job.report("inject", Counters(read=12, rejected=3))
    assert [record.getMessage() for record in caplog.records] == [
        "inject: read     12",
        "inject: rejected 3",
    ]
    assert job.reports == {"inject": {"read": 12, "rejected": 3}}


def test_print_goes_to_out() -> None:
    job = context()
    job.print("a", 1)
    job.print("b", end="")
    assert job.out.getvalue() == "a 1\nb"  # type: ignore[attr-defined]


def test_a_short_job_shows_nothing(caplog: pytest.LogCaptureFixture) -> None:
    job = context()
    with caplog.at_level(logging.INFO), job.progress("inject", 10) as progress:
        progress.advance(10)
        job.clock.advance(0.9)  # type: ignore[attr-defined]
    assert caplog.text == ""


def test_plain_lines_in_a_pipe(caplog: pytest.LogCaptureFixture) -> None:
    job = context()
    with caplog.at_level(logging.INFO), job.progress("inject", 4000) as progress:
        for _ in range(180):
            job.clock.advance(1)  # type: ignore[attr-defined]
            progress.advance(10)
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        "inject: 600 of 4,000 records, 10/s, 5:40 left",
        "inject: 1,200 of 4,000 records, 10/s, 4:40 left",
        "inject: 1,800 of 4,000 records, 10/s, 3:40 left",
        "inject: 1,800 records, 10/s, done",
    ]


def test_an_unknown_total(caplog: pytest.LogCaptureFixture) -> None:
    job = context()
    with caplog.at_level(logging.INFO), job.progress("text") as progress:
        job.clock.advance(60)  # type: ignore[attr-defined]
        progress.advance(60)
    assert caplog.records[0].getMessage() == "text: 60 records, 1/s, time left unknown"


def test_a_live_line_in_a_terminal() -> None:
    err = Terminal()
    job = context(err)
    with job.progress("updatedb", 200) as progress:
        job.clock.advance(2)  # type: ignore[attr-defined]
        progress.advance(100)
        assert err.getvalue() == "\r\x1b[2Kupdatedb: 100 of 200 records, 50/s, 0:02 left"
        job.clock.advance(2)  # type: ignore[attr-defined]
        progress.advance(50)
    assert err.getvalue().endswith(
        "\r\x1b[2Kupdatedb: 150 of 200 records, 38/s, 0:01 left\r\x1b[2K"
    )


def test_the_rate_is_that_of_the_last_half_minute() -> None:
    """A job that was fast and is slow has more time left than its mean says."""
    err = Terminal()
    job = context(err)
    with job.progress("parse", 10_000) as progress:
        for count in [100] * 60 + [10] * 40:
            job.clock.advance(1)  # type: ignore[attr-defined]
            progress.advance(count)
        last = err.getvalue().rpartition("\x1b[2K")[2]
        assert last == "parse: 6,400 of 10,000 records, 10/s, 6:00 left"
        assert progress.rate == 64


def test_a_failed_job_says_nothing_of_being_done(caplog: pytest.LogCaptureFixture) -> None:
    job = context()
    with caplog.at_level(logging.INFO), pytest.raises(OSError, match="disk"), job.progress("dedup"):
        job.clock.advance(5)  # type: ignore[attr-defined]
        raise OSError("disk")
    assert caplog.text == ""


def test_a_total_is_asked_for_only_when_it_shows(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[int] = []

    def total() -> int:
        asked.append(1)
        return 300

    job = context()
    with caplog.at_level(logging.INFO), job.progress("short", total) as progress:
        progress.advance(5)
    assert asked == []
    with caplog.at_level(logging.INFO), job.progress("long", total) as progress:
        job.clock.advance(100)  # type: ignore[attr-defined]
        progress.advance(100)
        progress.expect(lambda: 0)
        job.clock.advance(100)  # type: ignore[attr-defined]
        progress.advance(50)
        progress.expect(lambda: 450)
        job.clock.advance(100)  # type: ignore[attr-defined]
        progress.advance(150)
    assert [record.getMessage() for record in caplog.records] == [
        "long: 100 of 300 records, 1/s, 3:20 left",
        "long: 150 of 300 records, 0/s, 5:00 left",
        "long: 300 of 600 records, 2/s, 3:20 left",
        "long: 300 records, 1/s, done",
    ]
