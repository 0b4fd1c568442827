"""Reads scores of hosts from text files, as `nodedumper -scores -group host` writes them.

    line := host TAB score

A URL instead of a host (nodedumper without -group) stands for its host. The first score of a host
counts, as nodedumper writes the highest first. A line whose score is no number is logged and
skipped; Nutch's job fails on it.

Source: org.apache.nutch.hostdb.UpdateHostDbMapper, Hadoop's KeyValueTextInputFormat.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import polars as pl

from minutch.cycle.crawldb.seeds import SeedText, seed_texts
from minutch.cycle.hostdb.hostrecords import SCORES_SCHEMA
from minutch.cycle.hostdb.statistics import FILTERED, HostRules
from minutch.errors import StoreError
from minutch.hadoop.formats.javahash import float32, parse_float
from minutch.job import Counters
from minutch.terminal import visible_line
from minutch.urls.hostcolumns import host_names, map_distinct
from minutch.work.tables.frame import decode_keys, encode_keys

log = logging.getLogger(__name__)

BAD_SCORES: Final = "scores_that_are_no_numbers_total"
SCORES: Final = "host_scores_total"


def score_files(path: Path) -> list[Path]:
    """Returns the file itself, or the files of a folder by name, without hidden ones. Raises
    StoreError if there is none.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise StoreError(f"Input path does not exist: {path}")
    files = sorted(
        entry for entry in path.iterdir() if entry.is_file() and entry.name[0] not in "._"
    )
    if not files:
        raise StoreError(f"{path}: no files with scores of hosts")
    return files


def read_scores(path: Path, rules: HostRules, counters: Counters) -> Iterator[pl.DataFrame]:
    """Reads the scores of a file as tables of SCORES_SCHEMA, in its order. Raises FormatError for
    damaged compressed data.
    """
    for text in seed_texts(path):
        yield _scores(path, text, rules, counters)


def _scores(path: Path, text: SeedText, rules: HostRules, counters: Counters) -> pl.DataFrame:
    lines = decode_keys(
        pl.Series("line", text.data.removesuffix(b"\n").split(b"\n"), dtype=pl.Binary)
    )
    table = lines.to_frame().with_row_index("number", text.number).filter(pl.col("line") != "")
    fields = pl.col("line").str.splitn("\t", 2).struct
    table = table.select(
        "number", name=fields.field("field_0"), text=fields.field("field_1").fill_null("")
    )
    table = table.with_columns(score=map_distinct(table["text"], _score, pl.Float32()))
    bad = table.filter(pl.col("score").is_null())
    for number, value in bad.select("number", "text").iter_rows():
        log.warning(
            "%s, line %d: expected <host> TAB <score>, found %s for the score",
            path,
            number,
            _shown(value),
        )
    table = table.filter(pl.col("score").is_not_null())
    is_url = table["name"].str.contains("://", literal=True)
    hosts = table["name"].zip_with(~is_url, host_names(table["name"]))
    named = rules.apply(hosts)
    counters.add(BAD_SCORES, len(bad))
    counters.add(FILTERED, named.null_count())
    counters.add(SCORES, len(named) - named.null_count())
    found = pl.DataFrame({"key": encode_keys(named), "score": table["score"]}, schema=SCORES_SCHEMA)
    return found.filter(pl.col("key").is_not_null())


def _shown(value: str) -> str:
    return f"'{visible_line(value[:100])}'" if value else "nothing"


def _score(text: str) -> float | None:
    try:
        score = float32(parse_float(text))
    except ValueError:
        return None
    return None if math.isnan(score) else score
