"""The readhostdb job: writes the hosts of a HostDb as text.

    hostname TAB unfetched TAB fetched TAB gone TAB redirTemp TAB redirPerm TAB notModified TAB
    numRecords TAB dnsFail TAB cnxFail TAB sumFail TAB score TAB lastCheck TAB homepage TAB
    (key ":" value "|||")* LF

A dump has a file for each part of the HostDb, in its order, with a header unless
hostdb.dump.field.header is false. -dumpHomepages and -dumpHostnames write only these, each followed
by a tab. -dumpHomepages dumps the hosts that have a home page; Nutch has the condition reversed.

Source: org.apache.nutch.hostdb.ReadHostDb, HostDatum.toString.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.hostdb.fields import text_of
from minutch.cycle.hostdb.store import HostDb
from minutch.expressions import Expression, compile_expression
from minutch.hadoop.formats.javahash import date_time_to_string, float_to_string
from minutch.job import Counters, JobContext
from minutch.records.metadata_columns import entries
from minutch.urls.hostcolumns import map_distinct
from minutch.work.tables.compression import text_codec
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.matching import FIXED, evaluate
from minutch.work.tables.parallel import for_each
from minutch.work.tables.textparts import output_folder, require_absent, text_file

log = logging.getLogger(__name__)

HEADER: Final = (
    "hostname\tunfetched\tfetched\tgone\tredirTemp\tredirPerm\tnotModified\tnumRecords\t"
    "dnsFail\tcnxFail\tsumFail\tscore\tlastCheck\thomepage\tmetadata\n"
)
WRITTEN: Final = "hosts written"
LEFT_OUT: Final = "hosts left out"
_COUNTS: Final = (
    "unfetched", "fetched", "gone", "redirTemp", "redirPerm", "notModified", "numRecords",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReadHostDbOptions:
    """Options of the readhostdb job; hostdb.* apply to those that are not set."""

    homepages: bool = False
    """Whether only home pages are written, of hosts that have one."""
    hostnames: bool = False
    """Whether only the names of hosts are written."""
    expression: str | None = None
    """A JEXL expression that is true for the hosts to be written."""


@dataclass(frozen=True, slots=True)
class HostDumpSettings:
    """The hosts and fields that are written."""

    homepages: bool = False
    hostnames: bool = False
    header: bool = True
    expression: Expression | None = None

    @classmethod
    def from_conf(cls, conf: Configuration, options: ReadHostDbOptions) -> Self:
        """Completes the options by hostdb.dump.*, hostdb.filter.expression, or ExpressionError."""
        text = options.expression or conf.get("hostdb.filter.expression")
        return cls(
            options.homepages or conf.get_boolean("hostdb.dump.homepages", False),
            options.hostnames or conf.get_boolean("hostdb.dump.hostnames", False),
            conf.get_boolean("hostdb.dump.field.header", True),
            compile_expression(text) if text else None,
        )

    @property
    def is_full(self) -> bool:
        """True if whole records are written."""
        return not self.homepages and not self.hostnames

    def selected(self, hosts: pl.DataFrame) -> pl.DataFrame:
        """Selects the hosts that are written."""
        if self.expression is not None:
            # As ReadHostDbMapper: a value that is no Boolean, and null, select nothing.
            found = [value is True for value in evaluate(hosts, self.expression)]
            hosts = hosts.filter(pl.Series(found, dtype=pl.Boolean))
        # After the expression, so that it also sees hosts without a home page.
        return hosts.filter(pl.col("homepage_url") != b"") if self.homepages else hosts

    def text(self, hosts: pl.DataFrame) -> str:
        """Returns the lines of hosts."""
        if not self.is_full:
            shown = decode_keys(hosts["homepage_url" if self.homepages else "key"])
            return "".join(f"{value}\t\n" for value in shown)
        return "".join(lines(hosts))


def lines(hosts: pl.DataFrame) -> pl.Series:
    """Formats each host as a line of all its fields."""
    failures = [pl.col("dns_failures"), pl.col("connection_failures")]
    found = hosts.select(
        key=decode_keys(hosts["key"]),
        counts=pl.concat_str([FIXED[name].cast(pl.String) for name in _COUNTS], separator="\t"),
        failures=pl.concat_str([*failures, pl.sum_horizontal(failures)], separator="\t"),
        score=map_distinct(hosts["score"], float_to_string, pl.String()),
        last_check=map_distinct(hosts["last_check"], date_time_to_string, pl.String()),
        homepage=decode_keys(hosts["homepage_url"]),
        metadata=_metadata(hosts),
    )
    return found.select(pl.concat_str(pl.all(), separator="\t") + "\n").to_series()


def _metadata(hosts: pl.DataFrame) -> pl.Series:
    """Formats the metadata of each host."""
    found = entries(hosts["metadata"], hosts["key"])
    if found.is_empty():
        return pl.Series([""]).new_from_index(0, len(hosts))
    shown = [
        f"{key.decode('utf-8', 'replace')}:{text_of(kind, value)}|||"
        for _, key, kind, value in found.iter_rows()
    ]
    texts = (
        found.select("row", text=pl.Series(shown)).group_by("row").agg(pl.col("text").str.join(""))
    )
    rows = hosts.select(pl.int_range(pl.len(), dtype=pl.UInt32).alias("row"))
    return rows.join(texts, on="row", how="left", maintain_order="left")["text"].fill_null("")


def readhostdb(
    hostdb: Path,
    output: Path,
    options: ReadHostDbOptions = ReadHostDbOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Writes the hosts of the HostDb as text to files in the new directory `output`.

    Raises StoreError (no HostDb, `output` exists), FormatError (damage), ExpressionError.
    """
    db, dump = HostDb(hostdb), HostDumpSettings.from_conf(context.conf, options)
    if dump.expression is not None:
        log.info("ReadHostDb: evaluating expression: %s", dump.expression.text)
    log.info("ReadHostDb: starting")
    require_absent(output)
    count, counters = len(db.require_parts()), Counters({WRITTEN: 0, LEFT_OUT: 0})
    with output_folder(output) as folder, context.progress("readhostdb", unit="hosts") as progress:

        def write_part(index: int) -> Counters:
            counted = Counters()
            # -m-: a job without a reducer (ReadHostDb.readHostDb), whose mappers write.
            with text_file(folder / f"part-m-{index:05d}", text_codec(context.conf)) as file:
                is_first = dump.header and dump.is_full
                for hosts in db.scan_part(index):
                    # ReadHostDbMapper writes it before the first host of a part: an empty part has
                    # none.
                    if is_first and len(hosts):
                        file.write(HEADER.encode())
                        is_first = False
                    chosen = dump.selected(hosts)
                    file.write(dump.text(chosen).encode())
                    counted.add(WRITTEN, len(chosen))
                    counted.add(LEFT_OUT, len(hosts) - len(chosen))
                    progress.advance(len(hosts))
            return counted

        for counted in for_each(write_part, range(count)):
            counters.merge(counted)
    log.info("ReadHostDb: finished")
    return counters
