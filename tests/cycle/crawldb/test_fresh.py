"""FreshnessFetchSchedule: where its budget goes."""

from __future__ import annotations

from dataclasses import replace
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
from minutch.cycle.crawldb.fresh import (
    KEY,
    FreshnessFetchSchedule,
    PageHistories,
)
from minutch.cycle.crawldb.schedule import (
    STATUS_MODIFIED,
    STATUS_NOTMODIFIED,
    STATUS_UNKNOWN,
    DefaultFetchSchedule,
)
from minutch.cycle.segment.store import Segment, part_writer
from minutch.hadoop.formats.writables import FloatWritable, MapWritable, Text
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import records, to_frame
from tests.cycle.crawldb.test_habits import memory
from tests.support.crawldbs import read_db, write_db
from tests.support.examples import examples, few

DAY = 86_400
NOW = 1_800_000_000_000
URL = "http://a.example/"


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


def test_a_page_that_is_given_up_stays_so_until_it_is_found_unchanged() -> None:
    """Whatever a request has to be worth by then; what is asked for is a copy that is no older."""
    rules = schedule()
    page = held(told(20, worth=f"{DAY:.6e}"))
    found: list[tuple[bool, float]] = []
    for worth, state in ((1, 1), (1e-6, 1), (1e-6, 2), (1e-6, 1)):
        words = str(page.metadata[Text(KEY)]).split()
        page.metadata[Text(KEY)] = Text(" ".join([*words[:5], f"{worth * DAY:.6e}", *words[6:]]))
        page = visited(rules, page, len(found) + 5, (0, STATUS_MODIFIED, STATUS_NOTMODIFIED)[state])
        found.append((str(page.metadata[Text(KEY)]).endswith(" x"), page.fetch_interval / DAY))
    assert [given_up for given_up, _ in found] == [True, True, False, False]
    assert found[0][1] == pytest.approx(4, rel=0.05)


@pytest.mark.parametrize("scale", [1e-3, 7.0, 1e3])
def test_scores_of_any_scale_give_the_same_plan(scale: float) -> None:
    """At generate, and at the updatedb of what was listed: the age of a copy counted for nothing
    where scores were large, and for everything where they were small.
    """
    rules = schedule(db__fetch__schedule__fresh__budget="3")
    plans = []
    for by in (1.0, scale):
        pages = [
            (f"{URL}{n}", held(told(rate), score=by * score, days=5, ago=2))
            for n, (rate, score) in enumerate(
                (rate, score) for rate in (0.01, 0.1, 30.0) for score in (0.4, 1.0, 5.0)
            )
        ]
        table = to_frame(pages)
        asked = rules.surveyed(lambda table=table: [table], NOW)  # type: ignore[misc]
        listed, due = asked.should_fetch_columns(table, NOW)
        assert 0 < due.sum() < len(pages)
        plans.append([*due, *listed["fetch_interval"]])
        for url, page in pages:
            if asked.should_fetch(url, page, NOW):
                after = visited(rules, page, 0, STATUS_MODIFIED)
                plans[-1].append(after.fetch_interval)
    assert plans[1] == pytest.approx(plans[0], rel=0.02)


@pytest.mark.parametrize("period", [1, 7])
def test_a_page_that_keeps_time_has_a_date_of_its_own(period: int) -> None:
    """generate leaves it, whatever the multiplier is, and pays it from the budget."""
    phases = ["f" * 24] * 2
    phases[period == 7] = "0" + "f" * 23  # changes at the beginning of a day or a week
    clock = f" {''.join(phases)} {'130 0' if period == 1 else '0 130'}"
    rules = schedule(db__fetch__schedule__fresh__budget="3")
    week = 7 * DAY
    begin = NOW // 1000 // week * week
    page = held(f"{begin - 60} 40 10 9000000 {9 * period * DAY} {DAY / 100:.6e}{clock}")
    after = visited(rules, page, 0, STATUS_MODIFIED)
    assert after.fetch_time // 1000 % (period * DAY) <= 1.1 * period * DAY / 24
    beside = [(f"{URL}{n}", held(told(0.1))) for n in range(30)]
    table = to_frame([(URL, after), *beside])
    for now in (after.fetch_time - 1000, after.fetch_time + 1000):
        _, due = rules.surveyed(lambda: [table], now).should_fetch_columns(table, now)
        assert due[0] == (now > after.fetch_time)
    worth = [
        float(rules.surveyed(lambda rows=rows: [to_frame(rows)], NOW).worth)  # type: ignore[misc]
        for rows in (beside, [(URL, after), *beside])
    ]
    assert worth[0] < worth[1]


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


def test_the_time_of_our_own_fetch_is_no_date_of_a_change() -> None:
    """Nutch notes it as the modified time where a page has none; visits count in whole seconds, so
    that it seemed to be after the last one: pages without a date were taken for slow.
    """
    before = held(f"{NOW // 1000} 0 0 1000000 {10 * DAY} -")
    texts = []
    for modified in (0, NOW, NOW + 999):
        after = before.copy()
        at = NOW + 20 * DAY * 1000 + 999
        schedule().set_fetch_schedule(URL, after, NOW, modified, at, modified, STATUS_MODIFIED)
        texts.append(after.metadata[Text(KEY)])
    assert texts == texts[:1] * 3


def test_a_page_without_a_score_counts_as_a_seed_does() -> None:
    """Where no plugin gives scores, pages that were found by links have 0."""
    intervals = [
        visited(schedule(), held(told(0.1, worth=f"{DAY:.6e}"), score=score), 1, 2).fetch_interval
        for score in (0.0, float("nan"), 1.0, 0.2)
    ]
    assert intervals[0] == intervals[1] == intervals[2] < intervals[3]


def test_a_sitemap_speaks_of_a_new_page() -> None:
    """changefreq is the interval of its new entry, lastmod its modified time. That of years ago
    says no more than that it is four times as steady as others.
    """
    table = []
    days = (0, NOW // 1000 - 3 * DAY, NOW // 1000 - 3000 * DAY)
    for interval, modified in ((DAY, 0), *((30 * DAY, second * 1000) for second in days)):
        new = CrawlDatum(status.STATUS_FETCH_SUCCESS, interval, 1.0, NOW)
        schedule().set_fetch_schedule(URL, new, 0, 0, NOW, modified, STATUS_UNKNOWN)
        known = PageHistories.of(to_frame([(URL, new)]), DAY)
        table.append(float((known.shape / known.time)[0] * DAY))
    assert table == pytest.approx([1.0, 1 / 9, 0.2 / (1.8 + 3), 1 / 36])


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
