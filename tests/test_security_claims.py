""".github/SECURITY.md: each claim names the test that holds it, and that test is there."""

from __future__ import annotations

import re

from tests.support.golden import PROJECT

TEXT = (PROJECT / ".github" / "SECURITY.md").read_text(encoding="utf-8")
CLAIM = re.compile(
    r"^\| (?P<number>\d+) \| (?P<claim>[^|]+) \| (?P<tests>[^|]+) \| [0-9,]+ \|$", re.MULTILINE
)
NAMED = re.compile(r"`(?P<file>tests/[\w/]+\.py)::(?P<name>\w+)`")
CLAIMS = list(CLAIM.finditer(TEXT))


def test_claims_are_numbered() -> None:
    assert [int(claim["number"]) for claim in CLAIMS] == list(range(1, len(CLAIMS) + 1))
    assert len(CLAIMS) == sum(bool(re.match(r"\| \d+ ", line)) for line in TEXT.splitlines()) >= 40


def test_each_claim_has_a_test_that_exists() -> None:
    missing = []
    for claim in CLAIMS:
        named = list(NAMED.finditer(claim["tests"]))
        assert named, f"claim {claim['number']} names no test"
        for test in named:
            path = PROJECT / test["file"]
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            if not re.search(rf"^ *(async )?def {test['name']}\(", text, re.MULTILINE):
                missing.append(test[0])
    assert not missing
