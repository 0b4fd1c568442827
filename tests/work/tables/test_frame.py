"""Keys as strings and back."""

import polars as pl

from minutch.work.tables.frame import decode_keys, encode_keys


def test_keys_as_strings() -> None:
    keys = pl.Series([b"a", b"\xc3\xa9", b"x\xff", None])
    assert decode_keys(keys).to_list() == ["a", "é", "x\ufffd", None]
    assert decode_keys(keys[:2]).to_list() == ["a", "é"]
    assert encode_keys(pl.Series(["a", "é", None])).to_list() == [b"a", "é".encode(), None]
