"""Which entries of a CrawlDb go through a job."""

from minutch.crawldb.partitions import EntryFilter
from minutch.job import Counters
from minutch.plugin.urlrules import FILTERED, MALFORMED
from minutch.records.crawldatum import CrawlDatum
from minutch.tables import rows
from tests.support.crawldbs import context

PLUGINS = {"plugin.includes": "urlfilter-regex|urlnormalizer-basic"}


def test_entries_go_on_under_their_new_names() -> None:
    frame = rows.to_frame(
        [("http://A/", CrawlDatum(1)), ("http://a/x.gif", CrawlDatum(2)), ("http://b/", CrawlDatum(3))]
    )
    counters = Counters()
    conf = context({**PLUGINS, "db.update.purge.404": "true"}).conf
    found = EntryFilter(conf, normalize=True, filtering=True).apply(frame, counters)
    assert found["key"].to_list() == [b"http://a/"]
    assert counters == {"gone entries removed": 1, MALFORMED: 0, FILTERED: 1}


def test_settings_for_all_jobs() -> None:
    conf = context({**PLUGINS, "crawldb.url.filters": "true"}).conf
    found = EntryFilter.from_conf(conf)
    assert not found.rules.is_neutral
    assert not found.rules.normalizes
    assert EntryFilter.from_conf(context().conf).rules.is_neutral
