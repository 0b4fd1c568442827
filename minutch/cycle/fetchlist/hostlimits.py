"""Evaluates the HostDb's expressions for pages that are due: the limit of each host, and its pause.
No I/O.

    generate.max.count.expr     replaces generate.max.count; 0 or less: no limit
    generate.fetch.delay.expr   ms between two requests to the host, for the fetcher, in
                                `_variableFetchDelay_`

Both are evaluated for each host that has pages due and a record; `variables` has the names they
know, and `conf` is the configuration. Any number will do, rounded half up (Nutch takes a Double
alone, and with pages of equal score goes on with the numbers of the host before where a host has no
record).

Source: org.apache.nutch.crawl.Generator.SelectorReducer.
"""

from __future__ import annotations

import logging
import math
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.conf import Configuration
from minutch.cycle.fetch.frontier.queueitems import VARIABLE_DELAY_KEY
from minutch.errors import ExpressionError
from minutch.expressions import Expression, compile_expression
from minutch.hadoop.formats.writables import LongWritable, MapWritable
from minutch.records.rawmap import merge
from minutch.terminal import counted, visible_line
from minutch.urls.hostcolumns import host_names
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.matching import evaluate

log = logging.getLogger(__name__)

MAX_COUNT_PROPERTY: Final = "generate.max.count.expr"
DELAY_PROPERTY: Final = "generate.fetch.delay.expr"

Ints = NDArray[np.int64]
_LONGEST: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Expressions:
    """The two expressions; None where there is none."""

    max_count: Expression | None = None
    delay: Expression | None = None
    variables: Mapping[str, object] = field(default_factory=dict)
    """Values that the expressions know besides those of the host."""

    @classmethod
    def from_conf(cls, conf: Configuration) -> Expressions:
        """Reads and compiles the properties. Raises ExpressionError, which names the property."""
        return cls(
            _compiled(conf, MAX_COUNT_PROPERTY), _compiled(conf, DELAY_PROPERTY), {"conf": conf}
        )


def _compiled(conf: Configuration, name: str) -> Expression | None:
    text = conf.get_trimmed(name)
    try:
        return compile_expression(text) if text else None
    except ExpressionError as exc:
        raise ExpressionError(f"{name}: {exc}") from exc


def _nothing_known() -> pl.DataFrame:
    return pl.DataFrame(schema={"host": pl.UInt64, "max_count": pl.Int64, "delay": pl.Int64})


@dataclass(slots=True)
class HostLimits:
    """The numbers of hosts by a hash of their names: `host`, `max_count`, `delay`, null where an
    expression gives none. They are read when some are asked for, those of all hosts that were noted
    until then: not all pages that are due are in memory at once.
    """

    hosts: Callable[[], Iterable[pl.DataFrame]]
    """Reads all hosts, in tables of HOSTDB_SCHEMA."""
    expressions: Expressions
    _table: pl.DataFrame = field(default_factory=_nothing_known)
    _noted: pl.Series = field(default_factory=lambda: pl.Series("host", [], pl.UInt64))
    _seed: int = field(default_factory=lambda: secrets.randbits(62))
    _lock: Lock = field(default_factory=Lock)

    @property
    def limits_counts(self) -> bool:
        """True if an expression limits the pages of hosts."""
        return self.expressions.max_count is not None

    def hashes(self, urls: pl.Series) -> pl.Series:
        """Returns a hash of each URL's host; null for what is no URL."""
        return self._hashed(host_names(urls))

    def _hashed(self, names: pl.Series) -> pl.Series:
        # A seed nobody knows: hosts can't be named so that their hashes are equal.
        return names.hash(self._seed).set(names.is_null(), None).alias("host")

    def note(self, hosts: pl.Series) -> None:
        """Notes hosts whose numbers will be asked for, by their hashes."""
        found = hosts.drop_nulls().unique()
        with self._lock:
            self._noted = pl.concat([self._noted, found]).unique()

    def learn(self, pages: Sequence[pl.DataFrame]) -> None:
        """Notes the hosts of these pages."""
        for table in pages:
            self.note(self.hashes(decode_keys(table["key"])))

    def known(self, hosts: pl.Series) -> pl.DataFrame:
        """Returns the numbers of each host, by hashes of hosts that were noted. Raises
        FormatError.
        """
        self.read()
        return hosts.to_frame().join(self._table, on="host", how="left", maintain_order="left")

    def read(self) -> None:
        """Reads the numbers of all hosts that were noted. Raises FormatError."""
        wanted = self._noted.to_frame().join(self._table, on="host", how="anti")
        self._noted = self._noted.clear()
        if not len(wanted):
            return
        tables = [_nothing_known()]
        expressions = self.expressions
        for frame in self.hosts():
            host = self._hashed(decode_keys(frame["key"]))
            is_wanted = host.is_in(wanted["host"].implode())
            mine = frame.filter(is_wanted)
            max_count = _numbers(
                mine, expressions.max_count, MAX_COUNT_PROPERTY, expressions.variables
            )
            delay = _numbers(mine, expressions.delay, DELAY_PROPERTY, expressions.variables)
            numbers = [max_count.alias("max_count"), delay.alias("delay")]
            tables.append(pl.DataFrame([host.filter(is_wanted), *numbers]))
        found = pl.concat(tables).unique("host", keep="last")
        self._table = pl.concat([self._table, wanted.join(found, on="host", how="left")])

    def max_counts(self, urls: pl.Series, default: int) -> Ints | None:
        """Returns the limit of pages of each URL's host in a segment; None if all are `default`."""
        if not self.limits_counts:
            return None
        counts = self.known(self.hashes(urls))["max_count"]
        found: Ints = counts.fill_null(default).to_numpy()
        return found

    def with_delays(self, entries: pl.DataFrame) -> pl.DataFrame:
        """Returns the entries (CRAWLDB_SCHEMA, more columns may follow) with the pauses of their
        hosts in their metadata.
        """
        delays = self.known(self.hashes(decode_keys(entries["key"])))["delay"]
        if delays.null_count() == len(delays):
            return entries
        pairs = pl.DataFrame({"metadata": entries["metadata"], "delay": delays})
        # Most entries have equal metadata: each pair is written once.
        distinct = pairs.unique()
        put = [_put(*pair) for pair in distinct.iter_rows()]
        known = distinct.with_columns(put=pl.Series(put, dtype=pl.Binary))
        found = pairs.join(
            known, on=("metadata", "delay"), how="left", nulls_equal=True, maintain_order="left"
        )
        return entries.with_columns(metadata=found["put"])


def _put(metadata: bytes | None, delay: int | None) -> bytes | None:
    if delay is None:
        return metadata
    return merge(metadata, MapWritable({VARIABLE_DELAY_KEY: LongWritable(delay)}).to_bytes())


def _numbers(
    hosts: pl.DataFrame, expression: Expression | None, name: str, variables: Mapping[str, object]
) -> pl.Series:
    """Returns the value of an expression for each host, as a whole number, or null."""
    if expression is None:
        return pl.Series([None], dtype=pl.Int64).new_from_index(0, len(hosts))
    numbers = list(_rounded(evaluate(hosts, expression, variables)))
    missing = numbers.count(None)
    if missing:
        first = decode_keys(hosts["key"])[numbers.index(None)]
        hosts_ = counted(missing, "hosts")
        log.error("%s: no number for %s, such as %s", name, hosts_, visible_line(first))
    return pl.Series(numbers, dtype=pl.Int64)


def _rounded(values: Iterable[object]) -> Iterator[int | None]:
    """Math.round, half up; None for what is no number."""
    for value in values:
        # Bool is an int to Python.
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            yield None
        elif isinstance(value, float) and math.isinf(value):
            # Math.round saturates.
            yield _LONGEST if value > 0 else -_LONGEST - 1
        else:
            yield max(
                -_LONGEST - 1,
                min(_LONGEST, value if isinstance(value, int) else math.floor(value + 0.5)),
            )
