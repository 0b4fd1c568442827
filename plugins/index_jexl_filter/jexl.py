"""index-jexl-filter: keeps only documents for which the expression index.jexl.filter is true.

    status, fetchTime, modifiedTime, retries, interval, score, signature    of the fetch
    (crawl_fetch)
    url, text, title
    httpStatus.majorCode, .minorCode, .message                              of the parse, in spite
    of the name
    documentMeta, contentMeta, parseMeta                                    maps of values
    doc                                                                     the fields that the
    document has so far

A value that is there several times is a list. An expression that fails is not true.
Source: org.apache.nutch.indexer.jexl.JexlIndexingFilter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from minutch.conf import Configuration
from minutch.errors import ConfigError, ExpressionError
from minutch.expressions import compile_expression
from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum, status_name
from minutch.records.document import NutchDocument
from minutch.records.links import Inlinks
from minutch.records.metadata import Metadata

PROPERTY = "index.jexl.filter"


class JexlIndexingFilter(IndexingFilter):
    """Leaves documents out by an expression."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        text = conf.get(PROPERTY)
        if not text:
            raise ConfigError(
                f"The property {PROPERTY} must have a value when index-jexl-filter is used. "
                "You can use 'true' or 'false' to index all/none"
            )
        try:
            self.expression = compile_expression(text)
        except ExpressionError as exc:
            raise ConfigError(f"{PROPERTY}: {exc}") from exc

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        return doc if self.expression.matches(_variables(doc, parse, url, datum)) else None


def _variables(doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum) -> dict[str, object]:
    data = parse.data
    status = {
        "majorCode": data.status.major,
        "minorCode": data.status.minor,
        "message": data.status.message,
    }
    return {
        "status": status_name(datum.status),
        "fetchTime": datum.fetch_time,
        "modifiedTime": datum.modified_time,
        "retries": datum.retries,
        "interval": datum.fetch_interval,
        "score": datum.score,
        # StringUtil.toHexString.
        "signature": None if datum.signature is None else datum.signature.hex(),
        "url": url,
        "text": parse.text,
        "title": data.title,
        "httpStatus": status,
        "documentMeta": _values(doc.metadata),
        "contentMeta": _values(data.content_meta),
        "parseMeta": _values(data.parse_meta),
        "doc": {name: _single(field.values) for name, field in doc.fields.items()},
    }


def _values(metadata: Metadata) -> dict[str, object]:
    return {name: _single(values) for name, values in metadata.items()}


def _single(values: Sequence[object]) -> object:
    return values if len(values) != 1 else values[0]
