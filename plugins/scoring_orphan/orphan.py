"""scoring-orphan: marks pages as gone, then as orphans, if no link to them has been found for a
long time.

    _orphan_   IntWritable in a CrawlDatum's metadata: seconds since the epoch when updatedb last
               saw a link to the page

A page without that entry (a seed that nothing links to) is left alone. db.update.purge.orphans
removes orphans. From 2038 on the seconds go around in their 32 bits, and ages are reckoned so; in
Nutch all pages become orphans then. Source: org.apache.nutch.scoring.orphan.OrphanScoringFilter.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from minutch.conf import Configuration
from minutch.hadoop.formats.writables import IntWritable, MapWritable, Text
from minutch.plugin.points import ScoringFilter
from minutch.records import rawmap
from minutch.records.crawldatum import STATUS_DB_GONE, STATUS_DB_ORPHAN, CrawlDatum

if TYPE_CHECKING:
    import polars as pl

log = logging.getLogger(__name__)

LAST_LINKED: Final = Text("_orphan_")
_Seconds = TypeVar("_Seconds", int, "pl.Series")
_RAW_KEY: Final = rawmap.text_key("_orphan_")


class OrphanScoringFilter(ScoringFilter):
    """The scoring filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.gone_after = conf.get_int("scoring.orphan.mark.gone.after")
        self.orphan_after = conf.get_int("scoring.orphan.mark.orphan.after")
        if self.gone_after > self.orphan_after:
            log.warning(
                "scoring.orphan.mark.gone.after (%d s) is longer than"
                " scoring.orphan.mark.orphan.after (%d s): pages become orphans and are never"
                " marked as gone",
                self.gone_after,
                self.orphan_after,
            )

    @property
    def _now(self) -> int:
        """Seconds since the epoch."""
        return self.clock.now() // 1000

    # -- one record --------------------------------------------------------------------------------

    def update_db_score(
        self, url: str, old: CrawlDatum | None, datum: CrawlDatum, inlinked: list[CrawlDatum]
    ) -> None:
        if inlinked:
            datum.metadata[LAST_LINKED] = IntWritable(_in_32_bits(self._now))
        else:
            self.orphaned_score(url, datum)

    def orphaned_score(self, url: str, datum: CrawlDatum) -> None:
        linked = datum.metadata.get(LAST_LINKED)
        if not isinstance(linked, IntWritable):
            return
        # The difference goes around, too: right for ages up to 68 years.
        elapsed = _in_32_bits(self._now - linked.value)
        if elapsed > self.orphan_after:
            datum.status = STATUS_DB_ORPHAN
        elif elapsed > self.gone_after:
            datum.status = STATUS_DB_GONE

    # -- columns -----------------------------------------------------------------------------------

    def update_db_score_columns(
        self, frame: pl.DataFrame, old: pl.DataFrame, inlinked: pl.DataFrame
    ) -> pl.DataFrame:
        import numpy as np
        import polars as pl

        mask = np.zeros(len(frame), np.bool_)
        mask[inlinked["row"].to_numpy()] = True
        linked = pl.Series(mask)
        # One map for all pages of a range: most have nothing else.
        stamp = MapWritable({LAST_LINKED: IntWritable(_in_32_bits(self._now))}).to_bytes()
        stamped = _stamped(frame["metadata"].filter(linked), stamp)
        frame = frame.with_columns(metadata=frame["metadata"].scatter(linked.arg_true(), stamped))
        return self._marked(frame, ~linked)

    def orphaned_score_columns(self, frame: pl.DataFrame) -> pl.DataFrame:
        import polars as pl

        return self._marked(frame, pl.repeat(True, len(frame), dtype=pl.Boolean, eager=True))

    def _marked(self, frame: pl.DataFrame, where: pl.Series) -> pl.DataFrame:
        """Returns the table with new statuses in the rows `where`: pages without links for long."""
        elapsed = _in_32_bits(self._now - _last_linked(frame["metadata"]))
        gone = (where & (elapsed > self.gone_after)).fill_null(False)
        orphaned = (where & (elapsed > self.orphan_after)).fill_null(False)
        if not (gone | orphaned).any():
            return frame
        return frame.with_columns(
            status=frame["status"].set(gone, STATUS_DB_GONE).set(orphaned, STATUS_DB_ORPHAN)
        )


def _in_32_bits(seconds: _Seconds) -> _Seconds:
    """Returns the signed number that 32 bits hold of it."""
    return (seconds + 2**31) % 2**32 - 2**31


_ALONE: Final = MapWritable({LAST_LINKED: IntWritable(0)}).to_bytes()[:-4]
"""The bytes of a map with nothing else, before the number: of most pages never fetched."""


def _stamped(metadata: pl.Series, stamp: bytes) -> pl.Series:
    """Returns the metadata with the entry of `stamp` put in."""
    import polars as pl

    alone = (metadata.is_null() | _is_alone(metadata)).fill_null(True)
    stamped = pl.select(
        pl.when(alone).then(pl.lit(stamp, pl.Binary)).otherwise(metadata)
    ).to_series()
    others = [rawmap.merge(data, stamp) for data in metadata.filter(~alone)]
    return stamped.scatter((~alone).arg_true(), pl.Series(others, dtype=pl.Binary))


def _last_linked(metadata: pl.Series) -> pl.Series:
    """Returns the time of the last link to each page, in seconds since 1970; null if unknown."""
    import polars as pl

    alone = _is_alone(metadata)
    seconds = metadata.bin.slice(len(_ALONE), 4).set(~alone, None)
    times = seconds.bin.reinterpret(dtype=pl.Int32, endianness="big").cast(pl.Int64)
    others = rawmap.values_of(metadata.set(alone, None), _RAW_KEY)
    found = {row: value.value for row, value in others.items() if isinstance(value, IntWritable)}
    return times.scatter(list(found), list(found.values())) if found else times


def _is_alone(metadata: pl.Series) -> pl.Series:
    """Returns the mask of the maps that hold `_orphan_` and nothing else."""
    return (metadata.bin.starts_with(_ALONE) & (metadata.bin.size() == len(_ALONE) + 4)).fill_null(
        False
    )
