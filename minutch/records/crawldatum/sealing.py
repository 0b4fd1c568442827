"""Seals the validators of whole tables of entries: `validators` in columns. A fetch works on single
entries, does without Polars, and so can fork.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

import numpy as np
import polars as pl

from minutch.kernels.arrow import Bytes
from minutch.records.crawldatum.validators import DIGITS, KEY, NO_TIME, NONE, RAW_KEY, SEAL
from minutch.records.metadata import columns, rawmap

_HEX: Final = np.frombuffer(bytes(range(256)).hex().encode(), "S2")


def _seals(keys: pl.Series, signatures: pl.Series, times: pl.Series) -> Bytes:
    """Returns the seals of entries as bytes, one row each; a null time is that of a parse."""
    words = np.empty((len(keys), 3), ">u4")
    # In all 0.2 µs a row: a kernel would not be seen beside what merging metadata takes.
    words[:, 0] = np.fromiter(map(crc32, keys, map(crc32, signatures)), np.uint32, len(keys))
    words[:, 1:] = times.fill_null(0).to_numpy().astype(">i8").view(">u4").reshape(-1, 2)
    found = _HEX[words.view(np.uint8)].view(np.uint8).reshape(-1, SEAL)
    found[times.is_null().to_numpy(), -len(NO_TIME) :] = ord(NONE)
    return found


def resealed(entries: pl.DataFrame) -> pl.Series:
    """Returns the metadata of entries, their validators sealed to them; without validators where
    they are not held, have another seal, or are of a copy older than `oldest` (s since the epoch).

    `entries` has key, metadata, signature and fetch_time; `is_held`, and the `known_signature` and
    `known_time` (ms, null for a parse) that the validators were sealed with.
    """
    width = SEAL + 1 + DIGITS
    texts = columns.texts_in_place(entries["metadata"], str(KEY), width)
    held = entries["is_held"].to_numpy()[texts.row]
    row, at = texts.row[held], texts.at[held]
    windows = np.lib.stride_tricks.sliding_window_view(texts.bytes, width, writeable=True)
    some, found = entries[row], windows[at]
    since = (found[:, -DIGITS:].astype(np.int64) - ord("0")) @ 10 ** np.arange(DIGITS)[::-1]
    seals = _seals(some["key"], some["known_signature"], some["known_time"])
    good = (found[:, :SEAL] == seals).all(axis=1) & (since >= some["oldest"].to_numpy())
    some = some.filter(pl.Series(good))
    windows[at[good], :SEAL] = _seals(some["key"], some["signature"], some["fetch_time"])
    others = np.setdiff1d(np.arange(len(entries)), row[good])
    dropped = [rawmap.without(data, RAW_KEY) for data in entries["metadata"].gather(others)]
    return texts.maps().scatter(others, pl.Series(dropped, dtype=pl.Binary))
