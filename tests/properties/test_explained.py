"""Holds explain to what generate, fetch and updatedb then do with each URL, in a random web that
misbehaves.

    python -m tests.properties.test_explained [--urls 2000] [--hosts 24] [--rounds 4] [--seed 1]

Before each job every URL that it will meet is asked about; after it the files are compared with the
answers.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from minutch import jobs
from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.crawldb.transitions import UpdateSettings
from minutch.cycle.fetch.settings import FetchSettings
from minutch.cycle.fetchlist.select import HOSTS_OVER_LIMIT
from minutch.cycle.fetchlist.selector import GenerateOptions, Selector
from minutch.cycle.segment.store import (
    CRAWL_FETCH,
    CRAWL_GENERATE,
    CRAWL_PARSE,
    Segment,
    segments_in,
)
from minutch.inspect.explain.access import FetchProspects
from minutch.inspect.explain.explainer import explain
from minutch.inspect.explain.facts import FetchVerdict, RobotsFacts
from minutch.inspect.explain.selection import TAKEN, classify, generate_verdict, replay_last
from minutch.inspect.explain.settings import (
    CrawlStores,
    ExplainOptions,
    ExplainSettings,
    filter_answers,
)
from minutch.inspect.explain.visits import protocol_status
from minutch.job import JobContext
from minutch.plugin.chains import URLFilters
from minutch.records import protocol as codes
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import to_frame
from tests.properties.test_counters import SETTINGS as COUNTED
from tests.properties.test_counters import LaterClock
from tests.support.crawldbs import read_db
from tests.support.randomweb import Plan, RandomWeb, crawl_by_command

SETTINGS = {
    **COUNTED,
    "plugin.includes": (
        "protocol-http|urlfilter-regex|urlnormalizer-(pass|basic)|parse-html|scoring-opic"
    ),
    "urlfilter.regex.rules": "-/[0-9]*13$\n+^http\n",
    "http.filter.ipaddress.exclude": "127.1.0.3",
    "generate.max.count": "60",
    "http.timeout": "400",
}
ROUNDS = (
    (0, GenerateOptions()),
    (0, GenerateOptions(filtering=False, top_n=400)),
    (0, GenerateOptions(expression="score < 0.5 || retries > 0", max_segments=1)),
    (4, GenerateOptions(top_n=300)),
    (8, GenerateOptions()),
)
"""Of each round, how many days after the first one it is (robots.txt files are kept for a day), and
how it chooses.
"""
SEEDED = 3
"""Every third page is a seed, so that some rounds meet all of them."""
SAMPLE = 12
"""URLs, known and new, whose update is foretold in each round: one by one, this takes long."""


@dataclass
class Crawled:
    """A crawl under way, and what was compared so far."""

    folder: Path
    conf: Configuration
    rng: random.Random
    said: Counter[str] = field(default_factory=Counter)

    @property
    def crawldb(self) -> Path:
        return self.folder / "crawldb"

    def crawl(self) -> CrawlStores:
        """The files as they are now."""
        return CrawlStores(self.folder)

    def sample(self, urls: list[str], size: int) -> list[str]:
        """Some of them."""
        return urls if len(urls) <= size else self.rng.sample(sorted(urls), size)


def crawl(folder: Path, web: RandomWeb, rounds: int) -> Counter[str]:
    """Crawl a web and compare; returns how often explain gave which answer."""
    conf = Configuration.load([], overrides=SETTINGS)
    made = Crawled(folder, conf, random.Random(1))
    seeds = folder / "seeds.txt"
    seeds.write_text("\n".join(web.url(page) for page in range(0, web.plan.pages, SEEDED)))
    jobs.run("inject", made.crawldb, seeds, "-noFilter", conf=conf)
    for days, options in ROUNDS[:rounds]:
        clock = LaterClock(days)
        segment = _check_generate(made, options, clock)
        _check_fetch(made, segment, clock)
        jobs.run("parse", segment.path, conf=conf, clock=clock)
        _check_update(made, segment, clock)
    return made.said


def _check_generate(made: Crawled, options: GenerateOptions, clock: LaterClock) -> Segment:
    """Every entry that explain says is taken is listed, every other one is counted under the reason
    that it gives.
    """
    now = clock.now()
    selector = Selector.from_conf(made.conf, options, now)
    files, entries = made.crawl(), read_db(made.crawldb)
    reasons = {
        key.decode(): reason
        for key, reason in classify(to_frame(sorted(entries.items())), selector).reasons().items()
    }
    assert reasons.keys() == entries.keys()
    filters = URLFilters(made.conf)
    for reason in sorted(set(reasons.values())):
        for url in made.sample([url for url, given in reasons.items() if given == reason], 5):
            answers = filter_answers(filters, url)
            answer = generate_verdict(url, entries[url], selector, files.crawldb, answers)
            assert (answer.reason, answer.taken) == (reason, reason == TAKEN), (url, answer)
    counters = jobs.run(
        "generate",
        made.crawldb,
        made.folder / "segments",
        *_words(options),
        conf=made.conf,
        clock=FakeClock(now),
    )
    segment = segments_in(made.folder / "segments")[-1]
    assert {url.decode() for url, _ in segment.raw(CRAWL_GENERATE)} == {
        url for url in reasons if reasons[url] == TAKEN
    }
    counted = Counter(reasons.values())
    assert counted == {
        name: count for name, count in counters.items() if count and name != HOSTS_OVER_LIMIT
    }
    made.said.update(counted)
    return segment


def _words(options: GenerateOptions) -> list[object]:
    words: list[object] = ["-topN", options.top_n]
    words += [] if options.filtering else ["-noFilter"]
    return words + (["-expr", options.expression] if options.expression else [])


def _check_fetch(made: Crawled, segment: Segment, clock: LaterClock) -> None:
    """Refusals are recorded where they were foretold, and nowhere else where robots.txt was
    known.
    """
    files = made.crawl()
    settings = ExplainSettings.from_conf(made.conf, fetch=FetchSettings.of(made.conf, clock.now()))
    access = FetchProspects(settings, files.state, files.hostdb, clock.now())
    listed = sorted(url.decode() for url, _ in segment.raw(CRAWL_GENERATE))
    answers = {url: access.to(url) for url in listed}
    jobs.run("fetch", segment.path, "-threads", 50, conf=made.conf, clock=clock)
    fetched = {url: datum for url, datum in segment.records(CRAWL_FETCH) if url in answers}
    assert fetched.keys() == answers.keys()
    for url, (robots, _, answer) in answers.items():
        datum = fetched[url]
        assert isinstance(datum, CrawlDatum)
        made.said[f"fetch: {answer.reason}"] += 1
        _compare(url, robots, answer, datum)


def _compare(url: str, robots: RobotsFacts, answer: FetchVerdict, datum: CrawlDatum) -> None:
    ended = protocol_status(datum)
    assert ended is not None, url
    denied = ended.code == codes.ROBOTS_DENIED
    if answer.reason == "robots_denied":
        assert denied, (url, answer, ended)
    elif robots.verdict == "fetch" and not robots.note:
        assert not denied, (url, robots, ended)
    refused = "address not allowed" in (ended.message or "")
    assert refused == (answer.reason == "address_refused") or denied, (url, answer, ended)


def _check_update(made: Crawled, segment: Segment, clock: LaterClock) -> None:
    """The entry that updatedb writes is the one that explain has made of the segment's records."""
    now = clock.now()
    settings = UpdateSettings.from_conf(made.conf)
    met = sorted(
        {url.decode() for folder in (CRAWL_FETCH, CRAWL_PARSE) for url, _ in segment.raw(folder)}
    )
    known = read_db(made.crawldb)
    chosen = made.sample([url for url in met if url not in known], SAMPLE)
    chosen += made.sample([url for url in met if url in known], SAMPLE)
    segments = segments_in(made.folder / "segments")
    foretold = {url: replay_last(url, _with(url, segments), settings, now) for url in chosen}
    jobs.run("updatedb", made.crawldb, segment.path, conf=made.conf, clock=FakeClock(now))
    entries = read_db(made.crawldb)
    context = JobContext(made.conf, FakeClock(now))
    records = segment.records(CRAWL_FETCH)
    fetched = {
        url for url, datum in records if isinstance(datum, CrawlDatum) and datum.has_fetch_status()
    }
    for url, replayed in foretold.items():
        if replayed is None or (url in known and url not in fetched):
            continue  # links alone leave an entry as it was
        assert replayed.led_to(entries[url]), (url, replayed, entries[url])
        assert replayed.entry.signature == entries[url].signature
        made.said[f"updatedb: {entries[url].status_name}"] += 1
    for url in list(foretold)[:: len(foretold) // 10 + 1]:
        found = explain(made.folder, url, ExplainOptions(quick=True), context=context)
        assert found.entry is not None and found.entry.status == entries[url].status_name
        assert found.due is not None and (
            url not in fetched or found.due.segment == segment.name or found.due.note
        )


def _with(url: str, segments: list[Segment]) -> list[Segment]:
    """The last segment, and those before it that fetched the URL."""
    return [each for each in segments[:-1] if each.get(CRAWL_FETCH, url)] + segments[-1:]


EXPECTED = {
    *(
        "selected_total",
        "schedule_rejected_total",
        "url_filters_rejected_total",
        "not_in_top_n_total",
    ),
    *("expr_rejected_total", "urls_skipped_per_host_overflow_total"),
    *("fetch: asks", "fetch: robots_denied", "fetch: address_refused"),
    *("updatedb: db_fetched", "updatedb: db_unfetched"),
}
"""Answers that such a web always calls for."""


@pytest.mark.slow
def test_what_is_said_is_what_is_done(tmp_path: Path) -> None:
    with RandomWeb(Plan(seed=1, pages=2000, hosts=24)) as web:
        said = crawl(tmp_path, web, rounds=4)
    assert said.keys() >= EXPECTED, said


def main() -> None:
    """Another web, or a larger one."""
    crawl_by_command(
        "tests.properties.test_explained", crawl, Plan(seed=1, pages=2000, hosts=24), rounds=4
    )


if __name__ == "__main__":
    main()
