"""`minutch parse`: the fetched pages of a segment → crawl_parse, parse_data, parse_text.

    content ──> workers: parse, filter links, score, sign, serialize ──> part writers, by hash of
    the URL

Pages are parsed in processes of their own (minutch.cycle.parse.workerpool) and written in the order of
their URLs, as they come: all partitions at once, or each by itself where an engine has more
machines. There, pages that lie in other parts than those of the job (fetched by lists, say) are
shuffled first. Pages found inside other pages (a feed's entries) are put in their places at the
end. A segment that has been parsed is left as it is, with a warning. Source:
org.apache.nutch.parse.ParseSegment.
"""

from __future__ import annotations

import logging
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.cycle.parse.parsesegment import parse_segment
from minutch.cycle.segment.store import CONTENT, CRAWL_PARSE, Segment
from minutch.hadoop.stores import as_path
from minutch.job import JobContext
from minutch.work.tables.database import record_estimate

log = logging.getLogger(__name__)

USAGE: Final = """ParseSegment segment [-noFilter] [-noNormalize]
\tsegment\tthe segment whose pages are parsed
\t-noFilter\tdon't filter the URLs of links
\t-noNormalize\tdon't normalize the URLs of links"""
_SWITCHES: Final = {"-noFilter": "parse.filter.urls", "-noNormalize": "parse.normalize.urls"}
FLAGS: Final = tuple(map(Flag, _SWITCHES))


def run(args: list[str], context: JobContext) -> int:
    """The command; flags in any case as in Nutch."""
    given = parse(args, FLAGS, usage=USAGE, least=1, ignore_case=True)
    off = {name: "false" for flag, name in _SWITCHES.items() if given[flag]}
    conf = context.conf.with_values(off).freeze() if off else context.conf
    segment = Segment(as_path(given.positional[0]))
    segment.clear_left_overs()
    if segment.has(CRAWL_PARSE):
        log.warning("Segment: %s already parsed!! Skipped parsing this segment!!", segment.path)
        return 0
    with context.progress(
        "parse", lambda: record_estimate(segment.parts(CONTENT)), "pages"
    ) as progress:
        counters = parse_segment(segment, conf, context.clock, progress)
    context.report("ParseSegment", counters)
    return 0
