"""The line server under readdb, readlinkdb and the checkers: Nutch's protocol, and hostile
clients.
"""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from minutch.commands.lineserver import MAX_LINE, LineServer
from minutch.commands.readers import entry, inlinks
from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.linkdb.store import LinkDb
from minutch.errors import FormatError, StoreError
from minutch.job import JobContext
from tests.support.commands import readdb, readlinkdb
from tests.support.golden import GOLDEN, needs_golden
from tests.support.nutchruns import NutchRun

CRAWL = GOLDEN / "crawl-small/run-rich-r2/crawl"


@contextmanager
def serving(answer: Callable[[str], str], *, keep_open: bool = True) -> Iterator[LineServer]:
    with LineServer(0, answer, keep_open=keep_open) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(10)


def ask(server: LineServer, sent: bytes) -> bytes:
    with socket.create_connection(server.server_address, timeout=10) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(1 << 16), b""))


@needs_golden("commands/readdb", "crawl-small/run-rich-r2/crawl")
def test_readdb_answers_as_it_prints() -> None:
    printed = NutchRun("readdb/rich-url").printed
    db = CrawlDb(CRAWL / "crawldb")
    with serving(lambda url: entry(db, url)) as server:
        found = ask(server, b"http://127.0.0.1:8810/\nhttp://nosuch.invalid/\r\n").decode()
    one, other = found.split("URL: ")[1:]
    assert ("URL: " + one).splitlines()[: len(printed)] == printed
    assert one.endswith("\n\n")
    assert other == "http://nosuch.invalid/\nnot found\n\n"


@needs_golden("crawl-small/run-rich-r2/crawl")
def test_readlinkdb_answers_as_it_prints() -> None:
    db = LinkDb(CRAWL / "linkdb")
    context = JobContext(Configuration.load([]), out=io.StringIO(), err=io.StringIO())
    assert readlinkdb.run([str(db.path), "-url", "http://127.0.0.1:8810/page1.html"], context) == 0
    with serving(lambda url: inlinks(db, url)) as server:
        found = ask(server, b"http://127.0.0.1:8810/page1.html\n").decode()
        unknown = ask(server, b"http://nosuch.invalid/\n")
    assert isinstance(context.out, io.StringIO)
    assert found == context.out.getvalue()
    assert found.count("fromUrl: ") == 12
    assert unknown == b" - no link information.\n\n"


@needs_golden("crawl-small/run-rich-r2/crawl")
@pytest.mark.parametrize(("command", "name"), [(readdb.run, "crawldb"), (readlinkdb.run, "linkdb")])
def test_lines_of_standard_input(
    command: Callable[[list[str], JobContext], int], name: str
) -> None:
    lines = io.StringIO("http://nosuch.invalid/\nhttp://127.0.0.1:8810/\n")
    context = JobContext(Configuration.load([]), out=io.StringIO(), err=io.StringIO(), stdin=lines)
    assert command([str(CRAWL / name), "-stdin"], context) == 0
    assert isinstance(context.out, io.StringIO)
    assert context.out.getvalue().count("\n\n") == 2


@pytest.mark.parametrize("command", [readdb.run, readlinkdb.run])
def test_nothing_listens_where_there_is_no_database(
    command: Callable[[list[str], JobContext], int], tmp_path: Path
) -> None:
    with pytest.raises(StoreError):
        command([str(tmp_path), "-listen", "0"], JobContext(Configuration.load([])))


def test_blank_lines_get_no_answer() -> None:
    with serving(str.upper) as server:
        assert ask(server, b"\n \nx\nab\n") == b"AB\n"


def test_an_endless_line_is_cut() -> None:
    with serving(lambda line: str(len(line))) as server:
        assert ask(server, b"x" * (MAX_LINE + 5)) == f"{MAX_LINE}\n5\n".encode()


def test_damage_ends_the_connection_alone(caplog: pytest.LogCaptureFixture) -> None:
    def answer(line: str) -> str:
        if line == "bad":
            raise FormatError("damaged", path="part")
        return line

    with serving(answer) as server:
        assert ask(server, b"bad\ngood\n") == b""
        assert ask(server, b"good\n") == b"good\n"
    assert "no answer to bad: part: damaged" in caplog.text
