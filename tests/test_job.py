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
    assert [record.getMessage() for record in caplog.records] == ["inject: read     12", "inject: rejected 3"]
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
        for _ in range(30):
            job.clock.advance(1)  # type: ignore[attr-defined]
            progress.advance(100)
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        "inject: 1,000 of 4,000 records, 100/s, 30 s left",
        "inject: 2,000 of 4,000 records, 100/s, 20 s left",
        "inject: 3,000 of 4,000 records, 100/s, 10 s left",
        "inject: 3,000 of 4,000 records, 100/s, done",
    ]


def test_an_unknown_total(caplog: pytest.LogCaptureFixture) -> None:
    job = context()
    with caplog.at_level(logging.INFO), job.progress("text") as progress:
        job.clock.advance(20)  # type: ignore[attr-defined]
        progress.advance(10)
    assert caplog.records[0].getMessage() == "text: 10 records, 0/s, time left unknown"


def test_a_live_line_in_a_terminal() -> None:
    err = Terminal()
    job = context(err)
    with job.progress("updatedb", 200) as progress:
        job.clock.advance(2)  # type: ignore[attr-defined]
        progress.advance(100)
        progress.advance(100)
    assert "updatedb" in err.getvalue()
    assert "200 records" in err.getvalue()
    assert "50/s" in err.getvalue()


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
        job.clock.advance(10)  # type: ignore[attr-defined]
        progress.advance(100)
        progress.expect(lambda: 0)
        job.clock.advance(10)  # type: ignore[attr-defined]
        progress.advance(50)
        progress.expect(lambda: 450)
        job.clock.advance(10)  # type: ignore[attr-defined]
        progress.advance(150)
    assert [record.getMessage() for record in caplog.records] == [
        "long: 100 of 300 records, 10/s, 20 s left",
        "long: 150 of 300 records, 8/s, 20 s left",
        "long: 300 of 600 records, 10/s, 30 s left",
        "long: 300 of 600 records, 10/s, done",
    ]
