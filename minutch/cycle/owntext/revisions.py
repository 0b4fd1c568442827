"""Decides which blocks of pages have changed from visit to visit, and which of these changes say
nothing, since such a block changes at each visit. Pure.

Blocks are lines of a page's text, compared as sets: one that moves, or is spaced otherwise, has not
changed. A change is muted, with its reason, if

    NOT_OWN     the line is the site's or no main text, by its page (`own`)
    FRAME       half of the site's pages (three at least) got or lost the same line at once
    RELATIVE    "3 hours ago" is "5 hours ago" now, and nothing else differs
    HABIT       what stands there does not stay: see below
    ELSEWHERE   the line is in other boxes of the page now

A change of numbers leaves the line but for words with digits and names of months and days (`mask`);
any other is one of wording. Each kind is judged by its own history, so a wording that changes in a
line whose number always does is told. What a line stands for is asked in several ways:

    place       what is in these boxes of the site
    mask        at this place, the same words around numbers ("Viewed # times")
    after       at this place, what follows the same line ("Related")
    line        the line itself, as one of a few that take turns
    first, last the nth line at this place, from above or below, if another stands there now
    pool        at this place, a line that other pages had there, too

Of those that stood there, at one visit, the next visit tells which stayed. It is a habit of a site
if MOVING of them went, on three of its pages, and at most of its visits: what changed once for all,
as prices in a sale, is none. It is a habit of a page if they went at nearly all of its visits, and
chance would do that in one of a hundred pages at most, if the rest of the site is a measure.

Two visits say little of habits: what changed at once on most pages may be an edit of all. Then
numbers are muted that are no amounts of money, and words that quite others have replaced (_AT_ONCE)
where chance would not do it: not the same words for the same others, as when a name is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, lgamma, log, log1p
from typing import Final

import polars as pl

NOT_OWN: Final = "not own text"
FRAME: Final = "frame of the site"
RELATIVE: Final = "relative time"
HABIT: Final = "changes at each visit"
ELSEWHERE: Final = "elsewhere on the page"
LEAST_CHANCE: Final = 10
"""63rds of probability: a line that no more is likely to be main text has to be own by its site."""
MOVING: Final = 0.4
_PAGES: Final = 3
_AT_ONCE: Final = {"numbers": {"mask": 0.8}, "words": {"first": 0.8, "last": 0.8, "pool": MOVING}}
"""Which part has to change where there were two visits only."""
_SLOTS: Final = 8
"""Lines of a place that are counted from above, and from below."""
_MANY: Final = 20
"""Lines of a list that is long."""
_HALF: Final = 0.5
_RARE: Final = 0.01
_OFTEN: Final = 0.75
_WEIGHT: Final = 10
_USUAL: Final = {"words": 0.12, "numbers": 0.05}
"""What is taken for usual at a place before anything is known, with the weight of _WEIGHT lines."""
_DATES: Final = (
    r"(?i)^\W*(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
    r"|(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?|[ap]\.?m\.?|utc|gmt)\W*$"
)
_AGO: Final = (
    r"(?i)\b(?:just now|moments? ago|yesterday|today|(?:\d+|an?|one|two|a few|few)"
    r" (?:sec|second|min|minute|hour|hr|day|week|month|year)s? ago)\b"
)
_MONEY: Final = r"\p{Sc}|\b(?:EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|CAD|AUD|Euro?s?)\b"
"""An amount is no counter, though that of all goods changes at once."""
_INVISIBLE: Final = r"[\x{ad}\x{200b}-\x{200f}\x{2060}\x{feff}]"

COUNTS: Final = pl.Schema(
    {"site": pl.UInt64(), "kind": pl.String(), "key": pl.UInt64()}
    | dict.fromkeys(("place", "segment"), pl.UInt32())
    | dict.fromkeys(("lines", "words", "numbers", "pages"), pl.Int64())
)
"""How many lines of a site's pages there were at visits, and of how many the wording or numbers
were others at the next, that of `segment`. `place` is that of "line", of "first" and "last" the
words by which they differ; 0 of the others."""
_EVER: Final = 2**32 - 1
"""The segment of counts of pages, each of them once."""
_SHARED: Final = pl.struct("side", "place", "hash").hash()


def read(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns lines that are compared, with what they are compared by: `row` in the visit, `hash`,
    `mask` and if it `has_number`, `still` (but for relative times), `after`.

    `lines` are those of whole pages, in order: `site`, `page`, `visit` (from 0), its `segment`,
    `place`, `chance`, `own`, `line`.
    """
    # Soft hyphens and the like come and go without anybody seeing it.
    plain = pl.col("line").str.replace_all(_INVISIBLE, "").str.replace_all(r"[\s\p{Z}]+", " ")
    lines = lines.with_columns(line=plain.str.strip_chars()).filter(pl.col("line") != "")
    # Each distinct line once: pages of a site share most of theirs.
    words = lines.select(pl.col("line").unique()).with_columns(words=pl.col("line").str.split(" "))
    is_number = pl.element().str.contains(r"\d") | pl.element().str.contains(_DATES)
    masked = pl.col("words").list.eval(pl.when(is_number).then(pl.lit("#")).otherwise(pl.element()))
    masked = masked.list.join(" ").str.replace_all(r"#(?: #)+", "#")
    words = words.select(
        "line",
        pl.col("line").hash().alias("hash"),
        masked.hash().alias("mask"),
        pl.col("line").str.replace_all(_AGO, "#").hash().alias("still"),
        has_number=masked.str.contains("#", literal=True),
        has_money=pl.col("line").str.contains(_MONEY),
    )
    return lines.join(words, on="line", how="left", maintain_order="left").with_columns(
        row=pl.int_range(pl.len()).over("page", "visit"),
        nth=pl.int_range(pl.len(), dtype=pl.UInt32).over("page", "visit", "place"),
        left=pl.int_range(pl.len(), dtype=pl.UInt32).reverse().over("page", "visit", "place"),
        after=pl.col("hash").shift().over("page", "visit").fill_null(0),
    )


def sides(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns the lines of visits (`read`), those before and after each turn from a visit to the
    next: with `turn`, the later visit, whose `segment` they have; `side`, 0 before and 1 after it;
    `gone`, if the other side lacks it; `number`, if that has it but for numbers, `ago`, but for
    relative times.
    """
    visits = lines.select("page", turn="visit", of="segment").unique()
    old = lines.select(pl.exclude("visit"), turn=pl.col("visit") + 1, side=pl.lit(0, pl.Int8))
    new = lines.filter(pl.col("visit") > 0)
    new = new.select(pl.exclude("visit"), turn="visit", side=pl.lit(1, pl.Int8))
    found = pl.concat([old.select(new.columns), new]).drop("segment")
    found = found.join(visits, on=["page", "turn"], maintain_order="left").rename({"of": "segment"})
    # Then, of what is gone: all but its numbers, all but a relative time.
    found = _without_other(found, ["place", "hash"], "gone", pl.lit(value=True))
    found = _without_other(found, ["mask"], "word", pl.col("gone") & pl.col("has_number"))
    has_ago = pl.col("gone") & (pl.col("still") != pl.col("hash"))
    found = _without_other(found, ["still"], "lasting", has_ago)
    found = found.with_columns(
        number=pl.col("gone") & pl.col("has_number") & ~pl.col("word"),
        ago=has_ago & ~pl.col("lasting"),
    ).drop("word", "lasting")
    return _with_swaps(found)


def _with_swaps(found: pl.DataFrame) -> pl.DataFrame:
    """Tells of lines whose wording is gone, if another one has their place, counted from above or
    below, as `first` and `last`: by which words they differ, as a hash.
    """
    words = found.with_row_index("at").filter(pl.col("gone") & ~pl.col("number"))
    words = words.with_columns(words=pl.col("line").str.split(" ").list.unique())
    for name, nth in (("first", "nth"), ("last", "left")):
        slot = ["page", "turn", "place", nth]
        mine = words.filter(pl.col(nth) < _SLOTS).select("at", "side", "words", *slot)
        pairs = mine.filter(side=0).join(mine.filter(side=1), on=slot, suffix="_of")
        less, more = (
            pl.col(one).list.set_difference(other).list.sort().list.join(" ")
            for one, other in (("words", "words_of"), ("words_of", "words"))
        )
        edit = pl.concat_str(less, more, separator="\n").hash() % _EVER
        pairs = pairs.select("at", "at_of", edit.alias(name))
        others = pairs.select(pl.col("at_of").alias("at"), name)
        both = pl.concat([pairs.select("at", name), others])
        rows = found.select(at=pl.int_range(pl.len(), dtype=pl.UInt32))
        rows = rows.join(both, on="at", how="left", maintain_order="left")
        found = found.with_columns(rows[name].cast(pl.UInt32))
    return found


def _without_other(
    found: pl.DataFrame, by: Sequence[str], name: str, where: pl.Expr
) -> pl.DataFrame:
    """Tells of the lines `where` which the other side does not have, as often, by some columns."""
    key = ["page", "turn", *by]
    mine = found.with_row_index("at").filter(where)
    # As often: the second of two equal lines needs a second one on the other side.
    mine = mine.with_columns(nth=pl.int_range(pl.len()).over(*key, "side"))
    both = mine.group_by(*key, "nth").agg(alone=pl.len() == 1)
    alone = mine.join(both, on=[*key, "nth"]).select("at", pl.col("alone").alias(name))
    found = found.with_row_index("at").join(alone, on="at", how="left", maintain_order="left")
    return found.drop("at").with_columns(pl.col(name).fill_null(value=False))


def _kinds(found: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Returns what lines stand for, by kind, as `key`."""
    place = pl.col("place")
    keys = {
        "place": place.hash(),
        "mask": pl.struct(place, "mask").hash(),
        "after": pl.struct(place, "after").hash(),
        "line": pl.col("hash"),
        "first": pl.struct(place, "nth").hash(),
        "last": pl.struct(place, "left").hash(),
        "pool": pl.struct(place, "hash").hash(),
    }
    kinds = {kind: found.with_columns(key=key) for kind, key in keys.items()}
    kinds["money"] = kinds["mask"].filter("has_number", "has_money")
    kinds["mask"] = kinds["mask"].filter("has_number", ~pl.col("has_money"))
    kinds["first"] = kinds["first"].filter(pl.col("nth") < _SLOTS)
    kinds["last"] = kinds["last"].filter(pl.col("left") < _SLOTS)
    return kinds


def counted(found: pl.DataFrame) -> pl.DataFrame:
    """Returns what the `sides` of some pages come to, with COUNTS."""
    numbers, words = pl.col("number"), pl.col("gone") & ~pl.col("number")
    tables = []
    for kind, rows in _kinds(found).items():
        if kind == "pool":
            continue
        at = pl.col("place") if kind == "line" else pl.lit(0).alias("place")
        went = words
        if kind in ("first", "last"):
            at, went = pl.col(kind).fill_null(_EVER).alias("place"), pl.col(kind).is_not_null()
        counts = (
            rows.filter(side=0)
            .group_by("site", "key", at, "segment")
            .agg(lines=pl.len(), words=went.sum(), numbers=numbers.sum())
        )
        tables.append(counts.with_columns(kind=pl.lit(kind)))
        # what is there at last is one of those that take turns, too
        there = rows if kind == "line" else rows.filter(side=0)
        at = at if kind == "line" else pl.lit(0).alias("place")
        pages = there.group_by("site", "key", at).agg(pages=pl.col("page").n_unique())
        tables.append(pages.with_columns(kind=pl.lit(kind), segment=pl.lit(_EVER)))
    shared = found.filter("gone").group_by("site", "side", "place", "hash", "segment")
    counts = shared.agg(pages=pl.col("page").n_unique())
    pages = found.group_by("site", "segment").agg(pages=pl.col("page").n_unique())
    every = found.group_by("site").agg(pages=pl.col("page").n_unique())
    every = every.with_columns(segment=pl.lit(_EVER))
    for table in (pages, every):
        tables.append(table.with_columns(kind=pl.lit("pages"), key=pl.lit(0)))
    tables.append(counts.with_columns(key=_SHARED, kind=pl.lit("shared")))
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
    usual = counts.filter(kind == "place").group_by("site").agg(pl.col("words", "lines").sum())
    usual = usual.select("site", rate=_rate("words", pl.col("words"), pl.col("lines")))
    # The same words for the same others on many pages are one edit of all: nothing takes turns.
    slot = ["site", "kind", "key", "segment"]
    is_edit = kind.is_in(["first", "last"]) & (pl.col("words") > _HALF * pl.sum("words").over(slot))
    edits = counts.with_columns(words=pl.when(is_edit).then(0).otherwise("words"))
    found = _moving(edits.filter(~kind.is_in(["line", "shared", "pages"])), usual)
    pages = counts.filter(kind == "pages").select("site", "segment", of="pages")
    pools = _pools(lines, pages.filter(segment=_EVER), usual)
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
    found = pl.concat([found, pools, _at_places(turns)])
    found = found.filter(pl.col("moving_words") | pl.col("moving_numbers") | (kind == "place"))
    shared = counts.filter(kind == "shared").select("site", "key", "segment", "pages")
    over_all = shared.group_by("site", "key").agg(pages=pl.col("pages").sum())
    over_all = over_all.with_columns(segment=pl.lit(_EVER, pl.UInt32)).select(shared.columns)
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


def _pools(lines: pl.DataFrame, sizes: pl.DataFrame, usual: pl.DataFrame) -> pl.DataFrame:
    """Returns, with HABITS, the lines that several pages have at a place, where these take turns,
    by the counts of lines.
    """
    line = ["site", "place", "key"]
    every = _pages_of(lines).join(sizes, on="site")
    stands = (pl.col("words") == 0) & (pl.col("pages") >= _HALF * pl.col("of"))
    # Two pages may be one that has moved, or its forms: what both have stays as a rule.
    goes = (pl.col("pages") > 2) | (pl.col("words") >= MOVING * pl.col("lines"))
    pooled = every.filter(pl.col("pages") > 1, ~stands, goes).select(line)
    turns = lines.filter(pl.col("segment") != _EVER).join(pooled, on=line, how="semi")
    counts = turns.with_columns(
        key=pl.col("place").hash(),
        kind=pl.lit("pool"),
        lines=pl.col("lines") - pl.col("numbers"),
        pages="words",
    )
    moving = _moving(counts.select(lines.columns), usual).filter("moving_words")
    pooled = pooled.with_columns(at=pl.col("place").hash())
    return _at_places(pooled.join(moving.rename({"key": "at"}), on=["site", "at"]))


def _pages_of(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns what counts of lines come to over all visits, by `site`, `place` and `key`."""
    return lines.group_by("site", "place", "key").agg(pl.sum("pages", "words", "lines"))


def _at_places(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns habits of lines (`key`, at `place`), as those of a pool, with HABITS."""
    key = pl.struct("place", hash="key").hash()
    return lines.with_columns(key=key, kind=pl.lit("pool")).select(HABITS.names())


def standing(lines: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Returns those of the lines (`read`) that are own, and by no site's habits do not stay."""
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
    """Returns which keys are habits, by their counts, with HABITS. `usual` says which part of the
    lines of a `site` are others at the next visit.
    """
    of_key = ("site", "kind", "key")
    counts = counts.group_by(*of_key, "segment").agg(
        pl.col("lines", "words", "numbers", "pages").sum()
    )
    is_turn = pl.col("segment") != _EVER
    turns = is_turn.sum()
    judged = []
    for what in ("words", "numbers"):
        often = pl.col(what).sum() / pl.col("lines").sum()
        busy = (is_turn & (pl.col(what) >= MOVING / 2 * pl.col("lines"))).sum()
        is_habit = (turns > 1) & (often >= MOVING) & (busy >= 2) & (busy >= 0.6 * turns)
        kind = pl.col("kind").first()
        if what == "words":
            is_habit &= ~kind.is_in(["first", "last"]) | (often >= _AT_ONCE[what]["first"])
        share = kind.replace_strict(_AT_ONCE[what], default=None)
        at_once = (turns == 1) & (often >= share)
        at_once = at_once.fill_null(value=False)
        judged += [is_habit.alias(f"moving_{what}"), at_once.alias(f"at_once_{what}")]
    found = counts.group_by(of_key).agg(
        pl.col("lines", "words", "numbers").sum(), pl.col("pages").max(), *judged
    )
    flags = ("moving_words", "moving_numbers", "at_once_words", "at_once_numbers")
    found = found.with_columns(pl.col(flags) & (pl.col("pages") >= _PAGES))
    return _by_chance(found, usual).select(HABITS.names())


def _by_chance(found: pl.DataFrame, usual: pl.DataFrame) -> pl.DataFrame:
    """Adds to habits what has changed at once; words, where chance would not do it."""
    maybe = found.filter("at_once_words").join(usual, on="site", how="left")
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
    kinds = _kinds(rows)
    for kind, mine in kinds.items():
        of_kind = known.filter(pl.col("kind") == kind)
        of_site = mine.filter("gone").join(of_kind, on=["site", "key"])
        is_moving = pl.when("number").then("moving_numbers").otherwise("moving_words")
        if kind in ("first", "last"):
            is_moving = pl.col(kind).is_not_null() & pl.col("moving_words")
        of_site = of_site.filter(is_moving)
        if kind in ("place", "pool"):
            of_site = of_site.join(_steady(mine), on=["page", "place"], how="anti")
        moving.append(of_site.select("at"))
        if kind in ("place", "mask", "money", "after"):
            moving.append(_own_habits(kind, mine, places))
    frame = gone.with_columns(key=_SHARED)
    frame = frame.join(known.filter(kind="shared"), on=["site", "key"], how="semi").select("at")
    habit = pl.concat(moving)["at"].unique()
    # what has taken the place of such a line is another one, though it is seen for the first time
    words = gone.filter(~pl.col("number"))
    others = [habit]
    for slot in (["page", "turn", "place", *by] for by in (["after"], ["nth", "left"])):
        taken = words.filter(pl.col("at").is_in(habit.implode())).select(slot).unique()
        others.append(words.join(taken, on=slot, how="semi")["at"])
    habit = pl.concat(others).unique()
    is_own = pl.col("own") | (pl.col("chance") >= LEAST_CHANCE)
    reason = (
        pl.when(pl.col("at").is_in(frame["at"].implode())).then(pl.lit(FRAME))
        .when(~is_own).then(pl.lit(NOT_OWN))
        .when("ago").then(pl.lit(RELATIVE))
        .when(pl.col("at").is_in(habit.implode())).then(pl.lit(HABIT))
    )  # fmt: skip
    gone = gone.with_columns(muted=reason).drop("at")
    # where it stands now may be what changes all the time, so this comes last
    mine = _without_other(gone, ["hash"], "alone", pl.col("muted").is_null())
    moved = pl.col("muted").is_null() & ~pl.col("alone")
    muted = pl.when(moved).then(pl.lit(ELSEWHERE)).otherwise("muted")
    return mine.with_columns(muted=muted).drop("alone")


def _steady(mine: pl.DataFrame) -> pl.DataFrame:
    """Returns the places of pages at which many lines stand that stay, whatever other pages have
    there: the list of all pages, where others have a few related ones.
    """
    went = (pl.col("gone") & ~pl.col("number")).sum()
    turns = pl.col("turn").n_unique()
    found = mine.filter(side=0).group_by("page", "place").agg(n=pl.len(), went=went, turns=turns)
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
