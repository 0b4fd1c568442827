"""Fetching robots.txt: redirects, what absence means, the caches in memory and on disk."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path

import httpx
import pytest

from minutch.clock import FakeClock
from minutch.records.crawldatum import CrawlDatum
from minutch.records.protocol import Content
from minutch.urls.parts import Url, parse
from minutch.urls.robots import RobotRules, parse_robots
from minutch.urls.robotsfile import MAX_BYTES
from plugins.lib_http.exchange import Answer, SpellCheckedMetadata
from plugins.lib_http.robotscache import RobotsDisk, StoredRobots
from plugins.lib_http.robotstxt import (
    SIGNAL_KEY,
    SITEMAP_KEY,
    RobotsFileSettings,
    RobotsStore,
    Unreachable,
    cache_key,
)
from plugins.protocol_http.http import Http
from tests.support.misbehaving import MisbehavingServer, head, page
from tests.support.segments import conf_for

NO = b"User-agent: *\nDisallow: /no\nCrawl-delay: 2\n"


class Hosts:
    """Answers by URL: a code with content or a Location, or an exception."""

    def __init__(self, **answers: tuple[int, bytes | str] | Exception) -> None:
        self.answers = {f"http://{host}/robots.txt": answer for host, answer in answers.items()}
        self.asked: list[str] = []
        self.gate: asyncio.Event | None = None

    async def fetch(self, url: Url, datum: CrawlDatum, limit: int) -> Answer:
        assert limit == MAX_BYTES
        self.asked.append(str(url))
        if self.gate is not None:
            await self.gate.wait()
        answer = self.answers.get(str(url), (404, b""))
        if isinstance(answer, Exception):
            raise answer
        code, content = answer
        metadata = SpellCheckedMetadata()
        metadata.set("Content-Type", "text/plain")
        if isinstance(content, str):
            metadata.set("Location", content)
            content = b""
        return Answer(code, content, metadata)

    def store(self, **options: object) -> RobotsStore:
        own = {name: options.pop(name) for name in ("disk", "now") if name in options}
        return RobotsStore(
            self.fetch,
            lambda body, kind, url="": parse_robots(body, kind, ["x"], url),
            RobotsFileSettings(**options),  # type: ignore[arg-type]
            **own,  # type: ignore[arg-type]
        )


async def rules(hosts: Hosts, url: str = "http://a/x", **options: object) -> RobotRules:
    return await hosts.store(**options).rules(url)


async def test_rules_of_a_host() -> None:
    found = await rules(Hosts(a=(200, NO)))
    assert found.is_allowed("http://a/yes") and not found.is_allowed("http://a/no")
    assert found.crawl_delay == 2000


@pytest.mark.parametrize("code", [200, 203, 206, 226, 299])
async def test_every_success_has_rules(code: int) -> None:
    """RFC 9309, section 2.3.1.1, with RFC 9110, section 15: 2xx is a successful response."""
    found = await rules(Hosts(a=(code, NO)))
    assert found.is_allowed("http://a/yes") and not found.is_allowed("http://a/no")


@pytest.mark.parametrize(
    ("code", "options", "allowed", "deferred"),
    [
        (404, {}, True, False),
        (410, {}, True, False),
        (401, {}, True, False),
        (403, {}, True, False),
        (403, {"allow_forbidden": False}, False, False),
        (500, {}, False, True),
        (503, {}, False, True),
        (429, {}, False, True),
        (503, {"defer": False}, False, False),
        (503, {"defer": False, "allow_unreachable": True}, True, False),
        (304, {}, True, False),
        (204, {}, True, False),
    ],
)
async def test_what_a_code_means(
    code: int, options: dict[str, bool], allowed: bool, deferred: bool
) -> None:
    found = await rules(Hosts(a=(code, b"")), **options)
    assert (found.is_allowed("http://a/x"), found.defer_visits) == (allowed, deferred)


async def test_no_answer() -> None:
    hosts = Hosts(a=httpx.ConnectError("Connection refused"))
    found = await rules(hosts)
    assert isinstance(found, Unreachable) and not found.is_allowed("http://a/x")
    assert (
        str(found.failure)
        == "exception(16), lastModified=0: java.net.ConnectException: Connection refused"
    )
    assert (await rules(hosts, allow_unreachable=True)).is_allowed("http://a/x")


async def test_failures_are_not_kept() -> None:
    hosts = Hosts(a=httpx.ConnectError("Connection refused"), b=(503, b""))
    store = hosts.store()
    for url in ("http://a/", "http://b/"):
        await store.rules(url)
        await store.rules(url)
    assert len(hosts.asked) == 4


async def test_redirects_are_followed_five_times() -> None:
    hosts = Hosts(a=(301, "/1"))
    for n in range(1, 5):
        hosts.answers[f"http://a/{n}"] = (302, f"/{n + 1}")
    hosts.answers["http://a/5"] = (200, NO)
    assert not (await rules(hosts)).is_allowed("http://a/no")
    assert (await rules(hosts, max_redirects=4)).is_allowed("http://a/no")


@pytest.mark.parametrize("location", ["", "nosuch:x"])
async def test_redirects_to_nowhere_allow(location: str) -> None:
    assert (await rules(Hosts(a=(301, location)))).is_allowed("http://a/no")


async def test_a_redirect_to_another_hosts_file_fills_both() -> None:
    hosts = Hosts(a=(301, "http://b/robots.txt"), b=(200, NO))
    store = hosts.store()
    assert not (await store.rules("http://a/no")).is_allowed("http://a/no")
    assert not (await store.rules("http://b/no")).is_allowed("http://b/no")
    assert hosts.asked == ["http://a/robots.txt", "http://b/robots.txt"]


async def test_a_redirect_to_a_file_that_is_known_is_not_followed() -> None:
    hosts = Hosts(a=(301, "http://b/robots.txt"), b=(200, NO))
    store = hosts.store()
    await store.rules("http://b/")
    assert not (await store.rules("http://a/no")).is_allowed("http://a/no")
    assert hosts.asked == ["http://b/robots.txt", "http://a/robots.txt"]


async def test_scheme_and_port_have_their_own_rules() -> None:
    hosts = Hosts(a=(200, NO))
    store = hosts.store()
    assert (await store.rules("http://a:8080/no")).is_allowed("http://a:8080/no")
    assert not (await store.rules("http://a/no")).is_allowed("http://a/no")
    assert not (await store.rules("http://A:80/no")).is_allowed("http://a/no")
    assert len(hosts.asked) == 2
    assert cache_key(parse("HTTPS://Host/")) == "https:host:443"


async def test_many_askers_make_one_request() -> None:
    hosts = Hosts(a=(200, NO))
    hosts.gate = asyncio.Event()
    store = hosts.store()
    tasks = [asyncio.create_task(store.rules(f"http://a/{n}")) for n in range(5)]
    await asyncio.sleep(0)
    hosts.gate.set()
    found = await asyncio.gather(*tasks)
    assert len(hosts.asked) == 1 and len(set(map(id, found))) == 1


async def test_one_asker_who_leaves_does_not_take_the_answer_along() -> None:
    hosts = Hosts(a=(200, NO))
    hosts.gate = asyncio.Event()
    store = hosts.store()
    first, second = (asyncio.create_task(store.rules("http://a/")) for _ in range(2))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.sleep(0)
    hosts.gate.set()
    assert not (await first).is_allowed("http://a/no")
    assert second.cancelled()


async def test_hosts_of_the_allow_list_are_not_asked() -> None:
    hosts = Hosts(a=(200, NO))
    store = hosts.store(allow_list=("own.example",))
    assert (await store.rules("http://www.own.example/no")).is_allowed("http://www.own.example/no")
    assert hosts.asked == []


async def test_what_was_fetched_is_handed_on() -> None:
    hosts = Hosts(a=(301, "/real"))
    hosts.answers["http://a/real"] = (200, NO)
    contents: list[Content] = []
    await hosts.store().rules("http://a/x", contents)
    assert [(c.url, c.content, c.content_type) for c in contents] == [
        ("http://a/robots.txt", b"", "text/plain"),
        ("http://a/real", NO, "text/plain"),
    ]


async def test_the_cache_on_disk_outlives_the_process_and_ends_after_a_day(tmp_path: Path) -> None:
    hosts = Hosts(a=(200, NO), b=(404, b""))
    now = [1_000_000.0]

    def store() -> RobotsStore:
        return hosts.store(
            disk=RobotsDisk(tmp_path / "robots.sqlite"), now=lambda: now[0], life=86_400
        )

    first = store()
    for url in ("http://a/", "http://b/"):
        await first.rules(url)
    first.close()
    now[0] += 86_000
    second = store()
    assert not (await second.rules("http://a/no")).is_allowed("http://a/no")
    assert (await second.rules("http://b/no")).is_allowed("http://b/no")
    assert len(hosts.asked) == 2
    now[0] += 401
    assert not (await second.rules("http://a/no")).is_allowed("http://a/no")
    assert len(hosts.asked) == 3
    second.close()


async def test_the_cache_on_disk_is_pruned_while_a_fetch_lasts(tmp_path: Path) -> None:
    hosts = Hosts(a=(200, NO), b=(200, NO))
    now, path = [1_000_000.0], tmp_path / "robots.sqlite"
    store = hosts.store(disk=RobotsDisk(path), now=lambda: now[0], life=86_400)
    await store.rules("http://a/")
    now[0] += 90_000
    await store.rules("http://b/")
    store.close()
    with RobotsDisk(path) as disk:
        assert disk.get("http:a:80", 0) is None and disk.get("http:b:80", 0) is not None


async def test_a_file_of_a_clock_that_was_wrong_is_asked_for_again(tmp_path: Path) -> None:
    """Fetched a year from now, it would be young for a year and a day."""
    hosts = Hosts(a=(200, NO))
    now, path = [40_000_000.0], tmp_path / "robots.sqlite"
    for expected in (1, 2, 2):
        store = hosts.store(disk=RobotsDisk(path), now=lambda: now[0], life=86_400)
        await store.rules("http://a/")
        store.close()
        assert len(hosts.asked) == expected
        now[0] = 10_000_000.0


async def test_memory_forgets_after_a_day_too() -> None:
    hosts = Hosts(a=(200, NO))
    now = [0.0]
    store = hosts.store(now=lambda: now[0], life=10)
    await store.rules("http://a/")
    now[0] = 9
    await store.rules("http://a/")
    now[0] = 10
    await store.rules("http://a/")
    assert len(hosts.asked) == 2


def test_a_damaged_cache_is_begun_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "robots.sqlite"
    path.write_bytes(b"this is no database" * 100)
    disk = RobotsDisk(path)
    disk.put("k", StoredRobots(5.0, 200, NO, "text/plain", "http://a/robots.txt"))
    found = disk.get("k", 4.0)
    assert found is not None and found.content == NO
    assert disk.get("k", 5.0) is None and disk.get("other", 0) is None
    disk.close()
    disk.close()
    assert disk.get("k", 0) is None
    assert "replaced by a new one" in caplog.text


# -- sitemaps and Content-Signal -------------------------------------------------------------------

NAMES = b"""\
Sitemap: https://maps.example/all.xml
User-agent: *
Content-Signal: search=yes, ai-train=no
Disallow: /no
User-agent: x
Content-Signal: ai-train=yes
Disallow: /x
Sitemap: map.xml
Sitemap: /other.xml
"""


async def test_sitemaps_and_signals_are_recorded(tmp_path: Path) -> None:
    contents: list[Content] = []
    hosts = Hosts(a=(301, "http://b/robots.txt"), b=(302, "http://c/deep/robots.txt"))
    hosts.answers["http://c/deep/robots.txt"] = (200, NAMES)
    store = hosts.store(disk=RobotsDisk(tmp_path / "robots.sqlite"), now=lambda: 100.0)
    found = await store.rules("http://a/some/page", contents)
    store.close()
    sitemaps = ["https://maps.example/all.xml", "http://c/deep/map.xml", "http://c/other.xml"]
    assert list(found.sitemaps) == sitemaps
    assert found.content_signals == {"ai-train": "yes"}
    assert SITEMAP_KEY not in contents[0].metadata and SIGNAL_KEY not in contents[1].metadata
    assert contents[2].url == "http://c/deep/robots.txt"
    assert contents[2].metadata[SITEMAP_KEY] == sitemaps
    assert contents[2].metadata[SIGNAL_KEY] == ["ai-train=yes"]
    for key in ("http:a:80", "http:b:80"):
        kept = RobotsDisk(tmp_path / "robots.sqlite").get(key, 0)
        assert kept is not None and kept.url == "http://c/deep/robots.txt"
        assert list(kept.sitemaps) == sitemaps and kept.signals == {"ai-train": "yes"}
    again = await hosts.store(disk=RobotsDisk(tmp_path / "robots.sqlite"), now=lambda: 100.0).rules(
        "http://a/"
    )
    assert list(again.sitemaps) == sitemaps and len(hosts.asked) == 3


async def test_a_file_without_them_has_no_such_metadata() -> None:
    contents: list[Content] = []
    await Hosts(a=(200, NO)).store().rules("http://a/x", contents)
    assert SITEMAP_KEY not in contents[0].metadata and SIGNAL_KEY not in contents[0].metadata


def test_a_damaged_row_is_no_row(tmp_path: Path) -> None:
    disk = RobotsDisk(tmp_path / "robots.sqlite")
    disk.put(
        "k",
        StoredRobots(5.0, 200, NO, "text/plain", "http://a/robots.txt", ("s",), {"search": "no"}),
    )
    found = disk.get("k", 0)
    assert found == StoredRobots(
        5.0, 200, NO, "text/plain", "http://a/robots.txt", ("s",), {"search": "no"}
    )
    assert disk._db is not None
    for change in ("content = x'00'", "sitemaps = '['"):
        disk._db.execute(f"UPDATE robotstxt SET {change}")
        assert disk.get("k", 0) is None


@pytest.mark.parametrize("limit", ["", "60"])
@pytest.mark.parametrize("coding", ["", "gzip"])
async def test_a_line_that_is_cut_off_does_not_count(limit: str, coding: str) -> None:
    """Half of `Disallow: /private` would forbid the whole host."""
    most = int(limit or MAX_BYTES)
    start = b"User-agent: *\nDisallow: /no\n"
    body = (
        start
        + b"#" * (most - len(start) - len(b"\nDisallow: /"))
        + b"\nDisallow: /private\nDisallow: /yes\n"
    )
    assert body[:most].endswith(b"\nDisallow: /")
    with MisbehavingServer() as server:
        sent = gzip.compress(body) if coding else body
        server.pages["/robots.txt"] = page(
            sent, *([f"Content-Encoding: {coding}"] if coding else [])
        )
        protocol = Http(conf_for(**({"http__robots__content__limit": limit} if limit else {})), {})
        found = await protocol.get_robot_rules(server.url("x"), CrawlDatum(), None)
        await protocol.close()
    assert found.is_allowed(server.url("yes")) and not found.is_allowed(server.url("no"))


async def test_a_robots_txt_that_breaks_off() -> None:
    with MisbehavingServer() as server:
        server.pages["/robots.txt"] = (
            head("Content-Length: 1000") + b"User-agent: *\nDisallow: /no\nDisallow: /"
        )
        protocol = Http(conf_for(), {})
        found = await protocol.get_robot_rules(server.url("x"), CrawlDatum(), None)
        await protocol.close()
    assert found.is_allowed(server.url("yes")) and not found.is_allowed(server.url("no"))


def test_files_go_to_disk_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a second, and at the end; others see them then."""
    found = StoredRobots(5.0, 200, NO, "text/plain", "http://a/robots.txt")
    clock = FakeClock()
    monkeypatch.setattr("plugins.lib_http.robotscache.time.monotonic", clock.monotonic)
    disk = RobotsDisk(tmp_path / "robots")

    def stored() -> str:
        with RobotsDisk(tmp_path / "robots", read_only=True) as other:
            return "".join(key for (key,) in other.read("SELECT key FROM robotstxt ORDER BY key"))

    for key, seconds, seen in (("a", 10, "a"), ("b", 0.9, "a"), ("c", 0.6, "abc")):
        clock.advance(seconds)
        disk.put(key, found)
        assert stored() == seen
    disk.put("d", found)
    assert stored() == "abc"
    disk.close()
    assert stored() == "abcd"
