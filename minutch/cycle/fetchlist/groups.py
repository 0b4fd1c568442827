"""Says which group of URLs a URL belongs to (`budget`), and which hosts are of one domain. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.urls.hostcolumns import domains_of, host_names
from minutch.urls.patterns import LEVELS
from minutch.work.tables.frame import decode_keys

Hashes = npt.NDArray[np.uint64]

NAMES: Final = pl.Schema({"host": pl.UInt64(), "is_asked": pl.Boolean(), "name": pl.String()})


@dataclass(frozen=True, slots=True)
class Levels:
    """What says which group a URL belongs to."""

    seed: int
    known: Hashes
    """The levels of which enough was asked for, in order."""
    domains: pl.DataFrame
    """The `domain`s (hashes) of each `host` that may share one with others, by that, and whether it
    `is_asked`: something of it was asked for.
    """

    def groups_of(self, hashes: Hashes) -> tuple[Hashes, npt.NDArray[np.uint8]]:
        """Returns the group of each URL, and its level: the smallest that is known, or the host; of
        hosts that were never asked their domain.
        """
        group, level = hashes[:, 0].copy(), np.zeros(len(hashes), np.uint8)
        for number in range(1, len(LEVELS)):
            found = _are_in(self.known, hashes[:, number])
            group[found], level[found] = hashes[found, number], number
        new = self.domains.filter(~pl.col("is_asked"))
        others = np.flatnonzero((level == 0) & _are_in(new["host"].to_numpy(), group))
        at = np.searchsorted(new["host"].to_numpy(), group[others])
        group[others] = new["domain"].to_numpy()[at]
        return group, level


def _are_in(ordered: Hashes, values: Hashes) -> npt.NDArray[np.bool_]:
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    found: npt.NDArray[np.bool_] = (
        ordered[np.searchsorted(ordered, values).clip(max=len(ordered) - 1)] == values
    )
    return found


def with_hosts(
    hosts: pl.DataFrame, keys: pl.Series, own: Hashes, is_asked: pl.Series
) -> pl.DataFrame:
    """Returns hosts (NAMES) with those of more URLs; `own` are their hashes."""
    rows = pl.DataFrame({"host": own, "is_asked": is_asked, "name": keys})
    rows = rows.group_by("host").agg(pl.col("is_asked").any(), pl.col("name").first())
    rows = rows.with_columns(name=host_names(decode_keys(rows["name"])))
    return (
        pl.concat([hosts, rows])
        .group_by("host")
        .agg(pl.col("is_asked").any(), pl.col("name").first())
    )


def domains_in(hosts: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Returns the domains (`Levels.domains`) of hosts that may share them: that have their last
    two labels in common, or three where two are a suffix.
    """
    found = list[pl.DataFrame]()
    for count in (2, 3):
        labels = pl.col("name").str.extract(rf"((?:[^.]+\.){{{count - 1}}}[^.]+)$")
        hosts = hosts.with_columns(domain=labels).drop_nulls("domain")
        hosts = hosts.filter(pl.len().over("domain") > 1)
        ends = hosts["domain"].unique()
        is_one = hosts["domain"].is_in(ends.filter(domains_of("a." + ends) == ends).implode())
        found.append(hosts.filter(is_one))
        hosts = hosts.filter(~is_one)
    return pl.concat(found).select("host", "is_asked", pl.col("domain").hash(seed)).sort("host")
