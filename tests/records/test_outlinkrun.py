"""Links as one run of bytes: the same links, and the same ParseData, as a list of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.records.links import Outlink, OutlinkRun
from minutch.records.parsedata import ParseData

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
LINKS = st.lists(st.builds(Outlink, TEXTS, TEXTS), max_size=12)


def run_of(links: list[Outlink]) -> OutlinkRun:
    run = OutlinkRun.of(links)
    assert run is not None
    return run


@given(LINKS)
def test_a_run_is_its_links(links: list[Outlink]) -> None:
    run = run_of(links)
    assert list(run) == links
    assert len(run) == len(links)
    assert run == links
    assert run[1:3] == links[1:3]
    assert [run[i] for i in range(len(links))] == links


@given(LINKS, st.lists(TEXTS, max_size=3))
def test_links_left_out(links: list[Outlink], others: list[str]) -> None:
    targets = [*others, *(link.to_url for link in links[::2])]
    run = run_of([*links, *(Outlink(target) for target in targets)])
    kept = [link for link in run if link.anchor or link.to_url not in targets]
    assert run.without({target.encode() for target in targets}) == kept
    run = OutlinkRun.to([target.encode() for target in targets])
    assert run == [Outlink(target, "") for target in targets]


@given(LINKS)
def test_parse_data_has_the_same_bytes(links: list[Outlink]) -> None:
    data = ParseData(title="t", outlinks=links).to_bytes()
    assert ParseData(title="t", outlinks=run_of(links)).to_bytes() == data
    assert ParseData.from_bytes(data).outlinks == links


def test_links_with_metadata_make_no_run() -> None:
    assert (
        OutlinkRun.of([Outlink("a"), Outlink("b", "", MapWritable({Text("k"): Text("v")}))]) is None
    )


def test_an_index_beyond_the_end() -> None:
    run = run_of([Outlink("http://e.org/", "a")])
    assert run[-1].to_url == "http://e.org/"
    with pytest.raises(IndexError):
        run[1]
    assert repr(run).startswith("OutlinkRun([Outlink(to_url='http://e.org/'")
    assert run != OutlinkRun(0, b"")
