"""FreshnessFetchSchedule: what it learns, what a request is worth, and where its budget goes."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from minutch import jobs
from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.crawldb import fresh
from minutch.cycle.crawldb.fresh import (
    KEY,
    FreshnessFetchSchedule,
    PageHistories,
    interval_of,
    learned,
    multiplier,
    worth_of,
)
from minutch.cycle.crawldb.schedule import (
    STATUS_MODIFIED,
    STATUS_NOTMODIFIED,
    STATUS_UNKNOWN,
    DefaultFetchSchedule,
)
from minutch.cycle.segment.store import Segment, part_writer
from minutch.hadoop.formats.writables import FloatWritable, MapWritable, Text
from minutch.inspect.report.rates import gain
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import records, to_frame
from tests.support.crawldbs import read_db, write_db
from tests.support.examples import examples, few, tabled

DAY = 86_400
NOW = 1_800_000_000_000
BOUNDS = (60.0, 90.0 * DAY)
URL = "http://a.example/"


def one(value: float) -> NDArray[np.float64]:
    return np.array([value], np.float64)


def schedule(**settings: str) -> FreshnessFetchSchedule:
    values = {name.replace("__", "."): value for name, value in settings.items()}
    return FreshnessFetchSchedule(Configuration.load([]).with_values(values))


def held(told: str = "", *, score: float = 1.0, days: float = 10, ago: float = 1) -> CrawlDatum:
    """A page that was fetched `ago` days ago, to be fetched again `days` after that."""
    fetched = NOW - round(ago * DAY) * 1000
    datum = CrawlDatum(
        status.STATUS_DB_FETCHED, round(days * DAY), score, fetched + round(days * DAY) * 1000
    )
    if told:
        datum.metadata = MapWritable({Text(KEY): Text(told)})
    return datum


def told(rate: float, visits: int = 40, worth: str = "-") -> str:
    """What is known of a page that changes so many times a day."""
    shape = max(1, visits // 2)
    return f"1 {visits} {shape} {shape * 1_000_000} {round(shape * DAY / rate)} {worth}"


# -- what visits tell ------------------------------------------------------------------------------


@tabled("shape, waited", product((0.5, 5.0, 50.0), (1e-3, 0.1, 1.0, 30.0)))
def test_a_change_at_some_moment_leaves_the_means_of_the_likelihood(
    shape: float, waited: float
) -> None:
    """By integrals over a grid of rates, of the gamma distribution times 1 - exp(-rate w)."""
    time = 1e6
    kept = memory(shape, time, waited * time, changed=True)
    kept_shape, kept_time = max(1e-3, shape * kept), time * kept
    rate = np.exp(np.linspace(-300, 6, 20_001)) * max(kept_shape, 1) / kept_time
    logs = kept_shape * np.log(rate * kept_time) - rate * kept_time
    weight = np.exp(logs) * -np.expm1(-rate * waited * time)
    mean, inverse = ((weight * each).sum() / weight.sum() for each in (rate, 1 / rate))
    found, found_time = learned(
        one(shape), one(time), one(waited * time), np.array([True]), one(np.nan)
    )
    assert (found / found_time)[0] == pytest.approx(mean, rel=1e-2)
    assert (found_time / (found - 1))[0] == pytest.approx(inverse, rel=1e-2)


def memory(shape: float, time: float, waited: float, *, changed: bool) -> float:
    """How probable it is that the rate is still what it was, by Bayes' rule: a visit to a page
    whose rate has shifted finds a change as often as none.
    """
    same = (1 + waited / time) ** -shape
    stays: float = (1 - fresh._SHIFTS) * (1 - same if changed else same)
    return stays / (stays + fresh._SHIFTS * 0.5)


def test_what_a_visit_contradicts_is_forgotten() -> None:
    """A page that was steady for three years changes: what was known of it counts for little."""
    steady, few = (0.5, 1100.0 * DAY), np.array([True])
    assert memory(*steady, 30 * DAY, changed=True) < 0.6
    assert memory(*steady, 30 * DAY, changed=False) > 0.98
    found = learned(one(steady[0]), one(steady[1]), one(30.0 * DAY), few, one(np.nan))
    assert (found[0] / found[1])[0] * DAY > 2 / 1100


def test_no_change_and_a_dated_one() -> None:
    waited, shape, time = np.full(2, 5.0 * DAY), np.full(2, 2.0), np.full(2, 10.0 * DAY)
    found = learned(shape, time, waited, np.array([False, True]), np.array([np.nan, 1.0 * DAY]))
    same, dated = (memory(2, 10 * DAY, 5 * DAY, changed=changed) for changed in (False, True))
    assert found[0] == pytest.approx([2 * same, 2 * dated + 1])
    assert found[1] == pytest.approx([(10 * same + 5) * DAY, (10 * dated + 1) * DAY])


@pytest.mark.parametrize("rate", [0.02, 0.2, 1.0])
def test_irregular_visits_come_to_the_rate_of_greatest_likelihood(rate: float) -> None:
    """200 pages, 60 visits each; the maximum is that of Cho and Garcia-Molina's likelihood, over
    all pages. The last visits count most, so that single pages stay vague.
    """
    chance = np.random.default_rng(5)
    shape, time = np.full(200, 0.5), np.full(200, 15.0 * DAY)
    same, waits = 0.0, []
    for _ in range(60):
        waited = chance.uniform(0.2, 2.0, 200) / rate
        changed = chance.random(200) < -np.expm1(-rate * waited)
        shape, time = learned(shape, time, waited * DAY, changed, np.full(200, np.nan))
        same += waited[~changed].sum()
        waits.append(waited[changed])
    changes = np.concatenate(waits)
    low, high = rate / 10, rate * 10
    for _ in range(60):
        middle = math.sqrt(low * high)
        slope = (changes / np.expm1(middle * changes)).sum() - same
        low, high = (middle, high) if slope > 0 else (low, middle)
    assert (shape / time * DAY).mean() == pytest.approx(low, rel=0.15)


# -- what a request is worth -----------------------------------------------------------------------


def test_worth_is_what_one_more_request_adds() -> None:
    """The slope of the expected freshness by the number of requests; that of a page whose rate is
    known is `rates.gain`.
    """
    rate = np.random.default_rng(1).gamma(3.0, 1 / (2.0 * DAY), 200_000)

    def fresh_share(interval: float) -> float:
        return float((-np.expm1(-rate * interval) / (rate * interval)).mean())

    for interval in (0.2 * DAY, DAY, 9.0 * DAY):
        more = 1 / interval * 1.001
        slope = (fresh_share(1 / more) - fresh_share(interval)) / (more - 1 / interval)
        assert worth_of(one(3.0), one(2.0 * DAY), one(interval))[0] == pytest.approx(
            slope, rel=0.02
        )
        known = worth_of(one(1e6), one(1e6 * DAY), one(interval))[0]
        assert known == pytest.approx(float(gain(one(interval / DAY))[0]) * DAY, rel=1e-4)
        near = [worth_of(one(1 + by), one(DAY), one(interval))[0] for by in (-1e-6, 0.0, 1e-6)]
        assert near[1] == pytest.approx(near[0], rel=1e-4) == pytest.approx(near[2], rel=1e-4)


def test_the_multiplier_spends_the_budget() -> None:
    chance = np.random.default_rng(2)
    shape, time = chance.gamma(2.0, 5.0, 500) + 0.1, chance.lognormal(13, 2, 500)
    importance, count = chance.lognormal(0, 1, 500), chance.integers(1, 9, 500).astype(float)
    for a_day in (50.0, 500.0, 5000.0):
        worth = multiplier(shape, time, importance, count, np.ones(500), a_day / DAY, BOUNDS)
        intervals = interval_of(shape, time, importance, np.full(500, worth), BOUNDS)
        assert (count / intervals).sum() * DAY == pytest.approx(a_day, rel=0.01)
    floor = (count / BOUNDS[1]).sum() * DAY  # each page once in the longest interval
    worth = multiplier(shape, time, importance, count, np.ones(500), floor / 2 / DAY, BOUNDS)
    assert (interval_of(shape, time, importance, np.full(500, worth), BOUNDS) > BOUNDS[1] / 2).all()


def test_a_page_that_changes_too_often_waits_longest_and_one_of_unknown_rate_does_not() -> None:
    rates = np.array([0.01, 0.1, 1.0, 100.0])
    worth = np.full(4, DAY / 5)
    found = interval_of(np.full(4, 1e4), 1e4 * DAY / rates, np.ones(4), worth, BOUNDS) / DAY
    assert found[3] == pytest.approx(90) and found[1] < found[0] and found[2] < 5
    vague = interval_of(one(0.5), one(0.5 * DAY / 100), one(1.0), worth[:1], BOUNDS) / DAY
    assert vague[0] < 90


# -- the schedule ----------------------------------------------------------------------------------


def visited(
    rules: FreshnessFetchSchedule, datum: CrawlDatum, days: float, state: int
) -> CrawlDatum:
    """The entry after a visit `days` after NOW, as updatedb writes it."""
    after = datum.copy()
    rules.set_fetch_schedule(
        URL, after, datum.fetch_time, 0, NOW + round(days * DAY * 1000), 0, state
    )
    return after


def updated(
    rules: FreshnessFetchSchedule, table: pl.DataFrame, now: int, states: list[int]
) -> pl.DataFrame:
    """The table after a visit to all its pages."""
    nothing, time = (pl.Series([value] * len(table), dtype=pl.Int64) for value in (0, now))
    kinds = pl.Series(states, dtype=pl.Int8)
    return rules.set_fetch_schedule_columns(table, nothing, nothing, time, nothing, kinds)


@pytest.mark.slow
@settings(max_examples=examples(30))
@given(st.data())
def test_a_table_gives_the_bytes_of_single_records(data: st.DataObject) -> None:
    """Histories of several pages, round by round: listed by generate, visited, written back."""
    scores = data.draw(st.lists(st.sampled_from([0.0, 0.5, 3.0, 1e9]), min_size=1, max_size=5))
    states = st.lists(st.integers(0, 2), min_size=len(scores), max_size=len(scores))
    the_same_both_ways(
        scores, [(data.draw(st.integers(1, 30 * DAY)), data.draw(states)) for _ in range(3)]
    )


def test_a_table_gives_the_bytes_of_two_records() -> None:
    the_same_both_ways([0.5, 3.0], [(12 * DAY, [STATUS_MODIFIED, STATUS_NOTMODIFIED])])


def the_same_both_ways(scores: list[float], rounds: list[tuple[int, list[int]]]) -> None:
    """Each round: the seconds before it, and what its visits find."""
    rules = schedule(db__fetch__schedule__fresh__budget="2")
    entries = [(f"http://{n}.example/", held(score=score)) for n, score in enumerate(scores)]
    table = to_frame(entries)
    now = NOW
    for waited, states in rounds:
        now += waited * 1000
        asked = rules.surveyed([table].__iter__, now)
        assert asked.worth != "-"
        table, due = asked.should_fetch_columns(table, now)
        dues = [asked.should_fetch(url, datum, now) for url, datum in entries]
        assert list(due) == dues and list(records(table)) == entries
        table = updated(rules, table, now, states)
        for (url, datum), state in zip(entries, states, strict=True):
            rules.set_fetch_schedule(url, datum, 0, 0, now, 0, state)
        assert [one.to_bytes() for _, one in records(table)] == [
            one.to_bytes() for _, one in entries
        ]
        last = rules.calculate_last_fetch_time_columns(table)
        assert (last == now).all() and (table["fetch_interval"] <= rules.max_interval).all()


def test_more_requests_shorter_intervals_and_none_set_means_those_of_the_default() -> None:
    table = to_frame((f"{URL}{n}", held(told(0.1), ago=30)) for n in range(30))

    def intervals(rules: FreshnessFetchSchedule) -> NDArray[np.float64]:
        listed, due = rules.surveyed(lambda: [table], NOW).should_fetch_columns(table, NOW)
        assert due.all()
        after = updated(rules, listed, NOW, [STATUS_NOTMODIFIED] * 30)
        return after["fetch_interval"].to_numpy() / DAY

    few, many = (
        schedule(db__fetch__schedule__fresh__budget="3"),
        schedule(db__fetch__schedule__fresh__budget="6"),
    )
    assert intervals(few).mean() == pytest.approx(10, rel=0.25)
    assert intervals(many).mean() < 0.6 * intervals(few).mean()
    default = schedule(db__fetch__interval__default=str(10 * DAY))
    assert (intervals(default) == intervals(few)).all()


def test_generate_decides_by_the_multiplier_of_today() -> None:
    """Pages that are due by their fetch time wait when there are more pages, and the other way;
    but those that were given up keep their dates.
    """
    rules = schedule(db__fetch__schedule__fresh__budget="3")
    late, early = held(told(0.1), days=6, ago=7), held(told(0.1), days=20, ago=15)
    others = [held(told(0.1), ago=1) for _ in range(58)]
    some = to_frame((f"{URL}{n}", one) for n, one in enumerate([late, early, *others]))
    crowded, due = rules.surveyed(lambda: [some], NOW).should_fetch_columns(some, NOW)
    assert not due[0] and crowded["fetch_time"][0] > NOW
    assert (
        rules.calculate_last_fetch_time_columns(crowded)
        == rules.calculate_last_fetch_time_columns(some)
    ).all()
    alone, due = rules.surveyed(lambda: [some[:10]], NOW).should_fetch_columns(some[:10], NOW)
    assert due[:2].all() and not due[2:].any()
    given_up = to_frame([(URL, held(told(9), days=90, ago=80)), (f"{URL}b", held(ago=0))])
    assert not rules.surveyed(lambda: [given_up], NOW).should_fetch_columns(given_up, NOW)[1][0]
    listed = PageHistories.of(alone, DAY)
    assert list(listed.last[:2]) == [NOW // 1000 - 7 * DAY, NOW // 1000 - 15 * DAY]
    assert (listed.worth[:2] != "-").all() and listed.worth[2] == "-"


@pytest.mark.parametrize(("ago", "is_due"), [(0.9, False), (1.01, True)])
def test_nothing_is_asked_for_within_the_shortest_interval(ago: float, *, is_due: bool) -> None:
    """Rounds half a day apart take what is due in a quarter of a day, but no page that soon."""
    rules = schedule(
        db__fetch__schedule__fresh__budget="1000",
        db__fetch__schedule__adaptive__min_interval=str(DAY),
    )
    table = to_frame((f"{URL}{n}", held(told(1), days=5, ago=ago)) for n in range(3))
    _, due = rules.surveyed(lambda: [table], NOW).should_fetch_columns(table, NOW)
    assert due.to_list() == [is_due] * 3


def test_what_is_no_copy_goes_by_its_fetch_time() -> None:
    rules = schedule(db__fetch__schedule__fresh__budget="0.1")
    page = held(told(0.1), ago=1)
    entries = [(URL, page)]
    for code in (status.STATUS_DB_GONE, status.STATUS_DB_REDIR_PERM, status.STATUS_DB_UNFETCHED):
        for days in (0.5, 2):
            other = held(days=days)
            other.status = code
            entries.append((f"{URL}{code}{days}", other))
    table = to_frame(entries)
    _, due = rules.surveyed(lambda: [table], NOW).should_fetch_columns(table, NOW)
    assert due.to_list() == [False, True, False, True, False, True, False]
    assert rules.surveyed(lambda: [table[1:]], NOW).worth == "-"  # nothing to keep fresh


def test_a_redirect_keeps_its_interval_and_tells_nothing() -> None:
    before = held(told(0.1, worth="1.000000e+04"))
    before.status = status.STATUS_FETCH_REDIR_TEMP
    after = visited(schedule(), before, 1, STATUS_UNKNOWN)
    assert after.fetch_interval == before.fetch_interval
    assert after.metadata == before.metadata


def test_a_fixed_interval_stays_and_is_paid_from_the_budget() -> None:
    fixed = held(told(0.1))
    fixed.metadata[Text("fixedInterval")] = FloatWritable(0.5 * DAY)
    after = visited(schedule(), fixed, 0, STATUS_MODIFIED)
    assert after.fetch_interval == DAY // 2 and "41 21 " in str(after.metadata[Text(KEY)])
    pages = [(f"{URL}{n}", held(told(0.1))) for n in range(10)]
    rules = schedule(db__fetch__schedule__fresh__budget="3")
    alone = rules.surveyed(lambda: [to_frame(pages)], NOW)
    beside = rules.surveyed(lambda: [to_frame([*pages, (URL, fixed)])], NOW)
    assert float(beside.worth) > float(alone.worth)


def test_a_page_found_again_tells_of_the_time_since_its_last_visit() -> None:
    rules = schedule()
    steady = visited(rules, held(f"{NOW // 1000} 3 1 1000000 {10 * DAY} -"), 20, STATUS_NOTMODIFIED)
    kept = memory(1, 10 * DAY, 20 * DAY, changed=False)
    time = round((10 * kept + 20) * DAY)
    assert str(steady.metadata[Text(KEY)]) == (
        f"{NOW // 1000 + 20 * DAY} 4 1 {round(kept * 1e6)} {time} -"
    )
    assert steady.fetch_interval == 10 * DAY  # no multiplier came with the list


def test_a_clock_that_is_set_tells_of_no_more_than_the_longest_interval() -> None:
    """A page that stayed as it was for a minute, which looked like 40 days, was given up."""
    rules = schedule(db__fetch__interval__max="300")
    before = held(f"{NOW // 1000} 6 3 3000000 360 -")
    told = [visited(rules, before, days, STATUS_NOTMODIFIED) for days in (300 / DAY, 40)]
    known = [PageHistories.of(to_frame([(URL, each)]), DAY) for each in told]
    assert known[0].time[0] == known[1].time[0]
    assert known[0].shape[0] / known[0].time[0] > 1 / 300


def test_last_modified_says_when_a_page_changed() -> None:
    """By the validators that the copy came with, or the modified time of a protocol."""
    before = held(f"{NOW // 1000} 0 0 1000000 {10 * DAY} -")
    guessed = visited(schedule(), before, 20, STATUS_MODIFIED)
    before.metadata[Text("_validators_")] = Text(
        f'{"-" * 24} {1:010} "e" Wed, 03 Feb 2027 08:00:00 GMT'
    )
    dated = visited(schedule(), before, 20, STATUS_MODIFIED)
    known = [PageHistories.of(to_frame([(URL, each)]), DAY) for each in (guessed, dated)]
    kept = memory(1, 10 * DAY, 20 * DAY, changed=True)
    assert known[1].shape[0] == pytest.approx(1 + kept)
    assert known[1].time[0] == pytest.approx((10 * kept + 1) * DAY)
    assert known[0].time[0] > known[1].time[0]
    older = replace(before, metadata=MapWritable(before.metadata))
    older.metadata[Text("_validators_")] = Text(
        f"{'-' * 24} {1:010} - Thu, 01 Jan 2026 00:00:00 GMT"
    )
    assert (
        visited(schedule(), older, 20, STATUS_MODIFIED).metadata[Text(KEY)]
        == guessed.metadata[Text(KEY)]
    )


def test_a_sitemap_speaks_of_a_new_page() -> None:
    """changefreq is the interval of its new entry, lastmod its modified time."""
    table = []
    for interval, modified in ((DAY, 0), (30 * DAY, 0), (30 * DAY, NOW - 300 * DAY * 1000)):
        new = CrawlDatum(status.STATUS_FETCH_SUCCESS, interval, 1.0, NOW)
        schedule().set_fetch_schedule(URL, new, 0, 0, NOW, modified, STATUS_UNKNOWN)
        known = PageHistories.of(to_frame([(URL, new)]), DAY)
        table.append(float((known.shape / known.time)[0] * DAY))
    assert table == pytest.approx([1.0, 1 / 30, 0.5 / (15 + 300)])


@pytest.mark.parametrize("text", ["", "x", "1 2 3", "1 2 3 0 0 - ", "9" * 40 + " 1 1 1 1 -"])
def test_damaged_metadata_is_as_none(text: str) -> None:
    rules = schedule()
    page = held(text)
    known = PageHistories.of(to_frame([(URL, page)]), DAY)
    assert (known.visits[0], known.shape[0], known.time[0]) == (0, 0.5, 5 * DAY)
    assert visited(rules, page, 1, STATUS_MODIFIED).metadata[Text(KEY)] != Text(text)


def test_pages_that_came_together_do_not_come_back_together() -> None:
    rules = schedule(db__fetch__schedule__fresh__budget="100")
    table = to_frame((f"http://{n}.example/", held(ago=0)) for n in range(1000))
    waiting, due = rules.surveyed(lambda: [table], NOW).should_fetch_columns(table, NOW)
    days = ((waiting["fetch_time"] - NOW) / (1000 * DAY)).floor().cast(pl.Int64)
    assert not due.any()
    a_day = np.bincount(days)[5:15]
    assert len(a_day) == 10 and a_day.min() > 60 and a_day.max() < 140  # of 100


# -- there and back -------------------------------------------------------------------------------


def test_a_crawl_comes_from_another_schedule_and_goes_back() -> None:
    """What another schedule found out is where this one begins; what it leaves is Nutch's."""
    rules = schedule(db__fetch__schedule__fresh__budget="1")
    often, seldom = held(days=0.5, ago=3), held(days=80, ago=3)
    asked = rules.surveyed(lambda: [to_frame([(URL, often), (URL + "b", seldom)])], NOW)
    assert asked.should_fetch(URL, often, NOW) and not asked.should_fetch(URL, seldom, NOW)
    after = visited(rules, often, 0, STATUS_NOTMODIFIED)
    default = DefaultFetchSchedule(Configuration.load([]))
    assert default.calculate_last_fetch_time(after) == NOW
    again = after.copy()
    again.fetch_time = NOW + 40 * DAY * 1000
    default.set_fetch_schedule(
        URL, again, after.fetch_time, 0, again.fetch_time, 0, STATUS_MODIFIED
    )
    assert again.fetch_interval == after.fetch_interval and again.metadata == after.metadata
    # back here, the time since the last visit counts, not since the last that this one saw
    asked.should_fetch(URL, again, again.fetch_time + DAY)
    last = PageHistories.of(to_frame([(URL, again)]), DAY).last[0]
    assert last == NOW // 1000 + 40 * DAY


@pytest.mark.parametrize("days", few([1, 12]))
def test_the_multiplier_goes_with_the_list_from_generate_to_updatedb(
    tmp_path: Path, days: int
) -> None:
    """In rounds of jobs, whose fetches find each page the same; Nutch's schedules look at none of
    it. The number of part files makes no difference.
    """
    entries = [(f"{URL}{n}", held(score=1.0 + n % 3, ago=n / 4)) for n in range(40)]
    found = []
    for parts in (1, 3)[: 1 + (days > 1)]:
        folder = tmp_path / str(parts)
        write_db(folder / "crawldb", entries, parts=parts)
        settings = {
            "db.fetch.schedule.class": "minutch.cycle.crawldb.fresh:FreshnessFetchSchedule",
            "db.fetch.schedule.fresh.budget": "4",
            "plugin.includes": "scoring-opic",
            "mapreduce.job.reduces": str(parts),
        }
        conf = Configuration.load([], overrides=settings)
        asked = 0
        for day in range(days):
            clock = FakeClock(NOW + day * DAY * 1000)
            before = set(folder.glob("segments/*"))
            jobs.run("generate", folder / "crawldb", folder / "segments", conf=conf, clock=clock)
            for path in set(folder.glob("segments/*")) - before:
                listed = Segment(path)
                with (
                    listed.writing(["crawl_fetch"]) as place,
                    part_writer(place, "crawl_fetch", 0) as add,
                ):
                    for url, datum in sorted(listed.records("crawl_generate")):
                        assert isinstance(datum, CrawlDatum) and Text(KEY) in datum.metadata
                        datum.status = status.STATUS_FETCH_NOTMODIFIED
                        datum.fetch_time = clock.now()
                        add(url, datum)
                        asked += 1
                jobs.run("updatedb", folder / "crawldb", path, conf=conf, clock=clock)
        after = read_db(folder / "crawldb")
        found.append({url: datum.to_bytes() for url, datum in after.items()})
        told_of = [str(datum.metadata.get(Text(KEY), "")).split() for datum in after.values()]
        assert sum(int(words[1]) for words in told_of if words) == asked
        assert asked and (days == 1 or 0.7 * 4 * days < asked < 1.3 * 4 * days)
        assert all(words[5] != "-" for words in told_of if words)
    assert found[0] == found[-1]
