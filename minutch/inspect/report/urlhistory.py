"""Follows each URL from round to round: statuses over time, changes, ages, redirects. Pure.

A URL is a number here (`entries.ID`), a fetch a row of a few numbers, so that a crawl's fetches fit
into memory, or at least those of some of its URLs: `part` says of which.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from minutch.inspect.query.columns import ID
from minutch.inspect.query.pages import OUTCOMES, was_asked
from minutch.inspect.report.counts import ROWS, Aggregate, GroupCounts, bucketed
from minutch.inspect.report.facts import TABLES

ROW_BYTES: Final = 160
"""Memory of a fetch while it is counted."""
SIZE_BOUNDS: Final = (
    1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 10**6, 10**7, 10**8,
)  # fmt: skip
_HOUR: Final = 3600
_HOURS: Final = (1, 3, 6, 12, 24, 48, 96, 168, 336, 720, 1440, 2160, 4320, 8760, 17520, 43800)
AGE_BOUNDS: Final = (60, 300, 900, *(_HOUR * hours for hours in _HOURS))
"""Seconds."""
_SEEN: Final = ("fetched", "unchanged")
_ANSWERS: Final = (*_SEEN, "redirected", "gone")


class UrlHistories:
    """Counts of the URLs' fetches; `segments` are the names of all, `now` is in epoch ms."""

    def __init__(self, segments: Mapping[str, int], now: int) -> None:
        self._segments, self._rows = segments, list[pl.DataFrame]()
        outcome, segment = pl.col("outcome").cast(pl.String), pl.col("segment")
        self._came = GroupCounts({"segment": segment, "outcome": outcome}, n=ROWS)
        self._left = GroupCounts(
            {"segment": segment, "outcome": pl.col("before").cast(pl.String)}, n=ROWS
        )
        same = pl.col("same").cast(pl.Int64)
        self._changes = GroupCounts(
            {"segment": segment}, same=Aggregate(same), changed=Aggregate(1 - same)
        )
        age = (now - pl.col("time")) // 1000
        rounded = pl.when(age < _HOUR).then(age // 60 * 60).otherwise(age // _HOUR * _HOUR)
        self._ages = GroupCounts({"age": pl.when(age < 0).then(0).otherwise(rounded)}, n=ROWS)
        self._types = GroupCounts(
            {"content_type": pl.col("type").cast(pl.String)},
            pages=ROWS,
            bytes=Aggregate(pl.col("size")),
        )
        self._sizes = GroupCounts(
            {"size": pl.col("size").cast(pl.Float64).round_sig_figs(2).floor().cast(pl.Int64)},
            n=ROWS,
        )
        self._seen = [
            pl.DataFrame(schema={"id": pl.UInt64, "first": pl.Int32, "outcome": pl.Enum(OUTCOMES)})
        ]
        self._whys = [pl.DataFrame(schema={"id": pl.UInt64, "why": pl.String})]
        self._redirects = [
            pl.DataFrame(
                schema={
                    "id": pl.UInt64,
                    "to": pl.UInt64,
                    "number": pl.Int32,
                    "is_newest": pl.Boolean,
                }
            )
        ]

    def add(self, frame: pl.DataFrame, part: int = 0, parts: int = 1) -> None:
        """Keeps the fetches of a piece from `with_outcomes`: those of a part of all URLs."""
        rows = frame.select(
            ID,
            pl.col("segment").replace_strict(self._segments, return_dtype=pl.Int32),
            "outcome",
            pl.col("fetch_time").to_physical().alias("time"),
            pl.col("digest").hash().alias("digest"),
            pl.col("content_type")
            .str.split(";")
            .list.first()
            .str.strip_chars()
            .str.to_lowercase()
            .alias("type"),
            "size",
            pl.col("redirect_to").hash().alias("to"),
            pl.coalesce("why", "answer").alias("why"),
            asked=was_asked(),
            has_digest=pl.col("digest").is_not_null(),
            has_to=pl.col("redirect_to").is_not_null(),
        )
        rows = rows.with_columns(
            pl.when("has_digest").then("digest").alias("digest"),
            pl.when("has_to").then("to").alias("to"),
        )
        rows = rows.drop("has_digest", "has_to").with_columns(
            pl.col("type", "why").cast(pl.Categorical)
        )
        self._rows.append(rows if parts == 1 else rows.filter(pl.col("id") % parts == part))

    def count(self) -> None:
        """Counts what has been added; then the fetches of other URLs may come."""
        if not self._rows:
            return
        rows = pl.concat(self._rows).sort("id", "segment", maintain_order=True)
        self._rows = []
        is_next = pl.col("id") == pl.col("id").shift()
        digest = pl.col("digest").forward_fill().over("id")
        seen = pl.col("outcome").is_in(_SEEN)
        rows = rows.with_columns(
            pl.when(is_next).then(pl.col("outcome").shift()).alias("before"),
            digest.alias("_digest"),
            seen.cum_sum().over("id").alias("_times"),
        )
        self._came.add(rows)
        self._left.add(rows)
        self._count_changes(rows, seen)
        answered = rows.filter(pl.col("outcome").is_in(_ANSWERS))
        self._ages.add(answered.unique("id", keep="last", maintain_order=True).filter(seen))
        content = rows.filter(pl.col("outcome") == "fetched").unique(
            "id", keep="last", maintain_order=True
        )
        self._types.add(content)
        self._sizes.add(content)
        asked = rows.filter("asked").with_columns(
            is_newest=(pl.col("id") != pl.col("id").shift(-1)).fill_null(True)
        )
        newest = asked.filter("is_newest")
        first = rows.unique("id", keep="first", maintain_order=True)
        self._seen.append(
            first.select("id", first="segment").join(
                newest.select("id", "outcome"), on="id", how="left", maintain_order="left"
            )
        )
        trouble = newest.filter(pl.col("outcome").is_in(["gone", "failed"]))
        self._whys.append(trouble.select("id", pl.col("why").cast(pl.String)))
        redirects = asked.filter(pl.col("to").is_not_null())
        self._redirects.append(
            redirects.select("id", "to", number="segment", is_newest="is_newest")
        )

    def _count_changes(self, rows: pl.DataFrame, seen: pl.Expr) -> None:
        """Counts pages fetched again whose content is the same, or not."""
        before = pl.col("_digest").shift().over("id")
        again = rows.with_columns(before.alias("_before")).filter(seen & (pl.col("_times") > 1))
        same = (
            pl.when(pl.col("outcome") == "unchanged")
            .then(True)
            .otherwise(pl.col("digest") == pl.col("_before"))
        )
        self._changes.add(
            again.with_columns(same.alias("same")).filter(pl.col("same").is_not_null())
        )

    def levels(self) -> pl.DataFrame:
        """Returns for each segment the number of URLs by their last outcome at the end of its
        round.
        """
        came, left = self._came.result(), self._left.result()
        moves = pl.concat([came, left.with_columns(-pl.col("n"))]) if left.height else came
        sums = moves.group_by("segment", "outcome").agg(pl.col("n").sum())
        counts = {(segment, outcome): n for segment, outcome, n in sums.iter_rows()}
        rows = [
            {"segment": name} | {outcome: counts.get((at, outcome), 0) for outcome in OUTCOMES}
            for name, at in self._segments.items()
        ]
        return pl.DataFrame(rows).with_columns(pl.col(*OUTCOMES).cum_sum())

    def changes(self) -> pl.DataFrame:
        """Returns pages fetched again, by segment: changed or the same."""
        counts = {at: (changed, same) for at, same, changed in self._changes.result().iter_rows()}
        rows = [(name, *counts.get(at, (0, 0))) for name, at in self._segments.items()]
        return pl.DataFrame(rows, schema=dict(TABLES["changes"]), orient="row")

    def ages(self) -> pl.DataFrame:
        """Returns the number of pages that are there by time since their last fetch."""
        return bucketed(self._ages.result(), "age", AGE_BOUNDS).rename({"n": "pages"})

    def types(self) -> pl.DataFrame:
        """Returns the number of pages by content type."""
        return self._types.result().sort("pages", "content_type", descending=[True, False])

    def sizes(self) -> pl.DataFrame:
        """Returns the number of pages by size."""
        return bucketed(self._sizes.result(), "size", SIZE_BOUNDS).rename({"n": "pages"})

    def seen(self) -> pl.DataFrame:
        """Returns every URL that was fetched: `id`, the number of the `first` segment, and the
        `outcome` of the newest fetch that was asked for.
        """
        return pl.concat(self._seen)

    def whys(self) -> pl.DataFrame:
        """Returns why the newest fetch of a URL that was asked for failed: `id`, `why`."""
        return pl.concat(self._whys)

    def redirects(self) -> pl.DataFrame:
        """Returns every redirect: `id`, `to`, the `number` of the segment, and if it `is_newest`,
        the last answer of the URL.
        """
        return pl.concat(self._redirects)
