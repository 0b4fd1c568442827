"""Rules that have changed since the last round: nobody loses stored pages unawares, and where
nothing has changed the CrawlDb is not looked at.
"""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.cycle.crawl import preflight
from minutch.cycle.crawl.preflight import RULES, remember_rules, remembered_rules, warn_of_losses
from minutch.plugin.urlrules import rule_sources
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum
from tests.support.crawldbs import DAY, NOW, write_db

PLUGINS = "urlfilter-regex|urlnormalizer-(pass|host)"


def entry(code: int) -> CrawlDatum:
    return CrawlDatum(code, 2_592_000, 1.0, NOW + DAY)


class Crawl:
    """A crawl of twelve pages of /old, as many of /new, and a redirect, with rules that change."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.rules = folder / "crawl", folder / "conf/regex-urlfilter.txt"
        self.rules.parent.mkdir()
        self.rules.write_text("+.\n")
        pages = (status.STATUS_DB_FETCHED, status.STATUS_DB_NOTMODIFIED, status.STATUS_DB_DUPLICATE)
        urls = {
            f"http://a.example/{place}/{number}": entry(pages[number % 3])
            for place in ("old", "new")
            for number in range(12)
        }
        urls["http://a.example/old/moved"] = entry(status.STATUS_DB_REDIR_PERM)
        urls["http://a.example/old/waits"] = entry(status.STATUS_DB_UNFETCHED)
        write_db(self.folder / "crawldb", sorted(urls.items()), parts=2)

    def conf(self, **changed: str) -> Configuration:
        given = {name.replace("__", "."): value for name, value in changed.items()}
        return Configuration.load(
            [self.rules.parent], overrides={"plugin.includes": PLUGINS, **given}
        ).freeze()

    def start(self, **changed: str) -> list[str]:
        """A round: what is said at its start; the rules are remembered after it."""
        with pytest.MonkeyPatch.context() as patches:
            said: list[str] = []
            patches.setattr(
                preflight.log, "warning", lambda text, *values: said.append(text % values)
            )
            remember_rules(self.folder, warn_of_losses(self.folder, self.conf(**changed)))
        return said


@pytest.fixture
def crawl(tmp_path: Path) -> Crawl:
    made = Crawl(tmp_path)
    assert made.start() == []  # nothing is remembered, and nothing lost
    return made


def test_pages_are_lost_to_a_rule_and_that_is_said(crawl: Crawl) -> None:
    crawl.rules.write_text("-/old/1\n-/old/\n+.\n")
    first, *rules, last = crawl.start(crawldb__url__filters="true")
    assert first.startswith("crawldb.url.filters, regex-urlfilter.txt changed since the last round")
    assert "12 of 24 stored pages do not pass: the next updatedb removes them" in first
    assert [line.partition(": http")[0] for line in rules] == [
        f"  9 by {crawl.rules}:2: -/old/", f"  3 by {crawl.rules}:1: -/old/1",
    ]  # fmt: skip
    assert all(line.count("http://a.example/old/") == 3 for line in rules)
    assert last.startswith(f"`minutch whatif {crawl.folder}`")
    assert crawl.start(crawldb__url__filters="true") == []  # it is said once


@pytest.mark.parametrize(
    ("changed", "fate"),
    [
        ({}, "they stay and are fetched again, but no new link to them is kept"),
        ({"fetcher__filter__urls": "true"}, "they are not asked for any more"),
        ({"crawldb__url__filters": "true"}, "the next updatedb removes them"),
    ],
)
def test_what_becomes_of_them(changed: dict[str, str], fate: str, tmp_path: Path) -> None:
    crawl = Crawl(tmp_path)
    crawl.rules.write_text("-/old/\n+.\n")
    assert fate in crawl.start(**changed)[0]


def test_normalizers_that_updatedb_applies_give_pages_other_names(crawl: Crawl) -> None:
    (crawl.rules.parent / "host-urlnormalizer.txt").write_text("a.example b.example\n")
    assert crawl.start() == []  # links get them, entries stay
    first, last = crawl.start(crawldb__url__normalizers="true")
    assert "24 of 24 stored pages get other URLs from updatedb" in first and "whatif" in last


def test_a_warning_that_nobody_heeded_comes_again(crawl: Crawl) -> None:
    """Whoever stops the crawl then has not lost anything; the next start warns again."""
    crawl.rules.write_text("-/old/\n+.\n")
    before = remembered_rules(crawl.folder)
    warn_of_losses(crawl.folder, crawl.conf())
    assert remembered_rules(crawl.folder) == before
    assert len(crawl.start()) == 3


def test_unchanged_rules_cost_no_look_at_the_crawldb(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scan(part: Path) -> None:
        raise AssertionError(f"{part} was read")

    monkeypatch.setattr(preflight, "scan", scan)
    assert crawl.start(fetcher__server__delay="9", http__agent__name="x") == []
    with pytest.raises(AssertionError):
        crawl.start(urlfilter__regex__rules="+.")


def test_what_has_changed_is_named_before_what_came_and_went(crawl: Crawl) -> None:
    crawl.rules.write_text("-/old/\n+.\n")
    more = {"plugin__includes": f"{PLUGINS}|urlfilter-(automaton|domain|fast|prefix)"}
    first = crawl.start(crawldb__url__filters="true", **more)[0]
    assert first.startswith("URLFilter, crawldb.url.filters, regex-urlfilter.txt, ")
    assert first.partition(" changed")[0].count(",") == 4  # five are named


def test_what_decides_about_urls(crawl: Crawl) -> None:
    before = rule_sources(crawl.conf())
    assert before["URLFilter"] == "urlfilter-regex" and "regex-urlfilter.txt" in before
    for changed in (
        {"plugin.includes": "urlfilter-(regex|prefix)"},
        {"urlfilter.regex.rules": "-."},
        {"db.ignore.external.links": "true"},
        {"urlnormalizer.order": "x"},
    ):
        assert rule_sources(crawl.conf().with_values(changed).freeze()) != before
    assert rule_sources(crawl.conf(http__agent__name="x")) == before
    crawl.rules.write_text("+^http\n")
    assert rule_sources(crawl.conf()) != before


@pytest.mark.parametrize("text", ["", "[]", "{", "\xff"])
def test_a_damaged_record_is_none(crawl: Crawl, text: str) -> None:
    """All it costs is a look at the CrawlDb."""
    (crawl.folder / RULES).write_text(text, "latin-1")
    assert remembered_rules(crawl.folder) == {} and crawl.start() == []


def test_a_crawl_that_begins_has_nothing_to_lose(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/regex-urlfilter.txt").write_text("-.\n")
    conf = Configuration.load([tmp_path / "conf"], overrides={"plugin.includes": PLUGINS})
    with caplog.at_level(logging.WARNING):
        assert warn_of_losses(tmp_path / "crawl", conf) == rule_sources(conf)
    assert not caplog.records
