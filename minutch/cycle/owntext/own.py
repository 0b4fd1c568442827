"""Decides which lines of a page are its own, and which are its site's frame. Pure.

Of each line it is known how probable it is main text, by its page alone (`records.textblocks`), and
where it stands; of its host, on how many pages that line is at that place, and what the place holds
(`frames`). Evidence is added up as log-odds:

    place       the mean of what is at that place on the host: by half; by more for a long line that
                no other page has, at a place of main text, which was dropped by mistake
    around      a line that no other page has, among lines that are own, gains up to RESCUE. At a
                place that nearly all pages have and that is seldom main text, a slot of their
                template, it does so by the next line: a heading does, tags do not
    frame       a line that many pages have at that place, where all lines are of that kind, loses
                up to FRAME. What repeats at a place that mostly holds main text, several times in a
                page, or in the midst of what is own, loses little: headings of a reference,
                disclaimers, series of products
    whole       a line that most pages have at a place that holds nothing else loses up to WHOLE,
                however likely it is main text, if it has the length of a sentence or stands among
                such lines: the menu of all sections, terms of delivery
    name        the line that is the page's title gains NAME (`is_name`)
    form        a line that all pages have there but for its numbers and a word or two loses up to
                FORM, at a place of such lines; they count as repeated, too: heads of posts
    names       lines at a place of many pages lose up to NAMES if titles of other pages stand
                there, and no main text does: related articles, other products
    echo        lines at a place whose lines all stand at a likelier place of the page, too,
                lose up to ECHO, if the place is not one of main text: a table of contents

    rest        all others gain RECALL: frame that is known is out, and short labels amid own text,
                which a page alone takes for frame, are lost more often than frame is kept

Each grows with the number of pages that were counted: a first page is judged by itself. Kept are
the lines for which the expected F1 over words is highest.

Of short lines the words say, over a whole site, whether they are a form that is filled in anew on
each page ("Posts: 480"), the page's name, or names of other pages:

    word      letters and digits; all numbers are one word, NUMBER
    common    of a place: words that lines have there on COMMON of its pages; of titles, whose place
              is TITLE, too: what the site is called
    form      how much of a line of some words, one of which is a number, is common at its place
    formed    which part of a place's lines are forms
    named     which part of a place's lines have the first words of another page's title
    is_name   the line of a page that has most of its title

What is common in titles counts neither in them nor in lines that are compared with them.

The numbers were chosen on sites of Sphinx (alabaster), MkDocs, Material, Node.js, DocBook, Javadoc,
MediaWiki and nine by hand; `python -m tests.benchmarks.owntext` measures them on others. Tried and
dropped: numbers in lines taken for equal ("Added in: v1" is on all pages of a reference then);
lines counted wherever they stand (a title is in the menu of all other pages); a second look at what
is around, for lines that several pages have (javadoc's recall 0.978 to 0.981, but related links
among what is own: articles' precision 0.979 to 0.964); nothing gained from what is around wherever
main text is seldom, in a slot or not (sqlalchemy's recall 0.989 to 0.916: signatures); forms of a
label and a number where main text is seldom (market's precision 0.954 to 0.982, statutes' recall
0.993 to 0.975), or of a number and its unit (0.971, and a shop's recall 1.000 to 0.988).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl

from minutch.records.textblocks import MOST, PLACES

SHARE: Final = 0.3
"""Of a host's pages: a line at a place of so many counts as repeated there."""
RESCUE: Final = 2.0
FRAME: Final = 4.0
WHOLE: Final = 6.0
ECHO: Final = 3.0
NAME: Final = 3.0
FORM: Final = 5.0
NAMES: Final = 4.0
RECALL: Final = 0.3
_REACH: Final = 3
"""Neighbours on either side."""
_LONG: Final = 20
"""Words."""
_SEVERAL: Final = 3
"""Lines of a table of contents."""
_NUMBERS: Final = ["row", "words", "of", "place_pages", "mean", "framed", "at", "anywhere", "times"]
_WORDING: Final = ["form", "formed", "named", "of_title", "is_name"]
_SURE: Final = 0.996

Row = np.ndarray[Any, np.dtype[Any]]


def kept(lines: pl.DataFrame) -> pl.Series:
    """Returns the mask of own lines. `lines` are those of whole pages, in order: `row` of the page,
    `place`, `line` (or a hash of it), `words`, `chance`; of the host `of`, the number of pages that
    were counted; of the place `place_pages` that have it, the mean chance and which part of what
    stands there is repeated (`mean`, `framed`); of the line how many pages have it there and
    anywhere, and how often it is there (`at`, `anywhere`, `times`); and what its words say of it.
    """
    page, words, of, place_pages, mean, framed, at, anywhere, times = (
        lines[name].to_numpy().astype(float) for name in _NUMBERS
    )
    form, formed, named, of_title, is_name = (
        lines[name].to_numpy().astype(float) for name in _WORDING
    )
    # By the page alone, and by the place on the host: both as log-odds.
    own, usual = _odds(lines["chance"].to_numpy() / MOST), _odds(mean)
    unique = 1 / anywhere
    is_dropped = (words >= _LONG) & (mean >= 0.5) & (usual > own)
    # Place, echo, name.
    weight = np.where(is_dropped, 0.5 + 0.3 * unique, 0.5) * _known(place_pages)
    echoed = _known(of) * _between((_echoed(lines) - 0.9) / 0.1) * _between((0.7 - mean) / 0.1)
    odds = own + weight * (usual - own) - ECHO * echoed + NAME * _known(of) * is_name * unique**0.5
    chances = _chances(odds)
    around = _around(page, chances, np.clip(words, 1, 20))
    after = np.append(chances[1:], 0) * (page == np.append(page[1:], -1))
    often = place_pages / of
    slot = _between((often - 0.75) / 0.2) * _between((0.4 - mean) / 0.2)
    near = around - slot * _between(around - after)
    # Form.
    forms = form * _between((often - 0.75) / 0.2) * _between((formed - 0.3) / 0.2) * (1 - is_name)
    forms *= np.maximum(1 - of_title, _between((0.6 - mean) / 0.1))
    framed = np.minimum(framed + formed, 1)
    # Names.
    names = _between((often - 0.3) / 0.2) * _between((named - 0.02) / 0.05) * (1 - is_name)
    names *= _between((0.7 - mean) / 0.1)
    # Around: only what no other evidence speaks against.
    rescue = unique * _between((near - chances) / 0.5) * (1 - echoed) * (1 - forms) * (1 - names)
    # Frame.
    share, repeated = at / of, np.minimum(2 * at / times, 1)
    frame = _between((share - SHARE) / 0.4) * _between((framed - 0.5) / 0.4) * repeated
    frame *= _between((0.8 - mean) / 0.3) * (1 - 0.7 * _between((around - 0.5) / 0.4))
    # Whole.
    same = _between((share - 0.6) / 0.3) * _between((framed - 0.85) / 0.1)
    among = _between((_around(page, same, np.ones(len(page))) - 0.8) / 0.2)
    whole = same * np.maximum(_between((words - 2) / 3), among)
    # The strongest reason, not their sum: they speak of the same thing.
    loss = np.maximum.reduce([FRAME * frame, WHOLE * whole, FORM * forms, NAMES * names])
    chances = _chances(odds + _known(of) * (RESCUE * rescue + RECALL - loss))
    return pl.Series("kept", _best(page, chances, words))


def _echoed(lines: pl.DataFrame) -> Row:
    """Which part of the lines at the place of each stands at a likelier place of its page, too."""
    likelier = pl.col("mean").max().over("row", "line") > pl.col("mean")
    found = lines.select("row", "place", "line", "mean").with_columns(likelier=likelier)
    is_several = pl.len().over("row", "place") >= _SEVERAL
    share = pl.col("likelier").mean().over("row", "place") * is_several
    echoed: Row = found.select(share).to_series().to_numpy()
    return echoed


def _known(pages: Row) -> Row:
    """How much so many pages say; nothing if there is one."""
    found: Row = (pages - 1) / (pages + 4)
    return found


def _between(values: Row) -> Row:
    return np.clip(values, 0, 1)


def _odds(chances: Row) -> Row:
    sure = np.clip(chances, 1 - _SURE, _SURE)
    found: Row = np.log(sure / (1 - sure))
    return found


def _chances(odds: Row) -> Row:
    found: Row = 1 / (1 + np.exp(-odds))
    return found


def _bounds(page: Row) -> tuple[Row, Row]:
    """For each line the first line of its page, and the first of the next page."""
    starts = np.flatnonzero(np.diff(page, prepend=-1))
    sizes = np.diff(np.append(starts, len(page)))
    return np.repeat(starts, sizes), np.repeat(starts + sizes, sizes)


def _around(page: Row, chances: Row, weights: Row) -> Row:
    """The mean of the neighbours of each line; 0 without any."""
    first, end = _bounds(page)
    index = np.arange(len(page))
    sums = np.zeros((2, len(page) + 1))
    np.cumsum([chances * weights, weights], axis=1, out=sums[:, 1:])
    inside = (
        # Prefix sums: a window's sum is a difference, cut at the ends of the page.
        sums[:, np.minimum(index + _REACH + 1, end)] - sums[:, np.maximum(index - _REACH, first)]
    )
    total, weight = inside - [chances * weights, weights]
    found: Row = total / np.maximum(weight, 1e-9)
    return found


def _best(page: Row, chances: Row, words: Row) -> Row:
    """The lines with the highest chances, as many as make the expected F1 highest."""
    # By page, the likeliest first: the best set is a beginning of that order.
    order = np.lexsort((-chances, page))
    first, end = _bounds(page)
    sums = np.zeros((2, len(page) + 1))
    np.cumsum([words[order], (chances * words)[order]], axis=1, out=sums[:, 1:])
    size, hoped = sums[:, 1:] - sums[:, first]
    # F1 = 2 hits / (kept + relevant), each as expected.
    value = 2 * hoped / (size + sums[1, end] - sums[1, first])
    mask = np.zeros(len(page), bool)
    if len(page):
        starts = np.unique(first)
        most = np.repeat(np.maximum.reduceat(value, starts), np.diff(np.append(starts, len(page))))
        reached = np.where(value == most, np.arange(len(page)), len(page))
        last = np.minimum.reduceat(reached, starts)
        mask[order] = np.arange(len(page)) <= np.repeat(last, np.diff(np.append(starts, len(page))))
    return mask


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
        # Runs of `size` words, by shifted columns; those that cross a line's end go below.
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
        # A page's own title says nothing of other pages' names.
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
    # One line of a page is its name.
    best = by_page.agg(pl.col("at").get(pl.col("worth").arg_max()))
    masks = np.zeros((2, len(lines)), bool)
    masks[0, found.filter("of_title")["at"].to_numpy()] = True
    masks[1, best["at"].to_numpy()] = True
    return pl.DataFrame({"of_title": masks[0], "is_name": masks[1]})
