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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.conf import Configuration
from minutch.cycle.fetch.frontier.queueitems import VARIABLE_DELAY_KEY
from minutch.cycle.hostdb.variables import evaluate
from minutch.errors import ExpressionError
from minutch.expressions import Expression, compile_expression
from minutch.hadoop.formats.writables import LongWritable, MapWritable
from minutch.records.rawmap import merge
from minutch.terminal import counted, visible_line
from minutch.urls.hostcolumns import host_names
from minutch.work.tables.frame import decode_keys

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
    return pl.DataFrame(schema={"host": pl.String, "max_count": pl.Int64, "delay": pl.Int64})


@dataclass(slots=True)
class HostLimits:
    """The numbers of hosts: `host`, `max_count`, `delay`, null where an expression gives none. They
    are learned as pages of the hosts turn up: not all that are due are in memory at once.
    """

    hosts: Callable[[], Iterable[pl.DataFrame]]
    """Reads all hosts, in tables of HOSTDB_SCHEMA."""
    expressions: Expressions
    table: pl.DataFrame = field(default_factory=_nothing_known)

    @property
    def limits_counts(self) -> bool:
        """True if an expression limits the pages of hosts."""
        return self.expressions.max_count is not None

    def learn(self, pages: Sequence[pl.DataFrame]) -> None:
        """Reads the numbers of the hosts of these pages. Raises FormatError."""
        names = [host_names(decode_keys(table["key"])).drop_nulls().unique() for table in pages]
        wanted = pl.concat([pl.Series("host", [], pl.String), *names]).unique().to_frame()
        wanted = wanted.join(self.table, on="host", how="anti")
        if not len(wanted):
            return
        tables = [_nothing_known()]
        expressions = self.expressions
        for frame in self.hosts():
            mine = frame.filter(decode_keys(frame["key"]).is_in(wanted["host"].implode()))
            tables.append(
                pl.DataFrame(
                    {
                        "host": decode_keys(mine["key"]),
                        "max_count": _numbers(
                            mine, expressions.max_count, MAX_COUNT_PROPERTY, expressions.variables
                        ),
                        "delay": _numbers(
                            mine, expressions.delay, DELAY_PROPERTY, expressions.variables
                        ),
                    }
                )
            )
        found = pl.concat(tables).unique("host", keep="last")
        self.table = pl.concat([self.table, wanted.join(found, on="host", how="left")])

    def max_counts(self, urls: pl.Series, default: int) -> Ints | None:
        """Returns the limit of pages of each URL's host in a segment; None if all are `default`."""
        if not self.limits_counts:
            return None
        found: Ints = self._of(urls)["max_count"].fill_null(default).to_numpy()
        return found

    def with_delays(self, entries: pl.DataFrame) -> pl.DataFrame:
        """Returns the entries (CRAWLDB_SCHEMA, more columns may follow) with the pauses of their
        hosts in their metadata.
        """
        delays = self._of(decode_keys(entries["key"]))["delay"]
        if delays.null_count() == len(delays):
            return entries
        pairs = pl.DataFrame({"metadata": entries["metadata"], "delay": delays})
        distinct = pairs.unique()
        put = [_put(*pair) for pair in distinct.iter_rows()]
        known = distinct.with_columns(put=pl.Series(put, dtype=pl.Binary))
        found = pairs.join(
            known, on=("metadata", "delay"), how="left", nulls_equal=True, maintain_order="left"
        )
        return entries.with_columns(metadata=found["put"])

    def _of(self, urls: pl.Series) -> pl.DataFrame:
        hosts = host_names(urls).alias("host").to_frame()
        return hosts.join(self.table, on="host", how="left", maintain_order="left")


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
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            yield None
        elif isinstance(value, float) and math.isinf(value):
            yield _LONGEST if value > 0 else -_LONGEST - 1
        else:
            yield max(
                -_LONGEST - 1,
                min(_LONGEST, value if isinstance(value, int) else math.floor(value + 0.5)),
            )
