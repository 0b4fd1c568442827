"""Reads the files of Common Crawl's data set of 2012 as tables, both our own and original ones.

from minutch.annexes.dataset.datasettables import scan_metadata, scan_texts

for table in scan_metadata(Path("out/segment/1341690169105/metadata-00112")):
    print(table.group_by("http_result").len())
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import polars as pl

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.sequencewriter import TEXT
from minutch.work.tables import spans

TEXT_SCHEMA: Final = pl.Schema({"url": pl.String(), "text": pl.String()})
_REDIRECT: Final = {"source_url": pl.String(), "http_result": pl.Int32(), "server_ip": pl.String()}
_ARCHIVE: Final = dict.fromkeys(
    ("arcSourceSegmentId", "arcFileDate", "arcFileParition", "arcFileOffset", "compressedSize"),
    pl.Int64(),
)
_MEMBERS: Final = {
    "attempt_time": pl.Int64(),  # ms
    "disposition": pl.String(),
    "failure_reason": pl.String(),
    "failure_detail": pl.String(),
    "redirect_from": pl.Struct(_REDIRECT),
    "server_ip": pl.String(),
    "http_result": pl.Int32(),
    "content_len": pl.Int64(),
    "mime_type": pl.String(),
    "download_size": pl.Int64(),
    "download_truncated": pl.Boolean(),
    "content_is_gzip": pl.Boolean(),
    "gunzip_content_len": pl.Int64(),
    "md5": pl.String(),
    "charset_detected": pl.String(),
    "charset_detector": pl.Int32(),
    "text_simhash": pl.Int64(),
    "parsed_as": pl.String(),
    "archiveInfo": pl.Struct(_ARCHIVE),
}
METADATA_SCHEMA: Final = pl.Schema({"url": pl.String(), **_MEMBERS, "json": pl.String()})
"""Missing members are null; `json` is the whole record, with http_headers and content."""


def scan_texts(path: Path) -> Iterator[pl.DataFrame]:
    """Yields a textData file in tables of TEXT_SCHEMA (at least one). Raises FormatError."""
    return spans.scan(path, TEXT, _texts)


def scan_metadata(path: Path) -> Iterator[pl.DataFrame]:
    """Yields a metadata file in tables of METADATA_SCHEMA (at least one). Raises FormatError, also
    for invalid JSON.
    """
    return spans.scan(path, TEXT, _metadata)


def _texts(batch: Batch) -> pl.DataFrame:
    rows = range(batch.size)
    urls = [batch.key(row).decode("utf-8", "replace") for row in rows]
    texts = [
        DataInput(batch.value(row)).read_text_bytes().decode("utf-8", "replace") for row in rows
    ]
    return pl.DataFrame({"url": urls, "text": texts}, schema=TEXT_SCHEMA)


def _metadata(batch: Batch) -> pl.DataFrame:
    table = _texts(batch).rename({"text": "json"})
    try:
        members = table["json"].str.json_decode(pl.Struct(_MEMBERS))
    except pl.exceptions.ComputeError as error:
        raise FormatError("a value that is not JSON", found=str(error)) from error
    return table.with_columns(members.struct.unnest().get_columns()).select(METADATA_SCHEMA.names())
