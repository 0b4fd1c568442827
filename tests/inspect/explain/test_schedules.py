"""explain derives the dates of an adaptive schedule step by step, as updatedb wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest

from minutch.cycle.crawldb.schedule import DefaultFetchSchedule
from minutch.inspect.explain import textpages
from minutch.records.crawldatum import CrawlDatum
from tests.support.explainedcrawl import A, Made, make_crawl

ADAPTIVE = "org.apache.nutch.crawl.AdaptiveFetchSchedule"


class Hourly(DefaultFetchSchedule):
    """A user's own."""

    def set_fetch_schedule(
        self,
        url: str,
        datum: CrawlDatum,
        prev_fetch_time: int,
        prev_modified_time: int,
        fetch_time: int,
        modified_time: int,
        state: int,
    ) -> None:
        datum.fetch_interval = 3600
        datum.fetch_time = fetch_time + 3_600_000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_crawl(
        tmp_path_factory.mktemp("adaptive") / "crawl", db__fetch__schedule__class=ADAPTIVE
    )


@pytest.mark.parametrize(
    ("url", "steps"),
    [
        (
            f"{A}/again",
            [
                "the page: the same as before",
                "the interval before: 30 days",
                "the page was the same: × (1 + 0.4): 42 days",
                "sync_delta: earlier, towards the time of the last change, by: 1 day 12 hours",
            ],
        ),
        (
            f"{A}/changing",
            [
                "the page: another signature than before",
                "the interval before: 30 days",
                "the page had changed: × (1 - 0.2): 24 days",
            ],
        ),
        (f"{A}/fixed", ["the page: nothing to compare it with", "fixed by fixedInterval: 9 days"]),
        (
            f"{A}/ok",
            [
                "the page: nothing to compare it with",
                "the interval before: 30 days",
                "not known whether the page had changed: the interval stays",
            ],
        ),
    ],
)
def test_steps(made: Made, url: str, steps: list[str]) -> None:
    found = made.explain(url)
    lines = [line.strip() for line in textpages.explanation_lines(found)]
    at = lines.index(steps[0])
    assert lines[at : at + len(steps)] == steps
    assert lines[at + len(steps)] == ""


def test_bounds(tmp_path: Path) -> None:
    settings = {"db.fetch.schedule.adaptive.max_interval": "1000000"}
    made = make_crawl(
        tmp_path / "crawl",
        db__fetch__schedule__class=ADAPTIVE,
        db__fetch__schedule__adaptive__max_interval=settings[
            "db.fetch.schedule.adaptive.max_interval"
        ],
    )
    page = "\n".join(textpages.explanation_lines(made.explain(f"{A}/again")))
    assert "not outside of 60 to 1e+06 s: 11 days 13 hours" in page


def test_other_settings_than_those_of_the_update(made: Made) -> None:
    found = made.explain(f"{A}/again", {"db.fetch.schedule.adaptive.inc_rate": "0.7"})
    assert found.due is not None and not found.due.steps
    assert "updatedb ran with other settings" in found.due.note


def test_a_schedule_of_ones_own(tmp_path: Path) -> None:
    made = make_crawl(
        tmp_path / "crawl", db__fetch__schedule__class="tests.inspect.explain.test_schedules:Hourly"
    )
    found = made.explain(f"{A}/ok")
    assert found.due is not None and found.due.schedule == "Hourly"
    assert [step.text for step in found.due.steps][-1] == "Hourly: the interval"
    assert found.due.steps[-1].seconds == 3600
