"""A fetch that does the work of the parse step leaves the segment that the two steps leave."""

from __future__ import annotations

import io
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.fetch.fetcher import fetch
from minutch.cycle.fetch.settings import FetchOptions
from minutch.cycle.parse.parsesegment import parse
from minutch.cycle.segment.store import CONTENT, CRAWL_FETCH, PARSED, Segment
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.job import Counters, JobContext
from tests.cycle.fetch.test_fetch_job import killed, start, wait_until_held
from tests.support.examples import few
from tests.support.misbehaving import MisbehavingServer, page
from tests.support.segments import conf_for, fetched, make_segment

NOW = 1_700_000_000_000
MOMENT = re.compile(rb"(?<=nutch\.fetch\.time\0\0\0\x01\r)\d{13}")
LINKS = "".join(
    f"<a href='{target}'>x</a>"
    for target in ("a", "b?c=d", "#f", "http://Other.example/x", "pic.gif", "/a", "mailto:x@y")
)
FEED = """<?xml version='1.0'?><rss version='2.0'><channel><title>Feed</title><link>http://f.example/
</link><description>d</description>
<item><title>One</title><link>http://aaa.example/in</link><description>one</description></item>
<item><title>Two</title><link>{twice}</link><description>two</description></item>
</channel></rss>"""
PROPERTIES = {
    "plugin.includes": (
        "protocol-http|parse-html|feed|urlfilter-regex|urlnormalizer-(basic|regex|pass)"
        "|scoring-opic|language-identifier"
    ),
    "lang.extraction.policy": "detect",  # to identify it, each worker would unpack a model
    "http.redirect.max": "2",
    "http.store.responsetime": "false",
    "mapreduce.job.reduces": "2",
}


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    """A site with all kinds of pages."""
    html = "Content-Type: text/html; charset=utf-8"
    with MisbehavingServer() as running:
        for n in range(40):
            body = f"<title>{n}</title><p>Page {n} is the same as no other one</p>{LINKS * (n % 3)}"
            running.pages[f"/{n}"] = page(body.encode(), html, f'ETag: "{n}"')
        running.pages |= {
            "/refresh": page(b"<meta http-equiv=refresh content='0; url=/1'>go", html),
            "/noindex": page(b"<meta name=robots content='noindex,nofollow'><a href=a>x</a>", html),
            "/image": page(b"\x89PNG\r\n\x1a\n" + bytes(40), "Content-Type: image/png"),
            "/empty": page(b"", html),
            "/feed": page(
                FEED.format(twice=running.url("3")).encode(), "Content-Type: application/rss+xml"
            ),
            "/to-2": page(b"", "Location: /2", status="301 Moved"),
            "/to-39": page(b"", "Location: /39", status="302 Found"),
            "/gone": page(b"gone", status="410 Gone"),
        }
        yield running


def urls(server: MisbehavingServer) -> list[str]:
    names = [path[1:] for path in server.pages if path != "/39"]
    return [server.url(name) for name in (*names, "length-too-large", "reset-in-headers")]


def context(conf: Configuration) -> JobContext:
    return JobContext(conf, FakeClock(NOW), err=io.StringIO())


def run(folder: Path, urls: list[str], conf: Configuration, *, whole: bool) -> Segment:
    """Fetches and parses, in one pass or in two steps."""
    segment = make_segment(folder, urls)
    fetch(segment.path, FetchOptions(parse=whole), context=context(conf))
    if not whole:
        parse(segment.path, context=context(conf))
    return segment


def records(segment: Segment, folder: str) -> dict[str, list[tuple[bytes, bytes]]]:
    """The records of each part, bytes as they are but for the moment of a request, in one order:
    where redirects lead to one page, records of one key are in the order in which answers came.
    """
    found = {}
    for path in segment.data_files(folder):
        with SequenceFileReader(path) as reader:
            rows = [(key, MOMENT.sub(b"", value)) for key, value in reader]
        found[str(path.relative_to(segment.path))] = sorted(rows)
    return found


@pytest.mark.parametrize(
    "given",
    few(
        [
            {"fetcher.signature": "true", "parser.delete.failed.parse": "true"},
            {"parser.store.text": "false", "fetcher.follow.outlinks.depth": "2"},
            {"mapreduce.output.fileoutputformat.compress.type": "NONE", "http.redirect.max": "0"},
            {},
            {"minutch.fetch.processes": "2"},
            {"mapreduce.output.fileoutputformat.compress.type": "BLOCK"},
        ],
        3,
    ),
    ids=str,
)
def test_all_parts_have_the_same_bytes(
    server: MisbehavingServer, tmp_path: Path, given: dict[str, str]
) -> None:
    """Keys and values in every part; what differs are the random markers of files.

    Of the settings some are for pages that the fetcher parses for itself (fetcher.parse): refreshes
    and links that are followed at once, pages without a parse that are signed or given up.
    """
    conf = conf_for(**{n.replace(".", "__"): v for n, v in (PROPERTIES | given).items()})
    one = run(tmp_path / "one", urls(server), conf, whole=True)
    two = run(tmp_path / "two", urls(server), conf, whole=False)
    folders = sorted(path.name for path in two.path.iterdir() if path.is_dir())
    assert sorted(path.name for path in one.path.iterdir() if path.is_dir()) == folders
    for folder in folders:
        assert records(one, folder) == records(two, folder), folder
    assert len(fetched(one)) >= 40 and one.has(PARSED[-1])


def test_its_counters_are_those_of_both_steps(server: MisbehavingServer, tmp_path: Path) -> None:
    conf = conf_for(**{name.replace(".", "__"): value for name, value in PROPERTIES.items()})
    segment = make_segment(tmp_path, urls(server))
    both = context(conf)
    fetch(segment.path, FetchOptions(parse=True), context=both)
    for folder in PARSED:
        shutil.rmtree(segment.path / folder)
    counters: Counters = parse(segment.path, context=context(conf))
    unfetched = counters.pop("skipped_not_fetched")  # the bodies of redirects, which fetch leaves
    counters["pages"] -= unfetched
    assert both.reports["ParseSegment"] == counters
    assert counters["pages"] > 40 and counters["left_out_same_url"] > 0
    assert counters["skipped_no_parser"] == counters["skipped_truncated"] == 1


def test_what_a_kill_left_without_parses_ends_without(
    server: MisbehavingServer, tmp_path: Path
) -> None:
    given = {name.replace(".", "__"): value for name, value in PROPERTIES.items()}
    given["fetcher__threads__per__queue"] = "4"
    segment = make_segment(tmp_path, [server.url(str(n)) for n in range(10)])
    server.hold = {f"/{n}" for n in range(6, 10)}
    segment = killed(server, segment, **given)
    fetch(segment.path, FetchOptions(parse=True), context=context(conf_for(**given)))
    assert segment.has(CRAWL_FETCH) and segment.has(CONTENT) and not segment.has(PARSED[-1])


@pytest.mark.slow  # a process
def test_a_fetch_that_was_begun_without_ends_without(
    server: MisbehavingServer, tmp_path: Path
) -> None:
    """Else pages would count as parsed that are not; the parse step takes all of them then."""
    conf = conf_for(**{name.replace(".", "__"): value for name, value in PROPERTIES.items()})
    segment = make_segment(tmp_path, [server.url(str(n)) for n in range(10)])
    server.hold = {f"/{n}" for n in range(6, 10)}
    process = start(segment, **PROPERTIES, threads="10")
    wait_until_held(server)
    time.sleep(0.5)
    process.kill()
    process.communicate(timeout=60)
    server.release()
    fetch(segment.path, FetchOptions(parse=True), context=context(conf))
    assert segment.has(CRAWL_FETCH) and segment.has(CONTENT) and not segment.has(PARSED[-1])
    assert parse(segment.path, context=context(conf))["success"] == 10
