"""Decides which steps of a round are left, by the folders in its segment and the crawl's own
record.

    crawl_fetch missing     fetch, and all that follows; as long as what a fetch works with is
                            there, too (_fetch)
    crawl_parse missing     parse, and all that follows
    both there              nothing, unless the record says that the round stopped after parse

The record (`<crawl_dir>/.round`, JSON: {"segment": name, "done": [steps], "open": [names], "asked":
pages}) is there while a round runs: what updatedb, invertlinks and dedup have done can't be seen in
a segment. One that Nutch or a single command made has none. A crawl of a limited number of pages
has it from its first round to its end, without a segment between rounds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from minutch import strictjson
from minutch.conf import Configuration
from minutch.cycle.crawldb.schedule import fetch_schedule
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.crawldb.updatedb import is_merged
from minutch.cycle.segment.places import finish_others, settle
from minutch.cycle.segment.store import CRAWL_FETCH, FETCHING, Segment, segments_in
from minutch.errors import LockedError, StoreError, naming
from minutch.paths import is_local
from minutch.records.crawldatum import STATUS_FETCH_MAX, STATUS_FETCH_SUCCESS, CrawlDatum
from minutch.work.tables.database import Database
from minutch.work.tables.install import NEW, clear, remove, sync_path
from minutch.work.tables.lock import holder, lock

RECORD = ".round"
_NEW_RECORD = f"{RECORD}.new"
GENERATED = "crawl_generate"
LOGS_OF_DONE = "_fetch-done"
"""What that is called while it is removed."""
MADE_BY = {"fetch": "crawl_fetch", "parse": "crawl_parse"}
"""Step → what lies in the segment once it is done."""


@dataclass
class Round:
    """The round that runs, or ran when the crawl was interrupted."""

    segment: str
    done: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list, compare=False)
    """The segments that are being fetched meanwhile; to be read by people."""
    asked: int = field(default=0, compare=False)
    """Pages that a crawl of a limited number has asked for, of lists that had ended before."""

    @classmethod
    def load(cls, crawl_dir: Path) -> Round | None:
        """Returns the record of an interrupted round; None if there is none. Raises StoreError if
        it can't be read.
        """
        path = crawl_dir / RECORD
        try:
            data = strictjson.loads(path.read_text(encoding="utf-8"))
            done = [str(step) for step in data["done"]]
            opened = [str(name) for name in data.get("open", ())]
            return cls(str(data["segment"]), done, opened, int(data.get("asked", 0)))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as exc:
            raise StoreError(
                f"{path}: expected the record of a round, JSON with segment and done, found"
                f" something else ({exc}): run by hand what is missing of the newest segment"
                " (updatedb, invertlinks, dedup), then remove the file"
            ) from exc

    def save(self, crawl_dir: Path) -> None:
        """Writes the record, whole or not at all; it is on disk when this returns."""
        temporary = crawl_dir / _NEW_RECORD
        with naming(temporary), temporary.open("w", encoding="utf-8") as stream:
            record = {"segment": self.segment, "done": self.done}
            more = {"open": self.open, "asked": self.asked}
            json.dump(record | {name: value for name, value in more.items() if value}, stream)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(crawl_dir / RECORD)
        sync_path(crawl_dir)

    @staticmethod
    def forget(crawl_dir: Path) -> None:
        """The round is over."""
        for name in (RECORD, _NEW_RECORD):
            (crawl_dir / name).unlink(missing_ok=True)
        sync_path(crawl_dir)


def steps_left(parts: set[str], steps: Sequence[str], done: Sequence[str] | None) -> list[str]:
    """Returns the steps that a segment with these parts still needs, in order; `done` is its
    record's, None without one.
    """
    if GENERATED not in parts:
        return []
    for step, part in MADE_BY.items():
        if part not in parts or (step == "fetch" and FETCHING in parts):
            return list(steps[steps.index(step) :])
    return (
        [step for step in steps if step not in done and step not in MADE_BY]
        if done is not None
        else []
    )


def segments(crawl_dir: Path) -> list[str]:
    """Returns the names of the segments in their places, oldest first; hidden folders are none."""
    folder = crawl_dir / "segments"
    found = segments_in(folder) if folder.is_dir() else []
    return [segment.name for segment in found if segment.path.parent == folder]


def clear_left_overs(crawl_dir: Path) -> None:
    """Removes, or puts in its place, what killed jobs have left in the segments and, unless in use,
    in a database.
    """
    for name in ("crawldb", "linkdb"):
        database = Database(crawl_dir / name)
        if database.path.is_dir():
            with suppress(LockedError), database.lock(wait=0):
                pass  # who takes the lock clears away
    folder = crawl_dir / "segments"
    finish_others(folder)
    if folder.is_dir() and is_local(folder):
        with suppress(LockedError), lock(folder):
            settle(folder)
    for name in segments(crawl_dir):
        Segment(folder / name).clear_left_overs()
        remove(folder / name / LOGS_OF_DONE)
    clear(folder, NEW)


def parts_of(segment: Path) -> set[str]:
    """The parts that are there; `_fetch` only while a fetch goes on with it."""
    parts = {path.name for path in segment.iterdir() if path.is_dir()}
    return parts if Segment(segment).is_half_fetched() else parts - {FETCHING}


def unfinished(
    crawl_dir: Path, steps: Sequence[str], record: Round | None
) -> list[tuple[Round, list[str]]]:
    """Rounds to go on with, oldest first, each with the steps that are left."""
    found = []
    for name in segments(crawl_dir):
        parts = parts_of(crawl_dir / "segments" / name)
        mine = record if record is not None and record.segment == name else None
        left = steps_left(parts, steps, None if mine is None else mine.done)
        if left:
            found.append((Round(name, [step for step in steps if step not in left]), left))
    return found


def asked_since(record: Round, folder: Path) -> int:
    """Returns the pages that the record's segment was asked for, if its fetch ended and was killed
    before that was written down. Raises FormatError.
    """
    segment = Segment(folder / record.segment)
    is_over = bool(record.segment) and MADE_BY["fetch"] in parts_of(segment.path)
    if not is_over or "fetch" in record.done or segment.is_half_fetched():
        return 0
    asked = range(STATUS_FETCH_SUCCESS, STATUS_FETCH_MAX + 1)
    found = (datum for _, datum in segment.records(CRAWL_FETCH) if isinstance(datum, CrawlDatum))
    return sum(datum.status in asked for datum in found)


def has_updated(segment: Path, crawl_dir: Path, conf: Configuration) -> bool:
    """Tells whether a segment is merged already, and only the record of that is missing; merging it
    again would count its links twice.
    """
    return is_merged(Segment(segment), CrawlDb(crawl_dir / "crawldb"), fetch_schedule(conf))


def at_work(crawl_dir: Path) -> dict[str, str]:
    """Returns the segments that somebody works on in this moment, and what is done with them."""
    found = {}
    crawler = holder(crawl_dir)
    record = None if crawler is None else Round.load(crawl_dir)
    if record is not None and record.segment:
        found[record.segment] = f"in a round of a crawl that runs ({crawler})"
    for name in segments(crawl_dir):
        fetcher = holder(crawl_dir / "segments" / name / FETCHING)
        if fetcher is not None:
            found[name] = f"being fetched by {fetcher}"
    return found
