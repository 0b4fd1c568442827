"""Metadata as a table: the entries of a column of serialized MapWritables, and such a column made
of entries.

    row      UInt32   the number of the map in its column
    name     Binary   the key, a Text's bytes
    kind     UInt8    the class of the value: TEXT, INT, LONG, FLOAT …, by Hadoop's ids; OTHER
    value    Binary   the bytes of a Text without its length, or the number as stored; of OTHER what
             toString gives

Source: org.apache.hadoop.io.AbstractMapWritable, MapWritable; java.util.HashMap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Lengths, Offsets, string_column
from minutch.hadoop.formats.javahash import text_hash
from minutch.hadoop.formats.javaio import DataInput, encode_vlong
from minutch.hadoop.formats.writables import PREDEFINED_CLASSES, Text, Writable, lookup
from minutch.kernels import maps, sequencefile
from minutch.kernels.arrow import Bytes, Strings, from_series
from minutch.records import rawmap
from minutch.records.protocol import ProtocolStatus
from minutch.records.rawmap import RawMap, merge

TEXT, FLOAT, INT, LONG, STATUS, OTHER = (
    maps.TEXT,
    maps.FLOAT,
    maps.INT,
    maps.LONG,
    maps.STATUS,
    maps.ODD,
)
SCHEMA: Final = pl.Schema(
    {"row": pl.UInt32(), "name": pl.Binary(), "kind": pl.UInt8(), "value": pl.Binary()}
)

_STATUS: Final = np.frombuffer(ProtocolStatus.class_name.encode(), np.uint8)
_TYPICAL_ENTRIES: Final = 3  # a map; the kernel is called again where there are more
_KINDS: Final = {name: number & 0xFF for number, name in PREDEFINED_CLASSES.items()}
_CLASSES: Final = {kind: name for name, kind in _KINDS.items()}
_PLAIN: Final = frozenset((TEXT, FLOAT, INT, LONG))
_CAPACITY: Final = 16  # of a new java.util.HashMap
_SIZE: Final = 4  # bytes of the count of entries
_LEAST: Final = 1 + _SIZE  # bytes before the entries where there are no classes
_ONE_BYTE: Final = 0x7F  # lengths up to this are their own VInt


def entries(metadata: pl.Series, keys: pl.Series, names: Sequence[str] = ()) -> pl.DataFrame:
    """Returns the entries of a column of maps (null: none) whose keys are Texts, among `names` if
    there are any.

    In the order of the rows, and of each map as stored. Raises FormatError for a damaged map;
    `keys` are those of the records that the maps are of.
    """
    encoded = [name.encode() for name in names]
    places = _find(from_series(metadata), encoded)
    found = pl.DataFrame(
        [
            pl.Series("row", places.row.astype(np.uint32)),
            _gathered("name", places.key_at, places.key_len),
            pl.Series("kind", places.kind.astype(np.uint8)),
            _gathered("value", places.value_at, places.value_len),
        ]
    )
    odd = found.filter(pl.col("kind") == OTHER)["row"]
    if not len(odd):  # nearly always
        return found
    slowly = [
        (number, *entry)
        for number in odd
        for entry in _slowly(metadata[number], keys[number], encoded)
    ]
    rest = pl.DataFrame(slowly, schema=SCHEMA, orient="row")
    return pl.concat([found.filter(pl.col("kind") != OTHER), rest]).sort("row", maintain_order=True)


def _find(strings: Strings, names: Sequence[bytes]) -> maps.Entries:
    """Returns the places of the entries of maps, those of `names` if there are any."""
    wanted = np.frombuffer(b"".join(names) or b"\0", np.uint8)
    ends = np.cumsum([len(name) for name in names], dtype=np.int64)
    room = _TYPICAL_ENTRIES * np.count_nonzero(strings.views[:, 0]) + 16
    while True:
        row, name, kind, key_at, value_at = (np.empty(room, np.int64) for _ in range(5))
        key_len, value_len = np.empty(room, np.int32), np.empty(room, np.int32)
        places = maps.Entries(row, name, kind, key_at, key_len, value_at, value_len)
        count = maps.find_entries(strings.column, _STATUS, wanted, ends, places)
        if count >= 0:
            return maps.Entries._make(column[:count] for column in places)
        room *= 4


class InPlace(NamedTuple):
    """Texts of maps that may be written over: where they begin in the bytes of all maps, one after
    the other, and the rows of their maps.
    """

    bytes: Bytes
    map_at: Offsets
    map_length: Lengths
    row: Offsets
    at: Offsets

    def maps(self) -> pl.Series:
        """Returns the column of maps as the bytes are now."""
        return string_column("metadata", self.bytes, self.map_at, self.map_length, least=1)


def texts_in_place(metadata: pl.Series, name: str, least: int) -> InPlace:
    """Returns the Texts of `least` bytes or more under the Text `name`, in a copy of the maps.

    A map that is damaged, or has values of classes other than Hadoop's and ProtocolStatus, counts
    as one without.
    """
    strings = from_series(metadata)
    found = _find(strings, [name.encode()])
    text = (found.kind == TEXT) & (found.value_len >= least)
    row, value_at = found.row[text], found.value_at[text]
    start, length = np.empty(len(metadata), np.int64), np.empty(len(metadata), np.int32)
    sequencefile.string_places(*strings.column, start, length)
    # A window of `least` bytes fits at the end.
    out, at = np.empty(int(length.sum(dtype=np.int64)) + least, np.uint8), np.empty_like(start)
    maps.gather(start, length, out, at)
    return InPlace(out, at, length, row, at[row] + value_at - start[row])


def _gathered(name: str, at: Offsets, length: Lengths) -> pl.Series:
    out, out_at = (
        np.empty(int(length.sum(dtype=np.int64)) + 1, np.uint8),
        np.empty(len(at), np.int64),
    )
    maps.gather(np.ascontiguousarray(at), np.ascontiguousarray(length), out, out_at)
    return string_column(name, out, out_at, np.ascontiguousarray(length))


def _slowly(data: bytes, key: bytes, wanted: Sequence[bytes]) -> list[tuple[bytes, int, bytes]]:
    """Name, kind and value of the entries of one map."""
    try:
        entries = RawMap(data)
        found = []
        for raw in entries.entries:
            if raw[0] != TEXT:
                continue
            name = Text.from_bytes(raw[1:]).value.encode()
            value = entries.value(raw)
            if value is None or (wanted and name not in wanted):
                continue
            kind = _KINDS.get(value.class_name, OTHER)
            if kind == TEXT:
                found.append((name, kind, str(value).encode()))
            elif kind in _PLAIN:
                found.append((name, kind, value.to_bytes()))
            else:
                found.append(
                    (name, STATUS if isinstance(value, ProtocolStatus) else OTHER, _other(value))
                )
        return found
    except FormatError as exc:
        raise exc.at(f"metadata of {key!r}") from exc


def _other(value: object) -> bytes:
    return value.to_bytes() if isinstance(value, ProtocolStatus) else str(value).encode()


def text_values(metadata: pl.Series, keys: pl.Series, name: str) -> pl.Series:
    """Returns each map's value under the Text `name`: a Text's bytes, the toString of other values,
    null where there is none.

    Raises FormatError as `entries`.
    """
    found = entries(metadata, keys, [name])
    texts = found.filter(pl.col("kind") == TEXT).select("row", "value")
    others = found.filter(pl.col("kind") != TEXT).select("row", "kind", "value")
    is_integer = pl.col("kind").is_in([INT, LONG])
    integers = others.filter(is_integer).select("row", _digits("value"))
    rest = pl.DataFrame(
        [(row, shown(kind, value)) for row, kind, value in others.filter(~is_integer).iter_rows()],
        schema=texts.schema,
        orient="row",
    )
    values = pl.Series("value", [None], dtype=pl.Binary).new_from_index(0, len(metadata))
    table = pl.concat([texts, integers, rest])
    return values.scatter(table["row"], table["value"])


def _digits(column: str) -> pl.Expr:
    """Returns the toString of INTs and LONGs; each fetch has one, its response time."""
    numbers = [
        pl.col(column).bin.reinterpret(dtype=dtype, endianness="big").cast(pl.String)
        for dtype in (pl.Int32(), pl.Int64())
    ]
    return pl.coalesce(numbers).cast(pl.Binary)


def shown(kind: int, value: bytes) -> bytes:
    """Returns a value that is no Text, as toString shows it."""
    name = ProtocolStatus.class_name if kind == STATUS else _CLASSES.get(kind)
    return value if name is None else str(lookup(name).from_bytes(value)).encode()


def stored(name: bytes) -> bytes:
    """Returns a Text key as it is stored, with the id of its class."""
    return bytes((TEXT,)) + encode_vlong(len(name)) + name


def stored_value(value: Writable) -> bytes:
    """Returns a value as it is stored, with its class's id, one of Hadoop's. Raises KeyError."""
    return bytes((_KINDS[value.class_name],)) + value.to_bytes()


def maps_of(found: pl.DataFrame, rows: int) -> pl.Series:
    """Returns a column of `rows` maps, null where there are no entries.

    `found` has `row`, `key` and `value`, both as stored, class id and all, in the order in which
    the entries are put into each map; keys of one map differ. The bytes are those that Hadoop
    writes: in the order of a HashMap.
    """
    if found.is_empty():
        return pl.Series("metadata", [None], dtype=pl.Binary).new_from_index(0, rows)
    owner = found["row"].to_numpy().astype(np.int64)
    sizes = np.bincount(owner, minlength=rows)
    names = found["key"].unique()
    # Each name is hashed once: a crawl has few of them.
    hashes = pl.Series(
        [text_hash(DataInput(key[1:]).read_text_bytes()) & 0xFFFF_FFFF for key in names],
        dtype=pl.Int64,
    )
    bucket = hash_buckets(
        owner, found["key"].replace_strict(names, hashes, return_dtype=pl.Int64).to_numpy()
    )
    # Within a bucket in the order of coming, as the sort is stable.
    ordered = found.select("row", "key", "value", bucket=pl.Series(bucket)).sort(
        "row", "bucket", maintain_order=True
    )
    heads = np.flatnonzero(sizes)  # maps without entries are null
    head = pl.DataFrame(
        {"row": heads.astype(np.uint32), "bytes": [_head(int(size)) for size in sizes[heads]]}
    )
    body = ordered.select("row", bytes=pl.concat_list("key", "value")).explode("bytes")
    pieces = pl.concat([head, body]).sort("row", maintain_order=True)
    data = np.frombuffer(b"".join(pieces["bytes"]), np.uint8)
    length = np.bincount(
        pieces["row"].to_numpy(), pieces["bytes"].bin.size().to_numpy(), rows
    ).astype(np.int32)
    at = np.cumsum(length, dtype=np.int64) - length
    return string_column("metadata", data, at, length, least=1)


def with_all(metadata: pl.Series, others: pl.Series) -> pl.Series:
    """Returns the maps of a column (null: empty), each with all entries of another column's map put
    in, which is not null: the bytes of `rawmap.merge`.

    What is usual is done at once: one Text is put into a map of Texts, numbers and a
    ProtocolStatus, or over its value there.
    """
    rows = len(metadata)
    own, other = from_series(metadata), from_series(others)
    at, length = _places(own)
    other_at, other_length = _places(other)
    found, new = _find(own, ()), _find(other, ())
    count, new_count = (np.bincount(one.row, minlength=rows) for one in (found, new))
    first = np.cumsum(count) - count
    usual = new_count == 1
    usual[new.row] &= (new.kind == TEXT) & (new.key_at == other_at[new.row] + _LEAST + 2)
    (name, of_new), (bucket, bucket_of_new) = _numbered(found, new)
    new_name, new_bucket = np.full(rows, -1), np.full(rows, -1)
    new_name[new.row], new_bucket[new.row] = of_new, bucket_of_new
    start, end = found.key_at - 2, found.value_at + found.value_len
    head, plain = _written(at, found, name, bucket)
    usual &= plain | (length == 0)
    # where the new entry goes: over its old value, or behind those that do not come after it
    before = np.bincount(found.row[bucket <= new_bucket[found.row]], minlength=rows)
    is_inside = before < count
    cut = at + length
    cut[is_inside] = start[(first + before)[is_inside]]
    goes_on = cut.copy()
    same = np.flatnonzero(name == new_name[found.row])
    cut[found.row[same]], goes_on[found.row[same]] = start[same], end[same]
    grows = np.ones(rows, np.int64)
    grows[found.row[same]] = 0
    skipped = np.where(length == 0, 0, _LEAST)  # of the other map
    out, map_at, lengths = _joined(
        np.stack([at, other_at + skipped, goes_on], axis=1)[usual],
        np.stack([cut - at, other_length - skipped, at + length - goes_on], axis=1)[usual],
    )
    # The count's last byte alone: such maps have fewer than 12 entries.
    had = length[usual] > 0
    out[(map_at + head[usual] + _SIZE - 1)[had]] = (count + grows)[usual][had]
    result = metadata.scatter(
        np.flatnonzero(usual), string_column("metadata", out, map_at, lengths, least=1)
    )
    slowly = np.flatnonzero(~usual)  # by `RawMap`, one by one
    pairs = zip(metadata.gather(slowly), others.gather(slowly), strict=True)
    return result.scatter(slowly, pl.Series([merge(*pair) for pair in pairs], dtype=pl.Binary))


def _written(
    at: Offsets, found: maps.Entries, name: Offsets, bucket: Offsets
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Returns how long the head of each map is, without the count of entries (0: no entries), and
    which maps are as Hadoop writes them: of Texts, numbers and a ProtocolStatus, without gaps, in
    the order of a HashMap of the first size, no key twice.

    `name` numbers the keys, `bucket` has their places in the HashMap.
    """
    rows = len(at)
    count = np.bincount(found.row, minlength=rows)
    first = np.cumsum(count) - count
    start, end = found.key_at - 2, found.value_at + found.value_len
    follows = np.diff(found.row, prepend=-1) == 0
    odd = (found.kind == OTHER) | (found.key_len > _ONE_BYTE)
    # A gap, or not in the order of buckets.
    odd |= follows & ((start != np.roll(end, 1)) | (bucket < np.roll(bucket, 1)))
    odd |= pl.Series(found.row * (name.max(initial=0) + 1) + name).is_duplicated().to_numpy()
    some = np.flatnonzero(count)
    head = np.zeros(rows, np.int64)
    head[some] = start[first[some]] - _SIZE - at[some]
    begins = np.empty((len(some), 2), np.uint8)
    maps.gather(at[some], np.full(len(some), 2, np.int32), begins.reshape(-1), np.empty_like(some))
    is_numbered = np.zeros(rows, bool)
    is_numbered[some] = (begins == 1).all(axis=1)  # one class, with the id that it would get
    plain = (head == 1) | (is_numbered & (head == 1 + 3 + len(_STATUS)))
    plain &= (count < _CAPACITY * 3 // 4) & ~np.isin(np.arange(rows), found.row[odd])
    return head, plain


def _numbered(*tables: maps.Entries) -> tuple[list[Offsets], list[Offsets]]:
    """Returns the keys of entries as numbers, and their buckets in a HashMap of the first size."""
    names = pl.concat([_gathered("name", one.key_at, one.key_len) for one in tables])
    distinct = names.unique()
    number = names.replace_strict(distinct, np.arange(len(distinct)), return_dtype=pl.Int64)
    hashes = np.array([text_hash(name) & 0xFFFF_FFFF for name in distinct], np.int64)
    buckets = (hashes ^ hashes >> 16) & (_CAPACITY - 1)
    ends = np.cumsum([len(one.row) for one in tables])[:-1]
    found = np.split(number.to_numpy().astype(np.int64), ends)
    return found, [buckets[one] for one in found]


def with_defaults(metadata: pl.Series, defaults: pl.Series) -> pl.Series:
    """Returns the maps of a column, each with those entries of another column's map whose keys it
    lacks; none is null. The bytes are those of `rawmap.with_defaults`.

    Mostly it lacks none: what is fetched has the metadata of the entry before by the fetch list.
    """
    rows = len(metadata)
    own, other = from_series(metadata), from_series(defaults)
    found, old = _find(own, ()), _find(other, ())
    (name, of_old), (bucket, _) = _numbered(found, old)
    _, usual = _written(_places(own)[0], found, name, bucket)
    # Makes one number of a row and a name.
    distinct = max(name.max(initial=0), of_old.max(initial=0)) + 1
    lacks = ~np.isin(old.row * distinct + of_old, found.row * distinct + name)
    usual[old.row[lacks | (old.kind == OTHER)]] = False
    # the class of a ProtocolStatus joins the table of a map that has it not
    has_status, had_status = (
        np.isin(np.arange(rows), one.row[one.kind == STATUS]) for one in (found, old)
    )
    slowly = np.flatnonzero(~usual | (had_status & ~has_status))
    pairs = zip(metadata.gather(slowly), defaults.gather(slowly), strict=True)
    slow = [rawmap.with_defaults(*pair) for pair in pairs]
    return metadata.clone().scatter(slowly, pl.Series(slow, dtype=pl.Binary))


def _joined(
    at: npt.NDArray[np.int64], length: npt.NDArray[np.int64]
) -> tuple[Bytes, Offsets, Lengths]:
    """Returns the pieces of each row one after the other, where rows begin, how long they are."""
    out = np.empty(int(length.sum()) + 1, np.uint8)
    out_at = np.empty(at.size, np.int64)
    maps.gather(at.reshape(-1), length.astype(np.int32).reshape(-1), out, out_at)
    return out, np.ascontiguousarray(out_at[:: at.shape[1]]), length.sum(axis=1, dtype=np.int32)


def _places(strings: Strings) -> tuple[Offsets, npt.NDArray[np.int64]]:
    """Returns the addresses and lengths of a column's strings."""
    at, length = np.empty(len(strings.views), np.int64), np.empty(len(strings.views), np.int32)
    sequencefile.string_places(*strings.column, at, length)
    return at, length.astype(np.int64)


def hash_buckets(
    owner: npt.NDArray[np.int64], hashes: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Returns the bucket of each key in the java.util.HashMap of its owner, which has its owner's
    keys and no others.

    `hashes` are the keys' hash codes without sign. Maps are iterated bucket by bucket; within one,
    in the order in which keys came. (That a crowded bucket makes a small table grow early is not
    followed.)
    """
    sizes = np.bincount(owner)
    capacity = np.full(len(sizes), _CAPACITY, np.int64)
    while (full := sizes * 4 > capacity * 3).any():  # HashMap.resize
        capacity[full] *= 2
    return (hashes ^ hashes >> 16) & (capacity[owner] - 1)


def _head(size: int) -> bytes:
    """Returns the bytes before the entries: no classes of its own, the count of entries."""
    return b"\0" + size.to_bytes(4, "big")
