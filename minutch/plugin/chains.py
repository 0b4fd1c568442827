"""Calls the extensions of a point one after the other, by row or by column, as Nutch does.

    URLFilters            urlfilter.order             each sees what the one before returned; None
                          ends it
    URLNormalizers        urlnormalizer.order[.SCOPE] the same, up to urlnormalizer.loop.count times
    URLExemptionFilters                               all have to agree; without any nothing is
                                                      exempted
    ScoringFilters        scoring.filter.order        each gets the value of the one before
    HtmlParseFilters      htmlparsefilter.order       until one fails
    SegmentMergeFilters                               all have to agree
    IndexingFilters       indexingfilter.order        until one leaves the document out

An unexpected exception in a plugin (a bug) becomes a PluginError that names the plugin's class.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

from minutch.conf import Configuration
from minutch.errors import MinutchError, PluginError
from minutch.hadoop.formats.javahash import hash_map_order, string_hash
from minutch.plugin.columns import by_distinct
from minutch.plugin.points import (
    HTMLMetaTags,
    HtmlParseFilter,
    IndexingFilter,
    Parse,
    ParseResult,
    ScoringFilter,
    SegmentMergeFilter,
    URLExemptionFilter,
    URLFilter,
    URLNormalizer,
)
from minutch.plugin.repository import Extension, PluginRepository, instance_of

if TYPE_CHECKING:
    import polars as pl
    from selectolax.lexbor import LexborHTMLParser

    from minutch.plugin.documents import Documents, Pages
    from minutch.records.crawldatum import CrawlDatum
    from minutch.records.document import NutchDocument
    from minutch.records.links import Inlinks
    from minutch.records.parsedata import ParseData, ParseText
    from minutch.records.protocol import Content
    from minutch.urls.rules import Untouched, Verdicts

log = logging.getLogger(__name__)

_T = TypeVar("_T")

SCOPE_DEFAULT = "default"
SCOPE_PARTITION = "partition"
SCOPE_GENERATE_HOST_COUNT = "generate_host_count"
SCOPE_FETCHER = "fetcher"
SCOPE_CRAWLDB = "crawldb"
SCOPE_LINKDB = "linkdb"
SCOPE_INJECT = "inject"
SCOPE_OUTLINK = "outlink"
SCOPE_INDEXER = "indexer"


def _call(method: Callable[..., _T], *args: Any) -> _T:
    """Calls a plugin's method; an unexpected exception becomes a PluginError."""
    try:
        return method(*args)
    except (MinutchError, KeyboardInterrupt):
        raise
    except Exception as exc:
        owner = type(getattr(method, "__self__", method)).__name__
        name = getattr(method, "__name__", "call")
        named = (getattr(one, "url", one) for one in args)
        subject = next((one for one in named if isinstance(one, str)), "")  # never a document
        raise PluginError(f"{owner}.{name}({subject}): {type(exc).__name__}: {exc}") from exc


class _Chain:
    """Extensions in their order. Each process makes its own: plugins' modules are known only to the
    process that loads them.
    """

    _made_of: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **keywords: Any) -> Self:
        self = super().__new__(cls)
        self._made_of = args, keywords
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _chain, (type(self), *self._made_of)


def _chain(kind: type[_Chain], args: tuple[Any, ...], keywords: dict[str, Any]) -> _Chain:
    return kind(*args, **keywords)


class URLFilters(_Chain):
    """The URL filters (org.apache.nutch.net.URLFilters)."""

    def __init__(self, conf: Configuration) -> None:
        self.filters = PluginRepository.of(conf).ordered(URLFilter, "urlfilter.order")

    def filter(self, url: str | None) -> str | None:
        """Returns the URL if all filters accept it, else None."""
        passed = url
        if url is not None:
            for _, result in self.steps(url):
                passed = result
        return passed

    def steps(self, url: str) -> Iterator[tuple[URLFilter, str | None]]:
        """Yields each filter that is called with its result; the last may reject the URL."""
        passed: str | None = url
        for url_filter in self.filters:
            if passed is None:
                return
            passed = _call(url_filter.filter, passed)
            yield url_filter, passed

    def filter_column(self, urls: pl.Series, *, distinct: bool = False) -> pl.Series:
        """Filters a column of strings, each distinct URL once; null where rejected.

        With `distinct` the caller allows that some are filtered more than once.
        """
        if self.filters and not distinct:
            return by_distinct(urls, lambda values: self.filter_column(values, distinct=True))
        return _in_turn(urls, [url_filter.filter_column for url_filter in self.filters])

    def explain_column(self, urls: pl.Series) -> pl.Series:
        """Returns for each URL (none null) the rule of the filter that rejects it; null for one
        that passes.
        """
        import polars as pl

        reasons = pl.repeat(None, len(urls), dtype=pl.String, eager=True)
        at, left = pl.int_range(len(urls), eager=True), urls
        for url_filter in self.filters:
            passed = _call(url_filter.filter_column, left)
            rejected = passed.is_null()
            asked = left.filter(rejected)
            said = _call(url_filter.explain_column, asked) if len(asked) else asked
            named = pl.select(
                pl.when(said != "").then(said).otherwise(pl.lit(type(url_filter).__name__))
            ).to_series()
            reasons = reasons.scatter(at.filter(rejected), named)
            at, left = at.filter(~rejected), passed.drop_nulls()
        return reasons.alias(urls.name)

    def verdicts(self) -> list[Verdicts] | None:
        """Returns the verdicts of each filter on plain URLs; None if a filter can't say."""
        return _known(f.verdicts() for f in self.filters)


class URLNormalizers(_Chain):
    """The URL normalizers of a scope (org.apache.nutch.net.URLNormalizers)."""

    def __init__(self, conf: Configuration, scope: str = SCOPE_DEFAULT) -> None:
        self.scope = scope
        repository = PluginRepository.of(conf)
        extensions = _normalizer_extensions(
            conf, repository.extensions(URLNormalizer.point_id), scope
        )
        self.normalizers = [instance_of(extension, URLNormalizer) for extension in extensions]
        self.loop_count = conf.get_int("urlnormalizer.loop.count")

    def normalize(self, url: str | None, scope: str | None = None) -> str | None:
        """Returns the normal form, None if a normalizer drops the URL. Raises UrlError."""
        normal = url
        if url is not None:
            for _, result in self.steps(url, scope):
                normal = result
        return normal

    def steps(
        self, url: str, scope: str | None = None
    ) -> Iterator[tuple[URLNormalizer, str | None]]:
        """Yields each normalizer that is called with its result. Raises UrlError."""
        scope = scope or self.scope
        normal: str | None = url
        before = normal
        for _ in range(self.loop_count):
            for normalizer in self.normalizers:
                if normal is None:
                    return
                # Each sees what the one before made.
                normal = _call(normalizer.normalize, normal, scope)
                yield normalizer, normal
            if normal == before:
                break
            before = normal

    def normalize_column(
        self, urls: pl.Series, scope: str | None = None, *, distinct: bool = False
    ) -> pl.Series:
        """Normalizes a column of strings, each distinct URL once; null where dropped or malformed.

        With `distinct` the caller allows that some are normalized more than once.
        """
        if self.normalizers and not distinct:
            return by_distinct(
                urls, lambda values: self.normalize_column(values, scope, distinct=True)
            )
        steps, result = [normalizer.normalize_column for normalizer in self.normalizers], urls
        for turn in range(self.loop_count):
            before, result = result, _in_turn(result, steps, scope or self.scope)
            if turn + 1 < self.loop_count and result.eq_missing(before).all():
                break
        return result

    def explain_column(self, urls: pl.Series) -> pl.Series:
        """Names for each URL (none null) the normalizer that changes it first; null: none does."""
        import polars as pl

        reasons = pl.repeat(None, len(urls), dtype=pl.String, eager=True)
        for normalizer in self.normalizers:
            normal = _call(normalizer.normalize_column, urls, self.scope)
            changed = (normal.ne_missing(urls) & reasons.is_null()).arg_true()
            reasons = reasons.scatter(changed, type(normalizer).__name__)
        return reasons.alias(urls.name)

    def untouched(self) -> list[Untouched] | None:
        """Returns the plain URLs that each normalizer leaves unchanged; None if one can't say."""
        return _known(normalizer.untouched(self.scope) for normalizer in self.normalizers)


def _known(said: Iterable[_T | None]) -> list[_T] | None:
    """Returns all answers, or None if one is missing."""
    found = list(said)
    known = [one for one in found if one is not None]
    return known if len(known) == len(found) else None


def _normalizer_extensions(
    conf: Configuration, extensions: Sequence[Extension], scope: str
) -> list[Extension]:
    """Selects the extensions of a scope: first those in the order property, then the others."""
    allowed = set(conf.get_text(f"urlnormalizer.scope.{scope}").split())
    chosen = {
        e.implementation.class_name: e for e in extensions if not allowed or allowed & set(e.names)
    }
    order = conf.get(f"urlnormalizer.order.{scope}", conf.get("urlnormalizer.order")) or ""
    first: dict[str, Extension] = {}
    for name in order.split():
        first |= {key: e for key, e in chosen.items() if name in e.names and key not in first}
    keys = list(chosen)
    others = [keys[i] for i in hash_map_order([string_hash(key) for key in keys])]  # as a HashMap's
    return [*first.values(), *(chosen[key] for key in others if key not in first)]


def _in_turn(urls: pl.Series, steps: Sequence[Callable[..., pl.Series]], *more: str) -> pl.Series:
    """Applies `steps` one after the other; a value that becomes null is not passed on."""
    import polars as pl

    results = urls
    for step in steps if len(urls) else ():
        alive = results.is_not_null()  # what one has dropped, none is asked about
        changed = _call(step, results if alive.all() else results.filter(alive), *more)
        results = changed if alive.all() else results.clone().scatter(alive.arg_true(), changed)
    return results.cast(pl.String).alias(urls.name)


class URLExemptionFilters(_Chain):
    """The exemption filters (org.apache.nutch.net.URLExemptionFilters)."""

    def __init__(self, conf: Configuration) -> None:
        extensions = PluginRepository.of(conf).extensions(URLExemptionFilter.point_id)
        self.filters = [instance_of(extension, URLExemptionFilter) for extension in extensions]

    def is_exempted(self, from_url: str | None, to_url: str | None) -> bool:
        """Returns True if an external link is kept although external links are ignored."""
        if not self.filters or from_url is None or to_url is None:
            return False
        return all(_call(f.filter, from_url, to_url) for f in self.filters)


class HtmlParseFilters(_Chain):
    """The HTML parse filters (org.apache.nutch.parse.HtmlParseFilters)."""

    def __init__(self, conf: Configuration) -> None:
        self.filters = PluginRepository.of(conf).ordered(HtmlParseFilter, "htmlparsefilter.order")

    def filter(
        self,
        content: Content,
        result: ParseResult,
        metatags: HTMLMetaTags,
        document: LexborHTMLParser,
    ) -> ParseResult:
        """Returns the result of all filters; after a failure, failed documents are dropped and the
        other filters are skipped.
        """
        for parse_filter in self.filters:
            result = _call(parse_filter.filter, content, result, metatags, document)
            if not result.is_success:
                result.drop_failures()
                return result
        return result


class IndexingFilters(_Chain):
    """The indexing filters (org.apache.nutch.indexer.IndexingFilters)."""

    def __init__(self, conf: Configuration) -> None:
        self.filters = PluginRepository.of(conf).ordered(IndexingFilter, "indexingfilter.order")

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        """Returns the document after all filters, None if one drops it."""
        found: NutchDocument | None = doc
        for indexing in self.filters:
            if found is None:
                return None
            found = _call(indexing.filter, found, parse, url, datum, inlinks)
        return found

    @staticmethod
    def filter_columns(
        indexing: IndexingFilter, documents: Documents, pages: Pages
    ) -> tuple[Documents, pl.Series | None]:
        """Applies one of the filters; returns the documents and which are kept (see
        `IndexingFilter.filter_columns`).

        If a filter's column method fails, the filter is applied document by document, so that only
        one fails.
        """
        if not indexing.overrides("filter_columns"):
            return documents, indexing.filter_columns(documents, pages)
        before = documents.copy()  # for the way back, if it fails half done
        try:
            return documents, indexing.filter_columns(documents, pages)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            log.warning(
                "%s works page by page: %s: %s",
                type(indexing).__name__,
                type(error).__name__,
                error,
            )
            return before, IndexingFilter.filter_columns(indexing, before, pages)


class ScoringFilters(_Chain):
    """The scoring filters (org.apache.nutch.scoring.ScoringFilters), with the methods of
    `points.ScoringFilter`.
    """

    def __init__(self, conf: Configuration) -> None:
        self.filters = PluginRepository.of(conf).ordered(ScoringFilter, "scoring.filter.order")

    def inject_score(self, url: str, datum: CrawlDatum) -> None:
        for scoring in self.filters:
            _call(scoring.inject_score, url, datum)

    def initial_score(self, url: str, datum: CrawlDatum) -> None:
        for scoring in self.filters:
            _call(scoring.initial_score, url, datum)

    def generator_sort_value(self, url: str, datum: CrawlDatum, init_sort: float) -> float:
        for scoring in self.filters:
            init_sort = _call(scoring.generator_sort_value, url, datum, init_sort)
        return init_sort

    def pass_score_before_parsing(self, url: str, datum: CrawlDatum, content: Content) -> None:
        for scoring in self.filters:
            _call(scoring.pass_score_before_parsing, url, datum, content)

    def pass_score_after_parsing(self, url: str, content: Content, parse: Parse) -> None:
        for scoring in self.filters:
            _call(scoring.pass_score_after_parsing, url, content, parse)

    def distribute_score_to_outlinks(
        self,
        from_url: str,
        parse_data: ParseData,
        targets: list[tuple[str, CrawlDatum]],
        adjust: CrawlDatum | None,
        all_count: int,
    ) -> CrawlDatum | None:
        for scoring in self.filters:
            adjust = _call(
                scoring.distribute_score_to_outlinks,
                from_url,
                parse_data,
                targets,
                adjust,
                all_count,
            )
        return adjust

    def outlink_score(self, parse_data: ParseData, kept: int, all_count: int) -> float | None:
        """Returns the score of every outlink of a page if all get the same, else None."""
        score: float | None = 0.0
        for scoring in self.filters:
            if score is not None:
                score = _call(scoring.outlink_score, parse_data, kept, all_count, score)
        return score

    def update_db_score(
        self, url: str, old: CrawlDatum | None, datum: CrawlDatum, inlinked: list[CrawlDatum]
    ) -> None:
        for scoring in self.filters:
            _call(scoring.update_db_score, url, old, datum, inlinked)

    def orphaned_score(self, url: str, datum: CrawlDatum) -> None:
        for scoring in self.filters:
            _call(scoring.orphaned_score, url, datum)

    def indexer_score(
        self,
        url: str,
        doc: NutchDocument,
        db_datum: CrawlDatum | None,
        fetch_datum: CrawlDatum,
        parse: Parse,
        inlinks: Inlinks | None,
        init_score: float,
    ) -> float:
        for scoring in self.filters:
            init_score = _call(
                scoring.indexer_score, url, doc, db_datum, fetch_datum, parse, inlinks, init_score
            )
        return init_score

    def indexer_score_columns(
        self, documents: Documents, pages: Pages, init: pl.Series
    ) -> pl.Series:
        for scoring in self.filters:
            init = _call(scoring.indexer_score_columns, documents, pages, init)
        return init

    # -- columns -----------------------------------------------------------------------------------

    def inject_score_columns(self, frame: pl.DataFrame) -> pl.DataFrame:
        for scoring in self.filters:
            frame = _call(scoring.inject_score_columns, frame)
        return frame

    def initial_score_columns(self, frame: pl.DataFrame) -> pl.DataFrame:
        for scoring in self.filters:
            frame = _call(scoring.initial_score_columns, frame)
        return frame

    def generator_sort_value_columns(self, frame: pl.DataFrame, init: pl.Series) -> pl.Series:
        for scoring in self.filters:
            init = _call(scoring.generator_sort_value_columns, frame, init)
        return init

    def update_db_score_columns(
        self, frame: pl.DataFrame, old: pl.DataFrame, inlinked: pl.DataFrame
    ) -> pl.DataFrame:
        for scoring in self.filters:
            frame = _call(scoring.update_db_score_columns, frame, old, inlinked)
        return frame

    def linked_score_columns(self, scores: pl.Series, inlinked: pl.DataFrame) -> pl.Series | None:
        """Scores linked entries by a column; also None if several filters change entries, as each
        starts from the old scores.
        """
        names = "update_db_score", "update_db_score_columns"
        changing = [scoring for scoring in self.filters if any(map(scoring.overrides, names))]
        if len(changing) > 1:
            return None
        return _call(changing[0].linked_score_columns, scores, inlinked) if changing else scores

    def orphaned_score_columns(self, frame: pl.DataFrame) -> pl.DataFrame:
        for scoring in self.filters:
            frame = _call(scoring.orphaned_score_columns, frame)
        return frame


class SegmentMergeFilters(_Chain):
    """The filters of mergesegs (org.apache.nutch.segment.SegmentMergeFilters)."""

    def __init__(self, conf: Configuration) -> None:
        extensions = PluginRepository.of(conf).extensions(SegmentMergeFilter.point_id)
        self.filters = [instance_of(extension, SegmentMergeFilter) for extension in extensions]

    def filter(
        self,
        url: str,
        generate: CrawlDatum | None,
        fetch: CrawlDatum | None,
        signature: CrawlDatum | None,
        content: Content | None,
        parse_data: ParseData | None,
        parse_text: ParseText | None,
        linked: Sequence[CrawlDatum],
    ) -> bool:
        """Returns True if the URL is kept in the merged segment."""
        records = generate, fetch, signature, content, parse_data, parse_text, linked
        return all(_call(merge_filter.filter, url, *records) for merge_filter in self.filters)
