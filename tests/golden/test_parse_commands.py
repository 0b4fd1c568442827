"""Repeats `parse` with all parse plugins: tika, feed, creativecommons, microformats-reltag,
headings, metatags, js, zip.

Compares runs of real Nutch on the content of the golden crawls record by record,
but for the language of
texts that say none: Nutch asks Optimaize, minutch py3langid, and a page without any is not given an
empty one.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.parse.parsesegment import parse
from minutch.cycle.segment.store import CONTENT, PARSE_DATA, PARSE_TEXT, Segment
from minutch.job import JobContext
from tests.golden.test_parse_golden import (
    OTHER_TEXT,
    beside_hostless,
    by_url,
    crawl_fields,
    data_fields,
)
from tests.support.golden import GOLDEN, needs_golden

LANGUAGE = "language"
CASES = [("rich", 0), ("rich", 1), ("rich", 2), ("default", 1)]

DIFFERENT = {
    ("default", "/doc.pdf"): "a PDF without a page: PDFBox takes it, PDFium refuses it",
    ("default", "/data.json"): "JSON is text here; Tika has no parser for it",
    ("default", "/feed.xml"): "the text of a feed by Tika has its title twice",
    ("default", "/plain.txt"): "Tika ends text by a line end",
}
"""Crawl and path of a page → why it differs as a whole, or in its text."""


def parsed(crawl: str, number: int, folder: Path) -> tuple[Segment, Segment]:
    """Nutch's segment and ours."""
    case = GOLDEN / "commands" / "parse" / f"{crawl}-all-{number}" / "segments"
    golden = Segment(next(case.iterdir()))
    ours = Segment(folder / golden.name)
    fetched = GOLDEN / f"crawl-small/run-{crawl}-r2/crawl/segments" / golden.name
    shutil.copytree(fetched / CONTENT, ours.path / CONTENT)
    folders = [GOLDEN / "commands/conf/reparse", GOLDEN / f"crawl-small/conf-{crawl}"]
    values = {"parser.character.encoding.detect": "false", "http.store.etag": "false"}
    parse(
        ours.path,
        context=JobContext(Configuration.load(folders, overrides=values).freeze(), FakeClock(0)),
    )
    return golden, ours


@needs_golden("commands/parse/{crawl}-all-{number}", "commands/conf/reparse")
@pytest.mark.parametrize(("crawl", "number"), CASES)
def test_all_parse_plugins(crawl: str, number: int, tmp_path: Path) -> None:
    golden, ours = parsed(crawl, number, tmp_path)
    assert fields(ours, crawl) == fields(golden, crawl)
    if crawl == "rich":
        shared = beside_hostless(golden)
        assert crawl_fields(ours, shared) == crawl_fields(golden, shared)


def fields(segment: Segment, crawl: str) -> dict[str, Any]:
    """Each page's parse and text, without those that differ; of the language only whether there is
    one.
    """
    texts = {url: found[0].text for url, found in by_url(segment, PARSE_TEXT).items()}
    pages = {}
    for url, (data,) in by_url(segment, PARSE_DATA).items():
        path = "/" + url.partition("//")[2].partition("/")[2]
        if (crawl, path) in DIFFERENT:
            continue
        found = data_fields(data)
        found["parse metadata"][LANGUAGE] = any(
            found["parse metadata"].get(LANGUAGE, ())
        )  # Nutch: "" for none
        pages[url] = (found, None if path in OTHER_TEXT else texts[url])
    return pages
