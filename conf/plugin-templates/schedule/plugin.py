"""Fetches front pages each day, all other pages as db.fetch.interval.default says."""

from urllib.parse import urlsplit

from minutch.cycle.crawldb.schedule import DefaultFetchSchedule
from minutch.records.crawldatum import CrawlDatum

_DAY = 86_400


class FrontPagesDaily(DefaultFetchSchedule):
    """The schedule."""

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
        """Sets when a page that was fetched is due again. Times are ms, intervals seconds."""
        if urlsplit(url).path in ("", "/"):
            datum.fetch_interval = _DAY
        super().set_fetch_schedule(
            url, datum, prev_fetch_time, prev_modified_time, fetch_time, modified_time, state
        )
