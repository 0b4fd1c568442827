"""Says which URLs that were never asked for may be asked for now: of each pattern as many as what
it has given deserves (`allowances`). A trap gets a bounded share, a catalogue is read to its end.

Each URL belongs to a group: the smallest of its levels (`urls.patterns`) of which x/5 URLs, and a
sixteenth of all its host's, have been asked for, or else to its host; while that has none that was
asked for, to its domain. Names that seldom lead to new pages (`Doubts`) make groups of a host, by
their kind, until a level that has them in common is known. Suspects are groups of their own and
have to prove their worth: those that differ in codes alone from one that was asked for before (in
another session: each page is read once), those that only pages lead to that say what others said
before, and those whose parameters have names that are hardly tried (an album whose photos have
sizes looked as if it grew). Of a group

    asked     were asked for, and answered: pages, redirects, errors that stay
    new       have content that no page had before, by signature (of hosts the one with the shorter
              name had it first); redirects, by target, but to what is not new; no twins, nor
              noindex without a link
    other     of these, those whose texts are not, but for numbers and paths, what their host had
              said before (`parse.signature.TextShapeSignature`)
    waiting   were never asked for; by the group of the page that has led to them, the first one
              that the LinkDb names, or else of their own

Those with the best score come first; of groups that grow, every other one is the best of those that
were found last: where they end says most. Of each path (without its query) that is not known so
well come not more than x, where groups grow x of both. The others wait, and all counts are the
databases'. Random text is always new, and honest sites grow, too: both count. Dropped: an allowance
for each level, one within the other (new directories had to share what a catalogue got); each level
for itself (of paths of random words some always seemed to end); growth by what is found in a group,
whoever led there (lists made their items look like a trap).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from minutch.cycle.crawldb.twins import HAS_TWIN
from minutch.cycle.fetchlist.allowances import (
    COUNTS,
    FINDS,
    GOOD,
    GROWS,
    NAMES,
    NO_DOUBTS,
    SUSPECT,
    Hashes,
    Levels,
    allowances,
    domains_in,
    with_hosts,
)
from minutch.cycle.fetchlist.select import ranks_in
from minutch.cycle.parse.signature import NOTHING, SHAPE
from minutch.records import crawldatum as status
from minutch.records.metadata import PROTO_STATUS_KEY
from minutch.records.protocol import target_of
from minutch.records.rawmap import text_key, values_of
from minutch.urls.hostcolumns import domains_of, host_names
from minutch.urls.patterns import LEVELS, Doubts, form_hashes, level_hashes, levels_of
from minutch.work.tables.frame import decode_keys

PROPERTY: Final = "generate.pattern.budget"

Tables = Callable[[], Iterable[pl.DataFrame]]
"""Reads the entries of a CrawlDb."""
Links = Callable[[], Iterable[pl.DataFrame]]
"""Reads a LinkDb, in tables with `key` and `from_url`."""

_TARGET: Final = text_key(PROTO_STATUS_KEY)
_REDIRECTS: Final = (status.STATUS_DB_REDIR_PERM, status.STATUS_DB_REDIR_TEMP)
_PAGES: Final = (status.STATUS_DB_FETCHED, status.STATUS_DB_NOTMODIFIED, status.STATUS_DB_DUPLICATE)
_ROW: Final = 300
"""Bytes of memory, about, for a page that is counted."""
_MANY: Final = 1_000_000
"""Rows from which on those without a place are dropped."""
_PATH: Final = LEVELS.index("path")
_NEWEST: Final = 1 << 62
"""Makes of a pool's name that of its URLs that were found last."""
_KEYS: Final = pl.Schema({"group": pl.UInt64(), "path": pl.UInt64(), "rank": pl.UInt64()})
_HOSTS: Final = pl.Schema(
    {"group": pl.UInt64(), "own": pl.UInt64(), "by": pl.UInt64(), "round": pl.UInt32()}
)
_SUMS: Final = {
    "host": pl.Expr.first, "level": pl.Expr.first, "since": pl.Expr.min, "before": pl.Expr.max,
    "is_suspect": pl.Expr.first, "doubt": pl.Expr.first,
}  # fmt: skip
_CHOICES: Final = (("pool", "allowed"), ("more_pool", "more"))
"""What groups share, and what they are allowed: for now, and where nothing else is due."""
_MOVED: Final = pl.Schema({"key": pl.UInt64(), "target": pl.UInt64()})
_ENDS: Final = pl.Schema({"hash": pl.UInt64(), "end": pl.UInt64()})


@dataclass(frozen=True, slots=True)
class PatternBudget:
    """How many of the URLs that were never asked for get places, by group."""

    explore: int
    seed: int
    rounds: pl.Series
    """The times at which URLs that wait were found, in order."""
    levels: Levels
    suspects: pl.Series
    """Hashes of the keys of the suspects that wait, but for those with untried names, in order."""
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
        links: Links = tuple,
        doubts: Doubts = NO_DOUBTS,
    ) -> PatternBudget:
        """Counts the `entries` (their number, about) of a CrawlDb. `due` returns those of a table
        that may be asked for, with `sort`; `pending` the mask of those that are being fetched.
        """
        seed, shares = secrets.randbits(62), 1 + entries * _ROW // max(memory, 1)
        seen = _seen(tables, seed, explore, shares, doubts)
        counts, finds = pl.DataFrame(schema=COUNTS), pl.DataFrame(schema=FINDS)
        hosts, waits = pl.DataFrame(schema=_HOSTS), [pl.Series("key", [], pl.UInt64)]
        for share in range(shares):
            finders = _finders(links, seen, share, shares)
            led = finders.filter("is_led")["key"]
            for whole in tables():
                is_mine = whole["key"].hash() % shares == share
                table = whole if shares == 1 else whole.filter(is_mine)
                rows = _counted(table, seen, led, pending(table))
                counts = _summed(counts, rows, ["group", "round"])
                found = rows.filter(pl.col("waiting") > 0)
                waits.append(found.filter("is_suspect", ~pl.col("is_untried"))["key"])
                found = found.join(finders, on="key", how="left")
                hosts = pl.concat([hosts, found.filter("is_new_host").select(hosts.columns)])
                hosts = hosts.group_by("group", "own", "by").agg(pl.col("round").min())
                found = found.filter(~pl.col("is_new_host")).select(
                    "group",
                    pl.coalesce("finder", "group").alias("finder"),
                    "round",
                    found="waiting",
                )
                finds = _summed(finds, found, ["group", "finder", "round"])
        domains = seen.levels.domains.filter("is_asked").drop("is_asked")
        groups = allowances(*_with_domains(counts, finds, hosts, domains), explore, domains)
        places = pl.col("allowed").clip(0, pl.when(pl.col("level") < _PATH).then(explore))
        is_limited = pl.col("waiting").sum().over("pool") > places
        limited = groups.filter(is_limited)
        free = groups.filter(~is_limited & (pl.col("kind") <= GOOD) & (pl.col("waiting") > 0))
        suspects, ends = pl.concat(waits).sort(), pl.DataFrame(schema=_ENDS)
        budget = cls(explore, seed, seen.rounds, seen.levels, suspects, limited, ends)
        if limited.is_empty():
            return budget
        return budget._with_ends((due(table) for table in tables()), free["group"])

    def have_place(self, frame: pl.DataFrame) -> pl.Series:
        """Returns the mask of the entries (with `sort`) that may be asked for."""
        mask = pl.Series([True]).new_from_index(0, len(frame))
        if self.ends.is_empty():
            return mask
        rows = self._places(frame, self._of_group(frame))
        rows = rows.join(self.ends, left_on="group", right_on="hash", how="left")
        rows = rows.join(self.ends, left_on="path", right_on="hash", how="left", suffix="_path")
        beyond = pl.col("rank") >= pl.min_horizontal("end", "end_path")
        return mask.scatter(rows.filter(beyond)["row"], False)

    def group_of(self, url: str) -> tuple[str, str, bool, dict[str, Any]]:
        """Returns the name of a URL's group, the kind of doubts that it is of on its host (""),
        whether the URL is of its suspects, and their row in `groups`.
        """
        keys = pl.Series([url.encode()])
        hashes = level_hashes(keys, self.seed)
        group, level, is_untried, doubt = self.levels.groups_of(keys, hashes)
        is_domain = not doubt[0] and group[0] != hashes[0, level[0]]
        are_suspect = keys.hash().is_in(self.suspects.implode()) | pl.Series(is_untried)
        group ^= _of_suspects(are_suspect)
        rows = self.groups.filter(pl.col("group") == group[0]).rows(named=True)
        level_of = levels_of(url)[0 if doubt[0] else level[0]]
        name = domains_of(host_names(pl.Series([url])))[0] if is_domain else level_of
        return name, self.levels.doubts.kinds[doubt[0]], are_suspect[0], rows[0] if rows else {}

    def _of_group(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Returns `row`, `group` and `path` (null: it is no matter) of the entries that were never
        asked for.
        """
        rows = frame.with_row_index("row").filter(_is_waiting())
        hashes = level_hashes(rows["key"], self.seed)
        group, level, is_untried, _ = self.levels.groups_of(rows["key"], hashes)
        are_suspect = rows["key"].hash().is_in(self.suspects.implode()) | pl.Series(is_untried)
        group ^= _of_suspects(are_suspect)
        path = pl.Series("path", hashes[:, _PATH]).set(pl.Series(level >= _PATH), None)
        return pl.DataFrame([rows["row"], pl.Series("group", group), path])

    def _places(self, frame: pl.DataFrame, of: pl.DataFrame, pool: str = "pool") -> pl.DataFrame:
        """Returns `row`, `group` (the `pool`), `path`, `rank` of those of `groups`, `of` them."""
        pools = self.groups.select("group", "kind", pool=pool)
        keys = of.join(pools, on="group")
        rows = frame[keys["row"]]
        found = np.searchsorted(self.rounds.to_numpy(), rows["fetch_time"].to_numpy())
        keys = keys.with_columns(
            rank=pl.Series(ranks_in(rows), dtype=pl.UInt64),
            age=pl.Series((0xFFFF - found).clip(0), dtype=pl.UInt64),
        )
        is_newest = (pl.col("kind") == GROWS) & (pl.col("rank") % 2 == 1)
        newest = pl.col("age") * (1 << 48) + pl.col("rank") // (1 << 16)
        of_all = pl.lit(_NEWEST, pl.UInt64)
        of_newest = pl.col("pool") ^ of_all
        return keys.select(
            "row",
            path=pl.when(is_newest).then(pl.col("path") ^ of_all).otherwise("path"),
            group=pl.when(is_newest).then(of_newest).otherwise("pool"),
            rank=pl.when(is_newest).then(newest).otherwise("rank"),
        )

    def _with_ends(self, tables: Iterable[pl.DataFrame], free: pl.Series) -> PatternBudget:
        """Returns it with `ends` for the entries that are due; good, `free` groups have none."""
        kept, left = [pl.DataFrame(schema=_KEYS)] * len(_CHOICES), 0
        good = pl.concat([free, self.groups.filter(pl.col("kind") <= GOOD)["group"]]).implode()
        for table in tables:
            of = self._of_group(table)
            left += int(of["group"].is_in(good).sum())
            for number, (pool, allowed) in enumerate(_CHOICES):
                places = self._places(table, of, pool).select(_KEYS.names())
                kept[number] = pl.concat([kept[number], places])
                if len(kept[number]) > _MANY:
                    kept[number] = self._best(kept[number], pool, allowed).select(_KEYS.names())
        chosen = int(left < max(1, self.explore // 2))
        pool, allowed = _CHOICES[chosen]
        is_shared = pl.col("shared") & (pl.col(pool) == pl.col("pool"))
        groups = self.groups.with_columns(allowed=allowed, pool=pool, shared=is_shared)
        best = self._best(kept[chosen], pool, allowed)
        by_path = best.filter(pl.col("in_path") > self.explore).select(hash="path", end="rank")
        by_group = best.filter(pl.col("in_group") > pl.col("places"))
        ends = pl.concat([by_path, by_group.select(hash="group", end="rank")])
        return replace(self, groups=groups, ends=ends)

    def _best(self, keys: pl.DataFrame, pool: str, allowed: str) -> pl.DataFrame:
        """Returns the rows with a place, and of groups and paths the first one without, with their
        number in their path (1 without one), and in their group (null without a place in the path),
        which has `places`.
        """
        in_path = pl.when(pl.col("path").is_null()).then(1)
        keys = keys.with_columns(
            in_path=in_path.otherwise(pl.col("rank").rank("ordinal").over("path"))
        )
        has_place = pl.col("in_path") <= self.explore
        keys = keys.filter(pl.col("in_path") <= self.explore + 1).with_columns(
            in_group=pl.when(has_place).then("rank").rank("ordinal").over("group")
        )
        pools = self.groups.select("kind", group=pool, places=allowed).unique("group")
        halves = pools.filter(pl.col("kind") == GROWS)
        of_newest = pl.col("group") ^ pl.lit(_NEWEST, pl.UInt64)
        half = pl.when(pl.col("kind") == GROWS).then(pl.col("places") // 2).otherwise("places")
        newest = halves.with_columns(group=of_newest, places=(pl.col("places") + 1) // 2)
        keys = keys.join(pl.concat([pools.with_columns(places=half), newest]), on="group")
        return keys.filter((pl.col("in_group") <= pl.col("places") + 1).fill_null(True))


def _is_waiting() -> pl.Expr:
    """Never asked for. What failed for now says nothing of its pattern."""
    return (pl.col("status") == status.STATUS_DB_UNFETCHED) & (pl.col("retries") == 0)


def _is_asked() -> pl.Expr:
    return pl.col("status") != status.STATUS_DB_UNFETCHED


def _asked_at() -> pl.Expr:
    return pl.col("fetch_time") - pl.col("fetch_interval").cast(pl.Int64) * 1000


class _Seen(NamedTuple):
    """What a first look at a CrawlDb has shown, in order: the times at which what waits was found
    (`rounds`); hashes of keys of pages whose content another page had before and redirects to such
    (`repeats`), of those with the shape of another page of their host (`alike`), and of what was
    asked for after another URL of its form (`twins`); the `forms` of what was asked for.
    """

    rounds: pl.Series
    levels: Levels
    repeats: pl.Series
    alike: pl.Series
    twins: pl.Series
    forms: pl.Series


def _seen(tables: Tables, seed: int, explore: int, shares: int, doubts: Doubts) -> _Seen:
    """Looks at a CrawlDb, once for each of the `shares` that fit into memory."""
    times = pl.Series("at", [], pl.Int64)
    none = pl.Series("key", [], pl.UInt64)
    known, repeats, alike, twins, forms = [np.empty(0, np.uint64)], [none], [none], [none], [none]
    hosts, moved = pl.DataFrame(schema=NAMES), [pl.DataFrame(schema=_MOVED)]
    for share in range(shares):
        levels = [pl.DataFrame(schema={"hash": pl.UInt64, "host": pl.UInt64, "asked": pl.Int64})]
        pages, names = list[pl.DataFrame](), list[pl.DataFrame]()
        for whole in tables():
            # the first share has seen all hosts: then only what was asked for is hashed again
            table = whole if share == 0 else whole.filter(_is_asked())
            if share == 0:
                new = table.filter(_is_waiting())["fetch_time"].alias("at")
                times = pl.concat([times, new.unique()]).unique()
            is_asked = table.select(_is_asked()).to_series()
            hashes = level_hashes(table["key"], seed)
            if share == 0:
                hosts = with_hosts(hosts, table["key"], hashes[:, 0], is_asked)
            asked, hashes = table.filter(is_asked), hashes[is_asked.to_numpy()]
            levels.append(_levels_in(hashes[hashes[:, 0] % np.uint64(shares) == share]))
            pages.append(_pages_in(asked, hashes[:, 0], share, shares))
            form = pl.Series(form_hashes(asked["key"], seed))
            rows = asked.select(pl.col("key").hash(), form=form, at=_asked_at())
            names.append(rows.filter(pl.col("form") > 0, pl.col("form") % shares == share))
        counts = pl.concat(levels).group_by("hash", "host").agg(pl.col("asked").sum())
        total = pl.col("asked").filter(pl.col("hash") == pl.col("host")).sum().over("host")
        enough = pl.max_horizontal(max(1, explore // 5), total // 16)
        least = counts.filter((pl.col("asked") >= enough) & (pl.col("hash") != pl.col("host")))
        known.append(least["hash"].to_numpy())
        if pages:
            for kind, found in (("content", repeats), ("shape", alike)):
                rows = pl.concat(pages).drop_nulls(kind)
                # a shape has the seed's hash of its host in it: there are no others with it
                rows = rows.sort(kind, "length", "host", "at", "key")
                found.append(rows.filter(~pl.col(kind).is_first_distinct())["key"])
            moved += [some.drop_nulls("target").select(_MOVED.names()) for some in pages]
            rows = pl.concat(names).sort("form", "at", "key")
            twins.append(rows.filter(~pl.col("form").is_first_distinct())["key"])
            forms.append(rows["form"].unique().alias("key"))
    # such as those to a login for each page
    is_repeated = pl.col("target").is_in(pl.concat(repeats).implode())
    repeats.append(pl.concat(moved).filter(is_repeated)["key"])
    return _Seen(
        times.sort(),
        Levels(seed, np.sort(np.concatenate(known)), domains_in(hosts, seed), doubts),
        *(pl.concat(found).sort() for found in (repeats, alike, twins, forms)),
    )


def _levels_in(hashes: Hashes) -> pl.DataFrame:
    """Returns how often each level of some URLs is there: `hash`, `host`, `asked`."""
    is_own = np.append(np.ones((len(hashes), 1), bool), hashes[:, 1:] != hashes[:, :-1], axis=1)
    hosts = np.broadcast_to(hashes[:, :1], hashes.shape)
    rows = pl.DataFrame({"hash": hashes[is_own], "host": hosts[is_own]})
    return rows.group_by("hash", "host").agg(asked=pl.len().cast(pl.Int64))


def _pages_in(asked: pl.DataFrame, hosts: Hashes, share: int, shares: int) -> pl.DataFrame:
    """Returns hashes of pages and redirects of a share (null where there is none), and `length`; of
    what is in it for its `content` or `shape` alone, no more.
    """
    is_page = asked["status"].is_in(_PAGES + _REDIRECTS)
    pages, host = asked.filter(is_page), pl.Series("host", hosts).filter(is_page)
    content = pages["signature"].hash().set(pages["signature"].is_null(), None)
    is_redirect = pages["status"].is_in(_REDIRECTS)
    of_redirects = pages["metadata"].zip_with(is_redirect, pl.Series([None], dtype=pl.Binary))
    targets = values_of(of_redirects, _TARGET)
    urls = [*map(target_of, targets.values())]
    target = content.clear().extend_constant(None, len(content))
    if targets:
        said, where = pl.Series(urls, dtype=pl.String).hash(), [*targets]
        content, target = content.scatter(where, said), target.scatter(where, said)
    has_shape = pl.col("signature").bin.size() == SHAPE.stop
    shape = pl.col("signature").bin.slice(SHAPE.start, SHAPE.stop - SHAPE.start)
    is_none = pages.select((has_shape & (shape == NOTHING)).fill_null(value=False) | HAS_TWIN)
    content = host.hash(1).zip_with(is_none.to_series(), content)
    names = host_names(decode_keys(pages["key"]))
    rows = pages.select(
        pl.col("key").hash(),
        content=content,
        target=target,
        shape=pl.when(has_shape & ~is_redirect).then(pl.struct(shape, host).hash()),
        length=names.str.len_bytes(),
        host=names.hash(),  # which the seed has no part in: it would say who is whose mirror
        at=_asked_at(),
    )
    mine = [pl.when(pl.col(kind) % shares == share).then(kind) for kind in ("content", "shape")]
    return rows.with_columns(mine).filter(~pl.all_horizontal(pl.col("content", "shape").is_null()))


def _finders(links: Links, seen: _Seen, share: int, shares: int) -> pl.DataFrame:
    """Returns of the URLs of a share that a LinkDb knows: `key` (its hash), `finder`, the group of
    the first page that leads there, `by`, its host, and whether only repeats do (`is_led`).
    """
    schema = {"key": pl.UInt64, "finder": pl.UInt64, "by": pl.UInt64, "is_led": pl.Boolean}
    found = [pl.DataFrame(schema=schema)]
    for table in links():
        rows = table.filter(pl.col("from_url").is_not_null())
        keys = rows["key"].hash()
        if shares > 1:
            is_mine = keys % shares == share
            rows, keys = rows.filter(is_mine), keys.filter(is_mine)
        if rows.is_empty():
            continue
        starts = np.flatnonzero(keys.rle_id().is_first_distinct())
        are_repeats = rows["from_url"].hash().is_in(seen.repeats.implode())
        first = rows["from_url"][starts]
        hashes = level_hashes(first, seen.levels.seed)
        group, _, is_untried, _ = seen.levels.groups_of(first, hashes)
        group ^= _of_suspects(first.hash().is_in(seen.twins.implode()) | pl.Series(is_untried))
        columns = {
            "key": keys[starts],
            "finder": group,
            "by": hashes[:, 0],
            "is_led": np.logical_and.reduceat(are_repeats.to_numpy(), starts),
        }
        found.append(pl.DataFrame(columns))
    # the last URL of a table may go on in the next one
    return (
        pl.concat(found)
        .group_by("key", maintain_order=True)
        .agg(pl.col("finder", "by").first(), pl.col("is_led").all())
    )


def _of_suspects(are_suspect: pl.Series) -> Hashes:
    """Returns what makes of groups' names those of their suspects."""
    return are_suspect.cast(pl.UInt64).to_numpy() * np.uint64(SUSPECT)


def _counted(table: pl.DataFrame, seen: _Seen, led: pl.Series, pending: pl.Series) -> pl.DataFrame:
    """Returns COUNTS of a table of entries, each by itself, with its `key` (the hash), its host
    (`own`), and whether that was never asked for. Visits that found a page as it was before tell
    nothing of when it was asked for first: they count to the first round.
    """
    hashes = level_hashes(table["key"], seen.levels.seed)
    group, level, is_untried, doubt = seen.levels.groups_of(table["key"], hashes)
    is_new_host = (level == 0) & (group != hashes[:, 0])
    times = table.select(pl.when(_is_asked()).then(_asked_at()).otherwise("fetch_time")).to_series()
    rounds = np.searchsorted(seen.rounds.to_numpy(), times.to_numpy())
    key = table["key"].hash()
    forms = pl.Series(form_hashes(table["key"], seen.levels.seed))
    of_asked = pl.when(_is_asked()).then(key.is_in(seen.twins.implode()))
    is_twin = of_asked.otherwise(forms.is_in(seen.forms.implode()))
    is_suspect = table.select(is_twin | key.is_in(led.implode())).to_series()
    is_suspect |= pl.Series(is_untried)
    group ^= _of_suspects(is_suspect)
    is_new = pl.col("status").is_in(_PAGES + _REDIRECTS) & ~key.is_in(seen.repeats.implode())
    waits = _is_waiting()
    interval = pl.col("fetch_interval").cast(pl.Int64) * 1000
    first = pl.when(pl.col("status") != status.STATUS_DB_NOTMODIFIED).then(pl.Series(rounds))
    return table.select(
        key=key,
        own=pl.Series(hashes[:, 0]),
        is_new_host=pl.Series(is_new_host),
        group=pl.Series(group),
        round=first.otherwise(0).cast(pl.UInt32),
        host=pl.Series(np.where(is_new_host, group, hashes[:, 0])),
        level=pl.Series(level),
        asked=_is_asked().cast(pl.Int64),
        new=is_new.cast(pl.Int64),
        other=(is_new & ~key.is_in(seen.alike.implode())).cast(pl.Int64),
        waiting=(waits & ~pending).cast(pl.Int64),
        pending=(waits & pending).cast(pl.Int64),
        since=times,
        before=pl.when(_is_asked()).then(times - interval),
        is_suspect=is_suspect,
        doubt=pl.Series(doubt),
        is_untried=pl.Series(is_untried),
    )


def _with_domains(
    counts: pl.DataFrame, finds: pl.DataFrame, hosts: pl.DataFrame, domains: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns counts and finds with those of domains of `hosts` that were never asked. A host that
    was asked counts as a page, by the first round that did.
    """
    asked = counts.filter(pl.col("asked") > 0).join(domains, on="host")
    asked = asked.filter(pl.col("round") == pl.col("round").min().over("host"))
    asked = asked.group_by("host", "domain", "round").agg(pl.col("new", "other").sum().clip(0, 1))
    sums = pl.len().cast(pl.Int64).alias("asked"), pl.col("new", "other").sum()
    asked = asked.group_by("domain", "round").agg(sums)
    none = {name: pl.lit(0, pl.Int64) for name in ("waiting", "pending")}
    level = pl.lit(0, pl.UInt8)
    asked = asked.with_columns(group="domain", host="domain", level=level, is_suspect=False, **none)
    counts = pl.concat([counts, asked], how="diagonal").select(COUNTS.names())
    by = hosts.join(domains, left_on="by", right_on="host", how="left")
    by = by.with_columns(finder=pl.coalesce("domain", "group"))
    found = by.group_by("group", "finder", "round").agg(found=pl.len().cast(pl.Int64))
    finds = pl.concat([finds, found.select(FINDS.names())])
    return counts, finds


def _summed(sums: pl.DataFrame, rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Returns the sums of counts with those of more rows; of columns that name something the
    first.
    """
    names = [name for name in sums.columns if name not in by]
    rows = pl.concat([sums, rows.select(sums.columns)])
    summed = [_SUMS.get(name, pl.Expr.sum)(pl.col(name)) for name in names]
    return rows.group_by(by).agg(summed).select(sums.columns)
