"""parsechecker against the demo site: what it prints, its exit codes and options."""

from __future__ import annotations

import io
import re
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.commands.checkers import ParserChecker, page_answers
from minutch.commands.lineserver import LineServer
from minutch.cycle.parse.pagecheck import CheckError, PageCheckOptions
from minutch.errors import UsageError
from minutch.job import JobContext
from tests.support.commands import command, parsed
from tests.support.pages import configuration

run = command("parsechecker").run

PAGE = (
    "<html><head><title>T</title></head><body>text <a href='http://e.org/x'>a"
    " link</a></body></html>"
)


def check(*args: str, stdin: str = "", **properties: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    conf = configuration("protocol-file|parse-(html|text)", **properties).freeze()
    context = JobContext(conf, FakeClock(0), io.StringIO(), io.StringIO(), io.StringIO(stdin))
    code = run(list(args), context)
    assert isinstance(context.out, io.StringIO)
    assert isinstance(context.err, io.StringIO)
    return code, context.out.getvalue(), context.err.getvalue()


@pytest.fixture
def page(tmp_path: Path) -> str:
    path = tmp_path / "page.html"
    path.write_text(PAGE)
    return f"file:{path}"


def test_a_page(page: str) -> None:
    code, out, _ = check(page)
    assert code == 0
    lines = out.splitlines()
    assert lines[:6] == [
        page,
        "Version: 5",
        "Status: success(1,0)",
        "Title: T",
        "Outlinks: 1",
        "  outlink: toUrl: http://e.org/x anchor: a link",
    ]
    assert "text a link" not in out


def test_its_text(page: str) -> None:
    assert check("-dumpText", page)[1].endswith("\nT text a link\n")


def test_forced_type(page: str) -> None:
    assert "<title>T</title>" in check("-dumpText", "-forceAs", "text/plain", page)[1]


@pytest.mark.parametrize(
    "args", [["-forceAs", "image/png", "PAGE"], ["nosuch:thing"], ["nonsense"]]
)
def test_where_nutch_ends_with_an_exception(page: str, args: list[str]) -> None:
    with pytest.raises(CheckError, match=args[1] if len(args) > 1 else args[0]) as caught:
        check(*(page if word == "PAGE" else word for word in args))
    assert caught.value.exit_code == 1


def test_pages_from_stdin(page: str) -> None:
    code, out, err = check("-stdin", stdin=f"{page}\nfile:/no/such/file\nnosuch:x\n{page}\n")
    assert code == 0
    assert f"\n\n\n\n{page}\n" in out
    assert out.count("Version: 5") == 2
    assert "Fetch failed with protocol status: notfound(14)" in err


def test_documents_of_a_feed_in_the_order_of_a_hash_map(tmp_path: Path) -> None:
    path = tmp_path / "feed"
    items = "".join(
        f"<item><title>{name}</title><link>http://f.org/{name}</link></item>"
        for name in ("sp", "nl", "a")
    )
    path.write_text(
        "<rss"
        f" version='2.0'><channel><title>F</title><link>http://f.org/</link>{items}</channel></rss>"
    )
    conf = configuration("protocol-file|parse-html|feed").freeze()
    context = JobContext(conf, FakeClock(0), io.StringIO(), io.StringIO())
    assert run(["-forceAs", "application/rss+xml", f"file:{path}"], context) == 0
    assert isinstance(context.out, io.StringIO)
    urls = [line for line in context.out.getvalue().splitlines() if line.startswith("http://")]
    assert urls == ["http://f.org/a", "http://f.org/nl", "http://f.org/sp"]


def test_failures(page: str) -> None:
    code, out, err = check("file:/no/such/file")
    assert (code, out) == (255, "\n")
    assert err.startswith("Fetch failed with protocol status: notfound(14)")


@pytest.mark.parametrize(
    "args", [[], ["-forceAs"], ["-unknown", "http://e.org/"], ["http://e.org/", "-unknown"]]
)
def test_usage(args: list[str]) -> None:
    if args == ["http://e.org/", "-unknown"]:
        args = ["http://e.org/", "-unknown", "x"]
    with pytest.raises(UsageError) as caught:
        check(*args)
    assert caught.value.exit_code == 255


PAGES: dict[str, tuple[int, dict[str, str], bytes]] = {
    "/a": (
        200,
        {"X-b": "2", "content-type": "text/html", "X-A": "1", "Last-Modified": "never"},
        PAGE.encode(),
    ),
    "/gone": (410, {}, b""),
    "/there": (302, {"Location": "/a"}, b""),
    "/loop": (302, {"Location": "/loop"}, b""),
    "/robots.txt": (200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /gone"),
    "/refresh": (
        200,
        {},
        b"<html><head><meta http-equiv=refresh content='3;url=a'></head><body>r</body></html>",
    ),
    "/hidden": (
        200,
        {},
        b"<html><head><meta name=robots content=none></head><body><a href=a>t</a></body></html>",
    ),
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, headers, body = PAGES[self.path]
        self.send_response_only(status)
        for name, value in (
            {"Content-Type": "text/html"} | headers if "content-type" not in headers else headers
        ).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing to stderr."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def check_site(*args: str, stdin: str = "") -> tuple[int, str, str]:
    """Like `check`, over HTTP; the time of the fetch is T in the output."""
    conf = configuration(
        "protocol-http|parse-html", **{"http.filter.ipaddress.include": "loopback"}
    )
    conf = conf.with_values({"http.agent.name": "tester"}).freeze()
    out, err = io.StringIO(), io.StringIO()
    code = run(list(args), JobContext(conf, FakeClock(0), out, err, io.StringIO(stdin)))
    return code, re.sub(r"(fetch\.time = )\d+", r"\1T", out.getvalue()), err.getvalue()


def test_headers_stand_in_alphabetic_order(site: str) -> None:
    code, out, _ = check_site("-dumpText", f"{site}/a")
    assert code == 0
    assert (
        out
        == f"""{site}/a
Version: 5
Status: success(1,0)
Title: T
Outlinks: 1
  outlink: toUrl: http://e.org/x anchor: a link
Content Metadata:
  Content-Length = {len(PAGE)}
  Content-Type = text/html
  Last-Modified = never
  nutch.crawl.score = 0.0
  nutch.fetch.time = T
  X-A = 1
  X-b = 2
Parse Metadata:
  CharEncodingForConversion = windows-1252
  OriginalCharEncoding = windows-1252

T text a link
"""
    )


def test_redirects(site: str) -> None:
    code, out, err = check_site(f"{site}/there")
    assert (code, out) == (255, "\n")
    assert err.startswith(
        f"Fetch failed with protocol status: temp_moved(13), lastModified=0: {site}/a\n"
    )
    assert err.endswith("Max Redirects to handle per config: 0\nNumber of Redirects handled: 0\n")
    assert check_site("-followRedirects", f"{site}/there")[1].startswith(f"{site}/a\nVersion: 5\n")
    code, out, err = check_site("-followRedirects", f"{site}/loop")
    assert (code, out) == (255, "\n")
    assert err.endswith("Max Redirects to handle per config: 3\nNumber of Redirects handled: 4\n")


def test_robots_are_asked_if_wanted(site: str) -> None:
    assert check_site("-checkRobotsTxt", f"{site}/a")[0] == 0
    code, _, err = check_site("-checkRobotsTxt", f"{site}/gone")
    assert (code, err) == (
        255,
        f"Denied by robots.txt: {site}/gone\nFetch disallowed by robots.txt\n",
    )
    assert "gone(11)" in check_site(f"{site}/gone")[2]


def test_urls_are_normalized_if_wanted(site: str) -> None:
    assert check_site("-normalize", f"{site}/x/../a#b")[1].startswith(f"{site}/a\n")


def test_meta_tags_show_in_status_and_links(site: str) -> None:
    assert (
        f"\nStatus: success(1,100), args[0]={site}/a, args[1]=3\n"
        in check_site(f"{site}/refresh")[1]
    )
    out = check_site("-dumpText", f"{site}/hidden")[1]
    assert "\nTitle: \nOutlinks: 0\n" in out
    assert out.endswith("  robots = none\n\n\n")


def test_pages_over_connections(page: str) -> None:
    conf = configuration("protocol-file|parse-html").freeze()
    context = JobContext(conf, FakeClock(0), io.StringIO(), io.StringIO(), io.StringIO())
    given = parsed("parsechecker", "-listen", "0", "-keepClientCnxOpen")
    assert given["-keepClientCnxOpen"] and given["-listen"] == 0
    with (
        ParserChecker(conf, PageCheckOptions(), context.clock) as checker,
        LineServer(0, page_answers(checker, context.err), keep_open=True) as server,
    ):
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        with socket.create_connection(
            ("127.0.0.1", server.server_address[1]), timeout=10
        ) as client:
            client.sendall(f"{page}\nfile:/no/such/file\n{page}\n".encode())
            client.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: client.recv(1000), b""))
        server.shutdown()
        thread.join()
    assert answer.decode().count("Title: T\n") == 2
