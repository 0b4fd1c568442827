"""import legacy: segments of Nutch 0.4 to 0.7 made into today's, and a CrawlDb of what they know.

    <segments>/<name>/      crawl_generate, and if it was fetched crawl_fetch, content, if it was
                            parsed the other three
    <crawldb>/              what updatedb makes of the segments, and all that was in their fetch
                            lists

A segment keeps its name, if that is a date. Pages are sorted by URL on disk, so memory does not
grow with a segment. All outlinks are kept, and all links get what the scoring filters give; URL
filters and normalizers are not asked. Where a page of Nutch 0.4 has no media type, it is found as
the fetcher finds it.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from minutch.archives.legacy.legacyimport import import_legacy
from minutch.commands.arguments import Flag, parse
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """import legacy <segment>... <segments> [-crawldb <crawldb>]
\t<segment>...\tsegments of Nutch 0.4 to 0.7: folders with fetchlist, fetcher and so on
\t<segments>\tthe folder that today's segments are put into
\t-crawldb <crawldb>\tthe CrawlDb that they are brought into; made if there is none (crawldb, beside <segments>)"""  # noqa: E501
FLAGS: Final = (Flag("-crawldb", value="crawldb"),)


def run(args: list[str], context: JobContext) -> int:
    """The command: 0 if done, 255 (and an error) where something is wrong; segments made before
    then stay.
    """
    given = parse(args, FLAGS, usage=USAGE, least=2)
    *sources, target = map(Path, given.positional)
    crawldb = Path(given["-crawldb"] or target.parent / "crawldb")
    counters = import_legacy(sources, target, crawldb, context)
    context.report("Import of old segments", counters)
    return 0
