"""What the writers of tables have in common: small tables go to a file row by row, large ones through kernels.

Rows are kept until it is known which of the two the table is worth; the file comes out the same either way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

BULK_ROWS = 20_000
"""Rows from which loading the kernels takes less time than writing row by row."""


class _Sized(Protocol):
    def __len__(self) -> int: ...


T = TypeVar("T", bound=_Sized)
T_contra = TypeVar("T_contra", contravariant=True)


class Sink(Protocol[T_contra]):
    """A file that takes tables."""

    def write(self, table: T_contra, /) -> None: ...
    def close(self) -> None: ...
    def discard(self) -> None: ...


class TableWriter(ABC, Generic[T]):
    """A context manager: the file is complete, with its `.crc` siblings, when it is left; an error removes it."""

    def __init__(self) -> None:
        self.rows = 0
        self._waiting: list[T] = []
        self._sink: Sink[T] | None = None

    @abstractmethod
    def _open_rows(self) -> Sink[T]:
        """The file, written row by row."""

    @abstractmethod
    def _open_bulk(self) -> Sink[T] | None:
        """The file, written by kernels; None where they can't write it."""

    def write(self, table: T) -> None:
        """Append the rows of `table`. FormatError if a MapFile's keys are out of order."""
        self.rows += len(table)
        if self._sink is None:
            self._waiting.append(table)
            if self.rows < BULK_ROWS:
                return
            self._sink = self._open_bulk() or self._open_rows()
            self._flush()
        else:
            self._sink.write(table)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        assert self._sink is not None
        for table in waiting:
            self._sink.write(table)

    def close(self) -> None:
        """Finish the file."""
        if self._sink is None:
            self._sink = self._open_rows()
            self._flush()
        self._sink.close()

    def discard(self) -> None:
        """Remove what was written."""
        self._waiting.clear()
        if self._sink is not None:
            self._sink.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            try:
                self.close()
            except BaseException:
                self.discard()
                raise
        else:
            self.discard()
