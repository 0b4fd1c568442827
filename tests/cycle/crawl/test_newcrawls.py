"""A new crawl finds what the HTML Standard, RFC 9110 and sitemaps.org have for links to pages, says
which seeds failed, and makes its index afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import minutch
from minutch.commands import cli
from minutch.commands.crawl import parse_options
from tests.support.commands import parsed

ADDRESSES = "http.filter.ipaddress.include=loopback"
STATED = "lang.extraction.policy=detect"
"""The languages that pages state: for others each process loads half a second of a model."""
LINKS = {
    "a": "<a href=/a></a>",
    "area": "<map name=m><area href=/area alt=x></map>",
    "query": "<a href='/?q=1&amp;r=2'>x</a>",
    "iframe": "<iframe src=/iframe></iframe>",
    "srcdoc": "<iframe srcdoc='<a href=/srcdoc>x</a>'></iframe>",
    "get": "<form action=/get><input></form>",
    "button": "<form><button formaction=/button>x</button></form>",
    "alternate": "<link rel=alternate hreflang=de href=/alternate>",
    "next": "<link rel=next href=/next>",
    "canonical": "<link rel=canonical href=/canonical>",
    "refresh": "<meta http-equiv=refresh content='9;url=/refresh'>",
    "srcset": "<img src=/img.png srcset='/srcset 2x' alt=x>",
    "object": "<object data=/object></object>",
    "embed": "<embed src=/embed>",
    "cite": "<blockquote cite=/cite>x</blockquote>",
    "script": "<script>open('/script')</script>",
    "event": "<p onclick=\"location='/event'\">x</p>",
    "text": "<p>See http://{}/text.</p>",
    "script-file": "<script src=/site.js></script>",
    "style": "<link rel=stylesheet href=/site.css>",
    "frame": "<a href=/frames.html>f</a>",
}
"""What a link leads to (/NAME), and the page's markup for it."""
NOT = {
    "post": "<form method=post action=/post><input></form>",
    "nofollow": "<a rel=nofollow href=/nofollow>x</a>",
    "template": "<template><a href=/template>x</a></template>",
    "string": "<script>type = 'text/html'; fetch(`/s/${{id}}`); re = '/[a-z]*/x'</script>",
    "comment": "<!-- <a href=/comment>x</a> -->",
    "forbidden": "<a href=/forbidden>x</a>",
}
"""What is no link that a crawler follows."""
NEEDED = {"query": "/?q=1&r=2", "frame": "/framed", "style": "/from-style"}
AWAY = "http://other.invalid/x"
MOVED = {"/lost": "/missing", "/away": AWAY, "/loop": "/loop2", "/loop2": "/loop"}
HTML = {"Content-Type": "text/html"}


class Handler(BaseHTTPRequestHandler):
    asked: list[str]

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.asked.append(self.path)
        host = self.headers["Host"]
        code, headers, text = 200, dict(HTML), f"<title>x</title><p>page {self.path}"
        if self.path == "/":
            text = "<title>Home</title><body>" + "".join((LINKS | NOT).values()).format(host)
            headers["Link"] = "</header>; rel=next"
        elif self.path == "/frames.html":
            text = "<frameset><frame src=/framed></frameset>"
        elif self.path == "/robots.txt":
            code, headers, text = (
                200,
                {"Content-Type": "text/plain"},
                (f"User-agent: *\nDisallow: /forbidden\nSitemap: http://{host}/map.xml\n"),
            )
        elif self.path == "/map.xml":
            headers = {"Content-Type": "application/xml"}
            text = (
                '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>'
                f"http://{host}/listed</loc></url></urlset>"
            )
        elif self.path == "/site.js":
            headers = {"Content-Type": "text/javascript"}
            text = "// see http://" + host + "/in-comment\nlet x = '/script-file'; y = 'a/b'"
        elif self.path == "/site.css":
            headers, text = {"Content-Type": "text/css"}, "p { background: url(/from-style) }"
        elif self.path.startswith("/missing"):
            code = 404
        elif self.path in MOVED:
            code, headers["Location"] = 302, MOVED[self.path]
        data = text.encode()
        self.send_response(code)
        for name, value in (headers | {"Content-Length": str(len(data))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def site() -> Iterator[tuple[str, list[str]]]:
    """A host that is served, and the paths that it is asked for."""
    asked: list[str] = []
    handler = type("Asked", (Handler,), {"asked": asked})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def crawl(*words: str) -> int:
    options = ["-D", ADDRESSES, "-D", STATED, "--agent", "me", "--delay", "0"]
    return cli.main(["crawl", *options, *words])


@pytest.mark.slow  # a whole crawl
def test_every_kind_of_link_and_an_index_afterwards(
    here: Path, site: tuple[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    host, asked = site
    assert crawl(host, "mine") == 0  # no scheme: by http, as https is not answered
    wanted = {NEEDED.get(name, f"/{name}") for name in LINKS}
    assert wanted | {"/header", "/listed", "/in-comment"} <= set(asked)
    assert not {f"/{name}" for name in NOT} & set(asked)
    expected = wanted | {"/header", "/listed", "/in-comment", "/", "/robots.txt", "/map.xml"}
    expected |= {"/.well-known/tdmrep.json"}
    assert set(asked) - expected == {"/site.js", "/site.css", "/frames.html"}
    assert asked.count("/map.xml") == 1 and len(asked) - len(set(asked)) <= 1

    assert not (here / "mine/index").exists()
    before = len(asked)
    assert cli.main(["crawl", host, "mine", "--index"]) == 0
    assert len(asked) == before  # the crawl was complete
    rows = minutch.open("mine", quiet=True).sql("select count(*) as n from pages")
    assert cli.main(["search", "mine/index", "page listed"]) == 0
    out = capsys.readouterr().out
    assert f"http://{host}/listed" in out and rows["n"][0] > 20
    assert cli.main(["search", "mine/index", "background"]) == 1  # a style is no document


def test_seeds_that_fail(
    here: Path, site: tuple[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    host, _ = site
    assert crawl(f"http://{host}/missing", "gone") == 255
    captured = capsys.readouterr()
    assert f"error: no seed was fetched: http://{host}/missing: HTTP 404" in captured.err
    assert "hint: minutch explain" in captured.err
    assert crawl("http://127.0.0.1:1/", "refused") == 255
    assert "connection refused" in capsys.readouterr().err
    assert crawl("http://nowhere.invalid/", "unknown") == 255
    assert "nowhere.invalid" in capsys.readouterr().err
    (here / "seeds.txt").write_text(f"http://{host}/listed\nhttp://{host}/missing2\n")
    assert crawl("--max-pages", "2", "seeds.txt", "listed") == 0  # some of many fail on any day
    assert f"seed not fetched: http://{host}/missing2: HTTP 404" in capsys.readouterr().out


def test_seeds_that_lead_nowhere(
    here: Path, site: tuple[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of those that were typed, each counts, and what it redirects to."""
    host, _ = site
    names = ("listed", "lost", "away", "loop", "picture.gif")
    assert crawl("--depth", "0", *(f"http://{host}/{name}" for name in names), "one") == 255
    captured = capsys.readouterr()
    assert "error: 4 of 5 seeds not fetched\n" in captured.err
    for line in (
        f"lost: redirects to http://{host}/missing: HTTP 404",
        f"away: redirects to {AWAY}: on another site, or left out by the URL filters",
        f"loop: redirects to http://{host}/loop: redirects to itself",
        "picture.gif: the URL filters leave it out",
    ):
        assert f"  seed not fetched: http://{host}/{line}\n" in captured.out


@pytest.mark.parametrize(
    ("word", "folder"),
    [
        ("www.example.org", "www.example.org"),
        ("Example.CO.uk/start?x=1", "example.co.uk"),
        ("localhost:8080/a", "localhost"),
        ("127.0.0.1:8080", "127.0.0.1"),
        ("[::1]:80/", "--1"),
        ("server.corp:8080", "server.corp"),
    ],
)
def test_urls_without_a_scheme(here: Path, word: str, folder: str) -> None:
    crawl_dir, options, wishes, _ = parse_options(parsed("crawl", word))
    assert wishes is not None and list(wishes.urls) == [word]
    assert (str(crawl_dir), options.rounds) == (folder, -1)
    (here / folder / "crawldb").mkdir(parents=True)  # the second time
    assert parse_options(parsed("crawl", word))[2] == wishes


@pytest.mark.parametrize("word", ["crawl", "seeds.list", "a/b.com", "x.tar2", "./www.a.org"])
def test_words_that_are_no_urls(here: Path, word: str) -> None:
    assert parse_options(parsed("crawl", word, "mine", "2"))[2] is None


def test_a_folder_with_the_name_of_a_host_that_is_no_crawl(here: Path) -> None:
    (here / "www.example.org").mkdir()
    assert parse_options(parsed("crawl", "www.example.org", "mine", "2"))[2] is None
