"""A process that goes on: what jobs leave behind in it, and what their work costs, round after
round. Operations and objects are counted, not seconds and bytes.
"""

from __future__ import annotations

import atexit
import gc
import logging
import shutil
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from itertools import count
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.crawldb.dedup import dedup
from minutch.cycle.crawldb.updatedb import updatedb
from minutch.cycle.fetchlist.generate import generate
from minutch.cycle.fetchlist.selector import GenerateOptions
from minutch.cycle.segment.store import Segment
from minutch.hadoop.formats.javahash import string_hash
from minutch.hadoop.formats.writables import LongWritable, MapWritable, Text
from minutch.job import JobContext
from minutch.plugin.chains import ScoringFilters, URLFilters
from minutch.plugin.repository import PluginRepository
from minutch.records import crawldatum as codes
from minutch.records.crawldatum import CrawlDatum
from minutch.records.protocol import MOVED, SUCCESS, ProtocolStatus
from minutch.records.rawmap import merge
from tests.support.crawldbs import DAY, NOW, context, read_db, write_db, write_segment

PARTS = 3
SETTINGS = {
    "plugin.includes": "urlfilter-regex|urlnormalizer-basic|scoring-opic",
    "mapreduce.job.reduces": str(PARTS),
    "db.fetch.interval.default": "60",
}
STATUS = Text("_pst_")


def operations(work: Callable[[], object]) -> int:
    """The calls of Python and C functions that `work` makes, in this thread and those it starts."""
    made = count()

    def seen(frame: object, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            next(made)

    threading.setprofile(seen)
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return next(made)


def kept() -> dict[str, int]:
    """The sizes of all that could grow in a process: of containers of modules and classes, too."""
    gc.collect()
    objects = gc.get_objects()
    found = {
        "repositories": sum(isinstance(one, PluginRepository) for one in objects),
        "configurations": sum(isinstance(one, Configuration) for one in objects),
        "threads": threading.active_count(),
        "files": sum(1 for _ in Path("/proc/self/fd").iterdir()),
        "modules": len(sys.modules),
        "handlers": len(logging.getLogger().handlers),
        "loggers": len(logging.Logger.manager.loggerDict),
        "at exit": atexit._ncallbacks(),
        "warnings": len(warnings.filters),
    }
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0].startswith(("minutch", "plugins")):
            owners = [(name, vars(module))]
            owners += [
                (f"{name}.{n}", vars(v)) for n, v in vars(module).items() if _is_own(v, name)
            ]
            for owner, values in owners:
                found |= {
                    f"{owner}.{one}": len(value)
                    for one, value in list(values.items())
                    if isinstance(value, dict | list | set) and one != "__warningregistry__"
                }
    return found


def _is_own(value: object, module: str) -> bool:
    return isinstance(value, type) and value.__module__ == module


class Life:
    """Rounds of generate, a fetch that never changes its mind, updatedb and dedup."""

    def __init__(self, folder: Path, pages: int) -> None:
        self.folder, self.number = folder, 0
        self.conf = context(SETTINGS).conf
        self.urls = [f"http://h{i % 7}.example/{i}" for i in range(pages)]
        write_db(
            folder / "db",
            ((u, CrawlDatum(codes.STATUS_DB_UNFETCHED, 60)) for u in self.urls),
            parts=PARTS,
        )

    def context(self, now: int) -> JobContext:
        """As a step of a crawl has it, with a configuration of its own."""
        return JobContext(self.conf.with_values({}), FakeClock(now), StringIO(), StringIO())

    def round(self) -> None:
        """One round, a day after the one before."""
        self.number += 1
        now = NOW + self.number * DAY
        made = generate(
            self.folder / "db",
            self.folder / "segments",
            GenerateOptions(filtering=True, normalize=True),
            context=self.context(now),
        )
        (path,) = made.segments
        listed = dict(Segment(path).records("crawl_generate"))
        assert sorted(map(str, listed)) == sorted(self.urls)
        write_segment(
            path, ((str(url), self._fetched(datum, now)) for url, datum in listed.items())
        )
        updatedb(self.folder / "db", [path], context=self.context(now))
        if self.number % 10 == 1:
            dedup(self.folder / "db", context=self.context(now))
        shutil.rmtree(path)

    def _fetched(self, datum: CrawlDatum, now: int) -> CrawlDatum:
        """A page, or a redirect, whose status is another one in each round."""
        moved = datum.fetch_interval and string_hash(str(self.number)) % 2
        status = ProtocolStatus(MOVED if moved else SUCCESS, [f"http://t/{self.number:06}"], now)
        fetched = datum.copy()
        fetched.status = codes.STATUS_FETCH_REDIR_PERM if moved else codes.STATUS_FETCH_SUCCESS
        fetched.fetch_time = now
        fetched.metadata[STATUS] = status
        return fetched

    def check(self) -> None:
        """All pages are as this round left them."""
        for datum in read_db(self.folder / "db").values():
            status = datum.metadata[STATUS]
            assert isinstance(status, ProtocolStatus)
            assert status.args == [f"http://t/{self.number:06}"]
            assert datum.fetch_time == NOW + self.number * DAY + 60_000


@pytest.mark.slow  # 170 rounds: what grows with each shows only in many
def test_rounds_leave_nothing_behind_and_cost_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.fsync", lambda file: None)
    life = Life(tmp_path, pages=60)
    for _ in range(20):
        life.round()
    first, before = operations(life.round), kept()
    life.check()
    for _ in range(149):
        life.round()
    assert operations(life.round) == pytest.approx(first, rel=0.02)
    life.check()
    after = kept()
    assert {
        name: (before.get(name), n) for name, n in after.items() if n > before.get(name, 0)
    } == {}


def test_values_that_threads_have_met_cost_nothing_later() -> None:
    """Metadata whose values all differ: a list of values met was once never trimmed again."""

    def values(base: str, number: int) -> list[bytes]:
        statuses = (ProtocolStatus(MOVED, [f"http://{base}/{i:05}"]) for i in range(number))
        return [MapWritable({STATUS: status}).to_bytes() for status in statuses]

    own = MapWritable({Text("_ngt_"): LongWritable(5)}).to_bytes()
    few = values("few", 50)
    merge(few[0], own)
    first = operations(lambda: [merge(value, own) for value in few])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda base: [merge(v, own) for v in values(base, 500)], "abcd"))
    assert operations(lambda: [merge(value, own) for value in few]) == first


def test_hashes_of_threads_are_those_of_one() -> None:
    """Powers of 31 that each thread added to as it needed them could come twice."""
    texts = ["x" * length for length in range(1, 3000, 150)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: [string_hash(text) for text in texts], range(8)))
    expected = [sum(120 * pow(31, i, 1 << 32) for i in range(len(t))) & 0xFFFF_FFFF for t in texts]
    assert [[value & 0xFFFF_FFFF for value in one] for one in found] == [expected] * 8


def test_a_repository_ends_with_its_configuration() -> None:
    """Each step of each round has its own: in a dictionary by configurations, weak or not, none
    would ever end.
    """
    gc.collect(1)
    conf = context(SETTINGS).conf
    assert URLFilters(conf).filters and ScoringFilters(conf).filters
    assert PluginRepository.of(conf) is conf.plugins
    both = weakref.ref(PluginRepository.of(conf)), weakref.ref(URLFilters(conf).filters[0])
    del conf
    gc.collect(1)  # what is new; all objects took a second
    assert [one() for one in both] == [None, None]


def test_threads_make_one_repository() -> None:
    conf = context(SETTINGS).conf
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: URLFilters(conf).filters[0], range(32)))
    assert len({id(one) for one in made}) == 1
