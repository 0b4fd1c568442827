"""scoring-depth: the depth of pages, from the seed through fetch, parse and links back into the
CrawlDb.
"""

from __future__ import annotations

import polars as pl
import pytest

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.hadoop.formats.writables import IntWritable, MapWritable, Text
from minutch.plugin.points import Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import to_frame
from minutch.records.metadata import Metadata
from minutch.records.parsedata import ParseData
from minutch.records.protocol import Content
from plugins.scoring_depth.depth import DepthScoring

OVERRIDE = "scoring.depth.override.pattern"


def scoring(**properties: str) -> DepthScoring:
    return DepthScoring(Configuration().with_values({"scoring.depth.max": "5", **properties}), {})


def page(depth: int | None = None, maximum: int | None = None) -> CrawlDatum:
    metadata = MapWritable()
    for name, value in (("_depth_", depth), ("_maxdepth_", maximum)):
        if value is not None:
            metadata[Text(name)] = IntWritable(value)
    return CrawlDatum(metadata=metadata)


def depths(datum: CrawlDatum) -> tuple[int | None, int | None]:
    values = [datum.metadata.get(Text(name)) for name in ("_depth_", "_maxdepth_")]
    first, second = (value.value if isinstance(value, IntWritable) else None for value in values)
    return first, second


def test_seeds() -> None:
    seed, own = CrawlDatum(), CrawlDatum(metadata=MapWritable({Text("_maxdepth_"): Text("3")}))
    scoring().inject_score("http://a/", seed)
    scoring().inject_score("http://a/", own)
    assert (depths(seed), depths(own)) == ((1, 5), (1, 3))


def test_new_pages_keep_what_they_bring() -> None:
    new, brought = CrawlDatum(), page(3, 4)
    scoring().initial_score("http://a/", new)
    scoring().initial_score("http://a/", brought)
    assert (depths(new), depths(brought)) == ((1, 5), (3, 4))


@pytest.mark.parametrize(
    ("datum", "value"), [(page(1, 4), 8.0), (page(2), 8.0), (page(), 2.0), (page(None, 9), 2.0)]
)
def test_near_pages_come_first(datum: CrawlDatum, value: float) -> None:
    assert scoring().generator_sort_value("http://a/", datum, 2.0) == value


def test_sort_values_of_columns() -> None:
    pages = [page(1, 4), page(), page(2), page(5, 3)]
    frame = to_frame((f"http://a/{i}", datum) for i, datum in enumerate(pages))
    init = pl.Series([1.0, 2.0, 3.0, 4.0], dtype=pl.Float32)
    expected = [
        scoring().generator_sort_value("", datum, sort)
        for datum, sort in zip(pages, init, strict=True)
    ]
    assert (
        scoring().generator_sort_value_columns(frame, init).to_list()
        == expected
        == [4.0, 2.0, 12.0, -4.0]
    )
    assert init.to_list() == [1.0, 2.0, 3.0, 4.0]
    bare = frame.filter(frame["metadata"].is_null())
    assert scoring().generator_sort_value_columns(bare, init[:1]).to_list() == [1.0]


def test_the_shortest_way_counts() -> None:
    datum = CrawlDatum()
    scoring().update_db_score("http://a/", page(4, 9), datum, [page(7), page(3), page()])
    assert depths(datum) == (3, None)
    scoring().update_db_score("http://a/", None, datum, [])
    assert depths(datum) == (1000, None)
    old = page()
    scoring().update_db_score("http://a/", old, datum, [page(1200)])
    assert (depths(datum), depths(old)) == ((1000, None), (1, 5))


def test_depth_travels_with_the_content() -> None:
    content = Content(
        url="http://a/", base="http://a/", content=b"", content_type="", metadata=Metadata()
    )
    scoring().pass_score_before_parsing("http://a/", page(2, 4), content)
    parse = Parse("", ParseData())
    scoring().pass_score_after_parsing("http://a/", content, parse)
    assert (parse.data.parse_meta.get("_depth_"), parse.data.parse_meta.get("_maxdepth_")) == (
        "2",
        "4",
    )


def links_of(
    depth: str | None, maximum: str | None, **properties: str
) -> list[tuple[int | None, int | None]]:
    data = ParseData()
    for meta, name, value in (
        (data.parse_meta, "_depth_", depth),
        (data.content_meta, "_maxdepth_", maximum),
    ):
        if value is not None:
            meta.set(name, value)
    targets = [("http://b/1", CrawlDatum()), ("http://b/2", CrawlDatum())]
    adjust = CrawlDatum()
    assert (
        scoring(**properties).distribute_score_to_outlinks("http://a/x", data, targets, adjust, 2)
        is adjust
    )
    return [depths(datum) for _, datum in targets]


def test_links_are_one_deeper() -> None:
    assert links_of("4", None) == [(5, None)] * 2
    assert links_of("2", "3") == [(3, 3)] * 2


def test_links_end_at_the_maximum() -> None:
    assert links_of("5", None) == []
    assert links_of("3", "3") == []
    assert links_of(None, "3") == []


def test_override_by_pattern() -> None:
    properties = {OVERRIDE: "/x$", "scoring.depth.max.override": "7"}
    assert links_of("6", "3", **properties) == [(7, 7)] * 2
    assert links_of("7", None, **properties) == []
    assert links_of("4", "3", **{OVERRIDE: "/y$"}) == [(5, 5)] * 2
    with pytest.raises(ConfigError, match=r"scoring.depth.override.pattern .* found '\['"):
        links_of("2", "3", **{OVERRIDE: "["})


def test_no_links() -> None:
    assert scoring().distribute_score_to_outlinks("http://a/", ParseData(), [], None, 0) is None
