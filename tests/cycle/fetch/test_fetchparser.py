"""Parsing while fetching goes on in a process of its own: what a page does to its parser, it does
to nothing else.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.conf import Configuration
from minutch.cycle.fetch import fetchparser
from minutch.cycle.fetch.components import FetchComponents
from minutch.cycle.fetch.fetchparser import (
    FetchParser,
    FetchParseTask,
    StepParseTask,
    pack_page,
)
from minutch.cycle.fetch.settings import FetchSettings
from minutch.cycle.parse.partwriters import PartSettings
from minutch.cycle.segment.store import Segment
from minutch.errors import ParseError
from minutch.hadoop.formats.writables import Writable
from minutch.records.crawldatum import STATUS_FETCH_SUCCESS
from minutch.records.metadata import FETCH_STATUS_KEY, Metadata
from minutch.records.parsedata import ParseData
from minutch.records.protocol import Content
from tests.cycle.fetch.test_fetch_job import start, wait_until_held, wait_until_it_ends
from tests.support.examples import few
from tests.support.misbehaving import MisbehavingServer, page
from tests.support.segments import conf_for, contents, fetch_segment, fetched, make_segment

MANIFEST = """\
<plugin id="parse-trap" name="t"><requires><import plugin="nutch-extensionpoints"/></requires>
<extension id="trap" point="org.apache.nutch.parse.Parser">
<implementation id="trap" class="trap:Trap"><parameter name="contentType" value="text/html"/></implementation>
</extension></plugin>
"""  # noqa: E501
PARSERS = """\
<parse-plugins><mimeType name="text/html"><plugin id="trap"/></mimeType>
<aliases><alias name="trap" extension-id="trap"/></aliases></parse-plugins>
"""
TRAP = """\
import ctypes, os, signal
from minutch.plugin.points import Parse, Parser, ParseResult
from minutch.records.links import Outlink
from minutch.records.parsedata import ParseData
from minutch.records.parsedata import SUCCESS, ParseStatus

def spin():
    while True:
        pass

def deaf():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    spin()

def crash():
    os.kill(os.getpid(), signal.SIGKILL)

def eat():
    hoard = []
    while True:
        hoard.append(bytearray(1 << 27))

def fail():
    raise RuntimeError("no such thing")

class Trap(Parser):
    def get_parse(self, content):
        word = content.content.decode()
        if word in ("spin", "deaf", "crash", "eat", "fail"):
            globals()[word]()
        links = [Outlink(content.url + "/linked", word)]
        data = ParseData(ParseStatus(SUCCESS), "Title", links, content.metadata)
        return ParseResult.of(content.url, Parse(f"{word} {os.getpid()}", data))
"""
REASONS = {
    "spin": "not done within 3 s (parser.timeout)",
    "deaf": "not done within 3 s (parser.timeout)",
    "crash": "the parser crashed",
    "eat": "out of memory",
    "fail": "RuntimeError: no such thing",
}


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer(address="0.0.0.0") as running:
        yield running


@pytest.fixture
def trap(tmp_path: Path) -> dict[str, str]:
    """Properties with a parser in them that does what a page says."""
    folder = tmp_path / "plugins" / "parse_trap"
    folder.mkdir(parents=True)
    (folder / "plugin.xml").write_text(MANIFEST)
    (folder / "trap.py").write_text(TRAP)
    (tmp_path / "parsers.xml").write_text(PARSERS)
    return {
        "parse.plugin.file": str(tmp_path / "parsers.xml"),
        "plugin.folders": f"plugins,{folder.parent}",
        "plugin.includes": "protocol-http|parse-trap|scoring-opic",
        "fetcher.parse": "true",
        "parser.timeout": "3",
        "parser.worker.memory": "256",
    }


def words(server: MisbehavingServer, *given: str) -> list[str]:
    """Pages with one word each, each at a host of its own."""
    for n, word in enumerate(given):
        server.pages[f"/{n}-{word}"] = page(word.encode(), "Content-Type: text/html")
    return [server.url(f"{n}-{word}", f"127.0.2.{n + 1}") for n, word in enumerate(given)]


def data(segment: Segment, url: str) -> ParseData:
    found: Writable = segment.get("parse_data", url)[0]
    assert isinstance(found, ParseData)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "for_step"), [(1, False), (2, False), (1, True)])
def test_no_page_takes_another_along(
    server: MisbehavingServer,
    tmp_path: Path,
    trap: dict[str, str],
    processes: int,
    for_step: bool,
) -> None:
    given = ["good", "spin", "good", "crash", "good", "eat", "good", "deaf", "good", "fail", "good"]
    urls = words(server, *given)
    segment = make_segment(tmp_path, urls)
    conf = conf_for(minutch__fetch__processes=str(processes)).with_values(trap)
    if for_step:
        conf = conf.with_values({"fetcher.parse": "false"})
    counters = fetch_segment(segment, conf, threads=len(given), parse=for_step)
    assert counters["generated"] == counters["fetched"] == len(given)
    assert sorted(fetched(segment)) == sorted(contents(segment)) == sorted(urls)
    for word, url in zip(given, urls, strict=True):
        parsed = data(segment, url)
        assert fetched(segment)[url][0].status_name == "fetch_success"
        if word == "good":
            assert parsed.status.is_success and parsed.title == "Title"
            assert str(segment.get("parse_text", url)[0]).startswith("good ")
        else:
            assert not parsed.status.is_success
            assert parsed.status.message == REASONS[word]


def test_pages_are_parsed_in_another_process(
    server: MisbehavingServer, tmp_path: Path, trap: dict[str, str]
) -> None:
    (url,) = words(server, "good")
    segment = make_segment(tmp_path, [url])
    fetch_segment(segment, conf_for().with_values(trap))
    worker = int(str(segment.get("parse_text", url)[0]).split()[1])
    assert worker != os.getpid()


def test_failed_parses_may_be_given_up(
    server: MisbehavingServer, tmp_path: Path, trap: dict[str, str]
) -> None:
    urls = words(server, "crash", "good")
    segment = make_segment(tmp_path, urls)
    fetch_segment(segment, conf_for(parser__delete__failed__parse="true").with_values(trap))
    assert not data(segment, urls[0]).status.is_success
    assert data(segment, urls[1]).status.is_success


@pytest.mark.slow
def test_the_worker_ends_with_a_killed_fetch(
    server: MisbehavingServer, tmp_path: Path, trap: dict[str, str]
) -> None:
    """Even one that hangs: it would keep the segment locked."""
    urls = words(server, "good", "deaf", "good", "good", "good", "good")
    server.hold = {f"/{n}-good" for n in range(2, 6)}
    segment = make_segment(tmp_path, urls)
    process = start(segment, **trap | {"parser.timeout": "300"}, threads="6")
    wait_until_held(server)
    process.kill()
    process.communicate(timeout=60)
    server.pages["/1-deaf"] = page(b"good", "Content-Type: text/html")
    assert fetch_segment(segment, conf_for().with_values(trap))["fetched"] == 6
    assert all(data(segment, url).status.is_success for url in urls)


@pytest.mark.slow  # processes
@pytest.mark.parametrize("number", few([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
def test_a_signal_to_the_group_leaves_what_is_being_parsed(
    server: MisbehavingServer, tmp_path: Path, trap: dict[str, str], number: int
) -> None:
    urls = words(server, *["good"] * 8)
    server.hold = {f"/{n}-good" for n in range(4)}
    segment = make_segment(tmp_path, urls)
    process = start(segment, **trap, fetcher__threads__start__delay="0")
    wait_until_held(server)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for pid in (*map(int, children), process.pid):
        os.kill(pid, number)
    wait_until_it_ends(process)
    server.release()
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert fetch_segment(segment, conf_for().with_values(trap))["fetched"] == 8
    assert all(data(segment, url).status.is_success for url in urls)
    assert set(server.requests.values()) == {1, 8}  # each page once, robots.txt of each host


def test_workers_that_die_at_once(
    server: MisbehavingServer, tmp_path: Path, trap: dict[str, str]
) -> None:
    with (tmp_path / "plugins" / "parse_trap" / "trap.py").open("a") as file:
        file.write(
            "\nimport multiprocessing\nif multiprocessing.parent_process() is not None:\n   "
            " os._exit(3)\n"
        )
    urls = words(server, "good", "good", "good")
    segment = make_segment(tmp_path, urls)
    assert fetch_segment(segment, conf_for().with_values(trap))["fetched"] == 3
    assert [data(segment, url).status.message for url in urls] == ["the parser crashed"] * 3


@pytest.mark.parametrize("step", ["begin", "collect"])
async def test_when_no_worker_can_be_had(
    trap: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    step: str,
) -> None:
    def fails(*args: object) -> None:
        raise OSError("too many processes")

    conf = conf_for().with_values(trap)
    parser = fetch_parser(conf)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(parser._pool, step, fails)
            with pytest.raises(ParseError, match="no parse: OSError: too many processes"):
                await parser.parse(*fetched_page("http://h/", b"good"))
        found = await parser.parse(*fetched_page("http://h/", b"good"))
    finally:
        parser.close()
    assert found.status is not None and found.status.is_success
    assert "no parse: OSError" in caplog.text


async def test_batches_form_while_the_worker_is_busy(trap: dict[str, str]) -> None:
    conf = conf_for().with_values(trap)
    parser = fetch_parser(conf)
    asked = batches_of(parser)
    try:
        given = [fetched_page(f"http://h/{n}", b"good") for n in range(fetchparser.BATCH + 2)]
        pages = await asyncio.gather(*(parser.parse(*item) for item in given))
    finally:
        parser.close()
    assert all(found.status is not None and found.status.is_success for found in pages)
    assert asked == [fetchparser.BATCH, 2]


def batches_of(parser: FetchParser) -> list[int]:
    """The sizes of the batches that a parser's workers are given from now on."""
    asked: list[int] = []
    begin = parser._pool.begin
    parser._pool.begin = lambda items: (asked.append(len(items)), begin(items))[1]  # type: ignore[method-assign,func-returns-value]
    return asked


def gathering(trap: dict[str, str], **more: str) -> FetchParser:
    """A parser for the parse step: the fetch does not wait for what it finds."""
    conf = conf_for(**more).with_values(trap)
    settings = FetchSettings.of(conf, 0)
    return fetch_parser(conf, replace(settings, for_step=True))


async def test_pages_nobody_waits_for_are_gathered(
    trap: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until there are enough, the time is over, or nothing else is to come."""
    monkeypatch.setattr(fetchparser, "GATHERING", 0.2)
    parser = gathering(trap)
    asked = batches_of(parser)

    async def parsed(count: int, *, hurried: bool = False) -> float:
        began = asyncio.get_running_loop().time()
        given = [fetched_page(f"http://h/{n}", b"good") for n in range(count)]
        pages = asyncio.gather(*(parser.parse(*item) for item in given))
        await asyncio.sleep(0)
        if hurried:
            parser.hurry()
        assert all(page.documents for page in await pages)
        return asyncio.get_running_loop().time() - began

    try:
        await parsed(fetchparser.FEW)
        assert await parsed(3) >= 0.2
        monkeypatch.setattr(fetchparser, "GATHERING", 600)
        await parsed(2, hurried=True)
    finally:
        parser.close()
    assert asked == [fetchparser.FEW, 3, 2]


@pytest.mark.parametrize("workers", [1, 2])
async def test_another_worker_begins_when_a_whole_batch_waits(
    trap: dict[str, str], workers: int
) -> None:
    """A trap keeps the first one from being done before its time (parser.timeout)."""
    parser = gathering(trap, parser__workers=str(workers))
    asked = batches_of(parser)
    try:
        first = [fetched_page(f"http://h/{n}", b"spin") for n in range(fetchparser.FEW)]
        spins = [asyncio.ensure_future(parser.parse(*item)) for item in first]
        while not asked:
            await asyncio.sleep(0)
        more = [fetched_page(f"http://i/{n}", b"good") for n in range(fetchparser.BATCH)]
        goods = [asyncio.ensure_future(parser.parse(*item)) for item in more[:-1]]
        await asyncio.sleep(0.05)
        assert asked == [fetchparser.FEW]
        goods.append(asyncio.ensure_future(parser.parse(*more[-1])))
        await asyncio.sleep(0.05)
        assert asked == [fetchparser.FEW, fetchparser.BATCH][:workers]
    finally:
        parser.close()
    for future in (*spins, *goods):
        future.cancel()


async def test_while_one_worker_hangs_another_works(
    trap: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetchparser, "LATE", 0.1)
    conf = conf_for().with_values(trap | {"parser.timeout": "600"})
    parser = fetch_parser(conf)
    try:
        hangs = asyncio.ensure_future(parser.parse(*fetched_page("http://h/0", b"deaf")))
        while not parser._running:
            await asyncio.sleep(0)
        found = await parser.parse(*fetched_page("http://h/1", b"good"))
        assert found.status is not None and found.status.is_success
        assert not hangs.done()
    finally:
        parser.close()
    hangs.cancel()


def fetch_parser(conf: Configuration, settings: FetchSettings | None = None) -> FetchParser:
    components = FetchComponents(conf)
    return FetchParser(
        components.parser_factory(PartSettings()),
        components.pool,
        settings or FetchSettings.of(conf, 0),
    )


def fetched_page(url: str, body: bytes) -> tuple[Content, int]:
    metadata = Metadata.of({FETCH_STATUS_KEY: str(STATUS_FETCH_SUCCESS)})
    return Content(url, url, body, "text/html", metadata), 5


TEXTS = st.text(max_size=200) | st.text(st.characters(exclude_categories=()), max_size=5)
PAGES = st.builds(
    Content,
    url=TEXTS,
    base=TEXTS,
    content=st.binary(),
    content_type=TEXTS,
    metadata=st.dictionaries(TEXTS, st.lists(TEXTS, max_size=3), max_size=20).map(Metadata),
)


@given(content=PAGES, time=st.integers(-(2**63), 2**63 - 1))
def test_a_worker_sees_a_page_as_it_will_be_read_of_the_segment(
    content: Content, time: int
) -> None:
    task = StepParseTask(lambda: None)  # type: ignore[arg-type, return-value]
    page = task._page(pack_page(content, time))
    stored = Content.from_bytes(content.to_bytes())
    assert (page.time, page.content) == (time, stored)
    assert [*page.content.metadata.items()] == [*stored.metadata.items()]  # in this order
    assert type(page.content.metadata) is type(stored.metadata)


def test_what_the_fetcher_wants_to_know(trap: dict[str, str]) -> None:
    conf = conf_for().with_values(trap)
    parser = FetchComponents(conf).parser_factory(PartSettings())
    item = pack_page(*fetched_page("http://h/", b"good"))
    (plain,), (full,) = (
        task.finish([task.run(item)])
        for task in (
            FetchParseTask(parser, links=wanted, events=wanted) for wanted in (False, True)
        )
    )
    assert plain.to_bytes() == full.to_bytes() and plain.outlinks == [] == plain.events
    assert full.outlinks == [("http://h/", ["http://h//linked"])]
    assert full.events[0][1] | {"outlinks": []} == {
        "outlinks": [],
        "title": "Title",
        "content-type": None,
        "fetchTime": 5,
        "content-language": None,
    }


def test_without_a_time_limit_of_its_own_a_parse_has_the_fetchers(trap: dict[str, str]) -> None:
    conf = conf_for(parser__timeout="-1").with_values(trap | {"parser.timeout": "-1"})
    settings = replace(FetchSettings.of(conf, 0), hung_after=7000)
    parser = fetch_parser(conf, settings)
    parser.close()
    assert parser._pool._timeout == 7
