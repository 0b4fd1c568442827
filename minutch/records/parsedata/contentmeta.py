"""ParseData in bulk: one value of the content metadata replaced, the rest of each record as it
is.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch, Lengths, Offsets
from minutch.hadoop.formats.javaio import encode_text, encode_vlong
from minutch.kernels import find, parsemeta
from minutch.kernels.native import Slices
from minutch.records.metadata import Metadata
from minutch.records.parsedata.data import ParseData


def with_content_meta(batch: Batch, name: str, value: str) -> Batch:
    """Returns the records with `value` as the only value of `name` in the metadata of the content.

    Metadata in which there is not exactly one are taken apart. Raises FormatError, which names the
    key.
    """
    place, size = np.empty(batch.size, np.int64), np.empty(batch.size, np.int32)
    single = np.empty(batch.size, np.uint8)
    records = Slices(batch.values, batch.value_at, batch.value_len)
    parsemeta.find_value(records, np.frombuffer(encode_text(name), np.uint8), place, size, single)
    text = encode_text(value)
    texts = [encode_vlong(len(text)) + text]
    number = np.zeros(batch.size, np.int64)
    for row in np.flatnonzero((single == 0) | (size < 0)).tolist():
        if size[row] < 0:
            new = _checked(batch, row, place, size, name, value)
        else:
            new = _changed(batch.values[place[row] : place[row] + size[row]].tobytes(), name, value)
        number[row] = len(texts)
        texts.append(new)
    each_len = np.fromiter(map(len, texts), np.int32, len(texts))
    each_at = np.empty(len(texts), np.int64)
    find.running_sum(each_len, each_at)
    out_len, out_at = batch.value_len - size + each_len[number], np.empty(batch.size, np.int64)
    out = np.empty(int(find.running_sum(out_len, out_at)), np.uint8)
    joined = np.frombuffer(b"".join(texts), np.uint8)
    chosen = Slices(joined, each_at[number], each_len[number])
    parsemeta.replace(records, place, size, chosen, out, out_at)
    return batch._replace(values=out, value_at=out_at, value_len=out_len)


@lru_cache(maxsize=64)
def _changed(metadata: bytes, name: str, value: str) -> bytes:
    """Metadata with the value, in Java's order; many pages have the same."""
    found = Metadata.from_bytes(metadata)
    found.set(name, value)
    return found.to_bytes()


def _checked(batch: Batch, row: int, place: Offsets, size: Lengths, name: str, value: str) -> bytes:
    """Returns the whole new record, for one that kernels can't walk: FormatError, or links with
    metadata of other classes.
    """
    try:
        record = ParseData.from_bytes(batch.value(row))
    except FormatError as exc:
        raise exc.at(f"ParseData of {batch.key(row)!r}") from exc
    record.content_meta.set(name, value)
    place[row], size[row] = batch.value_at[row], batch.value_len[row]
    return record.to_bytes()
