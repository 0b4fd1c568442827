"""MinHash and signals of quality, compiled and interpreted: same keys, same counts."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.cycle.owntext import near
from minutch.inspect.corpus import rows, signals
from minutch.kernels import minhash, quality
from minutch.kernels.arrow import from_series
from minutch.kernels.hash import SEED
from tests.support.examples import examples
from tests.support.interpreted import OFTEN, calls

LATIN = st.text(alphabet="ab Zé9.,\n#…- ", max_size=60)
ANY = st.text(alphabet="ab  é9.,\n#…-•水𠀀ไ\u0301", max_size=15)
"""Short: tables of a text's words are compared while they have few rows."""


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(LATIN, min_size=1, max_size=6))
def test_band_keys(texts: list[str]) -> None:
    """A table of more characters than are compared (`interpreted.MOST`) changes nothing."""
    column = pl.Series(texts)
    out = np.empty(len(texts) * near.BANDS, np.uint64)
    words = np.empty(near.BANDS * (near.HASHES + 1) + 200, np.uint64)
    few = near._plain()[:400].copy()
    of = from_series(column.str.replace_all("…", " ", literal=True))
    before = calls["minhash.band_keys"]
    minhash.band_keys(of.column, few, near.RUN, near._functions(), near.BANDS, words, out)
    assert calls["minhash.band_keys"] > before or before >= OFTEN
    assert (out.reshape(-1, near.BANDS) == near.band_keys(column).to_numpy()).all()
    keys = near.band_keys(column)
    every = np.ones(len(texts), np.bool_)
    found = rows.clusters(lambda band: keys[band].to_numpy(), every, 1 << 20)
    assert (found <= np.arange(len(texts))).all()
    spelled = column.str.to_uppercase().str.replace_all("É", "e", literal=True)
    assert near.band_keys(spelled).equals(near.band_keys(column))


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(ANY, min_size=1, max_size=4))
def test_measures(texts: list[str]) -> None:
    column = pl.Series([text.strip() for text in texts])
    of, room = from_series(column), signals.room(column)
    counts = np.zeros((len(texts), len(quality.COUNTS)), np.int64)
    lines = quality.LineHashes(np.zeros(300, np.uint64), np.zeros(len(texts), np.int64))
    before = calls["quality.measure"]
    quality.measure(of.column, signals.kinds(), signals._stops(), SEED, room, counts, lines)
    assert calls["quality.measure"] > before or before >= OFTEN
    alone = np.zeros_like(counts)
    for row, text in enumerate(column):
        one = pl.Series([text])
        into = quality.LineHashes(np.zeros(300, np.uint64), np.zeros(1, np.int64))
        quality.measure(
            from_series(one).column,
            signals.kinds(),
            signals._stops(),
            SEED,
            signals.room(one),
            alone[row : row + 1],
            into,
        )
    assert (counts == alone).all()
