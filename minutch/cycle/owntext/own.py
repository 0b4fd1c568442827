"""Decides which lines of a page are its own, and which are its site's frame. Pure.

Of each line it is known how probable it is main text, by its page alone (`records.textblocks`), and
where it stands; of its host, on how many pages that line is at that place, and what the place holds
(`frames`). Evidence is added up as log-odds:

    place       the mean of what is at that place on the host: by half; by more for a long line that
                no other page has, at a place of main text, which was dropped by mistake
    around      a line that no other page has, among lines that are own, gains up to RESCUE
    frame       a line that many pages have at that place, where all lines are of that kind, loses
                up to FRAME. What repeats at a place that mostly holds main text, several times in a
                page, or in the midst of what is own, loses little: headings of a reference,
                disclaimers, series of products
    whole       a line that most pages have at a place that holds nothing else loses up to WHOLE,
                however likely it is main text, if it has the length of a sentence or stands among
                such lines: the menu of all sections, terms of delivery
    name        the line that is the page's title gains NAME (`wording` says which one)
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

The numbers were chosen on sites of Sphinx (alabaster), MkDocs, Material, Node.js, DocBook, Javadoc,
MediaWiki and nine by hand; `python -m tests.benchmarks.owntext` measures them on others. Tried and
dropped: numbers in lines taken for equal ("Added in: v1" is on all pages of a reference then);
lines counted wherever they stand (a title is in the menu of all other pages); a second look at what
is around, for lines that several pages have (javadoc's recall 0.978 to 0.981, but related links
among what is own: articles' precision 0.979 to 0.964).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl

from minutch.records.textblocks import MOST

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
    anywhere, and how often it is there (`at`, `anywhere`, `times`); and what `wording` says of it.
    """
    page, words, of, place_pages, mean, framed, at, anywhere, times = (
        lines[name].to_numpy().astype(float) for name in _NUMBERS
    )
    form, formed, named, of_title, is_name = (
        lines[name].to_numpy().astype(float) for name in _WORDING
    )
    own, usual = _odds(lines["chance"].to_numpy() / MOST), _odds(mean)
    unique = 1 / anywhere
    is_dropped = (words >= _LONG) & (mean >= 0.5) & (usual > own)
    weight = np.where(is_dropped, 0.5 + 0.3 * unique, 0.5) * _known(place_pages)
    echoed = _known(of) * _between((_echoed(lines) - 0.9) / 0.1) * _between((0.7 - mean) / 0.1)
    odds = own + weight * (usual - own) - ECHO * echoed + NAME * _known(of) * is_name * unique**0.5
    chances = _chances(odds)
    around = _around(page, chances, np.clip(words, 1, 20))
    often = place_pages / of
    forms = form * _between((often - 0.75) / 0.2) * _between((formed - 0.3) / 0.2) * (1 - is_name)
    forms *= np.maximum(1 - of_title, _between((0.6 - mean) / 0.1))
    framed = np.minimum(framed + formed, 1)
    names = _between((often - 0.3) / 0.2) * _between((named - 0.02) / 0.05) * (1 - is_name)
    names *= _between((0.7 - mean) / 0.1)
    rescue = unique * _between((around - chances) / 0.5) * (1 - echoed) * (1 - forms) * (1 - names)
    share, repeated = at / of, np.minimum(2 * at / times, 1)
    frame = _between((share - SHARE) / 0.4) * _between((framed - 0.5) / 0.4) * repeated
    frame *= _between((0.8 - mean) / 0.3) * (1 - 0.7 * _between((around - 0.5) / 0.4))
    same = _between((share - 0.6) / 0.3) * _between((framed - 0.85) / 0.1)
    among = _between((_around(page, same, np.ones(len(page))) - 0.8) / 0.2)
    whole = same * np.maximum(_between((words - 2) / 3), among)
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
        sums[:, np.minimum(index + _REACH + 1, end)] - sums[:, np.maximum(index - _REACH, first)]
    )
    total, weight = inside - [chances * weights, weights]
    found: Row = total / np.maximum(weight, 1e-9)
    return found


def _best(page: Row, chances: Row, words: Row) -> Row:
    """The lines with the highest chances, as many as make the expected F1 highest."""
    order = np.lexsort((-chances, page))
    first, end = _bounds(page)
    sums = np.zeros((2, len(page) + 1))
    np.cumsum([words[order], (chances * words)[order]], axis=1, out=sums[:, 1:])
    size, hoped = sums[:, 1:] - sums[:, first]
    value = 2 * hoped / (size + sums[1, end] - sums[1, first])
    mask = np.zeros(len(page), bool)
    if len(page):
        starts = np.unique(first)
        most = np.repeat(np.maximum.reduceat(value, starts), np.diff(np.append(starts, len(page))))
        reached = np.where(value == most, np.arange(len(page)), len(page))
        last = np.minimum.reduceat(reached, starts)
        mask[order] = np.arange(len(page)) <= np.repeat(last, np.diff(np.append(starts, len(page))))
    return mask
