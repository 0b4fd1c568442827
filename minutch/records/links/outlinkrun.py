"""The links of a page as one run of serialized Outlinks: what kernels walk and what a ParseData's
bytes hold.

    run      outlink*
    outlink  VInt length, URL in UTF-8 | VInt length, anchor in UTF-8 | boolean 0          (no
             metadata)

To code for single links a run is a sequence of Outlinks that are made when they are asked for. It
never changes: a plugin that adds links puts a list in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import overload

from minutch.hadoop.formats.javaio import DataInput, DataOutput
from minutch.records.links.link import Outlink


class OutlinkRun(Sequence[Outlink]):
    """`length` links without metadata, back to back in `data`."""

    __slots__ = ("data", "length")

    def __init__(self, length: int, data: bytes) -> None:
        self.length = length
        self.data = data

    @classmethod
    def of(cls, links: Iterable[Outlink]) -> OutlinkRun | None:
        """Returns the run of any links; None if one has metadata."""
        out = DataOutput()
        count = 0
        for link in links:
            if link.metadata:
                return None
            link.write(out)
            count += 1
        return cls(count, out.getvalue())

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Outlink]:
        source = DataInput(self.data)
        for _ in range(self.length):
            yield Outlink.read(source)

    @overload
    def __getitem__(self, index: int) -> Outlink: ...

    @overload
    def __getitem__(self, index: slice) -> list[Outlink]: ...

    def __getitem__(self, index: int | slice) -> Outlink | list[Outlink]:
        if isinstance(index, int) and 0 <= index < self.length:
            return next(islice(self, index, None))
        return list(self)[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, OutlinkRun):
            return self.data == other.data
        return isinstance(other, list) and list(self) == other

    def __hash__(self) -> int:
        return hash(self.data)

    def __repr__(self) -> str:
        return f"OutlinkRun({list(self)!r})"


def as_run(links: Sequence[Outlink]) -> Sequence[Outlink]:
    """Returns the links as a run, as they are if one has metadata."""
    run = OutlinkRun.of(links)
    return links if run is None else run


def joined(*parts: Sequence[Outlink]) -> Sequence[Outlink]:
    """One after the other: a run if all of them are runs."""
    runs = [part for part in parts if isinstance(part, OutlinkRun)]
    if len(runs) < len(parts):
        return [link for part in parts for link in part]
    return OutlinkRun(sum(map(len, runs)), b"".join(run.data for run in runs))
