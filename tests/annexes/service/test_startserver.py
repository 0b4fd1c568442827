"""startserver over real HTTP: a crawl as a client of Nutch's REST service does it, and what is
refused.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import shlex
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from minutch.annexes.service import openapi
from minutch.annexes.service.app import _names, token_from
from minutch.annexes.service.commandlines import COMMANDS
from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.errors import ConfigError, MinutchError, UsageError
from minutch.hadoop.formats.mapfile import MapFileWriter
from minutch.hadoop.formats.writables import Text
from minutch.job import JobContext
from minutch.processes import start_command
from minutch.records.crawldatum import CrawlDatum
from minutch.records.webgraph import LinkDatum, Node
from tests.support.commands import startserver
from tests.support.crawldbs import write_db
from tests.support.golden import PROJECT
from tests.support.segments import conf_for, make_segment
from tests.support.siteserver import SiteServer

CONFIG = {
    "http.agent.name": "client-test",
    "http.filter.ipaddress.include": "loopback",
    "fetcher.server.delay": "0",
    "http.robots.unreachable.allow": "true",
    "urlfilter.regex.rules": "+.",
}


@dataclass
class Server:
    """A service that runs."""

    client: httpx.Client
    root: Path
    token: str
    thread: threading.Thread
    codes: list[int]
    """The command's exit code, when it has ended."""

    def post(self, path: str, body: object, **query: Any) -> httpx.Response:
        return self.client.post(path, json=body, params=query)

    def job(self, crawl: str, kind: str, conf: str = "mine", **args: object) -> dict[str, Any]:
        """Start a job and wait for its end, as clients do."""
        answer = self.post(
            "/job/create", {"crawlId": crawl, "type": kind, "confId": conf, "args": args}
        )
        assert answer.status_code == 200, answer.text
        return self.wait(answer.json()["id"], "FINISHED", "FAILED", "KILLED")

    def wait(self, number: str, *states: str) -> dict[str, Any]:
        deadline = time.monotonic() + 60
        while True:
            info: dict[str, Any] = self.client.get(f"/job/{number}").json()
            if info["state"] in states:
                return info
            assert time.monotonic() < deadline, info
            time.sleep(0.01)


@contextmanager
def serving(root: Path, **values: str) -> Iterator[Server]:
    """The command, in a thread: a process of its own took two seconds to start."""
    reader, writer = os.pipe()
    conf = Configuration.load([]).with_values(values).freeze()
    with open(reader) as said, open(writer, "w") as out:  # noqa: PTH123 - of descriptors
        context = JobContext(conf, out=out)
        words = ["-port", "0", "-root", str(root)]
        codes: list[int] = []
        thread = threading.Thread(target=lambda: codes.append(startserver.run(words, context)))
        thread.start()
        url = said.readline().strip()
        has_token = "minutch.service.auth" not in values
        token = said.readline().strip().removeprefix("token: ") if has_token else ""
        with httpx.Client(
            base_url=url, auth=("nutch", token) if token else None, timeout=60, trust_env=False
        ) as client:
            yield Server(client, root, token, thread, codes)
            if thread.is_alive():
                client.get("/admin/stop", params={"force": "true"})
        thread.join(30)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("root")) as server:
        assert server.post("/config/create", {"configId": "mine", "params": CONFIG}).text == "mine"
        yield server


@pytest.fixture(scope="module")
def site() -> Iterator[SiteServer]:
    with SiteServer() as site:
        yield site


@pytest.mark.slow
def test_a_crawl(server: Server, site: SiteServer) -> None:  # noqa: PLR0915 - one request after the other
    """Seed list, inject, generate, fetch, parse, updatedb, invertlinks, dedup; then the databases
    are read.
    """
    urls = [site.site.url("one"), site.site.url("two")]
    seeds = server.post(
        "/seed/create", {"name": "seeds", "seedUrls": [{"url": url} for url in urls]}
    )
    assert (server.root / seeds.text / "urls").read_text().split() == urls
    assert server.client.get("/seed").json()["seeds"]["seedFilePath"] == seeds.text

    done = [
        server.job("crawl", "INJECT", seedName="seeds"),
        server.job("crawl", "GENERATE", topN="10", noFilter=True, force=False),
        server.job("crawl", "FETCH", threads="4"),
        server.job("crawl", "PARSE"),
        server.job("crawl", "UPDATEDB", normalize="true", filter=False),
        server.job("crawl", "INVERTLINKS"),
        server.job("crawl", "DEDUP"),
    ]
    assert [(job["state"], job["result"], job["msg"]) for job in done] == [
        ("FINISHED", {"result": "0"}, "OK")
    ] * 7
    assert done[1]["args"] == {"topN": "10", "noFilter": True, "force": False}
    assert list(done[0]) == ["id", "type", "confId", "args", "result", "state", "msg", "crawlId"]

    db = CrawlDb(server.root / "crawl" / "crawldb")
    stats = server.post(
        "/db/crawldb", {"crawlId": "crawl", "type": "stats", "args": {"sort": "true"}}
    ).json()
    assert stats["totalUrls"] == str(len(db)) != "2"
    assert stats["status"]["2"]["statusValue"] == "db_fetched"
    assert sum(int(status["count"]) for status in stats["status"].values()) == len(db)
    assert sum(int(n) for n in stats["status"]["2"]["hostValues"].values()) == int(
        stats["status"]["2"]["count"]
    )
    entry = server.post(
        "/db/crawldb", {"crawlId": "crawl", "type": "url", "args": {"url": urls[0]}}
    ).json()
    datum = db[urls[0]]
    assert (entry["status"], entry["fetchTime"], entry["retryInterval"]) == (
        2,
        datum.fetch_time,
        datum.fetch_interval,
    )
    assert entry["signature"] == (datum.signature or b"").hex()
    nobody = {"crawlId": "crawl", "type": "url", "args": {"url": "http://no.example/"}}
    assert server.post("/db/crawldb", nobody).status_code == 204
    dump = server.post(
        "/db/crawldb",
        {"crawlId": "crawl", "type": "dump", "args": {"out_dir": "crawl/dumped", "format": "csv"}},
    )
    assert dump.headers["content-type"] == "application/octet-stream"
    assert len(dump.text.splitlines()) == len(db) + 1
    top = server.post(
        "/db/crawldb",
        {"crawlId": "crawl", "type": "topN", "args": {"out_dir": "crawl/top", "nnn": "1"}},
    )
    assert len(top.text.splitlines()) == 1

    pages = server.client.get("/db/fetchdb").json()
    assert {page["url"] for page in pages} == set(urls)
    first = next(page for page in pages if page["url"] == urls[0])
    assert first["status"] == 1
    assert first["numOfOutlinks"] == len(first["children"]) > 0
    assert set(first["children"][0]) == {"childUrl", "anchorText"}
    assert server.client.get("/db/fetchdb", params={"from": 2, "to": 2}).json() == pages[1:2]

    ids = [job["id"] for job in done]
    assert [job["id"] for job in server.client.get("/job", params={"crawlId": "crawl"}).json()][
        :7
    ] == ids
    assert [job["id"] for job in server.client.get("/admin").json()["jobs"]][:7] == ids
    assert server.client.get(f"/job/{ids[0]}/stop").json() is False, "it has ended"

    writers = server.root / "writers.xml"
    shipped = (PROJECT / "conf" / "index-writers.xml").read_text()
    writers.write_text(shipped.replace("./dummy-index.txt", str(server.root / "dummy-index.txt")))
    more = {**CONFIG, "plugin.includes": "index-(basic|anchor)|indexer-dummy|urlnormalizer-pass"}
    more["indexer.indexwriters.file"] = str(writers)
    assert (
        server.post("/config/create", {"configId": "indexing", "params": more}).status_code == 200
    )
    indexed = server.job(
        "crawl", "INDEX", "indexing", deleteGone=True, noCommit="false", params="k=v"
    )
    assert (indexed["state"], indexed["msg"]) == ("FINISHED", "OK")
    assert (server.root / "dummy-index.txt").read_text().count("add\t") >= 2
    wanted = {
        "jsonArray": True,
        "linkdb": "crawl/linkdb",
        "mimetypes": ["text/html"],
        "keyPrefix": "k",
    }
    dumped = server.post(
        "/services/commoncrawldump", {"crawlId": "crawl", "confId": "mine", "args": wanted}
    )
    assert dumped.status_code == 200, dumped.text
    documents = [path for path in (server.root / dumped.text).rglob("*") if path.is_file()]
    assert len(documents) >= 2
    assert all(b'"key" : "k-http' in path.read_bytes() for path in documents)
    assert server.client.get("/services/commoncrawldump/crawl").json() == {
        "dumpPaths": [dumped.text]
    }


def test_the_arguments_are_those_of_nutchs_service() -> None:
    """Options under their names there; those of minutch that a client has no business with are not
    offered.
    """
    known = {name: {*line.places, *line.options} for name, line in COMMANDS.items()}
    limits = {"topN", "numFetchers", "adddays", "maxNumSegments", "expr", "hostdb"}
    assert known["generate"] == limits | {"crawldb", "segment_dir", "noFilter", "noNorm", "force"}
    assert known["fetch"] == {"segment", "threads"}
    assert known["parse"] == {"segment", "nofilter", "nonormalize"}
    assert known["index"] >= {"linkdb", "params", "deleteGone"}
    assert not known["index"] & {"dir", "nocrawldb"}
    assert known["commoncrawldump"] >= {"mimetypes", "simpleDateFormat", "outputDir"}
    assert not known["commoncrawldump"] & {"segment", "SimpleDateFormat", "mimetype"}


def test_nothing_is_due(server: Server) -> None:
    """And a job is named by its class."""
    write_db(server.root / "none/crawldb", [])
    body = {
        "crawlId": "none",
        "jobClassName": "org.apache.nutch.crawl.Generator",
        "confId": "mine",
        "args": {},
    }
    due = server.wait(server.post("/job/create", body).json()["id"], "FINISHED", "FAILED")
    assert (due["state"], due["type"], due["result"]) == ("FINISHED", None, {"result": "1"})


@pytest.mark.slow  # three fetches; test_jobtable.py stops and aborts a job
def test_jobs_are_stopped_and_aborted(server: Server, site: SiteServer) -> None:
    """Stopped as by Ctrl-C; what was stopped goes on where it was."""
    make_segment(server.root / "held", [site.site.url("one"), site.site.url("one", "/x")])
    arrived, go_on = threading.Event(), threading.Event()

    def before(path: str) -> None:
        if path != "/robots.txt":
            arrived.set()
            go_on.wait(30)

    site.before = before
    try:
        for how, state, message in (("abort", "KILLED", "aborted"), ("stop", "KILLED", "stopped")):
            arrived.clear()
            body = {"crawlId": "held", "type": "FETCH", "confId": "mine", "args": {}}
            number = server.post("/job/create", body).json()["id"]
            assert arrived.wait(30)
            assert [job["id"] for job in server.client.get("/admin").json()["runningJobs"]] == [
                number
            ]
            assert "still running" in server.client.get("/admin/stop").text
            assert server.client.get(f"/job/{number}/{how}").json() is True
            if how == "stop":
                go_on.set()  # what is under way is finished, the other page waits for another time
            info = server.wait(number, "KILLED", "FINISHED", "FAILED")
            assert (info["state"], info["msg"]) == (state, message)
    finally:
        site.before = lambda path: None
        go_on.set()
    assert server.job("held", "FETCH")["state"] == "FINISHED"


def test_a_job_that_cant_begin_says_why(server: Server) -> None:
    assert server.job("nowhere", "FETCH")["msg"] == "ERROR: no segment in nowhere/segments"


@pytest.mark.slow  # a command; test_jobtable.py has the rule
def test_a_job_that_fails_says_why(server: Server) -> None:
    job = server.job("nowhere", "UPDATEDB", segment="nowhere/segments/1")
    assert (job["state"], job["result"]) == ("FAILED", {"result": "-1"})
    assert job["msg"].startswith("ERROR: ")
    assert f"no CrawlDb in {server.root}/nowhere/crawldb" in job["msg"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"type": "INJECT"}, "Arguments cannot be null!"),
        (
            {"type": "INJECT", "args": []},
            "body: Expected `object | null`, got `array` - at `$.args`",
        ),
        ({"type": "GENERATE", "args": {"topN": "all"}}, "args: Expected `str` matching regex"),
        ({"type": "../x", "jobClassName": "inject", "args": {}}, "no job of this kind: ../x"),
        ({"type": "CLASS", "args": {}}, "no job of this kind: CLASS"),
        ({"type": "READDB", "args": {}}, "no job of this kind: READDB"),
        (
            {
                "type": "CLASS",
                "jobClassName": "org.apache.nutch.plugin.PluginRepository",
                "args": {},
            },
            "no job of this kind",
        ),
        ({"type": "INJECT", "confId": "nobody's", "args": {}}, "Unknown confId nobody's"),
        ([], "body: Expected `object`, got `array`; GET /docs has examples"),
    ],
)
def test_jobs_that_are_none(server: Server, body: object, why: str) -> None:
    answer = server.post("/job/create", body)
    assert (answer.status_code, answer.text[: len(why)]) == (400, why)


def test_configurations(server: Server) -> None:
    client = server.client
    assert {"default", "mine"} <= set(client.get("/config").json())
    assert client.get("/config/mine/http.agent.name").text == "client-test"
    assert client.get("/config/mine").json()["fetcher.server.delay"] == "0"
    assert client.get("/config/mine/no.such.property").status_code == 204
    assert client.get("/config/nobody").json() == {}
    again = server.post("/config/create", {"configId": "mine", "params": {}})
    assert (again.status_code, again.text) == (400, "Config already exists.")
    assert (
        server.post(
            "/config/create", {"configId": "forced", "params": {"http.agent.name": "a"}}
        ).status_code
        == 200
    )
    assert (
        server.post("/config/create", {"configId": "forced", "force": True, "params": {}}).text
        == "forced"
    )
    assert client.get("/config/forced/http.agent.name").status_code in (200, 204)
    named = server.post("/config/create", {"params": {"x.y": 5, "x.z": True}}).text
    assert (client.get(f"/config/{named}/x.y").text, client.get(f"/config/{named}/x.z").text) == (
        "5",
        "true",
    )
    text = {"Content-Type": "text/plain"}
    assert client.put(f"/config/{named}/x.y", content="six", headers=text).status_code == 200
    assert client.get(f"/config/{named}/x.y").text == "six"
    assert (
        client.put("/config/nobody/x.y", content="six", headers=text).text
        == "Unknown configId 'nobody'"
    )
    assert client.delete(f"/config/{named}").status_code == 204
    assert named not in client.get("/config").json()
    assert client.delete("/config/default").status_code == 400
    wrong = server.post("/config/create", {"params": {"fetcher.threads.fetch": "many"}})
    assert wrong.status_code == 400
    assert "fetcher.threads.fetch (program): expected a whole number, found 'many'" in wrong.text
    assert server.post("/config/create", {"params": {"x": "\u0000"}}).status_code == 400


def test_passwords_of_configurations_are_hidden(server: Server) -> None:
    server.post(
        "/config/create", {"configId": "secrets", "params": {"http.proxy.password": "swordfish"}}
    )
    assert server.client.get("/config/secrets/http.proxy.password").text == "********"
    assert "swordfish" not in server.client.get("/config/secrets").text


def test_files_are_read(server: Server) -> None:
    folder = server.root / "graph"
    links, nodes = folder / "links", folder / "nodes"
    with MapFileWriter(links, Text.class_name, LinkDatum.class_name) as writer:
        for number in range(3):
            writer.append(
                Text(f"http://{number}.example/"),
                LinkDatum("http://to.example/", "anchor", 1.5, 7, 2),
            )
    with MapFileWriter(nodes, Text.class_name, Node.class_name) as writer:
        writer.append(Text("http://a.example/"), Node(2, 4, 3.0))
    body = {"path": "graph/links/data"}
    found = server.post("/reader/link/read", body).json()
    assert found[0] == {
        "key_url": "http://0.example/",
        "url": "http://to.example/",
        "anchor": "anchor",
        "score": "1.5",
        "timestamp": "7",
        "linktype": "2",
    }
    assert server.post("/reader/link/read", body, nrows=2).json() == found[:2]
    assert server.post("/reader/link/read", body, nrows=0).json() == []
    assert server.post("/reader/link/read", body, start=1, end=3).json() == found[1:3]
    assert server.post("/reader/link/read", body, count="true").text == "3"
    assert set(server.client.get("/reader/link").json()) == set(found[0])
    plain = server.post("/reader/sequence/read", body, nrows=1).json()
    assert plain == [
        ["http://0.example/", str(LinkDatum("http://to.example/", "anchor", 1.5, 7, 2))]
    ]
    (node,) = server.post("/reader/node/read", {"path": "graph/nodes/data"}).json()
    assert (node["num_inlinks"], node["num_outlinks"], node["outlink_score"]) == ("2", "4", "0.75")
    assert set(server.client.get("/reader/node").json()) == set(node)
    assert "expected Node records" in server.post("/reader/node/read", body).text
    missing = server.post("/reader/sequence/read", {"path": "graph/none"})
    assert (missing.status_code, missing.text) == (400, "File not found")
    (folder / "text").write_text("no SequenceFile")
    assert server.post("/reader/sequence/read", {"path": "graph/text"}).status_code == 500


NO_PATHS = ["", "a\u0000b"]
OUTSIDE = ["/etc/passwd", "../x", "graph/../../x", "link-out/x", "file:/etc/passwd", *NO_PATHS]


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_leads_out_of_the_folder(server: Server, path: str) -> None:
    link = server.root / "link-out"
    if not link.is_symlink():
        link.symlink_to(server.root.parent)
    assert server.post("/reader/sequence/read", {"path": path}).status_code == 400
    for body in (
        {"crawlId": path, "type": "stats", "args": {}},
        {"crawlId": "crawl", "type": "dump", "args": {"out_dir": path}},
        {"crawlId": "crawl", "type": "topN", "args": {"out_dir": path, "nnn": "1"}},
    ):
        assert server.post("/db/crawldb", body).status_code == 400
    for kind, name in (
        ("INJECT", "url_dir"),
        ("FETCH", "segment"),
        ("UPDATEDB", "crawldb"),
        ("GENERATE", "hostdb"),
    ):
        args = {"url_dir": "crawl", name: path}
        if path in NO_PATHS:  # refused before anything begins
            body = {"crawlId": "crawl", "type": kind, "args": args}
            assert server.post("/job/create", body).status_code == 400
            continue
        job = server.job("crawl", kind, **args)
        assert job["state"] == "FAILED"
        assert job["msg"].startswith(f"ERROR: {name}: ")


def test_no_value_is_an_option(server: Server) -> None:
    """A client's values are never options, such as -D, which could name a class to run."""
    for args in (
        {"topN": "-Dplugin.folders=/x"},
        {"expr": "-Dplugin.folders=/x"},
        {"numFetchers": "1 -force"},
    ):
        body = {"crawlId": "crawl", "type": "GENERATE", "args": args}
        assert server.post("/job/create", body).status_code == 400
    bad = {
        "crawlId": "crawl",
        "type": "dump",
        "args": {"out_dir": "crawl/x", "regex": "-Dplugin.folders=/x"},
    }
    assert server.post("/db/crawldb", bad).status_code == 400
    assert (
        server.post(
            "/seed/create", {"name": "n", "seedUrls": [{"url": "http://a/\nhttp://b/"}]}
        ).status_code
        == 400
    )


def test_nothing_is_answered_without_the_token(server: Server) -> None:
    with httpx.Client(base_url=server.client.base_url, trust_env=False) as client:
        for operation in openapi.OPERATIONS:
            answer = client.request(operation.method, operation.path)
            assert (answer.status_code, "www-authenticate" in answer.headers) == (401, True), (
                operation.path
            )
        for header in ("Bearer wrong", "Basic %%%", f"Digest {server.token}", "", "Bearer"):
            assert client.get("/admin", headers={"Authorization": header}).status_code == 401
        assert (
            client.get("/admin", headers={"Authorization": f"Bearer {server.token}"}).status_code
            == 200
        )


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "", "evil.example:8081"]
)
def test_other_names_are_not_answered(server: Server, host: str) -> None:
    assert server.client.get("/admin", headers={"Host": host}).status_code == 421


def test_pages_of_other_sites_are_not_answered(server: Server) -> None:
    own = str(server.client.base_url).rstrip("/")
    for headers, code in (
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": own}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
    ):
        assert server.client.get("/admin", headers=headers).status_code == code, headers
    form = server.client.post("/job/create", data={"x": "y"})
    assert form.status_code == 415


def test_requests_are_bounded(server: Server) -> None:
    large = b'{"x": "' + b"x" * (9 << 20) + b'"}'
    kind = {"Content-Type": "application/json"}
    assert server.client.post("/job/create", content=large, headers=kind).status_code == 413
    pieces = (large[start : start + 65536] for start in range(0, len(large), 65536))
    assert server.client.post("/job/create", content=pieces, headers=kind).status_code == 400
    assert (
        server.client.post("/job/create", content=b"[" * 100_000, headers=kind).status_code == 400
    )


def test_the_service_is_described(server: Server) -> None:
    with httpx.Client(base_url=server.client.base_url, trust_env=False) as client:
        described = client.get("/openapi.json").json()
        page = client.get("/docs")
    assert described["openapi"] == "3.1.0"
    assert set(described["paths"]) == {operation.path for operation in openapi.OPERATIONS}
    assert all(operation.path in page.text for operation in openapi.OPERATIONS)
    assert "src=" not in page.text and "<script" not in page.text
    assert page.text.count("curl -u nutch:$TOKEN") == len(openapi.OPERATIONS)
    groups = re.findall(r'<section id="(\w+)"', page.text)
    assert groups == list(dict.fromkeys(one.path.split("/")[1] for one in openapi.OPERATIONS))
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_the_commands_of_the_description_work(server: Server) -> None:
    """What the page shows can be typed as it stands, and is answered as it says."""
    wanted = "config_create configs config config_set config_property config_delete seed_create"
    operations = {one.function: one for one in openapi.OPERATIONS}
    for name in f"{wanted} link_schema node_schema".split():
        operation = operations[name]
        command = openapi._command(operation).replace("mine", "typed")  # others use `mine`
        words = shlex.split(command)
        assert words[:3] == ["curl", "-u", "nutch:$TOKEN"]
        options = dict(pairwise(words))
        path = next(word for word in words if word.startswith("localhost:8081"))
        method = options.get("-X") or ("POST" if "-d" in words else "GET")
        answer = server.client.request(
            method,
            path.removeprefix("localhost:8081"),
            content=options.get("-d"),
            headers=dict([options["-H"].split(": ")]) if "-H" in options else None,
        )
        assert answer.status_code < 300, (name, answer.text)
        example = operation.example.replace("mine", "typed").partition("…")[0]
        assert answer.text.startswith(example[:4]), (name, answer.text)
        assert bool(answer.text) == bool(example)


def test_dumps_of_the_common_crawls_kind(server: Server) -> None:
    (server.root / "dumps" / "dump" / "one").mkdir(parents=True)
    assert server.client.get("/services/commoncrawldump/dumps").json() == {
        "dumpPaths": ["dumps/dump/one"]
    }
    assert server.client.get("/services/commoncrawldump/none").json() == {"dumpPaths": []}


def test_a_configuration_on_disk_is_its_owners_alone(
    server: Server, site: SiteServer, tmp_path: Path
) -> None:
    from minutch.annexes.service.configs import write

    write(conf_for().with_values({"http.proxy.password": "<&>"}), tmp_path / "x.xml")
    assert stat.S_IMODE((tmp_path / "x.xml").stat().st_mode) == 0o600
    text = (tmp_path / "x.xml").read_text()
    assert "&lt;&amp;&gt;" in text
    assert "db.fetch.interval.default" not in text, "defaults stay where they are"


def test_jobs_take_no_module_from_the_folder(tmp_path: Path) -> None:
    """Neither from the working folder nor from that of the crawls, whatever was written there."""
    for name in ("minutch", "logging"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(
            "open('was-here', 'w').close(); raise SystemExit(9)"
        )

    async def started() -> int:
        process = await start_command(["completion", "bash"], limit=1 << 16)
        await process.communicate()
        return process.returncode or 0

    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        assert asyncio.run(started()) == 0
    finally:
        os.chdir(before)
    assert not (tmp_path / "was-here").exists()


def test_without_authentication_nothing_runs_code(tmp_path: Path) -> None:
    """Properties name classes and programs: nobody sets one who has not shown a token."""
    with serving(tmp_path, **{"minutch.service.auth": "false"}) as server:
        for body in ({"params": {"plugin.folders": "/tmp"}}, {"params": {"http.agent.name": "x"}}):
            answer = server.post("/config/create", body)
            assert answer.status_code == 400
            assert "no property can be set" in answer.text
        changed = server.client.put("/config/default/plugin.folders", content="/tmp")
        assert changed.status_code == 400
        assert server.client.get("/admin", headers={"Host": "evil.example"}).status_code == 421
        stopping = server.client.get("/admin/stop").text
        assert stopping == f"Stopping in server on port {server.client.base_url.port}"
        server.thread.join(30)
        assert server.codes == [0]


def test_what_is_wrong_with_the_start(tmp_path: Path) -> None:
    def start(*words: str, **values: str) -> None:
        startserver.run(
            list(words),
            JobContext(
                conf_for().with_values({k.replace("__", "."): v for k, v in values.items()})
            ),
        )

    with pytest.raises(MinutchError, match="no such folder"):
        start("-root", str(tmp_path / "none"))
    with pytest.raises(UsageError, match="-port: expected 0 to 65535, found 70000"):
        start("-port", "70000")
    with pytest.raises(ConfigError, match=r"minutch.service.token: expected 16 printable"):
        start(minutch__service__token="short")
    with pytest.raises(
        ConfigError, match=r"minutch.service.auth=false is for loopback alone, not for 0.0.0.0"
    ):
        start("-host", "0.0.0.0", minutch__service__auth="false")
    import socket

    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(MinutchError, match="can't listen on localhost"),
    ):
        start("-port", str(taken.getsockname()[1]))


def test_tokens_and_names() -> None:
    conf = conf_for().with_values(
        {"minutch.service.token": "a-token-of-one's-own", "minutch.service.hosts": "A.example"}
    )
    assert token_from(conf, "localhost") == "a-token-of-one's-own"
    first, second = (token_from(conf_for(), "localhost") for _ in range(2))
    assert first != second
    assert len(first or "") >= 43
    assert _names("localhost", conf) == {"localhost", "127.0.0.1", "[::1]", "a.example"}
    assert _names("192.0.2.1", conf) == {"192.0.2.1", "a.example"}


def test_scores_that_are_no_numbers_are_null(server: Server) -> None:
    """JSON has none (RFC 8259, section 6)."""
    scores = {"http://nan.example/": math.nan, "http://infinite.example/": -math.inf}
    entries = [(url, CrawlDatum(2, 86_400, score)) for url, score in scores.items()]
    write_db(server.root / "no-numbers/crawldb", entries)
    for url in scores:
        args = {"crawlId": "no-numbers", "type": "url", "args": {"url": url}}
        answer = server.post("/db/crawldb", args)
        assert (answer.status_code, answer.json()["score"]) == (200, None)
    stats = server.post("/db/crawldb", {"crawlId": "no-numbers", "type": "stats"})
    assert stats.status_code == 200 and stats.json()["totalUrls"] == "2"
