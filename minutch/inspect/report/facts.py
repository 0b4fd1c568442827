"""Facts of a report: small tables of fixed columns, which it carries as JSON. Pure: no I/O.

    {"crawl": NAME, "made": MS, "tables": {NAME: {"columns": [NAME, ...], "rows": [[VALUE, ...],
    ...]}, ...}}

Times are epoch milliseconds there, lists are lists. What the columns hold stands at TABLES.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import polars as pl

from minutch import strictjson
from minutch.errors import FormatError
from minutch.inspect.query.pages import OUTCOMES
from minutch.web.cells import MOST_ADDRESS

TIME: Final = pl.Datetime("ms", "UTC")
_COUNT: Final = pl.Int64
_TEXT: Final = pl.String
_TEXTS: Final = pl.List(pl.String)

TABLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "totals": {"name": _TEXT, "value": _COUNT},
    "statuses": {"status": _TEXT, "urls": _COUNT},
    "rounds": {"segment": _TEXT, "started": TIME, "ended": TIME}
    | dict.fromkeys(OUTCOMES, _COUNT)
    | {"bytes": _COUNT, "median_ms": _COUNT, "parsed": _COUNT, "unparsed": _COUNT},
    "history": {"segment": _TEXT} | dict.fromkeys(OUTCOMES, _COUNT) | {"waiting": _COUNT},
    "due": {"start": TIME, "end": TIME, "new": _COUNT, "again": _COUNT, "gone": _COUNT},
    "hosts": {"host": _TEXT, "urls": _COUNT, "fetched": _COUNT, "unfetched": _COUNT, "gone": _COUNT}
    | {
        "redirects": _COUNT,
        "duplicates": _COUNT,
        "requests": _COUNT,
        "failed": _COUNT,
        "denied": _COUNT,
    }
    | {"bytes": _COUNT, "median_ms": _COUNT, "slowest_ms": _COUNT},
    "codes": {"code": _TEXT, "requests": _COUNT},
    "reasons": {"outcome": _TEXT, "reason": _TEXT, "requests": _COUNT, "example": _TEXT},
    "times": {"below_ms": _COUNT, "requests": _COUNT},
    "types": {"content_type": _TEXT, "pages": _COUNT, "bytes": _COUNT},
    "languages": {"lang": _TEXT, "pages": _COUNT},
    "charsets": {"charset": _TEXT, "pages": _COUNT},
    "sizes": {"below": _COUNT, "pages": _COUNT},
    "depth": {"depth": _COUNT, "urls": _COUNT, "fetched": _COUNT},
    "ages": {"below": _COUNT, "pages": _COUNT},
    "intervals": {"seconds": _COUNT, "urls": _COUNT},
    "changes": {"segment": _TEXT, "changed": _COUNT, "same": _COUNT},
    "audit": {
        "rule": _TEXT,
        "severity": _TEXT,
        "says": _TEXT,
        "findings": _COUNT,
        "example": _TEXT,
    },
    "duplicates": {"signature": _TEXT, "urls": _COUNT, "kept": _TEXT, "others": _TEXTS},
    "chains": {"hops": _COUNT, "addresses": _TEXTS, "end": _TEXT},
    "broken": {"url": _TEXT, "why": _TEXT, "links": _COUNT, "pages": _TEXTS, "anchors": _TEXTS},
    "robots": {"host": _TEXT, "urls": _COUNT, "example": _TEXT},
}
"""The tables and their columns.

    totals     `name` → `value`: see TOTALS
    audit      the rules of `minutch audit`, and how much each has found; null: the crawl can't
               tell. Empty where it has more URLs than minutch.memory has room for
    statuses   the CrawlDb's entries by status, Nutch's names
    rounds     what came of each segment; `bytes` are of contents, `median_ms` is of response times
    history    how many URLs had which outcome last when a round had ended; `waiting` are known and
               not yet asked for
    due        entries by date of their next fetch; the first row, without `start`, is due; the last
               one has no `end`
    hosts      those with the most URLs, the slowest, and those that fail most
    codes      answers by HTTP status, and by Nutch's protocol status where there is none
    times      requests that took less than `below_ms` and no less than the row before; null: any
               longer
    sizes      pages by stored bytes, in the same way; `ages` likewise, in seconds since the last
               fetch
    intervals  entries by fetch interval
    changes    of pages fetched again in a round: those whose content is another, and those where it
               is the same
    depth      as in the table `site`; null: not to be known
"""

TOTALS: Final = {
    "urls": "URLs known",
    "hosts": "hosts",
    "rounds": "rounds",
    "requests": "requests",
    "fetched": "pages fetched",
    "waiting": "not yet fetched",
    "due": "due now",
    "bytes": "bytes fetched",
    "gone": "gone",
    "duplicates": "duplicates",
    "links": "links in pages",
    "broken": "broken links",
    "denied": "refused by robots.txt",
    "median_ms": "median response",
    "p90_ms": "9 of 10 responses within",
    "p99_ms": "99 of 100 responses within",
    "refetched": "fetches of pages fetched before",
    "changed": "fetches that found a change",
    "duplicate_groups": "groups of equal pages",
    "chains": "chains of redirects",
}
"""The names in `totals`, and what they are to people. A name is missing where the crawl's files
can't tell.
"""


@dataclass(frozen=True)
class Facts:
    """The facts of a crawl at a time (`made`, epoch ms). Tables without facts are empty."""

    crawl: str
    made: int
    tables: Mapping[str, pl.DataFrame]

    def __getitem__(self, name: str) -> pl.DataFrame:
        """Returns a table."""
        found = self.tables.get(name)
        return empty(name) if found is None else found

    def total(self, name: str) -> int | None:
        """Returns a number of `totals`."""
        return dict(self["totals"].iter_rows()).get(name)

    @property
    def when(self) -> datetime:
        """The time of the report."""
        return datetime.fromtimestamp(self.made / 1000, UTC)


def empty(name: str) -> pl.DataFrame:
    """Returns a table without rows."""
    return pl.DataFrame(schema=dict(TABLES[name]))


def shaped(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Returns a table with its columns in order and with their types; missing ones are null, long
    texts are cut behind one character more than can be followed, which tells that they are.
    """
    columns = [
        (pl.col(column) if column in frame.columns else pl.lit(None)).cast(kind).alias(column)
        for column, kind in TABLES[name].items()
    ]
    cut = (
        pl.col(_TEXT).str.head(MOST_ADDRESS + 1),
        pl.col(_TEXTS).list.eval(pl.element().str.head(MOST_ADDRESS + 1)),
    )
    return frame.select(columns).with_columns(*cut)


def to_json(facts: Facts) -> str:
    """Returns the facts as JSON without `<`, fit for a script element of HTML."""
    tables = {
        name: {"columns": frame.columns, "rows": [list(row) for row in _plain(frame).iter_rows()]}
        for name, frame in facts.tables.items()
    }
    text = json.dumps(
        {"crawl": facts.crawl, "made": facts.made, "tables": tables}, separators=(",", ":")
    )
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


_NOT_FACTS: Final = (
    *(ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, OSError),
    *(RecursionError, pl.exceptions.PolarsError),
)


def from_json(text: str) -> Facts:
    """Reads what `to_json` wrote, in this or an older version; unknown tables and columns are left
    out.

    Raises FormatError for anything else.
    """
    try:
        found = strictjson.loads(text)
        tables = {
            name: _table(name, table) for name, table in found["tables"].items() if name in TABLES
        }
        facts = Facts(str(found["crawl"]), int(found["made"]), tables)
        _ = facts.when  # a time that calendars hold
        return facts
    except _NOT_FACTS as exc:
        raise FormatError(
            "the facts of a report", expected="tables as JSON", found=f"{exc}"[:200]
        ) from exc


def _table(name: str, found: Mapping[str, Any]) -> pl.DataFrame:
    columns = [str(column) for column in found["columns"]]
    kinds = {column: TABLES[name].get(column, pl.Null) for column in columns}
    stored = {column: pl.Int64 if kind == TIME else kind for column, kind in kinds.items()}
    values = [[row[at] for row in found["rows"]] for at in range(len(columns))]
    if any(len(row) != len(columns) for row in found["rows"]):
        raise ValueError(f"rows of {name} that have not {len(columns)} values")
    known = {
        column: pl.Series(column, list(values[at]), stored[column], strict=True)
        for at, column in enumerate(columns)
        if column in TABLES[name]
    }
    return shaped(name, pl.DataFrame(known))


def _plain(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col(TIME).dt.epoch("ms"))
