"""Links to known URLs, found in ParseData by kernels, are those that records taken apart have."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.hadoop.formats.batch import Batch
from minutch.hadoop.formats.writables import BytesWritable, FloatWritable, MapWritable, Text
from minutch.inspect.query.parselinks import LinkCollector, UrlPlaces
from minutch.records.links import Outlink
from minutch.records.parsedata import ParseData
from minutch.records.parsedata_columns import decode
from tests.support.examples import examples

URLS = [f"http://a.org/{'é' * (number % 4)}{'x' * number}" for number in range(24)]
MAPS = st.sampled_from(
    [
        None,
        MapWritable({Text("k"): FloatWritable(1.0)}),
        MapWritable({Text("k"): BytesWritable(b"\x01")}),  # which kernels don't know
    ]
)
OUTLINKS = st.builds(Outlink, st.sampled_from(URLS), st.text("aé€", max_size=20), MAPS)
RECORDS = st.lists(st.builds(ParseData, outlinks=st.lists(OUTLINKS, max_size=6)), max_size=4)


@settings(max_examples=examples(100))
@given(st.lists(RECORDS, max_size=3), st.sets(st.sampled_from(URLS)), st.data())
def test_links_to_known_urls(
    batches: list[list[ParseData]], known: set[str], data: st.DataObject
) -> None:
    urls = data.draw(st.permutations(sorted(known)))
    told = np.array([len(url) % 2 == 0 for url in urls], np.bool_)
    places = UrlPlaces(pl.Series(urls, dtype=pl.String))
    collector = LinkCollector(places, told)
    for records in batches:
        values = [record.to_bytes() for record in records]
        collector.add(decode(Batch.of([b"k"] * len(values), values)))
    every = [record for records in batches for record in records]
    wanted = np.array([number % 3 != 1 for number in range(len(every))], np.bool_)
    found = [
        pair
        for records, to in collector.of(wanted)
        for pair in zip(records.tolist(), to.tolist(), strict=True)
    ]
    links = [
        (number, urls.index(link.to_url), link.anchor)
        for number, record in enumerate(every)
        for link in record.outlinks
        if link.to_url in known and wanted[number]
    ]
    assert found == [(number, to) for number, to, _ in links]
    assert collector.told(wanted).rows() == [one for one in links if told[one[1]]]
    assert places.of(pl.Series(URLS)).tolist() == [
        urls.index(url) if url in known else -1 for url in URLS
    ]
