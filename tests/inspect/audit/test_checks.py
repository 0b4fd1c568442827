"""Checks: what pages name and a crawl has not is asked for, on a real server, once a day; fragments
are looked for in the pages that the crawl has.
"""

from __future__ import annotations

import gzip
import io
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import minutch
from minutch import jobs
from minutch.clock import SystemClock
from minutch.conf import NEW_CRAWLS, Configuration
from minutch.errors import StoreError
from minutch.inspect.audit import checks
from minutch.inspect.audit.findings import audit, rules_of
from minutch.job import JobContext
from tests.support.commands import check

HOME = """<html><head><title>Home</title>
<link rel=stylesheet href=/style.css><link rel=preconnect href=https://cdn.example>
<link rel=icon href=/icon.ico><style>body {background: url(/lost-ground.png)}</style></head><body>
<img src=/there.png alt=there><img src=/lost.png><img srcset="/there.png 1x, /lost2x.png 2x">
<script src=/lost.js></script><video poster=/moved.png></video><img src=/forbidden/secret.png>
<a href=/manual.zip>manual</a> <a href=/lost.zip>lost</a> <a href=/logout.zip>log out</a>
<a href=/other.html#there>1</a> <a href="/other.html#gr%C3%BC%C3%9Fe">2</a>
<a href=/other.html#named>3</a> <a href=/other.html#nowhere>4</a> <a href=/old.html#there>5</a>
<a href=/old.html#nothere>6</a> <a href=/other.html#There>7</a> <a href=#top>8</a> <a href=#>9</a>
<a href=/other.html#:~:text=words>10</a> <a href="/other.html#there:~:text=words">11</a>
<a href=/other.html#!/route>12</a> <a href=/other.html#TOP>13</a> <a href=#home-lost>14</a>
<a href=/there.png#none>15</a> <a href=/odd.png>odd</a> <form method=post action=/post.zip></form>
<a href={other}gone>gone there</a> <a href={other}fine>fine there</a>
</body></html>"""
OTHER = """<title>Other</title><h1 id=there>There</h1><p id="grüße">Hello</p><a name=named></a>
<a href=/>home</a> <img src=/lost.png> <svg><g id=drawn /></svg>"""
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


FILES = {
    "/robots.txt": (200, "text/plain", b"User-agent: *\nDisallow: /forbidden/\n"),
    "/style.css": (
        200,
        "text/css",
        b"@font-face {src: url(lost.woff2)} p {background: url(there.png)}",
    ),
    "/moved.png": (301, "/lost-moved.png", b""),
    "/old.html": (301, "/other.html", b""),
    **{
        f"/{name}": (200, "image/png", PNG)
        for name in ("there.png", "odd.png", "icon.ico", "manual.zip", "logout.zip")
    },
}


class Later(SystemClock):
    """The machine's clock, some hours on."""

    def __init__(self, hours: float) -> None:
        super().__init__()
        self.more = round(hours * 3_600_000)

    def now(self) -> int:
        return super().now() + self.more


class Site:
    """A server of two sites: 127.0.0.1, and localhost as the other one."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                host = self.headers["Host"].partition(":")[0]
                site.asked.append((self.command, host, self.path))
                status, kind, body = site.of(host, self.path)
                if self.path == "/odd.png" and self.command == "HEAD":
                    status = 405
                self.send_response(status)
                if status == 301:
                    self.send_header("Location", kind)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_HEAD = answer

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.root = f"http://127.0.0.1:{self.server.server_port}/"
        self.other = f"http://localhost:{self.server.server_port}/"
        self.pages = {
            "/": HOME.replace("{other}", self.other),
            "/other.html": OTHER,
        }
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def of(self, host: str, path: str) -> tuple[int, str, bytes]:
        """Status, type (or where a redirect leads) and content of an answer."""
        none = 404, "text/html", b"none"
        if host == "localhost":
            return (200, "text/html", b"fine") if path == "/fine" else none
        if path in self.pages:
            return 200, "text/html; charset=utf-8", self.pages[path].encode()
        return FILES.get(path, none)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.server.shutdown()
    site.server.server_close()


@pytest.fixture(scope="module")
def conf() -> Configuration:
    """That of a new crawl, whose user wants no URL with logout."""
    conf = Configuration.load(
        [],
        profile=NEW_CRAWLS,
        overrides={
            "http.agent.name": "checker",
            "http.filter.ipaddress.include": "loopback",
            "fetcher.server.delay": "0",
            "fetcher.min.crawl.delay": "0",
            "parser.sandbox": "false",
            "lang.extraction.policy": "detect",  # the other way's model is loaded by each process
            "crawl.sitemaps": "false",
        },
    )
    rules = conf.read_resource(conf.get("urlfilter.regex.file") or "")
    return conf.with_values({"urlfilter.regex.rules": f"-logout\n{rules}"}).freeze()


@pytest.fixture(scope="module")
def crawled(site: Site, conf: Configuration, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, crawled."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "seeds.txt").write_text(site.root)
    jobs.run("crawl", "-s", folder / "seeds.txt", folder / "crawl", 3, conf=conf)
    return folder / "crawl"


@pytest.fixture
def crawl(crawled: Path, site: Site, tmp_path: Path) -> minutch.Crawl:
    shutil.copytree(crawled, tmp_path / "crawl")
    site.asked.clear()
    return minutch.open(tmp_path / "crawl")


@dataclass
class Checked:
    """A crawl after a check, which tests only read; what that asked for, and its counters."""

    crawl: minutch.Crawl
    asked: list[tuple[str, str, str]]
    counters: dict[str, int]

    def copy(self, folder: Path) -> minutch.Crawl:
        """The crawl, to be checked again."""
        shutil.copytree(self.crawl.path, folder / "crawl")
        return minutch.open(folder / "crawl")


@pytest.fixture(scope="module")
def once(
    crawled: Path, site: Site, conf: Configuration, tmp_path_factory: pytest.TempPathFactory
) -> Checked:
    folder = tmp_path_factory.mktemp("checked") / "crawl"
    shutil.copytree(crawled, folder)
    site.asked.clear()
    counters = checked(minutch.open(folder), conf)
    return Checked(minutch.open(folder), list(site.asked), counters)


def checked(
    crawl: minutch.Crawl, conf: Configuration, *words: str, hours: float = 0
) -> dict[str, int]:
    """Runs the command, `hours` from now; returns its counters."""
    context = JobContext(conf, Later(hours), out=io.StringIO(), err=io.StringIO())
    assert check.run([str(crawl.path), *words], context) == 0
    return context.reports["Check"]


def found(crawl: minutch.Crawl, rule: str) -> set[str] | None:
    """The URLs that a rule finds, without their sites; None if the crawl can't answer."""
    [finding] = audit(crawl, [rules_of(Configuration.load([]))[rule]], 0)
    if finding.rows is None:
        return None
    return {row[0].rpartition("/")[2] for row in finding.rows.iter_rows()}


LOST = {"lost-ground.png", "lost.png", "lost2x.png", "lost.zip", "lost.woff2", "moved.png"}
RULES = ("broken-resources", "broken-external", "missing-fragment")


def test_what_pages_name_is_asked_for(crawled: Path, once: Checked) -> None:
    """By HEAD, and once more by GET where that is refused; not what robots.txt forbids or the
    user's filters leave out; the audit then knows.
    """
    crawl, asked, counters = once.crawl, once.asked, once.counters
    assert [found(minutch.open(crawled), rule) for rule in RULES] == [None, None, None]
    before = sorted(entry.name for entry in crawled.iterdir())
    heads = {path for method, _, path in asked if method == "HEAD"}
    kept = {"/icon.ico", "/manual.zip", "/there.png", "/odd.png"}
    assert heads == {f"/{name}" for name in LOST} | kept | {"/lost-moved.png"}
    gets = [path for method, _, path in asked if method == "GET"]
    assert set(gets) == (heads - kept) | {"/odd.png", "/robots.txt"}
    assert {host for _, host, _ in asked} == {"127.0.0.1"}
    assert found(crawl, "broken-resources") == LOST
    assert found(crawl, "broken-external") is None
    assert counters["URLs that are broken"] == len(LOST)
    assert counters["URLs that the filters leave out"] == 1
    denied = crawl.sql("select outcome from checks where url like '%secret.png'")
    assert denied.item() == "denied"
    after = sorted(entry.name for entry in crawl.path.iterdir())
    assert set(after) - set(before) == {"checks"}
    assert sorted(entry.name for entry in (crawl.path / "checks").glob("[!.]*")) == [
        "current",
        "parses",
        "segments",
    ]


def test_fragments_are_looked_for(once: Checked) -> None:
    """By HTML's rules: the case counts, escapes do not; `#top`, routes and text directives are
    no elements; behind redirects.
    """
    crawl = once.crawl
    rows = crawl.sql("select url, fragment from checks where has_fragment = false")
    missing = {(url.rpartition("/")[2], fragment) for url, fragment in rows.iter_rows()}
    assert missing == {
        ("", "home-lost"),
        ("other.html", "nowhere"),
        ("other.html", "There"),
        ("old.html", "nothere"),
    }
    assert found(crawl, "missing-fragment") == {"", "other.html", "old.html"}


@contextmanager
def patched(pages: dict[str, str], path: str, text: str) -> Iterator[None]:
    pages[path] = text
    yield
    del pages[path]


def test_once_a_day(site: Site, once: Checked, conf: Configuration, tmp_path: Path) -> None:
    """What was mended is seen when a day is over; new pages are parsed, others not again."""
    crawl = once.copy(tmp_path)
    parses = {path: path.stat().st_ino for path in (crawl.path / "checks/parses").iterdir()}
    site.asked.clear()
    assert checked(crawl, conf, hours=23)["URLs asked for"] == 0
    assert site.asked == []
    with patched(site.pages, "/lost.zip", "found"):
        assert checked(crawl, conf, hours=25)["URLs asked for within a day"] == 0
    assert ("HEAD", "127.0.0.1", "/lost.zip") in site.asked
    assert found(crawl, "broken-resources") == LOST - {"lost.zip"}
    assert parses == {path: path.stat().st_ino for path in (crawl.path / "checks/parses").iterdir()}


def test_links_to_other_sites(site: Site, crawl: minutch.Crawl, conf: Configuration) -> None:
    checked(crawl, conf, "--external")
    assert {(method, path) for method, host, path in site.asked if host == "localhost"} == {
        ("GET", "/robots.txt"),
        ("HEAD", "/fine"),
        ("HEAD", "/gone"),
        ("GET", "/gone"),
    }
    assert found(crawl, "broken-external") == {"gone"}
    site.asked.clear()
    checked(crawl, conf, "--external", hours=1)
    assert site.asked == []


def test_requisites_are_kept_for_archives(
    site: Site, once: Checked, conf: Configuration, tmp_path: Path
) -> None:
    """Also those that were asked for by HEAD before."""
    crawl = once.copy(tmp_path)
    site.asked.clear()
    checked(crawl, conf, "--requisites")
    assert ("GET", "127.0.0.1", "/there.png") in site.asked
    assert not any(method == "HEAD" for method, _, _ in site.asked)
    segments = [*(crawl.path / "segments").iterdir(), *(crawl.path / "checks/segments").iterdir()]
    jobs.run("export", "warc", *segments, tmp_path / "archive", conf=conf)
    archives = (tmp_path / "archive").rglob("*.warc.gz")
    data = b"".join(gzip.decompress(path.read_bytes()) for path in archives)
    assert f"WARC-Target-URI: {site.root}there.png".encode() in data and PNG in data
    assert f"WARC-Target-URI: {site.root}style.css".encode() in data


def test_a_check_that_was_broken_off_goes_on(
    site: Site, crawl: minutch.Crawl, conf: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its list was made, and before that was fetched."""

    def killed(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(checks, "fetch", killed)
        checked(crawl, conf)
    assert not site.asked
    checked(crawl, conf)
    assert found(crawl, "broken-resources") == LOST
    heads = [path for method, _, path in site.asked if method == "HEAD"]
    assert len(heads) == len(set(heads))


class Killed(BaseException):
    """The process is."""


def test_a_crawl_without_content_says_so(crawl: minutch.Crawl, conf: Configuration) -> None:
    for folder in (crawl.path / "segments").glob("*/content"):
        shutil.rmtree(folder)
    with pytest.raises(StoreError, match="no segment has the content of pages"):
        checked(crawl, conf)
