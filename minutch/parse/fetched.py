"""Pages parsed while they are fetched (fetcher.parse), in a process of their own as in the parse job."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import Self

from minutch.conf import Configuration
from minutch.parse.page import FetchedResult, PageParser
from minutch.parse.worker import WorkerPool, pool_settings
from minutch.records.content import Content


class FetchedTask:
    """The task of the workers: a pickled (Content, fetch time) in, a FetchedResult out."""

    def __init__(self, conf: Configuration, segment_name: str) -> None:
        self._parser = PageParser(conf, segment_name)

    def run(self, item: bytes) -> FetchedResult:
        return self._parser.parse_fetched(*pickle.loads(item))

    def finish(self, results: Sequence[FetchedResult]) -> list[FetchedResult]:
        return list(results)

    def fail(self, item: bytes, reason: str) -> FetchedResult:
        content, fetch_time = pickle.loads(item)
        return self._parser.fail_fetched(content, reason, fetch_time)


class FetchedParser:
    """Parses fetched pages, one at a time for each thread that asks; close it at the end."""

    def __init__(self, conf: Configuration, segment_name: str) -> None:
        self._pool: WorkerPool[FetchedResult] = WorkerPool(
            partial(FetchedTask, conf, segment_name), **pool_settings(conf)
        )

    def parse_fetched(self, content: Content, fetch_time: int) -> FetchedResult:
        """The records of a page that was fetched with success at `fetch_time` (ms)."""
        return self._pool.run(pickle.dumps((content, fetch_time)))

    def close(self) -> None:
        """End the workers."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
