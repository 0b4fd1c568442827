"""What compares both crawls finds differences, and none between equal crawls; and both are equal
where Nutch is installed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.interop.sidebyside.both import side_by_side
from tests.interop.sidebyside.configurations import SideConfiguration
from tests.interop.sidebyside.crawls import Records, by_us, crawl, differences, stored
from tests.interop.sidebyside.jobs import INDEX, all_jobs
from tests.interop.sidebyside.web import SideWeb


def test_a_seed_has_one_web_and_one_configuration() -> None:
    webs = [SideWeb(1), SideWeb(1), SideWeb(1, visit=1), SideWeb(2)]
    pages = [[web.page(web.hosts[0], f"/p{n}") for n in range(30)] for web in webs]
    assert pages[0] == pages[1]
    assert 0 < sum(map(bytes.__ne__, pages[0], pages[2])) < 15
    assert sum(map(bytes.__ne__, pages[0], pages[3])) > 15
    assert SideConfiguration.drawn(1) == SideConfiguration.drawn(1) != SideConfiguration.drawn(2)


def test_what_differs_is_found() -> None:
    theirs: Records = {"crawldb": {"http://a/": ["1"], "http://b/": ["2"]}, "linkdb": {}}
    assert not list(differences(theirs, theirs))
    assert list(differences(theirs, {"crawldb": {"http://b/": ["3"]}})) == [
        "crawldb: 2 of 2 URLs differ",
        "  http://a/\n    Nutch   ['1']\n    minutch None",
        "  http://b/\n    Nutch   ['2']\n    minutch ['3']",
        "linkdb: only Nutch has it",
    ]


@pytest.mark.slow  # two crawls
def test_two_crawls_are_equal_but_for_their_moment(tmp_path: Path) -> None:
    configuration = SideConfiguration.drawn(2)
    configuration.write(tmp_path / "rules")
    found = []
    with SideWeb(2) as web:
        step = by_us(tmp_path / "rules", configuration.properties(web.port))
        for name in ("a", "b"):
            assert not crawl(web, tmp_path / name, configuration, step)
            found.append(stored(tmp_path / name))
    assert not list(differences(found[0], found[1]))
    assert len(found[0]["crawldb"]) > 40 and len(found[0]["1.parse_data"]) > 5
    later = configuration.indexing(2, tmp_path / "jobs" / INDEX)
    later.write(tmp_path / "rules")
    ours = {name: by_us(tmp_path / "rules", later.properties(web.port)) for name in ("c", "d")}
    made = all_jobs(tmp_path / "a", tmp_path / "jobs", 2, ours)
    assert not made["c"][0] and made["c"] == made["d"]
    assert len(made["c"][1]["out/index/nutch.csv"]) > 20 and made["c"][1]["hostdb"]
    shown = "".join(text for urls in found[0].values() for texts in urls.values() for text in texts)
    assert "Status: 2 (db_fetched)\nFetch time: in 720 h\n" in shown
    assert not re.search(r"time: .* 20\d\d\n|nutch.segment.name ?= ?\d", shown)


@pytest.mark.slow
@pytest.mark.skipif("NUTCH_HOME" not in os.environ, reason="NUTCH_HOME is not set")
@pytest.mark.parametrize("seed", [2, 13, 16])
def test_nutch_stores_the_same(tmp_path: Path, seed: int) -> None:
    count, found = side_by_side(Path(os.environ["NUTCH_HOME"]), tmp_path, seed)
    assert count > 50 and not found
