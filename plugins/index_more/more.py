"""index-more: adds dates, length and type of a page.

    lastModified     the Last-Modified header
    date             the same, else when the page was last changed, else when it was fetched
    contentLength    the Content-Length header
    type             media type, its first part, its second (moreIndexingFilter.indexMimeTypeParts)
    title            the file name of the Content-Disposition header, if the document has no title

With moreIndexingFilter.mapMimeTypes types are replaced by those of contenttype-mapping.txt, or
these go into the field moreIndexingFilter.mapMimeTypes.field. Dates may be in any style of
date-styles.txt. Source: org.apache.nutch.indexer.more.MoreIndexingFilter.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.parse.mime import MimeUtil
from minutch.errors import ConfigError
from minutch.plugin.columns import map_distinct
from minutch.plugin.documents import Documents, Pages, content_type
from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import Date, NutchDocument
from minutch.records.links import Inlinks

# Parses dates in the styles of date-styles.txt: patterns of java.text.SimpleDateFormat, read
# leniently.
#
#     EEE day of the week (has no weight)   MMM name of the month   MM, dd, HH, mm, ss, SSS numbers
#     yyyy year   yy year of the last 80 or the next 20   zzz zone: GMT, EST, GMT+01:00, +0100   XXX
#                 zone: Z, +01:00
#     'T' text as it is
#
# Numbers that are too large go on counting (the 32nd of January is the 1st of February), as in
# Java. Source: java.text.SimpleDateFormat, org.apache.commons.lang3.time.DateUtils.parseDate,
# HttpDateFormat.PARSE_FORMAT.

HTTP: Final = "EEE, d MMM yyyy HH:mm:ss z"
"""The style of HTTP (RFC 9110, section 5.6.7), with any zone; tried before all others."""
DEFAULT: Final = (
    "EEE MMM dd HH:mm:ss yyyy", "EEE MMM dd HH:mm:ss yyyy zzz", "EEE MMM dd HH:mm:ss zzz yyyy",
    "EEE, MMM dd HH:mm:ss yyyy zzz", "EEE, dd MMM yyyy HH:mm:ss zzz",
    "EEE,dd MMM yyyy HH:mm:ss zzz", "EEE, dd MMM yyyy HH:mm:sszzz", "EEE, dd MMM yyyy HH:mm:ss",
    "EEE, dd-MMM-yy HH:mm:ss zzz", "yyyy/MM/dd HH:mm:ss.SSS zzz", "yyyy/MM/dd HH:mm:ss.SSS",
    "yyyy/MM/dd HH:mm:ss zzz", "yyyy/MM/dd", "yyyy.MM.dd HH:mm:ss", "yyyy-MM-dd HH:mm",
    "MMM dd yyyy HH:mm:ss. zzz", "MMM dd yyyy HH:mm:ss zzz", "dd.MM.yyyy HH:mm:ss zzz",
    "dd MM yyyy HH:mm:ss zzz", "dd.MM.yyyy; HH:mm:ss", "dd.MM.yyyy HH:mm:ss", "dd.MM.yyyy zzz",
    "yyyy-MM-dd'T'HH:mm:ssXXX",
)  # fmt: skip
"""The styles without a file."""

_MONTHS: Final = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
]  # fmt: skip
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_HOURS: Final = {
    **dict.fromkeys(("gmt", "utc", "ut", "z", "wet"), 0),
    "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7,
    "bst": 1, "west": 1, "cet": 1, "met": 1, "cest": 2, "mest": 2, "eet": 2, "eest": 3, "msk": 3,
    "jst": 9,
}  # fmt: skip
"""Zones by name: hours before UTC."""
_TOKEN: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|.", re.DOTALL)
_FIELDS: Final = {"y": "year", "d": "day", "H": "hour", "m": "minute", "s": "second", "S": "milli"}
_CENTURY_AHEAD: Final = 20
log = logging.getLogger(__name__)

STYLES, MAPPING = "date-styles.txt", "contenttype-mapping.txt"
LAST_MODIFIED, CONTENT_LENGTH, CONTENT_DISPOSITION = (
    "Last-Modified",
    "Content-Length",
    "Content-Disposition",
)
_FILE_NAMES = (
    re.compile(r"\bfilename=['\"]([^\"]+)", re.ASCII),
    re.compile(r"\bfilename=(\S+)\b", re.ASCII),
)


class DateStyle:
    """One pattern. Raises ValueError for letters that mean nothing here."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        parts = "".join(map(self._part, _TOKEN.finditer(pattern)))
        try:
            self._regex = re.compile(parts, re.IGNORECASE | re.ASCII)
        except re.error as exc:
            raise ValueError(f"a field twice in the date style {pattern!r}: {exc}") from exc

    def _part(self, token: re.Match[str]) -> str:  # noqa: PLR0911 - one return a case
        text, letter = token[0], token[2]
        if letter is None:
            return re.escape(text if token[1] is None else token[1].replace("''", "'") or "'")
        if letter == "E":
            return f"(?:{'|'.join([*_DAYS, *(day[:3] for day in _DAYS)])})"
        if letter == "M" and len(text) > 2:
            return f"(?P<name>{'|'.join([*_MONTHS, *(month[:3] for month in _MONTHS)])})"
        if letter in "zX":
            return r"(?P<zone>[a-z]{1,5}|(?:gmt|utc)?[+-]\d{1,2}:?\d{2}|(?:gmt|utc)[+-]\d{1,2})"
        if text == "yy":
            return r"(?P<short>\d+)"
        if letter == "M":
            return r"(?P<month>\d+)"
        if letter not in _FIELDS:
            raise ValueError(f"unknown letter {letter} in the date style {self.pattern!r}")
        return rf"\s*(?P<{_FIELDS[letter]}>\d{{1,9}})"

    def parse(self, text: str, now: datetime) -> int | None:
        """Milliseconds since the epoch; None if the text is not in this style."""
        match = self._regex.fullmatch(text)
        if match is None:
            return None
        found = match.groupdict()
        offset = _offset(found.get("zone"))
        if offset is None:
            return None
        number = {name: int(found.get(name) or 0) for name in ("hour", "minute", "second", "milli")}
        try:
            year = _year(found, now)
            month = int(found.get("month") or 1) - 1
            if name := found.get("name"):
                month = [month[:3] for month in _MONTHS].index(name.lower()[:3])
            start = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
            day = timedelta(days=int(found.get("day") or 1) - 1)
            clock = timedelta(
                hours=number["hour"], minutes=number["minute"], seconds=number["second"]
            )
            moment = start + day + clock - timedelta(minutes=offset)
        except (ValueError, OverflowError):
            return None
        return int(moment.timestamp()) * 1000 + number["milli"]


def _year(found: dict[str, str | None], now: datetime) -> int:
    if found.get("short"):
        year = int(found["short"] or 0)
        if year > 99:
            return year
        year += now.year - now.year % 100
        return year - 100 if year > now.year + _CENTURY_AHEAD else year
    return int(found.get("year") or 1970)


def _offset(zone: str | None) -> int | None:
    """Minutes before UTC; None for a zone that is not known."""
    text = (zone or "").lower()
    if not text:
        return 0
    if text in _HOURS:
        return _HOURS[text] * 60
    match = re.fullmatch(r"(?:gmt|utc)?([+-])(\d{1,2}):?(\d{2})?", text)
    if match is None:
        return None
    minutes = int(match[2]) * 60 + int(match[3] or 0)
    return minutes if match[1] == "+" else -minutes


def read_styles(text: str) -> list[DateStyle]:
    """Returns the styles of a file, one on each line; `#` begins a comment. Raises ValueError."""
    lines = (line.strip() for line in text.splitlines() if not line.startswith("#"))
    return [DateStyle(line) for line in lines if line]


def parse_date(text: str, styles: Sequence[DateStyle], now: int) -> int | None:
    """Returns the first style that fits, or None; `now` (ms) is for years of two digits."""
    moment = datetime.fromtimestamp(now / 1000, UTC)
    return next(
        (found for style in styles if (found := style.parse(text, moment)) is not None), None
    )


class MoreIndexingFilter(IndexingFilter):
    """Adds dates, length and type."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.mime = MimeUtil(conf)
        self.splits = conf.get_boolean("moreIndexingFilter.indexMimeTypeParts")
        self.mapping = _mapping(conf) if conf.get_boolean("moreIndexingFilter.mapMimeTypes") else {}
        self.mapped_field = conf.get("moreIndexingFilter.mapMimeTypes.field") or None
        self.styles = [DateStyle(HTTP), *_styles(conf)]
        self._time = lru_cache(maxsize=4096)(self._parse_time)

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        data = parse.data
        modified = self._modified(data.meta(LAST_MODIFIED), url)
        if modified is not None:
            doc.add("lastModified", Date(modified))
        unknown = datum.modified_time if datum.modified_time > 0 else datum.fetch_time
        doc.add("date", Date(unknown if modified is None else modified))
        length = _trimmed(data.meta(CONTENT_LENGTH) or "")
        if length:
            doc.add("contentLength", length)
        self._add_type(doc, content_type(datum, data), url)
        title = _file_name(data.meta(CONTENT_DISPOSITION) or "")
        if title is not None and doc.first("title") is None:
            doc.add("title", title)
        return doc

    def filter_columns(self, documents: Documents, pages: Pages) -> pl.Series | None:
        headers = pages.meta(LAST_MODIFIED)
        times = [
            self._modified(header, url) for header, url in zip(headers, pages.urls, strict=True)
        ]
        modified = pl.Series("date", times, dtype=pl.Int64)
        documents.add("lastModified", modified.cast(pl.Datetime("ms")))
        changed, fetched = pages.fetch["modified_time"], pages.fetch["fetch_time"]
        unknown = changed.zip_with(changed > 0, fetched)
        documents.add(
            "date", modified.zip_with(modified.is_not_null(), unknown).cast(pl.Datetime("ms"))
        )
        length = map_distinct(pages.meta(CONTENT_LENGTH), lambda text: _trimmed(text) or None)
        documents.add("contentLength", length)
        names = self.mime.stated_column(pages.content_types(), pages.urls)
        if self.mapped_field:
            documents.add(self.mapped_field, map_distinct(names, self.mapping.get))
        distinct = names.drop_nulls().unique()
        lists = pl.Series(
            "type", [self._values(name) for name in distinct], dtype=pl.List(pl.String)
        )
        table = pl.DataFrame({"name": distinct, "type": lists})
        documents.add(
            "type",
            names.to_frame("name").join(table, on="name", how="left", maintain_order="left")[
                "type"
            ],
        )
        titles = map_distinct(pages.meta(CONTENT_DISPOSITION), _file_name)
        if titles.null_count() < len(titles):
            known = documents.column("title")
            documents.add(
                "title", titles if known is None else titles.set(known.is_not_null(), None)
            )
        return None

    # -- dates -------------------------------------------------------------------------------------

    def _modified(self, header: str | None, url: str) -> int | None:
        if header is None:
            return None
        time = self._time(header)
        if time is None:
            log.warning("%s: can't parse erroneous date: %s", url, header)
        return None if time is None or time < 0 else time

    def _parse_time(self, header: str) -> int | None:
        return parse_date(header, self.styles, self.clock.now())

    # -- types -------------------------------------------------------------------------------------

    def _add_type(self, doc: NutchDocument, declared: str | None, url: str) -> None:
        name = self.mime.stated(declared, url)
        if name is None:
            return
        mapped = self.mapping.get(name)
        if mapped is not None and self.mapped_field:
            doc.add(self.mapped_field, mapped)
        for value in self._values(name):
            doc.add("type", value)

    def _values(self, name: str) -> list[str]:
        """Returns the values of the field `type`."""
        shown = name if self.mapped_field else self.mapping.get(name, name)
        return [shown, *(part for part in shown.split("/") if part)] if self.splits else [shown]


def _styles(conf: Configuration) -> list[DateStyle]:
    if conf.resource(STYLES) is None:
        return [DateStyle(pattern) for pattern in DEFAULT]
    try:
        return read_styles(conf.read_resource(STYLES))
    except ValueError as exc:
        raise ConfigError(f"{conf.resource(STYLES)}: {exc}") from exc


def _mapping(conf: Configuration) -> dict[str, str]:
    """Reads which types are replaced by which."""
    mapping: dict[str, str] = {}
    for number, line in enumerate(conf.read_resource(MAPPING).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        target, *types = line.strip().split("\t")
        if not types:
            log.warning(
                "%s, line %d: expected a type, a tab, and the types that become it", MAPPING, number
            )
        mapping |= {name.strip(): target.strip() for name in types}
    return mapping


def _trimmed(text: str) -> str:
    return text.strip("".join(map(chr, range(33))))


def _file_name(header: str) -> str | None:
    """Returns the file name in a Content-Disposition header."""
    return next((match[1] for pattern in _FILE_NAMES if (match := pattern.search(header))), None)
