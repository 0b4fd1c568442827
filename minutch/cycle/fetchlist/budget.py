"""Decides how many new pages of each pattern of URLs a round asks for, by what the pattern has
given so far: a trap gets a bounded share, a catalogue is read to its end.

Each URL belongs to a group: the smallest of its levels (`urls.patterns`) of which x/2 URLs, and a
sixteenth of all its host's, have been asked for, or else to its host. Of a group

    asked     were asked for, and answered: pages, redirects, errors that stay
    new       have content that no page had before, by signature; redirects, by target. What hosts
              have in common, the one with the shorter name had before the others
    late      the rounds in which the later half of `asked` was asked for
    growth    how many of those that wait were found in late rounds, by page asked for in these

With the exploration x (generate.pattern.budget) a round asks for so many of those that were never
asked for, what is being fetched counted with them:

    a host of which fewer than x/2 were asked for     10 x
    good: half of the late ones were new              4 new, x at least
    good, but it grows: growth is 1 or more, and 0.6  new/2, while they are less than 5 x and a
      or more of what it was before                   tenth of what the rest of the host has given
                                                      (or of the crawl, by host with such groups, if
                                                      that is more); then x²/(2 asked), from 1 to
                                                      x/2, or x/2 if all the rest has given less
    all the others                                    x²/(4 asked), and late new²/late asked

The links of a set that ends lead ever more often to what is known already: its growth falls. Groups
of a host that grow share one allowance, as do those that aren't good. Those with the best score
come first, and of each path (without its query) that is not known so well not more than x.

Nothing is lost: the others wait in the CrawlDb. Nothing is kept: all counts are the CrawlDb's.
Pages that were asked for before are no matter of this. Why not by signatures alone: random text is
always new. Why not by growth alone: so do honest sites, at first. Tried and dropped: an allowance
for each level of a URL, one within the other (new directories had to share what a catalogue was
given); each level for itself where x/2 were asked for (paths of random words made hundreds of small
groups, some of which always seemed to end).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.cycle.fetchlist.select import ranks_in
from minutch.records import crawldatum as status
from minutch.records.metadata import PROTO_STATUS_KEY
from minutch.records.rawmap import text_key, values_of
from minutch.urls.hostcolumns import host_names
from minutch.urls.patterns import LEVELS, level_hashes, levels_of
from minutch.work.tables.frame import decode_keys

PROPERTY: Final = "generate.pattern.budget"

Tables = Callable[[], Iterable[pl.DataFrame]]
"""Reads the entries of a CrawlDb."""
Hashes = npt.NDArray[np.uint64]

_TARGET: Final = text_key(PROTO_STATUS_KEY)
_REDIRECTS: Final = (status.STATUS_DB_REDIR_PERM, status.STATUS_DB_REDIR_TEMP)
_PAGES: Final = (status.STATUS_DB_FETCHED, status.STATUS_DB_NOTMODIFIED, status.STATUS_DB_DUPLICATE)
_ROW: Final = 200
"""Bytes of memory, about, for a page that is counted."""
_MANY: Final = 1_000_000
"""Rows from which on those without a place are dropped."""
_PATH: Final = LEVELS.index("path")
_KEYS: Final = pl.Schema({"group": pl.UInt64(), "path": pl.UInt64(), "rank": pl.UInt64()})
_ENDS: Final = pl.Schema({"hash": pl.UInt64(), "end": pl.UInt64()})

COUNTS: Final = pl.Schema(
    {
        "group": pl.UInt64(),
        "round": pl.UInt32(),
        "host": pl.UInt64(),
        "level": pl.UInt8(),
        "asked": pl.Int64(),
        "new": pl.Int64(),
        "waiting": pl.Int64(),
        "pending": pl.Int64(),
    }
)
"""Counts of a group's URLs by the round that asked for them, or found those that wait."""


def allowances(counts: pl.DataFrame, explore: int) -> pl.DataFrame:
    """Returns of each group in counts of COUNTS: `group`, `level`, `asked`, `new`, `waiting`,
    `growth`, the `pool` of groups that it is in, if these are more it is `shared`, and `allowed`,
    how many of those that wait there a round asks for.
    """
    asked, new, waiting, late = (pl.col(name) for name in ("asked", "new", "waiting", "late"))
    by_round = counts.filter(asked > 0).sort("group", "round")
    later = by_round.filter(2 * asked.cum_sum().over("group") > asked.sum().over("group"))
    middle = later.group_by("group").agg(middle=pl.col("round").min())
    is_late = pl.col("round") >= pl.col("middle")
    table = (
        counts.join(middle, on="group", how="left")
        .group_by("group")
        .agg(
            pl.col("host").first(),
            pl.col("level").min(),
            pl.col("asked", "new", "waiting", "pending").sum(),
            late=asked.filter(is_late).sum(),
            late_new=new.filter(is_late).sum(),
            found=waiting.filter(is_late).sum(),
        )
    )
    early = asked - late
    before = pl.when(early > 0).then((asked + waiting - pl.col("found")) / early).otherwise(0.0)
    growth = pl.when(asked > 0).then(pl.col("found") / late).otherwise(0.0)
    is_new, is_good = asked < explore // 2, 2 * pl.col("late_new") >= late
    grows = ~is_new & is_good & (growth >= 1) & (growth >= before * 0.6)
    table = table.with_columns(growth=growth, grows=grows, is_good=is_good)
    is_trap = ~is_new & (pl.col("grows") | ~is_good)
    growing = pl.when("grows").then(pl.col("host") ^ pl.lit(1, pl.UInt64))
    pool = growing.when(is_trap).then(pl.col("host") ^ pl.lit(2, pl.UInt64)).otherwise("group")
    table = table.with_columns(
        pool=pool,
        rest=new.filter(~pl.col("grows")).sum(),
        others=new.filter(~pl.col("grows")).sum().over("host"),
    )
    own = table.select("asked", "new", "waiting")
    sums = pl.col("asked", "new", "pending", "late", "late_new").sum().over("pool")
    table = table.with_columns(sums)
    others, rest = pl.col("others"), pl.col("rest")
    hosts = pl.col("pool").filter(pl.col("grows")).n_unique().clip(1)
    share = pl.max_horizontal(others, rest // hosts) // 10
    trickle = (explore * explore // (2 * asked)).clip(1, explore // 2)
    allowed = (
        pl.when(asked < explore // 2)
        .then(10 * explore)
        .when(~pl.col("is_good"))
        .then((trickle // 2).clip(1) + pl.col("late_new") ** 2 // late)
        .when(~pl.col("grows"))
        .then((4 * new).clip(explore))
        .when(rest > new)
        .then(trickle.clip(pl.min_horizontal(new // 2, 5 * explore + share - new)))
        .otherwise(pl.max_horizontal(explore // 2, pl.min_horizontal(new // 2, 5 * explore - new)))
    )
    allowed = (allowed - pl.col("pending")).clip(0).cast(pl.Int64)
    shared = pl.len().over("pool") > 1
    return table.select("group", "pool", "level", *own, "growth", shared=shared, allowed=allowed)


@dataclass(frozen=True, slots=True)
class PatternBudget:
    """How many of the URLs that were never asked for get places, by group."""

    explore: int
    seed: int
    known: Hashes
    """The levels of which enough was asked for, sorted."""
    groups: pl.DataFrame
    """See `allowances`: those with URLs that have to wait."""
    ends: pl.DataFrame
    """Of groups and of paths within them: `hash`, and `end`, the lowest rank without a place."""

    @classmethod
    def of(
        cls,
        tables: Tables,
        entries: int,
        explore: int,
        *,
        due: Callable[[pl.DataFrame], pl.DataFrame],
        pending: Callable[[pl.DataFrame], pl.Series],
        memory: int,
    ) -> PatternBudget:
        """Counts the `entries` (their number, about) of a CrawlDb. `due` returns those of a table
        that may be asked for, with `sort`; `pending` the mask of those that are being fetched.
        """
        seed, shares = secrets.randbits(63), 1 + entries * _ROW // max(memory, 1)
        repeats, rounds = _repeats(tables, shares)
        known = _known(tables, seed, explore, shares)
        counts = pl.DataFrame(schema=COUNTS)
        for table in tables():
            hashes = level_hashes(table["key"], seed)
            rows = _counted(table, hashes, known, repeats, rounds, pending(table))
            summed = (
                pl.concat([counts, rows])
                .group_by("group", "round")
                .agg(
                    pl.col("host", "level").first(),
                    pl.col("asked", "new", "waiting", "pending").sum(),
                )
            )
            counts = summed.select(COUNTS.names())
        places = pl.col("allowed").clip(0, pl.when(pl.col("level") < _PATH).then(explore))
        groups = allowances(counts, explore).filter(pl.col("waiting").sum().over("pool") > places)
        budget = cls(explore, seed, known, groups, pl.DataFrame(schema=_ENDS))
        if groups.is_empty():
            return budget
        return replace(budget, ends=budget._ends(due(table) for table in tables()))

    def have_place(self, frame: pl.DataFrame) -> pl.Series:
        """Returns the mask of the entries (with `sort`) that may be asked for."""
        mask = pl.Series([True]).new_from_index(0, len(frame))
        if self.ends.is_empty():
            return mask
        rows = self._places(frame).join(self.ends, left_on="group", right_on="hash", how="left")
        rows = rows.join(self.ends, left_on="path", right_on="hash", how="left", suffix="_path")
        beyond = pl.col("rank") >= pl.min_horizontal("end", "end_path")
        return mask.scatter(rows.filter(beyond)["row"], False)

    def group_of(self, url: str) -> tuple[str, dict[str, Any]]:
        """Returns the name of the group that a URL belongs to, and its row in `groups`."""
        group, level = _groups_of(level_hashes(pl.Series([url]), self.seed), self.known)
        rows = self.groups.filter(pl.col("group") == group[0]).rows(named=True)
        return levels_of(url)[level[0]], rows[0] if rows else {}

    def _places(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Returns `row`, `group`, `path` (null: it is no matter) and `rank` of the entries of
        `groups` that were never asked for.
        """
        rows = frame.with_row_index("row").filter(_is_waiting())
        hashes = level_hashes(rows["key"], self.seed)
        group, level = _groups_of(hashes, self.known)
        path = pl.Series(hashes[:, _PATH]).set(pl.Series(level >= _PATH), None)
        keys = pl.DataFrame(
            [rows["row"].alias("row"), pl.Series("group", group), path.alias("path")]
        )
        keys = keys.with_columns(rank=pl.Series(ranks_in(rows), dtype=pl.UInt64))
        pools = self.groups.select("group", "pool")
        return keys.join(pools, on="group").select(
            "row", pl.col("pool").alias("group"), "path", "rank"
        )

    def _ends(self, tables: Iterable[pl.DataFrame]) -> pl.DataFrame:
        """Returns `ends` for the entries that are due."""
        kept = pl.DataFrame(schema=_KEYS)
        for table in tables:
            kept = pl.concat([kept, self._places(table).drop("row")])
            if len(kept) > _MANY:
                kept = self._best(kept).select(_KEYS.names())
        best = self._best(kept)
        by_path = best.filter(pl.col("in_path") > self.explore).select(hash="path", end="rank")
        by_group = best.filter(pl.col("in_group") > pl.col("allowed"))
        return pl.concat([by_path, by_group.select(hash="group", end="rank")])

    def _best(self, keys: pl.DataFrame) -> pl.DataFrame:
        """Returns the rows with a place, and of groups and paths the first one without, with their
        number in their path (1 without one), and in their group (null without a place in the path).
        """
        in_path = pl.when(pl.col("path").is_null()).then(1)
        keys = keys.with_columns(
            in_path=in_path.otherwise(pl.col("rank").rank("ordinal").over("path"))
        )
        has_place = pl.col("in_path") <= self.explore
        keys = keys.filter(pl.col("in_path") <= self.explore + 1).with_columns(
            in_group=pl.when(has_place).then("rank").rank("ordinal").over("group")
        )
        pools = self.groups.select("allowed", group="pool").unique("group")
        keys = keys.join(pools, on="group")
        return keys.filter((pl.col("in_group") <= pl.col("allowed") + 1).fill_null(True))


def _is_waiting() -> pl.Expr:
    """Never asked for. What failed for now says nothing of its pattern."""
    return (pl.col("status") == status.STATUS_DB_UNFETCHED) & (pl.col("retries") == 0)


def _is_asked() -> pl.Expr:
    return pl.col("status") != status.STATUS_DB_UNFETCHED


def _asked_at() -> pl.Expr:
    return pl.col("fetch_time") - pl.col("fetch_interval").cast(pl.Int64) * 1000


def _repeats(tables: Tables, shares: int) -> tuple[pl.Series, pl.Series]:
    """Returns hashes of the keys of pages whose content another page had before, and the times at
    which URLs that wait were found, each in order.
    """
    repeats, times = pl.Series("key", [], pl.UInt64), pl.Series("at", [], pl.Int64)
    for share in range(shares):
        found = []
        for table in tables():
            if share == 0:
                new = table.filter(_is_waiting())["fetch_time"].alias("at")
                times = pl.concat([times, new.unique()]).unique()
            pages = table.filter(pl.col("status").is_in(_PAGES + _REDIRECTS))
            content = pages["signature"].hash().set(pages["signature"].is_null(), None)
            is_redirect = pages["status"].is_in(_REDIRECTS)
            targets = values_of(
                pages["metadata"].zip_with(is_redirect, pl.Series([None], dtype=pl.Binary)), _TARGET
            )
            said = pl.Series([str(target) for target in targets.values()], dtype=pl.String).hash()
            content = content.scatter(list(targets), said) if targets else content
            hosts = host_names(decode_keys(pages["key"]))
            rows = pages.select(
                pl.col("key").hash(),
                content=content,
                length=hosts.str.len_bytes(),
                host=hosts.hash(),
                at=_asked_at(),
            )
            found.append(rows.filter(pl.col("content") % shares == share))
        pages = pl.concat(found) if found else pl.DataFrame(schema={"key": pl.UInt64})
        if len(pages):
            pages = pages.sort("content", "length", "host", "at", "key")
            repeats = pl.concat(
                [repeats, pages.filter(~pl.col("content").is_first_distinct())["key"]]
            )
    return repeats.sort(), times.sort()


def _known(tables: Tables, seed: int, explore: int, shares: int) -> Hashes:
    """Returns the hashes of levels, but hosts, of which x/2 URLs, and a sixteenth of the host's,
    were asked for.
    """
    known = [np.empty(0, np.uint64)]
    for share in range(shares):
        found = [pl.DataFrame(schema={"hash": pl.UInt64, "host": pl.UInt64, "asked": pl.Int64})]
        for table in tables():
            hashes = level_hashes(table.filter(_is_asked())["key"], seed)
            hashes = hashes[hashes[:, 0] % np.uint64(shares) == share]
            is_own = np.append(
                np.ones((len(hashes), 1), bool), hashes[:, 1:] != hashes[:, :-1], axis=1
            )
            hosts = np.broadcast_to(hashes[:, :1], hashes.shape)
            rows = pl.DataFrame({"hash": hashes[is_own], "host": hosts[is_own]})
            found.append(rows.group_by("hash", "host").agg(asked=pl.len().cast(pl.Int64)))
        counts = pl.concat(found).group_by("hash", "host").agg(pl.col("asked").sum())
        total = pl.col("asked").filter(pl.col("hash") == pl.col("host")).sum().over("host")
        enough = pl.max_horizontal(explore // 2, total // 16)
        least = counts.filter((pl.col("asked") >= enough) & (pl.col("hash") != pl.col("host")))
        known.append(least["hash"].to_numpy())
    return np.sort(np.concatenate(known))


def _groups_of(hashes: Hashes, known: Hashes) -> tuple[Hashes, npt.NDArray[np.uint8]]:
    """Returns the group of each URL, and its level: the smallest that is known, or the host."""
    group, level = hashes[:, 0].copy(), np.zeros(len(hashes), np.uint8)
    if len(known):
        for number in range(1, len(LEVELS)):
            column = hashes[:, number]
            found = known[np.searchsorted(known, column).clip(max=len(known) - 1)] == column
            group[found], level[found] = column[found], number
    return group, level


def _counted(
    table: pl.DataFrame,
    hashes: Hashes,
    known: Hashes,
    repeats: pl.Series,
    rounds: pl.Series,
    pending: pl.Series,
) -> pl.DataFrame:
    """Returns COUNTS of a table of entries, each by itself."""
    group, level = _groups_of(hashes, known)
    times = table.select(pl.when(_is_asked()).then(_asked_at()).otherwise("fetch_time")).to_series()
    known_before = table["key"].hash().is_in(repeats.implode())
    waits = _is_waiting()
    return table.select(
        group=pl.Series(group),
        round=pl.Series(np.searchsorted(rounds.to_numpy(), times.to_numpy()), dtype=pl.UInt32),
        host=pl.Series(hashes[:, 0]),
        level=pl.Series(level),
        asked=_is_asked().cast(pl.Int64),
        new=(pl.col("status").is_in(_PAGES + _REDIRECTS) & ~known_before).cast(pl.Int64),
        waiting=(waits & ~pending).cast(pl.Int64),
        pending=(waits & pending).cast(pl.Int64),
    )
