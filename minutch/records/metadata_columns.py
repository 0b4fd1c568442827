"""Single values of the metadata of CrawlDatums, as columns."""

from __future__ import annotations

import numpy as np
import polars as pl

from minutch.formats.javaio import encode_text
from minutch.kernels import mapentries, sort
from minutch.kernels.arrow import from_series
from minutch.records.batch import string_column
from minutch.records.rawmap import RawMap, text_key


def text_values(metadata: pl.Series, key: str) -> pl.Series:
    """What each map has under the Text `key`, as the bytes of a Text (Binary); null where it has nothing.

    Raises FormatError for damage.
    """
    strings = from_series(metadata)
    count = len(metadata)
    buffer = np.empty(int(strings.views[:, 0].sum(dtype=np.int64)), np.uint8)
    at, length = np.empty(count, np.int64), np.empty(count, np.int32)
    sort.pack(strings.views, strings.addresses, np.arange(count, dtype=np.uint32), buffer, at, length)
    place, size = np.empty(count, np.int64), np.empty(count, np.int32)
    mapentries.text_entry(buffer, at, length, np.frombuffer(encode_text(key), np.uint8), place, size)
    found = string_column("value", buffer, place, size, least=0)
    unknown = pl.Series(np.flatnonzero(size == mapentries.UNKNOWN))
    return found.scatter(unknown, [_value(data, key) for data in metadata.gather(unknown)]) if len(unknown) else found


def _value(data: bytes, key: str) -> bytes | None:
    value = RawMap(data).value(text_key(key))
    return None if value is None else encode_text(str(value))
