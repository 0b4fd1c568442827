"""Finds chains of redirects, the longest first. Pure: numbers in, numbers out."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.inspect.query.ids import Ids, places_in

MOST_HOPS: Final = 50
"""A chain that is longer is cut here."""


def longest(redirects: pl.DataFrame, most: int) -> tuple[int, list[list[int]]]:
    """Returns the number of chains of two redirects or more, and the `most` longest as ids.

    `redirects` has one row (`id`, `to`) for each URL that redirects. A chain begins where no
    redirect leads to; in a circle, one begins at the least id and ends where it began.
    """
    ordered = redirects.unique("id", keep="last").sort("id")
    ids, targets = ordered["id"].to_numpy(), ordered["to"].to_numpy()
    if not len(ids):
        return 0, []
    at, is_redirect = places_in(ids, targets)
    follows = np.where(is_redirect, at, -1)
    starts = np.setdiff1d(np.arange(len(ids)), follows[follows >= 0])
    hops = _lengths(follows, starts)
    circles = _circles(follows, starts)
    every = np.concatenate([starts, circles[:, 0]])
    lengths = np.concatenate([hops, circles[:, 1]])
    is_chain = lengths > 1
    every, lengths = every[is_chain], lengths[is_chain]
    order = np.lexsort((ids[every], -lengths))[:most]
    return len(every), [_walk(ids, targets, follows, int(start)) for start in every[order]]


def _lengths(
    follows: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Returns the number of redirects from each start on, at most MOST_HOPS."""
    hops, here = np.ones(len(starts), np.int64), follows[starts]
    for _ in range(MOST_HOPS - 1):
        on = here >= 0
        if not on.any():
            break
        hops += on
        here = np.where(on, follows[np.maximum(here, 0)], -1)
    return hops


def _circles(
    follows: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Returns circles that nothing leads into from outside: the place of their least member, and
    their length.
    """
    reached = np.zeros(len(follows), bool)
    here = starts
    while len(here):
        reached[here] = True
        here = np.unique(follows[here])
        here = here[here >= 0]
        here = here[~reached[here]]
    found = []
    for start in np.flatnonzero(~reached):
        if reached[start]:
            continue
        length, place = 0, int(start)
        while not reached[place]:
            reached[place] = True
            place, length = int(follows[place]), length + 1
        found.append((int(start), min(length, MOST_HOPS)))
    return np.array(found, np.int64).reshape(-1, 2)


def _walk(ids: Ids, targets: Ids, follows: npt.NDArray[np.int64], start: int) -> list[int]:
    """Returns the ids of a chain, from its start to its end."""
    chain, place, passed = [int(ids[start])], start, {start}
    while len(chain) <= MOST_HOPS:
        chain.append(int(targets[place]))
        place = int(follows[place])
        if place < 0 or place in passed:
            break
        passed.add(place)
    return chain
