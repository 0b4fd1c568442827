"""parse as Nutch ran it with parse-tika alone, page by page; the reason stands beside each that
comes out otherwise.

Tika's own metadata are left out, which no other parser can know, and languages, which tests/plugins
compare.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.parse.parsesegment import parse
from minutch.cycle.segment.store import CONTENT, PARSE_DATA, PARSE_TEXT, Segment
from minutch.job import JobContext
from minutch.records.parsedata import ParseData, ParseText
from tests.golden.test_fetch import SMALL
from tests.golden.test_parse_golden import by_url, data_fields
from tests.support.golden import needs_golden
from tests.support.nutchruns import NutchRun

LEFT_OUT: Final = "creativecommons|language-identifier|"
PDF, JSON = "/doc.pdf", "/data.json"
OTHERWISE: Final = {
    PDF: "a PDF without a page: PDFBox takes it, PDFium refuses it",
    JSON: "Nutch has no parser for JSON; its text is taken as it is",
    "/feed.xml": "Nutch's text of a feed has the markup inside its descriptions",
    "/plain.txt": "metadata of Tika's own, which parse-metatags copies",
    "/wrongtype.html": (
        "binary data sent as HTML: browsers drop NULs from text, NekoHTML keeps them"
    ),
    "/anchors.html": "TagSoup puts no line break between two elements in a link",
    "/bom.html": "TagSoup keeps the byte order mark",
    "/broken.html": "TagSoup mends markup in another way than browsers",
    "/conflict.html": "Tika trusts the header before the meta element",
    "/forms.html": "TagSoup leaves out the values of form fields",
    "/frames.html": "TagSoup drops framesets",
    "/nocharset.html": "Tika guesses the charset of a page that does not name it",
    "/refs.html": "TagSoup drops areas without a map",
    "/relnofollow.html": "Tika follows links marked nofollow",
}
CASES: Final = {
    "run-default-r2": ("default-tika-1",),
    "run-rich-r2": ("rich-tika-0", "rich-tika-1", "rich-tika-2"),
}
RUNS = [(crawl, case) for crawl, cases in CASES.items() for case in cases]


@needs_golden("commands/parse", "crawl-small/{crawl}/crawl/segments")
@pytest.mark.parametrize(("crawl", "case"), RUNS)
def test_pages_are_parsed_as_nutch_does(crawl: str, case: str, tmp_path: Path) -> None:
    nutch = NutchRun(f"parse/{case}")
    name = nutch.words[-1].rpartition("/")[2]
    ours, theirs = Segment(tmp_path / name), Segment(nutch.folder / "segments" / name)
    shutil.copytree(SMALL / crawl / "crawl/segments" / name / CONTENT, ours.path / CONTENT)
    conf = _without_languages(
        nutch.conf(parser__character__encoding__detect="false", http__store__etag="false")
    )
    parse(ours.path, context=JobContext(conf.freeze(), FakeClock(0)))
    assert set(by_url(ours, PARSE_DATA)) == set(by_url(theirs, PARSE_DATA))
    assert {urlsplit(url).path for url in _different(ours, theirs)} <= set(OTHERWISE)


def _without_languages(conf: Configuration) -> Configuration:
    return conf.with_values(
        {"plugin.includes": (conf.get("plugin.includes") or "").replace(LEFT_OUT, "")}
    )


def _different(ours: Segment, theirs: Segment) -> Iterator[str]:
    data, other_data = by_url(ours, PARSE_DATA), by_url(theirs, PARSE_DATA)
    text, other_text = by_url(ours, PARSE_TEXT), by_url(theirs, PARSE_TEXT)
    for url in data:
        same_data = _fields(data[url]) == _fields(other_data[url])
        if not same_data or _words(text.get(url, [])) != _words(other_text.get(url, [])):
            yield url


def _fields(found: list[ParseData]) -> list[dict[str, Any]]:
    fields = [data_fields(data) for data in found]
    for each in fields:
        each["content metadata"].pop("nutch.fetch.time", None)
        del each["parse metadata"]
    return fields


def _words(found: list[ParseText]) -> list[list[str]]:
    return [parsed.text.split() for parsed in found]
