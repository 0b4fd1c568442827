"""robots.txt as Nutch reads it: tables/robots.jsonl and robots-rules.jsonl, every row.

Deliberate differences: a negative Crawl-delay is no delay (Nutch keeps it, and then ignores it).
Not in these tables: a dollar in the middle of a rule is a dollar in the path, as RFC 9309 and
Google have it (with Nutch it matches nothing).
"""

from __future__ import annotations

import base64
from functools import cache
from typing import Any

from minutch.urls.robots import RobotRules, parse_robots
from tests.support.golden import needs_golden
from tests.support.golden_tables import rows

pytestmark = needs_golden("tables/robots.jsonl.gz")

UNSET = -(2**63)


@cache
def inputs() -> dict[int, dict[str, Any]]:
    return {row["id"]: row for row in rows("inputs/robots.jsonl")}


def rules_of(row: dict[str, Any]) -> RobotRules:
    given = inputs()[row["id"]]
    url = "http://example.org/robots.txt"
    return parse_robots(base64.b64decode(given["body"]), given["ctype"], row["agents"], url)


def test_every_url_of_every_file() -> None:
    count = 0
    wrong = []
    for row in rows("robots.jsonl.gz"):
        rules = rules_of(row)
        for url, allowed in row["allowed"].items():
            count += 1
            if rules.is_allowed(url) is not allowed:
                wrong.append((row["id"], row["agents"], url, allowed))
    assert count >= 16_000
    assert wrong == []


def test_the_rules_themselves() -> None:
    differences = set()
    for row in rows("robots-rules.jsonl"):
        rules = rules_of(row)
        found = {
            "crawlDelay": UNSET if rules.crawl_delay is None else rules.crawl_delay,
            "allowAll": rules.allow_all,
            "allowNone": rules.allow_none,
            "defer": rules.defer_visits,
            "sitemaps": list(rules.sitemaps),
            "rules": sorted(f"{'+' if rule.allow else '-'}{rule.path}" for rule in rules.rules),
        }
        expected = {**row, "rules": sorted(row["rules"])}
        differences |= {
            (key, expected[key], found[key]) for key in found if found[key] != expected[key]
        }
    assert differences == {("crawlDelay", -1000, UNSET)}
