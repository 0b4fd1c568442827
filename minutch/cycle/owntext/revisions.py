"""Decides which blocks of pages have changed from visit to visit, and which of these changes say
nothing, since such a block changes at each visit. Pure.

Blocks are lines of a page's text, compared as sets: one that moves, or is spaced otherwise, has not
changed. A change is muted, with its reason, if

    NOT_OWN     the line is the site's or no main text, by its page (`own`)
    FRAME       half of the site's pages (three at least) got or lost the same line at once
    PASSING     "3 hours ago" is "5 hours ago" now, "8 views" 9, and nothing else differs
    HABIT       what stands there does not stay: see below
    ELSEWHERE   the line is in other boxes of the page now

A change of numbers leaves the line but for words with digits and names of months and days (`mask`);
any other is one of wording. Each kind is judged by its own history, so a wording that changes in a
line whose number always does is told. What a line stands for is asked in several ways:

    place       what is in these boxes of the site
    mask        at this place, the same words around numbers ("Viewed # times")
    unit        at this place, the same words after numbers ("Ada (# posts) wrote on #")
    after       at this place, what follows the same line but for its numbers ("Related")
    ahead       the same of what stands before it ("Advertisement")
    line        the line itself, as one of a few that take turns
    first, last the nth line at this place, from above or below, if another stands there now
    pool        at this place, a line that other pages had there, too; or that came on some and went
                from others, with nothing in its place ("We use cookies")
    item        the same, but for the numbers ("Lamp 42.50 EUR"), which say nothing then, either

Of those that stood there, at one visit, the next visit tells which stayed. It is a habit of a site
if MOVING of them went, on three of its pages, and at most of its visits: what changed once for all,
as prices in a sale, is none. It is a habit of a page if they went at nearly all of its visits, and
chance would do that in one of a hundred pages at most, if the rest of the site is a measure.

Two visits say little of habits: what changed at once on most pages may be an edit of all. Then
numbers are muted that are no amounts of money, and words that quite others have replaced (_AT_ONCE)
where chance would not do it: not the same words for the same others, as when a name is changed.

In a new design all boxes are others. Lines that stand in these have neither stayed nor gone, and
what changed at each visit has its place by what is around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, lgamma, log, log1p
from typing import Final

import polars as pl

from minutch.cycle.owntext.worddiff import EVER, SLOTS, without_other

NOT_OWN: Final = "not own text"
FRAME: Final = "frame of the site"
PASSING: Final = "time, count or notice"
HABIT: Final = "changes at each visit"
ELSEWHERE: Final = "elsewhere on the page"
LEAST_CHANCE: Final = 10
"""63rds of probability: a line that no more is likely to be main text has to be own by its site."""
MOVING: Final = 0.4
_PAGES: Final = 3
_AT_ONCE: Final = {
    "numbers": {"mask": 0.8, "unit": 0.8},
    "words": dict.fromkeys(("first", "last", "after", "ahead"), 0.8)
    | dict.fromkeys(("pool", "item"), MOVING),
}
"""Which part has to change where there were two visits only."""
_LUMPED: Final = dict.fromkeys(("first", "last", "unit"), 0.8)
"""The same of several visits, where quite different lines may be of one kind."""
_MANY: Final = 20
"""Lines of a list that is long."""
_HALF: Final = 0.5
_QUARTER: Final = 0.25
_APART: Final = ("line", "item", "shared", "comes", "pages")
"""Counts that are no habits as they are."""
_RARE: Final = 0.01
_OFTEN: Final = 0.75
_WEIGHT: Final = 10
_USUAL: Final = {"words": 0.12, "numbers": 0.05}
"""What is taken for usual at a place before anything is known, with the weight of _WEIGHT lines."""

COUNTS: Final = pl.Schema(
    {"site": pl.UInt64(), "kind": pl.String(), "key": pl.UInt64()}
    | dict.fromkeys(("place", "segment"), pl.UInt32())
    | dict.fromkeys(("lines", "words", "numbers", "pages"), pl.Int64())
)
"""How many lines of a site's pages there were at visits, and of how many the wording or numbers
were others at the next, that of `segment`. `place` is that of "line", of "first" and "last" the
words by which they differ; 0 of the others."""
_SHARED: Final = pl.struct("side", "place", "hash").hash()
_POOL: Final = pl.struct("place", "hash").hash()


def _kinds(found: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Returns what lines stand for, by kind, as `key`."""
    place = pl.col("place")
    keys = {
        "place": place.hash(),
        "mask": pl.struct(place, "mask").hash(),
        "unit": pl.struct(place, "unit").hash(),
        "after": pl.struct(place, "after").hash(),
        "ahead": pl.struct(place, "ahead").hash(),
        "line": pl.col("hash"),
        "first": pl.struct(place, "nth").hash(),
        "last": pl.struct(place, "left").hash(),
        "pool": _POOL,
        "item": pl.struct(place, "mask").hash(),
    }
    kinds = {kind: found.with_columns(key=key) for kind, key in keys.items()}
    kinds["money"] = kinds["mask"].filter("has_number", "has_money")
    kinds["item"] = kinds["item"].filter("has_number")
    for kind in ("mask", "unit"):
        kinds[kind] = kinds[kind].filter("has_number", ~pl.col("has_money"))
    kinds["first"] = kinds["first"].filter(pl.col("nth") < SLOTS)
    kinds["last"] = kinds["last"].filter(pl.col("left") < SLOTS)
    return kinds


def counted(found: pl.DataFrame) -> pl.DataFrame:
    """Returns what the `sides` of some pages come to, with COUNTS. Lines that are in other boxes
    now, as all are in a new design, neither stayed nor went.
    """
    found = found.filter(~pl.col("moved"))
    numbers, words = pl.col("number"), pl.col("gone") & ~pl.col("number")
    tables = []
    for kind, mine in _kinds(found).items():
        if kind == "pool":
            continue
        is_line = kind in ("line", "item")
        at = pl.col("place") if is_line else pl.lit(0).alias("place")
        rows = mine.with_columns(key="mask") if kind == "item" else mine
        went = words
        if kind in ("first", "last"):
            at, went = pl.col(kind).fill_null(EVER).alias("place"), pl.col(kind).is_not_null()
        elif kind in ("after", "ahead"):
            at = pl.coalesce("first", "last").fill_null(EVER).alias("place")
        counts = (
            rows.filter(side=0)
            .group_by("site", "key", at, "segment")
            .agg(lines=pl.len(), words=went.sum(), numbers=numbers.sum())
        )
        tables.append(counts.with_columns(kind=pl.lit(kind)))
        # what is there at last is one of those that take turns, too
        there = rows if is_line else rows.filter(side=0)
        at = at if is_line else pl.lit(0).alias("place")
        pages = there.group_by("site", "key", at).agg(pages=pl.col("page").n_unique())
        tables.append(pages.with_columns(kind=pl.lit(kind), segment=pl.lit(EVER)))
    shared = found.filter("gone").group_by("site", "side", "place", "hash", "segment")
    counts = shared.agg(pages=pl.col("page").n_unique())
    pages = found.group_by("site", "segment").agg(pages=pl.col("page").n_unique())
    every = found.group_by("site").agg(pages=pl.col("page").n_unique())
    every = every.with_columns(segment=pl.lit(EVER))
    for table in (pages, every):
        tables.append(table.with_columns(kind=pl.lit("pages"), key=pl.lit(0)))
    tables.append(counts.with_columns(key=_SHARED, kind=pl.lit("shared")))
    # what came on pages and went from others, with nothing in its place
    alone = found.filter(words & pl.col("first").is_null() & pl.col("last").is_null())
    comes = alone.group_by("site", _POOL.alias("key"), "segment").agg(
        lines=pl.col("page").filter(side=0).n_unique(),
        words=pl.col("page").filter(side=1).n_unique(),
    )
    tables.append(comes.with_columns(kind=pl.lit("comes")))
    zeros = ("place", "lines", "words", "numbers", "pages")
    return pl.concat(
        table.with_columns(
            pl.lit(0).alias(name) for name in zeros if name not in table.columns
        ).select(pl.col(name).cast(kind) for name, kind in COUNTS.items())
        for table in tables
    )


def added(counts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Adds up counts of different pages."""
    keys = ("site", "kind", "key", "place", "segment")
    return pl.concat([pl.DataFrame(schema=COUNTS), *counts]).group_by(keys).sum()


HABITS: Final = pl.Schema(
    {name: kind for name, kind in COUNTS.items() if name not in ("place", "segment")}
    | dict.fromkeys(("moving_words", "moving_numbers"), pl.Boolean())
)


def habits(counts: pl.DataFrame) -> pl.DataFrame:
    """Returns what sites' habits are, by all their counts, with HABITS: what is moving, and of all
    places how often lines changed there.
    """
    kind = pl.col("kind")
    lines = counts.filter(kind == "line")
    places = counts.filter(kind == "place").group_by("site")
    usual = places.agg(pl.col("words", "lines").sum().name.prefix("all_"))
    # The same words for the same others on many pages are one edit of all: nothing takes turns.
    slot = ["site", "kind", "key", "segment"]
    is_edit = kind.is_in(["first", "last", "after", "ahead"]) & (pl.col("place") != EVER)
    is_edit &= pl.col("words") > _HALF * pl.sum("words").over(slot)
    edits = counts.with_columns(words=pl.when(is_edit).then(0).otherwise("words"))
    found = _moving(edits.filter(~kind.is_in(_APART)), usual)
    pages = counts.filter(kind == "pages").select("site", "segment", of="pages")
    sizes = pages.filter(segment=EVER)
    pools = [_pools(one, counts.filter(kind == one), sizes, usual) for one in ("line", "item")]
    # Lines at places that move anyway tell nothing more.
    moving = found.filter("moving_words", kind == "place").select("site", "key")
    some = lines.with_columns(at=pl.col("place").hash())
    some = some.join(moving, left_on=["site", "at"], right_on=["site", "key"], how="anti")
    # a few pages may have a line there that takes turns elsewhere
    rest, whole = _moving(some, usual), _moving(lines, usual).filter("moving_words")
    few = rest.filter(pl.col("pages") > 1, pl.col("words") >= MOVING * pl.col("lines"))
    few = few.join(whole, on=["site", "key"], how="semi").with_columns(moving_words=True)
    # Only where two pages have it: the title of a page is a line of other pages' lists.
    turns = pl.concat([rest, few]).filter("moving_words").unique(["site", "key"])
    turns = turns.join(_pages_of(lines).filter(pl.col("pages") > 1), on=["site", "key"])
    found = pl.concat([found, *pools, _at_places("pool", turns)])
    comes = counts.filter(kind == "comes").join(pages, on=["site", "segment"])
    every = pl.col("lines") + pl.col("words")
    is_both = pl.min_horizontal("lines", "words") > 0
    comes = comes.filter(is_both, every >= _PAGES, every >= _QUARTER * pl.col("of"))
    comes = comes.with_columns(kind=pl.lit("pool"), moving_words=True, moving_numbers=False)
    found = pl.concat([found, comes.select(HABITS.names())]).unique(["site", "kind", "key"])
    found = found.filter(pl.col("moving_words") | pl.col("moving_numbers") | (kind == "place"))
    shared = counts.filter(kind == "shared").select("site", "key", "segment", "pages")
    over_all = shared.group_by("site", "key").agg(pages=pl.col("pages").sum())
    over_all = over_all.with_columns(segment=pl.lit(EVER, pl.UInt32)).select(shared.columns)
    shared = pl.concat([shared, over_all]).join(pages, on=["site", "segment"])
    shared = shared.filter(pl.col("pages") >= _PAGES, pl.col("pages") >= _HALF * pl.col("of"))
    frame = shared.select("site", "key").unique()
    frame = frame.with_columns(
        *(pl.lit(0, pl.Int64).alias(name) for name in ("lines", "words", "numbers", "pages")),
        kind=pl.lit("shared"),
        moving_words=pl.lit(value=True),
        moving_numbers=pl.lit(value=False),
    )
    return pl.concat([found, frame.select(HABITS.names())])


def _pools(
    kind: str, lines: pl.DataFrame, sizes: pl.DataFrame, usual: pl.DataFrame
) -> pl.DataFrame:
    """Returns, with HABITS, the lines that several pages have at a place, where these take turns,
    by the counts of lines.
    """
    line = ["site", "place", "key"]
    every = _pages_of(lines).join(sizes, on="site")
    if kind == "item":
        # what goes from most pages at once is an edit of all: of lines, it is the frame's
        once = lines.group_by(line).agg(most=pl.col("words").max())
        every = every.join(once, on=line).filter(pl.col("most") <= _HALF * pl.col("of"))
    stands = (pl.col("words") == 0) & (pl.col("pages") >= _HALF * pl.col("of"))
    # Two pages may be one that has moved, or its forms: what both have stays as a rule.
    goes = (pl.col("pages") > 2) | (pl.col("words") >= MOVING * pl.col("lines"))
    pooled = every.filter(pl.col("pages") > 1, ~stands, goes).select(line)
    turns = lines.filter(pl.col("segment") != EVER).join(pooled, on=line, how="semi")
    counts = turns.with_columns(
        key=pl.col("place").hash(),
        kind=pl.lit("pool"),
        lines=pl.col("lines") - pl.col("numbers"),
        pages="words",
    )
    moving = _moving(counts.select(lines.columns), usual).filter("moving_words")
    pooled = pooled.with_columns(at=pl.col("place").hash())
    return _at_places(
        "pool" if kind == "line" else kind,
        pooled.join(moving.rename({"key": "at"}), on=["site", "at"]),
    )


def _pages_of(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns what counts of lines come to over all visits, by `site`, `place` and `key`."""
    return lines.group_by("site", "place", "key").agg(pl.sum("pages", "words", "lines"))


def _at_places(kind: str, lines: pl.DataFrame) -> pl.DataFrame:
    """Returns habits of lines (`key`, at `place`), as those of a pool, with HABITS."""
    key = pl.struct("place", hash="key").hash()
    # what comes and goes does so whatever its numbers are
    goes = (pl.col("lines") > 0) & (pl.col("words") >= MOVING * pl.col("lines"))
    lines = lines.with_columns(key=key, kind=pl.lit(kind), moving_numbers=goes)
    return lines.select(HABITS.names())


def standing(lines: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Returns those of the lines (`worddiff.read`) that are own and stay by all sites' habits."""
    own = lines.filter("own").with_row_index("at")
    moving = known.filter(pl.col("moving_words") | pl.col("moving_numbers"))
    kinds = _kinds(own)
    for side in (0, 1):
        shared = own.with_columns(side=pl.lit(side, pl.Int8)).with_columns(key=_SHARED)
        kinds |= {f"shared {side}": shared}
    for kind, rows in kinds.items():
        mine = moving.filter(pl.col("kind") == kind.split(" ")[0])
        habit = rows.join(mine, on="key", how="semi")
        own = own.join(habit.select("at"), on="at", how="anti", maintain_order="left")
    return own.drop("at")


def _moving(counts: pl.DataFrame, usual: pl.DataFrame) -> pl.DataFrame:
    """Returns which keys are habits, by their counts, with HABITS. `usual` says how many
    lines of a `site` there are, and of how many the words are others at the next visit.
    """
    of_key = ("site", "kind", "key")
    counts = counts.group_by(*of_key, "segment").agg(
        pl.col("lines", "words", "numbers", "pages").sum()
    )
    is_turn = pl.col("segment") != EVER
    turns = is_turn.sum()
    judged = []
    for what in ("words", "numbers"):
        # of lines whose wording has gone, nobody knows whether the numbers had
        of = pl.col("lines") - pl.col("words") if what == "numbers" else pl.col("lines")
        often = pl.col(what).sum() / of.sum()
        busy = (is_turn & (pl.col(what) >= (MOVING / 2 * of).clip(1))).sum()
        is_habit = (turns > 1) & (often >= MOVING) & (busy >= 2) & (busy >= 0.6 * turns)
        kind = pl.col("kind").first()
        is_habit &= often >= kind.replace_strict(_LUMPED, default=MOVING)
        share = kind.replace_strict(_AT_ONCE[what], default=2.0)
        at_once = (turns == 1) & (often >= share) & (pl.col(what).sum() >= _PAGES)
        judged += [is_habit.alias(f"moving_{what}"), at_once.alias(f"at_once_{what}")]
    found = counts.group_by(of_key).agg(
        pl.col("lines", "words", "numbers").sum(), pl.col("pages").max(), *judged
    )
    flags = ("moving_words", "moving_numbers", "at_once_words", "at_once_numbers")
    found = found.with_columns(pl.col(flags) & (pl.col("pages") >= _PAGES))
    return _by_chance(found, usual).select(HABITS.names())


def _by_chance(found: pl.DataFrame, usual: pl.DataFrame) -> pl.DataFrame:
    """Adds to habits what has changed at once; words, where chance would not do it."""
    # by the rest of the site: it is to be seen whether these lines are another matter
    rest = (pl.col(f"all_{one}").fill_null(0) - pl.col(one) for one in ("words", "lines"))
    words, lines = (one.clip(0) for one in rest)
    maybe = found.filter("at_once_words").join(usual, on="site", how="left")
    maybe = maybe.with_columns(rate=_rate("words", words, lines))
    rare = _rare(maybe, "words", "lines").select("site", "kind", "key", rare=True)
    found = found.join(rare, on=["site", "kind", "key"], how="left")
    return found.with_columns(
        moving_words=pl.col("moving_words") | pl.col("rare").fill_null(value=False),
        moving_numbers=pl.col("moving_numbers") | pl.col("at_once_numbers"),
    )


def judged(found: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Returns those of the `sides` of pages that are gone on the other side, with `muted`, why they
    say nothing; null if they do. `known` are the habits of their sites.
    """
    rows = found.with_row_index("at")
    gone = rows.filter("gone")
    places = known.filter(kind="place").select("site", "key", "lines", "words", "numbers")
    moving = [pl.DataFrame(schema={"at": pl.UInt32})]
    steady = _steady(rows)
    for kind, mine in _kinds(rows).items():
        of_kind = known.filter(pl.col("kind") == kind)
        of_site = mine.filter("gone").join(of_kind, on=["site", "key"])
        is_moving = pl.when("number").then("moving_numbers").otherwise("moving_words")
        if kind in ("first", "last"):
            is_moving = pl.col(kind).is_not_null() & pl.col("moving_words")
        of_site = of_site.filter(is_moving)
        if kind in ("place", "pool", "item", "after", "ahead"):
            of_site = of_site.join(steady, on=["page", "place"], how="anti")
        moving.append(of_site.select("at"))
        if kind in ("place", "mask", "money", "after"):
            moving.append(_own_habits(kind, mine, places))
    frame = gone.with_columns(key=_SHARED)
    frame = frame.join(known.filter(kind="shared"), on=["site", "key"], how="semi").select("at")
    habit = pl.concat(moving)["at"].unique()
    moved, habit = _in_new_boxes(rows, habit)
    habit = _with_others(gone.filter(~pl.col("number")), habit)
    is_own = (pl.col("own") | (pl.col("chance") >= LEAST_CHANCE)) & ~pl.col("under")
    reason = (
        pl.when(pl.col("at").is_in(frame["at"].implode())).then(pl.lit(FRAME))
        .when(~is_own).then(pl.lit(NOT_OWN))
        .when("passes").then(pl.lit(PASSING))
        .when(pl.col("at").is_in(habit.implode())).then(pl.lit(HABIT))
    )  # fmt: skip
    # of a line in a new box it is no matter what is known of the old one
    is_moved = pl.col("at").is_in(moved.implode())
    gone = gone.with_columns(muted=pl.when(~is_moved).then(reason)).drop("at")
    # where it stands now may be what changes all the time, so this comes last
    stays = pl.col("muted").is_null() | pl.col("muted").is_in([NOT_OWN, FRAME])
    mine = without_other(gone, ["hash"], "alone", stays)
    is_there = pl.col("muted").is_null() & ~pl.col("alone")
    muted = pl.when(is_there).then(pl.lit(ELSEWHERE)).otherwise("muted")
    return mine.with_columns(muted=muted).drop("alone")


def _in_new_boxes(rows: pl.DataFrame, habit: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Returns which lines, `at`, are in boxes that the page has only before or after a turn, as all
    are in a new design, and stand in other ones then; and `habit` with those in such boxes that
    have taken the place of others that change at each visit.
    """
    box = ["page", "turn", "place"]
    boxes = rows.group_by(box).agg(pl.col("side").n_unique()).filter(side=1).select(box)
    gone = rows.filter("gone").join(boxes, on=box, how="semi", maintain_order="left")
    words = gone.filter(~pl.col("number"), ~pl.col("moved"))
    new = words.filter(side=1)
    known = words.filter(pl.col("at").is_in(habit.implode()))
    found = [
        _paired(gone.filter("number"), "mask", habit),
        _paired(words.filter(pl.col("after") != 0), "after", habit),
        new.join(known, on=["site", "hash"], how="semi")["at"],
    ]
    # a box with one of them has others beside it
    some = new.filter(pl.col("at").is_in(pl.concat(found[1:]).implode()))
    found.append(new.join(some, on=box, how="semi")["at"])
    return gone.filter("moved")["at"], pl.concat([habit, *found]).unique()


def _paired(gone: pl.DataFrame, by: str, habit: pl.Series) -> pl.Series:
    """Returns which lines have a partner on the other side, by a column, that is a habit."""
    slot = ["page", "turn", by, "of"]
    mine = gone.with_columns(of=pl.int_range(pl.len()).over("page", "turn", "side", by))
    pairs = mine.filter(side=0).join(mine.filter(side=1), on=slot, suffix="_of")
    known = habit.implode()
    old = pairs.filter(pl.col("at_of").is_in(known))["at"]
    new = pairs.filter(pl.col("at").is_in(known))["at_of"].alias("at")
    return pl.concat([old, new])


def _with_others(words: pl.DataFrame, habit: pl.Series) -> pl.Series:
    """Returns `habit` with the lines that are seen for the first time where such a line was: as
    many as the box of the page lacks.
    """
    box = ["page", "turn", "place"]
    words = words.with_columns(is_known=pl.col("at").is_in(habit.implode()))
    known = pl.col("is_known").cast(pl.Int32)
    side = pl.col("side").cast(pl.Int32)
    lacking = ((1 - 2 * side) * known).sum().over(box) * (2 * side - 1) > 0
    free, found = words.filter(~pl.col("is_known"), lacking), [habit]
    for slot in ([*box, *by] for by in (["after"], ["nth", "left"])):
        taken = words.filter("is_known").select(slot).unique()
        found.append(free.join(taken, on=slot, how="semi")["at"])
    return pl.concat(found).unique()


def _steady(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the places of pages at which many lines stand that stay, whatever other pages have
    there: the list of all pages, where others have a few related ones.
    """
    went = (pl.col("gone") & ~pl.col("number")).sum()
    turns = pl.col("turn").n_unique()
    found = rows.filter(side=0).group_by("page", "place").agg(n=pl.len(), went=went, turns=turns)
    return found.filter(
        pl.col("n") >= _MANY * pl.col("turns"), pl.col("went") < MOVING * pl.col("n")
    )


def _own_habits(kind: str, mine: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Returns which lines, `at`, change by a habit of their own page."""
    numbers = kind in ("mask", "money")
    what = "numbers" if numbers else "words"
    changed = pl.col("number") if numbers else pl.col("gone") & ~pl.col("number")
    before = mine.filter(pl.col("side") == 0)
    turns = before.group_by("site", "page", "place", "key", "turn").agg(
        n=pl.len(), went=changed.sum()
    )
    pages = turns.group_by("site", "page", "place", "key").agg(
        pl.col("n").sum(),
        pl.col("went").sum(),
        turns=pl.len(),
        times=(pl.col("went") >= _HALF * pl.col("n")).sum(),
    )
    least = 2 if kind == "mask" else 3
    pages = pages.filter(pl.col("times") >= least, pl.col("times") >= _OFTEN * pl.col("turns"))
    rest = pages.join(
        places.select("site", of_place="key", all_lines="lines", all_went=what),
        left_on=["site", pl.col("place").hash()],
        right_on=["site", "of_place"],
        how="left",
    ).with_columns(pl.col("all_lines", "all_went").fill_null(0))
    others = (pl.col("all_lines") - pl.col("n")).clip(0)
    went = pl.min_horizontal((pl.col("all_went") - pl.col("went")).clip(0), others)
    # where other pages have the habit, they are no measure of what is usual without it
    counts = pl.when(went < MOVING * others)
    went, others = counts.then(went).otherwise(0), counts.then(others).otherwise(0)
    rest = rest.filter((pl.col("times") > 2) | (others < _WEIGHT))
    rest = _rare(rest.with_columns(rate=_rate(what, went, others)), "times", "turns")
    return mine.filter(changed).join(rest, on=["page", "place", "key"], how="semi").select("at")


def _rate(what: str, went: pl.Expr, lines: pl.Expr) -> pl.Expr:
    """Which part of lines is usually another one."""
    # A prior of _WEIGHT lines: one other page that changed once is no rate of 1.
    return (went + _USUAL[what] * _WEIGHT) / (lines + _WEIGHT)


def _rare(rows: pl.DataFrame, times: str, turns: str) -> pl.DataFrame:
    """Returns the rows of which chance, at their `rate`, would bring no more than _RARE."""
    found = [tail(*row) <= _RARE for row in rows.select(times, turns, "rate").iter_rows()]
    return rows.filter(pl.Series(found, dtype=pl.Boolean))


def tail(times: int, turns: int, rate: float) -> float:
    """Returns how probable it is that at least so many of some turns are changes."""
    if times <= turns * rate:  # as many as are to be expected: never rare
        return 1.0
    # By logarithms: of a place on thousands of pages the binomial coefficients are beyond a float.
    ways = lgamma(turns + 1) - lgamma(times + 1) - lgamma(turns - times + 1)
    term = exp(ways + times * log(rate) + (turns - times) * log1p(-rate))
    found = 0.0
    while times <= turns and term > found * 1e-12:  # each is less than the one before
        found += term
        term *= (turns - times) / (times + 1) * rate / (1 - rate)
        times += 1
    return found
