"""Decides how many URLs of each group a round asks for, by what the group has given so far. Pure:
no I/O. `budget` counts; which group a URL belongs to, and which hosts are of one domain, is said
here.

With the exploration x (generate.pattern.budget), of those that were never asked for:

    new       fewer than x/5 were asked for, and     x
              the host's other pages are new
    good      half of the late ones were new         4 times the last ones, by which growth is
                                                     measured; x/2 at least
    doubted   fewer than x/5, and their names seldom   1; x/2 where nothing else is due
              lead to new pages (by kind of name)
    grows     good, but URLs lead to ever more of    x/10; after x/4 rounds one in every third;
              their own kind                         new/x, if that is more; x at most
    alike     half of the late ones were new, but    one, after as many rounds as a quarter of what
              for numbers and paths in their texts   was wasted
              they say what the host said before
    some      of the others, where an eighth of      the same
              the late ones was new
    dull      all the others                         the same

Late: a request counts half of one that is a round (of the group's own) younger.

Growth: how many URLs come back to a group from one that was asked for, of the last x/10 or more, on
the way over whatever other groups of its domain (`growth`). A list of goods leads to many, but
those don't lead to lists: it ends. A calendar's months lead to months, the rooms of a maze to
rooms. What a group was led to by those that grow, are alike or dull is taken for growing, too.
Groups and what leads from one to another are a graph with weights: growth is the largest eigenvalue
of the cycles that a group is in, as the weights of all ways from it rise with each step, and of all
ways to it: the smaller of both, as what leads to a trap is none itself. Over two groups alone,
three that led to each other in turn asked for four times as many pages each round; over all domains
the web itself grows.

Good ones get 5 x at most where they need not end: each of 10 x or more led to another one (chains
of pages, a thousand side by side), or some may have been asked for again, so that they can't tell
what the last ones found, and more than a quarter as many wait.

Hosts of a domain are a group, too: of those that were never asked for all URLs are in it, each of
the others counts as one of its pages, the first, and is led to where a host leads to another one.
If a domain grows, is alike or dull by that (who answers all names of a domain has hosts without
end), new groups of its hosts are taken for growing, and its hosts share the allowances below.

Where (as good as) nothing is due of groups that are new or good, those that grow get more: new/2
(x/2 at least, 5 x at most), the quarter (two at least) of them with the least growth; without any,
those that are alike, which get x/2 once they have had 5 x; without these, those that give some
(documentation of which a part is missing, or the same in most versions), those that are dull, and
those alike that lead to ever more of their own (a calendar without events: what waits there was
found by the last ones). Once they have wasted as much as their host had new, 2 x at least and 5 x
at most, the last two are over: they get nothing where all that is left is over, so that a crawl
ends. What looks like a trap comes last, and a site that is like one is read in the end: a wiki's
pages lead to ever more of it, too, until all are known.
Tried and dropped: x/2 for what grows once it has had 5 x (a wiki of 3,000 pages had ten requests a
round for ever); no limit at all (rooms of random words, alone with a blog that was read, had
900,000 in thirty rounds); one each of those that are dull, for ever (a crawl of manuals did not end
in a hundred rounds, though every other page that it got was new); the growth of a calendar alone
(of a chain all earlier pages count to one round, so that it looks like 0.002).

Suspects (`budget`) that are new are taken for growing.

Groups of a host that grow share one allowance, as do those of each kind below. Tried and dropped:
one for all that is dull, and it gives some where the sum does (beside a print view of each page, 14
of 198 pages of documentation in four versions were never asked for).
What those that grow get where nothing else is due is divided among them, the more to one the less
it grows: in a shop that compares each two of its goods the best and the newest were comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.urls.hostcolumns import domains_of, host_names
from minutch.urls.patterns import LEVELS, Doubts
from minutch.work.tables.frame import decode_keys

Hashes = npt.NDArray[np.uint64]

_NAMES: Final = LEVELS.index("names")
NO_DOUBTS: Final = Doubts()
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
    doubts: Doubts = NO_DOUBTS

    def groups_of(
        self, keys: pl.Series, hashes: Hashes
    ) -> tuple[Hashes, npt.NDArray[np.uint8], npt.NDArray[np.bool_], npt.NDArray[np.uint16]]:
        """Returns the group of each URL, and its level: the smallest that is known, or the host; of
        hosts that were never asked their domain; whether its parameters have names of which little
        is known; and the number of the kind of doubts (0: none) whose group on its host that is.
        """
        group, level = hashes[:, 0].copy(), np.zeros(len(hashes), np.uint8)
        for number in range(1, len(LEVELS)):
            found = _are_in(self.known, hashes[:, number])
            group[found], level[found] = hashes[found, number], number
        has_names = hashes[:, _NAMES] != hashes[:, _NAMES - 1]
        is_tried = np.isin(level, (0, _NAMES, len(LEVELS) - 1))
        new = self.domains.filter(~pl.col("is_asked"))
        # Hosts of which nothing was asked: what is known of their domain stands in for them.
        others = np.flatnonzero((level == 0) & _are_in(new["host"].to_numpy(), group))
        at = np.searchsorted(new["host"].to_numpy(), group[others])
        group[others] = new["domain"].to_numpy()[at]
        is_of_domain = (level == 0) & (group != hashes[:, 0])
        is_untried = has_names & ~is_tried
        # Suspects are few a round anyway, and tell more of each other than of their kind.
        rows = np.flatnonzero(~is_untried & ~is_of_domain)
        named = self.doubts.within(decode_keys(keys.gather(rows)), level[rows])
        rows, doubt = rows[named["row"].to_numpy()], np.zeros(len(hashes), np.uint16)
        doubt[rows] = named["kind"].to_numpy()
        kinds = pl.Series(self.doubts.kinds).hash(self.seed).to_numpy()
        group[rows], level[rows] = hashes[rows, 0] ^ kinds[doubt[rows]], _NAMES
        return group, level, is_untried, doubt


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
    # `a.co.uk` is no domain of `b.co.uk`: two labels that are a suffix take a third one.
    for count in (2, 3):
        labels = pl.col("name").str.extract(rf"((?:[^.]+\.){{{count - 1}}}[^.]+)$")
        hosts = hosts.with_columns(domain=labels).drop_nulls("domain")
        # Only ends that hosts share go through the list of suffixes, each once.
        hosts = hosts.filter(pl.len().over("domain") > 1)
        ends = hosts["domain"].unique()
        # A domain is what a host below it has for its domain.
        is_one = hosts["domain"].is_in(ends.filter(domains_of("a." + ends) == ends).implode())
        found.append(hosts.filter(is_one))
        hosts = hosts.filter(~is_one)
    return pl.concat(found).select("host", "is_asked", pl.col("domain").hash(seed)).sort("host")


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
    # There and back is two steps, so the root is the growth of one.
    twice = (pl.col("by") * pl.col("back")).sum().sqrt().round(6)
    around = others.join(back, on=["group", "finder"]).group_by("group").agg(growth=twice)
    found = pl.concat([_within(led.filter(is_within)), around])
    return found.group_by("group").agg(pl.col("growth").max())


def _within(led: pl.DataFrame) -> pl.DataFrame:
    edges = led.select("group", "finder", "by")
    for _ in range(_TRIMS):
        to, of = edges["group"].implode(), edges["finder"].implode()
        # A group that leads nowhere, or that nothing leads to, is in no cycle.
        on = edges.filter(pl.col("group").is_in(of) & pl.col("finder").is_in(to))
        if len(on) == len(edges):
            break
        edges = on
    if edges.is_empty():
        return pl.DataFrame(schema=_SCHEMA)
    groups, numbers = np.unique(edges["group"].to_numpy(), return_inverse=True)
    finders = np.searchsorted(groups, edges["finder"].to_numpy())
    weights = np.log(edges["by"].to_numpy())
    # Forwards and backwards: what leads to a trap has growing ways from it, but none to it.
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
        # The first half lets what is far away arrive; the rate is that of the second.
        if step == _STEPS // 2:
            half = sums
        ways = weights + sums[to]
        # log of a sum of exponentials, the largest taken out: exp() of some is beyond a float.
        most = np.maximum.reduceat(ways, starts)
        new = np.log(np.add.reduceat(np.exp(ways - most[of]), starts)) + most
        # The ways that rest here.
        sums = np.logaddexp(sums, new)
    rates: Floats = np.expm1((sums - half) * 2 / _STEPS)
    return rates


COUNTS: Final = pl.Schema(
    {
        "group": pl.UInt64(),
        "round": pl.UInt32(),
        "host": pl.UInt64(),
        "level": pl.UInt8(),
        "asked": pl.Int64(),
        "new": pl.Int64(),
        "other": pl.Int64(),
        "waiting": pl.Int64(),
        "pending": pl.Int64(),
        "since": pl.Int64(),
        "before": pl.Int64(),
        "is_suspect": pl.Boolean(),
        "doubt": pl.UInt16(),
    }
)
"""Counts of a group's URLs by the round that asked for them, or found those that wait: `new` ones,
and of these the `other` ones that aren't alike; those that wait, and those that are being fetched.
`since` is the first time of any (ms), `before` the last one at which a page was asked for, or else
found, that was asked for an interval later.
"""
FINDS: Final = pl.Schema(
    {"group": pl.UInt64(), "finder": pl.UInt64(), "round": pl.UInt32(), "found": pl.Int64()}
)
"""How many URLs of a group wait that pages of another, or of its own, led to in a round."""
SUSPECT: Final = 1 << 61
"""Makes of a group's name that of its suspects."""
NEW, GOOD, GROWS, DOUBTED, ALIKE, SOME, DULL = range(7)
_APART: Final = {GROWS: 1, ALIKE: 2, SOME: 3, DULL: 4, DOUBTED: 5}
"""Kinds of groups that share -> what is added to their host, as the name of what they share."""
_SPREADS: Final = 2
"""How often it is asked what was led to by what."""
DOMAINS: Final = pl.Schema({"host": pl.UInt64(), "domain": pl.UInt64()})
_GROWTH: Final = 1.03
"""More than this grows: as far as sums of many small steps look like growth."""
_ENDLESS: Final = 0.99


def allowances(
    counts: pl.DataFrame, finds: pl.DataFrame, explore: int, domains: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Returns of each group in counts of COUNTS: `group`, `level`, `asked`, `new`, `waiting`,
    `growth`, its `kind`, the `pool` of groups that it is in, if these are more it is `shared`, and
    `allowed`, how many of those that wait there a round asks for; where nothing else is due these
    are `more_pool` and `more`. `domains` has the group of each host's domain, if that is one.
    """
    few, probes = max(1, explore // 5), max(1, explore // 10)
    domains = pl.DataFrame(schema=DOMAINS) if domains is None else domains
    table = _judged(counts, finds, domains, few, probes)
    for _ in range(_SPREADS):
        table = _spread(table, finds)
    table = _by_domain(_of_suspects(table, few))
    of_own = finds.join(table.filter(_is_bad()).select(finder="group"), on="finder")
    of_own = of_own.group_by("group").agg(of_own=pl.col("found").sum())
    table = table.join(of_own, on="group", how="left")
    pool = pl.col("group")
    for kind, apart in _APART.items():
        of_host = pl.col("owner") ^ pl.lit(apart, pl.UInt64)
        pool = pl.when(pl.col("kind") == kind).then(of_host).otherwise(pool)
    table = table.with_columns(pool=pool)
    now = int(counts["round"].max() or 0)  # type: ignore[arg-type]
    pools = _allowed(table, explore, probes, now)
    return _split(table.join(pools, on="pool")).select(
        "group", "pool", "level", "asked", "new", "waiting", "growth", "kind", "shared", "allowed",
        "more_pool", "more",
    )  # fmt: skip


def _is_bad() -> pl.Expr:
    return (pl.col("kind") > GOOD) & (pl.col("kind") != DOUBTED)


def _lately(by: str) -> pl.Expr:
    """The weight of rounds that are in order: half of that of the next one that asked."""
    has_asked = (pl.col("asked") > 0).cast(pl.Int32)
    # Rounds in which nothing was asked make nothing older.
    age = has_asked.cum_sum(reverse=True).over(by) - has_asked
    return pl.lit(0.5).pow(age)


def _is_good(new: str, asked: str) -> pl.Expr:
    # One more of each: a group of one dull page is not given up.
    return 2 * (pl.col(new) + 1) >= pl.col(asked) + 1


def _judged(
    counts: pl.DataFrame, finds: pl.DataFrame, domains: pl.DataFrame, few: int, probes: int
) -> pl.DataFrame:
    """Returns the groups with their counts, `owner` (the group of the domain, or else the host),
    `growth` and `kind`.
    """
    asked = pl.col("asked")
    hosts = counts.group_by("host", "round").agg(pl.col("asked", "other").sum())
    hosts = hosts.sort("host", "round").with_columns(weight=_lately("host"))
    hosts = hosts.group_by("host").agg(
        host_late=(asked * pl.col("weight")).sum(),
        host_other=(pl.col("other") * pl.col("weight")).sum(),
        host_new=pl.col("other").sum(),
    )
    rounds = counts.sort("group", "round").with_columns(
        weight=_lately("group"),
        is_last=asked.cum_sum(reverse=True).over("group") - asked < probes,
    )
    table = rounds.group_by("group").agg(
        pl.col("host", "is_suspect", "doubt").first(),
        pl.col("level").min(),
        pl.col("asked", "new", "other", "waiting", "pending").sum(),
        pl.col("since").min(),
        pl.col("before").max(),
        late=(asked * pl.col("weight")).sum(),
        late_new=(pl.col("new") * pl.col("weight")).sum(),
        late_other=(pl.col("other") * pl.col("weight")).sum(),
        last=pl.col("round").filter(asked > 0).max().fill_null(0),
        late_waiting=pl.col("waiting")
        .filter(pl.col("round") >= pl.col("round").filter(asked > 0).max())
        .sum(),
        rounds=(asked > 0).sum(),
    )
    owner = pl.coalesce("domain", "host")
    table = table.join(domains, on="host", how="left").with_columns(owner=owner).drop("domain")
    is_of = pl.col("is_last") & (asked > 0)
    last = (
        rounds.filter(is_of)
        .group_by(finder="group")
        .agg(of=asked.sum(), since=pl.col("round").min())
    )
    enough = table.filter(asked >= few)["group"].implode()
    led = finds.filter(pl.col("group").is_in(enough) & pl.col("finder").is_in(enough))
    # What was found by the last x/10 pages alone: a list of goods that ends has ended there.
    led = led.join(last, on="finder").filter(pl.col("round") >= pl.col("since"))
    led = led.group_by("group", "finder").agg(by=pl.col("found").sum() / pl.col("of").first())
    owners = table.select("group", "owner")
    led = led.join(owners, on="group").join(
        owners.rename({"group": "finder", "owner": "finder_owner"}), on="finder"
    )
    table = table.join(growth(led), on="group", how="left").join(hosts, on="host")
    table = table.join(last.select("of", group="finder"), on="group", how="left")
    is_few, growth_ = asked < few, pl.col("growth").fill_null(0.0)
    of_host, own = _is_good("host_other", "host_late"), _is_good("late_other", "late")
    other = pl.when(is_few).then(of_host).otherwise(own)
    kind = (
        pl.when(other & is_few & (pl.col("doubt") > 0)).then(DOUBTED)
        .when(other & is_few & pl.col("is_suspect")).then(GROWS)
        .when(other & is_few).then(NEW)
        .when(other & (growth_ > _GROWTH)).then(GROWS)
        .when(other).then(GOOD)
        .when(_is_good("late_new", "late")).then(ALIKE)
        .when(8 * pl.col("late_new") >= pl.col("late")).then(SOME)
        .otherwise(DULL)
    )  # fmt: skip
    # A page that was asked for again counts as if it had been found then.
    is_again = pl.col("before") >= pl.col("since").min().over("host")
    is_endless = (growth_ > _ENDLESS) & (asked >= 100 * probes)
    needs_no_end = is_endless | (is_again & (4 * pl.col("waiting") > asked))
    return table.with_columns(growth=growth_, kind=kind, endless=needs_no_end.fill_null(is_endless))


def _spread(table: pl.DataFrame, finds: pl.DataFrame) -> pl.DataFrame:
    """Takes groups for growing that were found by such, or by others that bring little."""
    bad = table.filter(_is_bad()).select(finder="group", is_bad=True)
    found = finds.join(bad, on="finder", how="left").group_by("group")
    by_bad = found.agg(by_bad=pl.col("found").filter("is_bad").sum() * 2 > pl.col("found").sum())
    table = table.join(by_bad, on="group", how="left")
    is_led = (pl.col("kind") <= GOOD) & pl.col("by_bad").fill_null(False)
    return table.with_columns(kind=pl.when(is_led).then(GROWS).otherwise("kind")).drop("by_bad")


def _of_suspects(table: pl.DataFrame, few: int) -> pl.DataFrame:
    """Takes suspects of which little is known for what the others of their group are, if that is
    less than what grows.
    """
    others = table.filter(~pl.col("is_suspect")).select(
        group=pl.col("group") ^ pl.lit(SUSPECT, pl.UInt64), of_others="kind"
    )
    table = table.join(others, on="group", how="left")
    is_new = pl.col("is_suspect") & (pl.col("asked") < few)
    kind = pl.max_horizontal("kind", "of_others")
    return table.with_columns(kind=pl.when(is_new).then(kind).otherwise("kind")).drop("of_others")


def _by_domain(table: pl.DataFrame) -> pl.DataFrame:
    """Takes new groups for growing whose domain is no good; leaves its own host for the `owner` of
    those whose domain is.
    """
    bad = table.filter(pl.col("kind") > GOOD)["group"].implode()
    is_bad, is_new = pl.col("owner").is_in(bad), pl.col("kind") == NEW
    is_host = pl.col("owner") != pl.col("host")
    return table.with_columns(
        kind=pl.when(is_bad & is_new & is_host).then(GROWS).otherwise("kind"),
        owner=pl.when(is_bad).then("owner").otherwise("host"),
    )


def _allowed(table: pl.DataFrame, explore: int, probes: int, now: int) -> pl.DataFrame:
    """Returns `pool`, `allowed`, `more`, and whether it is `shared`."""
    kind, new, waiting = pl.col("kind"), pl.col("new"), pl.col("waiting")
    pools = table.group_by("pool").agg(
        kind.first(),
        pl.col("asked", "new", "other", "waiting", "pending", "of").sum(),
        pl.col("late_waiting", "of_own").sum(),
        pl.col("last", "rounds").max(),
        pl.col("endless").any(),
        host_new=pl.col("host_new").max(),
        growth=((pl.col("growth") * waiting).sum() / waiting.sum().clip(1)).round(6),
        shared=pl.len() > 1,
    )
    share = pl.min_horizontal(new // explore, explore)
    pause, wasted = now - pl.col("last"), (pl.col("asked") - pl.col("other")).clip(1)
    most_good = (4 * pl.col("of")).clip(explore // 2)
    allowed = (
        pl.when(kind == NEW).then(explore)
        .when((kind == GOOD) & pl.col("endless")).then(most_good.clip(upper_bound=5 * explore))
        .when(kind == GOOD).then(most_good)
        .when(kind == DOUBTED).then(1)
        .when((kind == GROWS) & (pl.col("rounds") <= explore // 4)).then(share.clip(probes))
        .when(kind == GROWS).then(share.clip((pause > 2).cast(pl.Int64)))
        .otherwise(pause >= wasted // 4)
    ).cast(pl.Int64)  # fmt: skip
    # What waits was found by the last ones, and by its own kind.
    is_chain = 2 * pl.min_horizontal("late_waiting", "of_own") > waiting
    leads_on = (kind == ALIKE) & (is_chain | (pl.col("growth") > _ENDLESS))
    most_wasted = pl.col("host_new").clip(2 * explore, 5 * explore)
    is_over = (wasted >= most_wasted) & (leads_on | (kind == DULL))
    rest = pl.when((kind == ALIKE) & ~leads_on).then(2).otherwise(3)
    turn = kind.replace_strict({GROWS: 0, DOUBTED: 1}, default=rest)
    waits = (kind > GOOD) & ~is_over & (waiting > 0)
    pools = pools.with_columns(allowed=allowed, turn=pl.when(waits).then(turn))
    first = pools["turn"].min()
    is_open = pl.col("turn").eq(pl.lit(first)).fill_null(False)
    place = pl.when(is_open).then("growth").rank("min")
    is_first = is_open & (place <= (is_open.sum() // 4).clip(2))
    most = pl.when(kind == ALIKE).then(5 * explore - new).otherwise(5 * explore)
    half = pl.min_horizontal(new // 2, most).clip(explore // 2)
    rest = pl.when(is_over).then(0).otherwise("allowed") if first is None else pl.col("allowed")
    pools = pools.with_columns(more=pl.when(is_first).then(half).otherwise(rest))
    return pools.select("pool", "shared", (pl.col("allowed", "more") - pl.col("pending")).clip(0))


def _split(table: pl.DataFrame) -> pl.DataFrame:
    """Gives each group that grows its part of what its pool has where nothing else is due, if there
    is one for each at least: as many as wait, or in inverse proportion to their growth.
    """
    waits = pl.col("waiting") > 0
    count = waits.sum().over("pool")
    parts = table.filter(waits, pl.col("kind") == GROWS, count > 1, pl.col("more") >= count)
    parts = parts.with_columns(weight=1 / pl.col("growth").clip(1))
    parts = parts.with_columns(full=pl.col("waiting") / pl.col("weight")).sort("pool", "full")
    rest = pl.col("more") - (pl.col("waiting").cum_sum() - pl.col("waiting")).over("pool")
    parts = parts.with_columns(by=rest / pl.col("weight").cum_sum(reverse=True).over("pool"))
    by = pl.col("by").filter(pl.col("by") <= pl.col("full")).first().over("pool")
    part = (by * pl.col("weight")).floor().cast(pl.Int64)
    # All that wait: neither the best nor the newest are more than half of twice as many.
    part = pl.when(part < pl.col("waiting")).then(part).otherwise(2 * pl.col("waiting"))
    parts = parts.select("group", part=part)
    table = table.join(parts, on="group", how="left")
    is_part = pl.col("part").is_not_null()
    return table.with_columns(
        more_pool=pl.when(is_part).then("group").otherwise("pool"),
        more=pl.coalesce("part", "more"),
    )
