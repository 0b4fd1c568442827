"""A crawl shows a live line that goes away, colours where they are wanted, and 80 columns.

One crawl has a process and a terminal of its own; the others are of this process, whose streams say
that they are terminals.
"""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from minutch.inspect.query.crawl import open_crawl
from tests.support.demo import definitions, write_seeds
from tests.support.docshell import command
from tests.support.docshell import on_screen as screen_of
from tests.support.golden import PROJECT
from tests.support.siteserver import SiteServer

WITHOUT = [("TERM", "dumb"), ("NO_COLOR", "1")]
ESCAPE = re.compile(r"\x1b\[\d*[A-Za-z]")


def in_terminal(folder: Path, *words: str, **environment: str) -> str:
    """All that a command, in a process of its own, writes to a terminal of 80 columns."""
    main, side = pty.openpty()
    environment = {
        "TERM": "xterm",
        "COLUMNS": "80",
        "MINUTCH_PROGRAM": "bin/minutch",
        "PYTHONPATH": str(PROJECT),
        **environment,
    }
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NO_COLOR", "NUTCH_CONF_DIR")
    }
    with subprocess.Popen(
        [sys.executable, "-m", "minutch", *words],
        cwd=folder,
        env={**inherited, **environment},
        stdin=side,
        stdout=side,
        stderr=side,
        close_fds=True,
    ):
        os.close(side)
        parts = []
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if not select.select([main], [], [], 1)[0]:
                continue
            try:
                part = os.read(main, 65536)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            parts.append(part)
    os.close(main)
    return b"".join(parts).decode("utf-8", "replace")


def on_screen(text: str) -> list[str]:
    """The lines that are left when all is written: what was written over is gone."""
    return [ESCAPE.sub("", line.rpartition("\x1b[2K")[2]).rstrip("\r") for line in text.split("\n")]


def too_wide(lines: list[str]) -> list[str]:
    """Lines of several words that do not fit; one word, as of -D, is left whole to be copied."""
    return [line for line in lines if len(line) > 80 and " " in line.strip().removesuffix(" \\")]


def crawl(folder: Path, server: SiteServer) -> list[str]:
    write_seeds(folder, server.site)
    return ["crawl", *definitions(), "-D", "fetcher.server.delay=0.15", "seeds", "crawl", "2"]


@pytest.mark.slow  # a process
def test_a_crawl(tmp_path: Path) -> None:
    with SiteServer() as server:
        text = in_terminal(tmp_path, *crawl(tmp_path, server))
    assert re.search(
        r"\x1b\[2Kround 2 of 2, fetch: \d+ of 15 pages, (\d:\d\d left, )?[\d.]+/s, \d+ KB/s,"
        r" \d hosts?, \d errors?",
        text,
    )
    assert "\x1b[1mRound 1 of 2\x1b[0m" in text
    lines = on_screen(text)
    assert too_wide(lines) == []
    assert not any("fetch:" in line or line.endswith("…") for line in lines)
    assert any(line.startswith("  fetch ") for line in lines)
    assert "2 rounds in 0:" in "\n".join(lines)


@pytest.mark.slow  # processes
@pytest.mark.parametrize(("name", "value"), WITHOUT)
def test_a_crawl_without_colours(name: str, value: str, tmp_path: Path) -> None:
    with SiteServer() as server:
        text = in_terminal(tmp_path, *crawl(tmp_path, server), **{name: value})
    assert "Round 1 of 2" in text
    assert not re.search(r"\x1b\[\d+m", text)
    assert name == "NO_COLOR" or "\x1b" not in text


def test_a_round_has_a_bold_title(crawled: tuple[Path, SiteServer], tmp_path: Path) -> None:
    folder, server = crawled
    shutil.copytree(folder / "crawl", tmp_path / "crawl")
    at_once = ["-D", "fetcher.server.delay=0", "-D", "fetcher.min.crawl.delay=0"]
    words = ["crawl", *definitions(), *at_once, server.site.url("two"), "crawl", "1"]
    text = screen_of(words, tmp_path)[1]
    assert "\x1b[1mRound 1 of 1\x1b[0m" in text
    lines = on_screen(text)
    assert too_wide(lines) == []
    assert any(line.startswith("  fetch ") for line in lines)


@pytest.mark.parametrize(("name", "value"), [("TERM", "xterm"), *WITHOUT])
def test_errors_are_red_and_last(
    name: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    words = ["crawl", "-D", "http.agent.name=t", "nowhere", "crawl", "1"]
    code, text = screen_of(words, tmp_path)
    assert code == 255
    assert on_screen(text)[-3:] == [
        "error: no seeds: nowhere does not exist",
        "hint: a file with a URL per line, or a folder of such files",
        "",
    ]
    assert ("\x1b[31merror:\x1b[0m" in text) is (value == "xterm")
    assert (ESCAPE.search(text) is None) is (value != "xterm")


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("HOME", str(tmp_path))  # the prompt's history
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, SiteServer]]:
    folder = tmp_path_factory.mktemp("crawled")
    with SiteServer() as server:
        write_seeds(folder, server.site)
        words = [*definitions(), "-D", "fetcher.server.delay=0", "seeds", "crawl", "2"]
        assert command(["crawl", *words], folder)[0] == 0
        yield folder, server


@pytest.mark.parametrize(
    ("words", "has"),
    [
        (("explain", "crawl"), "What is growing"),
        (("explain", "{}", "crawl"), "History"),
        (("explain", "{}nowhere", "crawl"), "  To bring it in: inject it: bin/minutch inject "),
        (("explain", "{}unindexed.html", "crawl"), "noindex,nofollow: title and text are left"),
        (
            ("sql", "crawl", "select foo from parses"),
            "hint: the columns are segment, url, status,",
        ),
        (("sql", "crawl", "select sig"), "hint: from which table? crawldb, linkdb, "),
        (("readdb", "crawl/crawldb"), "error: say what to read: -stats, "),
        (("crawl", "crawl", "3"), "the next page is due at"),
        (("help", "crawl"), "Usage: bin/minutch crawl"),
        (("help",), "`bin/minutch help NAME` explains a command"),
    ],
)
def test_screens_have_80_columns(
    crawled: tuple[Path, SiteServer], words: tuple[str, ...], has: str
) -> None:
    folder, server = crawled
    url = server.site.url("one")
    definitions_ = definitions() if words[0] in ("explain", "crawl") else ()
    filled = [word.format(url) for word in words[1:]]
    lines = on_screen(screen_of([words[0], *definitions_, *filled], folder)[1])
    assert too_wide(lines) == []
    assert has in "\n".join(lines)


def test_the_next_command_can_be_copied_from_80_columns(
    crawled: tuple[Path, SiteServer],
) -> None:
    folder, server = crawled
    urls = [server.site.url("one"), server.site.url("two")]
    words = [*definitions(), "--depth", "9", *urls, "crawl-of-both-sites", "1"]
    lines = on_screen(screen_of(["crawl", *words], folder)[1])
    at = next(i for i, line in enumerate(lines) if line.startswith("  Go on: "))
    assert lines[at].endswith(" \\") and len(lines[at]) <= 80
    command = lines[at].removeprefix("  Go on: ").removesuffix("\\") + lines[at + 1].strip()
    asked = f"--depth 9 {' '.join(urls)} crawl-of-both-sites 1"
    assert command == f"bin/minutch crawl {asked}"
    assert lines[at + 2] == "  Look:  bin/minutch report crawl-of-both-sites"


def test_the_prompt_of_sql(crawled: tuple[Path, SiteServer]) -> None:
    typed = "help\nselect nothing from parses;\ntables\ncolumns pages\nquit\n"
    text = screen_of(["sql", "crawl"], crawled[0], typed)[1]
    lines = on_screen(text.replace("sql> ", ""))  # after which nobody's keys end a line
    assert too_wide(lines) == []
    tables = ", ".join(open_crawl(crawled[0] / "crawl").tables)
    assert f"The tables are {tables}." in " ".join(" ".join(lines).split())
    assert "quit               ends, as Ctrl-D does" in lines
    assert "error: there is no column nothing" in lines
