"""Keeps which address each page of a crawl's segments gives itself: a cache beside the segments,
made of their parses (parse-canonical) alone. What is deleted of it is made again.

    <crawl>/frames/claims-<seal>/<segment>-<seal>-NNNN.parquet   the pages of a segment, by URL
    page       a hash of the URL
    domain     a hash of the registered domain of its host
    version    a hash of the segment's name (added when they are read)
    url, says  the URL, and the canonical link of a page that names another one (else null)
    own        the languages that the page says it is in, by hreflang (null for none)
    versions   those in which it says that the canonical link's page is
    seal       as that of counts (`frames`)

A canonical link that names the page itself is none, however it is spelled. In its newest version
a page may have dropped the link that it had before: so all pages are in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final
from zlib import crc32

import polars as pl

from minutch.cycle.owntext.frames import (
    CLAIMS,
    SiteFrames,
    damaged,
    files_of,
    in_use,
    linked,
    parsed_segments,
    placed,
    seal_of,
    write_files,
)
from minutch.cycle.owntext.parses import RANGE_SIZE, parts_of
from minutch.cycle.segment.store import Segment
from minutch.hadoop.formats.batch import keys_of
from minutch.records.metadata import CANONICAL_KEY, HREFLANG_KEY, VERSIONS_KEY
from minutch.records.parsedata_columns import decode
from minutch.urls.hostcolumns import domains_of, host_names
from minutch.urls.urlkeys import url_keys
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.install import NEW, remove, work_folder
from minutch.work.tables.keyranges import KeyRange, cut
from minutch.work.tables.parallel import ordered

_ROWS: Final = 1 << 18
"""Pages of a file."""
_BYTES: Final = 512
"""That a page takes while it is looked at."""
_NOTION: Final = "canonical, hreflang"
_SCHEMA: Final = pl.Schema(
    {"page": pl.UInt64(), "domain": pl.UInt64(), "url": pl.Binary(), "says": pl.String()}
    | {"own": pl.String(), "versions": pl.String()}
)
_NO_AGE: Final = [pl.lit(0, pl.UInt32).alias(name) for name in ("age", "version")]
_OF_PAGES: Final = {name: dtype for name, dtype in _SCHEMA.items() if name != "domain"}
NO_PAGES: Final = pl.DataFrame(schema=_OF_PAGES | {"version": pl.UInt32()})


class PageClaims:
    """The canonical links of a crawl's pages, in their newest version."""

    def __init__(self, crawl: Path, segments: Sequence[Segment]) -> None:
        """Reads the segments that have not been read yet. Raises FormatError."""
        self._frames = SiteFrames(crawl, segments)
        folder = self._frames.folder
        place, self._copy = in_use(self, folder, lambda: _made(folder, segments))
        # Those of another state of the segments.
        for path in folder.glob(f"{CLAIMS}-*"):
            if path != place:
                remove(path)
        self._files = sorted(self._copy.iterdir())

    def close(self) -> None:
        """Gives up the files, which otherwise go with the object."""
        remove(self._copy)

    def parts(self, memory: int) -> int:
        """Returns into how many parts they are cut, so that each fits into so much memory."""
        pages = self._read(lambda table: table.select(pl.len())).item()
        return 1 + int(pages) * _BYTES // memory  # one at least

    def part(self, number: int, parts: int) -> pl.DataFrame:
        """Returns one of so many parts: `page`, `url`, `says`, `own`, `versions`, `version`. Pages
        of a domain are in the same one.
        """
        return self._newest(pl.col("domain") % parts == number)

    def beside(self, url: str) -> pl.DataFrame:
        """Returns the same of all pages of the domain of a URL."""
        return self._newest(pl.col("domain") == domains(pl.Series([url]))[0])

    def _newest(self, where: pl.Expr) -> pl.DataFrame:
        return (
            self._read(lambda table: table.filter(where).sort("age").unique("page", keep="last"))
            .sort("page")
            .select(NO_PAGES.columns)
        )

    def _read(self, ask: Callable[[pl.LazyFrame], pl.LazyFrame]) -> pl.DataFrame:
        tables = [pl.LazyFrame(schema=_SCHEMA).with_columns(_NO_AGE)]
        for file in self._files:
            table = pl.scan_parquet(file, glob=False)
            # Of the file's name, which has the seal of its segment: it changes when that is parsed
            # anew.
            version = pl.lit(crc32(file.name.encode()), pl.UInt32)
            tables.append(table.with_columns(age=pl.lit(len(tables), pl.UInt32), version=version))
        try:
            return ask(pl.concat(tables)).collect()
        except pl.exceptions.PolarsError as exc:
            raise damaged(self._frames.folder, exc) from exc


def claims_of(crawl: Path) -> PageClaims | None:
    """Returns the canonical links of a crawl's pages; None if its folder has no parsed segments."""
    parsed = parsed_segments(crawl)
    return PageClaims(crawl, parsed) if parsed else None


def _made(folder: Path, segments: Sequence[Segment]) -> Path:
    """Returns the folder with the pages of all segments."""
    seals = {one.name: f"{one.name}-{seal_of(files_of(one), _NOTION)}" for one in segments}
    place = folder / f"{CLAIMS}-{seal_of([], *seals.values())}"
    if place.is_dir():
        return place
    with work_folder(folder, NEW) as fresh:
        for segment in segments:
            name = seals[segment.name]
            if not linked(fresh, CLAIMS, folder, name):
                write_files(fresh, name, _pages(segment), _SCHEMA, _ROWS)
        return placed(fresh, place)


def _pages(segment: Segment) -> Iterator[pl.DataFrame]:
    """Yields the pages of a segment, with _SCHEMA."""
    data, _ = parts_of(segment)

    def pages(keys: KeyRange) -> pl.DataFrame:
        found = [pl.DataFrame(schema=_SCHEMA)]
        for part in data:
            batch = part.batch(keys)
            table = decode(batch)
            names = {"says": CANONICAL_KEY, "own": HREFLANG_KEY, "versions": VERSIONS_KEY}
            said = [
                decode_keys(table.first_values(of, "parse")).alias(name)
                for name, of in names.items()
            ]
            rows = pl.DataFrame([keys_of(batch).alias("url"), *said])
            found.append(_rows(rows.filter(table.is_success)))
        return pl.concat(found)

    return ordered(pages, cut(data, RANGE_SIZE))


def _rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns pages (`url`, `says`, `own`, `versions`) as the files have them."""
    urls = decode_keys(rows["url"])
    # By keys of URLs: a default port makes no other address.
    elsewhere = rows["says"].is_not_null() & (url_keys(rows["says"]) != url_keys(urls))
    # URLs only where they are needed: most pages name themselves, or none.
    only = pl.when(elsewhere.fill_null(value=False))
    return rows.select(
        pl.col("url").hash().alias("page"),
        domains(urls).alias("domain"),
        only.then("url").alias("url"),
        only.then("says").alias("says"),
        "own",
        "versions",
    )


def domains(urls: pl.Series) -> pl.Series:
    """Returns a hash of the registered domain of each URL (String)."""
    return domains_of(host_names(urls)).fill_null("").hash()
