"""import warc, arc, wacz, cdxj: archives made into segments, as if their pages had been fetched.

Files of all these kinds are taken, each for what it is. A segment holds content and crawl_fetch, so
that parse, updatedb and index go on with it; updatedb makes entries of pages that the CrawlDb does
not know.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from minutch.archives.replay.newsegments import new_segments
from minutch.archives.replay.replayer import BESIDE, VISITS, ImportRules, Replayer
from minutch.conf import Configuration
from minutch.cycle.segment.segmentnames import finish_others
from minutch.errors import StoreError
from minutch.job import Counters, JobContext
from minutch.warc.reading.archivefiles import ArchiveFile, IndexFile, find_archives
from minutch.warc.reading.archiveprotocol import as_archived, content_limit
from minutch.warc.reading.visitindex import VisitIndex

log = logging.getLogger(__name__)
SEGMENTS: Final = "segments"
_UNLIMITED: Final = 0x7FFF_FFFF


def replay(
    job: str,
    files: Sequence[Path],
    parent: Path,
    rules: ImportRules,
    context: JobContext,
    *,
    folders: tuple[Path, ...] = (),
) -> Counters:
    """Make segments in `parent` of the archives `files`; returns what was counted.

    `folders` are where the archives lie that indexes among them name. If a `job` of the same name
    that was killed had made segments of just that, they get their places and nothing else happens.

    StoreError or FormatError for what is no archive or can't be read; then there is no segment.
    """
    found = find_archives(files)
    archives = [
        replace(each, folders=folders) if isinstance(each, IndexFile) else each for each in found
    ]
    description = _description(job, archives, rules, context.conf)
    done = finish_others(parent, description)
    if done is not None:
        log.info(
            "the segments were made by the run before, which was stopped: there is nothing left"
            " to do"
        )
        return Counters(done)
    limit = content_limit(context.conf)
    conf = as_archived(context.conf, files)
    with (
        new_segments(parent, conf, context.clock.now()) as segments,
        context.progress("import", unit="visits") as shown,
    ):
        try:
            with TemporaryDirectory(prefix="index-", dir=segments.work) as folder:
                index = VisitIndex(Path(folder) / "visits.sqlite", create=True)
                try:
                    replayer = Replayer(
                        segments, index, conf, rules, _UNLIMITED if limit < 0 else limit
                    )
                    replayer.take(archives, shown)
                finally:
                    index.close()
        except sqlite3.Error as exc:
            raise StoreError(f"{parent}: can't be written: {exc}") from exc
        counters = _counters(replayer, len(segments))
        made = segments.finish(description, counters)
    for path in made:
        log.info("made %s", path)
    if not replayer.counters[VISITS]:
        log.warning("no visits in %s", ", ".join(map(str, files)))
    return counters


def _description(
    job: str, archives: Sequence[ArchiveFile | IndexFile], rules: ImportRules, conf: Configuration
) -> str:
    """What the segments depend on: the same again makes the same."""
    status = [(archive.path.resolve(), archive.path.stat()) for archive in archives]
    files = [f"{path} {found.st_size} {found.st_mtime_ns}" for path, found in status]
    folders = [
        str(path)
        for archive in archives
        if isinstance(archive, IndexFile)
        for path in archive.folders
    ]
    properties = [f"{name}={conf.raw(name)}" for name in sorted(conf)]
    options = [str(rules.wanted), str(rules.normalize), str(rules.filter)]
    return f"{job} {sha256(json.dumps([files, folders, options, properties]).encode()).hexdigest()}"


def _counters(replayer: Replayer, segments: int) -> Counters:
    """What was counted: ends of visits, what is none, and the segments."""
    counters = Counters({name: n for name, n in replayer.counters.items() if name not in BESIDE})
    counters |= {name: n for name, n in replayer.counters.items() if name in BESIDE}
    counters[SEGMENTS] = segments
    return counters
