"""A report says what has changed since an earlier one."""

from __future__ import annotations

import html
import re
from pathlib import Path

from minutch.inspect.report.facts import Facts
from minutch.inspect.report.reportfile import changes, is_same_crawl
from minutch.web.cells import STATUS_WORDS
from tests.inspect.report.conftest import Written, gathered
from tests.inspect.report.madeup import MadeUp


def rows_of(markup: str, caption: str) -> dict[str, list[str]]:
    """The cells of a table by those of its first column."""
    table = re.search(rf"<caption>{caption}</caption>.*?<tbody>(.*?)</tbody>", markup)
    assert table
    found = {}
    for row in re.findall(r"<tr>(.*?)</tr>", table[1]):
        cells = [
            html.unescape(re.sub(r"<[^>]+>", "", cell))
            for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)
        ]
        found[cells[0]] = cells[1:]
    return found


def test_an_earlier_report_of_the_crawl(harbours: Written, tmp_path: Path) -> None:
    made = MadeUp(seed=3, hosts=6, pages=200, rounds=4, most=70)
    made.write(tmp_path / "harbours")
    earlier = gathered(tmp_path / "harbours", made.now)
    section = changes(earlier, harbours.facts)
    assert "2 rounds since" in section.markup and "No segment is in both" not in section.markup
    totals = rows_of(section.markup, "Totals")
    before, now = earlier.total("urls") or 0, harbours.facts.total("urls") or 0
    assert totals["URLs known"] == [
        f"{before:,}",
        f"{now:,}",
        f"+{now - before:,} (+{(now - before) / before:.0%})",
    ]
    assert totals["rounds"] == ["4", "6", "+2 (+50%)"]
    statuses = rows_of(section.markup, "Statuses")
    old, new = (dict(facts["statuses"].iter_rows()) for facts in (earlier, harbours.facts))
    old, new = ({STATUS_WORDS[name]: n for name, n in each.items()} for each in (old, new))
    assert statuses.keys() == old.keys() | new.keys()
    known = "not yet fetched"
    assert statuses[known][:2] == [f"{old[known]:,}", f"{new[known]:,}"]
    assert "Hosts that have changed most" in section.markup


def test_nothing_has_changed(harbours: Written) -> None:
    section = changes(harbours.facts, harbours.facts)
    assert "0 rounds since" in section.markup
    assert {cells[-1] for cells in rows_of(section.markup, "Totals").values()} == {"–"}
    assert "Hosts that have changed most" not in section.markup


def test_another_crawl(harbours: Written) -> None:
    other = Facts(
        "other",
        1,
        {
            "rounds": harbours.facts["rounds"].with_columns(
                segment=harbours.facts["rounds"]["segment"] + "x"
            )
        },
    )
    assert not is_same_crawl(other, harbours.facts)
    assert "is it the same crawl?" in changes(other, harbours.facts).markup
    assert is_same_crawl(Facts("empty", 1, {}), harbours.facts)
