"""Names of hosts: how long addresses are kept, who is asked, and that requests go where the answers
say.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum
from plugins.lib_http import dnsquery
from plugins.lib_http import resolver as names_module
from plugins.lib_http.dnsquery import DnsQuery
from plugins.lib_http.failures import NO_ANSWER, NoNameServer, UnknownHost
from plugins.lib_http.resolver import (
    Answer,
    Lifetimes,
    ResolverCache,
    ResolverSettings,
    make_resolver,
)
from plugins.protocol_http.http import Http
from tests.support.misbehaving import MisbehavingServer, page
from tests.support.nameserver import NameServer
from tests.support.segments import conf_for, fetch_segment, fetched, make_segment


class Asked:
    """Answers from a table, and the time."""

    def __init__(self, **answers: Answer) -> None:
        self.answers = answers
        self.questions: list[str] = []
        self.time = 1000.0

    async def ask(self, host: str) -> Answer:
        self.questions.append(host)
        if host not in self.answers:
            raise UnknownHost(host)
        return self.answers[host]

    def names(self, **lifetimes: float) -> ResolverCache:
        return ResolverCache(self.ask, Lifetimes(**lifetimes), now=lambda: self.time)


# -- lifetimes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ttl", "kept"), [(0, 10), (5, 10), (60, 60), (5000, 100)])
async def test_an_answer_is_kept_as_long_as_it_says_within_bounds(ttl: float, kept: float) -> None:
    asked = Asked(a=(["192.0.2.1"], ttl))
    names = asked.names(shortest=10, longest=100)
    assert names.known("a") is None
    assert await names.find("a") == ["192.0.2.1"]
    asked.time += kept - 1
    assert names.known("a") == ["192.0.2.1"]
    asked.time += 2
    assert names.known("a") is None
    await names.find("a")
    assert asked.questions == ["a", "a"]


async def test_that_there_is_no_answer_is_kept_for_a_short_time() -> None:
    asked = Asked()
    names = asked.names(negative=7)
    for _ in range(2):
        with pytest.raises(UnknownHost):
            await names.find("b")
    with pytest.raises(UnknownHost):
        names.known("b")
    asked.time += 8
    assert names.known("b") is None


async def test_a_host_is_asked_for_once_however_many_want_it() -> None:
    asked = Asked(a=(["192.0.2.1"], 60))
    names = asked.names()
    found = await asyncio.gather(*(names.find("a") for _ in range(20)))
    assert found == [["192.0.2.1"]] * 20
    assert asked.questions == ["a"]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "10.1", "0x7f.1", "0x7f000001", "::1", "[::1]", "1.2.3.4."]
)
def test_an_address_is_not_looked_up(host: str) -> None:
    names = Asked().names()
    assert names.known(host) == []


async def test_names_outside_of_the_dns_are_not_asked_for() -> None:
    asked = Asked(**{"a.onion": (["192.0.2.1"], 60)})
    names = asked.names()
    for host in ("a.onion", "b.invalid", "c.INVALID."):
        with pytest.raises(UnknownHost):
            await names.find(host)
    assert asked.questions == []


async def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names_module, "MOST_KEPT", 3)
    asked = Asked(**{name: (["192.0.2.1"], 60.0) for name in "abcde"})
    names = asked.names()
    for name in "abcde":
        await names.find(name)
    assert [names.known(name) is None for name in "abcde"] == [True, True, False, False, False]
    assert asked.questions == ["a", "b", "c", "d", "e"]


# -- the servers -----------------------------------------------------------------------------------


@pytest.fixture
def dns() -> Iterator[NameServer]:
    with NameServer() as running:
        yield running


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as running:
        yield running


async def test_addresses_and_lifetime_come_from_the_records(dns: NameServer) -> None:
    dns.names["a.test"] = (300, ["192.0.2.1", "192.0.2.2"])
    dns.names["six.test"] = (60, ["2001:db8::1"])
    query = DnsQuery([dns.address])
    try:
        addresses, seconds = await query.ask("a.test")
        assert (sorted(addresses), seconds) == (["192.0.2.1", "192.0.2.2"], 300)
        assert await query.ask("six.test") == (["2001:db8::1"], 60)
        with pytest.raises(UnknownHost):
            await query.ask("gone.test")
        assert dns.questions == {"a.test": 1, "six.test": 1, "gone.test": 1}
    finally:
        query.close()


async def test_the_hosts_file_comes_first(dns: NameServer) -> None:
    query = DnsQuery([dns.address])
    try:
        addresses, seconds = await query.ask("localhost")
    finally:
        query.close()
    assert "127.0.0.1" in addresses and seconds == 0
    assert dns.questions == {}


async def test_a_server_that_says_nothing(dns: NameServer) -> None:
    dns.silent = True
    query = DnsQuery([dns.address], timeout=1)  # a busy machine takes its time to send the third
    try:
        with pytest.raises(NoNameServer):
            await query.ask("a.test")
    finally:
        query.close()
    assert dns.questions["a.test"] == 3  # RFC 9520, 3.1


async def test_closing_leaves_open_questions(dns: NameServer) -> None:
    dns.silent = True
    query = DnsQuery([dns.address])
    asking = asyncio.ensure_future(query.ask("a.test"))
    await asyncio.sleep(0)
    query.close()
    with pytest.raises(NoNameServer):
        await asking


@pytest.mark.parametrize("code", [2, 4, 5])  # SERVFAIL, NOTIMP, REFUSED
async def test_a_server_that_fails_says_nothing_of_the_name(dns: NameServer, code: int) -> None:
    dns.failing["a.test"] = code
    query = DnsQuery([dns.address], timeout=0.5)
    try:
        with pytest.raises(NoNameServer):
            await query.ask("a.test")
        assert dns.questions["a.test"] == 1
    finally:
        query.close()


async def test_a_failure_of_one_server_is_made_good_by_another(dns: NameServer) -> None:
    dns.failing["a.test"] = 2
    with NameServer(names={"a.test": (60, ["192.0.2.1"])}) as other:
        query = DnsQuery([dns.address, other.address])
        try:
            assert await query.ask("a.test") == (["192.0.2.1"], 60)
        finally:
            query.close()


async def test_many_questions_wait_for_their_turn(
    dns: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than c-ares has numbers for, it would look for a free one without an end."""
    monkeypatch.setattr(dnsquery, "AT_ONCE", 50)
    dns.silent = True
    query = DnsQuery([dns.address], timeout=0.1)
    asked = [asyncio.ensure_future(query.ask(f"host{number}.test")) for number in range(120)]
    try:
        await asyncio.sleep(0.05)
        assert len(dns.questions) <= 50
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(answer) for answer in answers} == {NoNameServer}
        assert len(dns.questions) == 120
    finally:
        query.close()


async def test_questions_that_nobody_waits_for_are_bounded(
    dns: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine so busy that c-ares itself gives up meanwhile, it is tried again."""
    monkeypatch.setattr(dnsquery, "MOST_OPEN", 3)
    dns.silent = True
    for turn in range(20):
        query, start = DnsQuery([dns.address], timeout=0.01), time.monotonic()
        try:
            for number in range(5):
                with pytest.raises(NoNameServer):
                    await query.ask(f"host{number}-{turn}.test")
            asked = sum(name.endswith(f"-{turn}.test") for name in dns.questions)
        finally:
            query.close()
        if time.monotonic() - start < 0.2:  # c-ares takes the timeout for 0.25 s
            assert asked == 3
            return
        await asyncio.sleep(0.5)
    pytest.skip("no 0.2 s in which five questions are asked")


async def test_a_name_without_addresses_is_no_host(dns: NameServer) -> None:
    dns.names["a.test"] = (60, [])
    query = DnsQuery([dns.address])
    try:
        with pytest.raises(UnknownHost):
            await query.ask("a.test")
    finally:
        query.close()


async def test_a_slow_name_has_its_time_though_the_server_was_fast(dns: NameServer) -> None:
    dns.slow["slow.test"] = 3
    dns.names["slow.test"] = (60, ["192.0.2.7"])
    query = DnsQuery([dns.address])
    try:
        for number in range(20):
            dns.names[f"fast{number}.test"] = (60, ["192.0.2.1"])
            await query.ask(f"fast{number}.test")
        assert await query.ask("slow.test") == (["192.0.2.7"], 60)
    finally:
        query.close()


# -- requests --------------------------------------------------------------------------------------


def over(dns: NameServer, **values: str) -> Configuration:
    return conf_for(http__dns__servers=dns.address, **values)


async def test_requests_go_to_the_address_that_was_found(
    server: MisbehavingServer, dns: NameServer
) -> None:
    server.pages["/x"] = page(b"found", "Content-Type: text/plain")
    dns.names["site.test"] = (300, ["127.0.0.1"])
    protocol = Http(over(dns), {})
    try:
        for _ in range(3):
            output = await protocol.get_protocol_output(server.url("x", "site.test"), CrawlDatum())
            assert output.content is not None and output.content.content == b"found"
        lost = await protocol.get_protocol_output(server.url("x", "gone.test"), CrawlDatum())
    finally:
        await protocol.close()
    assert str(lost.status).endswith("java.net.UnknownHostException: gone.test")
    assert dns.questions == {"site.test": 1, "gone.test": 1}


def test_a_host_that_no_server_answers_for_is_asked_for_later(
    server: MisbehavingServer, dns: NameServer, tmp_path: Path
) -> None:
    server.pages["/x"] = page(b"found", "Content-Type: text/plain")
    dns.names["site.test"] = (300, ["127.0.0.1"])
    dns.failing["lost.test"] = 2
    urls = [server.url("x", "site.test"), server.url("x", "lost.test"), server.url("x", "no.test")]
    segment = make_segment(tmp_path, urls)
    fetch_segment(segment, over(dns, http__robots__503__defer__visits__wait="0"))
    found = {url.split("/")[2].split(":")[0]: data[-1] for url, data in fetched(segment).items()}
    assert found["site.test"].status == status.STATUS_FETCH_SUCCESS
    assert found["no.test"].status == status.STATUS_FETCH_RETRY
    assert found["lost.test"].status == status.STATUS_LINKED  # no step towards gone
    assert NO_ANSWER in str(found["lost.test"].metadata)
    assert dns.questions["lost.test"] == 1


@pytest.mark.parametrize("host", ["bücher.test", "BÜCHER.test.", "xn--bcher-kva.test"])
async def test_names_in_other_scripts_are_asked_for_in_ascii(
    server: MisbehavingServer, dns: NameServer, host: str
) -> None:
    server.pages["/x"] = page(b"found", "Content-Type: text/plain")
    dns.names["xn--bcher-kva.test"] = (300, ["127.0.0.1"])
    protocol = Http(over(dns), {})
    try:
        output = await protocol.get_protocol_output(server.url("x", host), CrawlDatum())
    finally:
        await protocol.close()
    assert output.content is not None and output.content.content == b"found"
    assert output.content.url == server.url("x", host)


async def test_the_guard_judges_the_address_and_not_the_name(dns: NameServer) -> None:
    dns.names["inside.test"] = (300, ["169.254.169.254"])
    dns.names["mapped.test"] = (300, ["::ffff:10.0.0.1"])
    protocol = Http(over(dns, http__filter__ipaddress__include=""), {})
    try:
        for name, address in (
            ("inside.test", "169.254.169.254"),
            ("mapped.test", "::ffff:10.0.0.1"),
        ):
            output = await protocol.get_protocol_output(f"http://{name}:1/", CrawlDatum())
            assert "Forbidden connection to IP address" in str(output.status)
            assert address in str(output.status) or "::ffff:a00:1" in str(output.status)
    finally:
        await protocol.close()


@pytest.mark.parametrize(
    "host", ["a..b", "-", "x" * 300, "*.com", ".", "a,b", "ex%61mple.test", "localhost:99999"]
)
async def test_a_host_that_can_not_be_is_a_failed_fetch(dns: NameServer, host: str) -> None:
    protocol = Http(over(dns), {})
    try:
        output = await protocol.get_protocol_output(f"http://{host}/", CrawlDatum())
    finally:
        await protocol.close()
    assert output.content is None and str(output.status).startswith("exception(16)")
    assert "RESOLVE" not in str(output.status)


async def test_an_answer_that_changes_leads_nowhere_else_while_it_holds(
    server: MisbehavingServer, dns: NameServer
) -> None:
    """A name that points inside a moment later (DNS rebinding): the address found first stays."""
    server.pages["/x"] = page(b"found", "Connection: close")
    dns.names["site.test"] = (300, ["127.0.0.1"])
    protocol = Http(over(dns), {})
    try:
        for _ in range(2):
            output = await protocol.get_protocol_output(server.url("x", "site.test"), CrawlDatum())
            assert output.status.is_success
            dns.names["site.test"] = (0, ["169.254.169.254"])
    finally:
        await protocol.close()


def test_each_host_of_a_fetch_list_is_asked_for_once_and_ahead(
    server: MisbehavingServer, dns: NameServer, tmp_path: Path
) -> None:
    names = [f"h{n}.test" for n in range(8)]
    for name in names:
        dns.names[name] = (0, ["127.0.0.1"])
    for n in range(3):
        server.pages[f"/p{n}"] = page(b"x", "Content-Type: text/html", "Connection: close")
    urls = [server.url(f"p{n}", name) for name in names for n in range(3)]
    segment = make_segment(tmp_path, urls)
    assert fetch_segment(segment, over(dns), threads=2)["fetched"] == 24
    assert dns.questions == dict.fromkeys(names, 1)
    assert len(fetched(segment)) == 24


# -- settings --------------------------------------------------------------------------------------


def test_settings(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = Configuration().with_values(
        {
            "http.dns.servers": "127.0.0.1:5353, 127.0.0.2",
            "http.dns.cache.seconds": "20",
            "http.dns.cache.min.seconds": "50",
            "http.dns.negative.seconds": "3",
            "http.timeout": "4000",
        }
    )
    found = ResolverSettings.from_conf(conf)
    assert found == ResolverSettings(
        "cares", ("127.0.0.1:5353", "127.0.0.2"), Lifetimes(20, 20, 3), 2.0
    )
    assert (
        make_resolver(ResolverSettings.from_conf(conf.with_values({"http.dns.resolver": "system"})))
        is None
    )
    with pytest.raises(ConfigError, match="expected cares or system, found 'bind'"):
        ResolverSettings.from_conf(conf.with_values({"http.dns.resolver": "bind"}))
    monkeypatch.setattr(names_module, "find_spec", lambda name: None)
    assert ResolverSettings.from_conf(conf).resolver == "system"
    assert "pycares is not installed" in caplog.text
