"""What is foretold is what the jobs then do: the next list by host, how long its fetch takes, which
entries updatedb drops, and under which names it knows the others.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from minutch.clock import FakeClock
from minutch.commands import cli
from minutch.conf import Configuration
from minutch.cycle.crawl.steps import CrawlOptions, Steps
from minutch.cycle.fetch.settings import QueueSettings
from minutch.cycle.fetchlist.selector import GenerateOptions
from minutch.cycle.segment.store import Segment
from minutch.inspect.whatif.forecast import whatif
from minutch.inspect.whatif.prospects import UrlShift, WhatIf, text
from minutch.job import JobContext
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum
from tests.cycle.fetch.test_turnover import Web, crawled
from tests.support.commands import command
from tests.support.crawldbs import DAY, NOW, read_db, write_db
from tests.support.explainedcrawl import A, Fetch, write_segment
from tests.support.siteserver import SiteServer
from tests.support.virtualtime import VirtualClock

MONTH = 2_592_000
HOSTS = {"a.example": 60, "b.example": 25, "www.b.example": 9}
RULES = "-/archive/\n+.\n"
PLUGINS = {
    "plugin.includes": "protocol-http|urlfilter-regex|urlnormalizer-(pass|host)|scoring-opic",
    "http.agent.name": "tester",
}
PROPERTY = "<property><name>{}</name><value>{}</value></property>"
QUICK = 0.042
"""Seconds that answers take in segments of `write_segment`."""


def entries() -> dict[str, CrawlDatum]:
    """Two thirds are due, a third was fetched; each host has a fifth in its archive."""
    found = {}
    for host, count in HOSTS.items():
        for number in range(count):
            place = "archive/" if number % 5 == 0 else ""
            fetched = CrawlDatum(status.STATUS_DB_FETCHED, MONTH, 1.0, NOW + DAY, NOW - DAY)
            waits = CrawlDatum(status.STATUS_DB_UNFETCHED, MONTH, 1.0, NOW - DAY)
            found[f"http://{host}/{place}{number}"] = waits if number % 3 else fetched
    return found


def xml(properties: dict[str, str]) -> str:
    found = "".join(PROPERTY.format(*pair) for pair in properties.items())
    return f"<configuration>{found}</configuration>"


class Tried:
    """A crawl, and configurations of it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.crawl = folder, folder / "crawl"
        write_db(self.crawl / "crawldb", sorted(entries().items()), parts=2)
        self.rules(self.crawl / "conf", "+.\n", site=True)

    @staticmethod
    def rules(folder: Path, rules: str, *, site: bool = False) -> Path:
        folder.mkdir(parents=True)
        (folder / "regex-urlfilter.txt").write_text(rules)
        if site:
            (folder / "nutch-site.xml").write_text(xml(PLUGINS))
        return folder

    def conf(self, **changed: str) -> Configuration:
        given = {name.replace("__", "."): value for name, value in changed.items()}
        return Configuration.load([], overrides=given)

    def context(self, conf: Configuration) -> JobContext:
        return JobContext(conf, FakeClock(NOW), io.StringIO(), io.StringIO())

    def whatif(
        self, proposal: Path | None = None, options: GenerateOptions | None = None, **changed: Any
    ) -> tuple[WhatIf, Configuration]:
        before, after = self.conf(**changed).proposed(self.crawl, proposal)
        context = self.context(after.freeze())
        return whatif(self.crawl, before.freeze(), after, options, context=context), after

    def round(self, conf: Configuration) -> Segment:
        """Runs generate and updatedb as `crawl` does, without what lies between them."""
        conf = conf.with_values({"mapreduce.job.reduces": "2"}).freeze()
        steps = Steps(self.crawl, CrawlOptions())
        made = steps.generate({})(context=self.context(conf))
        segment = Segment(made.segments[0])
        steps.updatedb(segment.path)(context=self.context(conf))
        return segment


@pytest.fixture
def tried(tmp_path: Path) -> Tried:
    return Tried(tmp_path)


def listed(segment: Segment) -> Counter[str]:
    return Counter(url.split("/")[2] for url, _ in segment.records("crawl_generate"))


def shift(found: WhatIf, kind: str) -> UrlShift:
    return next(one for one in found.shifts if one.kind == kind)


@pytest.mark.parametrize("most", ["-1", "7"])
def test_the_next_round_is_as_foretold(tried: Tried, most: str) -> None:
    changed: dict[str, Any] = {"crawldb__url__filters": "true", "generate__max__count": most}
    folder = tried.rules(tried.folder / "new", RULES)
    found, after = tried.whatif(folder, **changed)
    before = set(read_db(tried.crawl / "crawldb"))
    segment = tried.round(after)
    by_host = {one.queue: one.pages for one in found.after.queues}
    assert by_host == listed(segment) and found.after.listed == sum(by_host.values()) > 0
    if most == "7":
        assert set(by_host.values()) == {6, 7}  # the two parts of a list share its places
        assert found.after.left_out["urls_skipped_per_host_overflow_total"] > 20
    removed = shift(found, "removed")
    gone = before - set(read_db(tried.crawl / "crawldb"))
    assert removed.urls == len(gone) == 12 + 5 + 2
    assert removed.stored == sum(entries()[url].status == status.STATUS_DB_FETCHED for url in gone)
    (rule,) = removed.rules
    assert rule.name == f"{folder}/regex-urlfilter.txt:1: -/archive/" and len(rule.examples) == 3
    assert {share.name: share.urls for share in removed.hosts} == {
        "a.example": 12, "b.example": 5, "www.b.example": 2,
    }  # fmt: skip
    assert found.before.due_pages - found.after.due_pages == removed.urls - removed.stored


@pytest.mark.parametrize(
    "pace",
    [
        {"fetcher__server__delay": "3.0"},
        {"fetcher__server__delay": "3.0", "fetcher__queue__mode": "byDomain"},
        {"fetcher__threads__per__queue": "3", "fetcher__server__min__delay": "0.5"},
    ],
)
def test_its_fetch_takes_as_long_as_foretold(tried: Tried, pace: dict[str, Any]) -> None:
    write_segment(tried.crawl, NOW - DAY, [Fetch(f"{A}/seen", digest=b"x" * 16)])
    found, after = tried.whatif(fetcher__min__crawl__delay="0", **pace)
    clock = VirtualClock()
    urls = [url for url, entry in entries().items() if entry.fetch_time < NOW]
    web = Web(clock, {url: [] for url in urls}, seconds=QUICK)
    crawled(tried.folder / "fetched", web, urls, None, queues=QueueSettings.from_conf(after))
    times = [time for time, _ in web.asked]
    assert len(times) == found.after.listed == len(urls)
    took = max(times) + QUICK - min(times)
    assert found.after.seconds == pytest.approx(took, rel=0.05)
    longest = found.after.queues[0]
    assert longest.queue == "a.example" and longest.answer == pytest.approx(QUICK)
    assert "0.042 s was the mean" in " ".join(found.unknown)


def test_the_time_limit_of_a_round_leaves_pages_for_later(tried: Tried) -> None:
    found, _ = tried.whatif(fetcher__server__delay="600")
    assert found.after.seconds == 3 * 3600 and found.before.seconds < 3600
    per_round = 3 * 6 + 1  # one every ten minutes, the first of them at once
    assert found.after.beyond == sum(max(0, one.pages - per_round) for one in found.after.queues)
    assert found.after.rounds == 3 and found.after.due_seconds == 39 * 600
    assert found.before.rounds == 1 and found.before.beyond == 0


def test_known_urls_keep_their_intervals(tried: Tried) -> None:
    """With the default schedule; the adaptive one changes them at the next fetch."""
    found, _ = tried.whatif(db__fetch__interval__default="86400")
    assert found.after.requests_a_day == found.before.requests_a_day
    assert found.after.requests_a_day[0] == pytest.approx(94 / 30)
    assert any("db.fetch.interval.default is for URLs that are new" in one for one in found.notes)
    assert not found.rules_compared and not found.shifts
    adaptive = "org.apache.nutch.crawl.AdaptiveFetchSchedule"
    least, most = tried.whatif(db__fetch__schedule__class=adaptive)[0].after.requests_a_day
    assert least < 94 / 30 < most  # by inc_rate 0.4 and dec_rate 0.2 of those that were fetched


def test_rules_that_updatedb_does_not_apply_leave_entries_as_they_are(tried: Tried) -> None:
    found, after = tried.whatif(tried.rules(tried.folder / "new", RULES))
    known = set(read_db(tried.crawl / "crawldb"))
    tried.round(after)
    assert set(read_db(tried.crawl / "crawldb")) == known
    assert shift(found, "removed").urls == 0 and shift(found, "left out").urls == 19
    assert found.after.listed == found.before.listed and "stay" in shift(found, "left out").fate


def test_urls_get_other_names(tried: Tried) -> None:
    changed: dict[str, Any] = {"urlnormalizer__hosts__rules": "*.b.example b.example"}
    found, _ = tried.whatif(**changed)
    renamed = shift(found, "renamed")
    assert (renamed.urls, renamed.rules[0].name) == (9, "HostURLNormalizer")
    assert "stay as well" in renamed.fate
    found, after = tried.whatif(**changed, crawldb__url__normalizers="true")
    assert shift(found, "renamed").urls == 9 and "updatedb" in shift(found, "renamed").fate
    tried.round(after)
    assert {url.split("/")[2] for url in read_db(tried.crawl / "crawldb")} == {
        "a.example", "b.example",
    }  # fmt: skip


def test_links_tell_what_is_out_of_scope_and_what_is_new(tried: Tried) -> None:
    """A page that hosts of others alone link to is lost to the scope; one that a link leads to
    under a name that is unknown, or that was rejected until now, is gained.
    """
    (tried.crawl / "conf/regex-urlfilter.txt").write_text("-/new\n+.\n")
    to_b, here = "http://b.example/1", "http://a.example/2"
    links = [(to_b, "b"), (here, "here"), ("http://a.example/new1", "new")]
    pages = [Fetch("http://a.example/1", digest=b"x" * 16, links=tuple(links))]
    write_segment(tried.crawl, NOW - DAY, pages)
    found, _ = tried.whatif(db__ignore__external__links="true")
    left = shift(found, "left out")
    assert [(share.name, share.urls) for share in left.rules] == [
        ("db.ignore.external.links (byHost)", 1)
    ]
    assert left.rules[0].examples == (to_b,) and shift(found, "gained").urls == 0
    assert any("is about links" in note for note in found.notes)
    found, _ = tried.whatif(tried.rules(tried.folder / "new", "+.\n"))
    gained = shift(found, "gained")
    assert gained.rules[0].examples == ("http://a.example/new1",)
    assert gained.rules[0].name.endswith("crawl/conf/regex-urlfilter.txt:1: -/new")
    found, _ = tried.whatif(urlnormalizer__hosts__rules="b.example c.example")
    gained = shift(found, "gained")
    assert gained.rules[0].examples == ("http://c.example/1",) and gained.urls == 1


def test_without_a_change_it_tells_what_the_settings_in_force_do(tried: Tried) -> None:
    (tried.crawl / "conf/regex-urlfilter.txt").write_text(RULES)
    found, _ = tried.whatif()
    assert found.changes == () and found.rules_compared and found.before == found.after
    assert shift(found, "left out").urls == 19


def test_the_words(tried: Tried) -> None:
    found, _ = tried.whatif(
        tried.rules(tried.folder / "new", RULES), fetcher__server__delay="30", http__agent__name="x"
    )
    lines = "\n".join(text(replace(found, crawl="crawl"), 80)).splitlines()
    assert lines[0] == "crawl: 94 URLs known, 32 of them stored"
    assert (
        "  fetcher.server.delay: 5.0 -> 30" in lines and "  http.agent.name: tester -> x" in lines
    )
    assert "  regex-urlfilter.txt: changed" in lines
    long = [line for line in lines if len(line) > 80 and str(tried.folder) not in line]
    assert not long
    row = next(line for line in lines if line.startswith("  takes at least"))
    assert row.split("  ")[-1].strip() == "19 minutes 30 seconds" and "3 minutes 15 seconds" in row


def run(tried: Tried, *words: str, **changed: str) -> str:
    context = tried.context(tried.conf(**changed).freeze())
    assert command("whatif").run([str(tried.crawl), *words], context) == 0
    assert isinstance(context.out, io.StringIO)
    return context.out.getvalue()


def test_the_command_line(tried: Tried) -> None:
    folder = tried.rules(tried.folder / "new", RULES)
    site = folder / "nutch-site.xml"
    more = PLUGINS | {"generate.max.count": "2"}
    site.write_text(xml(more))
    found: dict[str, Any] = json.loads(run(tried, str(folder), "--json", "-topN", "4"))
    assert found["after"]["listed"] == 4 and found["before"]["due_pages"] == 62
    assert [one["name"] for one in found["changes"]] == [
        "generate.max.count", "regex-urlfilter.txt",
    ]  # fmt: skip
    assert [one["urls"] for one in found["shifts"]] == [0, 19, 0, 0]
    found = json.loads(run(tried, str(site), "--json", "--filter"))
    assert found["after"]["listed"] == 6 and found["before"]["listed"] == 62


@pytest.mark.slow  # a crawl of its own, and one more round
def test_a_crawl_does_what_was_foretold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Real servers: the list, and what is left of the CrawlDb; with the links of real pages."""
    monkeypatch.chdir(tmp_path)
    given = ["-D", "http.filter.ipaddress.include=loopback", "-D", "crawl.sitemaps=false"]
    with SiteServer() as server:
        url = server.site.url("one")
        words = [*given, "--agent", "me", "--delay", "0", url, "crawl", "2"]
        assert cli.main(["crawl", *words]) == 0
        rules = tmp_path / "new/regex-urlfilter.txt"
        rules.parent.mkdir()
        rules.write_text("-[.]txt$\n-/a\n+.\n")
        changed = ["-D", "crawldb.url.filters=true", "-D", "generate.max.count=5"]
        capsys.readouterr()
        assert cli.main(["whatif", "crawl", "new", "--json", *changed]) == 0
        found = json.loads(capsys.readouterr().out)
        before = set(read_db(Path("crawl/crawldb")))
        (tmp_path / "crawl/conf/regex-urlfilter.txt").write_text(rules.read_text())
        assert cli.main(["crawl", *changed, "crawl", "1"]) == 0
    segment = Segment(max(Path("crawl/segments").iterdir()))
    assert listed(segment).total() == found["after"]["listed"] > 0
    gone = before - set(read_db(Path("crawl/crawldb")))
    removed = next(one for one in found["shifts"] if one["kind"] == "removed")
    assert removed["urls"] == len(gone) > 0
    said = capsys.readouterr().err
    assert f"{removed['stored']:,} of {found['stored']:,} stored pages do not pass" in said
    assert "minutch whatif crawl" in said and removed["rules"][0]["name"].split(":")[-1] in said
