"""Decides plain URLs by one automaton for all normalizers and filters, so that only the others
reach the plugins.

Most URLs of a crawl are normal, and rules decide most of them by a few characters. One automaton
tells those in one pass over their bytes (`minutch.urls.plainautomaton`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from threading import Lock
from typing import Any, Final

import numpy as np
import polars as pl

from minutch.kernels.arrow import from_series
from minutch.kernels.sieve import ASK, REJECT, sift_column
from minutch.plugin.chains import URLFilters, URLNormalizers
from minutch.urls.plainautomaton import PlainUrlAutomaton

_FEW: Final = 1 << 11
"""URLs that are asked about at once: for fewer an automaton is not worth making."""

Codes = np.ndarray[Any, np.dtype[np.int8]]


class UrlShortcut:
    """The automaton of some normalizers and filters, for several threads; it is extended while it
    is used.
    """

    def __init__(self, normalizers: URLNormalizers | None, filters: URLFilters | None) -> None:
        self._normalizers, self._filters = normalizers, filters
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return UrlShortcut, (self._normalizers, self._filters)

    def settle(
        self, urls: pl.Series, ask: Callable[[pl.Series], pl.Series]
    ) -> tuple[pl.Series, int]:
        """Returns the `urls` (String) that pass, normalized, null for the others; `ask` decides
        those that the automaton can't.

        Also returns the number of URLs that filters reject without being asked.
        """
        decisions = self._decisions(urls) if len(urls) >= _FEW and not urls.null_count() else None
        if decisions is None:
            return ask(urls), 0
        asked, rejected = decisions == ASK, decisions == REJECT
        if asked.all():
            return ask(urls), 0
        count = int(np.count_nonzero(rejected))
        passed = pl.select(pl.when(pl.Series(~rejected)).then(urls)).to_series() if count else urls
        if asked.any():
            answers = ask(urls.filter(pl.Series(asked))).gather(np.maximum(np.cumsum(asked) - 1, 0))
            passed = answers.zip_with(pl.Series(asked), passed)
        return passed.alias(urls.name), count

    def _decisions(self, urls: pl.Series) -> Codes | None:
        """Returns KEEP, REJECT or ASK for each URL; None if nothing can be decided."""
        with self._lock:
            automaton = self._automaton
        if automaton is None:
            return None
        strings, decisions = from_series(urls), np.empty(len(urls), np.int8)
        row = 0
        while (row := sift_column(strings.column, row, decisions, automaton.rules)) >= 0:
            with self._lock:
                automaton.learn(urls[row].encode())
        return decisions

    @cached_property
    def _automaton(self) -> PlainUrlAutomaton | None:
        normalizers = self._normalizers.untouched() if self._normalizers is not None else []
        filters = self._filters.verdicts() if self._filters is not None else []
        return (
            None
            if normalizers is None or filters is None
            else PlainUrlAutomaton.of(normalizers, filters)
        )
