"""The table `rights`, and what is refused of a crawl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import minutch
from minutch.cycle.segment.store import CONTENT, PARSE_DATA, Segment, part_writer
from minutch.inspect.query.rights import refusals
from minutch.records.metadata import RESPONSE_CODE_KEY, Metadata
from minutch.records.parsedata import SUCCESS, ParseData, ParseStatus
from minutch.records.protocol import Content

Words = Mapping[str, Sequence[str]]
FIRST, SECOND, THIRD = "20260101000000", "20260102000000", "20260103000000"


def write(
    crawl: Path,
    name: str,
    pages: Mapping[str, tuple[Words, Words]],
    files: Mapping[str, Content] | None = None,
) -> None:
    """Writes a segment: pages with header fields and elements, files of hosts."""
    segment = Segment(crawl / "segments" / name)
    with part_writer(segment.path, PARSE_DATA, 0) as append:
        for url, (headers, elements) in sorted(pages.items()):
            data = ParseData(ParseStatus(SUCCESS), url)
            for found, metadata in ((headers, data.content_meta), (elements, data.parse_meta)):
                for key, values in found.items():
                    for value in values:
                        metadata.add(key, value)
            append(url, data)
    with part_writer(segment.path, CONTENT, 0) as append:
        for url, content in sorted((files or {}).items()):
            content.url = url
            append(url, content)


def file(text: str, code: str = "200", **headers: str) -> Content:
    metadata = Metadata()
    metadata.set(RESPONSE_CODE_KEY, code)
    for name, value in headers.items():
        metadata.set(name, value)
    return Content("", "", text.encode(), "text/plain", metadata)


def test_words_of_headers_elements_and_files_are_statements(tmp_path: Path) -> None:
    pages: dict[str, tuple[Words, Words]] = {
        "http://a.org/": ({"content-usage": ["train-ai=n", "search=y"]}, {}),
        "http://a.org/b": ({"TDM-Reservation": ["1"]}, {"tdm-reservation": ["0"]}),
        "http://a.org/c": ({"X-Robots-Tag": ["noai"]}, {"pagedata.license": ["http://l/"]}),
        "http://a.org/d": ({}, {"robots": ["noimageai"], "pagedata.json-ld": ['{"license":"u"}']}),
        "http://a.org/e": ({"Link": ["<l>; rel=license"]}, {"me": ["noai"]}),
    }
    files = {
        "http://a.org/.well-known/tdmrep.json": file('[{"location": "/", "tdm-reservation": 1}]'),
        "http://a.org/robots.txt": file("User-agent: GPTBot\nDisallow: /e"),
    }
    write(tmp_path, FIRST, pages, files)
    crawl = minutch.open(tmp_path, conf={"http.agent.name": "Me"})
    rows = crawl.sql(
        "select url[13:], mechanism::text, use::text, verdict::text, statement, source, agent"
        " from rights where use = 'training' order by all"
    ).rows()
    tdm = ("tdmrep", "training", "refused", "tdm-reservation: 1")
    well_known = "http://a.org/.well-known/tdmrep.json rule 1"
    assert rows == sorted(
        [
            (
                *("/", "content-usage", "training", "refused", "train-ai=n, search=y"),
                *("header Content-Usage", "*"),
            ),
            ("/", *tdm, well_known, "*"),
            (
                *("/b", "tdmrep", "training", "allowed", "tdm-reservation: 0"),
                *("meta tdm-reservation", "*"),
            ),
            ("/c", "robots-directive", "training", "refused", "noai", "header X-Robots-Tag", "*"),
            ("/c", "license", "training", "unsaid", "http://l/", "rel=license", "*"),
            ("/c", *tdm, well_known, "*"),
            ("/d", "robots-directive", "training", "refused", "noimageai", "meta robots", "*"),
            ("/d", "license", "training", "unsaid", "license: u", "JSON-LD", "*"),
            ("/d", *tdm, well_known, "*"),
            ("/e", "robots-directive", "training", "refused", "noai", "meta me", "*"),
            ("/e", "license", "training", "unsaid", "l", "header Link", "*"),
            ("/e", *tdm, well_known, "*"),
            (
                *("/e", "robots.txt", "training", "refused", "Disallow: /e"),
                *("http://a.org/robots.txt line 2", "GPTBot"),
            ),
        ]
    )
    assert crawl.sql("select distinct host, segment from rights").rows() == [("a.org", FIRST)]
    one = crawl.sql("select count(*) from rights where url = 'http://a.org/b'")
    assert one.item() == 2


def test_the_robots_txt_that_was_current_at_the_fetch_counts(tmp_path: Path) -> None:
    """draft-ietf-aipref-attach, 3.3: updates do not apply to what was fetched before."""
    page: dict[str, tuple[Words, Words]] = {"http://a.org/": ({}, {}), "http://b.org/": ({}, {})}
    robots = "http://a.org/robots.txt", "http://b.org/robots.txt"
    text = "User-agent: *\nContent-Usage: train-ai=%s"
    write(tmp_path, FIRST, page, {robots[0]: file(text % "n")})
    write(tmp_path, SECOND, page)
    write(tmp_path, THIRD, page, {robots[0]: file(text % "y"), robots[1]: file(text % "n")})
    found = minutch.open(tmp_path).sql(
        "select host, segment, verdict::text from rights where host = 'a.org' order by segment"
    )
    assert found.rows() == [
        ("a.org", FIRST, "refused"),
        ("a.org", SECOND, "refused"),
        ("a.org", THIRD, "allowed"),
    ]
    later = minutch.open(tmp_path).sql(
        "select distinct verdict::text from rights where host='b.org'"
    )
    assert later.rows() == [("refused",)]  # none is left from before
    assert refusals(minutch.open(tmp_path), "training")["url"].to_list() == ["http://b.org/"]
    assert refusals(minutch.open(tmp_path), "search").is_empty()


def test_files_of_hosts_are_followed_through_redirects_and_are_answers(tmp_path: Path) -> None:
    hosts = ("moved.org", "missing.org", "loop.org", "old.org")
    robots = {host: f"http://{host}/robots.txt" for host in hosts}
    text = "User-agent: *\nContent-Signal: ai-train=no"
    files = {
        robots["moved.org"]: file("see there", "301", Location="https://www.moved.org/r.txt"),
        "https://www.moved.org/r.txt": file(text),
        robots["missing.org"]: file(text, "404"),
        robots["loop.org"]: file("", "302", Location="/robots.txt"),
        robots["old.org"]: Content("", "", text.encode(), "text/plain"),  # Nutch notes no code
    }
    write(tmp_path, FIRST, {f"http://{host}/": ({}, {}) for host in hosts}, files)
    found = refusals(minutch.open(tmp_path))
    assert found.columns == ["url", "mechanism", "statement", "source", "agent"]
    assert dict(found.select("url", "source").rows()) == {
        "http://moved.org/": "https://www.moved.org/r.txt line 2",
        "http://old.org/": "http://old.org/robots.txt line 2",
    }


def test_of_a_page_that_was_parsed_again_the_newest_words_count(tmp_path: Path) -> None:
    write(tmp_path, FIRST, {"http://a.org/": ({"tdm-reservation": ["1"]}, {})})
    crawl = minutch.open(tmp_path)
    found = refusals(crawl, "any")
    assert found["mechanism"].to_list() == ["tdmrep"]
    assert found["agent"].to_list() == ["*"]
    write(tmp_path, SECOND, {"http://a.org/": ({}, {})})
    assert refusals(crawl, "any").is_empty()
    assert crawl.sql("select count(*) from rights").item() == 2
