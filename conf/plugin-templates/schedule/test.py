"""The schedule, found and made as a crawl does it."""

from minutch.conf import Configuration
from minutch.cycle.crawldb.schedule import STATUS_MODIFIED, fetch_schedule
from minutch.records.crawldatum import CrawlDatum

DAY = 86_400
VALUES = {
    "db.fetch.schedule.class": "$package.plugin:FrontPagesDaily",
    "db.fetch.interval.default": str(30 * DAY),
}


def test_front_pages_are_due_after_a_day() -> None:
    schedule = fetch_schedule(Configuration.load([]).with_values(VALUES))
    due = {}
    for url in ("https://www.example.org/", "https://www.example.org/page"):
        datum = CrawlDatum()
        schedule.initialize_schedule(url, datum, 0)
        schedule.set_fetch_schedule(url, datum, 0, 0, 1000, 1000, STATUS_MODIFIED)
        due[url] = datum.fetch_time
    assert due == {
        "https://www.example.org/": 1000 + DAY * 1000,
        "https://www.example.org/page": 1000 + 30 * DAY * 1000,
    }
