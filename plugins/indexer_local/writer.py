"""indexer-local: writes an index beside the crawl, without a server; `minutch search` and `minutch
serve` read it.

    path       folder of the index, below that of the crawl unless it is absolute (index);
               indexchecker, which knows no crawl, takes the working folder
    memory     megabytes for documents that are not on disk yet (128)
    threads    that make the index (0: half as many as there are cores, four at most)

Documents are replaced and deleted by their URLs. What is written shows at the end of the job: a job
that is killed leaves the index of the one before. The end of a job is a commit, with -noCommit too,
as nobody else could make one. With `minutch.index.local.rebuild` a new index takes the place of the
old one, whatever version wrote that.
"""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, TypeVar

import polars as pl

from minutch.errors import IndexWriterError, LockedError
from minutch.inspect.search.apart import Apart, Here
from minutch.inspect.search.fields import (
    BINARY,
    DATES,
    EXACT,
    FRAME,
    HAS,
    HAS_CJK,
    HAS_MARK,
    KEY,
    OTHER,
    TEXTS,
    paired,
    stemmer_of,
)
from minutch.inspect.search.localindex import (
    REBUILD_PROPERTY,
    IndexWriting,
    LocalIndex,
    create,
    is_panic,
    stamp,
)
from minutch.paths import as_path, is_local
from minutch.plugin.documents import Documents, texts_of
from minutch.plugin.parameters import Parameters
from minutch.plugin.points import Action, IndexWriter, Refused
from minutch.records.document import NutchDocument

# Encodes documents as tantivy's JSON: known fields by their names, all others below `other`. See
# `minutch.inspect.search.fields`.

_DATE: Final = pl.Datetime("ms")
_PLAIN: Final = (pl.String(), pl.Boolean(), pl.Int32(), pl.Int64())
_RFC_3339: Final = "%Y-%m-%dT%H:%M:%S%.3fZ"
_SPAN: Final = (-9_214_560_000_000, 9_214_646_399_999)
"""Milliseconds from 1678 to 2261, what tantivy's dates, which count nanoseconds, can hold; others
are left out.
"""
CRAWL_PROPERTY = "minutch.index.crawl"
"""The folder of the crawl that is indexed; jobs set it."""
LEAST_MEMORY = 16
"""Megabytes that tantivy asks for, for each thread."""
MOST_THREADS = 4
MERGING: Final = 2 << 30
"""Bytes that tantivy may take for merges, beside its documents, for an index that is not ours."""

T = TypeVar("T")


def encoded(documents: Documents) -> pl.Series:
    """Returns the JSON of each document (Binary)."""
    own: dict[str, pl.Series] = {KEY: documents.keys}
    others: dict[str, pl.Series] = {}
    languages = _languages(documents)
    for name in documents.names():
        values = documents.column(name)
        if values is None:
            continue
        if name in TEXTS:
            own |= _by_language(name, _words(values), languages)
        elif name == FRAME:
            own[name] = _words(values)
        elif name == "id" or name in EXACT:
            own[name] = texts_of(values)
        elif name == BINARY:
            # Bytes came as text.
            texts = _words(values, pair=False)
            own[name] = pl.Series(
                [
                    None if text is None else base64.b64encode(text.encode()).decode()
                    for text in texts
                ],
                dtype=pl.String,
            )
        elif name in DATES and _inner(values) == _DATE:
            own[name] = _dates(values)
        else:
            others[name] = _plain(values)
    return _json(own, others)


def _inner(values: pl.Series) -> object:
    return values.dtype.inner if isinstance(values.dtype, pl.List) else values.dtype


def _plain(values: pl.Series) -> pl.Series:
    """Values of any field as JSON has them."""
    if _inner(values) == _DATE:
        return _dates(values)
    return values if _inner(values) in _PLAIN else texts_of(values)


def _dates(values: pl.Series) -> pl.Series:
    """Dates as RFC 3339."""
    if isinstance(values.dtype, pl.List):
        held = values.list.eval(pl.element().filter(pl.element().cast(pl.Int64).is_between(*_SPAN)))
        return held.list.eval(pl.element().dt.strftime(_RFC_3339))
    held = values.zip_with(
        values.cast(pl.Int64).is_between(*_SPAN).fill_null(False), _nulls(values)
    )
    return held.dt.strftime(_RFC_3339)


def _nulls(values: pl.Series) -> pl.Series:
    return values.clear().extend_constant(None, len(values))


def _words(values: pl.Series, *, pair: bool = True) -> pl.Series:
    """Texts to be searched, several values as lines."""
    texts = texts_of(values)
    if isinstance(texts.dtype, pl.List):
        texts = texts.list.join("\n")
    if not pair:
        return texts
    rows = texts.str.contains(f"{HAS_CJK}|{HAS_MARK}").fill_null(False).arg_true()
    if not len(rows):
        return texts
    return texts.clone().scatter(
        rows, pl.Series([paired(text) for text in texts.gather(rows)], dtype=pl.String)
    )


def _languages(documents: Documents) -> pl.Series | None:
    """Returns the stemmer of each document; None where none has one."""
    found = documents.column("lang")
    if found is None:
        return None
    langs = texts_of(found)
    first = langs.list.first() if isinstance(langs.dtype, pl.List) else langs
    codes = {lang: stemmer_of(lang) for lang in first.unique() if lang is not None}
    stemmers = first.replace_strict(codes, default=None, return_dtype=pl.String)
    return None if stemmers.null_count() == len(stemmers) else stemmers


def _by_language(name: str, texts: pl.Series, languages: pl.Series | None) -> dict[str, pl.Series]:
    """Returns a field, and its twins of the languages that occur."""
    if languages is None:
        return {name: texts}
    nothing = _nulls(texts)
    columns = {name: texts.zip_with(languages.is_null(), nothing)}
    for code in sorted(languages.drop_nulls().unique()):
        columns[f"{name}_{code}"] = texts.zip_with((languages == code).fill_null(False), nothing)
    return columns


def _json(own: dict[str, pl.Series], others: dict[str, pl.Series]) -> pl.Series:
    """Returns an object for each row, without the fields that it lacks: rows that have the same
    ones are written together.
    """
    frame = pl.DataFrame(
        [values.alias(f"o{n}") for n, values in enumerate((*own.values(), *others.values()))]
    )
    names = dict(zip(frame.columns, (*own, *others), strict=True))
    mine = set(frame.columns[: len(own)])
    missing = frame.select(
        pl.concat_str([pl.col(c).is_null().cast(pl.Int8) for c in frame.columns])
    ).to_series()
    result = pl.Series("payload", [], dtype=pl.String).extend_constant("", len(frame))
    for pattern in missing.unique(maintain_order=True):
        rows = (missing == pattern).arg_true()
        there = [column for column, bit in zip(frame.columns, pattern, strict=True) if bit == "0"]
        below = [pl.col(column).alias(names[column]) for column in there if column not in mine]
        parts = [pl.col(column).alias(names[column]) for column in there if column in mine]
        parts += [pl.struct(below).alias(OTHER)] if below else []
        has = sorted(
            {
                names[column].partition("_")[0] if column in mine else names[column]
                for column in there
            }
            - {KEY}
        )
        parts.append(pl.lit(pl.Series([has])).alias(HAS))
        texts = frame[rows].select(pl.struct(parts).struct.json_encode()).to_series()
        result = result.scatter(rows, texts)
    return result.cast(pl.Binary).alias("payload")


class LocalIndexWriter(IndexWriter):
    """Writes one index."""

    def configure(self, parameters: Parameters) -> None:
        crawl, own = (
            as_path(self.conf.get(CRAWL_PROPERTY) or "."),
            Path(parameters.get("path") or "index"),
        )
        self.path = own if own.is_absolute() else crawl / own
        if not is_local(self.path):
            raise parameters.wrong(
                "path", f"the whole path of a folder on this machine, as the crawl is in {crawl}"
            )
        self.memory = parameters.get_int("memory", 128)
        self.threads = parameters.get_int("threads", 0)
        if self.threads < 0:
            raise parameters.wrong("threads", "0 or more")
        if self.memory < LEAST_MEMORY:
            raise parameters.wrong("memory", f"{LEAST_MEMORY} or more")
        self.threads = self.threads or max(1, min(MOST_THREADS, (os.cpu_count() or 1) // 2))

    def encode(self, doc: NutchDocument) -> bytes:
        return bytes(self.encode_columns(Documents.of(doc))[0])

    def encode_columns(self, documents: Documents) -> pl.Series:
        """Returns the JSON of each document."""
        return encoded(documents)

    def open(self) -> None:
        self._held = ExitStack()
        store = LocalIndex(self.path)
        if self.path.is_dir() and not store.exists() and any(self.path.iterdir()):
            leftovers = [path.name for path in self.path.iterdir() if not path.name.startswith(".")]
            if leftovers:
                raise IndexWriterError(f"{self.path} is no index: {leftovers[0]} is in it")
        try:
            self._held.enter_context(store.lock())
            if store.exists() and not self.conf.get_boolean(REBUILD_PROPERTY):
                self._folder, self._is_ours = store.current, store.require()
            else:
                self._folder = self._held.enter_context(store.replacement(keep_old=False))
                create(self._folder)
                self._is_ours = True
            memory = max(self.memory, LEAST_MEMORY * self.threads) * 1_000_000
            where = (self._folder, memory, self.threads)
            with store.reading():
                self._open: Apart | Here = (
                    Here(IndexWriting(*where))
                    if self._is_ours
                    else Apart(IndexWriting, where, memory=2 * memory + MERGING, seconds=math.inf)
                )
                self._open.call(bool, "is_open")
        except BaseException as exc:
            self._release(exc)
            if isinstance(exc, LockedError):
                raise IndexWriterError(
                    f"another job writes to the index: {exc}", hint=exc.hint
                ) from exc
            if isinstance(exc, OSError):
                raise IndexWriterError(f"{self.path}: can't be written: {exc.strerror}") from exc
            raise

    def write(self, actions: Sequence[Action]) -> Sequence[Refused]:
        kind = list[tuple[str, str]]
        refused = self._committed(lambda: self._open.call(kind, "write", list(actions)))
        return [Refused(*one) for one in refused]

    def commit(self) -> None:
        self._committed(lambda: self._open.call(bool, "commit"))

    def close(self) -> None:
        self._committed(lambda: self._open.call(bool, "end"))
        self._let_go()
        self._committed(lambda: stamp(self._folder, ours=self._is_ours))
        self._held.close()

    def _let_go(self) -> None:
        self._open.close()
        del self._open

    def _committed(self, step: Callable[[], T]) -> T:
        try:
            return step()
        except BaseException as exc:
            if not isinstance(exc, ValueError | OSError) and not is_panic(exc):
                raise
            raise IndexWriterError(f"{self.path}: can't be written: {exc}") from exc

    def abort(self) -> None:
        if hasattr(self, "_open"):  # `open` may have failed, anywhere
            with suppress(IndexWriterError):  # there is nothing to drop in a process that has died
                self._committed(lambda: self._open.call(bool, "rollback"))
            self._let_go()
        if hasattr(self, "_held"):
            self._release(IndexWriterError("aborted"))

    def _release(self, error: BaseException) -> None:
        """Releases locks and removes incomplete files."""
        self._held.__exit__(type(error), error, error.__traceback__)

    def describe(self) -> dict[str, tuple[str, object]]:
        return {
            "path": ("folder of the index", self.path),
            "memory": ("megabytes for documents that are not on disk yet", self.memory),
            "threads": ("threads that make the index", self.threads),
        }
