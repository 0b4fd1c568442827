"""The properties that minutch has beyond Nutch's: each acts in some test; in one of these, if it
has none elsewhere.
"""

from __future__ import annotations

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.etree import ElementTree

import httpx
import pytest

from minutch.records.crawldatum import CrawlDatum
from minutch.urls.parts import Url, parse
from plugins.lib_http.exchange import Answer, SpellCheckedMetadata
from plugins.lib_http.robotstxt import RobotsStore
from plugins.protocol_http.http import Http
from tests.support.golden import PROJECT, SHARED
from tests.support.misbehaving import MisbehavingServer
from tests.support.segments import conf_for, fetch_segment, fetched, make_segment

NUTCHS = SHARED / "nutch" / "properties.tsv"
OWN = {
    "archive.content.limit",
    "archive.files",
    "archive.until",
    "crawl.compact",
    "crawl.compact.grace",
    "crawl.compact.retention",
    "crawl.list.late",
    "crawl.list.min",
    "crawl.overlap",
    "db.canonical",
    "db.fetch.retry.interval",
    "db.fetch.schedule.fresh.budget",
    "crawl.sitemaps",
    "crawl.sitemaps.interval",
    "parse.js.strings",
    "db.update.unparsed.keeps.interval",
    "fetcher.exceptions.per.queue.in.row",
    "generate.pattern.budget",
    "generate.pattern.doubts",
    "fetcher.exceptions.per.queue.jitter",
    "fetcher.record.skipped",
    "fetcher.tail.share",
    "fetcher.tdmrep",
    "fetcher.warc",
    "http.accept.encoding",
    "http.dns.cache.min.seconds",
    "http.dns.cache.seconds",
    "http.dns.negative.seconds",
    "http.dns.resolver",
    "http.dns.servers",
    "http.head",
    "http.page.codes",
    "http.retry.after.max.seconds",
    "http.robots.503.defer.visits.wait",
    "http.robots.cache.memory",
    "http.robots.cache.seconds",
    "http.robots.content.limit",
    "http.robots.parser",
    "http.robots.unreachable.allow",
    "http.store.etag",
    "http.tls.ca.file",
    "index.geoip.insights.host",
    "indexer.delete.robots.none",
    "indexer.text",
    "linkdb.inlink.layout",
    "minutch.browser.bytes.max",
    "minutch.browser.memory.max",
    "minutch.browser.pages",
    "minutch.browser.requests.max",
    "minutch.engine",
    "minutch.lock.wait",
    "minutch.memory",
    "minutch.profile",
    "minutch.fetch.processes",
    "minutch.fetch.state",
    "nodedumper.topn.per.value",
    "pagedata.bytes",
    "warc.output.level",
    "minutch.service.auth",
    "minutch.service.hosts",
    "minutch.service.jobs",
    "minutch.service.token",
    "minutch.index.local.rebuild",
    "minutch.index.max.refused",
    "parser.character.encoding.detect",
    "parser.html.max.attributes",
    "parser.html.max.depth",
    "parser.html.outlinks.browser",
    "parser.html.outlinks.kinds",
    "parser.html.outlinks.whatwg",
    "parser.html.templates",
    "parser.html.text",
    "parser.outlinks.count",
    "parser.sandbox",
    "parser.sandbox.allow",
    "parser.worker.memory",
    "parser.workers",
    "parser.x.robots.tag",
    "sitemap.allow.partial",
    "urlfilter.regex.seconds",
    "urlnormalizer.regex.seconds",
}
"""The properties of conf/nutch-default.xml that Nutch's has not."""


def declared() -> set[str]:
    """The properties of conf/nutch-default.xml."""
    root = ElementTree.parse(PROJECT / "conf" / "nutch-default.xml").getroot()
    return {element.findtext("name", "") for element in root.iter("property")}


def test_they_are_in_the_defaults() -> None:
    assert sorted(OWN - declared()) == []


@pytest.mark.skipif(
    not NUTCHS.is_file(),
    reason="the list of Nutch's properties is not beside this checkout (../shared)",
)
def test_all_other_properties_are_nutchs() -> None:
    lines = NUTCHS.read_text(encoding="utf-8").splitlines()[1:]
    assert declared() - {line.split("\t")[1] for line in lines} == OWN


def test_each_is_named_in_a_test() -> None:
    """Tests also write `http__store__etag=` and `parser_workers=`, as keywords."""
    list_of_names = re.compile(r"^OWN = \{.*?^\}", re.MULTILINE | re.DOTALL)
    files = (PROJECT / "tests").rglob("test_*.py")
    text = re.sub(
        "_+",
        ".",
        "\n".join(list_of_names.sub("", path.read_text(encoding="utf-8")) for path in files),
    )
    words = set(re.findall(r"[\w.-]+", text))
    assert sorted(name for name in OWN if name not in words) == []


# Tests of properties


@pytest.mark.parametrize("name", ["http.accept.encoding"])
async def test_what_is_accepted_may_be_said(name: str) -> None:
    asked: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers["accept-encoding"])
        return httpx.Response(200)

    for values in ({}, {name: "br;q=0.5"}):
        protocol = Http(conf_for().with_values(values), {}, httpx.MockTransport(handler))
        await protocol.get_protocol_output("http://a.example/", CrawlDatum())
    assert "gzip" in asked[0]
    assert asked[1] == "br;q=0.5"


@pytest.mark.parametrize(("value", "method"), [("true", "HEAD"), ("false", "GET")])
async def test_http_head(value: str, method: str) -> None:
    """On one connection, also between requests that need content, as robots.txt does."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append(self.command)
            self.send_response(200)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else b"words")

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        protocol = Http(conf_for(http__head=value), {})
        for _ in range(2):
            assert (await protocol.fetch(parse(url), CrawlDatum())).body == b"words"
            output = await protocol.get_protocol_output(url, CrawlDatum())
            assert output.status.is_success
            assert output.content is not None
            assert output.content.content == (b"" if method == "HEAD" else b"words")
        await protocol.close()
        server.shutdown()
    assert asked == ["GET", method] * 2


def test_fetcher_record_skipped(tmp_path: Path) -> None:
    for number, (write, records) in enumerate((("true", 3), ("false", 1))):
        with MisbehavingServer() as server:
            urls = [server.url(name) for name in ("code-500-cut-off", "p1", "p2")]
            segment = make_segment(tmp_path / str(number), urls)
            conf = conf_for(
                fetcher__max__exceptions__per__queue="0", fetcher__record__skipped=write
            )
            counters = fetch_segment(segment, conf, threads=1)
            assert counters["generated"] == 3
            assert counters["fetched"] == counters["gone"] == 0
            assert len(fetched(segment)) == records


def robots_store(answers: list[int], **values: str) -> RobotsStore:
    """A store whose hosts forbid /no if the next of `answers` is 200."""

    async def ask(url: Url, datum: CrawlDatum, limit: int) -> Answer:
        return Answer(answers.pop(0), b"User-agent: *\nDisallow: /no\n", SpellCheckedMetadata())

    return RobotsStore.from_conf(conf_for(**values), ask)


@pytest.mark.parametrize(("value", "allowed"), [("true", True), ("false", False)])
async def test_http_robots_unreachable_allow(value: str, allowed: bool) -> None:
    store = robots_store(
        [503], http__robots__unreachable__allow=value, http__robots__503__defer__visits="false"
    )
    assert (await store.rules("http://a/x")).is_allowed("http://a/x") is allowed


@pytest.mark.parametrize(("value", "kept"), [("1k", 2), ("64m", 5)])
async def test_http_robots_cache_memory(value: str, kept: int) -> None:
    store = robots_store([404] * 5, http__robots__cache__memory=value)
    for name in "abcde":
        await store.rules(f"http://{name}/x")
    assert len(store.memory) == kept


async def test_http_robots_cache_seconds(tmp_path: Path) -> None:
    for seconds, left in (("3600", 1), ("0", 0)):
        answers = [200, 200]
        for _ in range(2):  # two rounds
            state = tmp_path / seconds
            state.mkdir(exist_ok=True)
            store = robots_store(
                answers, http__robots__cache__seconds=seconds, minutch__fetch__state=str(state)
            )
            assert not (await store.rules("http://a/x")).is_allowed("http://a/no")
            store.close()
        assert len(answers) == left
