"""What is kept of a page's validators, and what is not."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.hadoop.formats.writables import LongWritable, MapWritable, Text
from minutch.records.crawldatum import STATUS_DB_FETCHED, CrawlDatum
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA, resealed
from minutch.records.links import Inlinks
from minutch.records.metadata import DAMAGED_KEY, TRUNCATED_KEY, Metadata
from minutch.records.validators import VALIDATORS_KEY, Validators, held, of_page
from tests.support.examples import tabled

FETCHED = "Wed, 01 Jan 2025 00:00:10 GMT"
NOW = 1_735_689_610_000


@tabled(
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


@tabled(
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


def sealed_anew(*entries: dict[str, object]) -> list[bytes]:
    """Returns the metadata of the entries after `resealed`."""
    schema = {name: CRAWLDB_SCHEMA[name] for name in ("key", "metadata", "signature", "fetch_time")}
    own = {
        "is_held": pl.Boolean,
        "known_signature": pl.Binary,
        "known_time": pl.Int64,
        "oldest": pl.Int64,
    }
    return resealed(pl.DataFrame(entries, schema={**schema, **own})).to_list()


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
    metadata = MapWritable({Text("x"): Text("y"), VALIDATORS_KEY: stored})
    datum = CrawlDatum(STATUS_DB_FETCHED, fetch_time=times[0], signature=signature)
    datum.metadata = metadata
    assert held(url, datum) is None
    entry = {
        "key": url.encode("utf-8", "surrogateescape"),
        "metadata": metadata.to_bytes(),
        "signature": signature,
        "fetch_time": times[0],
        "is_held": True,
        "known_signature": signature,
        "known_time": None,
        "oldest": 7,
    }
    (sealed,) = sealed_anew(entry)
    datum.metadata = MapWritable.from_bytes(sealed)
    assert held(url, datum) == Validators(tag, date, 7)
    datum.fetch_time = times[1]
    assert (held(url, datum) is None) is (times[0] != times[1])
    entry.update(metadata=sealed, known_time=times[0], fetch_time=times[1])
    others: list[dict[str, object]] = [
        {"oldest": 8},
        {"known_signature": b"t" * 16},
        {"known_time": None},
        {"known_time": times[0] ^ 1},
        {"key": b"http://a.example/"},
        {"is_held": False},
        {"is_held": False, "known_signature": None},
        {"metadata": sealed.replace(b"_validators_", b"_validator_s")},
    ]
    again, *dropped, last = sealed_anew(entry, *({**entry, **other} for other in others))
    datum.metadata = MapWritable.from_bytes(again)
    assert held(url, datum) == Validators(tag, date, 7)
    assert {*dropped} == {MapWritable({Text("x"): Text("y")}).to_bytes()}
    assert last == others[-1]["metadata"]


def test_what_is_no_value_of_ours_goes() -> None:
    """Texts that are cut off, no Text, and a map with a class that Hadoop has no id for."""
    whole = str(Validators("", "", 7).stored("http://a/", b"s"))
    odd = MapWritable({VALIDATORS_KEY: Text(whole), Text("links"): Inlinks()})
    values = [Text(whole[:size]) for size in (0, 8, len(whole) - 8)] + [LongWritable(7)]
    maps = [MapWritable({VALIDATORS_KEY: value}) for value in values] + [odd]
    entries = [
        {
            "key": b"http://a/",
            "metadata": each.to_bytes(),
            "signature": b"s",
            "fetch_time": 1,
            "is_held": True,
            "known_signature": b"s",
            "known_time": None,
            "oldest": 0,
        }
        for each in maps
    ]
    *dropped, rest = sealed_anew(*entries)
    assert dropped == [None] * len(values)
    assert [*MapWritable.from_bytes(rest)] == [Text("links")]
