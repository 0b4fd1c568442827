"""What came of asking for a page, as people see it: the one home of that decision. Pure."""

from __future__ import annotations

from typing import Final

import polars as pl

from minutch.records import protocol as codes
from minutch.records.protocol import CODE_NAMES

OUTCOMES: Final = ("fetched", "unchanged", "redirected", "gone", "denied", "failed")
"""What came of asking for a page: its content, the word that it has not changed (304), another
address, the word that it is not there, robots.txt's no, none of these (it is tried again)."""
NOT_ASKED: Final = CODE_NAMES[codes.NOTFETCHING]
_DENIED: Final = CODE_NAMES[codes.ROBOTS_DENIED]
_FETCH_STATUSES: Final = {
    "fetch_success": "fetched",
    "fetch_notmodified": "unchanged",
    "fetch_redir_temp": "redirected",
    "fetch_redir_perm": "redirected",
    "fetch_gone": "gone",
}
_STATUS, _PROTOCOL = (pl.col(name).cast(pl.String) for name in ("status", "protocol_status"))


def is_fetch() -> pl.Expr:
    """Returns whether a row of `pages` is a fetch, and no link that a redirect found."""
    return (_STATUS != "linked") | _PROTOCOL.eq_missing(NOT_ASKED)


def outcome() -> pl.Expr:
    """Returns the `outcome` of a fetch by its `status` and `protocol_status`."""
    found = _STATUS.replace_strict(_FETCH_STATUSES, default="failed", return_dtype=pl.String)
    denied = pl.when(_PROTOCOL.eq_missing(_DENIED)).then(pl.lit("denied")).otherwise(found)
    return denied.cast(pl.Enum(OUTCOMES)).alias("outcome")
