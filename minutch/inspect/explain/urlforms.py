"""Asks each normalizer and filter about a URL, in the chains that all jobs run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from minutch.errors import UrlError
from minutch.inspect.explain.facts import FilterAnswer, NormalForm
from minutch.plugin import chains
from minutch.plugin.chains import URLFilters, URLNormalizers
from minutch.urls.parts import parse

SCOPES: Final = (
    chains.SCOPE_INJECT,
    chains.SCOPE_OUTLINK,
    chains.SCOPE_CRAWLDB,
    chains.SCOPE_FETCHER,
    chains.SCOPE_LINKDB,
    chains.SCOPE_GENERATE_HOST_COUNT,
    chains.SCOPE_PARTITION,
    chains.SCOPE_INDEXER,
    chains.SCOPE_DEFAULT,
)
"""Scopes in the order in which a URL meets them; the first one decides the name of a seed."""


def normal_forms(normalizers: Mapping[str, URLNormalizers], url: str) -> tuple[NormalForm, ...]:
    """Returns the normal form in each scope; scopes with the same outcome share one."""
    found: dict[tuple[str | None, str, tuple[str, ...]], list[str]] = {}
    for scope, chain in normalizers.items():
        found.setdefault(_form(chain, url), []).append(scope)
    return tuple(NormalForm(tuple(scopes), *form) for form, scopes in found.items())


def _form(normalizers: URLNormalizers, url: str) -> tuple[str | None, str, tuple[str, ...]]:
    result: str | None = url
    changed: list[str] = []
    try:
        parse(url)
        for normalizer, normal in normalizers.steps(url):
            if normal != result:
                changed.append(type(normalizer).__name__)
            result = normal
    except UrlError as exc:
        return None, str(exc), tuple(changed)
    return result, "", tuple(dict.fromkeys(changed))


def form_of(forms: Iterable[NormalForm], scope: str) -> NormalForm:
    """Returns the form in one scope."""
    return next(form for form in forms if scope in form.scopes)


def filter_answers(filters: URLFilters, url: str) -> tuple[FilterAnswer, ...]:
    """Returns the answers of the filters, up to the one that rejects the URL."""
    result = []
    before = url
    for url_filter, passed in filters.steps(url):
        result.append(
            FilterAnswer(type(url_filter).__name__, passed is not None, url_filter.explain(before))
        )
        before = before if passed is None else passed
    return tuple(result)
