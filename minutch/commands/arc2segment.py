"""ArcSegmentCreator: makes segments of the pages in ARC files
(org.apache.nutch.tools.arc.ArcSegmentCreator).

URLs are normalized and filtered, and the metadata of a page have the date of its record as
`arc.url.version`.

Different from Nutch on purpose: the tool of current Nutch fails (its input format returns a reader
of SequenceFiles), and its reader of ARC files merged each record with everything after it, treated
the HTTP head as part of the page, and every page as a success, fetched now. Here a page is the
server's response, with its headers, status and time; several visits to a URL go into several
segments; pages are parsed by `parse`.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from minutch.archives.replay.archiveimport import arc2segment
from minutch.commands.arguments import Flag, parse
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """ArcSegmentCreator <arcFiles> <segmentsOutDir>
\t<arcFiles>\tan ARC file, or a folder of such files
\t<segmentsOutDir>\tthe folder in which segments are created"""
FLAGS: Final[tuple[Flag, ...]] = ()


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    files, parent = map(Path, parse(args, FLAGS, usage=USAGE, least=2).positional[:2])
    log.info("ArcSegmentCreator: starting")
    log.info("ArcSegmentCreator: arc files dir: %s", files)
    context.report("ArcSegmentCreator", arc2segment(files, parent, context=context))
    log.info("ArcSegmentCreator: finished")
    return 0
