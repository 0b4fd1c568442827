"""The rule files of the adaptive schedules."""

import logging
from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.cycle.crawldb.adaptive import (
    HOST_FILE,
    AdaptiveFetchSchedule,
    MimeAdaptiveFetchSchedule,
    uri_host,
)

PREFIX = "db.fetch.schedule.adaptive."


def schedule(folder: Path, text: str, name: str = HOST_FILE) -> MimeAdaptiveFetchSchedule:
    (folder / name).write_text(text, encoding="utf-8")
    limits = {PREFIX + "min_interval": "60", PREFIX + "max_interval": "1000"}
    return MimeAdaptiveFetchSchedule(Configuration.load([folder], overrides=limits))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Host.Example 100 200", {"host.example": (100.0, 200.0)}),
        ("h\tdefault\t500", {"h": (60.0, 500.0)}),
        ("h 70 DEFAULT", {"h": (70.0, 1000.0)}),
        ("h 70.5 0", {"h": (70.5, 1000.0)}),
        ("h 60 1000f", {"h": (60.0, 1000.0)}),
        ("# h 70 80", {}),
        ("   ", {}),
    ],
)
def test_hosts(tmp_path: Path, line: str, expected: dict[str, tuple[float, float]]) -> None:
    assert schedule(tmp_path, line + "\n").host_bounds == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("h 70", "expected a host"),
        ("h a b", "could not convert"),
        ("h 0 default", "both intervals are the default"),
        ("h -70 80", "negative"),
        ("h 90 80", "above the longest"),
        ("h 10 80", "below the general one, 60"),
        ("h 70 2000", "above the general one, 1000"),
    ],
)
def test_wrong_lines_are_named_and_left_out(
    tmp_path: Path, line: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        assert schedule(tmp_path, f"\nok 70 80\n{line}\n").host_bounds == {"ok": (70.0, 80.0)}
    assert f"{HOST_FILE}, line 3" in caplog.text
    assert message in caplog.text


def test_bounds_are_of_the_host_of_the_url(tmp_path: Path) -> None:
    found = schedule(tmp_path, "a.example 100 200\n")
    assert found.bounds("http://a.example/x") == (100.0, 200.0)
    assert found.bounds("http://b.example/a.example") == (60.0, 1000.0)
    assert found.bounds("http://A.example/") == (
        60.0,
        1000.0,
    )  # as in Nutch, only the file's side is lower-cased


def test_rates_of_mime_types(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = schedule(
        tmp_path,
        "# type\tinc\tdec\nText/HTML\t0.5\t0.25\napplication/pdf 0.1 0.4\nx/y\tone\t2\n",
        "adaptive-mimetypes.txt",
    )
    assert found.mime_rates == {"text/html": (0.5, 0.25)}
    assert "line 3" in caplog.text
    assert "line 4" in caplog.text


def test_a_missing_file_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    conf = Configuration.load([], overrides={"db.fetch.schedule.mime.file": "no-such-file.txt"})
    assert MimeAdaptiveFetchSchedule(conf).mime_rates == {}
    assert "no-such-file.txt" in caplog.text


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://a.example/", "a.example"),
        ("http://user@a.example:8080/?q", "a.example"),
        ("http://A.Example", "A.Example"),
        ("http://[::1]/", "[::1]"),
        ("http://under_score.example/", None),
        ("http://a.example/ space", None),
        ("mailto:a@b", None),
    ],
)
def test_hosts_of_uris(url: str, host: str | None) -> None:
    assert uri_host(url) == host


def test_no_host_file_no_bounds(tmp_path: Path) -> None:
    conf = Configuration.load([tmp_path]).with_values(
        {PREFIX + "min_interval": "5", PREFIX + "max_interval": "6"}
    )
    assert AdaptiveFetchSchedule(conf).bounds("http://a.example/") == (5.0, 6.0)
