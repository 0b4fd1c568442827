"""Says how many URLs come back to a group of URLs from one that was asked for, over as many other
groups of its domain as there are on the way, or one of another domain. Pure: no I/O.

Groups and what leads from one to another are a graph with weights. The growth of a group is the
largest eigenvalue of the cycles that it is in, as the weights of all ways from it rise with each
step, and of all ways to it: the smaller of both, as what leads to a trap is none itself. Over two
groups alone, three that led to each other in turn asked for four times as many pages each round;
over all domains the web itself grows.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_STEPS: Final = 128
"""Where ways grow by sums alone, that looks like 1.02 after so many."""
_TRIMS: Final = 64
"""How often what lies at an end is left out: the rest costs time alone."""
_SCHEMA: Final = pl.Schema({"group": pl.UInt64(), "growth": pl.Float64()})


def growth(led: pl.DataFrame) -> pl.DataFrame:
    """Returns `group` and `growth` of those that are in cycles, and maybe of some between them.
    `led` says that a URL of `finder` leads to so many of `group`: `by` > 0, each pair once; `owner`
    and `finder_owner` are their domains.
    """
    is_within = pl.col("owner") == pl.col("finder_owner")
    others = led.filter(~is_within)
    back = others.select(group="finder", finder="group", back="by")
    twice = (pl.col("by") * pl.col("back")).sum().sqrt().round(6)
    around = others.join(back, on=["group", "finder"]).group_by("group").agg(growth=twice)
    found = pl.concat([_within(led.filter(is_within)), around])
    return found.group_by("group").agg(pl.col("growth").max())


def _within(led: pl.DataFrame) -> pl.DataFrame:
    edges = led.select("group", "finder", "by")
    for _ in range(_TRIMS):
        to, of = edges["group"].implode(), edges["finder"].implode()
        on = edges.filter(pl.col("group").is_in(of) & pl.col("finder").is_in(to))
        if len(on) == len(edges):
            break
        edges = on
    if edges.is_empty():
        return pl.DataFrame(schema=_SCHEMA)
    groups, numbers = np.unique(edges["group"].to_numpy(), return_inverse=True)
    finders = np.searchsorted(groups, edges["finder"].to_numpy())
    weights = np.log(edges["by"].to_numpy())
    rates = np.minimum(_rates(finders, numbers, weights), _rates(numbers, finders, weights))
    return pl.DataFrame({"group": groups, "growth": rates.round(6)}, schema=_SCHEMA)


def _rates(of: Ints, to: Ints, weights: Floats) -> Floats:
    """Returns how the sum of the weights of all ways `of` each group rises with a step. A way may
    rest, so that those around a cycle are as many at each step; logarithms, lest they overflow.
    """
    order = np.argsort(of, kind="stable")
    of, to, weights = of[order], to[order], weights[order]
    starts = np.flatnonzero(np.append(True, of[1:] != of[:-1]))
    sums = np.zeros(len(starts))
    half = sums
    for step in range(_STEPS):
        if step == _STEPS // 2:
            half = sums
        ways = weights + sums[to]
        most = np.maximum.reduceat(ways, starts)
        new = np.log(np.add.reduceat(np.exp(ways - most[of]), starts)) + most
        sums = np.logaddexp(sums, new)
    rates: Floats = np.expm1((sums - half) * 2 / _STEPS)
    return rates
