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
from collections.abc import Mapping
from functools import lru_cache

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

from .datestyles import DEFAULT, HTTP, DateStyle, parse_date, read_styles

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
        self._add_types(documents, pages)
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

    def _add_types(self, documents: Documents, pages: Pages) -> None:
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
