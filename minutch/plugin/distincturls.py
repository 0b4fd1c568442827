"""Processes each distinct string of a column once: a chain calls plugins only once for a URL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


def by_distinct(urls: pl.Series, change: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Applies `change` to the distinct strings of a column; null stays null."""
    if urls.is_empty():
        return urls
    if urls.null_count():
        import polars as pl

        present = urls.is_not_null()
        nothing = pl.repeat(None, len(urls), dtype=pl.String, eager=True).alias(urls.name)
        return nothing.scatter(present.arg_true(), by_distinct(urls.filter(present), change))
    rows, numbers = numbered(urls)
    results = change(urls) if len(rows) == len(urls) else change(urls.gather(rows)).gather(numbers)
    return results.alias(urls.name)


def numbered(values: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Returns the first row of each distinct string, and the number of each row's string.

    The column has no nulls.
    """
    import polars as pl

    from minutch.kernels.arrow import from_series
    from minutch.kernels.distinct import numbered as kernel_numbered

    rows, numbers = kernel_numbered(from_series(values).column)
    return pl.Series(rows), pl.Series(numbers)
