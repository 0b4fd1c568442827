"""ArcSegmentCreator: a segment of the pages in ARC files
(org.apache.nutch.tools.arc.ArcSegmentCreator).

URLs are normalized and filtered, and `arc.url.version` among the metadata of a page is the date of
its record.

Different from Nutch on purpose. The tool of today's Nutch fails (its input format hands out a
reader of SequenceFiles), and its reader of ARC files took each record together with all behind it,
with the HTTP head as part of the page and every page for a success, fetched now. Here a page is
what the server sent, with its headers, status and time; several visits to a URL go into several
segments; pages are parsed by `parse`.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from minutch.archives.replay.archiveimport import replay
from minutch.archives.replay.replayer import ImportRules
from minutch.commands.arguments import fail, parse
from minutch.job import JobContext
from minutch.records.content import Content
from minutch.warc.arcfile import arc_date
from minutch.warc.reading.visits import Visit

log = logging.getLogger(__name__)

USAGE: Final = "ArcSegmentCreator <arcFiles> <segmentsOutDir>"
URL_VERSION: Final = "arc.url.version"


def run(args: list[str], context: JobContext) -> int:
    """The command: 0 if done."""
    if len(args) < 2:
        fail("", USAGE)
    given = parse(args, (), usage=USAGE, least=2)
    files, parent = map(Path, given.positional[:2])
    log.info("ArcSegmentCreator: starting")
    log.info("ArcSegmentCreator: arc files dir: %s", files)
    rules = ImportRules(normalize=True, filter=True, describe=_with_version)
    context.report("ArcSegmentCreator", replay("arc2segment", [files], parent, rules, context))
    log.info("ArcSegmentCreator: finished")
    return 0


def _with_version(visit: Visit, content: Content) -> None:
    content.metadata.set(URL_VERSION, arc_date(visit.time))
