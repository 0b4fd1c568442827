"""Crawls a web of traps and honest sites on loopback: which share of the requests is well spent,
and which of the honest pages are found.

    python -m tests.benchmarks.traps [--web first] [--size 200] [--rounds 40]
                                     [--scrapy PYTHON] [--nutch HOME] [WAY …]

Each crawl is a newcomer's, by command line, in a folder of its own, with the home pages as seeds.
The caps are 1.1, 1.5 and 2 times as many requests as there are honest pages; one crawl is made,
with the last of them, and counted after so many requests. The server is the crawler's proxy, so
that each site has its name.

What counts: a request is well spent if its answer is the first that has some honest content. So it
is new and honest: no page of a trap counts, however new its text, nor one of an honest page that
was had before under another name (a mirror's, a session's), nor a redirect. "Of the honest pages"
are those that can be reached from the home pages, each once, whatever names it has. Requests for
robots.txt and the like are not counted. `web` has the rule of each page, and `others` a second web,
which nothing is fitted to.

The peers: Nutch itself, its files as they are shipped (regex-urlfilter leaves out URLs with a `?`
and segments that come back three times), and with generate.max.count. `--nutch HOME` is an
installation, such as `tests.benchmarks.nutchhome` builds. The same two configurations in this
crawler, which is to decide as Nutch does. Heritrix' decide rules by its documentation, as regular
expressions here: PathologicalPathDecideRule (max-repetitions 2), TooManyPathSegmentsDecideRule
(20); its TooManyHopsDecideRule (20) is left out, and the lists of traps of
MatchesListRegexDecideRule are each operator's own. Scrapy itself, with DEPTH_LIMIT 6 and
DEPTH_PRIORITY 1, breadth first as its documentation has it: `--scrapy PYTHON` names an interpreter
that has it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import accumulate
from pathlib import Path
from threading import Lock, Thread
from typing import Final
from urllib.parse import urlsplit

from tests.benchmarks.traps import others, web
from tests.benchmarks.traps.nutchpeer import crawl_by_nutch
from tests.benchmarks.traps.web import Site, answer, contents_of

WEBS: Final = {"first": web.sites, "second": others.sites}
CAPS: Final = (1.1, 1.5, 2.0)
"""Requests, by honest pages."""
_HERITRIX: Final = "\n".join(
    (r"-^https?://[^/]*/(?:.*?/)?([^/]+/)\1{2,}", r"-^https?://[^/]*(?:/[^/?#]*){21}", "+.")
)


@dataclass(frozen=True)
class Way:
    """A way to crawl."""

    settings: Mapping[str, str] = field(default_factory=dict)
    learns: bool = False
    """Whether rules are learned and applied after every other round."""


_NUTCH: Final = {
    "nutch": {"db.ignore.external.links": "true"},
    "nutch-count": {"db.ignore.external.links": "true", "generate.max.count": "50"},
}
WAYS: Final = {
    **{name: Way({"minutch.profile": "nutch", **given}) for name, given in _NUTCH.items()},
    "heritrix": Way({"generate.pattern.budget": "-1", "urlfilter.regex.rules": _HERITRIX}),
    "none": Way({"generate.pattern.budget": "-1"}),
    "budget": Way(),
    "learned": Way(learns=True),
}
"""Name of a way -> what it sets. `budget` is what new crawls have."""
APACHE: Final = {f"apache-{name}": given for name, given in _NUTCH.items()}
"""Name of a way of Nutch itself -> what it sets."""
_LIMIT: Final = 1200
"""Seconds that a crawl may take."""
_SPIDER: Final = Path(__file__).with_name("scrapyspider.py")


class Web(ThreadingHTTPServer):
    """The sites, for a client whose proxy it is."""

    daemon_threads = True
    request_queue_size = 1024  # of five, some connections of a crawl's were never taken

    def __init__(self, web: dict[str, Site]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.web, self.lock = web, Lock()
        self.requests: list[tuple[str, bool]] = []
        """The site of each, and whether it was well spent."""
        self.contents = set[str]()

    def note(self, name: str, content: str | None) -> None:
        """Counts a request."""
        with self.lock:
            is_good = content is not None and content not in self.contents
            self.requests.append((name, is_good))
            if content is not None:
                self.contents.add(content)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Web

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        name = (url.hostname or "").removesuffix(".example")
        if url.path in ("/robots.txt", "/sitemap.xml", "/.well-known/tdmrep.json"):
            self._send(404, b"")
            return
        page = answer(self.server.web[name], f"{url.path}?{url.query}" if url.query else url.path)
        self.server.note(name, page.content)
        links = "\n".join(f'<li><a href="{escape(link)}">more</a>' for link in page.links)
        head = f"<!doctype html><title>{escape(page.text[:40])}</title>"
        body = f"{head}<p>{escape(page.text)}</p><ul>{links}</ul>" if not page.location else ""
        self._send(page.status, body.encode(), page.location)

    def do_CONNECT(self) -> None:
        """A tunnel, which is what Nutch asks for; its requests are answered as those without."""
        self.close_connection = False
        self.send_response(200)
        self.end_headers()

    def _send(self, status: int, body: bytes, location: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        with suppress(ConnectionError):  # whose crawl has had its pages
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@contextmanager
def served(web: dict[str, Site]) -> Iterator[Web]:
    """Serves the web."""
    with Web(web) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def _seeds(server: Web) -> list[str]:
    return [f"http://{name}.example/" for name in server.web]


def _settings(server: Web) -> dict[str, str]:
    return {
        "http.proxy.host": "127.0.0.1",
        "http.proxy.port": str(server.server_address[1]),
        "http.redirect.max": "0",
        "fetcher.threads.per.queue": "4",
        "fetcher.server.min.delay": "0",
    }


def crawl(server: Web, folder: Path, way: Way, *, rounds: int, cap: int) -> None:
    """Crawls the web from its home pages, with at most `cap` requests."""
    seeds = _seeds(server)
    settings = {
        **_settings(server),
        "crawl.sitemaps": "false",
        "fetcher.tdmrep": "false",
        "fetcher.tail.share": "0",
        **way.settings,
    }
    given = [part for name, value in settings.items() for part in ("-D", f"{name}={value}")]
    target, each = str(folder / "crawl"), 2 if way.learns else rounds
    for done in range(0, rounds, each):
        first = [*seeds] if not done else []
        begin = ["--agent", "judge", "--delay", "0"] if not done else []
        before, left = len(server.requests), cap - len(server.requests)
        most = ["--max-pages", str(left)]
        _run(folder, "crawl", *given, *begin, *most, *first, target, str(each))
        if len(server.requests) in (before, cap):
            break
        if way.learns:
            _run(folder, "learn", target, "--apply")


def nutch(server: Web, folder: Path, home: Path, name: str, *, rounds: int, cap: int) -> None:
    """The same by Nutch itself, in a way of APACHE."""
    agent = {"http.agent.name": "judge", "fetcher.server.delay": "0"}
    settings = {**_settings(server), **agent, **APACHE[name]}
    left = partial(_left, server, cap)
    crawl_by_nutch(home, folder, _seeds(server), settings, rounds=rounds, left=left)


def _left(server: Web, cap: int) -> int:
    return cap - len(server.requests)


def crawl_by_scrapy(server: Web, folder: Path, python: Path, *, cap: int) -> None:
    """The same by Scrapy."""
    seeds = _seeds(server)
    proxy = f"http://127.0.0.1:{server.server_address[1]}"
    words = [str(python), str(_SPIDER), str(cap), *seeds]
    environment = {**os.environ, "http_proxy": proxy}
    _checked(words, folder / "log", environment)


def _run(folder: Path, *words: str) -> None:
    _checked([sys.executable, "-m", "minutch", *words], folder / "log", None)


def _checked(words: Sequence[str], log: Path, environment: Mapping[str, str] | None) -> None:
    """Runs a command. Raises RuntimeError if it fails, with the end of its log."""
    with log.open("ab") as stream:
        done = subprocess.run(
            words, stdout=stream, stderr=stream, timeout=_LIMIT, check=False, env=environment
        )
    if done.returncode:
        end = log.read_text("utf-8", "replace")[-2000:]
        raise RuntimeError(f"{' '.join(words[:6])} … ends with {done.returncode}:\n{end}")


def _report(name: str, server: Web, honest: Mapping[str, set[str]], caps: Sequence[int]) -> None:
    total, spent = len(set().union(*honest.values())), [*accumulate(map(_good, server.requests))]
    for factor, cap in zip(CAPS, caps, strict=True):
        requests = min(cap, len(spent))
        good = spent[requests - 1] if requests else 0
        share = good / max(requests, 1)
        print(
            f"{name}, {factor} × honest pages: {requests:,} requests, {share:.1%} well spent,"
            f" {good / total:.1%} of the honest pages"
        )
    asked = Counter(site for site, _ in server.requests[: caps[0]])
    well = Counter(site for site, is_good in server.requests[: caps[0]] if is_good)
    print(f"  {'site':18}{'honest':>8}{'requests':>10}{'well spent':>12}{'wasted':>8}")
    for site, contents in honest.items():
        counts = len(contents), asked[site], well[site], asked[site] - well[site]
        print("  {:18}{:8}{:10}{:12}{:8}".format(site, *counts), flush=True)


def _good(request: tuple[str, bool]) -> int:
    return int(request[1])


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--web", choices=WEBS, default="first")
    parser.add_argument("--size", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--scrapy", type=Path, help="a Python that has Scrapy")
    parser.add_argument("--nutch", type=Path, help="an installation of Apache Nutch")
    parser.add_argument("ways", nargs="*", default=[*WAYS, *APACHE, "scrapy"], metavar="WAY")
    asked = parser.parse_args()
    make = WEBS[asked.web]
    honest = {name: contents_of(site) for name, site in make(asked.size).items()}
    total = len(set().union(*honest.values()))
    caps = [round(factor * total) for factor in CAPS]
    print(f"{len(honest)} sites, {total:,} honest pages, at most {asked.rounds} rounds", flush=True)
    for name in asked.ways:
        if name == "scrapy" and asked.scrapy is None:
            print("scrapy: not run, since --scrapy does not say which Python has it")
            continue
        if name in APACHE and asked.nutch is None:
            print(f"{name}: not run, since --nutch does not say where it is")
            continue
        with served(make(asked.size)) as server, tempfile.TemporaryDirectory() as temporary:
            folder, most = Path(temporary), caps[-1]
            if name == "scrapy":
                crawl_by_scrapy(server, folder, asked.scrapy, cap=most)
            elif name in APACHE:
                nutch(server, folder, asked.nutch.absolute(), name, rounds=asked.rounds, cap=most)
            else:
                crawl(server, folder, WAYS[name], rounds=asked.rounds, cap=most)
            _report(name, server, honest, caps)


if __name__ == "__main__":
    main()
