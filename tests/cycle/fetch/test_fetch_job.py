"""The fetch command on a loopback server: what it writes, how it ends, and how it goes on after a
kill.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from minutch.cycle.fetch.fetch import FINISHING
from minutch.cycle.fetch.fetcher import fetch
from minutch.cycle.fetch.frontier.hostmemory import BusyHosts, state_folder
from minutch.cycle.fetch.ledger import Interrupted
from minutch.cycle.fetch.listfetch import working
from minutch.cycle.fetch.results.fetchlog import frames
from minutch.cycle.fetch.settings import FetchOptions
from minutch.cycle.segment.store import FETCHING, Segment
from minutch.errors import ConfigError, LockedError, MinutchError, StoreError, UsageError
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.writables import LongWritable, Text
from minutch.job import JobContext
from minutch.records.crawldatum import STATUS_DB_FETCHED, CrawlDatum
from minutch.work.tables.lock import LOCK_NAME, lock
from tests.support.commands import command
from tests.support.examples import few
from tests.support.misbehaving import MisbehavingServer, page
from tests.support.segments import (
    LOOPBACK,
    conf_for,
    contents,
    fetch_segment,
    fetched,
    make_segment,
)

run = command("fetch").run

ROOT = Path(__file__).resolve().parents[3]
HTML = b"<html><head><title>T</title></head><body><a href='/linked'>one</a> text</body></html>"


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as running:
        yield running


def pages(server: MisbehavingServer, count: int) -> list[str]:
    for n in range(count):
        server.pages[f"/p{n}"] = page(HTML, "Content-Type: text/html")
    return [server.url(f"p{n}") for n in range(count)]


def test_a_list_of_which_nothing_may_be_asked_for(
    server: MisbehavingServer, tmp_path: Path
) -> None:
    """Its pages wait; with one that may, it is no error."""
    [url] = pages(server, 1)
    refusing = {"http__filter__ipaddress__exclude": "loopback"}
    segment = make_segment(tmp_path, [url])
    with pytest.raises(MinutchError, match="own settings refuse all pages"):
        run([str(segment.path)], JobContext(conf_for(**refusing)))
    assert not server.requests


# -- what is written -------------------------------------------------------------------------------


def test_a_fetched_segment(server: MisbehavingServer, tmp_path: Path) -> None:
    server.pages["/robots.txt"] = page(b"User-agent: *\nDisallow: /private\n")
    urls = [
        *pages(server, 3),
        server.url("private"),
        server.url("missing"),
        server.url("code-500-cut-off"),
    ]
    segment = make_segment(tmp_path, urls)
    counters = fetch_segment(segment, conf_for())
    assert counters == {
        "generated": 6,
        "fetched": 3,
        "redirected": 0,
        "gone": 1,
        "retry": 1,
        "denied": 1,
        "deferred": 0,
    }
    assert sorted(path.name for path in segment.path.iterdir()) == [
        "content",
        "crawl_fetch",
        "crawl_generate",
    ]
    assert server.requests["/robots.txt"] == 1
    datum = fetched(segment)[urls[0]][0]
    assert datum.status_name == "fetch_success"
    assert sorted(map(str, datum.metadata)) == [
        "Content-Type",
        "_pst_",
        "_rs_",
        "nutch.protocol.code",
    ]
    content = contents(segment)[urls[0]]
    assert (content.content, content.content_type) == (HTML, "text/html")
    assert content.metadata["nutch.segment.name"] == ["20260101000000"]
    assert content.metadata["_fst_"] == ["33"] and content.metadata["nutch.crawl.score"] == ["1.0"]
    assert set(contents(segment)) == set(urls[:3])


def test_parsing_while_fetching(server: MisbehavingServer, tmp_path: Path) -> None:
    segment = make_segment(tmp_path, pages(server, 2))
    conf = conf_for(
        fetcher__parse="true",
        plugin__includes="protocol-http|parse-html|urlnormalizer-basic|scoring-opic",
    )
    fetch_segment(segment, conf)
    url = server.url("p0")
    assert str(segment.get("parse_text", url)[0]).endswith("text")
    assert "Title: T" in str(segment.get("parse_data", url)[0])
    linked = [(key, value.status_name) for key, value in segment.records("crawl_parse")]  # type: ignore[attr-defined]
    assert linked == [(server.url(f"p{n}"), "signature") if k == 0 else (server.url("linked"), "linked")  # noqa: E501
                      for n in range(2) for k in range(2)]  # fmt: skip
    assert (
        fetched(segment)[url][0].signature is None
    )  # it is in crawl_parse; Nutch writes the datum before the parse
    stored = contents(segment)[url].metadata
    assert "nutch.content.digest" not in stored and "_ftk_" not in stored
    parsed = segment.get("parse_data", url)[0].content_meta  # type: ignore[attr-defined]
    assert (
        parsed["_fst_"] == stored["_fst_"] == ["33"]
        and parsed["nutch.content.digest"]
        and parsed["_ftk_"]
    )


def test_following_links_while_fetching(server: MisbehavingServer, tmp_path: Path) -> None:
    urls = pages(server, 1)
    server.pages["/linked"] = page(b"<a href='/deeper'>x</a>", "Content-Type: text/html")
    server.pages["/deeper"] = page(b"<a href='/deepest'>x</a>", "Content-Type: text/html")
    values = {
        "fetcher.parse": "true",
        "fetcher.follow.outlinks.depth": "2",
        "plugin.includes": "protocol-http|parse-html|scoring-opic",
    }
    segment = make_segment(tmp_path, urls)
    fetch_segment(segment, conf_for().with_values(values))
    assert list(fetched(segment)) == [server.url(name) for name in ("deeper", "linked", "p0")]
    assert "/deepest" not in server.requests


def test_robots_txt_may_be_stored(server: MisbehavingServer, tmp_path: Path) -> None:
    robots = b"User-agent: *\nContent-Signal: ai-train=no\nDisallow: /private\nSitemap: /map.xml\n"
    server.pages["/robots.txt"] = page(robots, "Content-Type: text/plain")
    urls = pages(server, 2)
    segment = make_segment(tmp_path, urls)
    fetch_segment(segment, conf_for(fetcher__store__robotstxt="true"))
    found = contents(segment)
    assert sorted(found) == sorted([*urls, server.url("robots.txt")])
    stored = found[server.url("robots.txt")]
    assert stored.content == robots
    assert stored.metadata["robotstxt.sitemap"] == [server.url("map.xml")]
    assert stored.metadata["robotstxt.content-signal"] == ["ai-train=no"]
    assert stored.metadata["nutch.protocol.code"] == ["200"]
    assert sorted(fetched(segment)) == sorted(urls)


def test_a_host_is_asked_once_for_its_tdmrep_json(
    server: MisbehavingServer, tmp_path: Path
) -> None:
    """Which is stored and no page, and only if robots.txt does not forbid it."""
    rules = b'[{"location": "/", "tdm-reservation": 1}]'
    server.pages["/.well-known/tdmrep.json"] = page(rules, "Content-Type: application/json")
    urls, path = pages(server, 3), "/.well-known/tdmrep.json"
    for number, robots in enumerate((b"", b"User-agent: *\nDisallow: /.well-known\n")):
        server.pages["/robots.txt"] = page(robots, "Content-Type: text/plain")
        server.requests.clear()
        segment = make_segment(tmp_path / str(number), urls)
        counters = fetch_segment(segment, conf_for(fetcher__tdmrep="true"))
        asked = ["/p0", "/p1", "/p2", "/robots.txt", *([] if number else [path])]
        assert server.requests == dict.fromkeys(asked, 1)
        assert (counters["generated"], counters["fetched"]) == (3, 3)
        assert sorted(fetched(segment)) == urls
        kept = {*contents(segment)} - {*urls}
        assert kept == ({server.url(path[1:])} if number == 0 else set())
    stored = contents(Segment(tmp_path / "0/segments/20260101000000"))[server.url(path[1:])]
    assert (stored.content, stored.metadata.get("nutch.protocol.code")) == (rules, "200")
    assert stored.metadata.get("_fst_") is None


def test_pages_may_be_signed(server: MisbehavingServer, tmp_path: Path) -> None:
    urls = pages(server, 2)
    for number, wanted in enumerate(("false", "true")):
        segment = make_segment(tmp_path / str(number), urls)
        fetch_segment(segment, conf_for(fetcher__signature=wanted))
        signatures = {fetched(segment)[url][0].signature for url in urls}
        assert signatures == ({hashlib.md5(HTML).digest()} if wanted == "true" else {None})


PUBLISHER = """\
import json
from pathlib import Path
from minutch.plugin.points import NutchPublisher

class Told(NutchPublisher):
    def set_config(self):
        self.path = Path(self.conf.get("told.file"))
        return True

    def publish(self, event):
        with self.path.open("a") as file:
            file.write(json.dumps(event) + "\\n")
"""


@pytest.mark.parametrize("processes", ["1", "2"])
def test_events_are_published(server: MisbehavingServer, tmp_path: Path, processes: str) -> None:
    folder = tmp_path / "plugins" / "publisher_told"
    folder.mkdir(parents=True)
    (folder / "plugin.xml").write_text(
        '<plugin id="publisher-told" name="t"><requires><import'
        ' plugin="nutch-extensionpoints"/></requires><extension'
        ' point="org.apache.nutch.publisher.NutchPublisher"><implementation id="t"'
        ' class="told:Told"/></extension></plugin>'
    )
    (folder / "told.py").write_text(PUBLISHER)
    (url,) = pages(server, 1)
    segment = make_segment(tmp_path, [url])
    values = {
        "plugin.folders": f"plugins,{folder.parent}",
        "plugin.includes": "protocol-http|parse-html|publisher-told|scoring-opic",
        "told.file": str(tmp_path / "events"),
        "fetcher.parse": "true",
        "minutch.fetch.processes": processes,
    }
    fetch_segment(segment, conf_for(fetcher__publisher="true").with_values(values))
    events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert [(event["eventType"], event["url"]) for event in events] == [
        (t, url) for t in ("START", "END", "REPORT")
    ]
    assert events[1]["eventData"] == {"status": "success"}
    assert events[2]["eventData"]["title"] == "T"
    assert events[2]["eventData"]["outlinks"] == [{"url": server.url("linked"), "anchor": "one"}]


def test_content_may_stay_out(server: MisbehavingServer, tmp_path: Path) -> None:
    segment = make_segment(tmp_path, pages(server, 1))
    fetch_segment(segment, conf_for(fetcher__store__content="false"))
    assert not segment.has("content") and segment.has("crawl_fetch")


def test_an_empty_fetch_list(tmp_path: Path) -> None:
    segment = make_segment(tmp_path, [])
    assert fetch_segment(segment, conf_for())["generated"] == 0
    assert fetched(segment) == {}


def test_urls_are_filtered_and_normalized_if_asked_for(
    server: MisbehavingServer, tmp_path: Path
) -> None:
    (tmp_path / "regex-urlfilter.txt").write_text("-/p1$\n+.\n")
    urls = pages(server, 2)
    segment = make_segment(tmp_path, [*(f"{url}#x" for url in urls), "nosuch:url"])
    values = {
        "plugin.includes": "protocol-http|urlfilter-regex|urlnormalizer-basic|scoring-opic",
        "urlfilter.regex.file": str(tmp_path / "regex-urlfilter.txt"),
        "fetcher.filter.urls": "true",
        "fetcher.normalize.urls": "true",
    }
    counters = fetch_segment(segment, conf_for().with_values(values))
    assert counters["skipped (filtered)"] == 2
    found = fetched(segment)
    assert found[urls[0]][0].status_name == "fetch_success"
    assert "notfetching(20), lastModified=0: filtered" in str(found[f"{urls[1]}#x"][0])


def test_a_damaged_state_costs_requests_and_no_page(
    server: MisbehavingServer, tmp_path: Path
) -> None:
    """Pages that were fetched before are, though what is known of them can't be looked up."""
    urls = pages(server, 3)
    segment = make_segment(
        tmp_path, [(url, CrawlDatum(STATUS_DB_FETCHED, 100, 1.0, modified_time=1)) for url in urls]
    )
    folder = state_folder(segment.path)
    with BusyHosts(folder) as state:
        state.write("INSERT INTO busy VALUES (?, ?)", [(f"h{n}", 10**15) for n in range(2000)])
    path = folder / "fetch.sqlite"
    path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 40_000)
    (folder / "robots.sqlite").write_bytes(b"damaged" * 1000)
    assert fetch_segment(segment, conf_for())["fetched"] == 3
    assert sorted(found.name for found in folder.glob("*.damaged")) == [
        "fetch.damaged",
        "robots.damaged",
    ]


def test_robots_txt_is_not_asked_for_again_in_the_next_round(
    server: MisbehavingServer, tmp_path: Path
) -> None:
    server.pages["/robots.txt"] = page(b"User-agent: *\nDisallow: /p1\n")
    urls = pages(server, 2)
    segment = make_segment(tmp_path, urls)
    fetch_segment(segment, conf_for())
    second = Segment(segment.path.with_name("20260102000000"))
    make_segment(tmp_path / "x", urls).path.rename(second.path)
    assert fetch_segment(second, conf_for())["denied"] == 1
    assert server.requests["/robots.txt"] == 1


@pytest.mark.parametrize("answer", ["500 Oops", "429 Slow"])
def test_a_failing_robots_txt_keeps_no_fetch_open(
    server: MisbehavingServer, tmp_path: Path, answer: str
) -> None:
    server.pages["/robots.txt"] = page(b"", status=answer)
    urls = pages(server, 4)
    segment = make_segment(tmp_path, urls)
    counters = fetch_segment(segment, conf_for())
    assert (counters["generated"], counters["deferred"]) == (4, 4)
    assert server.requests == {"/robots.txt": 1}
    assert {url: datum.status_name for url, (datum,) in fetched(segment).items()} == dict.fromkeys(
        urls, "linked"
    )


def test_a_folder_of_segments_holds_segments_alone(
    server: MisbehavingServer, tmp_path: Path
) -> None:
    """Nutch takes everything in it for one, whatever the folder is called."""
    made = make_segment(tmp_path / "made", pages(server, 2))
    segment = Segment(tmp_path / "crawl" / "rounds" / made.name)
    segment.path.parent.mkdir(parents=True)
    made.path.rename(segment.path)
    assert fetch_segment(segment, conf_for())["fetched"] == 2
    assert [path.name for path in segment.path.parent.iterdir()] == [segment.name]


def test_a_busy_host_is_left_alone_in_the_next_round(
    server: MisbehavingServer, tmp_path: Path
) -> None:
    server.pages["/p"] = page(b"", "Retry-After: 3600", status="503 Busy")
    conf = conf_for().with_values({"http.retry.after.max.seconds": "86400"})
    segment = make_segment(tmp_path, [server.url("p"), *pages(server, 2)])
    assert fetch_segment(segment, conf) == {
        "generated": 3,
        "fetched": 0,
        "redirected": 0,
        "gone": 0,
        "retry": 1,
        "denied": 0,
        "deferred": 2,
    }
    second = Segment(segment.path.with_name("20260102000000"))
    make_segment(tmp_path / "x", pages(server, 2)).path.rename(second.path)
    assert fetch_segment(second, conf)["deferred"] == 2
    assert "/p0" not in server.requests


def test_a_stop_waits_for_no_host_that_rests(server: MisbehavingServer, tmp_path: Path) -> None:
    """By this process and by tasks alike (`--on-spark`)."""
    server.pages["/p"] = page(b"", "Retry-After: 60", status="503 Busy")
    conf = conf_for().with_values({"http.retry.after.max.seconds": "60"})
    segment = make_segment(tmp_path, [server.url("p"), *pages(server, 2)])
    options = FetchOptions(is_stopping=lambda: server.requests["/p"] > 0)
    counters = fetch(segment.path, options, context=JobContext(conf, err=io.StringIO()))
    assert (counters["generated"], counters["retry"], counters["deferred"]) == (3, 1, 2)


def test_variable_delay_does_not_reach_the_segment(
    server: MisbehavingServer, tmp_path: Path
) -> None:
    datum = CrawlDatum(1, 100, 1.0)
    datum.metadata[Text("_variableFetchDelay_")] = LongWritable(1)
    segment = make_segment(tmp_path, [(pages(server, 1)[0], datum)])
    fetch_segment(segment, conf_for())
    assert "_variableFetchDelay_" not in str(fetched(segment))


# -- how it ends -----------------------------------------------------------------------------------


def context(conf_values: dict[str, str] | None = None) -> JobContext:
    return JobContext(conf_for().with_values(conf_values or {}), err=io.StringIO())


def test_command_line(server: MisbehavingServer, tmp_path: Path) -> None:
    segment = make_segment(tmp_path, pages(server, 1))
    assert run([str(segment.path), "-threads", "2"], context()) == 0
    with pytest.raises(UsageError) as caught:
        run([], context())
    assert "Usage: Fetcher <segment> [-threads <n>]" in str(caught.value)
    assert caught.value.exit_code == 255


@pytest.mark.parametrize("name", ["", "   "])
def test_nothing_is_fetched_without_a_name(tmp_path: Path, name: str) -> None:
    segment = make_segment(tmp_path, [])
    with pytest.raises(ConfigError, match=r"http\.agent\.name") as caught:
        run([str(segment.path)], context({"http.agent.name": name}))
    assert caught.value.exit_code == 255


def test_a_fetched_segment_is_not_fetched_again(server: MisbehavingServer, tmp_path: Path) -> None:
    segment = make_segment(tmp_path, pages(server, 1))
    fetch_segment(segment, conf_for())
    with pytest.raises(StoreError, match="fetched already"):
        fetch_segment(segment, conf_for())


def test_no_fetch_list(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no fetch list"):
        fetch(tmp_path, context=JobContext(conf_for(), err=io.StringIO()))


def test_two_fetches_of_one_segment(tmp_path: Path) -> None:
    segment = make_segment(tmp_path, [])
    held_by = rf"is being fetched: .*process {os.getpid()} on"
    with lock(segment.path / FETCHING), pytest.raises(LockedError, match=held_by):
        fetch_segment(segment, conf_for())
    fetch_segment(segment, conf_for())
    with pytest.raises(StoreError, match="is fetched already"):
        fetch_segment(segment, conf_for())
    assert not (segment.path / FETCHING).exists()


def test_the_lock_of_another_step_is_not_taken_for_that_of_the_fetch(tmp_path: Path) -> None:
    with pytest.raises(LockedError, match=r"^crawldb$"), working(make_segment(tmp_path, [])):
        raise LockedError("crawldb")


# -- kills and signals -----------------------------------------------------------------------------


def start(segment: Segment, **values: str) -> subprocess.Popen[str]:
    threads = values.pop("threads", "4")
    given = {name.replace("__", "."): value for name, value in values.items()}
    properties = {**LOOPBACK, "fetcher.threads.per.queue": "4", **given}
    options = [f"-D{name}={value}" for name, value in properties.items()]
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "minutch",
            "fetch",
            *options,
            str(segment.path),
            "-threads",
            threads,
        ],
        cwd=ROOT,
        env={**os.environ, "NUTCH_LOG_DIR": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def held(server: MisbehavingServer, tmp_path: Path, count: int = 40) -> Segment:
    """A segment whose last four pages are held back by the server."""
    urls = pages(server, count)
    server.hold = {f"/p{n}" for n in range(count - 4, count)}
    return make_segment(tmp_path, urls)


def wait_until_held(server: MisbehavingServer) -> None:
    for _ in range(4):
        assert server.held.acquire(timeout=60)


def damage(log: Path) -> None:
    """One byte of a length, and zeros at the end: one page more is asked for again."""
    data = bytearray(log.read_bytes())
    data[8 + 1] ^= 0x10
    log.write_bytes(data + bytes(8))


def killed(server: MisbehavingServer, segment: Segment, **more: str) -> Segment:
    """A segment as a kill leaves it: its folder, copied while the server holds pages back."""
    conf = conf_for(**{"fetcher__threads__per__queue": "4"} | more)
    copy = Segment(segment.path.with_name("20260102000000"))
    thread = threading.Thread(target=lambda: fetch_segment(segment, conf, threads=4))
    thread.start()
    wait_until_held(server)
    shutil.copytree(segment.path, copy.path, ignore=shutil.ignore_patterns(LOCK_NAME))
    server.release()
    thread.join()
    return copy


@pytest.mark.parametrize(
    "damaged", [lambda _: None, lambda log: log.rename(log.with_name("log-3")), damage]
)
def test_what_a_kill_left_is_not_fetched_again(
    server: MisbehavingServer, tmp_path: Path, damaged: Callable[[Path], object]
) -> None:
    """Also not where another number of processes goes on; after damage one page more is."""
    segment = killed(server, held(server, tmp_path, 10))
    damaged(segment.path / FETCHING / "log-0")
    assert fetch_segment(segment, conf_for())["fetched"] == 10
    assert len(fetched(segment)) == 10 == len(contents(segment))
    twice = {target for target, count in server.requests.items() if count > 1}
    assert twice >= server.hold
    assert len(twice) == len(server.hold) + (damaged is damage)
    assert sorted(path.name for path in segment.path.iterdir()) == [
        "content",
        "crawl_fetch",
        "crawl_generate",
    ]


@pytest.mark.parametrize("times", [1, 2])
def test_a_signal_leaves_what_is_not_asked_for_yet(
    server: MisbehavingServer, tmp_path: Path, times: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The first lets requests in flight finish, a second one does not wait for that."""
    caplog.set_level("INFO")
    urls = pages(server, 12)
    server.hold = {f"/p{n}" for n in range(4)}
    segment = make_segment(tmp_path, urls)

    def signals() -> None:
        wait_until_held(server)
        os.kill(os.getpid(), signal.SIGINT)
        while FINISHING not in caplog.text:
            time.sleep(0.001)
        if times == 2:
            os.kill(os.getpid(), signal.SIGINT)
        else:
            server.release()

    thread = threading.Thread(target=signals)
    thread.start()
    with pytest.raises((Interrupted, KeyboardInterrupt)):
        fetch_segment(segment, conf_for(fetcher__threads__per__queue="4"), threads=4)
    thread.join()
    assert not segment.has("crawl_fetch")
    assert fetch_segment(segment, conf_for())["fetched"] == 12 == len(contents(segment))
    again = {t for t, count in server.requests.items() if count > 1 and t != "/robots.txt"}
    assert again == (server.hold if times == 2 else set())


@pytest.mark.slow  # a process
def test_after_a_kill_only_what_was_in_flight_is_fetched_again(
    server: MisbehavingServer, tmp_path: Path
) -> None:
    segment = held(server, tmp_path)
    process = start(segment)
    wait_until_held(server)
    process.kill()
    process.communicate(timeout=60)
    assert not segment.has("crawl_fetch")
    counters = fetch_segment(segment, conf_for())
    assert counters["fetched"] == 40
    assert {d.status_name for found in fetched(segment).values() for d in found} == {
        "fetch_success"
    }
    assert len(fetched(segment)) == 40 == len(contents(segment))
    twice = {target for target, count in server.requests.items() if count > 1}
    assert twice == server.hold
    assert sorted(path.name for path in segment.path.iterdir()) == [
        "content",
        "crawl_fetch",
        "crawl_generate",
    ]


@pytest.mark.slow
def test_after_a_kill_and_with_a_damaged_log_all_is_fetched(
    server: MisbehavingServer, tmp_path: Path
) -> None:
    segment = held(server, tmp_path)
    process = start(segment)
    wait_until_held(server)
    process.kill()
    process.communicate(timeout=60)
    damage(segment.path / FETCHING / "log-0")
    assert fetch_segment(segment, conf_for())["fetched"] == 40
    assert len(fetched(segment)) == 40 == len(contents(segment))
    assert (
        len([target for target, count in server.requests.items() if count > 1])
        == len(server.hold) + 1
    )


COMPRESSION = "mapreduce.output.fileoutputformat.compress"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "stored"),
    few(
        [
            ({f"{COMPRESSION}.type": "NONE"}, {f"{COMPRESSION}.type": "BLOCK"}, "BLOCK"),
            ({}, {f"{COMPRESSION}.type": "NONE"}, "RECORD"),
            ({}, {COMPRESSION: "false"}, "RECORD"),
            ({f"{COMPRESSION}.type": "BLOCK"}, {}, "NONE"),
        ]
    ),
)
def test_a_killed_fetch_goes_on_though_the_compression_is_another(
    server: MisbehavingServer,
    tmp_path: Path,
    before: dict[str, str],
    after: dict[str, str],
    stored: str,
) -> None:
    """Its logs go into the files as they are, so that all of it ends as it was begun."""
    segment = held(server, tmp_path, 8)
    parse = {"fetcher.parse": "true", "plugin.includes": "protocol-http|parse-html|scoring-opic"}
    process = start(segment, **before, **parse)
    wait_until_held(server)
    log = segment.path / "_fetch" / "log-0"
    while len(list(frames(log))) < 4:
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.communicate(timeout=60)
    counters = fetch_segment(segment, conf_for().with_values({**after, **parse}))
    assert counters["fetched"] == 8
    assert all(found.content == HTML for found in contents(segment).values())
    assert len(list(segment.records("parse_text"))) == len(contents(segment)) == 8
    for folder in ("content", "crawl_fetch", "parse_data"):
        (data,) = (segment.path / folder).glob("part-*/data")
        with SequenceFileReader(data) as reader:
            assert reader.compression == stored, folder


def wait_until_it_ends(process: subprocess.Popen[str]) -> None:
    """Read what a fetch says until it says that it finishes what is in flight."""
    assert process.stdout is not None
    assert any("finishing what is in flight" in line for line in process.stdout)


@pytest.mark.slow  # processes
@pytest.mark.parametrize("processes", few(["2", "1"]))
@pytest.mark.parametrize("number", few([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
def test_a_signal_finishes_what_is_in_flight_and_leaves_the_rest(
    server: MisbehavingServer, tmp_path: Path, number: int, processes: str
) -> None:
    """The next run fetches what is left: nothing twice, unlike after a kill."""
    urls = pages(server, 40)
    # All: where a few were held, a busy machine had the others before the signal came.
    server.hold = {f"/p{n}" for n in range(40)}
    segment = make_segment(tmp_path, urls)
    process = start(segment, minutch__fetch__processes=processes, threads="8")
    wait_until_held(server)
    process.send_signal(number)
    wait_until_it_ends(process)
    server.release()
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    asked = len(
        server.requests.keys() - {"/robots.txt"}
    )  # a few more, if processes hear of it a little later
    assert 4 <= asked < 40
    assert said.splitlines()[-1].endswith(str(Interrupted.leaving(40 - asked, 40)))
    assert "Traceback" not in said
    assert not segment.has("crawl_fetch")
    assert fetch_segment(segment, conf_for())["fetched"] == 40
    assert {d.status_name for found in fetched(segment).values() for d in found} == {
        "fetch_success"
    }
    assert set(contents(segment)) == set(urls)
    assert {
        target: count
        for target, count in server.requests.items()
        if count > 1 and target != "/robots.txt"
    } == {}


@pytest.mark.slow  # a process
def test_a_second_signal_stops_at_once(server: MisbehavingServer, tmp_path: Path) -> None:
    segment = held(server, tmp_path)
    process = start(segment)
    wait_until_held(server)
    process.send_signal(signal.SIGINT)
    wait_until_it_ends(process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not segment.has("crawl_fetch")
    counters = fetch_segment(segment, conf_for())
    assert counters["generated"] == 40 and len(fetched(segment)) == 40
