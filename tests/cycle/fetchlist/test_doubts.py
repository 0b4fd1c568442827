"""Names that seldom lead to new pages come later, and are read like others where they do."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from minutch.conf import Configuration
from minutch.cycle.fetchlist import due
from minutch.cycle.fetchlist.generate import generate
from minutch.cycle.fetchlist.selector import GenerateOptions
from minutch.errors import ConfigError
from minutch.inspect.explain.explainer import explain
from minutch.job import JobContext
from minutch.records.crawldatum import STATUS_DB_FETCHED, STATUS_DB_UNFETCHED, CrawlDatum
from minutch.urls.patterns import DOUBTS, LEVELS, Doubts
from tests.benchmarks.traps import drawn, web
from tests.benchmarks.traps.columns import ColumnCrawl
from tests.support.crawldbs import NOW, write_db

_SHIPPED = Doubts.of(Configuration().with_values({DOUBTS: "doubtful-names.txt"}))
_DAY = 86_400


@pytest.mark.parametrize(
    ("url", "kind", "common"),
    [
        ("http://a.example/list?page=2&SORT=up", "orders", "names"),
        ("http://a.example/list;sort=up", "orders", "names"),
        ("http://a.example/list?sort", "orders", "names"),
        ("http://a.example/print/item/7", "shown", "first directory"),
        ("http://a.example/item/print/7", "shown", "directory"),
        ("http://a.example/item/Print.php?id=7", "shown", "path"),
        ("http://a.example/print?sort=up", "orders", "names"),
        ("http://print/sorted?x=sort#print", "", ""),
        ("http://a.example/printing/sort", "", ""),
    ],
)
def test_names_in_urls(url: str, kind: str, common: str) -> None:
    """A name tells nothing of a level whose URLs all have it: what these gave is known."""
    doubts = Doubts("orders ? sort\n# a comment\nshown / print\n\nshown ? print")
    for number, level in enumerate(LEVELS):
        rows = doubts.within(pl.Series([url, None]), np.full(2, number, np.uint8))
        found = [doubts.kinds[at] for at in rows["kind"]]
        is_within = number >= LEVELS.index(common or "host")
        if common == "names":
            is_within = level in ("names", "pattern")
        if (kind, common) == ("orders", "names") and "/print" in url and level == "names":
            assert found == ["shown"]  # the other name is not of all these
        else:
            assert found == ([] if is_within or not kind else [kind]), level


def test_a_file_that_says_something_else() -> None:
    with pytest.raises(ConfigError, match=r"sort order: neither \? nor / after a kind"):
        Doubts("sort order")
    assert Doubts.of(Configuration().with_values({"generate.pattern.doubts": " "})).kinds == [""]


def test_all_doubtful_names_are_read_where_they_have_pages() -> None:
    """Each of the shipped names has five pages of its own, and is what leads there."""
    lists = dict[str, list[str]]()
    for sign in "?/":
        for name in (one[1:] for one in _SHIPPED.names if one[0] == sign):
            some = [f"/{name}/{n}" if sign == "/" else f"/list?{name}={n}" for n in range(5)]
            lists[f"/of/{'names' if sign == '?' else 'parts'}/{name}"] = some
    pages = {page for some in lists.values() for page in some}

    def site(path: str, query: dict[str, str]) -> web.Page:
        target = path + "".join(f"?{name}={value}" for name, value in query.items())
        links = [*lists] if target == "/" else lists.get(target, [])
        known = target == "/" or target in lists or target in pages
        return web.honest_page("doubted", target, *links) if known else web.NOT_FOUND

    crawl = ColumnCrawl({"doubted.com": site}, 20)
    while crawl.round():
        assert crawl.rounds < 60  # 43; without the names 12
    assert crawl.good.total() == 1 + len(lists) + len(pages) > 1000


def test_pages_of_drawn_sites_are_found_by_fewer_requests() -> None:
    """The same seed draws the same; with other names the sites have the same pages."""
    some, other = drawn.sites(3, 4), drawn.sites(3, 4, "swapped")
    counts = [len(web.contents_of(site)) for site in some.values()]
    assert counts == [len(web.contents_of(site)) for site in drawn.sites(3, 4).values()]
    assert counts == [len(web.contents_of(site)) for site in other.values()]
    assert min(counts) >= 20 and max(counts) <= 200
    found = [list(drawn.found_of(some, has_doubts=has)) for has in (False, True)]
    assert found[0][-1] == found[1][-1] == sum(counts)
    assert found[1][0] > found[0][0]


def test_links_to_hosts_outside_the_web_are_left() -> None:
    page = web.honest_page("a", "home", "//b.example/", "/?id=1")
    crawl = ColumnCrawl({"a.example": lambda path, query: page}, 20)
    assert (crawl.round(), sorted(crawl.entries)) == (
        1,
        ["http://a.example/", "http://a.example/?id=1"],
    )


def test_explain_says_that_a_name_is_doubted(tmp_path: Path) -> None:
    def datum(signature: bytes | None) -> CrawlDatum:
        found = CrawlDatum(STATUS_DB_UNFETCHED if signature is None else STATUS_DB_FETCHED)
        found.fetch_interval, found.signature = 30 * _DAY, signature
        found.fetch_time = NOW - _DAY * 1000 + (signature is not None) * 30 * _DAY * 1000
        return found

    site = "http://a.example"
    entries = {f"{site}/item?id={n}": datum(b"item %d" % n if n < 30 else None) for n in range(90)}
    entries |= {f"{site}/{n}x/print": datum(None) for n in range(9)}
    write_db(tmp_path / "crawldb", sorted(entries.items()))
    given = {"generate.pattern.budget": "20", "generate.curTime": str(NOW)}
    given |= {"urlfilter.regex.rules": "+."}
    taken = list[tuple[int, int]]()
    for doubts in ({}, {DOUBTS: ""}):
        conf = Configuration.load([], overrides={**given, **doubts})
        context = JobContext(conf, out=io.StringIO(), err=io.StringIO())
        folder = tmp_path / f"segments{len(taken)}"
        made = generate(tmp_path / "crawldb", folder, GenerateOptions(), context=context)
        taken.append((made.counters[due.PATTERN], made.counters["selected_total"]))
        if not doubts:
            verdicts = [explain(tmp_path, f"{site}/{n}x/print", context=context) for n in range(2)]
            texts = [one.generate.text for one in verdicts if one.generate is not None]
            said = "what names call shown on a.example, little of which is new elsewhere"
            assert any(f"{said} (generate.pattern.doubts), has given 0 new" in one for one in texts)
    assert taken == [(53, 16), (45, 24)]  # eight of nine wait
