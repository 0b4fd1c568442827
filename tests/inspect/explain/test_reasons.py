"""Each reason why a URL is not fetched, once, in a crawl made to hold them; and each answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from minutch.cycle.fetchlist.selector import GenerateOptions
from minutch.inspect.explain import textpages
from minutch.inspect.explain.facts import to_json
from tests.support.explainedcrawl import A, Made, R, make_crawl

NOT_DUE, WAITING, FILTERED = (
    "schedule_rejected_total",
    "wait_for_update_total",
    "url_filters_rejected_total",
)
TAKEN = "selected_total"


@dataclass(frozen=True)
class Case:
    """A question: the URL, with settings and options; `says` is part of the page, `facts` are
    values of the JSON.
    """

    name: str
    url: str
    says: str
    facts: Mapping[str, object] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    options: GenerateOptions | None = None

    def __str__(self) -> str:
        return self.name


CASES = [
    # -- would generate take it
    Case(
        "taken",
        f"{A}/waiting",
        "Would be fetched next",
        {"generate.taken": True, "generate.reason": TAKEN},
    ),
    Case("not due", f"{A}/later", "it is not due before 2027-01-18", {"generate.reason": NOT_DUE}),
    Case(
        "due with -adddays",
        f"{A}/later",
        "Would be fetched next",
        {"generate.taken": True},
        options=GenerateOptions(add_days=4),
    ),
    Case("too far to be true", f"{A}/far", "Would be fetched next", {"generate.taken": True}),
    Case(
        "filtered",
        f"{A}/picture.gif",
        "regex-urlfilter.txt:2: -[.]gif$",
        {"generate.reason": FILTERED},
    ),
    Case(
        "not asked to filter",
        f"{A}/picture.gif",
        "Would be",
        {"generate.taken": True},
        options=GenerateOptions(filtering=False),
    ),
    Case("in a list", f"{A}/listed", "awaited until 2027-01-21", {"generate.reason": WAITING}),
    Case(
        "in a list for long",
        f"{A}/listed",
        "Would be fetched",
        {"generate.taken": True},
        {"crawl.gen.delay": "1000"},
    ),
    Case(
        "expression",
        f"{A}/waiting",
        "the expression score > 7 is not true for it (status='db_unfetched', score=5.0",
        {"generate.reason": "expr_rejected_total"},
        options=GenerateOptions(expression="score > 7"),
    ),
    Case(
        "another status",
        f"{A}/waiting",
        "it is db_unfetched, and generate.restrict.status wants db_fetched",
        {"generate.reason": "status_rejected_total"},
        {"generate.restrict.status": "db_fetched"},
    ),
    Case(
        "low score",
        f"{A}/weak",
        "its sort value 0.01 is below generate.min.score=0.5",
        {"generate.reason": "score_too_low_total"},
        {"generate.min.score": "0.5"},
    ),
    Case(
        "long interval",
        f"{A}/seldom",
        "above generate.min.interval=5000000",
        {"generate.reason": "interval_rejected_total"},
        {"generate.min.interval": "5000000"},
    ),
    Case(
        "malformed",
        "nonsense",
        "no URL with a host",
        {"generate.reason": "malformed_urls_skipped_total"},
    ),
    Case(
        "limit of the host",
        "http://many.example/3",
        "better pages of its host take all places that many.example has",
        {"generate.reason": "urls_skipped_per_host_overflow_total", "host.max_count": 2},
        {"generate.max.count": "2"},
    ),
    Case(
        "within the limit",
        "http://many.example/2",
        "gets a place (number 2 of",
        {"generate.taken": True, "generate.place": 2},
        {"generate.max.count": "2"},
    ),
    Case(
        "beyond topN",
        f"{A}/waiting",
        "number 4 of",
        {"generate.reason": "not_in_top_n_total", "generate.remedy": "more rounds, or -topN 4"},
        options=GenerateOptions(top_n=3),
    ),
    Case(
        "within topN",
        f"{A}/waiting",
        "number 4 of",
        {"generate.taken": True},
        options=GenerateOptions(top_n=4),
    ),
    # -- statuses, and why
    Case(
        "fetched",
        f"{A}/ok",
        "db_fetched: fetched",
        {"entry.status": "db_fetched", "entry.why": "HTTP 200"},
    ),
    Case("not modified", f"{A}/again", "found to be the same", {"entry.status": "db_notmodified"}),
    Case(
        "never fetched",
        f"{A}/waiting",
        "never fetched",
        {"entry.status": "db_unfetched", "visits": []},
    ),
    Case("not found", f"{A}/lost", "HTTP 404", {"entry.status": "db_gone", "visits.0.code": 404}),
    Case("gone", f"{A}/closed", "HTTP 410", {"entry.status": "db_gone"}),
    Case("login", f"{A}/login", "HTTP 401", {"entry.status": "db_gone"}),
    Case("forbidden", f"{A}/forbidden", "failed once: HTTP 403", {"entry.retries": 1}),
    Case(
        "server error", f"{A}/broken", "failed once: HTTP 500", {"visits.0.status": "fetch_retry"}
    ),
    Case("no answer", f"{A}/refused", "failed once: connection refused", {"visits.0.code": None}),
    Case("no such host", f"{A}/no-host", "no such host"),
    Case("timeout", f"{A}/slow", "timeout (http.timeout)"),
    Case(
        "address guard", f"{A}/own", "private address not allowed (http.filter.ipaddress.include)"
    ),
    Case("certificate", f"{A}/certificate", "certificate: expired"),
    Case("no plugin", f"{A}/scheme", "no protocol plugin for its scheme (plugin.includes)"),
    Case(
        "denied by robots.txt",
        f"{A}/denied",
        "why            refused by robots.txt",
        {"entry.status": "db_gone"},
    ),
    Case(
        "time limit",
        f"{A}/time",
        "not asked for: the time limit was reached",
        {"visits.0.state": "skipped"},
    ),
    Case(
        "too many failures of the host",
        f"{A}/queue",
        "not asked for: too many exceptions in the queue",
    ),
    Case("host asked for rest", f"{A}/busy", "not asked for: the host asked to come back later"),
    Case(
        "given up",
        f"{A}/given-up",
        "3 failures in a row (db.fetch.retry.max=3), the last: HTTP 502",
        {"entry.retries": 3},
    ),
    Case(
        "moved",
        f"{A}/moved",
        f"it redirects to {A}/target",
        {"visits.0.redirects.0.status": "fetch_success"},
    ),
    Case("moved for now", f"{A}/temporary", "db_redir_temp", {"visits.0.redirects.0.status": ""}),
    Case("duplicate", f"{A}/dup2", "db_duplicate", {"duplicates": [f"{A}/dup1"]}),
    Case(
        "has a duplicate",
        f"{A}/dup1",
        "Same content",
        {"duplicates": [f"{A}/dup2"], "entry.status": "db_fetched"},
    ),
    Case(
        "orphan", f"{A}/orphan", "no page has linked to it for long", {"entry.status": "db_orphan"}
    ),
    Case(
        "parse failed",
        f"{A}/parse-failed",
        "nothing could parse it",
        {"entry.status": "db_parse_failed"},
    ),
    Case("not parsed", f"{A}/unparsed", "parse failed(2,202): cut off", {"visits.0.digest": ""}),
    Case(
        "listed",
        f"{A}/listed",
        "In the fetch list of segment 20270114080000",
        {"visits.0.state": "listed"},
    ),
    Case(
        "fetched, not brought in",
        f"{A}/pending",
        "Fetched in segment 20270113080000",
        {"visits.0.in_crawldb": False},
    ),
    # -- what the fetcher would do
    Case(
        "robots.txt denies",
        f"{R}/private/page",
        "robots.txt denies it: line 4, Disallow: /private/ # keep out",
        {"fetch.reason": "robots_denied", "robots.line": 4, "generate.taken": True},
    ),
    Case(
        "robots.txt allows",
        f"{R}/private/open/page",
        "line 2: Allow: /private/open/",
        {"robots.verdict": "fetch"},
    ),
    Case(
        "robots.txt is silent",
        f"{R}/public",
        "no line of it speaks",
        {"robots.line": 0, "robots.crawl_delay": 7000},
    ),
    Case("crawl delay", f"{R}/public", "7 s between requests", {"host.delay": 7000}),
    Case(
        "crawl delay too long",
        "http://slow.example/",
        "100 s between",
        {"fetch.reason": "robots_delay"},
    ),
    Case(
        "delay allowed",
        "http://slow.example/",
        "100 s between",
        {"fetch.asks": True},
        {"fetcher.max.crawl.delay": "-1"},
    ),
    Case(
        "robots.txt too old",
        "http://stale.example/",
        "too old",
        {"fetch.asks": True, "robots.expires": "2027-01-14T08:00:00.000Z"},
    ),
    Case("robots.txt unknown", f"{A}/ok", "nothing is kept of it", {"robots.verdict": None}),
    Case(
        "robots.txt forbidden",
        "http://closed.example/",
        "(HTTP 403)",
        {"fetch.asks": False},
        {"http.robots.403.allow": "false"},
    ),
    Case(
        "allow list",
        f"{R}/private/page",
        "allowlist",
        {"fetch.asks": True},
        {"http.robot.rules.allowlist": "robots.example"},
    ),
    Case(
        "host at rest",
        "http://busy.example/",
        "Retry-After",
        {"fetch.reason": "host_busy", "host.busy_until": "2027-01-16T08:00:00.000Z"},
    ),
    Case(
        "special address",
        "http://10.1.2.3/",
        "10.1.2.3 is in 10.0.0.0/8, which is not the public net",
        {"fetch.reason": "address_refused"},
    ),
    Case(
        "excluded address",
        "http://192.0.78.9/",
        "192.0.78.0/24 of http.filter.ipaddress.exclude",
        {"fetch.asks": False},
        {"http.filter.ipaddress.exclude": "192.0.78.0/24"},
    ),
    Case(
        "address not included",
        "http://192.0.78.9/",
        "none of the networks",
        {"fetch.asks": False},
        {"http.filter.ipaddress.include": "10.0.0.0/8"},
    ),
    Case(
        "address included",
        "http://10.1.2.3/",
        "lets it pass",
        {"fetch.asks": True},
        {"http.filter.ipaddress.include": "10.0.0.0/8"},
    ),
    Case(
        "no protocol",
        "ftp://f.example/",
        "no protocol for",
        {"fetch.reason": "no_protocol", "host.protocol": None},
    ),
    Case("no queue", "nonsense", "it has no queue (byHost)", {"fetch.reason": "no_queue"}),
    Case(
        "fetcher filters",
        f"{A}/picture.gif",
        "fetcher.filter.urls",
        {"fetch.reason": "filtered"},
        {"fetcher.filter.urls": "true"},
    ),
    # -- how the date came about
    Case(
        "own interval",
        f"{A}/ok",
        "the page's own interval: 30 days",
        {"due.segment": "20270105080000"},
    ),
    Case(
        "default interval",
        f"{A}/no-interval",
        "db.fetch.interval.default: 30 days",
        {"entry.fetch_interval": 2592000},
    ),
    Case(
        "beyond the longest interval",
        f"{A}/too-long",
        "as if for the first time",
        {"entry.status": "db_unfetched"},
    ),
    Case(
        "gone for longer",
        f"{A}/lost",
        "half as long again: 45 days",
        {"entry.fetch_interval": 3888000},
    ),
    Case("gone, no longer", f"{A}/gone-long", "but less than db.fetch.interval.max: 81 days"),
    Case(
        "failed for now",
        f"{A}/broken",
        "failure number 1 in a row, of 3 (db.fetch.retry.max): tried again after: 1 day",
    ),
    Case(
        "third failure", f"{A}/given-up", "given up as db_gone", {"due.segment": "20270110080000"}
    ),
    Case(
        "due since it was found",
        f"{A}/waiting",
        "due from the time when it was injected",
        {"due.segment": ""},
    ),
    Case("no segment tells", f"{A}/unexplained", "no segment at hand led to this date"),
    Case(
        "score of links",
        f"{A}/linked",
        "0.75: 0.75 from links; OpicScoring",
        {"score.from_links": 0.75, "score.rest": 0.0},
    ),
    Case(
        "who links",
        f"{A}/linked",
        f"{A}/ok with the words “the words” (first in segment 20270105080000)",
        {"leads.found.0.links": 2},
    ),
    # -- URLs that the CrawlDb does not have
    Case(
        "no URL", "http://[bad/", "it is no URL that a crawl takes", {"unknown.reason": "malformed"}
    ),
    Case(
        "no scheme",
        "www.example.org/",
        "did you mean https://www.example.org/?",
        {"unknown.reason": "malformed"},
    ),
    Case(
        "would be filtered",
        "http://b.example/private/x",
        "regex-urlfilter.txt:3:",
        {"unknown.reason": "filtered"},
    ),
    Case(
        "found, not brought in",
        "http://c.example/fresh",
        "updatedb has not brought it in",
        {"unknown.reason": "not_brought_in"},
    ),
    Case(
        "no additions",
        "http://c.example/fresh",
        "takes in no new URLs",
        {"unknown.reason": "additions_not_allowed"},
        {"db.update.additions.allowed": "false"},
    ),
    Case(
        "redirect lost",
        "http://b.example/outside",
        f"{A}/temporary redirects to it",
        {"unknown.reason": "redirect_not_brought_in"},
    ),
    Case(
        "redirect out",
        "http://b.example/outside",
        "the fetcher goes no further",
        {"unknown.reason": "redirect_ignored"},
        {"db.ignore.external.links": "true"},
    ),
    Case(
        "never seen",
        f"{A}/nowhere",
        "no segment has a link or a redirect to it",
        {"unknown.reason": "never_seen"},
    ),
    Case(
        "another spelling",
        "HTTP://a.example:80/x/../ok",
        "asked for as HTTP://a.example:80/x/../ok",
        {"url": f"{A}/ok", "entry.status": "db_fetched"},
    ),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_crawl(tmp_path_factory.mktemp("made") / "crawl")


def value_of(facts: Any, path: str) -> Any:
    """A value of the JSON, by names and numbers between dots."""
    for name in path.split("."):
        facts = facts[int(name)] if isinstance(facts, list) else facts[name]
    return facts


@pytest.mark.parametrize("case", CASES, ids=str)
def test_reason(made: Made, case: Case) -> None:
    found = made.explain(case.url, case.settings, case.options)
    page = "\n".join(textpages.explanation_lines(found))
    assert case.says in page
    facts = json.loads(to_json(found))
    assert {path: value_of(facts, path) for path in case.facts} == dict(case.facts)


def test_there_are_many() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 40
