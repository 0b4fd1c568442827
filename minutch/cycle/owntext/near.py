"""Tells which pages have nearly the same own text: the one home of what that is.

Texts are compared by MinHash: of the runs of `RUN` words, in lower case, without marks above
letters and signs, the least of `BANDS` × `HASHES` hashes are looked at, and of their numbers (words
with a digit; one more, the same in all texts, is added) that of one for each band. Texts in which
all hashes of a band are equal are near each other, with a probability of 1 - (1 - n s^8)^14 where s
of the runs and n of the numbers are the same: with n = 1, 0.05 at s = 0.5, 0.56 at 0.7, 0.92 at
0.8. So pages of a series, with one description and other prices and sizes, are not near: by runs
alone, ten numbers in 300 words would make no difference. A date that one of two texts has makes
little, the more other numbers they have in common the less.

    <crawl>/frames/near-<seal>/<segment>-<seal>-NNNN.parquet    the pages of a segment, by URL, with
                                                                the key of each band
    seal    as that of counts (`frames`), and of `NOTION`

A page's own text changes only when what is counted of its host does: the other pages are taken from
the keys that were made before.

Most pairs are asked about after each round of a crawl, so what was told is remembered:

    <crawl>/frames/pairs.<seal>.parquet
    pair       a hash of both URLs, their versions, and the seals of their hosts
    is_near    the answer

What its pages' texts and their hosts' frames are made of has not changed where the pair is known:
answers are those that would be given now.

Source: A. Broder, On the Resemblance and Containment of Documents (1997); the numbers are those of
datatrove 0.10 (MinhashConfig), which counts all numbers as 0.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from minutch.cycle.owntext.frames import (
    NEAR,
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
from minutch.cycle.owntext.parses import parses
from minutch.cycle.owntext.texts import own_of
from minutch.cycle.segment.store import Segment, segments_in
from minutch.kernels import minhash as kernels
from minutch.kernels.arrow import from_series
from minutch.kernels.native import I64, U32, U64
from minutch.urls.hostcolumns import host_names
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.install import NEW, remove, work_folder
from minutch.work.tables.parallel import ordered

RUN, BANDS, HASHES = 5, 14, 8
KEYS: Final = tuple(f"band_{band:02}" for band in range(BANDS))
SPACELESS: Final = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x3400, 0x9FFF)),
    *((0xF900, 0xFAFF), (0xFF66, 0xFF9F)),
)
"""Thai and Lao, Myanmar, Khmer, Kana, ideographs."""
CHARACTERS: Final = 0x2_0000
"""Characters that tables tell of; those above are ideographs."""
NOTION: Final = "numbers count"
"""What keys tell: those that were made by another notion are made anew."""
_SEED: Final = 1
_ROWS: Final = 1 << 16
"""Pages of a file: 10 MB."""


def band_keys(texts: pl.Series) -> pl.DataFrame:
    """Returns the key of each band of each text (UInt64), 0 for a text without words."""
    texts = texts.fill_null("")
    out = np.empty(len(texts) * BANDS, np.uint64)
    longest = int(texts.str.len_bytes().max() or 0)  # type: ignore[arg-type]
    # A text has no more words than bytes; before them is the least value of each function.
    words = np.empty(longest + 1 + len(_functions().factors), np.uint64)
    kernels.band_keys(from_series(texts).column, _plain(), RUN, _functions(), BANDS, words, out)
    return pl.DataFrame(out.reshape(-1, BANDS), schema=list(KEYS))


@cache
def _functions() -> kernels.Functions:
    random = np.random.Generator(np.random.PCG64(_SEED))
    count = BANDS * (HASHES + 1)
    factors, summands = (random.integers(0, 1 << 64, count, np.uint64) for _ in range(2))
    # Odd factors: multiplication modulo 2**64 is then one-to-one.
    return kernels.Functions(factors | np.uint64(1), summands)


@cache
def _plain() -> U32:
    """Makes the table of what characters count as: 0 for those that separate words."""
    table = np.zeros(CHARACTERS, np.uint32)
    for code in range(CHARACTERS):
        category = unicodedata.category(char := chr(code))
        # Marks are left out of their word: e and an accent are an e.
        if category == "Mn":
            table[code] = kernels.MARK
        elif category == "Nd":
            table[code] = ord("0") + unicodedata.digit(char)
        elif category[0] in "LMN" or category == "Cs":
            table[code] = ord(unicodedata.normalize("NFD", char.lower())[0])
    for first, last in SPACELESS:
        spaceless = table[first : last + 1]
        spaceless[(spaceless > 0) & (spaceless != kernels.MARK)] |= np.uint32(kernels.ALONE)
    return table


class NearTexts:
    """The keys of the own texts of a crawl's pages, in their newest version."""

    def __init__(self, crawl: Path, segments: Sequence[Segment]) -> None:
        """Makes the keys that are not there yet. Raises FormatError."""
        self._sites = sites = SiteFrames(crawl, segments)
        place, copy = in_use(self, sites.folder, lambda: _made(sites, segments))
        for path in sites.folder.glob(f"{NEAR}-*"):
            if path != place:
                remove(path)
        self._files = sorted(copy.iterdir())
        pages = [self._read(file, "key").to_frame() for file in self._files]
        self._pages = (
            pl.concat([pl.DataFrame(schema={"key": pl.Binary()}), *pages])
            # Eight bytes instead of a URL.
            .select(page=pl.col("key").hash(), row=pl.int_range(pl.len()))
            # Files are in the order of segments: the newest version is last.
            .unique("page", keep="last")
        )

    def rows(self, urls: pl.Series) -> I64:
        """Returns the numbers by which keys are asked for; -1 for URLs of no page with a text."""
        asked = urls.hash().alias("page").to_frame()
        found = asked.join(self._pages, on="page", how="left", maintain_order="left")
        return found["row"].fill_null(-1).to_numpy()

    def keys(self, band: str, rows: I64) -> U64:
        """Returns the keys of a band; where there is no text or no word, each another one."""
        read = [self._read(file, band).to_numpy() for file in self._files]
        # The row -1 of URLs without a text is the 0 that is put at the end.
        found = np.concatenate([*read, np.zeros(1, np.uint64)])[rows]
        # The golden ratio's odd 64 bits: other numbers for each row, so that nothing is near it.
        others = np.arange(1, len(rows) + 1, dtype=np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)
        return np.where(found == 0, others, found)

    def _read(self, file: Path, name: str) -> pl.Series:
        try:
            return pl.read_parquet(file, columns=[name], glob=False)[name]
        except pl.exceptions.PolarsError as exc:
            raise damaged(self._sites.folder, exc) from exc


def keys_of_pages(sites: SiteFrames, segments: Sequence[Segment], urls: pl.Series) -> pl.DataFrame:
    """Returns the keys of pages of segments (`key`, and each band; 0 for a text without words), of
    their newest parse; some may have none. Nothing is kept on disk.
    """
    tables = [pl.DataFrame(schema=_SCHEMA).drop("seal")]
    for segment in segments:
        for pages in parses(segment, urls):
            own = own_of(sites, pages)
            tables.append(pl.DataFrame([own["key"], *band_keys(own["text"])]))
    return pl.concat(tables).unique("key", keep="last")


def near_texts(crawl: Path) -> NearTexts | None:
    """Returns the keys of a crawl's pages; None if its folder has no segments with texts."""
    parsed = parsed_segments(crawl)
    return NearTexts(crawl, parsed) if parsed else None


def _made(sites: SiteFrames, segments: Sequence[Segment]) -> Path:
    """Returns the folder with the keys of all pages."""
    folder, hosts = sites.folder, sites.seals().sort("host")
    seals = {one.name: f"{one.name}-{seal_of(files_of(one), NOTION)}" for one in segments}
    place = folder / f"{NEAR}-{seal_of([], str(hosts.hash_rows().sum()), *seals.values())}"
    if place.is_dir():
        return place
    with work_folder(folder, NEW) as fresh:
        for segment in segments:
            name = seals[segment.name]
            old = linked(fresh, NEAR, folder, name)
            for path in old:
                _renew(path, segment, sites, hosts)
            if not old:
                write_files(fresh, name, _keys(segment, sites, hosts), _SCHEMA, _ROWS)
        return placed(fresh, place)


def _renew(path: Path, segment: Segment, sites: SiteFrames, hosts: pl.DataFrame) -> None:
    """Makes the keys anew of those pages of a file whose hosts have changed."""
    table = pl.read_parquet(path, glob=False)
    is_old = table["seal"] != seals_of(table["key"], hosts)
    if not is_old.any():
        return
    made = _keys(segment, sites, hosts, table["key"].filter(is_old).unique())
    # A hard link to an older folder's file, which must stay as it is.
    path.unlink()
    pl.concat([table.filter(~is_old), *made]).sort("key").write_parquet(path)


_SCHEMA: Final = pl.Schema(
    {"key": pl.Binary(), "seal": pl.UInt64(), **dict.fromkeys(KEYS, pl.UInt64())}
)


def _keys(
    segment: Segment, sites: SiteFrames, hosts: pl.DataFrame, only: pl.Series | None = None
) -> Iterator[pl.DataFrame]:
    """Yields the pages of a segment, or those of some keys, with the keys of their own texts."""

    def make(pages: pl.DataFrame) -> pl.DataFrame:
        own = own_of(sites, pages)
        seals = seals_of(pages["key"], hosts)
        return pl.DataFrame([own["key"], seals, *band_keys(own["text"])])

    return ordered(make, parses(segment, only))


def seals_of(urls: pl.Series, hosts: pl.DataFrame) -> pl.Series:
    """Returns the seals of the hosts of URLs (`SiteFrames.seals`), 0 where there is none."""
    names = host_names(decode_keys(urls)).fill_null("").alias("host").to_frame()
    return names.join(hosts, on="host", how="left", maintain_order="left")["seal"].fill_null(0)


_PAIRS_SCHEMA: Final = pl.Schema({"pair": pl.UInt64(), "is_near": pl.Boolean()})
_SIDES: Final = ("url", "version"), ("other", "other_version")


class NearPairs:
    """The pairs of a crawl's pages that have been asked about."""

    def __init__(self, crawl: Path) -> None:
        folder = crawl / "segments"
        self._segments = segments_in(folder) if folder.is_dir() else []
        self._sites = SiteFrames(crawl, self._segments)
        self._told = [pl.DataFrame(schema=_PAIRS_SCHEMA)]

    def ask(self, pairs: pl.DataFrame) -> pl.Series:
        """Returns whether the texts of pages are near each other. Columns: `url`, `other` (Binary),
        `version`, `other_version` (another number for each parse of a page). Raises FormatError.
        """
        numbers = self._numbers(pairs)
        known = numbers.to_frame().join(self._known, on="pair", how="left", maintain_order="left")
        found = known["is_near"]
        new = found.is_null().arg_true()
        if len(new):
            found = found.scatter(new, self._compared(pairs.select(pl.all().gather(new))))
        self._told.append(pl.DataFrame([numbers, found]))
        return found

    def close(self) -> None:
        """Gives up what is in use."""
        self._sites.close()

    def keep(self) -> None:
        """Remembers what was told, and forgets all else."""
        told = pl.concat(self._told).unique("pair").sort("pair")
        if told.equals(self._known):
            return
        folder = self._sites.folder
        with work_folder(folder, NEW) as fresh:
            told.write_parquet(fresh / self._name)
            # One rename: who reads beside this has the old answers, or all of the new.
            (fresh / self._name).replace(folder / self._name)
        for path in folder.glob("pairs.*.parquet"):
            if path.name != self._name:
                with suppress(OSError):
                    path.unlink()

    @property
    def _name(self) -> str:
        return f"pairs.{seal_of([], NOTION)}.parquet"

    @cached_property
    def _known(self) -> pl.DataFrame:
        file = self._sites.folder / self._name
        try:
            return pl.read_parquet(file, glob=False)
        except FileNotFoundError:
            return self._told[0]
        except pl.exceptions.PolarsError as exc:
            raise damaged(self._sites.folder, exc) from exc

    @cached_property
    def _seals(self) -> pl.DataFrame:
        return self._sites.seals()

    def _numbers(self, pairs: pl.DataFrame) -> pl.Series:
        columns = []
        for url, version in _SIDES:
            seals = seals_of(pairs[url], self._seals).alias(f"{url}_seal")
            columns += [pairs[url], pairs[version], seals]
        return pl.DataFrame(columns).hash_rows().alias("pair")

    def _compared(self, pairs: pl.DataFrame) -> pl.Series:
        both = pl.concat([pairs["url"], pairs["other"].alias("url")])
        keys = keys_of_pages(self._sites, self._segments, both.unique().sort())
        table = pairs.select("url", "other")
        for url, end in (("url", ""), ("other", "_of_other")):
            of_side = keys.rename({"key": url} | {band: f"{band}{end}" for band in KEYS})
            table = table.join(of_side, on=url, how="left", maintain_order="left")
        # 0 is a text without words: two of them are not near each other.
        same = [(pl.col(b) == pl.col(f"{b}_of_other")) & (pl.col(b) != 0) for b in KEYS]
        return table.select(pl.any_horizontal(same).fill_null(value=False)).to_series()
