"""What is due, and why the rest is not."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import polars as pl
import pytest

from minutch.conf import Configuration
from minutch.cycle.crawldb.schedule import DefaultFetchSchedule
from minutch.cycle.fetchlist import due as reasons
from minutch.cycle.fetchlist.due import Conditions, Due, Later, due, until, worth_it_at
from minutch.errors import ConfigError, PluginError
from minutch.expressions import compile_expression
from minutch.hadoop.formats.writables import LongWritable, MapWritable, Text
from minutch.plugin.chains import ScoringFilters, URLFilters
from minutch.records.crawldatum import (
    STATUS_DB_FETCHED,
    STATUS_DB_GONE,
    STATUS_DB_UNFETCHED,
    CrawlDatum,
)
from minutch.records.crawldatum_columns import to_frame

NOW = 1_000_000_000_000
DAY = 86_400_000
CONF = Configuration.load([], overrides={"plugin.includes": "scoring-opic|urlfilter-regex"})


def entries(*data: CrawlDatum) -> pl.DataFrame:
    return to_frame((f"http://h{i}.org/", datum) for i, datum in enumerate(data))


def find(
    frame: pl.DataFrame,
    expression: str | None = None,
    filters: bool = False,
    busy: dict[str, int] | None = None,
    **properties: str,
) -> Due:
    conf = CONF.with_values({name.replace("_", "."): value for name, value in properties.items()})
    compiled = None if expression is None else compile_expression(expression)
    conditions = Conditions.from_conf(conf, now=NOW, expression=compiled, busy_hosts=busy or {})
    return due(
        frame,
        conditions,
        DefaultFetchSchedule(conf),
        ScoringFilters(conf),
        URLFilters(conf) if filters else None,
    )


def test_busy_hosts_wait_for_their_time() -> None:
    """In whatever spelling; the first of them to be free says when something is due."""
    urls = ["http://h0.org/1", "http://H1.org./", "http://h2.org/", "http://h0.org/2", "file:/x"]
    frame = to_frame((url, page()) for url in urls)
    found = find(frame, busy={"h0.org": NOW + 9000, "h1.org": NOW + 5000, "h2.org": NOW})
    assert found.entries["key"].to_list() == [b"http://h2.org/", b"file:/x"]
    assert found.counters["host_busy_total"] == 3 and found.next_due == NOW + 5000


def page(**fields: object) -> CrawlDatum:
    defaults = {
        "status": STATUS_DB_UNFETCHED,
        "fetch_time": NOW,
        "fetch_interval": 3600,
        "score": 1.0,
    }
    return CrawlDatum(**{**defaults, **fields})  # type: ignore[arg-type]


def urls(found: Due) -> list[str]:
    return [key.decode() for key in found.entries["key"]]


def test_what_is_due_and_when_the_next_will_be() -> None:
    found = find(
        entries(
            page(),
            page(fetch_time=NOW + 2 * DAY),
            page(fetch_time=NOW + DAY),
            page(fetch_time=NOW - 1),
        )
    )
    assert urls(found) == ["http://h0.org/", "http://h3.org/"]
    assert found.counters[reasons.NOT_DUE] == 2
    assert found.next_due == NOW + DAY
    assert find(entries(page())).next_due is None


def test_a_fetch_time_beyond_all_intervals_is_brought_forward() -> None:
    found = find(entries(page(fetch_time=NOW + 400 * DAY, fetch_interval=400 * 86_400)))
    assert found.entries["fetch_time"].to_list() == [NOW]
    assert found.entries["fetch_interval"].to_list() == [
        6_998_400
    ]  # nine tenths of db.fetch.interval.max


def test_pages_in_an_earlier_list_wait() -> None:
    def listed(ago: int) -> CrawlDatum:
        return page(metadata=MapWritable({Text("_ngt_"): LongWritable(NOW - ago)}))

    week = 7 * DAY
    found = find(entries(listed(week - 1), listed(week), page()))
    assert urls(found) == ["http://h1.org/", "http://h2.org/"]
    assert found.counters[reasons.WAITING] == 1
    assert urls(find(entries(listed(5)), crawl_gen_delay="5")) == ["http://h0.org/"]


def test_filters_count_before_everything_else() -> None:
    frame = to_frame([("http://a/x.gif", page(fetch_time=NOW + DAY)), ("http://a/x", page())])
    found = find(frame, filters=True)
    assert urls(found) == ["http://a/x"]
    assert (found.counters[reasons.FILTERED], found.counters[reasons.NOT_DUE]) == (1, 0)


def test_expression_status_score_and_interval() -> None:
    frame = entries(
        page(score=0.2), page(status=STATUS_DB_FETCHED), page(fetch_interval=7200), page(score=3.0)
    )
    assert urls(find(frame, "score > 0.5 && interval < 7200")) == [
        "http://h1.org/",
        "http://h3.org/",
    ]
    assert urls(find(frame, generate_restrict_status="DB_fetched")) == ["http://h1.org/"]
    assert find(frame, generate_min_score="0.5").counters[reasons.LOW_SCORE] == 1
    assert find(frame, generate_min_interval="3600").counters[reasons.INTERVAL] == 1


def test_every_entry_counts_once() -> None:
    frame = entries(
        page(fetch_time=NOW + DAY, score=0.0),
        page(score=0.1),
        page(status=STATUS_DB_GONE, score=0.1),
        page(score=5.0),
    )
    found = find(
        frame, "score < 4", generate_restrict_status="db_unfetched", generate_min_score="1"
    )
    assert len(found.entries) + sum(found.counters.values()) == 4
    assert found.counters[reasons.EXPRESSION] == 1
    assert found.counters[reasons.STATUS] == 1


def test_unknown_status() -> None:
    with pytest.raises(ConfigError, match=r"generate.restrict.status .* found 'db_nothing'"):
        find(entries(page()), generate_restrict_status="db_nothing")


def test_a_scoring_filter_that_fails_leaves_the_first_value() -> None:
    class Moody:
        def generator_sort_value_columns(self, frame: pl.DataFrame, init: pl.Series) -> pl.Series:
            raise PluginError("not today")

        def generator_sort_value(self, url: str, datum: CrawlDatum, init: float) -> float:
            if "h0" in url:
                raise PluginError("not this one")
            return 7.0

    conditions = Conditions.from_conf(CONF, now=NOW, expression=None)
    found = due(entries(page(), page()), conditions, DefaultFetchSchedule(CONF), Moody(), None)  # type: ignore[arg-type]
    assert found.entries["sort"].to_list() == [1.0, 7.0]


# -- whether a list pays ---------------------------------------------------------------------------


def old(since: float, interval: int = 3600, **fields: object) -> CrawlDatum:
    """A page that was fetched, and has been due for so many seconds."""
    more = {"status": STATUS_DB_FETCHED, "fetch_interval": interval, **fields}
    return page(fetch_time=NOW - round(since * 1000), **more)


def worth_it(*pages: CrawlDatum, least: int = 3) -> float | None:
    """Seconds until a list pays, in two stretches of a CrawlDb."""
    conf = replace(Conditions.from_conf(CONF, now=NOW, expression=None), least=least, late=0.1)
    parts = [
        due(entries(*part), conf, DefaultFetchSchedule(CONF), ScoringFilters(CONF), None)
        for part in (pages[::2], pages[1::2])
    ]
    later = Later.together((part.later for part in parts), least)
    when = worth_it_at([part.entries for part in parts], later, least, 0.1)
    return None if when is None else (when - NOW) / 1000


def test_a_list_pays_when_it_is_long_enough() -> None:
    assert worth_it(old(1), old(-30), old(-20)) == 30
    assert worth_it(old(-50), old(-30), old(-40), old(-60)) == 50
    assert worth_it(old(-50), least=1) == 50


def test_a_list_pays_when_a_page_would_be_late() -> None:
    assert worth_it(old(1), old(100), old(-9999)) == 260
    assert worth_it(old(-9999), old(1), old(1, interval=20)) == 1
    assert worth_it(old(-9999), old(-7, interval=20), old(-9998)) == 9


def test_a_page_that_was_never_asked_for_does_not_wait() -> None:
    new = {"status": STATUS_DB_UNFETCHED}
    assert worth_it(old(1), old(5, **new)) == -5
    assert worth_it(old(1), old(-5, **new)) == 5
    assert worth_it(old(1), old(-5, retries=1, **new)) == 355 + 4
    assert worth_it() is None


@pytest.mark.slow
def test_over_hundreds_of_lists_each_pays_and_no_page_is_later_than_it_may_be() -> None:
    """Pages with intervals from a minute to a day, looked at whenever a list is said to pay."""
    random = Random(1)
    waits = [random.choice([60, 600, 3600, 86_400]) * 1000 for _ in range(400)]
    times, now, lists = [random.randrange(wait) for wait in waits], 0, 0
    latest = 0.0
    while lists < 300:
        is_due = [time <= now for time in times]
        table = pl.DataFrame(
            {
                "status": STATUS_DB_FETCHED,
                "retries": 0,
                "fetch_time": times,
                "fetch_interval": [wait // 1000 for wait in waits],
            }
        )
        rest = table.filter(~pl.Series(is_due))
        ends = rest.select(until(0.1)).to_series()
        later = Later(rest["fetch_time"].sort(), int(ends.min()))  # type: ignore[arg-type]
        when = worth_it_at([table.filter(is_due)], later, 50, 0.1)
        assert when is not None
        if sum(is_due) < 50 and when > now:
            now = when
            continue
        lists += 1
        is_late = [now - time >= wait * 0.1 for time, wait in zip(times, waits, strict=True)]
        assert sum(is_due) >= 50 or any(is_late)
        for i, is_listed in enumerate(is_due):
            if is_listed:
                latest = max(latest, (now - times[i]) / waits[i])
                times[i] = now + waits[i]
    assert latest <= 0.101
