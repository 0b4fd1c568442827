"""Writes a crawl's pages as a data set: a row for each URL, in JSON Lines and Parquet.

    <out>/jsonl/part-00000.jsonl.zst    the rows, in shards
    <out>/parquet/part-00000.parquet
    <out>/chunks/part-00000.jsonl.zst   with `--chunks`: the rows' Markdown in pieces for retrieval
    <out>/README.md                     the columns, for people and for Hugging Face
    <out>/corpus.json                   what was written, once all of it is there
    <out>/.plan.json                    what is to be written: options, the crawl's files
    <out>/.work/piece-00000.parquet     some thousand pages read, with what is asked of their texts

Steps: find the newest success of each URL; read pages, piece by piece; leave out those without
text, those that refuse what `--for` names, and what `--quality` does; find near-duplicates, and
lines that came before, among the rest; leave out what `--where` does; write shards. Pieces and
shards appear whole or not at all, and what is in them depends on crawl and options alone: after a
kill, the same command goes on with what is missing. Rows come by segment, then by URL.
"""

from __future__ import annotations

import json
import logging
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from minutch.cycle.owntext.pagetext import TextReader
from minutch.cycle.owntext.texts import frames_of
from minutch.cycle.parse.chunks import OVERLAP, TOKENS, chunks
from minutch.errors import StoreError
from minutch.hadoop.formats import zstd
from minutch.inspect.corpus import rows as corpus
from minutch.inspect.corpus.rows import NewestPages
from minutch.inspect.query.crawl import CrawlFolder, open_crawl
from minutch.inspect.query.rights import RightsTable, contents
from minutch.inspect.query.session import Session
from minutch.inspect.query.statements import ANY, MECHANISMS, REFUSED, USES
from minutch.inspect.query.table import Request
from minutch.job import Counters, JobContext
from minutch.version import __version__
from minutch.work.tables.install import remove, sync_path
from minutch.work.tables.lock import lock
from minutch.work.tables.parallel import memory_budget, ordered

log = logging.getLogger(__name__)

_PLAN, _DONE, _WORK, _CARD = ".plan.json", "corpus.json", ".work", "README.md"
_READ: Final = ("current", "content", "crawl_fetch", "parse_data", "parse_text")
_MARKDOWN: Final = "markdown"
_PAGES: Final = 128
"""Stored pages that are held at a time, of a megabyte at most (http.content.limit)."""
_ROW_GROUP: Final = 8192
"""Rows that are written at a time; readers skip whole groups of them."""


def _write_jsonl(rows: pl.DataFrame, path: Path) -> None:
    # JSON has no times: RFC 3339, which all readers know.
    rows = rows.with_columns(pl.col("fetched").dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ"))
    compressor = zstd.compressor()
    with path.open("wb") as file:
        for some in rows.iter_slices(_ROW_GROUP):
            file.write(compressor.compress(some.write_ndjson().encode()))
        file.write(compressor.flush())


def _write_parquet(rows: pl.DataFrame, path: Path) -> None:
    rows.write_parquet(path, compression="zstd", row_group_size=_ROW_GROUP)


_FORMATS: Final[dict[str, tuple[str, Callable[[pl.DataFrame, Path], None]]]] = {
    "jsonl": ("part-{:05}.jsonl.zst", _write_jsonl),
    "parquet": ("part-{:05}.parquet", _write_parquet),
}
"""Format -> names of its files, and what writes one."""


@dataclass(frozen=True, slots=True)
class CorpusOptions:
    """Options of export corpus."""

    purpose: str = ""
    """The use that the rows are for (`statements.USES`, ANY for all of them): pages for which it is
    refused are left out."""
    quality: str = "none"
    """Which pages are left out: a name of `quality.toml`."""
    where: str = ""
    """A condition in SQL on the columns of a row: those for which it is not true are left out."""
    formats: Sequence[str] = tuple(_FORMATS)
    plain: bool = False
    """Whether no Markdown is made: the column is null."""
    chunks: bool = False
    """Whether the Markdown of the rows is written, too, cut for retrieval."""
    tokens: int = TOKENS
    overlap: int = OVERLAP
    """The most tokens of a piece, and how many of them are those of the one before."""
    rows: int = 100_000
    size: int = 128 << 20
    """Rows of a shard, and bytes of their texts, at most; a row with more is a shard of its own."""


def export_corpus(
    crawl: Path, out: Path, options: CorpusOptions = CorpusOptions(), *, context: JobContext
) -> Counters:
    """Writes the pages of the crawl in a folder to the folder `out`, or what is missing there.

    Counts rows, and what was left out and why. Raises StoreError if something else is in `out`,
    QueryError for a condition that is none, UsageError for pieces that overlap too far.
    """
    uses = ("", ANY, *USES)
    asked = (uses, [options.purpose]), (rules(), [options.quality]), (_FORMATS, options.formats)
    for known, names in asked:
        if unknown := [name for name in names if name not in known]:
            raise StoreError(f"unknown {unknown[0]}: expected {', '.join(known)}")
    chunks("", "", tokens=options.tokens, overlap=options.overlap)  # or an error, before the work
    opened = open_crawl(crawl, context.conf)
    plan, done = _plan(opened, options), out / _DONE
    with lock(out):
        if found := [path for path in (done, out / _PLAN) if path.exists()]:
            begun = json.loads(found[0].read_text("utf-8"))
            if begun["plan"] != plan:
                raise StoreError(
                    f"{out} has a data set that was made in another way, or of another crawl",
                    hint="name another folder, or remove this one",
                )
            # The same command again: nothing is missing.
            if found[0] == done:
                return Counters(begun["counters"])
        elif any(path.name[0] != "." for path in out.iterdir()):
            raise StoreError(f"Output directory {out} already exists")
        _write(out / _PLAN, lambda path: _dump({"plan": plan}, path))
        counters = _Export(opened, out, options, context).run()
        _write(out / _CARD, lambda path: path.write_text(_card(options.formats), "utf-8"))
        made = {"plan": plan, "columns": corpus.ABOUT, "counters": counters}
        _write(done, lambda path: _dump(made, path))
        # Last: until then a kill leaves a folder that the same command finishes.
        (out / _PLAN).unlink()
        remove(out / _WORK)
    return counters


def rules() -> dict[str, dict[str, str]]:
    """Returns the filters: of each name of `--quality`, conditions in SQL by their reasons."""
    return tomllib.loads(Path(__file__).with_name("quality.toml").read_text("utf-8"))


def _plan(crawl: CrawlFolder, options: CorpusOptions) -> dict[str, Any]:
    """Returns what a data set is made of: another one must not go on with its files."""
    files = sorted(path for name in _READ for path in crawl.path.glob(f"**/{name}/**/*"))
    # Size and time, not content: reading a crawl to know whether it has changed would take as long.
    stats = ((path, path.stat()) for path in files if path.is_file() and path.name[0] != ".")
    named = [[str(path.relative_to(crawl.path)), s.st_size, s.st_mtime_ns] for path, s in stats]
    made = {"minutch": __version__, "options": asdict(options), "files": named}
    # As it will be read: tuples become lists, and would differ.
    return dict(json.loads(json.dumps(made)))


def _card(formats: Sequence[str]) -> str:
    """Returns what Hugging Face calls a dataset card: in its head the types of columns, as a shard
    of JSON Lines does not tell those of lists that are all empty, and the files that are read: one
    format, since a folder has one there. The head is YAML, of which JSON is a part. Beside the
    shards it would be taken for one by readers of a folder.
    """
    name = max(formats)  # Parquet, if it is there
    config = {"config_name": "default", "data_files": f"{name}/part-*"}
    types = [
        (name, pl.String() if name == _MARKDOWN else corpus.CorpusTable.columns[name].dtype)
        for name in corpus.ABOUT
    ]
    info = {"features": [{"name": name} | _feature(dtype) for name, dtype in types]}
    head = [f"configs: {json.dumps([config])}", f"dataset_info: {json.dumps(info)}"]
    rows = [f"| `{name}` | {about} |" for name, about in corpus.ABOUT.items()]
    table = ["# Pages of a crawl", "", "| column | |", "|---|---|", *rows]
    return "\n".join(["---", *head, "---", *table, ""])


def _feature(dtype: object) -> dict[str, Any]:
    """Returns a type as `datasets.Features` has it."""
    if isinstance(dtype, pl.List):
        inner = dtype.inner
        if isinstance(inner, pl.Struct):
            return {"list": [{"name": f.name} | _feature(f.dtype) for f in inner.fields]}
        return {"list": _feature(inner)["dtype"]}
    if isinstance(dtype, pl.Datetime):
        return {"dtype": f"timestamp[{dtype.time_unit}, tz=UTC]"}
    return {"dtype": "bool" if dtype == pl.Boolean else str(dtype).lower()}


def _dump(value: object, path: Path) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _write(path: Path, write: Callable[[Path], object]) -> None:
    """Writes a file that appears whole or not at all."""
    path.parent.mkdir(exist_ok=True)
    new = path.with_name(f".new-{path.name}")
    write(new)
    sync_path(new)
    new.replace(path)
    sync_path(path.parent)


class _Export:
    """A data set while it is made."""

    def __init__(
        self, crawl: CrawlFolder, out: Path, options: CorpusOptions, context: JobContext
    ) -> None:
        self._crawl, self._out, self._options, self._context = crawl, out, options, context
        # The other half is for tables of the pieces that are read meanwhile.
        self._memory = memory_budget(context.conf) // 2
        self._counters = Counters()

    def run(self) -> Counters:
        """Writes what is missing; returns the counts of all."""
        # once, before the threads that read pieces: each would count the same lines of the crawl
        self._sites = frames_of(self._crawl.path, self._crawl.segments)
        self._rows = self._read()
        total = len(self._rows)
        self._counters.add("pages", total)
        # Before near-duplicates: pages that are left out must not be the first of a cluster.
        chosen = self._keep(np.ones(total, np.bool_), {"without text": "text = ''"})
        chosen = self._keep_allowed(chosen)
        chosen = self._keep(chosen, rules()[self._options.quality], f"{self._options.quality} ")
        self._rows.find_duplicates(chosen, self._memory)
        if self._options.where:
            # The line feed ends a comment at the end of the condition.
            condition = f"not coalesce(({self._options.where}\n), false)"
            chosen = self._keep(chosen, {"--where": condition})
        places = np.flatnonzero(chosen)
        self._counters.add("rows", len(places))
        repeated = self._rows.firsts[places] != places
        self._counters.add("near-duplicates of another page", int(repeated.sum()))
        self._counters.add("shards", 0)
        conf = self._context.conf.of_crawl(self._crawl.path).freeze()
        with (
            self._context.progress("export corpus: shards", len(places), "rows") as progress,
            TextReader(conf, self._context.clock, None) as self._reader,
        ):
            for number, rows in enumerate(self._shards(places)):
                self._write_shard(number, rows)
                self._counters.add("shards")
                progress.advance(len(rows))
        return self._counters

    def _read(self) -> corpus.CorpusTable:
        """Reads the pages into files."""
        (work := self._out / _WORK).mkdir(exist_ok=True)
        found = NewestPages.of(self._crawl, memory=self._memory, spill=work)
        heights = [int(found.counts[piece.first : piece.last].sum()) for piece in found.pieces]
        files = [work / f"piece-{number:05}.parquet" for number in range(len(heights))]

        def make(number: int) -> int:
            if not files[number].exists():
                rows = corpus.make_piece(found.pieces[number], found.counts, self._sites)
                _write(files[number], lambda path: rows.write_parquet(path, compression="lz4"))
            return heights[number]

        with self._context.progress("export corpus", sum(heights), "pages") as progress:
            for height in ordered(make, range(len(files))):
                progress.advance(height)
        refused = pl.col("verdict").cast(pl.String) == REFUSED
        rights = self._crawl.tables[RightsTable.name].scan().filter(refused)
        said = rights.select("segment", "url", "use", "mechanism", "statement")
        return corpus.CorpusTable(files, heights, said.collect(engine="streaming"))

    def _keep_allowed(self, chosen: corpus.Chosen) -> corpus.Chosen:
        """Returns those of `chosen` for which the purpose is not refused; counts the others by the
        first mechanism that does.
        """
        if not self._options.purpose:
            return chosen
        uses = USES if self._options.purpose == ANY else (self._options.purpose,)
        mine = pl.col("refused").list.filter(pl.element().struct["use"].is_in(uses))
        by = mine.list.first().struct["mechanism"].alias("by")
        columns = [frame.select(by)["by"] for frame in self._rows.frames(Request(("refused",)))]
        found = pl.concat([pl.Series("by", [], pl.String), *columns])
        counts = found.filter(pl.Series(chosen)).value_counts()
        for mechanism in MECHANISMS:
            count = counts.filter(pl.col("by") == mechanism)["count"].sum()
            name = f"left out: {self._options.purpose} refused by {mechanism}"
            self._counters.add(name, int(count))
        kept: corpus.Chosen = chosen & found.is_null().to_numpy()
        return kept

    def _keep(self, chosen: corpus.Chosen, reasons: dict[str, str], of: str = "") -> corpus.Chosen:
        """Returns those of `chosen` for which no reason, a condition in SQL, is true; counts the
        others by the first that is.
        """
        if not reasons:
            return chosen
        cases = [f"when {condition} then {at}" for at, condition in enumerate(reasons.values())]
        tables = {**self._crawl.tables, self._rows.name: self._rows}
        session = Session(self._crawl, self._context.clock.now(), tables)
        rows = session.query(f"select number, case {' '.join(cases)} end as reason from corpus")
        found = session.run(lambda: rows.drop_nulls().collect(engine="streaming"))
        reason = np.full(len(chosen), len(reasons))
        reason[found["number"].to_numpy()] = found["reason"].to_numpy()
        counts = np.bincount(reason[chosen], minlength=len(reasons))
        for name, count in zip(reasons, counts, strict=False):
            self._counters.add(f"left out: {of}{name}", int(count))
        kept: corpus.Chosen = chosen & (reason == len(reasons))
        return kept

    def _shards(self, places: np.ndarray) -> Iterator[np.ndarray]:
        """Yields the numbers of the rows of each shard."""
        ends = np.cumsum(self._rows.stored("bytes")[places], dtype=np.int64)
        first = 0
        while first < len(places):
            before = int(ends[first - 1]) if first else 0
            fits = int(np.searchsorted(ends, before + self._options.size, side="right"))
            # One row at least, however large.
            last = max(first + 1, min(fits, first + self._options.rows))
            yield places[first:last]
            first = last

    def _write_shard(self, number: int, places: np.ndarray) -> None:
        """Writes a shard in each format in which it is not there yet."""
        files = {
            self._out / name / _FORMATS[name][0].format(number): _FORMATS[name][1]
            for name in self._options.formats
        }
        missing = {path: write for path, write in files.items() if not path.exists()}
        chunked = self._out / "chunks" / _FORMATS["jsonl"][0].format(number)
        has_chunks = not self._options.chunks or chunked.exists()
        if not missing and has_chunks:
            return
        frames = []
        starts = self._rows.starts
        for piece in range(len(starts) - 1):
            first, last = np.searchsorted(places, starts[piece : piece + 2])
            if first < last:
                frame = self._rows.piece(piece, {"segment", *corpus.ABOUT})
                frames.append(frame[places[first:last] - starts[piece]])
        rows = pl.concat(frames)
        is_plain = self._options.plain
        pages = [] if is_plain and has_chunks else list(self._markdown(rows))
        texts = [None if is_plain or page is None else page[0] for page in pages]
        rows = rows.with_columns(pl.Series(_MARKDOWN, texts or [None] * len(rows), pl.String))
        rows = rows.select(*corpus.ABOUT)
        for path, write in missing.items():
            _write(path, partial(write, rows))
        if not has_chunks:
            _write(chunked, partial(self._write_chunks, rows["url"], pages))

    def _markdown(self, rows: pl.DataFrame) -> Iterator[tuple[str, dict[int, str]] | None]:
        """Yields the Markdown of each row and the fragments of its headings; None where the page
        was not stored. Rows come by segment, so each is read from one end to the other.
        """
        segments = {one.name: one for one in self._crawl.segments}
        for (name,), mine in rows.group_by("segment", maintain_order=True):
            for some in mine["url"].to_frame().iter_slices(_PAGES):
                urls = some["url"].to_list()
                # Of the segment that the row is of: a later one may have another version.
                stored = {page.url: page for page in contents(segments[str(name)], urls)}
                found = [url for url in urls if url in stored]
                made = self._reader.markdowns([stored[url] for url in found], self._sites)
                of = dict(zip(found, made, strict=True))
                yield from map(of.get, urls)

    def _write_chunks(
        self, urls: pl.Series, pages: Sequence[tuple[str, dict[int, str]] | None], path: Path
    ) -> None:
        """Writes the chunks of rows; pages that were not stored have none."""
        compressor = zstd.compressor()
        cut = partial(chunks, tokens=self._options.tokens, overlap=self._options.overlap)
        with path.open("wb") as file:
            for url, page in zip(urls, pages, strict=True):
                pieces = () if page is None else cut(page[0], url, page[1])
                found = "".join(f"{one.as_json()}\n" for one in pieces)
                file.write(compressor.compress(found.encode("utf-8", "replace")))
            file.write(compressor.flush())
