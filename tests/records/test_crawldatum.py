"""CrawlDatum: old versions with their status codes and maps, statuses, printing, expression
variables.
"""

from __future__ import annotations

import pytest

from minutch.errors import FormatError
from minutch.hadoop.formats.javaio import DataOutput
from minutch.hadoop.formats.writables import FloatWritable, IntWritable, MapWritable, Text
from minutch.records import crawldatum, protocol
from minutch.records.crawldatum import (
    CrawlDatum,
    OldMapWritable,
    java_round,
    status_by_name,
    status_name,
)
from minutch.records.protocol import ProtocolStatus
from tests.records.samples import DATUM
from tests.support.examples import tabled


def old_bytes(
    version: int, status: int, metadata: OldMapWritable | MapWritable | None = None
) -> bytes:
    out = DataOutput()
    out.write_byte(version)
    out.write_byte(status)
    out.write_long(1_000)
    out.write_byte(1)
    if version > 5:
        out.write_int(30)
    else:
        out.write_float(30.5)
    out.write_float(2.0)
    if version > 2:
        out.write_long(500)
        out.write_byte(2)
        out.write_bytes(b"ab")
    if version > 3:
        out.write_boolean(metadata is not None)
        if metadata is not None:
            metadata.write(out)
    return out.getvalue()


@pytest.mark.parametrize("version", range(1, 8))
def test_every_version_is_read(version: int) -> None:
    datum = CrawlDatum.from_bytes(old_bytes(version, crawldatum.STATUS_DB_GONE))
    assert (datum.status, datum.fetch_time, datum.retries, datum.score) == (3, 1_000, 1, 2.0)
    assert datum.fetch_interval == (30 if version > 5 else 31)
    assert datum.signature == (b"ab" if version > 2 else None)
    assert datum.modified_time == (500 if version > 2 else 0)


@tabled(
    ("old", "new"),
    [
        (0, 0x41),
        (1, 1),
        (2, 2),
        (3, 3),
        (4, 0x43),
        (5, 0x21),
        (6, 0x22),
        (7, 0x25),
        (8, 1),
        (99, 1),
    ],
)
def test_old_status_codes_are_mapped_before_version_5(old: int, new: int) -> None:
    for version in (1, 2, 3, 4):
        assert CrawlDatum.from_bytes(old_bytes(version, old)).status == new
    assert CrawlDatum.from_bytes(old_bytes(5, old)).status == old


@pytest.mark.parametrize("kind", [OldMapWritable, MapWritable])
@pytest.mark.parametrize("version", [4, 5, 6])
def test_metadata_of_old_versions_in_either_map(
    version: int, kind: type[OldMapWritable] | type[MapWritable]
) -> None:
    entries = {
        Text("a"): IntWritable(1),
        Text("_pst_"): ProtocolStatus.of(protocol.GONE, "x"),
    }
    datum = CrawlDatum.from_bytes(old_bytes(version, 1, kind(entries)))
    assert dict(datum.metadata) == entries
    assert isinstance(datum.metadata, MapWritable)
    assert CrawlDatum.from_bytes(datum.to_bytes()) == datum


@pytest.mark.parametrize("version", [0, 8, 127, -1])
def test_other_versions_are_refused(version: int) -> None:
    with pytest.raises(FormatError, match="version of CrawlDatum"):
        CrawlDatum.from_bytes(bytes((version & 0xFF,)) + DATUM.to_bytes()[1:])


def test_a_signature_longer_than_its_length_byte_can_tell_is_refused() -> None:
    with pytest.raises(FormatError, match="signature too long"):
        CrawlDatum(signature=b"x" * 128).to_bytes()
    assert (
        CrawlDatum.from_bytes(CrawlDatum(signature=b"x" * 127).to_bytes()).signature == b"x" * 127
    )


def test_an_empty_signature_is_none() -> None:
    assert CrawlDatum.from_bytes(CrawlDatum(signature=b"").to_bytes()).signature is None


def test_prints_as_nutch_does() -> None:
    assert str(CrawlDatum(1, 86_399, 0.1, 1_763_710_000_000)) == (
        "Version: 7\nStatus: 1 (db_unfetched)\nFetch time: Fri Nov 21 07:26:40 UTC 2025\n"
        "Modified time: Thu Jan 01 00:00:00 UTC 1970\nRetries since fetch: 0\n"
        "Retry interval: 86399 seconds (0 days)\nScore: 0.1\nSignature: null\nMetadata: \n "
    )
    assert str(DATUM).endswith("Metadata: \n \t_pst_=success(1), lastModified=0\n\t_rs_=12\n")


def test_status_names() -> None:
    assert status_name(0x45) == "parse_failed"
    assert status_name(0x7F) == "unknown"
    assert status_by_name("DB_Gone") == 3
    assert status_by_name("nothing") == -1
    kinds = {name: CrawlDatum(status) for status, name in crawldatum.STATUS_NAMES.items()}
    fetched = {n for n in kinds if n.startswith("fetch_")} | {"parse_failed"}
    assert {n for n, d in kinds.items() if d.has_fetch_status()} == fetched


def test_copy_is_deep() -> None:
    copy = DATUM.copy()
    copy.metadata.set_text("new", "x")
    assert copy != DATUM
    assert DATUM.metadata.get_text("new") is None


def test_expression_variables() -> None:
    datum = CrawlDatum(
        2, 60, 0.5, metadata=MapWritable({Text("f"): FloatWritable(2.0), Text("a-b"): Text("v")})
    )
    variables = datum.variables("http://a/")
    assert variables["status"] == "db_fetched"
    assert (variables["f"], variables["a_b"], variables["signature"]) == (2.0, "v", None)


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (0.5, 1),
        (-0.5, 0),
        (2.4, 2),
        (float("nan"), 0),
        (float("inf"), 2**31 - 1),
        (-1e30, -(2**31)),
    ],
)
def test_java_round(value: float, rounded: int) -> None:
    assert java_round(value) == rounded
