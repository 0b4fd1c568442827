"""Jobs that read many small segments: what a table costs, the segments have together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from minutch.cycle.crawldb.updatedb import updatedb
from minutch.cycle.index.indexing import index
from minutch.cycle.linkdb.invertlinks import invertlinks
from minutch.cycle.segment.mergesegs import mergesegs
from minutch.work.tables import parallel
from tests.cycle.segment.test_compaction import URLS, History, job
from tests.support.examples import few

JOBS: dict[str, Callable[[Path, list[Path]], object]] = {
    "updatedb": lambda out, paths: updatedb(out / "crawldb", paths, context=job()),
    "invertlinks": lambda out, paths: invertlinks(out / "linkdb", paths, context=job()),
    "index": lambda out, paths: index(out.parent / "crawldb", paths, context=job()),
    "mergesegs": lambda out, paths: mergesegs(out / "merged", paths, context=job()),
}


@pytest.mark.parametrize("name", few(JOBS, 2))
def test_threads_do_not_grow_with_the_segments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A group of files is read by as many threads as one: by so many tables more it is slower."""
    made = 0

    def pool(*args: Any, **options: Any) -> Any:
        nonlocal made
        made += 1
        return executor(*args, **options)

    executor = parallel.ThreadPoolExecutor
    monkeypatch.setattr(parallel, "ThreadPoolExecutor", pool)
    monkeypatch.setattr(parallel, "workers", lambda: 2)
    monkeypatch.chdir(tmp_path)  # where the dummy writer writes
    history = History(tmp_path, [dict.fromkeys(range(len(URLS)), "fetched")] * 25)
    paths = sorted(history.segments.iterdir())
    counts = []
    for number, some in enumerate((paths[:5], paths)):
        made, out = 0, tmp_path / str(number)
        out.mkdir()
        JOBS[name](out, some)
        counts.append(made)
    assert counts[0] == counts[1] > 0
