"""The golden SequenceFiles with their listings, and hand-made files of the older versions."""

from __future__ import annotations

import base64
import csv
import functools
import gzip
import json
import struct
from pathlib import Path

from minutch.hadoop.formats.javaio import DataOutput
from tests.support.golden import GOLDEN, in_set

SEQUENCEFILES = GOLDEN / "sequencefiles"

Records = list[tuple[bytes, bytes]]


@functools.cache
def golden_records(kind: str) -> Records:
    """The serialized records that `records-KIND.jsonl.gz` lists."""
    with gzip.open(SEQUENCEFILES / f"records-{kind}.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = map(json.loads, lines)
        return [(base64.b64decode(row["k"]), base64.b64decode(row["v"])) for row in rows]


def manifest() -> list[dict[str, str]]:
    """The rows of `manifest.csv` whose file was written, as far as the golden files have it."""
    with (SEQUENCEFILES / "manifest.csv").open(encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["status"] == "ok"]
    return [row for row in rows if in_set(SEQUENCEFILES / row["file"])]


def old_header(
    version: int, key_class: str, value_class: str, *, compressed: bool = False, sync: bytes = b""
) -> bytes:
    """A header as the SequenceFile versions 1 to 5 wrote it (without blocks; DefaultCodec)."""
    out = DataOutput()
    out.write_bytes(b"SEQ" + bytes((version,)))
    write = out.write_utf8 if version < 4 else out.write_text
    write(key_class)
    write(value_class)
    if version > 2:
        out.write_boolean(compressed)
    if version > 3:
        out.write_boolean(False)
    if version > 4 and compressed:
        out.write_text("org.apache.hadoop.io.compress.DefaultCodec")
    if version > 1:
        out.write_bytes(sync)
    return out.getvalue()


def record(key: bytes, value: bytes) -> bytes:
    """A record as it lies in a file without blocks."""
    return struct.pack(">ii", len(key) + len(value), len(key)) + key + value


def copy_writable(source: Path, target: Path) -> Path:
    """Copy a golden file or directory so that it may be changed."""
    if source.is_dir():
        target.mkdir()
        for path in sorted(source.iterdir()):
            copy_writable(path, target / path.name)
    else:
        target.write_bytes(source.read_bytes())
    return target
