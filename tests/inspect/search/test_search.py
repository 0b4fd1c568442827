"""`minutch search` and `minutch serve` as somebody runs them."""

from __future__ import annotations

import io
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.errors import FormatError, MinutchError, StoreError, UsageError
from minutch.job import JobContext
from minutch.web.access import is_local
from tests.inspect.search.conftest import HOSTILE
from tests.support.commands import search, serve
from tests.support.golden import PROJECT
from tests.support.indexedcrawl import IndexedCrawl


def run(*words: str) -> tuple[int, str]:
    out = io.StringIO()
    context = JobContext(Configuration.load([]).freeze(), FakeClock(0), out, io.StringIO())
    return search.run(list(words), context), out.getvalue()


def test_hits_with_their_words_marked(harbours: IndexedCrawl) -> None:
    code, out = run(str(harbours.index_folder), "dogs")
    assert code == 0
    assert re.sub(r"  \d+\.\d\d$", "", out, flags=re.MULTILINE) == (
        "1. Running dogs\n   http://b.example.org/en\n   The *dogs* were running quickly\n\n"
        "1 to 1 of 1 found in 34 documents\n"
    )


def test_number_and_place_of_hits(harbours: IndexedCrawl) -> None:
    code, out = run(str(harbours.folder), "harbour", "-n", "3", "-from", "25")
    assert code == 0
    assert [line for line in out.splitlines() if line[:1].isdigit()][:2] != []
    assert out.endswith("25 to 26 of 26 found in 34 documents\n")


def test_json_is_a_hit_a_line_with_the_document(harbours: IndexedCrawl) -> None:
    code, out = run(str(harbours.index_folder), "harbour", "host:b.example.org", "-json")
    (line,) = out.splitlines()
    hit = json.loads(line)
    assert (code, hit["url"], hit["title"]) == (0, "http://b.example.org/", "Another harbour")
    assert hit["document"]["host"] == ["b.example.org"]
    assert hit["score"] > 0


def test_json_snippets_are_safe_html(harbours: IndexedCrawl) -> None:
    hit = json.loads(run(str(harbours.index_folder), "harmful", "-json")[1])
    assert hit["url"] == HOSTILE
    assert hit["snippet"].startswith("<b>harmful</b> &lt;/p&gt;&lt;script&gt;")


def test_nothing_found_is_exit_code_1(harbours: IndexedCrawl) -> None:
    assert run(str(harbours.index_folder), "nosuchword") == (1, "nothing found in 34 documents\n")
    assert run(str(harbours.index_folder), "((", "-json") == (1, "")


def test_what_was_meant_is_suggested(harbours: IndexedCrawl) -> None:
    code, out = run(str(harbours.index_folder), "harbuor nosuchword")
    assert (code, out) == (
        1,
        "nothing found in 34 documents\n  instead: harbour  (26 documents)\n",
    )


def test_fields_that_the_index_lacks_are_said(harbours: IndexedCrawl) -> None:
    out, err = io.StringIO(), io.StringIO()
    context = JobContext(Configuration.load([]).freeze(), FakeClock(0), out, err)
    assert (
        search.run([str(harbours.index_folder), "site:a.example.org topic:harbour"], context) == 1
    )
    lacking, unknown = err.getvalue().splitlines()
    assert lacking.startswith("no document has a field site; they have anchor, boost, ")
    assert unknown == "topic is no field of these documents: topic: was read as words"


def test_controls_of_pages_do_not_reach_the_output(harbours: IndexedCrawl) -> None:
    out = run(str(harbours.index_folder), "harmful")[1]
    assert "\x1b" not in out and "\u202e" not in out
    assert "\\x1b[31m" in out and "\\u202e" in out


def test_what_is_no_index(tmp_path: Path, harbours: IndexedCrawl) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        run(str(tmp_path / "nosuch"), "x")
    with pytest.raises(StoreError, match="has no index"):
        run(str(tmp_path), "x")
    with pytest.raises(StoreError, match="not an index of indexer-local"):
        run(str(harbours.folder / "linkdb"), "x")


@pytest.mark.parametrize(
    ("name", "content"), [("meta.json", b"{"), ("meta.json", None), ("minutch.json", b"[]")]
)
def test_a_damaged_index_is_named(
    tmp_path: Path, harbours: IndexedCrawl, name: str, content: bytes | None
) -> None:
    shutil.copytree(harbours.index_folder, tmp_path / "index")
    file = tmp_path / "index/current" / name
    file.unlink() if content is None else file.write_bytes(content)
    with pytest.raises((FormatError, StoreError), match=str(tmp_path)):
        run(str(tmp_path / "index"), "harbour")


@pytest.mark.parametrize(
    "words", [[], ["x"], ["x", "y", "-n", "0"], ["x", "y", "-n", "z"], ["x", "y", "-nosuch"]]
)
def test_wrong_arguments(words: list[str]) -> None:
    with pytest.raises(UsageError):
        run(*words)


# -- serve -----------------------------------------------------------------------------------------


@pytest.mark.slow  # a process
def test_serve_answers_until_it_is_stopped(harbours: IndexedCrawl) -> None:
    command = [sys.executable, "-m", "minutch", "serve", str(harbours.folder), "-port", "0"]
    with subprocess.Popen(
        command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        assert line.startswith("34 documents: http://localhost:")
        url = line.split()[2]
        with urllib.request.urlopen(f"{url}?q=dogs", timeout=20) as answer:
            assert b"<mark>dogs</mark>" in answer.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("example.org", False),
    ],
)
def test_loopback_unless_told(host: str, local: bool) -> None:
    assert is_local(host) == local


def test_serve_says_what_is_wrong(tmp_path: Path, harbours: IndexedCrawl) -> None:
    context = JobContext(
        Configuration.load([]).freeze(), FakeClock(0), io.StringIO(), io.StringIO()
    )
    with pytest.raises(StoreError, match="does not exist"):
        serve.run([str(tmp_path / "nosuch")], context)
    with pytest.raises(StoreError, match="index"):
        serve.run([str(tmp_path)], context)
    with pytest.raises(UsageError, match="-port"):
        serve.run([str(tmp_path), "-port", "70000"], context)
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(MinutchError, match="can't listen") as failure,
    ):
        serve.run([str(harbours.folder), "-port", str(taken.getsockname()[1])], context)
    assert "-port" in failure.value.hint
