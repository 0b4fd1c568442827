"""`minutch simulate` as somebody runs it."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.errors import ConfigError, MinutchError, StoreError, UsageError
from minutch.job import JobContext
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum
from tests.support.changingcrawl import ChangingCrawl
from tests.support.commands import command
from tests.support.crawldbs import NOW, read_db, write_db
from tests.support.examples import tabled

run = command("simulate").run

RATES = {f"http://h{n % 7}.example/{n}": (0.005, 0.02, 0.1)[n % 3] for n in range(300)}


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scores = {url: float(number % 10) for number, url in enumerate(RATES)}
    return ChangingCrawl(
        tmp_path_factory.mktemp("simulate") / "crawl", RATES, fetches=5, scores=scores
    ).make()


def simulate(crawl: Path, *words: str, **settings: str) -> str:
    conf = Configuration.load(
        [], overrides={name.replace("__", "."): value for name, value in settings.items()}
    )
    out = io.StringIO()
    context = JobContext(conf.freeze(), FakeClock(NOW), out, io.StringIO())
    assert run([str(crawl), *words], context) == 0
    return out.getvalue()


def as_json(crawl: Path, *words: str, **settings: str) -> dict[str, Any]:
    found = json.loads(simulate(crawl, *words, "--json", **settings))
    assert isinstance(found, dict)
    return found


def by_name(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in found["schedules"]}


def test_one_table_and_one_plot(crawl: Path) -> None:
    text = simulate(crawl, "-schedule", "adaptive", "-days", "90")
    lines = text.splitlines()
    assert lines[0] == "90 days from 2027-01-15, a round a day"
    assert lines[1] == "300 pages" and "1,200 fetches of 300 pages can be compared" in lines[2]
    table = {
        line[:28].strip(): line[28:].split()
        for line in lines
        if line[:1].strip() or line.startswith("  ")
    }
    assert table["copies fresh"][0].endswith("%") and len(table["at best with these fetches"]) == 2
    assert "copies fresh: * now: default, o adaptive" in text and "day 90" in text and "█" in text
    assert max(map(len, lines)) <= 80


def test_the_numbers_add_up(crawl: Path) -> None:
    found = as_json(crawl, "-schedule", "adaptive,default", "-days", "60")
    assert (found["pages"], found["pages_fetched_twice"], found["fetches_compared"]) == (
        300,
        300,
        1200,
    )
    assert 0 < found["changes_seen"] < 1200
    names = by_name(found)
    assert list(names) == ["now: default", "adaptive", "default"]
    assert names["now: default"] | {"name": ""} == names["default"] | {"name": ""}
    for one in names.values():
        days = one["by_day"]
        assert len(days["fetches"]) == len(days["fresh"]) == len(days["days_out_of_date"]) == 60
        assert one["fetches_a_day"] == pytest.approx(sum(days["fetches"]) / 60)
        assert one["most_fetches_on_a_day"] == max(days["fetches"])
        assert one["fresh"] == pytest.approx(sum(days["fresh"]) / 60)
        assert 0 < one["fresh"] <= one["best_fresh"] <= 1
    default = names["default"]  # all pages were fetched at the beginning, and are due after 30 days
    assert [day for day, count in enumerate(default["by_day"]["fetches"]) if count] == [30]
    alive = sum((1 - math.exp(-30 * rate)) / rate for rate in RATES.values()) / 300 / 30
    assert default["fresh"] == pytest.approx(
        alive, abs=0.06
    )  # of the true rates; here they are judged by 4 fetches
    assert names["adaptive"]["fetches_a_day"] > default["fetches_a_day"]


@pytest.mark.slow  # five simulations
def test_the_same_again_whatever_the_order_of_files(crawl: Path, tmp_path: Path) -> None:
    scores = {url: float(number % 10) for number, url in enumerate(RATES)}
    other = ChangingCrawl(tmp_path / "crawl", RATES, fetches=5, scores=scores, parts=5).make()
    words = ("-schedule", "adaptive", "-days", "15", "-budget", "7")
    first = as_json(crawl, *words)
    assert as_json(crawl, *words) == first
    again = as_json(other, *words)
    assert [one["by_day"]["fetches"] for one in again["schedules"]] == [
        one["by_day"]["fetches"] for one in first["schedules"]
    ]
    assert as_json(crawl, *words, "-seed", "1")["schedules"] != first["schedules"]


def test_settings_of_the_command_line_beside_those_of_the_files(crawl: Path) -> None:
    found = by_name(
        as_json(crawl, db__fetch__schedule__class="org.apache.nutch.crawl.AdaptiveFetchSchedule")
    )
    assert list(found) == ["now: default", "adaptive"]
    assert found["adaptive"] == by_name(as_json(crawl, "-schedule", "adaptive"))["adaptive"]
    slow = as_json(crawl, "-schedule", "adaptive", db__fetch__schedule__adaptive__dec_rate="0.01")
    assert by_name(slow)["adaptive"]["fetches_a_day"] < found["adaptive"]["fetches_a_day"]
    assert list(by_name(as_json(crawl))) == ["now: default"]


def test_a_budget_bounds_each_day(crawl: Path) -> None:
    found = by_name(as_json(crawl, "-days", "45", "-budget", "12/day"))["now: default"]
    assert found["by_day"]["fetches"] == [0] * 30 + [12] * 15
    assert found["due_at_the_end"] == 300 - 15 * 12
    assert found["fresh"] < by_name(as_json(crawl, "-days", "45"))["now: default"]["fresh"]


def test_a_sample_stands_for_all(crawl: Path) -> None:
    found = as_json(crawl, "-days", "45", "-sample", "60", "-budget", "50")
    assert (found["pages"], found["pages_looked_at"]) == (300, 60)
    assert found["schedules"][0]["by_day"]["fetches"][30:35] == [50] * 5
    assert "60 of 300 pages" in simulate(crawl, "-sample", "60")


def test_a_picture(crawl: Path, tmp_path: Path) -> None:
    simulate(crawl, "-schedule", "adaptive", "--svg", str(tmp_path / "new" / "plot.svg"))
    root = ElementTree.parse(tmp_path / "new" / "plot.svg").getroot()
    lines = [each for each in root.iter() if each.get("class", "").startswith("s")]
    assert len(lines) == 2 * 2 + 2 and len(lines[0].attrib["points"].split()) == 90
    assert {each.text for each in root.iter() if each.tag.endswith("text")} > {
        "now: default",
        "adaptive",
        "day 90",
    }
    assert "href" not in ElementTree.tostring(root, encoding="unicode")


def test_pages_that_were_fetched_once(tmp_path: Path) -> None:
    crawl = ChangingCrawl(tmp_path / "crawl", dict.fromkeys(RATES, 0.1), fetches=1).make()
    with pytest.raises(MinutchError, match="no page was fetched twice") as failure:
        simulate(crawl)
    assert "-assume 30" in str(failure.value.hint)
    found = as_json(crawl, "-assume", "10", "-days", "30")
    assert found["changes_a_day"] == {"mean": pytest.approx(0.1), "median": pytest.approx(0.1)}
    assert found["schedules"][0]["fresh"] == pytest.approx((1 - math.exp(-3)) / 3)
    assert "0 fetches of 0 pages" in simulate(crawl, "-assume", "10")


def test_entries_without_a_copy_are_left_out(tmp_path: Path) -> None:
    ChangingCrawl(tmp_path, RATES, fetches=2).make()
    more = [(f"http://gone.example/{n}", CrawlDatum(status.STATUS_DB_GONE)) for n in range(7)]
    (tmp_path / "crawldb").rename(tmp_path / "before")
    write_db(tmp_path / "crawldb", [*read_db(tmp_path / "before").items(), *more])
    assert "300 pages; 7 entries without a copy are left out" in simulate(tmp_path)


@tabled(
    "words",
    [
        [], ["a", "b"], ["-days", "0"], ["-days", "x"], ["-days", "5000"], ["-budget", "-1"],
        ["-budget", "nan"],
        ["-budget", "3/week"], ["-rounds", "25"], ["-assume", "0"], ["-sample", "0"], ["-seed",
                                                                                       "x"],
    ],
)  # fmt: skip
def test_wrong_words(words: list[str]) -> None:
    context = JobContext(
        Configuration.load([]).freeze(), FakeClock(NOW), io.StringIO(), io.StringIO()
    )
    with pytest.raises(UsageError):
        run([*words] if words in ([], ["a", "b"]) else ["crawl", *words], context)


def test_what_can_not_be_simulated(crawl: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no folder"):
        simulate(tmp_path / "missing")
    with pytest.raises(StoreError, match="is no crawl"):
        simulate(tmp_path)
    with pytest.raises(ConfigError, match=r"db\.fetch\.schedule\.class"):
        simulate(crawl, "-schedule", "nosuch.Schedule")
    empty = tmp_path / "empty"
    write_db(empty / "crawldb", [("http://a/", CrawlDatum(status.STATUS_DB_UNFETCHED))])
    with pytest.raises(MinutchError, match="no page of this crawl was fetched"):
        simulate(empty)
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="can't write"):
        simulate(crawl, "-svg", str(tmp_path / "file" / "plot.svg"))
    (tmp_path / "only" / "segments").mkdir(parents=True)
    with pytest.raises(StoreError):
        simulate(tmp_path / "only")
