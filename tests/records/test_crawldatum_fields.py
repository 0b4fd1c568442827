"""Fields of CrawlDatums found and decoded in one pass, against the way by records; and on damaged
files.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.records import crawldatum_columns as crawldatum_fields
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import FIELDS, KEY
from minutch.work.tables.database import data_file
from minutch.work.tables.spannedfile import SpannedFile
from tests.support.crawldbs import NOW, metadata, write_db

ROWS = 1500
NAMES = (KEY, *FIELDS)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> SpannedFile:
    """A part of a CrawlDb of more than one stretch, with and without signatures and metadata."""
    folder = tmp_path_factory.mktemp("fields") / "crawldb"
    entries = [
        (
            f"http://{'é' * (row % 90)}{row}.org/",
            CrawlDatum(
                status=1 + row % 5,
                fetch_interval=row - 7,
                retries=row % 9 - 1,
                fetch_time=NOW - row * 10**9,
                modified_time=row * 1000,
                score=row / 7,
                signature=bytes(range(row % 20)) or None,
                metadata=metadata(n="x" * row) if row % 3 else metadata(),
            ),
        )
        for row in range(ROWS)
    ]
    write_db(folder, entries)
    return SpannedFile(data_file(next((folder / "current").iterdir())))


def test_one_pass_finds_what_the_way_by_records_does(file: SpannedFile) -> None:
    (span,) = file.spans()
    stretch = file.stretch(span)
    assert stretch is not None and stretch.end - stretch.start > 100_000
    whole = crawldatum_fields.decode_fields(file.batch(span), FIELDS)
    for names in ([], [KEY], ["score"], ["metadata", "status"], NAMES):
        found = crawldatum_fields.scan(stretch, names)
        assert found is not None and found.size == whole.size == ROWS
        for name in names:
            assert found.column(name).equals(whole.column(name), null_equal=True), name
    some = np.arange(ROWS) % 5 == 1
    found = crawldatum_fields.scan(stretch, NAMES)
    assert found is not None
    for name in NAMES:
        assert (
            found.filter(some)
            .column(name)
            .equals(whole.column(name).filter(some.tolist()), null_equal=True)
        )


@given(place=st.floats(0, 1, exclude_max=True), byte=st.integers(1, 255), sums=st.booleans())
def test_damage_is_noticed_or_does_no_harm(
    file: SpannedFile, place: float, byte: int, sums: bool
) -> None:
    (span,) = file.spans()
    stretch = file.stretch(span)
    assert stretch is not None and len(stretch.sums)
    data = stretch.data.copy()
    data[stretch.start + int((stretch.end - stretch.start) * place)] ^= byte
    damaged = stretch._replace(data=data, sums=stretch.sums if sums else stretch.sums[:0])
    found = crawldatum_fields.scan(damaged, NAMES)
    assert found is None or (not sums and found.size <= ROWS)


def test_a_file_that_is_cut_off(file: SpannedFile) -> None:
    (span,) = file.spans()
    stretch = file.stretch(span)
    assert stretch is not None
    for less in (1, 7, 30, 100):
        assert (
            crawldatum_fields.scan(
                stretch._replace(end=stretch.end - less, sums=stretch.sums[:0]), [KEY]
            )
            is None
        )
