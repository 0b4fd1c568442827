"""Queue names, and the links that are followed in the same fetch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from minutch.conf import Configuration
from minutch.cycle.fetch.frontier.frontier import LinkFollower
from minutch.cycle.fetch.frontier.queueitems import (
    FetchItem,
    QueueNames,
    pack_follow,
    unpack_follow,
)
from minutch.cycle.fetch.settings import FollowSettings
from minutch.cycle.fetch.stats import FetchStats
from minutch.cycle.parse.pageparser import ParsedPage
from minutch.hadoop.formats.writables import Text
from minutch.records.crawldatum import STATUS_LINKED, CrawlDatum
from tests.support.examples import tabled


@tabled(
    ("mode", "url", "key"),
    [
        ("byHost", "http://WWW.a.co.uk:8080/x", "www.a.co.uk"),
        ("byHost", "https://www.a.co.uk/", "www.a.co.uk"),
        ("byHost", "no url", None),
        ("byDomain", "http://x.www.a.co.uk/", "a.co.uk"),
        ("byDomain", "http://10.0.0.1/", "10.0.0.1"),
        ("byDomain", "http://localhost./", "localhost"),
        ("byDomain", "http://0x7f.1/", "127.0.0.1"),
        ("byDomain", "no url", None),
        ("byIP", "http://known.example/", "10.0.0.9"),
        ("byIP", "http://unknown.example/", None),
        ("byIP", "no url", None),
    ],
)
def test_queue_names(mode: str, url: str, key: str | None) -> None:
    assert QueueNames(mode, {"known.example": "10.0.0.9"}.get).of(url) == key


NAMES = QueueNames("byHost")


def test_follow_entries_come_back() -> None:
    datum = CrawlDatum(STATUS_LINKED, 5)
    datum.metadata[Text("k")] = Text("v")
    item = FetchItem("http://a/", datum, "a", None, 3, 2)
    assert unpack_follow("http://a/", pack_follow(item), "a") == item


SETTINGS = FollowSettings(depth=2, per_page=2, ignore_external=True, interval=77)


def follow(
    links: list[str],
    settings: FollowSettings = SETTINGS,
    depth: int = 0,
    listed: Sequence[str] = ("http://a/",),
) -> list[FetchItem]:
    follower = LinkFollower(settings, NAMES, FetchStats(), listed)
    return follower.follow(ParsedPage(outlinks=[("http://a/", links)]), depth)


def test_links_of_the_same_host_are_followed() -> None:
    items = follow(["http://a/1", "http://b/1", "http://a/1", "http://a/"])
    assert [(item.url, item.depth, item.listed, item.queue_id) for item in items] == [
        ("http://a/1", 1, None, "a")
    ]
    assert items[0].datum == CrawlDatum(STATUS_LINKED, 77)


def test_number_and_depth_are_bounded() -> None:
    links = [f"http://a/{n}" for n in range(10)]
    assert len(follow(links)) == 2
    assert [item.depth for item in follow(links, depth=1)] == [2, 2]
    assert follow(links, depth=2) == []
    everywhere = replace(SETTINGS, ignore_external=False, per_page=10)
    assert len(follow(["http://b/1", "http://c/1"], everywhere)) == 2


def test_no_link_is_followed_twice() -> None:
    everywhere = replace(SETTINGS, ignore_external=False)
    follower = LinkFollower(everywhere, NAMES, FetchStats())
    for host in "ab":
        page = ParsedPage(outlinks=[(f"http://{host}/", ["http://c/1"])])
        found = [item.url for item in follower.follow(page, 0)]
        assert found == (["http://c/1"] if host == "a" else [])


def test_no_link_is_followed_to_a_url_of_the_fetch_list() -> None:
    assert follow(["http://a/1", "http://a/2"], listed=["http://a/", "http://a/1"])[0].url == (
        "http://a/2"
    )


def test_publishers(tmp_path: Path) -> None:
    from minutch.clock import FakeClock
    from minutch.cycle.fetch.stats import Publishers

    folder = tmp_path / "plugins" / "publisher-test"
    folder.mkdir(parents=True)
    (folder / "plugin.xml").write_text(
        '<plugin id="publisher-test" name="t"><requires><import'
        ' plugin="nutch-extensionpoints"/></requires><extension'
        ' point="org.apache.nutch.publisher.NutchPublisher"><implementation id="t"'
        ' class="told:Told"/></extension></plugin>'
    )
    (folder / "told.py").write_text(
        "from minutch.plugin.points import NutchPublisher\nclass Told(NutchPublisher):\n    def"
        " set_config(self):\n        self.events = []\n        return self.conf.get('told') =="
        " 'yes'\n    def publish(self, event):\n        self.events.append(dict(event))\n       "
        " raise OSError('down')\n"
    )
    values = {
        "plugin.folders": str(folder.parent),
        "plugin.includes": "publisher-test",
        "told": "yes",
    }
    conf = Configuration().with_values(values)
    conf.clock = FakeClock(5)
    publishers = Publishers(conf)
    publishers.publish("END", "http://a/", {"status": "success"})
    assert publishers._publishers[0].events == [  # type: ignore[attr-defined]
        {"eventType": "END", "url": "http://a/", "timestamp": 5, "eventData": {"status": "success"}}
    ]
    refused = Publishers(Configuration().with_values(values | {"told": "no"}))
    refused.publish("END", "http://a/", {})
    assert refused._publishers == []
