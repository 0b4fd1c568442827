"""The own text of pages: of all in some segments of a crawl, and of one.

A page whose text has no marks (Nutch's, those of parser.html.text=page, documents that are no HTML)
has all of it for its own, and `kept` is null.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import polars as pl

from minutch.cycle.owntext.frames import UNSEEN, SiteFrames
from minutch.cycle.owntext.own import form, is_alone, kept, names, words_of
from minutch.cycle.owntext.parses import has_marks, lines_of, parses
from minutch.cycle.segment.store import Segment, segments_in
from minutch.hadoop.formats.javaio import encode_text
from minutch.records.textblocks import MOST
from minutch.urls.hostcolumns import host_names

_SENTENCE: Final = r"([.!?…؟।])\s+|([。！？])\s*"
"""The end of one: in scripts without spaces none follows."""


def own_texts(
    crawl: Path, segments: Sequence[Segment], only: pl.Series | None = None
) -> Iterator[pl.DataFrame]:
    """Yields the pages of segments of a crawl that were parsed, or those of some keys, segment by
    segment, by URL in each, some at a time: `segment`, `url`, `text` (the own lines), `kept` (their
    numbers in the text that is stored; null for all of it). Raises FormatError.
    """
    frames = frames_of(crawl, segments)
    for segment in segments:
        for pages in parses(segment, only):
            own = own_of(frames, pages)
            yield own.select(pl.lit(segment.name).alias("segment"), "url", "text", "kept")


def own_text(crawl: Path, segments: Sequence[Segment], url: str) -> pl.DataFrame:
    """Returns the rows of `own_texts` for one page, its newest parse last."""
    key = pl.Series("key", [encode_text(url)], pl.Binary)
    return pl.concat(own_texts(crawl, segments, key))


def frames_of(crawl: Path, segments: Sequence[Segment]) -> SiteFrames:
    """Returns what the hosts of all segments of a crawl have in common; of `segments`, if it has
    none.
    """
    folder = crawl / "segments"
    return SiteFrames(crawl, segments_in(folder) if folder.is_dir() else segments)


def frames_beside(segments: Sequence[Segment]) -> SiteFrames:
    """Returns the same of the crawl that segments are in."""
    return frames_of(segments[0].path.parent.parent if segments else Path(), segments)


def own_of(frames: SiteFrames, pages: pl.DataFrame) -> pl.DataFrame:
    """Returns pages (`url`, `title`, `text`, `marks`, …) with their own text, `kept`, and `frame`,
    the lines that are left out (null for none).
    """
    marked = has_marks(pages)
    rows = marked.arg_true()
    if not len(rows):
        nothing = pl.lit(None, pl.List(pl.UInt32))
        return pages.drop("marks").with_columns(kept=nothing, frame=pl.lit(None, pl.String))
    mine = pages.filter(marked)
    parts = (
        _judged(frames, mine)
        .group_by("row", "is_own", maintain_order=True)
        .agg(pl.col("line").str.join("\n"), kept=pl.col("number"))
    )
    own = parts.filter("is_own").select("row", "kept", own="line")
    rest = parts.filter(~pl.col("is_own")).select("row", frame="line")
    own = own.join(rest, on="row", how="left")  # a page without own lines is its own as a whole
    every = pl.DataFrame({"row": range(len(mine))}, schema={"row": pl.UInt32()})
    own = every.join(own, on="row", how="left", maintain_order="left")
    own = own.with_columns(at=pl.Series(rows).cast(pl.UInt32)).drop("row")
    return (
        pages.with_row_index("at")
        .join(own, on="at", how="left", maintain_order="left")
        .with_columns(text=pl.coalesce("own", "text"))
        .drop("at", "own", "marks")
    )


def all_lines(frames: SiteFrames, pages: pl.DataFrame) -> pl.DataFrame:
    """Returns the lines of pages (`url`, `title`, `text`, `marks`) as `revisions` takes them: `row`
    of the page, `place`, `chance`, `own`, `anywhere` (how many of the host's pages that were
    counted have the line), `line`. Texts without marks are cut into sentences, all own, and of
    none it is known how many have it.
    """
    rows = pages.with_row_index("of_page").filter(pl.col("text").is_not_null())
    marked = has_marks(rows)
    mine, others = rows.filter(marked), rows.filter(~marked)
    names = ("row", "place", "chance", "own", "anywhere", "line")
    cut = others.select(
        row="of_page",
        place=pl.lit(0, pl.UInt32),
        chance=pl.lit(MOST, pl.UInt8),
        own=pl.lit(value=True),
        anywhere=pl.lit(None, pl.UInt32),
        line=pl.col("text").str.replace_all(_SENTENCE, "$1$2\n").str.split("\n"),
    ).explode("line")
    if not len(mine):
        return cut.select(names)
    found = _judged(frames, mine).rename({"is_own": "own"})
    found = found.with_columns(
        pl.col("anywhere").cast(pl.UInt32), row=mine["of_page"].gather(found["row"])
    )
    return pl.concat([found.select(names), cut.select(names)])


def judged(
    frames: SiteFrames | None, url: str, title: str, text: str, marks: str
) -> pl.DataFrame | None:
    """Returns the lines of one page, by its host's frame or by itself: `line`, whether it `is_own`,
    and `at` how many `of` the host's pages that were counted it stands at its place. None if the
    marks are not those of the text.
    """
    page = pl.DataFrame({"url": [url], "title": [title], "text": [text], "marks": [marks.encode()]})
    if not has_marks(page).all():
        return None
    return _judged(frames, page).select("line", "is_own", "at", "of")


def _judged(frames: SiteFrames | None, pages: pl.DataFrame) -> pl.DataFrame:
    """Returns the lines of pages that have marks, with what frames know of them, and `is_own`."""
    hosts = pl.DataFrame({"host": host_names(pages["url"]).fill_null("")}).with_row_index("row")
    lines = lines_of(pages).join(hosts, on="row", maintain_order="left")
    known = lines.with_columns(**UNSEEN) if frames is None else frames.of(lines)
    titles = pages.select(words_of(pl.col("title"))).to_series()
    # Words only where they can tell something: they are most of the work.
    asked = pl.when(is_alone() | (pl.col("formed") > 0)).then(lines["line"])
    known = known.with_columns(words=words_of(asked)).with_columns(form=form())
    known = known.with_columns(
        *names(known, titles), words=lines["line"].str.count_matches(" ", literal=True) + 1
    )
    return known.with_columns(lines["line"], kept(known).alias("is_own"))
