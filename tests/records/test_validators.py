"""What is kept of a page's validators, and what is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.records.crawldatum import STATUS_DB_FETCHED, CrawlDatum
from minutch.records.crawldatum.validators import KEY, Validators, held, of_page, resealed, seal
from minutch.records.metadata import DAMAGED_KEY, TRUNCATED_KEY, Metadata

FETCHED = "Wed, 01 Jan 2025 00:00:10 GMT"
NOW = 1_735_689_610_000


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (['"1"'], '"1"'),
        ([' W/"a-b" '], 'W/"a-b"'),
        (['""'], '""'),
        (['"\xe9"'], '"\xe9"'),
        (['"1"', '"1"'], '"1"'),
        (['"1"', '"2"'], ""),
        (["*"], ""),
        (["1"], ""),
        (['w/"1"'], ""),
        (['"a b"'], ""),
        (['"a"b"'], ""),
        (['"1", "2"'], ""),
        (['"\n"'], ""),
        (['"\u20ac"'], ""),
        ([f'"{"x" * 600}"'], ""),
        ([], ""),
    ],
)
def test_tags(sent: list[str], kept: str) -> None:
    """RFC 9110, 8.8.3: `*` is none, nor is a word without quotation marks."""
    metadata = Metadata({"etag": sent})
    found = of_page(metadata, NOW)
    assert ("" if found is None else found.etag) == kept


@pytest.mark.parametrize(
    ("headers", "kept"),
    [
        ({"Last-Modified": "Wed, 01 Jan 2025 00:00:09 GMT", "Date": FETCHED}, True),
        ({"Last-Modified": FETCHED, "Date": FETCHED}, False),
        ({"Last-Modified": "Wed, 01 Jan 2025 00:00:09 GMT"}, True),
        ({"Last-Modified": FETCHED, "nutch.fetch.time": str(NOW)}, False),
        ({"Last-Modified": FETCHED, "nutch.fetch.time": str(NOW + 1000)}, True),
        ({"last-modified": "Tue, 31 Dec 2024 00:00:00 GMT", "Date": "nonsense"}, True),
        ({"Last-Modified": "Thu, 02 Jan 2025 00:00:00 GMT", "Date": FETCHED}, False),
        ({"Last-Modified": "Wednesday, 01-Jan-25 00:00:00 GMT"}, True),
        ({"Last-Modified": "yesterday"}, False),
        ({"Last-Modified": "Tue, 31 Dec 2024 00:00:00 GMT\r\nX: y"}, False),
        ({}, False),
    ],
)
def test_dates(headers: dict[str, str], kept: bool) -> None:
    """RFC 9110, 8.8.2.2: what changed in the second of the fetch may have changed twice."""
    found = of_page(Metadata({name: [value] for name, value in headers.items()}), NOW)
    assert (found is not None) is kept
    if found is not None:
        named = {name.lower(): value for name, value in headers.items()}
        assert found.last_modified == named["last-modified"]


@pytest.mark.parametrize("key", [TRUNCATED_KEY, DAMAGED_KEY])
def test_content_that_is_not_whole(key: str) -> None:
    assert of_page(Metadata({"ETag": ['"1"'], key: ["true"]}), NOW) is None


@given(
    tag=st.from_regex(r'(?:W/)?"[!#-~\x80-\xff]*"', fullmatch=True) | st.just(""),
    date=st.sampled_from(["", FETCHED]),
    times=st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1)),
)
def test_only_the_entry_that_they_are_sealed_to_has_them(
    tag: str, date: str, times: tuple[int, int]
) -> None:
    url, signature = "http://a.example/\udc80", b"s" * 16
    stored = Validators(tag, date, 7).stored(url, signature)
    metadata = MapWritable({Text("x"): Text("y"), KEY: stored})
    datum = CrawlDatum(STATUS_DB_FETCHED, fetch_time=times[0], signature=signature)
    datum.metadata = metadata
    assert held(url, datum) is None
    sealed = resealed(metadata.to_bytes(), seal(url, signature), seal(url, signature, times[0]))
    assert sealed is not None
    datum.metadata = MapWritable.from_bytes(sealed)
    assert held(url, datum) == Validators(tag, date, 7)
    datum.fetch_time = times[1]
    assert (held(url, datum) is None) is (times[0] != times[1])
    seals = seal(url, signature, times[0]), seal(url, signature, times[1])
    assert resealed(sealed, *seals, oldest=7) is not None
    broken = seal(url, b"t" * 16), seals[1]
    for dropped in (resealed(sealed, *seals, oldest=8), resealed(sealed, *broken)):
        assert dropped is not None
        assert MapWritable.from_bytes(dropped) == MapWritable({Text("x"): Text("y")})
