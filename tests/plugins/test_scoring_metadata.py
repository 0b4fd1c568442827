"""scoring-metadata and urlmeta, step by step; tests/cycle/test_scoring_plugins.py has them in a
crawl.
"""

from __future__ import annotations

from minutch.conf import Configuration
from minutch.hadoop.formats.writables import IntWritable, MapWritable, Text
from minutch.plugin.points import Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import Metadata
from minutch.records.parsedata import ParseData
from minutch.records.protocol import Content
from plugins.scoring_metadata.metadata import MetadataScoringFilter
from plugins.urlmeta.tags import URLMetaScoringFilter


def carrying(**keys: str) -> MetadataScoringFilter:
    values = {f"scoring.{part}.md": names for part, names in keys.items()}
    return MetadataScoringFilter(Configuration().with_values(values), {})


def content(**values: str) -> Content:
    return Content("http://a/", "http://a/", b"", "text/html", Metadata.of(values))


def test_each_step_has_its_own_keys() -> None:
    datum = CrawlDatum(metadata=MapWritable({Text("a"): Text("1"), Text("n"): IntWritable(7)}))
    page = content(b="2")
    scoring = carrying(db="a, n,none", content="b", parse="c")
    scoring.pass_score_before_parsing("", datum, page)
    assert page.metadata == {"a": ["1"], "n": ["7"], "b": ["2"]}
    parse = Parse("", ParseData())
    scoring.pass_score_after_parsing("", page, parse)
    assert parse.data.parse_meta == {"b": ["2"]}
    parse.data.content_meta.set("c", "3")
    target = CrawlDatum()
    adjust = CrawlDatum()
    assert scoring.distribute_score_to_outlinks("", parse.data, [("", target)], adjust, 1) is adjust
    assert target.metadata == {Text("c"): Text("3")}


def test_the_parse_comes_before_the_content() -> None:
    data, target = ParseData(), CrawlDatum()
    data.content_meta.set("k", "content")
    data.parse_meta.set("k", "parse")
    carrying(parse="k").distribute_score_to_outlinks("", data, [("", target)], None, 1)
    assert target.metadata == {Text("k"): Text("parse")}


def test_links_are_asked_one_by_one_only_where_something_is_carried() -> None:
    data = ParseData()
    scoring = carrying(parse="k")
    assert scoring.outlink_score(data, 3, 3, 0.25) == 0.25
    data.parse_meta.set("k", "v")
    assert scoring.outlink_score(data, 3, 3, 0.25) is None
    assert carrying().outlink_score(data, 3, 3, 0.25) == 0.25


def test_urlmeta_has_one_list_for_all_steps() -> None:
    scoring = URLMetaScoringFilter(Configuration().with_values({"urlmeta.tags": "a,b"}), {})
    page, parse, target = content(), Parse("", ParseData()), CrawlDatum()
    scoring.pass_score_before_parsing(
        "", CrawlDatum(metadata=MapWritable({Text("b"): Text("1")})), page
    )
    scoring.pass_score_after_parsing("", page, parse)
    scoring.distribute_score_to_outlinks("", parse.data, [("", target)], None, 1)
    assert target.metadata == {Text("b"): Text("1")}


def test_headers_are_carried_in_any_case() -> None:
    """RFC 9110, 5.1: names of fields have no case; HTTP/2 sends them in lower case."""
    parse = Parse("", ParseData())
    carrying(content="X-Topic").pass_score_after_parsing("", content(**{"x-topic": "t"}), parse)
    assert parse.data.parse_meta == {"X-Topic": ["t"]}
