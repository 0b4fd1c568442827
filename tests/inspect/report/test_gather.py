"""The facts of a crawl: against the same counted in plain Python, and against what Nutch says of
its own crawls.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from shutil import rmtree

import pytest

from minutch.inspect.query.crawl import open_crawl
from minutch.inspect.query.pages import OUTCOMES
from minutch.inspect.query.reach import MOST_DEPTHS
from minutch.inspect.report import reportfile
from minutch.inspect.report.facts import Facts, from_json, to_json
from minutch.records.crawldatum import CrawlDatum
from tests.inspect.report.conftest import Written, context, gathered
from tests.inspect.report.madeup import START, Fetch
from tests.support.crawldbs import write_db, write_segment
from tests.support.examples import few
from tests.support.golden import ALL, GOLDEN, needs_golden

DB_FETCHED, DB_NOTMODIFIED, DB_GONE = 2, 6, 3


def by_round(written: Written) -> Iterator[tuple[str, list[Fetch]]]:
    for number in range(written.crawl.rounds):
        yield (
            written.crawl.segment(number),
            [one for one in written.crawl.fetches if one.round == number],
        )


def last_fetches(written: Written) -> dict[str, Fetch]:
    return {fetch.url: fetch for fetch in written.crawl.fetches}


def test_rounds(harbours: Written) -> None:
    rows = harbours.facts["rounds"].to_dicts()
    for row, (segment, fetches) in zip(rows, by_round(harbours), strict=True):
        outcomes = Counter(one.outcome for one in fetches)
        assert row["segment"] == segment
        assert {name: row[name] for name in OUTCOMES} == {name: outcomes[name] for name in OUTCOMES}
        assert row["bytes"] == sum(len(one.content) for one in fetches if one.outcome == "fetched")
        assert row["started"].timestamp() * 1000 == min(one.time for one in fetches)
        assert row["ended"].timestamp() * 1000 == max(one.time for one in fetches)
        assert row["parsed"] == outcomes["fetched"] and row["unparsed"] == 0
        known = [one.ms for one in fetches if one.ms is not None]
        assert row["median_ms"] == pytest.approx(statistics.median_low(known), rel=0.06)
    assert harbours.facts.total("requests") == len(harbours.crawl.fetches)


def test_every_outcome_is_there(harbours: Written) -> None:
    assert set(OUTCOMES) == {fetch.outcome for fetch in harbours.crawl.fetches}


def test_statuses_over_time(harbours: Written) -> None:
    crawl = harbours.crawl
    rows = harbours.facts["history"].to_dicts()
    known, last = set(crawl.seeds), dict[str, str]()
    for row, (_, fetches) in zip(rows, by_round(harbours), strict=True):
        for fetch in fetches:
            last[fetch.url] = fetch.outcome
            if fetch.outcome == "fetched" and fetch.page:
                known |= {url for url, _ in fetch.page.links}
            if fetch.outcome == "redirected" and fetch.page:
                known.add(fetch.page.to)
        counts = Counter(last.values())
        assert {name: row[name] for name in OUTCOMES} == {name: counts[name] for name in OUTCOMES}
        assert row["waiting"] == len(known - set(last))


def test_state_and_hosts(harbours: Written) -> None:
    facts, entries = harbours.facts, harbours.crawl.entries
    assert facts.total("urls") == len(entries)
    assert facts.total("gone") == sum(one.status == DB_GONE for one in entries.values())
    assert facts.total("due") == sum(one.due <= harbours.crawl.now for one in entries.values())
    hosts: dict[str, Counter[int]] = defaultdict(Counter)
    for url, entry in entries.items():
        hosts[url.split("/")[2]][entry.status] += 1
    rows = {row["host"]: row for row in facts["hosts"].to_dicts()}
    assert {host: row["urls"] for host, row in rows.items()} == {
        host: c.total() for host, c in hosts.items()
    }
    for host, counts in hosts.items():
        assert rows[host]["fetched"] == counts[DB_FETCHED] + counts[DB_NOTMODIFIED]
        mine = [one for one in harbours.crawl.fetches if one.url.split("/")[2] == host]
        assert rows[host]["requests"] == len(mine)
        assert rows[host]["failed"] == sum(one.outcome == "failed" for one in mine)
        assert rows[host]["slowest_ms"] == max(
            (one.ms for one in mine if one.ms is not None), default=None
        )
    assert facts.total("hosts") == len(hosts)


def test_due_dates_add_up(harbours: Written) -> None:
    rows = harbours.facts["due"].to_dicts()
    assert rows[0]["start"] is None
    assert sum(row[name] for row in rows for name in ("new", "again", "gone")) == len(
        harbours.crawl.entries
    )
    for row in rows[1:]:
        start = row["start"].timestamp() * 1000
        end = row["end"].timestamp() * 1000 if row["end"] else float("inf")
        due = [
            one
            for one in harbours.crawl.entries.values()
            if one.due > harbours.crawl.now and start <= one.due < end
        ]
        assert row["new"] + row["again"] + row["gone"] == len(due)
        assert row["gone"] == sum(one.status == DB_GONE for one in due)


def test_answers(harbours: Written) -> None:
    words = {"denied": "robots denied", "failed": "exception"}
    codes = Counter(one.code or words[one.outcome] for one in harbours.crawl.fetches)
    assert dict(harbours.facts["codes"].iter_rows()) == codes
    reasons = {
        (row["outcome"], row["reason"]): row["requests"]
        for row in harbours.facts["reasons"].to_dicts()
    }
    said = {"gone": "HTTP 404", "denied": "robots.txt"}
    expected = Counter(
        (
            one.outcome,
            said.get(one.outcome) or (f"HTTP {one.code}" if one.code else "timeout (http.timeout)"),
        )
        for one in harbours.crawl.fetches
        if one.outcome in ("gone", "denied", "failed")
    )
    assert reasons == expected
    known = sorted(one.ms for one in harbours.crawl.fetches if one.ms is not None)
    assert harbours.facts["times"]["requests"].sum() == len(known)
    assert harbours.facts.total("median_ms") == known[-(-len(known) // 2) - 1]
    assert dict(harbours.facts["robots"].select("host", "urls").iter_rows()) == Counter(
        one.host for one in harbours.crawl.fetches if one.outcome == "denied"
    )


def test_content_is_that_of_the_last_fetch(harbours: Written) -> None:
    facts = harbours.facts
    fetched = {one.url: one for one in harbours.crawl.fetches if one.outcome == "fetched"}
    pages = [one.page for one in fetched.values() if one.page]
    assert dict(facts["types"].select("content_type", "pages").iter_rows()) == Counter(
        one.media_type for one in pages
    )
    assert dict(facts["languages"].iter_rows()) == Counter(one.lang for one in pages)
    assert dict(facts["charsets"].iter_rows()) == Counter(one.charset for one in pages)
    assert facts["types"]["bytes"].sum() == sum(len(one.content) for one in fetched.values())
    assert facts["sizes"]["pages"].sum() == len(pages)
    small = sum(len(one.content) < 1000 for one in fetched.values())
    assert facts["sizes"].filter(below=1000)["pages"].sum() == pytest.approx(small, abs=1)


def test_freshness(harbours: Written) -> None:
    seen: dict[str, str] = {}
    changed: Counter[str] = Counter()
    same: Counter[str] = Counter()
    for fetch in harbours.crawl.fetches:
        if fetch.outcome not in ("fetched", "unchanged"):
            continue
        segment = harbours.crawl.segment(fetch.round)
        if fetch.url in seen:
            is_same = fetch.outcome == "unchanged" or seen[fetch.url] == fetch.digest
            (same if is_same else changed)[segment] += 1
        seen[fetch.url] = fetch.digest
    rows = harbours.facts["changes"].to_dicts()
    assert {row["segment"]: (row["changed"], row["same"]) for row in rows} == {
        segment: (changed[segment], same[segment]) for segment, _ in by_round(harbours)
    }
    assert changed.total() and same.total()
    assert harbours.facts.total("changed") == changed.total()
    assert harbours.facts["ages"]["pages"].sum() == len(seen)


def test_depth_is_the_least_number_of_links(harbours: Written) -> None:
    """Of those that pages have now; redirects are no steps."""
    crawl = harbours.crawl
    fetched = {one.url: one.page for one in crawl.fetches if one.outcome == "fetched" and one.page}
    links = {url: {to for to, _ in page.links} for url, page in fetched.items()}
    last = last_fetches(harbours).values()
    ways = {one.url: {one.page.to} for one in last if one.outcome == "redirected" and one.page}
    depth: dict[str, int] = {}
    here, level = set(crawl.seeds), 0
    while here:
        while new := here - depth.keys():
            depth |= dict.fromkeys(new, level)
            here = here.union(*(ways.get(url, set()) for url in new))
        here, level = set[str]().union(*(links.get(url, set()) for url in here)), level + 1
        here -= depth.keys()
    found = {row["depth"]: row["urls"] for row in harbours.facts["depth"].to_dicts()}
    assert found == Counter(min(depth[url], MOST_DEPTHS) for url in crawl.entries)


def test_duplicates(harbours: Written) -> None:
    groups: dict[bytes, list[str]] = defaultdict(list)
    for url, entry in harbours.crawl.entries.items():
        if entry.signature and entry.status in (DB_FETCHED, DB_NOTMODIFIED):
            groups[entry.signature].append(url)
    repeated = {
        signature.hex(): sorted(urls) for signature, urls in groups.items() if len(urls) > 1
    }
    assert harbours.facts.total("duplicate_groups") == len(repeated) > 0
    for row in harbours.facts["duplicates"].to_dicts():
        assert sorted([row["kept"], *row["others"]]) == repeated[row["signature"]]
        assert row["urls"] == len(repeated[row["signature"]])


def test_redirect_chains(harbours: Written) -> None:
    leads = {
        one.url: one.page.to
        for one in last_fetches(harbours).values()
        if one.outcome == "redirected" and one.page
    }
    chains = []
    for start in set(leads) - set(leads.values()):
        chain = [start]
        while chain[-1] in leads and len(chain) < 60:
            chain.append(leads[chain[-1]])
        chains.append(tuple(chain))
    long = {chain for chain in chains if len(chain) > 2}
    assert {tuple(row["addresses"]) for row in harbours.facts["chains"].to_dicts()} == long
    assert harbours.facts.total("chains") == len(long) > 0
    hops = harbours.facts["chains"]["hops"].to_list()
    assert hops == sorted(hops, reverse=True)


def test_broken_links_with_their_pages(harbours: Written) -> None:
    """A link is broken if its target is gone, or failed when it was last asked for."""
    last = last_fetches(harbours)
    gone = {url for url, one in last.items() if one.outcome in ("gone", "failed")}
    assert {last[url].outcome for url in gone} == {"gone", "failed"}
    links: dict[str, list[tuple[str, str]]] = defaultdict(list)
    fetched = {one.url: one for one in harbours.crawl.fetches if one.outcome == "fetched"}
    for fetch in fetched.values():
        for to, anchor in fetch.page.links if fetch.page else ():
            if to in gone:
                links[to].append((fetch.url, anchor))
    rows = {row["url"]: row for row in harbours.facts["broken"].to_dicts()}
    assert rows.keys() == links.keys() and rows
    for url, row in rows.items():
        assert row["links"] == len(links[url])
        assert (row["why"] == "HTTP 404") == (last[url].outcome == "gone") and row["why"]
        assert set(zip(row["pages"], row["anchors"], strict=True)) <= set(links[url])
        assert len(row["pages"]) == min(5, len({page for page, _ in links[url]}))


def test_little_memory_gives_the_same(harbours: Written) -> None:
    stored = sum(
        path.stat().st_size for path in harbours.folder.glob("segments/*/crawl_fetch/*/data")
    )
    found = gathered(
        harbours.folder, harbours.crawl.now, minutch__engine__memory=str(stored * 160 // 20 // 3)
    )
    for name in harbours.facts.tables.keys() - {"audit"}:
        assert found[name].equals(harbours.facts[name]), name


def test_without_segments_the_linkdb_tells_of_links(harbours: Written, tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    harbours.crawl.write(folder)
    harbours.crawl.invert(folder)
    whole = gathered(folder, harbours.crawl.now)
    (folder / "segments").rename(tmp_path / "segments")
    found = gathered(folder, harbours.crawl.now)
    assert found["rounds"].is_empty() and found["depth"].is_empty()
    assert found["statuses"].equals(whole["statuses"])
    gone = {url for url, one in harbours.crawl.entries.items() if one.status == DB_GONE}
    assert set(found["broken"]["url"]) >= set(whole["broken"]["url"]) & gone
    assert set(found["broken"]["url"]) <= gone


def test_depth_is_not_guessed_where_segments_are_missing(harbours: Written, tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    harbours.crawl.write(folder)
    (folder / "segments" / harbours.crawl.segment(harbours.crawl.rounds - 1)).rename(
        tmp_path / "removed"
    )
    found = gathered(folder, harbours.crawl.now)
    assert found["depth"].is_empty()
    assert found["history"]["waiting"].null_count() == found["history"].height


# -- Nutch's own crawls ----------------------------------------------------------------------------

CRAWLS = ("crawl-small/run-default-r2", "crawl-small/run-rich-r2", "crawl-small/run-default-r1")


@cache
def gathered_of(run: str) -> Facts:
    """The facts of a golden crawl."""
    return gathered(GOLDEN / run / "crawl", START)


@needs_golden("{run}")
@pytest.mark.parametrize("run", few(CRAWLS, 2))
def test_numbers_of_readdb_stats(run: str) -> None:
    said = (GOLDEN / run / "console/dumps/readdb-stats.txt").read_text(encoding="utf-8")
    facts = gathered_of(run)
    total = re.search(r"TOTAL urls:\t(\d+)", said)
    assert total and facts.total("urls") == int(total[1])
    statuses = {
        name: int(count) for name, count in re.findall(r"status \d+ \((\w+)\):\t(\d+)", said)
    }
    assert dict(facts["statuses"].iter_rows()) == statuses
    assert facts.total("fetched") == statuses["db_fetched"] + statuses.get("db_notmodified", 0)
    assert sum(facts["due"].select("new", "again", "gone").sum().row(0)) == int(total[1])


@needs_golden("{run}")
@pytest.mark.parametrize("run", few(CRAWLS, 2))
def test_numbers_of_readseg_list(run: str) -> None:
    said = (GOLDEN / run / "console/dumps/readseg-list-dir.txt").read_text(encoding="utf-8")
    lines = re.findall(r"^(\d{14})\s+\d+\s+\S+\s+\S+\s+(\d+)\s+(\d+)\s*$", said, re.MULTILINE)
    rounds = {row["segment"]: row for row in gathered_of(run)["rounds"].to_dicts()}
    assert rounds.keys() == {name for name, _, _ in lines}
    for name, entries, parsed in lines:
        requests = sum(rounds[name][outcome] for outcome in OUTCOMES)
        assert requests <= int(entries)  # links that redirects found are entries, too
        assert rounds[name]["parsed"] + rounds[name]["unparsed"] == int(parsed)


@needs_golden("commands/domainstats/{name}-host")
@pytest.mark.parametrize("name", ["rich", "default"])
def test_numbers_of_domainstats(name: str) -> None:
    lines = (
        (ALL / f"commands/domainstats/{name}-host/out/part-r-00000")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    counts = {host: int(count) for count, host in (line.split("\t") for line in lines)}
    facts = gathered_of(f"crawl-small/run-{name}-r2")
    assert facts.total("fetched") == counts.pop("FETCHED")
    assert (facts.total("urls") or 0) - (facts.total("fetched") or 0) == counts.pop("NOT_FETCHED")
    hosts = {row["host"]: row["fetched"] for row in facts["hosts"].to_dicts() if row["fetched"]}
    assert hosts == counts


# -- odd crawls ------------------------------------------------------------------------------------


def test_segments_that_were_parsed_only(harbours: Written, tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    harbours.crawl.write(folder)
    for path in folder.glob("segments/*/crawl_fetch"):
        rmtree(path)
    found = gathered(folder, harbours.crawl.now)
    assert found["rounds"].is_empty() and found["history"].is_empty()
    assert found["languages"].height and found.total("links")
    reportfile.to_html(found)


def test_entries_as_odd_as_files_can_hold_them(tmp_path: Path) -> None:
    far = (1 << 63) - 1
    times = (0, -1, far, -far - 1, 253_402_300_800_000)
    entries = [(f"http://a.org/{time}", CrawlDatum(1, -5, float("nan"), time)) for time in times]
    entries += [
        ("no URL at all", CrawlDatum(99)),
        ("http://" + "x" * 10_000 + ".org/" + "y" * 100_000, CrawlDatum(3)),
    ]
    write_db(tmp_path / "crawl" / "crawldb", entries)
    fetched = [
        (url, CrawlDatum(33, 1, 1.0, time)) for time, (url, _) in zip(times, entries, strict=False)
    ]
    write_segment(
        tmp_path / "crawl" / "segments" / "1", [*fetched, (entries[-1][0], CrawlDatum(37))]
    )
    found = reportfile.gathered(open_crawl(tmp_path / "crawl"), context(START))
    assert found.total("urls") == len(entries) == found["statuses"]["urls"].sum()
    assert found.total("requests") == 6
    assert sum(found["due"].select("new", "again", "gone").sum().row(0)) == len(entries)
    text = reportfile.to_html(found)
    assert len(text) < 300_000
    assert from_json(to_json(found))["hosts"].equals(found["hosts"])
