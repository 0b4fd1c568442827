"""updatedb's steps for one URL lead to the entry that it writes."""

from __future__ import annotations

import pytest

from minutch.conf import Configuration
from minutch.cycle.crawldb.transitions import UpdateSettings
from minutch.cycle.crawldb.updatesteps import explain_update
from minutch.hadoop.formats.writables import FloatWritable, Text
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum
from tests.support.crawldbs import DAY, NOW, context

URL = "http://a.example/"
MONTH = 2_592_000
UNFETCHED = CrawlDatum(status.STATUS_DB_UNFETCHED, MONTH, 1.0, NOW - DAY)


def settings(**values: str) -> UpdateSettings:
    conf: Configuration = context(
        {name.replace("_", "."): value for name, value in values.items()}
    ).conf
    return UpdateSettings.from_conf(conf)


def fetched(kind: int, **fields: object) -> CrawlDatum:
    return CrawlDatum(kind, MONTH, 1.0, NOW, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "becomes", "steps"),
    [
        (
            status.STATUS_FETCH_SUCCESS,
            "db_fetched",
            ["the page: nothing to compare it with", "the page's own interval"],
        ),
        (status.STATUS_FETCH_GONE, "db_gone", ["the interval before", "gone: half as long again"]),
        (
            status.STATUS_FETCH_RETRY,
            "db_unfetched",
            ["failure number 1 in a row, of 3 (db.fetch.retry.max): tried again after"],
        ),
        (status.STATUS_LINKED, "db_unfetched", ["not fetched: the entry stays as it was"]),
        (
            status.STATUS_PARSE_FAILED,
            "db_parse_failed",
            ["the interval before", "gone: half as long again"],
        ),
    ],
)
def test_steps(kind: int, becomes: str, steps: list[str]) -> None:
    made = explain_update(URL, UNFETCHED, [fetched(kind)], settings(), NOW)
    assert made is not None
    assert (made.entry.status_name, [step.text for step in made.steps]) == (becomes, steps)


def test_a_new_url() -> None:
    made = explain_update(URL, None, [fetched(status.STATUS_LINKED)], settings(), NOW)
    assert made is not None and made.entry.fetch_time == NOW
    assert [step.text for step in made.steps] == ["not fetched: found by a link: due at once"]
    assert (
        explain_update(
            URL,
            None,
            [fetched(status.STATUS_LINKED)],
            settings(db_update_additions_allowed="false"),
            NOW,
        )
        is None
    )


def test_which_entry_it_led_to() -> None:
    made = explain_update(
        URL, UNFETCHED, [fetched(status.STATUS_FETCH_SUCCESS, signature=b"x")], settings(), NOW
    )
    assert made is not None
    entry = made.entry.copy()
    assert made.led_to(entry)
    entry.status = status.STATUS_DB_DUPLICATE  # dedup has marked it since
    assert made.led_to(entry)
    entry.status = status.STATUS_DB_GONE
    assert not made.led_to(entry)
    entry = made.entry.copy()
    entry.fetch_time += 1
    assert not made.led_to(entry)


@pytest.mark.parametrize(
    ("told", "fixed", "steps"),
    [
        (
            f"{NOW // 1000 - 10 * 86_400} 9 4 5000000 4320000 4.320000e+04",
            False,
            [
                "the page: another signature than before",
                "10 visits compared, 5 with a change: it is taken to change every",
                "one more request has to be worth, in time that a copy is fresh, times score",
                "it is, for a score of 1, after",
            ],
        ),
        (
            f"{NOW // 1000 - 10 * 86_400} 99 99 90000000 86400 9.000000e+05",
            False,
            [
                "the page: another signature than before",
                "100 visits compared, 100 with a change: it is taken to change every",
                "one more request has to be worth, in time that a copy is fresh, times score",
                "given up until it is found unchanged: so that its copy gets no older than",
            ],
        ),
        (
            f"{NOW // 1000 - 10 * 86_400} 99 0 500000 864000000 9.000000e+07",
            False,
            [
                "the page: another signature than before",
                "100 visits compared, 1 with a change: it is taken to change every",
                "one more request has to be worth, in time that a copy is fresh, times score",
                "it never is: the longest interval (db.fetch.interval.max)",
            ],
        ),
        (
            "",
            False,
            [
                "the page: another signature than before",
                "0 visits compared, 0 with a change: it is taken to change every",
                "listed without a survey of the crawldb: as before",
            ],
        ),
        (
            "",
            True,
            [
                "the page: another signature than before",
                "0 visits compared, 0 with a change: it is taken to change every",
                "fixed by fixedInterval",
            ],
        ),
    ],
)
def test_steps_of_the_schedule_for_freshness(told: str, fixed: bool, steps: list[str]) -> None:
    rules = settings(db_fetch_schedule_class="minutch.cycle.crawldb.fresh:FreshnessFetchSchedule")
    before = CrawlDatum(status.STATUS_DB_FETCHED, MONTH, 1.0, NOW, signature=b"x")
    fetch = fetched(status.STATUS_FETCH_SUCCESS, signature=b"y")
    if told:
        fetch.metadata[Text("_fresh_")] = Text(told)
    if fixed:
        fetch.metadata[Text("fixedInterval")] = FloatWritable(3600.0)
    made = explain_update(URL, before, [fetch], rules, NOW)
    assert made is not None
    assert [step.text for step in made.steps] == steps
    assert made.steps[-1].seconds == made.entry.fetch_interval
