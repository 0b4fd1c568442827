"""Inlinks: the two layouts and how a record tells which fit it; what is printed."""

from __future__ import annotations

import json

import pytest

from minutch.errors import FormatError
from minutch.hadoop.formats.javaio import DataInput, DataOutput
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.records.links import LAYOUT_METADATA, LAYOUT_PLAIN, Inlink, Inlinks, layouts_of
from tests.support.golden import GOLDEN, needs_golden

LINKS = Inlinks([Inlink("http://a/", "one"), Inlink("http://b/", "two"), Inlink("http://c/", "")])


def encoded(links: Inlinks, layout: str) -> bytes:
    out = DataOutput()
    links.write(out, layout)
    return out.getvalue()


@pytest.mark.parametrize("layout", [LAYOUT_PLAIN, LAYOUT_METADATA])
def test_each_layout_is_told_from_the_other(layout: str) -> None:
    data = encoded(LINKS, layout)
    assert layouts_of(data) == {layout}
    assert Inlinks.read(DataInput(data), layout) == LINKS


@pytest.mark.parametrize("layout", [LAYOUT_PLAIN, LAYOUT_METADATA])
def test_a_record_keeps_its_order(layout: str) -> None:
    for links in (LINKS, Inlinks(reversed(list(LINKS)))):
        data = encoded(links, layout)
        assert encoded(Inlinks.read(DataInput(data), layout), layout) == data
    assert data != encoded(LINKS, layout)


def test_no_inlinks_fit_both_layouts_and_garbage_fits_none() -> None:
    assert layouts_of(bytes(4)) == {LAYOUT_PLAIN, LAYOUT_METADATA}
    assert layouts_of(b"\0\0\0\1\xff") == frozenset()


@needs_golden("{folder}")
@pytest.mark.parametrize(
    ("folder", "layout"),
    [
        ("nutch-1.20/edge-linkdb", LAYOUT_PLAIN),
        ("nutch-trunk-edge-linkdb/no-metadata", LAYOUT_METADATA),
        ("nutch-trunk-edge-linkdb/metadata", LAYOUT_METADATA),
    ],
)
def test_odd_records_of_real_nutch(folder: str, layout: str) -> None:
    rows = [
        json.loads(line) for line in (GOLDEN / folder / "records.jsonl").read_text().splitlines()
    ]
    checked = 0
    for row in rows:
        if not row.get("hex"):
            continue
        data = bytes.fromhex(row["hex"])
        links = Inlinks.read(DataInput(data), layout)
        assert [[link.from_url, link.anchor] for link in links] == [
            pair[:2] for pair in row["inlinks"]
        ]
        assert layout in layouts_of(data)
        checked += 1
    assert checked > 10


def test_equal_links_are_kept_once_with_the_first_metadata() -> None:
    first = Inlink("http://a/", "x", MapWritable({Text("k"): Text("v")}))
    links = Inlinks([first])
    links.add(Inlink("http://a/", "x"))
    assert len(links) == 1
    assert next(iter(links)).metadata == first.metadata


def test_printing_by_layout() -> None:
    links = Inlinks([Inlink("http://a/", "x")])
    assert str(links) == "Inlinks:\n fromUrl: http://a/ anchor: x metadata: \n"
    assert links.to_string(LAYOUT_PLAIN) == "Inlinks:\n fromUrl: http://a/ anchor: x\n"


def test_an_impossible_count_is_refused_before_anything_is_made() -> None:
    with pytest.raises(FormatError, match="impossible number"):
        Inlinks.read(DataInput(b"\x7f\xff\xff\xff"))
