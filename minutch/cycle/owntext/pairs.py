"""Tells which pairs of pages have own texts near each other, and remembers what it has told, since
most pairs are asked about after each round of a crawl.

    <crawl>/frames/pairs.<seal>.parquet
    pair       a hash of both URLs, their versions, and the seals of their hosts
    is_near    the answer

What its pages' texts and their hosts' frames are made of has not changed where the pair is known:
answers are those that would be given now. The seal is that of counts (`frames`).
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Final

import polars as pl

from minutch.cycle.owntext.frames import SiteFrames, damaged, seal_of
from minutch.cycle.owntext.near import KEYS, NOTION, keys_of_pages, seals_of
from minutch.cycle.segment.store import segments_in
from minutch.work.tables.install import NEW, work_folder

_SCHEMA: Final = pl.Schema({"pair": pl.UInt64(), "is_near": pl.Boolean()})
_SIDES: Final = ("url", "version"), ("other", "other_version")


class NearPairs:
    """The pairs of a crawl's pages that have been asked about."""

    def __init__(self, crawl: Path) -> None:
        folder = crawl / "segments"
        self._segments = segments_in(folder) if folder.is_dir() else []
        self._sites = SiteFrames(crawl, self._segments)
        self._told = [pl.DataFrame(schema=_SCHEMA)]

    def ask(self, pairs: pl.DataFrame) -> pl.Series:
        """Returns whether the texts of pages are near each other. Columns: `url`, `other` (Binary),
        `version`, `other_version` (another number for each parse of a page). Raises FormatError.
        """
        numbers = self._numbers(pairs)
        known = numbers.to_frame().join(self._known, on="pair", how="left", maintain_order="left")
        found = known["is_near"]
        new = found.is_null().arg_true()
        if len(new):
            found = found.scatter(new, self._compared(pairs.select(pl.all().gather(new))))
        self._told.append(pl.DataFrame([numbers, found]))
        return found

    def close(self) -> None:
        """Gives up what is in use."""
        self._sites.close()

    def keep(self) -> None:
        """Remembers what was told, and forgets all else."""
        told = pl.concat(self._told).unique("pair").sort("pair")
        if told.equals(self._known):
            return
        folder = self._sites.folder
        with work_folder(folder, NEW) as fresh:
            told.write_parquet(fresh / self._name)
            (fresh / self._name).replace(folder / self._name)
        for path in folder.glob("pairs.*.parquet"):
            if path.name != self._name:
                with suppress(OSError):
                    path.unlink()

    @property
    def _name(self) -> str:
        return f"pairs.{seal_of([], NOTION)}.parquet"

    @cached_property
    def _known(self) -> pl.DataFrame:
        file = self._sites.folder / self._name
        try:
            return pl.read_parquet(file, glob=False)
        except FileNotFoundError:
            return self._told[0]
        except pl.exceptions.PolarsError as exc:
            raise damaged(self._sites.folder, exc) from exc

    @cached_property
    def _seals(self) -> pl.DataFrame:
        return self._sites.seals()

    def _numbers(self, pairs: pl.DataFrame) -> pl.Series:
        columns = []
        for url, version in _SIDES:
            seals = seals_of(pairs[url], self._seals).alias(f"{url}_seal")
            columns += [pairs[url], pairs[version], seals]
        return pl.DataFrame(columns).hash_rows().alias("pair")

    def _compared(self, pairs: pl.DataFrame) -> pl.Series:
        both = pl.concat([pairs["url"], pairs["other"].alias("url")])
        keys = keys_of_pages(self._sites, self._segments, both.unique().sort())
        table = pairs.select("url", "other")
        for url, end in (("url", ""), ("other", "_of_other")):
            of_side = keys.rename({"key": url} | {band: f"{band}{end}" for band in KEYS})
            table = table.join(of_side, on=url, how="left", maintain_order="left")
        same = [(pl.col(b) == pl.col(f"{b}_of_other")) & (pl.col(b) != 0) for b in KEYS]
        return table.select(pl.any_horizontal(same).fill_null(value=False)).to_series()
