"""A journal must not lead elsewhere; `test_s3` has those of jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from minutch.annexes.stores import path
from minutch.annexes.stores.path import HadoopPath
from minutch.errors import StoreError


@pytest.mark.parametrize(
    "moves",
    [
        [["../other", ""]],
        [["crawldb/../../other", ""]],
        [["/etc", "crawldb/current"]],
        [["crawldb/new", "../current"]],
        [["crawldb/new", "/tmp/current"]],
        [["", ""]],
        [["crawldb"]],
        "crawldb",
        None,
    ],
)
def test_a_path_that_leads_elsewhere_is_an_error(moves: object, tmp_path: Path) -> None:
    folder = tmp_path / "crawldb"
    folder.mkdir()
    (tmp_path / "other").mkdir()
    (folder / path.JOURNAL).write_text(json.dumps({"owner": "1 here 1", "moves": moves}))
    with pytest.raises(StoreError, match=r"\.journal"):
        path.resume_moves(cast(HadoopPath, folder))
    assert (tmp_path / "other").is_dir()


def test_who_is_at_it_is_named(tmp_path: Path) -> None:
    (tmp_path / path.JOURNAL).write_text(
        json.dumps({"owner": "17 host 5", "moves": [["a/b", "a/c"], ["a/d", ""]]})
    )
    with pytest.raises(StoreError, match=r"process 17 host 5.*wait"):
        path.require_no_moves(cast(HadoopPath, tmp_path), "wait")
