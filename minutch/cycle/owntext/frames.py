"""Counts what stands on how many pages of a host, and where: a cache beside the segments, made of
them alone. What is deleted of it is made again.

    <crawl>/frames/<segment>-<seal>/NN-NNN.parquet     the lines of some pages of the segment
    <crawl>/frames/counts-<seal>/places-NN-NNN.parquet what they come to, over all segments: by host
                                                       and place,
                                  lines-NN-NNN.parquet and by line, those that several pages have
    seal    CRC-32 of the sizes and times of the files that it was made of, and of the version of
            Polars, which makes the hashes
    NN-NNN  hosts by hash, and of these so many at a time as `minutch.memory` has room for

Of a host, MOST pages are counted: those whose URLs' hashes are least, whichever rounds they are of,
in their newest version. So a segment is read once, for the few pages that may be among them, and a
compaction or a page that is fetched again changes no more than what it should.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Final
from weakref import finalize
from zlib import crc32

import polars as pl

from minutch import scratch
from minutch.cycle.owntext import own
from minutch.cycle.owntext.own import SHARE, TITLE, WORDS, words_of
from minutch.cycle.owntext.parses import has_marks, lines_of, parses
from minutch.cycle.segment.store import PARSE_DATA, PARSE_TEXT, Segment, segments_in
from minutch.errors import FormatError
from minutch.paths import is_local
from minutch.records.textblocks import MOST as SURE
from minutch.urls.hostcolumns import host_names
from minutch.work.tables.frame import decode_keys, empty
from minutch.work.tables.install import NEW, make_folder, remove, sync_tree, work_folder
from minutch.work.tables.parallel import memory_budget
from minutch.work.tables.spannedfile import SpannedFile

log = logging.getLogger(__name__)

FRAMES: Final = "frames"
"""The folder of a crawl."""
MOST: Final = 256
"""Pages of a host."""
PARTS: Final = 16
NEAR, CLAIMS = "near", "claims"
"""Folders in it that others keep."""
_USE: Final = ".use-"
"""What a process is about to read, linked: others may replace it meanwhile."""
_TRIES: Final = 9
_LAYOUT: Final = "4"
"""Of the files with samples, counts and keys: those of another are made anew, not read."""
_KEYS: Final = 1 << 18
"""URLs that are looked at together."""
_LINE: Final = 256
"""Bytes that a line takes while it is counted."""
_SAMPLE: Final = pl.Schema(
    {"host": pl.String(), "page": pl.UInt64(), "place": pl.UInt32(), "line": pl.UInt64()}
    | {"times": pl.UInt32(), "chance": pl.UInt32(), "words": WORDS}
)
UNSEEN: Final = {
    **dict.fromkeys(("of", "place_pages", "at", "times", "anywhere"), pl.lit(1, pl.UInt32)),
    "mean": pl.col("chance") / SURE,
    **dict.fromkeys(("framed", "formed", "named"), pl.lit(0.0)),
    **dict.fromkeys(("common", "site"), pl.lit([], WORDS)),
}
"""What is known of a line that no page was counted for."""


class SiteFrames:
    """What the hosts of segments have in common."""

    def __init__(self, crawl: Path, segments: Sequence[Segment]) -> None:
        self._crawl, self._segments = crawl, segments
        self._lock = Lock()
        self._counts: Path | None = None
        self._folder: Path | None = None

    @property
    def folder(self) -> Path:
        """Where counts are kept: in the crawl; a temporary one where nothing can be written."""
        if self._folder is None:
            self._folder = _folder(self._crawl)
            if self._folder.parent != self._crawl:
                finalize(self, scratch.remove, self._folder)
        return self._folder

    def counts(self) -> Path:
        """Counts what has not been counted, when the first marked page is met: crawls without any
        are left alone. Returns a folder with the counts. Raises FormatError.
        """
        with self._lock:
            if self._counts is not None:
                return self._counts
            folder = self.folder
            with_parses = (one for one in self._segments if one.has(PARSE_DATA))
            parsed = {one.name: one for one in with_parses if one.has(PARSE_TEXT)}
            samples: list[Path] = []

            def made() -> Path:
                samples[:] = [_sample(folder, parsed[name]) for name in sorted(parsed)]
                return _counted(folder, samples)

            place, self._counts = in_use(self, folder, made)
            for path in folder.glob("[!.]*-*"):
                name = path.name.rpartition("-")[0]
                # A segment that this reader was not given keeps its sample.
                is_there = name not in parsed and (self._crawl / "segments" / name).is_dir()
                if (
                    name not in (NEAR, CLAIMS)
                    and path != place
                    and path not in samples
                    and not is_there
                ):
                    remove(path)
            return self._counts

    def close(self) -> None:
        """Gives up what is in use, which otherwise goes with the object; counts may be asked for
        again.
        """
        if self._counts is not None:
            remove(self._counts)
            self._counts = None

    def seals(self) -> pl.DataFrame:
        """Returns of each `host` a number, `seal`, that changes when what is counted of it does."""
        files = sorted(self.counts().iterdir())
        tables = [_scan([file]).select("host", seal=pl.struct(pl.all()).hash()) for file in files]
        return pl.concat(tables).group_by("host").agg(pl.col("seal").sum()).collect()

    def of(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Returns lines (`host`, `place`, `line`, …), in order, with what `own.kept` is to know."""
        counted, hosts = self.counts(), lines["host"].unique()
        parts = {f"{part:02}" for part in hosts.hash() % PARTS}
        files = sorted(counted.iterdir())
        try:
            places, counts = (
                pl.concat(
                    _scan([path])
                    # Files are sorted by host: by their statistics Parquet passes over whole row
                    # groups.
                    .filter(pl.col("host").is_between(pl.lit(hosts.min()), pl.lit(hosts.max())))
                    .filter(pl.col("host").is_in(hosts.implode()))
                    for path in _of_parts(files, kind, parts)
                ).collect()
                for kind in ("places", "lines")
            )
        except pl.exceptions.PolarsError as exc:
            raise damaged(self._crawl / FRAMES, exc) from exc
        sites = places.filter(place=TITLE).select("host", site="common")
        return (
            lines.with_columns(pl.col("line").hash())
            .join(places, on=["host", "place"], how="left", maintain_order="left")
            .join(sites, on="host", how="left", maintain_order="left")
            .join(counts, on=["host", "place", "line"], how="left", maintain_order="left")
            .with_columns(pl.col(name).fill_null(value) for name, value in UNSEEN.items())
        )


def _of_parts(files: Sequence[Path], kind: str, parts: Collection[str]) -> Sequence[Path]:
    """Returns the files of a kind with these parts; if there are none, another one."""
    mine = [path for path in files if path.name.startswith(kind)]
    return [path for path in mine if path.name.split("-")[1] in parts] or mine[:1]


def _sample(folder: Path, segment: Segment) -> Path:
    """Returns the folder with the lines of the pages of a segment that may count."""
    place = folder / f"{segment.name}-{seal_of(files_of(segment))}"
    if place.is_dir():
        return place
    keys = _candidates(segment)
    most = min(1 << 22, memory_budget() // _LINE)
    with work_folder(folder, NEW) as fresh:
        waiting = [empty(_SAMPLE)]
        pieces: dict[int, list[Path]] = {}
        for pages in chain(parses(segment, keys), [None]):
            if pages is not None:
                waiting.append(_sampled(pages.filter(has_marks(pages))))
            # Cut by host on the way: the lines of all hosts may be more than memory has room for.
            if pages is None or sum(map(len, waiting)) > most:
                lines = pl.concat(waiting)
                of_host = lines["host"].hash() % PARTS
                for part in of_host.unique():
                    files = pieces.setdefault(part, [])
                    files.append(fresh / f"piece-{part}-{len(files)}")
                    lines.filter(of_host == part).write_parquet(files[-1])
                waiting = [empty(_SAMPLE)]
        for part, files in pieces.items():
            for number, lines in enumerate(_fitting(_scan(files))):
                lines.sort("host", "page").write_parquet(fresh / f"{part:02}-{number:03}.parquet")
            for path in files:
                path.unlink()
        return placed(fresh, place)


def _counted(folder: Path, samples: Sequence[Path]) -> Path:
    """Returns the folder with what the samples come to."""
    place = folder / f"counts-{seal_of(samples)}"
    if place.is_dir():
        return place
    with work_folder(folder, NEW) as fresh:
        files = [sorted(path.iterdir()) for path in samples]
        parts = {path.name[:2] for path in chain.from_iterable(files)}
        for part in sorted(parts) or ["00"]:  # of a small crawl they are few
            tables = [empty(_SAMPLE).lazy().with_columns(age=0)] + [
                _scan([path]).with_columns(age=pl.lit(age))
                for age, paths in enumerate(files)
                for path in paths
                if path.name.startswith(part)
            ]
            for number, table in enumerate(_fitting(pl.concat(tables))):
                places, lines = count(table)
                end = f"{part}-{number:03}.parquet"
                places.write_parquet(fresh / f"places-{end}", row_group_size=1 << 14)
                lines.write_parquet(fresh / f"lines-{end}", row_group_size=1 << 16)
        return placed(fresh, place)


def _scan(files: Iterable[Path]) -> pl.LazyFrame:
    return pl.scan_parquet(sorted(files), glob=False)


def _fitting(lines: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Yields lines, those of a host together, as many at a time as may be in memory."""
    parts = 1 + lines.select(pl.len()).collect().item() * _LINE // memory_budget()
    for part in range(parts):
        # `// PARTS`: within a file all hosts have the same remainder by PARTS.
        mine = lines.filter(pl.col("host").hash() // PARTS % parts == part)
        yield mine.collect(engine="streaming")


def count(sample: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Counts lines of pages (_SAMPLE, and `age`, higher for newer versions of a page): by host and
    place `of`, `place_pages`, `mean`, `framed`, and what words say (`own`); by host, place and line
    `at`, `times`, `anywhere`, those on several pages. Both are sorted by host.
    """
    # The newest version of each page.
    sample = sample.filter(pl.col("age") == pl.col("age").max().over("host", "page"))
    chosen = sample.select("host", "page").unique().sort("host", "page")
    # Those whose hashes are least: the same ones, whatever else there is.
    chosen = chosen.filter(pl.int_range(pl.len()).over("host") < MOST)
    sample = sample.join(chosen, on=["host", "page"], how="semi")
    titles = sample.filter(place=TITLE)
    sample = sample.filter(pl.col("place") != TITLE)
    lines = sample.group_by("host", "place", "line").agg(
        at=pl.len(), times=pl.col("times").sum(), chance=pl.col("chance").sum()
    )
    anywhere = sample.group_by("host", "line").agg(anywhere=pl.col("page").n_unique())
    lines = lines.join(chosen.group_by("host").agg(of=pl.len()), on="host")
    often = pl.col("times").filter(pl.col("at") >= SHARE * pl.col("of")).sum()
    places = lines.group_by("host", "place").agg(
        pl.col("of").first(),
        mean=pl.col("chance").sum() / pl.col("times").sum() / SURE,
        framed=often / pl.col("times").sum(),
        lines=pl.col("times").sum(),
    )
    pages = sample.group_by("host", "place").agg(place_pages=pl.col("page").n_unique())
    # Lines of one page are most of all, and what is unknown counts as of one page.
    lines = lines.join(anywhere, on=["host", "line"]).filter(pl.col("anywhere") > 1)
    places = own.counted(sample, titles, places.join(pages, on=["host", "place"]))
    return (
        places.sort("host", "place"),
        lines.drop("chance", "of").sort("host", "place", "line"),
    )


def _sampled(pages: pl.DataFrame) -> pl.DataFrame:
    """Returns the lines of pages as `count` takes them."""
    of_page = pages.select(
        host_names(pages["url"]).fill_null("").alias("host"),
        pl.col("url").hash().alias("page"),
        row=pl.int_range(pl.len(), dtype=pl.UInt32),
    )
    titles = pages.select(
        row=pl.int_range(pl.len(), dtype=pl.UInt32),
        line="title",
        chance=pl.lit(0, pl.UInt8),
        place=pl.lit(TITLE, pl.UInt32),
    )
    found = pl.concat([lines_of(pages).drop("number"), titles]).join(of_page, on="row")
    return (
        found.group_by("host", "page", "place", "line")
        .agg(times=pl.len(), chance=pl.col("chance").cast(pl.UInt32).sum())
        .with_columns(pl.col("line").hash(), words=words_of(pl.col("line")))
        .select(*_SAMPLE)
    )


def _candidates(segment: Segment) -> pl.Series:
    """Returns the keys of the pages of a segment that may be among the MOST of their hosts."""
    found: list[pl.DataFrame] = []

    def least() -> pl.DataFrame:
        table = pl.concat(found).unique("key").sort("host", "page")
        return table.filter(pl.int_range(pl.len()).over("host") < MOST)

    for path in segment.data_files(PARSE_DATA):
        file = SpannedFile(path)
        for span in file.spans():
            urls = decode_keys(keys := file.keys(span))
            page = urls.hash().alias("page")
            found.append(pl.DataFrame([keys.alias("key"), host_names(urls).alias("host"), page]))
            # Cut back when it has doubled, so that each key is sorted a few times only.
            if sum(map(len, found)) > 2 * len(found[0]) + _KEYS:
                found = [least()]
    return least()["key"] if found else pl.Series("key", [], pl.Binary)


def _folder(crawl: Path) -> Path:
    """Returns the folder of a crawl's counts; a temporary one where nothing can be written."""
    if is_local(crawl) and crawl.is_dir():
        try:
            with work_folder(crawl / FRAMES, NEW):
                return crawl / FRAMES
        except OSError as exc:
            log.info("%s: counted in a temporary folder: %s", crawl / FRAMES, exc)
    return scratch.make(FRAMES)


def files_of(segment: Segment) -> list[Path]:
    """Returns the files that texts are read from."""
    return [*segment.data_files(PARSE_DATA), *segment.data_files(PARSE_TEXT)]


def seal_of(files: Sequence[Path], *names: str) -> str:
    """Returns the seal of what is made of files, and of what has these names."""
    said = [_LAYOUT, pl.__version__, *names]
    for path in files:
        stat = path.stat()
        said.append(f"{path.name} {stat.st_size} {stat.st_mtime_ns}")
    return f"{crc32(' '.join(said).encode()):08x}"


def in_use(user: object, folder: Path, make: Callable[[], Path]) -> tuple[Path, Path]:
    """Returns a folder that `make` finds or makes, and a copy of it for as long as there is the
    user. Another process may put its own in its place before there is one: then once more. Raises
    FormatError.
    """
    for tried in range(_TRIES):
        # Hard links: the files stay readable though others remove the folder.
        copy = make_folder(folder, _USE)
        try:
            place = make()
            for path in place.iterdir():
                os.link(path, copy / path.name)
        except pl.exceptions.PolarsError as exc:
            remove(copy)
            raise damaged(folder, exc) from exc
        except FileNotFoundError:
            remove(copy)
            if tried + 1 == _TRIES:
                raise
        except BaseException:
            remove(copy)
            raise
        else:
            finalize(user, remove, copy)
            break
    return place, copy


def damaged(folder: Path, exc: Exception) -> FormatError:
    """Returns the error for a folder with something that Polars can't read."""
    said = str(exc).partition("\n")[0]
    return FormatError(
        f"counts are damaged ({said}): delete the folder, they are made again"
    ).within(folder)


def placed(fresh: Path, place: Path) -> Path:
    """Renames a folder into its place, unless another process was faster."""
    sync_tree(fresh)
    try:
        # Fails where a folder is: both have made the same.
        return fresh.rename(place)
    except OSError:
        if place.is_dir():
            return place
        raise


# What `near` and `claims` keep beside it: files of each segment, <segment>-<seal>-NNNN.parquet


def parsed_segments(crawl: Path) -> list[Segment]:
    """Returns the segments of a crawl that have texts; none if it has no folder of them."""
    folder = crawl / "segments"
    found = segments_in(folder) if folder.is_dir() else []
    return [one for one in found if one.has(PARSE_DATA) and one.has(PARSE_TEXT)]


def linked(fresh: Path, kind: str, folder: Path, name: str) -> list[Path]:
    """Links the files of a segment that older folders of a kind have; returns them, in order."""
    for path in folder.glob(f"{kind}-*/{name}-*.parquet"):
        with suppress(OSError):  # another process has removed it, or linked another one
            os.link(path, fresh / path.name)
    return sorted(fresh.glob(f"{name}-*"))


def write_files(
    fresh: Path, name: str, tables: Iterable[pl.DataFrame], schema: pl.Schema, rows: int
) -> None:
    """Writes the files of a segment, of about so many rows each; one at least."""
    number, waiting = 0, [pl.DataFrame(schema=schema)]
    for table in tables:
        waiting.append(table)
        if sum(map(len, waiting)) >= rows:
            pl.concat(waiting).write_parquet(fresh / f"{name}-{number:04}.parquet")
            # waiting[0] is the empty table that has the schema.
            number, waiting = number + 1, waiting[:1]
    pl.concat(waiting).write_parquet(fresh / f"{name}-{number:04}.parquet")
