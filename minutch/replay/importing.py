"""import warc, arc, wacz, cdxj: archives made into segments, as if their pages had been fetched.

Files of all these kinds are taken, each for what it is. A segment holds content and crawl_fetch, so that parse,
updatedb and index go on with it; updatedb makes entries of pages that the CrawlDb does not know.
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

from minutch.archive.reading.answers import as_archived, content_limit
from minutch.archive.reading.archivefiles import ArchiveFile, IndexFile, find_archives
from minutch.archive.reading.visitindex import VisitIndex
from minutch.arguments import Flag, fail, parse
from minutch.conf import Configuration
from minutch.errors import StoreError
from minutch.job import Counters, JobContext
from minutch.replay.replayer import BESIDE, VISITS, Replayer, Rules
from minutch.replay.segments import new_segments
from minutch.replay.wanted import FLAGS as WANTED_FLAGS
from minutch.replay.wanted import Wanted
from minutch.segment.places import finish_others

log = logging.getLogger(__name__)

USAGE: Final = """import warc|arc|wacz|cdxj <file>... <segments> [options]
\t<file>\ta WARC, ARC, WACZ or CDXJ file, or a folder of such files
\t<segments>\tthe folder of segments that new ones are put into
\t-archives folder\twhere the archives lie that a CDXJ file names, if not beside it
\t-host host\tonly visits to this host, or to all of `*.example.org`
\t-mime type\tonly answers of this media type, or of all of `text/*`
\t-status status\tonly answers with this status, or with one of `3xx`
\t-from time\tonly visits from this time on: 2012, 2012-01-31, 20120131120000
\t-to time\tonly visits up to the end of this time
\t-normalize\tURL normalizers change the URLs
\t-filter\tURL filters choose among them"""
FLAGS: Final = (*WANTED_FLAGS, Flag("-normalize"), Flag("-filter"), Flag("-archives", value="folder", repeats=True))
SEGMENTS: Final = "segments"
_UNLIMITED: Final = 0x7FFF_FFFF


def run(args: list[str], context: JobContext) -> int:
    """The command: 0 if done."""
    given = parse(args, FLAGS, usage=USAGE, least=2)
    *files, parent = map(Path, given.positional)
    try:
        wanted = Wanted.given(given)
    except ValueError as exc:
        fail(str(exc), USAGE)
    rules = Rules(wanted, given["-normalize"], given["-filter"])
    folders = tuple(map(Path, given.get("-archives", [])))
    for folder in folders:
        if not folder.is_dir():
            raise StoreError(f"-archives {folder}: no such folder")
    context.report("import", replay("import", files, parent, rules, context, folders=folders))
    return 0


def replay(
    job: str, files: Sequence[Path], parent: Path, rules: Rules, context: JobContext, *, folders: tuple[Path, ...] = ()
) -> Counters:
    """Make segments in `parent` of the archives `files`; returns what was counted.

    `folders` are where the archives lie that indexes among them name. If a `job` of the same name that was killed had
    made segments of just that, they get their places and nothing else happens.

    StoreError or FormatError for what is no archive or can't be read; then there is no segment.
    """
    found = find_archives(files)
    archives = [replace(each, folders=folders) if isinstance(each, IndexFile) else each for each in found]
    description = _description(job, archives, rules, context.conf)
    done = finish_others(parent, description)
    if done is not None:
        log.info("the segments were made by the run before, which was stopped: there is nothing left to do")
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
                    replayer = Replayer(segments, index, conf, rules, _UNLIMITED if limit < 0 else limit)
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


def _description(job: str, archives: Sequence[ArchiveFile | IndexFile], rules: Rules, conf: Configuration) -> str:
    """What the segments depend on: the same again makes the same."""
    status = [(archive.path.resolve(), archive.path.stat()) for archive in archives]
    files = [f"{path} {found.st_size} {found.st_mtime_ns}" for path, found in status]
    folders = [str(path) for archive in archives if isinstance(archive, IndexFile) for path in archive.folders]
    properties = [f"{name}={conf.raw(name)}" for name in sorted(conf)]
    options = [str(rules.wanted), str(rules.normalize), str(rules.filter)]
    return f"{job} {sha256(json.dumps([files, folders, options, properties]).encode()).hexdigest()}"


def _counters(replayer: Replayer, segments: int) -> Counters:
    """What was counted: ends of visits, what is none, and the segments."""
    counters = Counters({name: n for name, n in replayer.counters.items() if name not in BESIDE})
    counters |= {name: n for name, n in replayer.counters.items() if name in BESIDE}
    counters[SEGMENTS] = segments
    return counters
