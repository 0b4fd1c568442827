"""filterchecker, normalizerchecker and robotsparser: what they print, and their exit codes."""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from minutch.commands.lineserver import LineServer
from minutch.conf import Configuration
from minutch.errors import MinutchError, UsageError
from minutch.job import JobContext
from tests.support.commands import filterchecker, normalizerchecker, robotsparser


def call(
    run: Callable[[list[str], JobContext], int], args: list[str], stdin: str = "", **values: str
) -> tuple[int, list[str]]:
    """Exit code and lines of stdout."""
    named = {name.replace("__", "."): value for name, value in values.items()}
    conf = Configuration.load([]).with_values(named).freeze()
    out = io.StringIO()
    code = run(args, JobContext(conf, out=out, err=io.StringIO(), stdin=io.StringIO(stdin)))
    return code, out.getvalue().splitlines()


def test_filterchecker() -> None:
    code, lines = call(filterchecker.run, ["-stdin"], "http://a.org/\nhttp://a.org/?x\r\nnothing")
    title = "Checking combination of these URLFilters: RegexURLFilter "
    assert (code, lines) == (0, [title, "+http://a.org/", "-http://a.org/?x", "+nothing"])


def test_one_filter_of_several() -> None:
    code, lines = call(
        filterchecker.run, ["-filterName", "urlfilter-(prefix|validator)"], "ftp://a.org/\nfoo\n"
    )
    assert code == 0
    assert lines[0].split(":")[1].split() in (
        ["PrefixURLFilter", "UrlValidator"],
        ["UrlValidator", "PrefixURLFilter"],
    )
    assert lines[1:] == ["+ftp://a.org/", "-foo"]


def test_normalizerchecker() -> None:
    code, lines = call(
        normalizerchecker.run, ["-scope", "inject", "-stdin"], "HTTP://A.org\nmailto:x\n"
    )
    title = (
        "Checking combination of these URLNormalizers: BasicURLNormalizer RegexURLNormalizer"
        " PassURLNormalizer "
    )
    assert (code, lines) == (0, [title, "http://a.org/", ""])


def test_one_normalizer_of_several() -> None:
    code, lines = call(
        normalizerchecker.run, ["-normalizer", "urlnormalizer-querystring"], "http://a/?b&a\n"
    )
    assert code == 0
    assert lines == [
        "Checking combination of these URLNormalizers: QuerystringURLNormalizer ",
        "http://a/?a&b",
    ]


@pytest.mark.parametrize("run", [filterchecker.run, normalizerchecker.run, robotsparser.run])
@pytest.mark.parametrize("args", [[], ["-nonsense"]])
def test_usage(run: Callable[[list[str], JobContext], int], args: list[str]) -> None:
    with pytest.raises(UsageError, match="Usage: ") as caught:
        call(run, args)
    assert caught.value.exit_code == 255


@pytest.mark.parametrize("keep_open", [False, True])
def test_lines_from_connections(keep_open: bool) -> None:
    with LineServer(0, str.upper, keep_open=keep_open) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        with socket.create_connection(server.server_address, timeout=10) as client:
            client.sendall("a\u00e9\nbc\r\n".encode())
            client.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: client.recv(1000), b""))
        server.shutdown()
        thread.join(10)
    assert answer.decode() == ("A\u00c9\nBC\n" if keep_open else "A\u00c9\n")


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "robots.txt").write_text(
        "User-agent: a\nDisallow: /x\n\nUser-agent: *\nDisallow: /\n"
    )
    (tmp_path / "urls.txt").write_text("http://h/x\n http://h/y\nnothing\nhttp://own.org/x\n")
    return [str(tmp_path / "robots.txt"), str(tmp_path / "urls.txt")]


def test_robotsparser(files: list[str], caplog: pytest.LogCaptureFixture) -> None:
    code, lines = call(
        robotsparser.run, [*files, "A,b"], http__robot__rules__allowlist="own.org,other.org"
    )
    assert code == 0
    assert lines == [
        "Testing robots.txt for agent names: [a, b]",
        "not allowed:\thttp://h/x",
        "allowed:\thttp://h/y",
        "allowlisted:\thttp://own.org/x",
    ]
    assert "not a URL: nothing" in caplog.text


def test_robotsparser_tells_sitemaps_and_content_signals(
    files: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    path = Path(files[0])
    path.write_text("User-agent: *\nContent-Signal: search=yes, ai-train=no\nSitemap: map.xml\n")
    with caplog.at_level("INFO"):
        assert call(robotsparser.run, files)[0] == 0
    assert (
        "Content-Signal: search=yes" in caplog.text and "Content-Signal: ai-train=no" in caplog.text
    )
    assert "Sitemap: http://h/map.xml" not in caplog.text
    path.write_text("Sitemap: http://h/map.xml\n")
    with caplog.at_level("INFO"):
        call(robotsparser.run, files)
    assert "Sitemap: http://h/map.xml" in caplog.text


@pytest.mark.parametrize(
    ("values", "title"),
    [
        ({}, "* (any other agent)"),
        ({"http__agent__name": "Me"}, "[me]"),
        ({"http__robots__agents": "b, c"}, "[b, c]"),
        ({"http__agent__name": "*"}, "* (any other agent)"),
    ],
)
def test_robotsparsers_agents(files: list[str], values: dict[str, str], title: str) -> None:
    code, lines = call(robotsparser.run, files, **values)
    assert code == 0
    assert lines[0] == f"Testing robots.txt for agent names: {title}"


def test_robotsparser_without_its_files(files: list[str], tmp_path: Path) -> None:
    with pytest.raises(MinutchError, match="missing"):
        call(robotsparser.run, [str(tmp_path / "missing"), files[1]])
    with pytest.raises(MinutchError, match="missing"):
        call(robotsparser.run, [files[0], str(tmp_path / "missing")])


def test_robotsparser_over_a_protocol(files: list[str]) -> None:
    """protocol-file knows no robots.txt; a scheme that no plugin has is an error."""
    args = [f"file://{files[0]}", files[1]]
    code, lines = call(robotsparser.run, args, plugin__includes="protocol-file")
    assert (code, lines[1:]) == (
        0,
        ["allowed:\thttp://h/x", "allowed:\thttp://h/y", "allowed:\thttp://own.org/x"],
    )
    assert (
        call(robotsparser.run, args, plugin__includes="urlfilter-regex|nutch-extensionpoints")[0]
        == 255
    )
