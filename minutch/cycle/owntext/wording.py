"""Says of short lines, by their words, whether they are a form that is filled in anew on each page
("Posts: 480"), the page's name, or names of other pages. Pure.

    word      letters and digits; all numbers are one word, NUMBER
    common    of a place: words that lines have there on COMMON of its pages; of titles, whose place
              is TITLE, too: what the site is called
    form      how much of a line of some words, one of which is a number, is common at its place
    formed    which part of a place's lines are forms
    named     which part of a place's lines have the first words of another page's title
    is_name   the line of a page that has most of its title

What is common in titles counts neither in them nor in lines that are compared with them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from minutch.records.textblocks import PLACES

TITLE: Final = PLACES
NUMBER: Final = 0
COMMON: Final = 0.3
OFTEN: Final = 0.3
"""Of a host's pages: places that fewer have are not looked at."""
LIKELY: Final = 0.7
"""The mean chance at a place of main text, which is not looked at for names."""
WORDS: Final = pl.List(pl.UInt32())
_SHORT: Final = 256
"""Bytes of a line."""
_FIRST: Final = 4
"""Words of a title, two at least."""
_FORM: Final = 0.3
_HIDDEN: Final = 0.1
"""Is added to chances, as a name may look like frame."""
_NUMBER: Final = pl.lit(NUMBER, pl.UInt32)
_PLACE: Final = ["host", "place"]


def words_of(text: pl.Expr) -> pl.Expr:
    """The words of texts, as hashes; none of long ones."""
    short = pl.when(text.str.len_bytes() <= _SHORT).then(text)
    found = short.str.to_lowercase().str.extract_all(r"[\p{L}\p{N}]+").fill_null([])
    is_number = pl.element().str.contains(r"^\d+$")
    word = (pl.element().hash() // (1 << 32)).cast(pl.UInt32)
    number = pl.when(is_number).then(_NUMBER)
    return found.list.eval(number.otherwise(word))


def counted(sample: pl.DataFrame, titles: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Returns places (`host`, `place`, `of`, `place_pages`, `lines`, `mean`, `framed`), and the one
    of titles, with `common`, `formed` and `named`, by what was sampled: `host`, `page`, `place`,
    `line`, `words`, `times`.
    """
    often = places.filter(pl.col("place_pages") >= OFTEN * pl.col("of"))
    lines = sample.filter(pl.col("words").list.len() > 1).join(often, on=_PLACE)
    said = titles.with_columns(place_pages=pl.col("page").n_unique().over("host"))
    site = _common(said)
    numbers = lines.filter(pl.col("words").list.contains(_NUMBER))
    forms = numbers.join(_common(numbers), on=_PLACE).with_columns(form=form() > _FORM)
    forms = forms.group_by(_PLACE).agg(
        pl.col("common").first(), formed=pl.col("times").filter("form").sum()
    )
    names = _named(lines.filter(pl.col("mean") < LIKELY), said, site)
    part = pl.col("formed", "named").fill_null(0) / pl.col("lines")
    found = places.join(forms.filter(pl.col("formed") > 0), on=_PLACE, how="left")
    found = found.join(names, on=_PLACE, how="left").with_columns(part).drop("lines")
    return pl.concat([found, site], how="diagonal")


def _common(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns of places the `common` words of these lines."""
    words = lines.select(*_PLACE, "place_pages", "page", word="words").explode("word")
    found = words.drop_nulls("word").unique().group_by(*_PLACE, "place_pages", "word").len()
    found = found.filter(pl.col("len") >= (COMMON * pl.col("place_pages")).clip(2))
    return found.group_by(_PLACE).agg(common=pl.col("word").sort())


def _named(lines: pl.DataFrame, titles: pl.DataFrame, site: pl.DataFrame) -> pl.DataFrame:
    """Returns of places in how many of these lines the first words of another page's title are."""
    each = lines.group_by(*_PLACE, "line").agg(
        pl.col("page").min(), pl.col("words").first(), pl.col("times").sum()
    )
    both = pl.concat([each, titles.select("host", "place", "page", "words")], how="diagonal")
    both = both.with_row_index("number")
    words = (
        both.select("number", "host", word="words")
        .explode("word")
        .join(
            site.select("host", word="common").explode("word"),
            on=["host", "word"],
            how="anti",
            maintain_order="left",
        )
    )
    line, lines_with = pl.col("number").cast(pl.Int64), []
    for size in range(2, _FIRST + 1):
        is_end = line.shift(-size, fill_value=-1) != line
        is_whole = (line.shift(1, fill_value=-1) != line) & (is_end | (size == _FIRST))
        run = pl.struct(pl.col("word").shift(-step).alias(str(step)) for step in range(size))
        found = words.select("number", "host", run=run.hash(), is_whole=is_whole).filter(
            line.shift(1 - size) == line
        )
        found = found.join(both.select("number", "place", "page"), on="number")
        is_title = pl.col("place") == TITLE
        known = found.filter(is_title, "is_whole")
        found = found.filter(~is_title).join(known, on=["host", "run"], how="semi")
        found = found.join(known, on=["host", "run", "page"], how="anti")
        lines_with.append(found["number"])
    named = pl.concat(lines_with).unique().sort()
    return both[named].group_by(_PLACE).agg(named=pl.col("times").sum())


def form() -> pl.Expr:
    """How much each line (`words`) is a form, by the `common` words of its place, and by what is
    `framed` there: among lines that repeat, a word and a number are enough.
    """
    words = pl.col("words")
    size, other = words.list.len().cast(pl.Float64), words.list.set_difference("common").list.len()
    share = ((1 - other / size - 0.65) / 0.2).clip(0, 1)
    is_labelled = (size > 1) & (words.list.first() != NUMBER)
    among = is_labelled * ((pl.col("framed") - 0.3) / 0.2).clip(0, 1)
    several = pl.max_horizontal(((size - 3) / 2).clip(0, 1), among)
    has_number = words.list.contains(_NUMBER)
    return pl.when(has_number).then(share * several).otherwise(0.0)


def is_alone() -> pl.Expr:
    """Whether a line may be its page's name: few other pages have it."""
    return pl.col("anywhere") <= 1 + 0.1 * pl.col("of")


def names(lines: pl.DataFrame, titles: pl.Series) -> pl.DataFrame:
    """Returns of each line whether it has words of its page's name, `of_title`, and whether it is
    the name, `is_name`, by `row`, `words`, `site` (those common to titles), `mean`, `place_pages`,
    `anywhere` and `of`; `titles` has the words of the titles of pages.
    """
    asked = lines.select(
        "row", "words", "site", "mean", "place_pages", at=pl.int_range(pl.len()), alone=is_alone()
    ).filter(pl.col("words").list.len() > 0)
    asked = asked.with_columns(title=titles.gather(asked["row"]))
    both = pl.col("words").list.set_intersection("title")
    found = asked.select(
        "at", "row", "alone", "mean", "place_pages", "site", "words", both=both
    ).filter(pl.col("both").list.len() > 0)
    mine = pl.col("both").list.set_difference("site").list.len()
    share = mine / pl.col("words").list.set_difference("site").list.len()
    whole = pl.col("both").list.len()
    worth = share * whole * (pl.col("mean") + _HIDDEN) * pl.col("place_pages")
    found = found.select(
        "at", "row", of_title=mine > 0, worth=pl.when("alone", share >= 0.5).then(worth)
    )
    by_page = found.drop_nulls("worth").group_by("row")
    best = by_page.agg(pl.col("at").get(pl.col("worth").arg_max()))
    masks = np.zeros((2, len(lines)), bool)
    masks[0, found.filter("of_title")["at"].to_numpy()] = True
    masks[1, best["at"].to_numpy()] = True
    return pl.DataFrame({"of_title": masks[0], "is_name": masks[1]})
