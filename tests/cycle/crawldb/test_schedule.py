"""Fetch schedules: how they are found, and that the two shapes of each method agree."""

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.conf import Configuration
from minutch.cycle.crawldb.adaptive import (
    AdaptiveFetchSchedule,
    MimeAdaptiveFetchSchedule,
    clean_mime_type,
)
from minutch.cycle.crawldb.fresh import FreshnessFetchSchedule
from minutch.cycle.crawldb.schedule import (
    STATUS_MODIFIED,
    STATUS_NOTMODIFIED,
    AbstractFetchSchedule,
    DefaultFetchSchedule,
    fetch_schedule,
    round_int,
)
from minutch.errors import ConfigError
from minutch.hadoop.formats.writables import FloatWritable, MapWritable, Text
from minutch.records import crawldatum_columns
from minutch.records.crawldatum import (
    STATUS_DB_FETCHED,
    STATUS_DB_UNFETCHED,
    CrawlDatum,
    java_round,
)

NAME = "db.fetch.schedule.class"


def configured(**settings: str) -> Configuration:
    return Configuration.load([]).with_values(
        {name.replace("__", "."): value for name, value in settings.items()}
    )


class Weekly(DefaultFetchSchedule):
    """A user's schedule, written for one record at a time."""

    def set_fetch_schedule(self, url, datum, *times):  # type: ignore[no-untyped-def]
        datum.fetch_interval = 7 * 86400
        datum.fetch_time = times[2] + datum.fetch_interval * 1000

    def should_fetch(self, url: str, datum: CrawlDatum, now: int) -> bool:
        return url.endswith("/due")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("org.apache.nutch.crawl.DefaultFetchSchedule", DefaultFetchSchedule),
        ("org.apache.nutch.crawl.AdaptiveFetchSchedule", AdaptiveFetchSchedule),
        ("org.apache.nutch.crawl.MimeAdaptiveFetchSchedule", MimeAdaptiveFetchSchedule),
        ("minutch.cycle.crawldb.adaptive:AdaptiveFetchSchedule", AdaptiveFetchSchedule),
        ("minutch.cycle.crawldb.adaptive.AdaptiveFetchSchedule", AdaptiveFetchSchedule),
        (" minutch.cycle.crawldb.schedule:DefaultFetchSchedule ", DefaultFetchSchedule),
    ],
)
def test_found_by_name(name: str, expected: type[AbstractFetchSchedule]) -> None:
    assert type(fetch_schedule(Configuration.load([], overrides={NAME: name}))) is expected


def test_default() -> None:
    assert type(fetch_schedule(Configuration())) is DefaultFetchSchedule


@pytest.mark.parametrize(
    "name", ["org.example.Unknown", "os:path", "nowhere", "minutch.conf:Configuration"]
)
def test_unknown_class(name: str) -> None:
    with pytest.raises(ConfigError, match=NAME):
        fetch_schedule(Configuration.load([], overrides={NAME: name}))


def test_a_schedule_for_single_records_works_on_tables() -> None:
    weekly = Weekly(configured())
    frame = crawldatum_columns.to_frame(
        [("http://a/", CrawlDatum(STATUS_DB_FETCHED, 5, 1.0)), ("http://a/due", CrawlDatum())]
    )
    times = [pl.Series([0, 0], dtype=pl.Int64)] * 2 + [pl.Series([1000, 2000]), pl.Series([0, 0])]
    changed = weekly.set_fetch_schedule_columns(frame, *times, pl.Series([STATUS_MODIFIED] * 2))
    assert changed["fetch_interval"].to_list() == [604800, 604800]
    assert changed["fetch_time"].to_list() == [604801000, 604802000]
    _, due = weekly.should_fetch_columns(frame, 0)
    assert due.to_list() == [False, True]


def test_a_subclass_keeps_the_table_methods_that_it_does_not_replace() -> None:
    assert (
        Weekly.set_page_gone_schedule_columns
        is AbstractFetchSchedule.set_page_gone_schedule_columns
    )
    assert (
        MimeAdaptiveFetchSchedule.set_fetch_schedule_columns
        is AdaptiveFetchSchedule.set_fetch_schedule_columns
    )


@pytest.mark.parametrize(
    "kind", [DefaultFetchSchedule, AdaptiveFetchSchedule, MimeAdaptiveFetchSchedule, Weekly]
)
def test_a_page_that_is_gone_has_an_interval(kind: type[AbstractFetchSchedule]) -> None:
    """Entries of sitemaps have none (SitemapProcessor sets 0): half as long again as the default,
    which DefaultFetchSchedule.setFetchSchedule puts in its place; 0 × 1.5 would be due for ever.
    """
    schedule = kind(
        configured(db__fetch__interval__default="1000", db__fetch__interval__max="5000")
    )
    data = [CrawlDatum(STATUS_DB_UNFETCHED, interval, 1.0) for interval in (0, 1, 100, 4000)]
    frame = crawldatum_columns.to_frame([("http://a/", datum) for datum in data])
    times = [pl.Series([0] * 4, dtype=pl.Int64)] * 2 + [pl.Series([7] * 4, dtype=pl.Int64)]
    gone = schedule.set_page_gone_schedule_columns(frame, *times)
    for datum in data:
        schedule.set_page_gone_schedule("http://a/", datum, 0, 0, 7)
    assert [datum.fetch_interval for datum in data] == [1500, 2, 150, 4500]
    assert [datum.fetch_time for datum in data] == [1500007, 2007, 150007, 4500007]
    assert gone["fetch_interval"].to_list() == [1500, 2, 150, 4500]
    assert gone["fetch_time"].to_list() == [1500007, 2007, 150007, 4500007]


def test_a_new_page_is_due_at_once() -> None:
    schedule = DefaultFetchSchedule(configured(db__fetch__interval__default="77"))
    datum = CrawlDatum(retries=3)
    schedule.initialize_schedule("http://a/", datum, 5)
    assert (datum.fetch_time, datum.fetch_interval, datum.retries) == (5, 77, 0)
    frame = schedule.initialize_schedule_columns(
        crawldatum_columns.to_frame([("http://a/", CrawlDatum(retries=3))]), 5
    )
    ((_, same),) = crawldatum_columns.records(frame)
    assert same == datum


def test_forced_at_once() -> None:
    schedule = DefaultFetchSchedule(configured(db__fetch__interval__max="1000"))
    datum = CrawlDatum(STATUS_DB_FETCHED, 2000, 1.0, 10, 20, 3, b"sig")
    frame = crawldatum_columns.to_frame([("http://a/", datum.copy())])
    schedule.force_refetch("http://a/", datum, True, 99)
    assert datum == CrawlDatum(STATUS_DB_UNFETCHED, 900, 1.0, 99, 0, 0, None)
    ((_, same),) = crawldatum_columns.records(schedule.force_refetch_columns(frame, True, 99))
    assert same == datum


def test_retries_wrap_like_a_signed_byte() -> None:
    schedule = DefaultFetchSchedule(configured())
    datum = CrawlDatum(retries=127)
    frame = crawldatum_columns.to_frame([("http://a/", datum.copy())])
    schedule.set_page_retry_schedule("http://a/", datum, 0, 0, 0)
    zero = pl.Series([0], dtype=pl.Int64)
    assert (
        datum.retries
        == schedule.set_page_retry_schedule_columns(frame, zero, zero, zero)["retries"][0]
        == -128
    )


LIMITS = {"db__fetch__schedule__adaptive__min_interval": "300", "db__fetch__interval__max": "9000"}


@pytest.mark.parametrize(
    ("kind", "fixed", "least", "most"),
    [
        (AdaptiveFetchSchedule, False, 300, 3600),
        (MimeAdaptiveFetchSchedule, False, 300, 3600),
    ],
)
def test_a_page_that_never_changes_keeps_its_pause(
    kind: type[AbstractFetchSchedule], fixed: bool, least: int, most: int
) -> None:
    """150 visits, each at the time that the one before set. With sync_delta in Nutch the waits
    shrink to nothing once the page has been the same for max_interval ÷ sync_delta_rate.
    """
    schedule = kind(
        configured(
            db__fetch__schedule__adaptive__max_interval="3600",
            db__fetch__schedule__adaptive__sync_delta_rate="0.2",
            **LIMITS,
        )
    )
    metadata = MapWritable({Text("fixedInterval"): FloatWritable(50000.0)} if fixed else {})
    interval = 50000 if kind is DefaultFetchSchedule else 600
    page = CrawlDatum(STATUS_DB_FETCHED, interval, 1.0, 0, 1, 0, b"s", metadata)
    now, waits = 1_000_000, set()
    for _ in range(150):
        frame = crawldatum_columns.to_frame([("http://a/", page)])
        times = [pl.Series([time], dtype=pl.Int64) for time in (0, 0, now, 1, STATUS_NOTMODIFIED)]
        ((_, same),) = crawldatum_columns.records(
            schedule.set_fetch_schedule_columns(frame, *times)
        )
        plan = schedule.plan("http://a/", page, now, 1, STATUS_NOTMODIFIED)
        schedule.set_fetch_schedule("http://a/", page, 0, 0, now, 1, STATUS_NOTMODIFIED)
        assert same == page and plan.fetch_time == page.fetch_time
        assert not schedule.should_fetch("http://a/", page.copy(), now + 1)
        waits.add((page.fetch_time - now) // 1000)
        now = page.fetch_time
    assert least == min(waits) and max(waits) <= most, sorted(waits)


@pytest.mark.parametrize(
    ("retry", "most", "wait"), [("", "", 86400), ("60", "", 60), ("", "3600", 3600)]
)
def test_a_failed_page_is_due_when_its_retry_is(retry: str, most: str, wait: int) -> None:
    """A longest interval below the pause would make it due at each generate."""
    values = {"db__fetch__retry__interval": retry, "db__fetch__interval__max": most}
    schedule = DefaultFetchSchedule(
        configured(**{n: value for n, value in values.items() if value})
    )
    page = CrawlDatum(STATUS_DB_UNFETCHED, 100, 1.0)
    frame = crawldatum_columns.to_frame([("http://a/", page.copy())])
    times = [pl.Series([value], dtype=pl.Int64) for value in (0, 0, 7000)]
    schedule.set_page_retry_schedule("http://a/", page, 0, 0, 7000)
    ((_, same),) = crawldatum_columns.records(
        schedule.set_page_retry_schedule_columns(frame, *times)
    )
    assert same == page and page.fetch_time == 7000 + wait * 1000
    for now, due in ((7001, False), (page.fetch_time - 1, False), (page.fetch_time, True)):
        frame, mask = schedule.should_fetch_columns(
            crawldatum_columns.to_frame([("http://a/", page)]), now
        )
        assert (schedule.should_fetch("http://a/", page.copy(), now), mask[0]) == (due, due)


@given(st.floats(width=32, allow_nan=True))
def test_rounding_is_that_of_one_record(value: float) -> None:
    assert round_int(pl.Series([value], dtype=pl.Float32).to_numpy())[0] == java_round(value)


data = st.builds(
    CrawlDatum,
    st.integers(1, 9),
    st.one_of(st.integers(0, 2**31 - 1), st.just(0)),
    st.just(1.0),
    st.integers(0, 2**42),
    st.integers(0, 2**42),
    st.integers(-128, 127),
    st.just(b"s"),
    st.one_of(
        st.just(MapWritable()),
        st.floats(0, 2**31, width=32).map(
            lambda f: MapWritable({Text("fixedInterval"): FloatWritable(f)})
        ),
        st.sampled_from(["text/html", "application/pdf; q=1", "x/y"]).map(
            lambda mime: MapWritable({Text("Content-Type"): Text(mime)})
        ),
        st.sampled_from(
            ["9 2 1 700000 86400 1.500000e+04", "9 0 0 500000 86400 -", "", "x 1 2 3 4 5"]
        ).map(lambda told: MapWritable({Text("_fresh_"): Text(told)})),
    ),
)
times = st.one_of(st.just(0), st.integers(0, 2**42))
schedules = st.sampled_from(
    [
        DefaultFetchSchedule,
        AdaptiveFetchSchedule,
        MimeAdaptiveFetchSchedule,
        FreshnessFetchSchedule,
    ]
)
urls = st.sampled_from(["http://www.apache.org/x", "http://example.org/", "no url at all"])


@given(schedules, urls, data, times, times, st.integers(0, 2))
def test_both_shapes_agree(
    cls: type[AbstractFetchSchedule],
    url: str,
    datum: CrawlDatum,
    fetched: int,
    modified: int,
    state: int,
) -> None:
    schedule = cls(configured())
    frame = crawldatum_columns.to_frame([(url, datum)])
    columns = [pl.Series([value], dtype=pl.Int64) for value in (0, 0, fetched, modified, state)]
    ((_, found),) = crawldatum_columns.records(schedule.set_fetch_schedule_columns(frame, *columns))
    schedule.set_fetch_schedule(url, datum, 0, 0, fetched, modified, state)
    assert found == datum
    assert math.isfinite(datum.fetch_time)


@pytest.mark.parametrize(
    ("given_type", "expected"),
    [
        ("text/html", "text/html"),
        ("text/html; charset=x", "text/html"),
        ("text/html;", "text/html;"),
        (";a", ""),
    ],
)
def test_content_types_without_parameters(given_type: str, expected: str) -> None:
    assert clean_mime_type(given_type) == expected
