"""Everything that a server can do wrong ends in a status, within bounds, and costs no other
page.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from minutch.job import Counters
from minutch.records.crawldatum import CrawlDatum
from minutch.records.protocol import Content
from tests.support.examples import few
from tests.support.misbehaving import FAULTS, LIMIT, PAGE, MisbehavingServer
from tests.support.segments import conf_for, contents, fetch_segment, fetched, make_segment

OK_PAGES = 100


HOSTS = {
    name: f"127.0.{number // 200 + 1}.{number % 200 + 1}" for number, name in enumerate(FAULTS)
}
"""Each fault has a host of its own: what one answers decides how it is asked from then on."""


class Web:
    """One fetch of all faults with good pages between them; all hosts are known for malformed heads
    if it is `lenient`.
    """

    def __init__(self, server: MisbehavingServer, tmp_path: Path, *, lenient: bool) -> None:
        self.server = server
        urls = [self.url(name) for name in FAULTS]
        urls += [server.url(f"ok?{n}") for n in range(OK_PAGES)]
        urls.sort(key=hash)
        if lenient:
            urls = [server.url("no-colon?first", host) for host in HOSTS.values()] + urls
        self.segment = make_segment(tmp_path, urls)
        conf = conf_for(
            fetcher__threads__per__queue="1" if lenient else "40",
            http__timeout="1500",
            http__time__limit="3",
            http__content__limit=str(LIMIT),
            http__accept__encoding="gzip, deflate, br, zstd",
        )
        self.counters: Counters = fetch_segment(self.segment, conf, threads=40)
        self.fetched: dict[str, list[CrawlDatum]] = fetched(self.segment)
        self.contents: dict[str, Content] = contents(self.segment)
        self.total = len(urls)

    def url(self, name: str) -> str:
        return self.server.url(name, HOSTS[name])


@pytest.fixture(scope="module", params=few([False, True]), ids=["usual", "lenient"])
def web(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with MisbehavingServer(address="0.0.0.0") as server:
        yield Web(server, tmp_path_factory.mktemp("faults"), lenient=request.param)


def test_there_are_enough_faults() -> None:
    assert len(FAULTS) >= 40


def test_each_fault_has_its_status(web: Web) -> None:
    for name, fault in FAULTS.items():
        url = web.url(name)
        datum = next(d for d in web.fetched[url] if d.status_name != "linked")
        message = datum.metadata.get_text("_pst_") or ""
        assert (name, datum.status_name) == (name, fault.status), message
        assert fault.says in message, name
        if fault.status == "fetch_success":
            content = web.contents[url]
            if fault.body is not None:
                assert content.content == fault.body, name
            assert content.metadata.get("http.content.truncated.reason") == fault.truncated, name
            assert content.metadata.get("http.content.damaged") == fault.damaged, name
            assert len(content.content) <= LIMIT, name


def test_no_other_page_is_lost(web: Web) -> None:
    for n in range(OK_PAGES):
        url = web.server.url(f"ok?{n}")
        assert [d.status_name for d in web.fetched[url]] == ["fetch_success"]
        assert web.contents[url].content == PAGE


def test_the_ledger_adds_up(web: Web) -> None:
    total = web.counters.pop("generated")
    assert total == web.total == sum(web.counters.values())


def test_redirects_without_end_end(tmp_path: Path) -> None:
    with MisbehavingServer() as server:
        segment = make_segment(
            tmp_path, [server.url("redirect-without-end"), server.url("redirect-inside")]
        )
        fetch_segment(segment, conf_for(http__redirect__max="5"))
        found = fetched(segment)
        assert (
            server.requests["/redirect-without-end?x=1"] == 1
        )  # the second time it is the same URL
        assert "http://10.1.2.3/" not in found  # nor does it come into the CrawlDb
