"""ParseData in bulk: one value of the content metadata replaced, the rest of each record as it is."""

from __future__ import annotations

import numpy as np

from minutch.errors import FormatError
from minutch.formats.javaio import encode_text, encode_vlong
from minutch.kernels import find, parsemeta
from minutch.records.batch import Batch
from minutch.records.parsedata import ParseData


def with_content_meta(batch: Batch, name: str, value: str) -> Batch:
    """The records with `value` as the only value of `name` in the metadata of the content.

    Records in which there is not exactly one are taken apart. Raises FormatError, which names the key.
    """
    at, length = np.empty(batch.size, np.int64), np.empty(batch.size, np.int32)
    records = batch.values, batch.value_at, batch.value_len
    parsemeta.find_value(*records, np.frombuffer(encode_text(name), np.uint8), at, length)
    text = encode_text(value)
    new = encode_vlong(len(text)) + text
    others = {int(row): _changed(batch, int(row), name, value) for row in np.flatnonzero(length < 0)}
    out_at, out_len = np.empty(batch.size, np.int64), batch.value_len - length + np.int32(len(new))
    for row, data in others.items():
        out_len[row] = len(data)
    out = np.empty(int(find.running_sum(out_len, out_at)), np.uint8)
    parsemeta.replace_value(*records, at, length, np.frombuffer(new, np.uint8), out, out_at)
    for row, data in others.items():
        out[out_at[row] : out_at[row] + len(data)] = np.frombuffer(data, np.uint8)
    return batch._replace(values=out, value_at=out_at, value_len=out_len)


def _changed(batch: Batch, row: int, name: str, value: str) -> bytes:
    try:
        record = ParseData.from_bytes(batch.value(row))
    except FormatError as exc:
        raise exc.at(f"ParseData of {batch.key(row)!r}") from exc
    record.content_meta.set(name, value)
    return record.to_bytes()
