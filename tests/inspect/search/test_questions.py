"""Ranking: which page comes first. Each rule on a few pages, and 128 questions on documentation of
Debian's, crawled as a new crawl is.

The questions need the packages apache2-doc, python3-doc and sqlite3-doc, installed or unpacked
below $MINUTCH_TEST_DOCS.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from minutch.conf import Configuration
from minutch.inspect.search.results import SearchOptions
from minutch.inspect.search.searcher import Searcher, searcher_of
from minutch.inspect.search.snippets import frame_of, own_text
from tests.support.golden import PROJECT
from tests.support.indexedcrawl import IndexedCrawl, Page

FILLER = "Some words that all pages have and nobody looks for. "


def searcher(folder: Path, *pages: Page) -> Searcher:
    crawl = IndexedCrawl(folder)
    crawl.segment("20240101000000", pages)
    crawl.invert()
    crawl.index()
    return Searcher(crawl.index_folder)


def page(name: str, title: str = "", text: str = "", **values: object) -> Page:
    return Page(f"http://a.org/{name}", title, FILLER + text, **{"lang": "en", **values})  # type: ignore[arg-type]


def order(found: Searcher, query: str) -> list[str]:
    return [hit.url.removeprefix("http://a.org/") for hit in found.search(query).hits]


def test_words_are_found_in_all_their_forms_in_text_title_url_and_anchors(tmp_path: Path) -> None:
    found = searcher(
        tmp_path,
        page("text", text="partitioning disks"),
        page("title", "Partitioned disks"),
        page("partitions-disk"),
        page("anchor"),
        page("unknown", text="partition disk", lang=""),
        page("from", links=[("http://a.org/anchor", "partitions of a disk")]),
    )
    every = ["anchor", "partitions-disk", "text", "title", "unknown"]
    assert sorted(order(found, "partition disk")) == every
    assert sorted(order(found, "url:partition")) == ["partitions-disk"]
    assert sorted(order(found, "anchor:partition")) == ["anchor"]


def test_title_anchor_and_url_weigh_more_than_the_text(tmp_path: Path) -> None:
    found = searcher(
        tmp_path,
        page("text", text="lighthouse"),
        page("title", "Lighthouse"),
        page("anchor", text="lighthouse"),
        page("lighthouse", text="lighthouse"),
        page("from", links=[("http://a.org/anchor", "lighthouse")]),
        *(page(f"other{n}", "Another", "more words") for n in range(20)),
    )
    assert order(found, "lighthouse")[0] == "title"
    assert order(found, "lighthouse")[-1] == "text"


def test_words_near_each_other_weigh_more(tmp_path: Path) -> None:
    found = searcher(
        tmp_path,
        page("apart", text=f"load; {FILLER} balance; {FILLER} load; {FILLER} balance"),
        page("near", text="the load of the balance; other goods; " + FILLER),
        *(page(f"other{n}", text="goods") for n in range(10)),
    )
    assert order(found, "load balance") == ["near", "apart"]


def test_of_many_words_most_are_needed_and_stop_words_never(tmp_path: Path) -> None:
    found = searcher(
        tmp_path,
        page("two", text="how a harbour has its lighthouse"),
        page("most", text="harbour lighthouse keeper"),
        page("all", text="harbour lighthouse keeper wages"),
        page("stop", text="how do I get what"),
    )
    assert order(found, "harbour lighthouse keeper wages") == ["all", "most"]
    assert order(found, "how do I get wages") == ["all"]
    assert order(found, "keeper wages") == ["all"]
    assert order(found, "how do I") == ["stop"]
    assert order(found, "harbour lighthouse keeper +wages") == ["all"]
    assert order(found, "harbour AND lighthouse AND keeper AND wages") == ["all"]
    assert sorted(order(found, '"a harbour" how')) == ["two"]


def test_a_page_that_is_called_as_the_query_comes_first(tmp_path: Path) -> None:
    """`oil lamps` was first found where many links had its words among others."""
    anchors = [f"{word} {n}" for n in range(9) for word in ("oil", "lamps", "oil and lamps")]
    found = searcher(
        tmp_path,
        page("lists", text="oil lamps " * 9),
        page("named", text="oil lamps"),
        page("from", links=[("http://a.org/named", "Oil lamps")]),
        page("other", links=[("http://a.org/lists", anchor) for anchor in anchors]),
        *(page(f"other{n}", "Another", "more words") for n in range(20)),
    )
    assert order(found, "oil lamp") == ["named", "lists"]


def test_pages_of_hits_follow_each_other(tmp_path: Path) -> None:
    """Hits that are put into order again are found once, on whatever page of the results."""
    found = searcher(tmp_path, *(page(f"{n}", f"Boat {n}" * (n % 3)) for n in range(70)))
    pages = [found.search("words", SearchOptions(offset=at)).hits for at in range(0, 70, 10)]
    assert len({hit.url for hits in pages for hit in hits}) == 70


def test_few_pages_in_a_language_do_not_come_first_for_it(tmp_path: Path) -> None:
    """A word is as rare as it is in all languages. The only German page had the only `server` of
    its language, and was first for it.
    """
    found = searcher(
        tmp_path,
        page("de", text="Der Server. Ein anderer Text. " * 2, lang="de"),
        *(page(f"en{n}", text="server " * 9) for n in range(40)),
        *(page(f"other{n}", text="client") for n in range(40)),
    )
    assert order(found, "server")[0].startswith("en")
    assert found.search("server").count == 41


def test_snippets_are_of_the_pages_own_text(tmp_path: Path) -> None:
    menu = "Home\nDownload\nharbour\n"
    notice = "This site uses biscuits to make every visit to a harbour a little better for you.\n"
    text = "boats lie in the harbour of this town, as they have for many hundred years"
    texts = [f"Harbour {n}\n{menu}{notice}{n} {text}.\nImprint\nharbour" for n in range(4)]
    found = searcher(
        tmp_path, *(Page(f"http://a.org/{n}", "", text) for n, text in enumerate(texts))
    )
    for hit in found.search("harbour").hits:
        shown = "".join(text for text, _ in hit.snippet)
        assert shown.startswith(f"{hit.url[-1]} boats lie in the harbour")
        assert not shown.endswith("…")


def test_own_text_of_pages_that_have_no_sentences() -> None:
    listed = "\n".join(f"item {n}" for n in range(40))
    assert own_text(listed) == listed
    assert own_text(f"{listed}\n{'A long line at the end, such as that of a footer. ' * 2}") != ""
    assert "item 7" in own_text(
        f"{listed}\n{'A long line at the end, of a footer, not more. ' * 2}"
    )
    assert own_text("a\nb", frame_of(["a\nb"] * 3)) == "a\nb"  # it is all that there is


def test_a_new_crawl_knows_its_pages_languages() -> None:
    conf = Configuration.load([], profile="web").freeze()
    assert "language-identifier" in conf.get("plugin.includes", "")


# -- the questions ---------------------------------------------------------------------------------

ROOT = Path(os.environ.get("MINUTCH_TEST_DOCS", "/"))
PLACES = {
    "apache2/en": "apache2-doc/manual/en",
    "apache2/de": "apache2-doc/manual/de",
    "apache2/fr": "apache2-doc/manual/fr",
    "apache2/style": "apache2-doc/manual/style",
    "python": "python3*/html",
    "sqlite": "sqlite3",
}
PAGES = {"python": "py-modindex.html", "sqlite": "lang.html"}
"""Who else has such a folder (python3-pip, sqlite3) has no such page."""
FOUND = {
    name: next((found.parent for found in ROOT.glob(f"usr/share/doc/{place}/{page}")), None)
    for name, place in PLACES.items()
    for page in [PAGES.get(name, "*")]
}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None: ...


@pytest.fixture
def documentation(tmp_path: Path) -> Iterator[str]:
    """A site with all of the documentation."""
    for name, place in FOUND.items():
        assert place is not None
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).symlink_to(place.resolve())
    starts = ("apache2/en", "python", "sqlite")
    links = "".join(f'<a href="{start}/index.html">{start}</a>' for start in starts)
    (tmp_path / "index.html").write_text(f"<html lang=en><title>Documentation</title>{links}")
    handler = partial(Quiet, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.slow
@pytest.mark.skipif(None in FOUND.values(), reason="the documentation packages are not here")
def test_questions_on_documentation(documentation: str, tmp_path: Path) -> None:
    """Of the first 40, at least 34 right pages come first, and 38 among the first five. Of all 128,
    102 and 117 do; 92 and 115 did when all words were required.
    """
    options = {"fetcher.server.delay": "0", "http.filter.ipaddress.include": "loopback"}
    given = [word for name, value in options.items() for word in ("-D", f"{name}={value}")]
    command = [sys.executable, "-m", "minutch", "crawl", "--index", "--agent", "test", *given]
    crawled = [*command, documentation, str(tmp_path / "crawl")]
    subprocess.run(crawled, cwd=PROJECT, capture_output=True, timeout=900, check=True)
    table = (Path(__file__).parent / "questions.tsv").read_text(encoding="utf-8")
    asked = searcher_of(tmp_path / "crawl")
    places: dict[str, int] = {}
    for row in table.splitlines():
        if row.startswith("#"):
            continue
        question, _, right = row.partition("\t")
        found = [urlsplit(hit.url).path.strip("/") for hit in asked.search(question).hits]
        is_right = [any(fnmatch(path, one) for one in right.split()) for path in found]
        places[question] = is_right.index(True) + 1 if True in is_right else 99
    others = {question: place for question, place in places.items() if place > 1}
    assert len(places) == 128
    for some, first, early in ((40, 34, 38), (128, 98, 113)):
        found_at = list(places.values())[:some]
        assert sum(place == 1 for place in found_at) >= first, others
        assert sum(place <= 5 for place in found_at) >= early, others
