"""New folders of part files, as a MapReduce job leaves its output: complete, or not there at all;
columns as text.

    with output_folder(out) as folder:
        with text_part(folder, 0, text_codec(conf)) as part:
            part.write(b"line\\n")

Source: org.apache.hadoop.mapreduce.lib.output.FileOutputFormat.checkOutputSpecs, TextOutputFormat.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl

from minutch.errors import StoreError
from minutch.hadoop.formats import javafloats
from minutch.hadoop.formats.checksum import ChecksumWriter
from minutch.hadoop.formats.compress import Codec, CompressedWriter
from minutch.work.tables.database import part_name
from minutch.work.tables.install import clear, make_directory, sync_path, sync_tree, work_folder


def require_absent(out: Path, kind: str = "directory") -> None:
    """Raises StoreError where `out` exists."""
    if out.exists():
        raise StoreError(f"Output {kind} {out} already exists")


@contextmanager
def output_folder(out: Path) -> Iterator[Path]:
    """Yields a folder to write part files into; it becomes `out` at the end, or is removed on an
    error.

    Raises StoreError where `out` exists.
    """
    require_absent(out)
    make_directory(out.parent)
    with work_folder(out.parent, f".{out.name}-") as folder:
        yield folder
        sync_tree(folder)  # on disk before it has its name
        require_absent(out)  # rename would replace an empty folder made meanwhile
        folder.rename(out)
        sync_path(out.parent)  # and the name itself


@contextmanager
def output_file(out: Path) -> Iterator[Path]:
    """Yields a path to write a file at, in a folder of its own beside `out`; it becomes `out` at
    the end.

    Raises StoreError where `out` exists.
    """
    make_directory(out.parent)
    prefix = f".{out.name}-"
    clear(out.parent, prefix)
    require_absent(out, "file")
    with work_folder(out.parent, prefix) as folder:
        yield folder / out.name
        sync_tree(folder)
        require_absent(out, "file")
        (folder / out.name).rename(out)
        sync_path(out.parent)


def text_part(folder: Path, index: int, codec: Codec | None) -> ChecksumWriter | CompressedWriter:
    """Opens the text file of part `index` in `folder`; see `text_file`."""
    return text_file(folder / part_name(index), codec)


def text_file(path: Path, codec: Codec | None) -> ChecksumWriter | CompressedWriter:
    """Opens a text file with its checksums, compressed by `codec`, whose extension it gets."""
    if codec is None:
        return ChecksumWriter(path)
    return CompressedWriter(ChecksumWriter(path.with_name(path.name + codec.extension)), codec)


def float_texts(values: pl.Series) -> pl.Series:
    """Returns floats (Float32) as Java's Float.toString writes them."""
    # Bits also join where a float is NaN.
    bits = pl.Series("bits", values.fill_null(0).to_numpy().view(np.int32))
    distinct = bits.unique()
    texts_of = javafloats.float_texts(distinct.to_numpy().view(np.float32))
    table = pl.DataFrame([distinct, pl.Series("text", texts_of, pl.String)])
    texts = bits.to_frame().join(table, on="bits", how="left", maintain_order="left")["text"]
    return pl.select(pl.when(values.is_not_null()).then(texts)).to_series().alias(values.name)
