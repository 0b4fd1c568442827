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
from tests.support.misbehaving import MisbehavingServer, page
from tests.support.segments import conf_for, fetch_segment, make_segment

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
        "http://a.org/b.pdf": ({"TDM-Reservation": ["0"]}, {"tdm:reservation": ["1"]}),
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
            ("/b.pdf", *tdm, "metadata tdm:reservation", "*"),
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


def test_a_page_of_each_mechanism_is_fetched_and_parsed(tmp_path: Path) -> None:
    robots = (
        "Content-Signal: search=yes\n"  # contentsignals.org, above the first group
        "User-agent: *\nContent-Usage: /usage train-ai=n\n"  # draft-ietf-aipref-attach, 3
        "User-agent: GPTBot\nDisallow: /agent\n"  # RFC 9309
    )
    html = "Content-Type: text/html"
    more: dict[str, tuple[str, tuple[str, ...]]] = {
        "usage": ("", ()),
        "agent": ("", ()),
        "file": ("", ()),  # TDM Reservation Protocol, its three places
        "header": ("", ("tdm-reservation: 0", "Content-Usage: train-ai=y, search=n")),
        "meta": ('<meta name="TDM-Reservation" content=0>', ("tdm-reservation: 1",)),
        "noai": ('<meta name=robots content="noai, noimageai">', ()),  # DeviantArt
        "tag": ("", ("X-Robots-Tag: noai",)),
        "license": ("<link rel=license href=/l>", ('Link: </m>; rel="license"',)),
        "data": ('<script type=application/ld+json>{"license": "u"}</script>', ()),
    }
    with MisbehavingServer() as server:
        for name, (head, headers) in more.items():
            body = f"<html><head>{head}</head><body>text</body></html>".encode()
            server.pages[f"/{name}"] = page(body, html, *headers)
        server.pages["/robots.txt"] = page(robots.encode(), "Content-Type: text/plain")
        rules = b'[{"location": "/file", "tdm-reservation": 1}]'
        server.pages["/.well-known/tdmrep.json"] = page(rules, "Content-Type: application/json")
        segment = make_segment(tmp_path, [server.url(name) for name in more])
        kept = {"fetcher__store__robotstxt": "true", "fetcher__tdmrep": "true"}
        plugins = "protocol-http|parse-(html|pagedata)|urlnormalizer-basic|scoring-opic"
        conf = conf_for(fetcher__parse="true", plugin__includes=plugins, **kept)
        fetch_segment(segment, conf)
        start = len(server.url(""))
    rows = minutch.open(tmp_path).sql(
        "select url, mechanism::text, use::text, verdict::text, agent from rights"
        " where source not like '%line 1'"
    )
    found: dict[str, set[tuple[str, ...]]] = {}
    for url, *words in rows.rows():
        found.setdefault(url[start:], set()).add(tuple(words))
    mined = ("training", "input")
    refused, allowed = (
        {("tdmrep", use, verdict, "*") for use in mined} for verdict in ("refused", "allowed")
    )
    unsaid = {("license", use, "unsaid", "*") for use in ("training", "input", "search")}
    noai = {("robots-directive", use, "refused", "*") for use in mined}
    usage = {
        ("content-usage", *words, "*") for words in (("training", "allowed"), ("search", "refused"))
    }
    assert found == {
        "usage": {("content-usage", "training", "refused", "*")},
        "agent": {("robots.txt", "training", "refused", "GPTBot")},
        "file": refused,
        "header": allowed | usage,
        "meta": allowed,
        "noai": noai,
        "tag": noai,
        "license": unsaid,
        "data": unsaid,
    }
    every = minutch.open(tmp_path).sql("select count(*) from rights where source like '%line 1'")
    assert every.item() == len(more)


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
