"""Formats values for people, and makes sortable tables of them. Pure: values in, markup out.

Whatever comes from the web is text here: control characters are written out (`minutch.terminal`),
long ones are cut, directions of writing do not reach beyond it (`bdi`). Only http, https and ftp
become links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

from minutch.terminal import visible_line
from minutch.web.frame import Child, Markup, element, joined

e = element

MOST_ADDRESS: Final = 2000
"""Characters of a URL that can be followed."""
MOST_LETTERS: Final = 160
"""Characters of a text from the web that are shown."""
_SCHEMES: Final = ("http", "https", "ftp")
_NONE: Final = "–"
_SIZES: Final = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
STATUS_WORDS: Final = {
    "db_unfetched": "not yet fetched",
    "db_fetched": "fetched",
    "db_gone": "gone",
    "db_redir_temp": "redirects for now",
    "db_redir_perm": "moved for good",
    "db_notmodified": "fetched again, unchanged",
    "db_duplicate": "a duplicate of another page",
    "db_orphan": "no page links to it any more",
    "db_parse_failed": "fetched, not parsed",
    "fetch_success": "fetched",
    "fetch_retry": "failed, to be tried again",
    "fetch_redir_temp": "redirected for now",
    "fetch_redir_perm": "moved for good",
    "fetch_gone": "gone",
    "fetch_notmodified": "not modified since",
    "linked": "found by a redirect or a link",
    "injected": "injected",
}
CODE_WORDS: Final = {
    "200": "OK", "301": "Moved Permanently", "302": "Found", "303": "See Other",
    "304": "Not Modified", "307": "Temporary Redirect", "308": "Permanent Redirect",
    "400": "Bad Request", "401": "Unauthorized", "403": "Forbidden", "404": "Not Found",
    "410": "Gone", "429": "Too Many Requests", "500": "Internal Server Error", "502": "Bad Gateway",
    "503": "Service Unavailable", "504": "Gateway Timeout",
}  # fmt: skip
"""Names of status codes (RFC 9110, section 15; 429: RFC 6585) that crawlers see often."""

ENDING_WORDS: Final = {
    "exception": "no answer, or an error",
    "robots denied": "refused by robots.txt",
    "redir exceeded": "too many redirects",
    "proto not found": "no plugin for its protocol",
    "notfetching": "not asked for",
    "notmodified": "not modified",
    "notfound": "not found",
    "moved": "moved for good",
    "temp moved": "moved for now",
    "retry": "to be tried again",
    "wouldblock": "the host is busy",
    "blocked": "the host is blocked",
}
"""What Nutch's protocol statuses mean where there is no HTTP status; others say it themselves."""


def count(value: float | None) -> str:
    """Formats a number of things."""
    if value is None:
        return _NONE
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:,.2g}"


def short(value: float) -> str:
    """Formats a number at an axis: `250`, `1.5k`, `2M`."""
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"


def size(value: float | None) -> str:
    """Formats bytes, in units of 1000."""
    if value is None:
        return _NONE
    for unit in _SIZES:
        # 999.5 would round to 1000 of this unit.
        if abs(value) < 999.5 or unit == _SIZES[-1]:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 99.5 else f"{value:.3g} {unit}"
        value /= 1000
    raise AssertionError


def milliseconds(value: float | None) -> str:
    """Formats a short time span: `85 ms`, `1.2 s`."""
    if value is None:
        return _NONE
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:,.3g} s"


def span(seconds: float | None) -> str:
    """Formats a long time span: `45 s`, `12 min`, `3 h`, `30 days`."""
    if seconds is None:
        return _NONE
    for unit, name in ((86400, "day"), (3600, "h"), (60, "min")):
        if seconds >= unit:
            value = f"{seconds / unit:,.3g}" if seconds < 1000 * unit else f"{seconds / unit:,.0f}"
            return f"{value} {name}" + ("s" if name == "day" and value != "1" else "")
    return f"{seconds:.0f} s"


def moment(value: datetime | None) -> Markup:
    """Formats a time, in UTC."""
    if value is None:
        return joined(_NONE)
    return e("time", f"{value:%Y-%m-%d %H:%M}", datetime=f"{value:%Y-%m-%dT%H:%M:%SZ}")


def words(value: str | None) -> Markup:
    """Makes a text from anywhere safe to show."""
    if not value:
        return joined(_NONE)
    # Cut first: escapes of control characters are longer than these.
    shown = visible_line(value[: MOST_LETTERS + 1])
    return e(
        "bdi", shown if len(value) <= MOST_LETTERS else f"{visible_line(value[:MOST_LETTERS])}…"
    )


def address(value: str | None, label: Child = None) -> Markup:
    """Shows a URL, as a link if it is one of the web; `label` is what it says instead."""
    shown = joined(label) if label else words(value)
    if not value or len(value) > MOST_ADDRESS or not value.isprintable():
        return shown
    try:
        # Not javascript: or data:, which would run in this page's origin.
        scheme = urlsplit(value).scheme.lower()
    except ValueError:
        return shown
    if scheme not in _SCHEMES:
        return shown
    # Sites that were crawled learn nothing of who reads about them.
    return e("a", shown, href=value, rel="noopener noreferrer nofollow")


def several(values: Iterable[Child], kind: str = "") -> Markup:
    """Lists things below each other."""
    return e("ul", *(e("li", value) for value in values), class_=kind or None)


@dataclass(frozen=True)
class Column:
    """A column of a table: `show` makes the cell of a row, `by` its sort value (None: the text it
    shows).

    Numbers are aligned right. `minor` columns are left out in a narrow window.
    """

    title: str
    show: Callable[[Mapping[str, Any]], Child]
    by: Callable[[Mapping[str, Any]], float | None] | None = None
    minor: bool = False

    @property
    def kind(self) -> str | None:
        """The classes of its cells."""
        return (
            " ".join(name for name in ("number" * bool(self.by), "minor" * self.minor) if name)
            or None
        )


def number(
    title: str, name: str, shown: Callable[[float | None], str] = count, *, minor: bool = False
) -> Column:
    """Makes a column of numbers."""
    return Column(title, lambda row: shown(row[name]), lambda row: row[name], minor)


def text(title: str, name: str) -> Column:
    """Makes a column of texts."""
    return Column(title, lambda row: words(row[name]))


def url(title: str, name: str) -> Column:
    """Makes a column of addresses."""
    return Column(title, lambda row: address(row[name]))


def table(
    name: str,
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[Column],
    note: Child = None,
    *,
    stacked: bool = False,
    empty: str = "",
    live: str | None = None,
) -> Markup:
    """Makes a table. The first column names its rows; `note` says what is not shown, `empty` that
    there are none. `live` is the name under which a script keeps its rows up to date.

    In a narrow window the cells of a `stacked` row stand below each other: for columns of long
    texts.
    """
    head = e("tr", *map(_head, columns))
    shown = [_row(row, columns, stacked) for row in rows]
    if empty and not rows:
        shown = [e("tr", e("td", empty, colspan=str(len(columns)), class_="quiet"))]
    body = e("tbody", *shown, id=live, data_live=live is not None)
    whole = e(
        "table", e("caption", name), e("thead", head), body, class_="stacked" if stacked else None
    )
    # A wide table scrolls in its own frame, and needs the focus to do so by keyboard (WCAG 2.1.1).
    framed = e(
        "div", whole, class_="wide", tabindex="0", role="region", aria_label=f"Table: {name}"
    )
    return joined(framed, e("p", note, class_="note") if note else None)


def _head(column: Column) -> Markup:
    if not column.title:
        # A heading without text is an error to axe-core (empty-table-header).
        return e("td")
    return e("th", column.title, scope="col", class_=column.kind)


def _row(row: Mapping[str, Any], columns: Sequence[Column], stacked: bool) -> Markup:
    cells = []
    for at, one in enumerate(columns):
        value = one.by(row) if one.by else None
        marks = {"class_": one.kind, "data_value": None if value is None else f"{value:.15g}"}
        label = one.title if stacked else None
        head = e("th", one.show(row), scope="row", **marks) if not at else None
        cells.append(head or e("td", one.show(row), **marks, data_label=label))
    return e("tr", *cells)


# Says statuses and answers in words: those of Nutch's records, and those of HTTP. Pure.


def status(name: str) -> Markup:
    """Shows a status of Nutch's."""
    return words(STATUS_WORDS.get(name, name))


def code(name: str) -> Markup:
    """Shows the answer to a request: an HTTP status, or Nutch's word where there was none."""
    if name in CODE_WORDS:
        return e("bdi", e("strong", name), f" {CODE_WORDS[name]}")
    return words(ENDING_WORDS.get(name, name))
