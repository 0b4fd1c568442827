"""Reading MapFiles only where rows may be that a query asks for.

A MapFile's index has a key for each 128 records; between two of its entries lies a block of records whose keys are
between theirs. A block is passed over if no wanted URL can be in it, or if its first key and the next block's agree up
to the end of the host, and the query does not want that host. Blocks that are left are read as ranges of keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.errors import FormatError
from minutch.query.predicates import Ranges, Where
from minutch.query.table import Request
from minutch.tables.frame import decode_keys
from minutch.tables.keyranges import KeyRange, SortedPart
from minutch.tables.parallel import ordered
from minutch.tables.spans import Decode, scan_all
from minutch.urls.hosts import hosts_of

RANGE_SIZE: Final = 1 << 22
"""Bytes of a file that are read at a time."""
_GAP: Final = 16
"""Blocks are read along with those before and after them if they take less than this part of RANGE_SIZE."""
_SITE: Final = r"^[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*[/?#]"
"""A URL up to the end of its host (and port)."""

Mask = npt.NDArray[np.bool_]


def piecewise(paths: Sequence[Path], value_class: str, decode: Decode, request: Request) -> Iterator[pl.DataFrame]:
    """What `decode` makes of the records of files, one after the other, as far as a request may want them.

    What is no MapFile is read as a whole. Several pieces are read side by side. Raises FormatError.
    """
    where = request.where
    if where.is_everywhere or not all(path.is_dir() for path in paths):
        return scan_all(paths, value_class, decode, span_size=RANGE_SIZE)
    pieces = (
        (part, keys)
        for path in paths
        for part in [SortedPart(path, value_class)]
        for keys in wanted_ranges(part, where)
    )
    return ordered(lambda piece: read_range(*piece, decode), pieces, leave=True)


def read_range(part: SortedPart, keys: KeyRange, decode: Decode) -> pl.DataFrame:
    """What `decode` makes of the records of a part in a range of keys. Raises FormatError."""
    try:
        return decode(keys.part_of(part.batch(keys)))
    except FormatError as exc:
        raise exc.within(part.path) from exc


def wanted_ranges(part: SortedPart, where: Where) -> Iterator[KeyRange]:
    """The ranges of keys in which a part may have rows, in order, each about RANGE_SIZE bytes of the file at most;
    with some in between that it has none in."""
    size, blocks = RANGE_SIZE, list(part.sizes())
    keys = [key for key, _ in blocks]
    wanted = _by_url(keys, where.urls)
    if where.hosts is not None:
        wanted &= _by_host(keys, where.hosts)
    ends = np.cumsum([length for _, length in blocks], dtype=np.int64)
    found = np.flatnonzero(wanted)
    if not len(found):
        return
    first = last = int(found[0])
    for number in map(int, found[1:]):
        gap = ends[number - 1] - ends[last]
        if gap > size // _GAP or ends[number] - ends[first] > size:
            yield KeyRange(keys[first], keys[last + 1])
            first = number
        last = number
    yield KeyRange(keys[first], keys[last + 1] if last + 1 < len(keys) else None)


def _by_url(keys: Sequence[bytes], ranges: Ranges) -> Mask:
    """The blocks in which one of the ranges may have keys."""
    wanted = np.zeros(len(keys), np.bool_)
    column = pl.Series("key", keys, dtype=pl.Binary)
    for low, high in ranges:
        first, last = 0, len(keys)
        if low is not None:
            first = max(0, int(column.search_sorted(low, side="left")) - 1)
        if high is not None:
            last = int(column.search_sorted(high, side="left"))
        wanted[first:last] = True
    return wanted


def _by_host(keys: Sequence[bytes], condition: pl.Expr) -> Mask:
    """The blocks that have several hosts, perhaps, or one that the condition holds for."""
    urls = decode_keys(pl.Series("url", keys, dtype=pl.Binary))
    sites = urls.str.extract(f"({_SITE})")
    wanted = np.ones(len(keys), np.bool_)
    alone = ((sites[:-1] == sites[1:]).fill_null(False)).to_numpy() if len(keys) > 1 else np.zeros(0, np.bool_)
    mine = hosts_of(urls.gather(np.flatnonzero(alone))).alias("host").to_frame()
    wanted[np.flatnonzero(alone)] = mine.select(condition.fill_null(False)).to_series().to_numpy()
    return wanted
