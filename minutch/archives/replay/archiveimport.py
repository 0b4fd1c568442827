"""Makes segments of archives (WARC, ARC, WACZ, CDXJ), as if their pages had been fetched.

Files are read by their own format, whichever `import` was asked for. A segment has content and
crawl_fetch, as parse, updatedb and index need; updatedb adds pages that the CrawlDb lacks.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from minutch.archives.replay.replayer import (
    BESIDE,
    VISITS,
    ImportOptions,
    Replayer,
    ReplaySettings,
    new_segments,
)
from minutch.cycle.segment.places import finish_others
from minutch.errors import StoreError
from minutch.job import Counters, JobContext
from minutch.records.protocol import Content
from minutch.warc.reading.archivefiles import ArchiveFile, IndexFile, find_archives
from minutch.warc.reading.archiveprotocol import as_archived
from minutch.warc.reading.visitindex import VisitIndex
from minutch.warc.reading.visits import Visit
from minutch.warc.warcfile import arc_date

log = logging.getLogger(__name__)
SEGMENTS: Final = "segments"
IMPORT: Final = "import"
ARC2SEGMENT: Final = "arc2segment"
URL_VERSION: Final = "arc.url.version"


def import_archives(
    paths: Sequence[Path],
    parent: Path,
    options: ImportOptions = ImportOptions(),  # noqa: B008 - it is frozen
    *,
    context: JobContext,
) -> Counters:
    """Makes segments in the folder `parent` of the archives at `paths`.

    If an earlier import with the same input and options was killed after it had made its segments,
    these are moved into place, and nothing else happens. Raises StoreError or FormatError for files
    that are not archives or can't be read; no segment remains then.
    """
    for folder in options.folders:
        if not folder.is_dir():
            raise StoreError(f"{folder}: no such folder of archives")
    return _import(IMPORT, paths, parent, options, None, context)


def arc2segment(files: Path, parent: Path, *, context: JobContext) -> Counters:
    """Makes segments in the folder `parent` of the ARC files at `files`, as Nutch's
    ArcSegmentCreator does: URLs are normalized and filtered, and the metadata of a page have the
    date of its record as `arc.url.version`.
    """
    options = ImportOptions(normalize=True, filter=True)
    return _import(ARC2SEGMENT, [files], parent, options, _add_version, context)


def _add_version(visit: Visit, content: Content) -> None:
    content.metadata.set(URL_VERSION, arc_date(visit.time))


def _import(
    job: str,
    paths: Sequence[Path],
    parent: Path,
    options: ImportOptions,
    describe: Callable[[Visit, Content], None] | None,
    context: JobContext,
) -> Counters:
    archives = [
        replace(each, folders=options.folders) if isinstance(each, IndexFile) else each
        for each in find_archives(paths)
    ]
    properties = [f"{name}={context.conf.raw(name)}" for name in sorted(context.conf)]
    description = _description(job, archives, options, properties)
    done = finish_others(parent, description)
    if done is not None:
        log.info("a previous run, which was stopped, had made the segments: nothing left to do")
        return Counters(done)
    conf = as_archived(context.conf, paths)
    settings = ReplaySettings.from_conf(conf)
    with (
        new_segments(parent, conf, context.clock.now()) as segments,
        context.progress("import", unit="visits") as shown,
    ):
        try:
            with TemporaryDirectory(prefix="index-", dir=segments.work) as folder:
                index = VisitIndex(Path(folder) / "visits.sqlite", create=True)
                try:
                    replayer = Replayer(segments, index, settings, options, describe)
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
        log.warning("no visits in %s", ", ".join(map(str, paths)))
    return counters


def _description(
    job: str,
    archives: Sequence[ArchiveFile | IndexFile],
    options: ImportOptions,
    properties: Sequence[str],
) -> str:
    """Identifies an import by everything that its segments depend on."""
    status = [(archive.path.resolve(), archive.path.stat()) for archive in archives]
    files = [f"{path} {found.st_size} {found.st_mtime_ns}" for path, found in status]
    folders = [
        str(path)
        for archive in archives
        if isinstance(archive, IndexFile)
        for path in archive.folders
    ]
    chosen = [str(options.wanted), str(options.normalize), str(options.filter)]
    return f"{job} {sha256(json.dumps([files, folders, chosen, properties]).encode()).hexdigest()}"


def _counters(replayer: Replayer, segments: int) -> Counters:
    """Returns the counters in order: results of visits, records of none, and segments."""
    counters = Counters({name: n for name, n in replayer.counters.items() if name not in BESIDE})
    counters |= {name: n for name, n in replayer.counters.items() if name in BESIDE}
    counters[SEGMENTS] = segments
    return counters
