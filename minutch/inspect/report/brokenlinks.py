"""Finds links to pages that are gone or fail, and the pages that they are on. Pure: pieces of links
in, facts out.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from minutch.inspect.report.groupcounts import with_own_texts
from minutch.work.tables.frame import decode_keys

MOST_PLACES: Final = 5
"""Pages that are kept of those that link to an address."""
_MANY: Final = 32
_SCHEMA: Final = {
    "id": pl.UInt64,
    "url": pl.String,
    "from_url": pl.String,
    "anchor": pl.String,
    "n": pl.Int64,
}


class BrokenLinks:
    """A counter of links to addresses that are `broken`, by their ids."""

    def __init__(self, broken: pl.Series) -> None:
        self._broken = broken.implode()
        self._counts = [pl.DataFrame(schema={"id": pl.UInt64, "n": pl.Int64})]
        self._samples = [
            pl.DataFrame(schema={name: kind for name, kind in _SCHEMA.items() if name != "n"})
        ]
        self.links = 0

    def add(self, links: pl.DataFrame) -> None:
        """Counts links: `id` (of their targets), `url`, `from_url`, `anchor` (Binary)."""
        self.links += links.height
        mine = links.filter(pl.col("id").is_in(self._broken))
        self._counts.append(mine.group_by("id").agg(pl.len().cast(pl.Int64).alias("n")))
        texts = [decode_keys(mine[name]).alias(name) for name in ("url", "from_url", "anchor")]
        self._samples.append(with_own_texts(_first(mine.select("id").with_columns(texts))))
        if len(self._counts) > _MANY:
            self._counts = [self._counted()]
            self._samples = [_first(pl.concat(self._samples))]

    def _counted(self) -> pl.DataFrame:
        return pl.concat(self._counts).group_by("id").agg(pl.col("n").sum())

    @property
    def addresses(self) -> int:
        """Number of addresses that are broken and linked to."""
        return self._counted().height

    def table(self, whys: pl.DataFrame, most: int) -> pl.DataFrame:
        """Returns the addresses with the most links; `whys` has the known reasons."""
        top = self._counted().sort("n", "id", descending=[True, False]).head(most)
        samples = _first(
            pl.concat(self._samples).join(top, on="id", how="semi", maintain_order="left")
        )
        places = samples.group_by("id").agg(
            pl.col("url").first(),
            pl.col("from_url").alias("pages"),
            pl.col("anchor").alias("anchors"),
        )
        found = top.join(places, on="id").join(
            whys.select("id", "why").unique("id", keep="last"), on="id", how="left"
        )
        return found.rename({"n": "links"}).sort("links", "url", descending=[True, False])


def _first(links: pl.DataFrame) -> pl.DataFrame:
    """Returns the first links to each address, one a page."""
    return (
        links.unique(["id", "from_url"], keep="first", maintain_order=True)
        .group_by("id", maintain_order=True)
        .head(MOST_PLACES)
    )
