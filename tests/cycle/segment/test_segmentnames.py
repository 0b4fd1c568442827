"""Several segments appear at once, whatever becomes of the process that moves them to their
places.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minutch.cycle.segment import places
from minutch.cycle.segment.places import finish_others, place_together
from minutch.cycle.segment.store import segments_in
from minutch.work.tables.lock import Owner

NAMES = ["20260101000000", "20260101000001", "20260101000002"]
DEAD = f".import-{2**22 + 1}-1-{Owner.current().host}.0"
COUNTS = {"visits": 3, "segments": 3}


def write(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name / "content").mkdir(parents=True)
    return folder


def left(
    parent: Path, *names: str, record: str = json.dumps({"job": "mine", "counters": COUNTS})
) -> Path:
    """Returns the work folder of a killed job whose other segments are in their places."""
    folder = write(parent / DEAD, *names)
    (folder / "import.json").write_text(record)
    return folder


def names_in(parent: Path) -> list[str]:
    return sorted(path.name for path in parent.iterdir())


def test_all_get_their_places(tmp_path: Path) -> None:
    write(tmp_path, NAMES[1])
    placed = place_together(write(tmp_path / ".new-x", *NAMES), tmp_path, "mine", COUNTS)
    assert [path.name for path in placed] == [
        NAMES[0],
        NAMES[2],
        "20260101000003",
    ]  # the next free ones
    assert names_in(tmp_path) == [*NAMES, "20260101000003"]


def test_what_a_killed_process_has_finished_belongs_to_the_crawl(tmp_path: Path) -> None:
    write(tmp_path, NAMES[0])
    folder = left(tmp_path, *NAMES[1:])
    assert [segment.path for segment in segments_in(tmp_path)] == [
        tmp_path / NAMES[0],
        folder / NAMES[1],
        folder / NAMES[2],
    ]
    assert names_in(tmp_path) == [DEAD, NAMES[0]]  # reading moves nothing
    assert finish_others(tmp_path, "mine") == COUNTS
    assert names_in(tmp_path) == NAMES and finish_others(tmp_path, "mine") is None


def test_another_job_finishes_it_too(tmp_path: Path) -> None:
    left(tmp_path, *NAMES)
    assert finish_others(tmp_path, "another") is None
    assert names_in(tmp_path) == NAMES


def test_who_still_runs_is_left_alone(tmp_path: Path) -> None:
    owner = Owner.current()
    write(tmp_path / f".import-{owner.pid}-{owner.started}-{owner.host}.0", *NAMES)
    assert segments_in(tmp_path) == [] and finish_others(tmp_path) is None
    assert len(names_in(tmp_path)) == 1


@pytest.mark.parametrize(
    "record", ["", "[]", '{"job": "mine"}', '{"job": "mine", "counters": {"visits": "x"}}']
)
def test_a_damaged_record_costs_no_segment(
    tmp_path: Path, record: str, caplog: pytest.LogCaptureFixture
) -> None:
    left(tmp_path, *NAMES, record=record)
    assert finish_others(tmp_path, "mine") is None
    assert names_in(tmp_path) == NAMES
    assert "import.json can't be read" in caplog.text


def test_of_two_that_finish_it_one_is_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = left(tmp_path, *NAMES)

    def found(parent: Path, prefix: str) -> list[Path]:
        folder.rename(tmp_path / ".import-of-another")
        return [folder]

    monkeypatch.setattr(places, "left_over", found)
    assert finish_others(tmp_path, "mine") is None
    assert names_in(tmp_path) == [".import-of-another"]
