"""A new crawl follows canonical links that are to be believed: originals are in the index, whatever
their scores and URLs.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import minutch
from minutch.commands import cli

ROUTE = "http.filter.ipaddress.include=loopback"
WORDS = [f"{a}{b}" for a in ("ka", "lo", "mi", "ru", "te") for b in ("ra", "ndo", "shi", "pel")]
MENU = "<nav><a href=/>Home</a> <a href=/about>About us</a></nav>"


def page(seed: int, canonical: str = "", more: str = "", head: str = "", links: str = "") -> str:
    rng = random.Random(seed)
    text = "".join(f"<p>{' '.join(rng.choices(WORDS, k=40)).capitalize()}.</p>" for _ in range(4))
    link = f"<link rel=canonical href={canonical}>" if canonical else ""
    return (
        f"<title>Page {seed}</title>{link}{head}{MENU}<main><h1>Page {seed}</h1>{text}{more}</main>"
        f"{links}<footer>Imprint</footer>"
    )


def version(language: str, path: str) -> str:
    return f"<link rel=alternate hreflang={language} href={path}>"


VERSIONS = version("en-gb", "/uk") + version("en-us", "/us")
PAGES = {
    "/articles/tides/original": page(1, "/articles/tides/original"),
    "/t": page(1, "/articles/tides/original"),
    "/articles/tides/original?print=1": page(1, "original", "<p>Printed on 3 May 2024</p>"),
    "/list": page(2),
    "/list?page=2": page(3, "/list"),
    "/list?page=3": page(4, "/list"),
    "/uk": page(5, "/uk", head=VERSIONS),
    "/us": page(5, "/uk", head=VERSIONS),
    "/loop1": page(6, "/loop2", "<p>one</p>"),
    "/loop2": page(6, "/loop1", "<p>two</p>"),
    "/b": page(7, "http://elsewhere.org/b"),
    "/about": page(8, "/"),
}
PAGES["/"] = page(
    0, links="".join(f"<a href='{path}'>x</a>" for path in PAGES) + "<a href=/t>t</a>"
)


@pytest.fixture
def site() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            data = PAGES.get(self.path, "").encode()
            self.send_response(200 if data else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.slow  # a whole crawl
def test_the_index_has_the_originals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--agent", "me", "--delay", "0", "--index", f"{site}/", "mine"]
    assert cli.main(["crawl", "-D", ROUTE, *words]) == 0
    pages = minutch.open("mine", quiet=True).sql("select url, status from crawldb").rows()
    marked = {url.removeprefix(site) for url, status in pages if status == "db_duplicate"}
    assert marked == {"/t", "/articles/tides/original?print=1", "/us"}, "/us has an equal signature"
    capsys.readouterr()
    assert cli.main(["search", "mine/index", "page", "--json"]) == 0
    out = capsys.readouterr().out
    assert f"{site}/articles/tides/original" in out
    assert f'{site}/t"' not in out
    assert cli.main(["explain", "mine", f"{site}/t"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"twin of {site}/articles/tides/original, because its canonical link leads there" in out
    for path, why in {
        "/list?page=2": "different texts",
        "/us": "hreflang says",
        "/loop1": "the pages name each other",
        "/b": "a page of another domain",
        "/about": "different texts",
    }.items():
        assert cli.main(["explain", "mine", f"{site}{path}"]) == 0
        assert why in " ".join(capsys.readouterr().out.split()), path
