"""Holds what reaches terminals and logs to text, whatever pages, URLs and headers contain."""

from __future__ import annotations

import io
import logging
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.cycle.fetch.watch import Display
from minutch.cycle.segment.store import CONTENT, part_writer
from minutch.job import CLEAR
from minutch.log import configure
from minutch.records.metadata import Metadata
from minutch.records.protocol import Content
from minutch.terminal import (
    BOLD,
    PLAIN,
    RED,
    YELLOW,
    counted,
    folded,
    folded_command,
    guard,
    raw,
    visible,
    visible_line,
)
from tests.cycle.fetch.test_seen import NOW, Terminal
from tests.support.docshell import command, on_screen
from tests.support.examples import tabled
from tests.support.golden import PROJECT

CLEAR_SCREEN = "\x1b[2J"
TITLE = "\x1b]0;owned\x07"
HOSTILE = f"a{CLEAR_SCREEN}{TITLE}\x9b31m\u202egnp.exe\r\x08\x7f"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\nžluť 漢字 🏖", "plain\ttext\nžluť 漢字 🏖"),
        (CLEAR_SCREEN, "\\x1b[2J"),
        ("\x9b31m\x7f\x00", "\\x9b31m\\x7f\\x00"),
        ("line\rover", "line\\x0dover"),
        ("\u202eabc\u2066\u2028", "\\u202eabc\\u2066\\u2028"),
        (b"\x9b2J\xff".decode("utf-8", "surrogateescape"), "\\x9b2J\\xff"),
        ("\ud83d", "\\ud83d"),
    ],
)
def test_control_characters_are_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_a_line_is_a_line(text: str) -> None:
    shown = visible_line(text)
    assert len(shown.splitlines()) <= 1
    assert all(character == "\t" or ord(character) >= 0x20 for character in shown)
    assert not any(0x7F <= ord(character) <= 0x9F for character in shown)
    shown.encode()


def test_only_terminals_are_guarded() -> None:
    pipe, terminal = io.StringIO(), Terminal()
    guard(pipe).write(HOSTILE)
    assert pipe.getvalue() == HOSTILE
    guarded = guard(terminal)
    assert guard(guarded) is guarded
    guarded.writelines([HOSTILE, "\n"])
    assert "\x1b" not in terminal.getvalue()
    assert terminal.getvalue().isprintable() or terminal.getvalue().endswith("\n")
    raw(guarded).write(CLEAR_SCREEN)
    assert terminal.getvalue().endswith(CLEAR_SCREEN)
    assert raw(pipe) is pipe


@pytest.fixture
def logged(tmp_path: Path) -> Iterator[Path]:
    """The file that the log goes to, and no other place."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.handlers = []
    configure(io.StringIO(), log_file=tmp_path / "hadoop.log")
    yield tmp_path / "hadoop.log"
    for handler in root.handlers:
        handler.close()
    root.handlers, root.level = handlers, level


FORGED = "2026-11-21 13:05:01,250 INFO  crawldb.inject: all is well"


def test_nobody_writes_a_line_of_the_log(logged: Path) -> None:
    logging.getLogger("minutch.cycle.fetch.redirectchain").info(
        "fetch of %s failed", f"http://e.org/\r\n{FORGED}{CLEAR_SCREEN}"
    )
    try:
        raise ValueError(f"bad header:\n{FORGED}\x9b")
    except ValueError:
        logging.getLogger("minutch.cycle.fetch.redirectchain").exception("broken")
    lines = logged.read_text().split("\n")
    assert len([line for line in lines if line.startswith("2")]) == 2
    assert lines[0].endswith(f"fetch of http://e.org/\\x0d\\n{FORGED}\\x1b[2J failed")
    assert not any(character in "".join(lines) for character in "\x1b\x9b\r")


def in_a_terminal(*words: str) -> bytes:
    """Returns what a command writes to a terminal, without minutch's own colours."""
    written = on_screen([*words], PROJECT)[1].encode()
    for own in (CLEAR, BOLD, RED, YELLOW, PLAIN):
        written = written.replace(own.encode(), b"")
    return written


def test_what_a_segment_holds_is_shown_in_a_terminal_as_text(tmp_path: Path) -> None:
    page = Content(
        "http://e.org/", "http://e.org/", f"<title>{HOSTILE}".encode(), "text/html", Metadata()
    )
    page.metadata.set("Server", HOSTILE)
    segment = tmp_path / "20261121130501"
    with part_writer(segment, CONTENT, 0) as append:
        append(page.url, page)
    words = ["readseg", "-get", str(segment), page.url]
    shown = in_a_terminal(*words)
    assert b"\\x1b[2J" in shown
    assert b"Server" in shown
    assert not any(
        hostile in shown for hostile in (b"\x1b", b"\x07", "\x9b".encode(), "\u202e".encode())
    )
    assert HOSTILE in command(words, PROJECT)[1]


def test_an_error_is_shown_as_text() -> None:
    shown = in_a_terminal(f"x{CLEAR_SCREEN}")
    assert b"\x1b" not in shown
    assert b"\\x1b[2J" in shown


def test_the_live_line_is_still_one() -> None:
    terminal = Terminal()
    Display(guard(terminal)).tick(NOW)
    assert terminal.getvalue().startswith("\r\x1b[2K")


@tabled(
    ("count", "plural", "words"),
    [
        (0, "pages", "0 pages"),
        (1, "pages", "1 page"),
        (2_000, "pages", "2,000 pages"),
        (1, "fetches", "1 fetch"),
        (1, "entries", "1 entry"),
        (1, "queues", "1 queue"),
        (1, "URLs", "1 URL"),
        (1, "new", "1 new"),
        (1, "known", "1 known"),
        (1, "rounds", "1 round"),
        (1, "are", "1 is"),
        (3, "were", "3 were"),
    ],
)
def test_words_agree_with_their_counts(count: int, plural: str, words: str) -> None:
    assert counted(count, plural) == words


COMMANDS = (
    "minutch report crawl",
    "minutch crawl --depth 3 https://www.example.org/ https://www.example.com/ www.example.org 3",
    "bin/minutch sql www.example.org \"select url, reason from pages where host = 'www.example.org'"
    " and protocol_status = 'exception' and reason like 'a  b'\"",
    "minutch explain 'http://www.example.org/a page?with=a&lot=of&words=in&it=%20' 'my crawl' -expr"
    " 'score > 1'",
)


@tabled("command", COMMANDS)
@tabled("width", [40, 80])
def test_a_folded_command_is_the_same_to_a_shell(command: str, width: int) -> None:
    """A backslash before a line end joins the lines (POSIX, Shell Command Language, 2.2.1); between
    double quotes the line end stays, and is a blank to SQL.
    """
    found = folded_command(command, width, 7)
    lines = (" " * 7 + found).split("\n")
    longest = max(map(len, re.findall(r"'[^']*'|[^\s]+", command)))
    assert max(map(len, lines)) <= max(width, longest + 15)
    assert folded_command(command, None, 7) == command
    words, ours = (
        subprocess.run(
            ["bash", "-c", f"printf '%s\\0' {text}"], capture_output=True, text=True, check=True
        ).stdout.split("\0")
        for text in (command, found)
    )
    assert [re.sub(r"\n +", " ", word) for word in ours] == words


def test_text_is_folded_below_where_it_begins() -> None:
    text = "one two three http://www.example.org/a-long-address four"
    assert folded(text, 24, 6) == (
        "one two three\n      http://www.example.org/a-long-address\n      four"
    )
    assert folded(text, None, 6) == text
