"""Logging set-up."""

from __future__ import annotations

import io
import logging
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from minutch import processwide
from minutch.errors import StoreError
from minutch.log import also_to, complaints, configure


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, settings = list(root.handlers), root.level, processwide.settings()
    root.handlers = []
    yield
    processwide.use(settings)
    for handler in root.handlers:
        handler.close()
    root.handlers, root.level = handlers, level


def test_a_line_per_event_without_the_package(tmp_path: Path) -> None:
    stream = io.StringIO()
    configure(stream, log_file=tmp_path / "logs" / "hadoop.log")
    logging.getLogger("minutch.cycle.crawldb.inject").info("%d seeds", 3)
    logging.getLogger("minutch.cycle.crawldb.inject").debug("hidden")
    logging.getLogger("httpx").info("hidden")
    line = stream.getvalue()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO  crawldb\.inject: 3 seeds\n", line
    )
    assert (tmp_path / "logs" / "hadoop.log").read_text() == line


def test_configuring_again_replaces() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure(first)
    configure(second, level=logging.DEBUG)
    logging.getLogger("minutch.x").debug("seen")
    assert first.getvalue() == ""
    assert second.getvalue().endswith("DEBUG x: seen\n")


def test_only_what_is_live(tmp_path: Path) -> None:
    stream = io.StringIO()
    configure(stream, log_file=tmp_path / "hadoop.log", only_live=True)
    logging.getLogger("minutch.progress").info("half")
    logging.getLogger("minutch.cycle.crawldb.inject").info("hidden")
    logging.getLogger("minutch.cycle.crawldb.inject").warning("odd")
    logging.getLogger("minutch_plugins_0a1b2c3d.lib_http.names").warning("odd, too")
    assert [line.partition(",")[2][4:] for line in stream.getvalue().splitlines()] == [
        "INFO  progress: half",
        "WARNING crawldb.inject: odd",
        "WARNING lib_http.names: odd, too",
    ]
    assert "hidden" in (tmp_path / "hadoop.log").read_text()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_log_that_can_not_be_written_is_said_once() -> None:
    """Linux has a file for which there is never room."""
    stream = io.StringIO()
    handlers = configure(stream, log_file=Path("/dev/full"))
    try:
        for number in range(3):
            logging.getLogger("minutch.x").info("line %d", number)
    finally:
        for handler in handlers:
            logging.getLogger().removeHandler(handler)
            handler.close()
    lines = [line.split(" ", 2)[2].strip() for line in stream.getvalue().splitlines()]
    assert sorted(lines) == [
        "ERROR logfile: can't write /dev/full: No space left on device; what follows is not in it",
        *(f"INFO  x: line {number}" for number in range(3)),
    ]


@pytest.mark.parametrize("copied", [False, True])
def test_a_log_that_is_rotated_goes_on_under_its_name(tmp_path: Path, copied: bool) -> None:
    """As logrotate does it: renames the file, or copies it and makes it empty (copytruncate)."""
    file, old = tmp_path / "crawl.log", tmp_path / "crawl.log.1"
    configure(io.StringIO(), log_file=file)
    logging.getLogger("minutch.x").warning("http://a/: odd, long before it was rotated")
    length = file.stat().st_size
    if copied:
        shutil.copy(file, old)
        os.truncate(file, 0)
    else:
        file.rename(old)
    assert complaints(file, length) == {}
    logging.getLogger("minutch.x").warning("http://b/: odd")
    assert [line[-20:] for line in old.read_text().splitlines()] == ["before it was rotated"[1:]]
    assert [line[-14:] for line in file.read_text().splitlines()] == ["http://b/: odd"]
    assert complaints(file, length) == {"odd": 1}


def test_a_log_whose_folder_is_gone_is_said_once(tmp_path: Path) -> None:
    stream = io.StringIO()
    configure(stream, log_file=tmp_path / "logs" / "crawl.log")
    shutil.rmtree(tmp_path / "logs")
    for number in range(3):
        logging.getLogger("minutch.x").info("line %d", number)
    assert stream.getvalue().count("what follows is not in it") == 1
    assert stream.getvalue().count("INFO  x: line") == 3


def test_a_program_that_logs_in_its_own_way_hears_what_it_heard(tmp_path: Path) -> None:
    """Its loggers keep their levels; the file has all that minutch says."""
    root, heard = logging.getLogger(), list[str]()

    class Own(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    names = ("minutch.cycle.x", "minutch_plugins_y", "mine", "theirs")
    before, level = root.handlers[:], root.level
    root.handlers[:], root.level = [Own()], logging.WARNING
    logging.getLogger("mine").setLevel(logging.DEBUG)
    try:
        with also_to(tmp_path / "crawl.log"):
            for name in names:
                for each in (logging.DEBUG, logging.INFO, logging.WARNING):
                    logging.getLogger(name).log(each, "%s %d", name, each)
        assert root.level == logging.WARNING and len(root.handlers) == 1
    finally:
        root.handlers[:], root.level = before, level
        logging.getLogger("mine").setLevel(logging.NOTSET)
    assert heard == [
        f"{name} {each}" for name in names for each in (10, 20, 30) if each == 30 or name == "mine"
    ]
    lines = (tmp_path / "crawl.log").read_text(encoding="utf-8").splitlines()
    assert [line.split(": ")[1] for line in lines] == [
        f"{name} {each}" for name in names[:2] for each in (20, 30)
    ]


def test_a_link_in_a_crawls_folder_is_no_log(tmp_path: Path) -> None:
    """A crawl that came from somebody else would have lines appended to any file."""
    precious = tmp_path / "precious"
    precious.write_text("mine\n")
    (tmp_path / "crawl.log").symlink_to(precious)
    with pytest.raises(StoreError, match=r"crawl\.log: expected a file, found a link"):
        configure(io.StringIO(), log_file=tmp_path / "crawl.log", in_crawl=True)
    assert precious.read_text() == "mine\n"
