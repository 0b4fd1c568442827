"""Indexing filters that add fields of metadata, links, hosts and words of the configuration; one
property at a time.
"""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.plugin.chains import IndexingFilters
from minutch.records.document import Date
from minutch.urls.javaregex import JavaRegex
from tests.support.documents import Fields, Made, documents_of
from tests.support.examples import tabled


def fields(
    plugin: str, *made: Made, folder: Path | None = None, **properties: str
) -> list[Fields | None]:
    """The fields that a plugin adds to each page."""
    return documents_of(conf_for(plugin, folder, **properties), *made)


def conf_for(plugin: str, folder: Path | None = None, **properties: str) -> Configuration:
    values = {name.replace("__", "."): value for name, value in properties.items()}
    return Configuration.load(
        [folder] if folder else [], overrides={"plugin.includes": plugin} | values
    )


# -- index-metadata --------------------------------------------------------------------------------

TAGGED = Made(
    fetch={"cat": " sport ", "empty": "  "},
    parse={"h1": ["One", "Two"], "keywords": "a; b;;c "},
    content={"Server": "s", "keywords": "d;e"},
)


@tabled(
    ("properties", "expected"),
    [
        ({}, {}),
        ({"index__db__md": "cat, empty,missing"}, {"cat": ["sport"]}),
        ({"index__parse__md": "h1"}, {"h1": ["One", "Two"]}),
        ({"index__content__md": "Server,server"}, {"Server": ["s"], "server": ["s"]}),
        ({"index__parse__md": "keywords"}, {"keywords": ["a; b;;c"]}),
        (
            {"index__parse__md": "keywords", "index__metadata__separator": ";"},
            {"keywords": ["a; b;;c"]},
        ),
        (
            {"index__parse__md": "keywords", "index__metadata__multivalued__fields": "keywords"},
            {"keywords": ["a; b;;c"]},
        ),
        (
            {
                "index__parse__md": "keywords",
                "index__content__md": "keywords",
                "index__metadata__separator": ";",
                "index__metadata__multivalued__fields": "h1, keywords",
            },
            {"keywords": ["a", "b", "c", "d", "e"]},
        ),
    ],
)
def test_metadata(properties: dict[str, str], expected: Fields) -> None:
    assert fields("index-metadata", Made(), TAGGED, **properties) == [{}, expected]


def test_headers_are_found_whatever_the_case_of_their_names() -> None:
    """RFC 9110, 5.1 (names) and 5.3 (fields of one name are one list, in order); HTTP/2 sends names
    in lower case (RFC 9113, 8.2.1), and Nutch's protocol-okhttp stores them so.
    """
    page = Made(content={"x-tag": ["a", "b"], "X-TAG": "c", "server": "s"})
    assert fields("index-metadata", page, index__content__md="X-Tag,Server") == [
        {"X-Tag": ["a", "b", "c"], "Server": ["s"]}
    ]
    page = Made(
        content={
            "content-type": "text/plain; charset=utf-8",
            "content-length": "7",
            "last-modified": "Thu, 01 Jan 1970 00:00:01 GMT",
            "content-disposition": 'attachment; filename="a.txt"',
            "content-language": "de",
        }
    )
    [found] = fields("index-more|language-identifier", page)
    assert found is not None
    assert found["lastModified"] == found["date"] == [Date(1000)]
    assert (found["contentLength"], found["title"]) == (["7"], ["a.txt"])
    assert (found["type"], found["lang"]) == (["text/plain", "text", "plain"], ["de"])


def test_a_separator_is_no_regular_expression() -> None:
    properties = {"index__metadata__separator": "|", "index__metadata__multivalued__fields": "k"}
    page = Made(parse={"k": "ab|cd"})
    assert fields("index-metadata", page, index__parse__md="k", **properties) == [
        {"k": ["ab", "cd"]}
    ]


# -- index-static ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, {}),
        ({"index__static": "a:b"}, {"a": ["b"]}),
        ({"index__static": " a : b  c ,d:e,d:f"}, {"a": ["b", "c"], "d": ["f"]}),
        (
            {"index__static": "a:b c;d:e", "index__static__fieldsep": ";"},
            {"a": ["b", "c"], "d": ["e"]},
        ),
        ({"index__static": "a=b:c", "index__static__keysep": "="}, {"a": ["b:c"]}),
        ({"index__static": "a:b c|d", "index__static__valuesep": "|"}, {"a": ["b c", "d"]}),
    ],
)
def test_static(properties: dict[str, str], expected: Fields) -> None:
    assert fields("index-static", Made(), Made("http://b.example/"), **properties) == [
        expected,
        expected,
    ]


def test_static_without_sense(caplog: pytest.LogCaptureFixture) -> None:
    assert fields("index-static", Made(), index__static="word,:value,a:b:c,name:,ok:1") == [
        {"ok": ["1"]}
    ]
    assert [text.rpartition("found ")[2] for text in caplog.messages if "index.static" in text] == [
        "'word'",
        "':value'",
        "'a:b:c'",
        "'name:'",
    ]


# -- index-links -----------------------------------------------------------------------------------

LINKED = Made(
    "http://A.example/",
    links=[
        "http://a.example/1",
        "http://B.example/2",
        "no URL",
        "http://b.example/3",
        "http://b.example/2",
    ],
    inlinks=[("http://a.example/x", ""), ("http://c.example/y", "y"), ("http://c.example/z", "z")],
)
OUT = ["http://a.example/1", "http://B.example/2", "http://b.example/3", "http://b.example/2"]
IN = ["http://a.example/x", "http://c.example/y", "http://c.example/z"]


@pytest.mark.parametrize(
    ("properties", "outlinks", "inlinks"),
    [
        ({}, OUT, IN),
        ({"index__links__outlinks__host__ignore": "true"}, OUT[1:], IN),
        ({"index__links__inlinks__host__ignore": "true"}, OUT, IN[1:]),
        (
            {"index__links__hosts__only": "true"},
            ["a.example", "b.example"],
            ["a.example", "c.example"],
        ),
    ],
)
def test_links(properties: dict[str, str], outlinks: list[str], inlinks: list[str]) -> None:
    found = fields("index-links", Made(), LINKED, **properties)
    assert found == [{}, {"outlinks": outlinks, "inlinks": inlinks} if inlinks else {}]


# -- mimetype-filter -------------------------------------------------------------------------------

TYPED = [
    Made("http://a.example/a.html"),
    Made("http://a.example/b", content={"Content-Type": "image/png"}),
    Made(
        "http://a.example/c",
        fetch={"Content-Type": "text/html; charset=x"},
        content={"Content-Type": "image/png"},
    ),
    Made("http://a.example/d", content={"Content-Type": "nonsense"}),
]


@pytest.mark.parametrize(
    ("file", "kept"),
    [
        ("types.txt", [False, True, False, False]),
        ("others.txt", [True, False, True, True]),
        ("empty.txt", [True, True, True, True]),
        ("", [True, True, True, True]),
    ],
)
def test_types(file: str, kept: list[bool], tmp_path: Path) -> None:
    (tmp_path / "types.txt").write_text("# pictures\n-\n\nimage/\n")
    (tmp_path / "others.txt").write_text("+ all but pictures\nimage/\n")
    (tmp_path / "empty.txt").write_text("")
    found = fields("mimetype-filter", *TYPED, folder=tmp_path, mimetype__filter__file=file)
    assert [one is not None for one in found] == kept


def test_the_file_of_types_that_is_shipped_lets_web_pages_pass() -> None:
    assert [one is not None for one in fields("mimetype-filter", *TYPED)] == [
        True,
        False,
        True,
        False,
    ]


def test_a_file_of_types_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match=r"gone\.txt: no such file"):
        fields("mimetype-filter", mimetype__filter__file="gone.txt")


# -- subcollection ---------------------------------------------------------------------------------

PARTS = """<subcollections>
<subcollection><name>news</name><id>n</id><whitelist>
  /news/
  /NEWS/
</whitelist><blacklist>draft</blacklist></subcollection>
<subcollection><name>a</name><id>a</id><key>site</key><whitelist>//a.example</whitelist></subcollection>
<subcollection><name>none</name><id>e</id><whitelist/></subcollection>
</subcollections>"""
URLS = [
    "http://a.example/news/1",
    "http://b.example/News/2",
    "http://b.example/news/draft",
    "http://b.example/NEWS/3",
]


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, [{"site": ["a"], "subcollection": ["news"]}, {}, {}, {"subcollection": ["news"]}]),
        (
            {"subcollection__case__insensitive": "true"},
            [
                {"site": ["a"], "subcollection": ["news"]},
                {"subcollection": ["news"]},
                {},
                {"subcollection": ["news"]},
            ],
        ),
        (
            {"subcollection__default__fieldname": "part"},
            [{"part": ["news"], "site": ["a"]}, {}, {}, {"part": ["news"]}],
        ),
        ({"subcollections__config": "one.xml"}, [{"subcollection": ["one"]}] * 4),
    ],
)
def test_subcollections(properties: dict[str, str], expected: list[Fields], tmp_path: Path) -> None:
    (tmp_path / "subcollections.xml").write_text(PARTS)
    one = "<subcollection><name>one</name><whitelist>http</whitelist></subcollection>"
    (tmp_path / "one.xml").write_text(f"<subcollections>{one}</subcollections>")
    assert fields("subcollection", *map(Made, URLS), folder=tmp_path, **properties) == expected


def test_a_page_names_its_subcollection(tmp_path: Path) -> None:
    (tmp_path / "subcollections.xml").write_text(PARTS)
    pages = [
        Made(URLS[0], parse={"subcollection": " own "}),
        Made(URLS[0], parse={"part": "x", "subcollection": " "}),
    ]
    named = {"site": ["a"], "subcollection": ["news"]}
    assert fields("subcollection", *pages, folder=tmp_path) == [{"subcollection": ["own"]}, named]
    found = fields("subcollection", *pages, folder=tmp_path, subcollection__metadata__source="part")
    assert found == [named, {"subcollection": ["x"]}]


@pytest.mark.parametrize(
    "text", ["<subcollections><subcollection/></subcollections>", "<subcollections>"]
)
def test_subcollections_without_sense(text: str, tmp_path: Path) -> None:
    (tmp_path / "subcollections.xml").write_text(text)
    with pytest.raises(ConfigError, match=r"subcollections\.xml"):
        fields("subcollection", folder=tmp_path)


def test_the_subcollections_that_are_shipped_are_none() -> None:
    assert fields("subcollection", Made()) == [{}]


# -- tld, urlmeta, and those of parse filters ------------------------------------------------------


def test_public_suffixes() -> None:
    urls = [
        "http://www.Example.CO.UK/",
        "http://10.0.0.1/",
        "http://localhost/",
        "file:/x",
        "http://a.münchen.de/",
    ]
    found = fields("tld", *map(Made, urls))
    assert found == [{"tld": ["co.uk"]}, {}, {}, {}, {"tld": ["de"]}]


def test_tags_of_seeds() -> None:
    page = Made(fetch={"cat": " x ", "b": "1"}, parse={"d": "no"})
    assert fields("urlmeta", Made(), page, urlmeta__tags="b, cat,d") == [
        {},
        {"b": ["1"], "cat": [" x "]},
    ]
    assert fields("urlmeta", page) == [{}]


def test_licences() -> None:
    known = {
        "License-Url": "https://creativecommons.org/licenses/by-sa/4.0/",
        "License-Location": "rdf",
    }
    pages = [
        Made(parse={**known, "Work-Type": "video"}),
        Made(parse={"License-Url": "no URL"}),
        Made(parse={"Work-Type": "audio"}),
        Made(),
    ]
    assert fields("creativecommons", *pages) == [
        {"cc": [f"license={known['License-Url']}", "by", "sa", "4.0", "meta=rdf", "video"]},
        {"cc": ["license=no URL"]},
        {"cc": ["audio"]},
        {},
    ]


def test_entries_of_feeds() -> None:
    entry = {"author": ["x", "y"], "tag": ["t"], "feed": "f", "published": "1000", "updated": "-5"}
    odd = {"published": "--5", "updated": "99999999999999999999", "author": []}
    assert fields("feed", Made(parse=entry), Made(parse=odd), Made()) == [
        {
            "author": ["x", "y"],
            "feed": ["f"],
            "publishedDate": [1000],
            "tag": ["t"],
            "updatedDate": [-5],
        },
        {},
        {},
    ]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [("", ["de", "fr", "unknown", "unknown"]), ("de,unknown", ["de", None, "unknown", "unknown"])],
)
def test_languages(wanted: str, expected: list[str | None]) -> None:
    pages = [
        Made(parse={"language": "de"}, content={"Content-Language": "en"}),
        Made(content={"Content-Language": "fr"}),
        Made(parse={"language": ""}),
        Made(),
    ]
    found = fields("language-identifier", *pages, lang__index__languages=wanted)
    assert found == [None if lang is None else {"lang": [lang]} for lang in expected]


def test_tags_of_pages() -> None:
    assert fields("microformats-reltag", Made(parse={"Rel-Tag": ["b", "a"]}), Made()) == [
        {"tag": ["b", "a"]},
        {},
    ]


# -- index-replace ---------------------------------------------------------------------------------

BEGIN: Fields = {
    "host": ["a.example"],
    "url": ["http://a.example/news/1"],
    "title": ["Big Cat"],
    "n": [7],
}
OTHER: Fields = {
    "host": ["b.example"],
    "url": ["http://b.example/2"],
    "title": ["Dog"],
    "tags": ["x1", "y2"],
}


@tabled(
    ("rules", "first", "second"),
    [
        ("title=/[aeiou]/_/", {"title": ["B_g C_t"]}, {"title": ["D_g"]}),
        ("title=/b(.)g/<$1>/2", {"title": ["<i> Cat"]}, {}),
        ("title=/b(.)g/<$1>/", {}, {}),
        ("title=/.at//", {"title": ["Big "]}, {}),
        ("title=#(.)g#$1/#", {"title": ["Bi/ Cat"]}, {"title": ["Do/"]}),
        ("title=/B.g/x/16", {}, {}),
        ("title:short=/ .*//", {"short": ["Big"]}, {"short": ["Dog"]}),
        ("title:url=/x/y/", {"url": ["Big Cat"]}, {"url": ["Dog"]}),
        ("tags=/[0-9]/z/", {}, {"tags": ["xz", "yz"]}),
        ("n=/7/8/", {}, {}),
        ("missing=/7/8/", {}, {}),
        ("title=/g/h/\ntitle=/h/i/", {"title": ["Bii Cat"]}, {"title": ["Doi"]}),
        ("hostmatch=b\\.\ntitle=/g/h/", {}, {"title": ["Doh"]}),
        ("urlmatch=/news/\ntitle=/g/h/", {"title": ["Bih Cat"]}, {}),
        (
            "urlmatch=/news/\ntitle=/g/h/\nhostmatch=b\ntitle=/D/d/",
            {"title": ["Bih Cat"]},
            {"title": ["dog"]},
        ),
        ("urlmatch=/news/\ntitle=/h/i/\nhostmatch=^a\ntitle=/g/h/", {"title": ["Bii Cat"]}, {}),
        (
            "hostmatch=b\nhost=/b/c/\nhostmatch=b\ntitle=/g/h/",
            {},
            {"host": ["c.example"], "title": ["Doh"]},
        ),
        ("hostmatch=[\ntitle=/g/h/", {}, {}),
        ("", {}, {}),
    ],
)
def test_replacements(rules: str, first: Fields, second: Fields) -> None:
    conf = conf_for("index-replace", index__replace__regexp=rules)
    pages = [Made(), Made("http://b.example/2")]
    assert documents_of(conf, *pages, begin=[BEGIN, OTHER]) == [BEGIN | first, OTHER | second]


def test_without_a_host_nothing_is_replaced() -> None:
    conf = conf_for("index-replace", index__replace__regexp="title=/g/h/")
    assert documents_of(conf, Made(), begin=[{"title": ["Big"]}]) == [{"title": ["Big"]}]


@pytest.mark.parametrize(
    "rule",
    ["word", "title=/a/b/x", "title=abc", "title=/[/x/", "title=/a/$7/", "=/a/b/", "hostmatch=["],
)
def test_rules_without_sense(rule: str, caplog: pytest.LogCaptureFixture) -> None:
    (replacing,) = IndexingFilters(
        conf_for("index-replace", index__replace__regexp=f"{rule}\n title=/g/h/ ")
    ).filters
    assert [record.levelno for record in caplog.records if rule in record.getMessage()] == [
        logging.ERROR
    ]
    assert replacing is not None


def test_a_pattern_that_takes_too_long_fails_for_its_document(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JavaRegex.__init__, "__defaults__", (0.01,))
    conf = conf_for("index-replace", index__replace__regexp="title=/(.*)(.*)(.*)(.*)(.*)x\\1y/z/")
    hostile: Fields = {"host": ["a.example"], "title": ["a" * 300 + "bxcyy"]}
    assert documents_of(conf, Made(), Made(), begin=[hostile, BEGIN]) == [None, BEGIN]
    assert "Error indexing http://a.example/: " in caplog.text
