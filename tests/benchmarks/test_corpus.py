"""The benchmark beside datatrove: its texts and copies, and what it says of the same answers."""

import polars as pl
import pytest

from minutch.cycle.owntext.near import band_keys
from tests.benchmarks import corpus


def test_the_same_answers_are_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    texts, copies = corpus.with_copies(corpus.made_up(16))
    assert len(texts) == 24
    assert {one.edit for one in copies} == corpus.EDITS.keys()
    assert all(texts[one.copy] != texts[one.text] for one in copies)
    _, filters = corpus.ours(texts)
    keys = band_keys(pl.Series(texts)).rows()
    assert corpus.clusters(keys) == corpus.our_clusters(texts)[1]
    theirs = {
        "filters": {name: (1.0, found) for name, found in filters.items()},
        "bands": (1.0, keys),
    }
    corpus.show(texts, copies, theirs)
    said = capsys.readouterr().out
    assert said.count("| 1.0000 | 1.0000 |") == len(filters) == 3
    assert "| 1 % changed | 1.000 | 1.000 |" in said
    assert "| 40 % changed | 0.000 | 0.000 |" in said
    theirs["bands"] = (1.0, [[] for _ in texts])
    corpus.show(texts, copies, theirs)
    assert "0 by datatrove; 0.000 of all are both's" in capsys.readouterr().out
