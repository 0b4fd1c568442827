"""warc: writes the pages of segments to WARC files as Nutch does
(`minutch/archives/exporters.py`).
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from minutch.archives.exporters import NutchWarcOptions, export_nutch_warc
from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.segment.store import segments_at
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """WARCExporter <output> (<segment> ... | -dir <segments>) [options]
\t<output>\tthe new folder of the WARC files
\t-dir <segments>\tall segments in a folder
\t-onlySuccessfulResponses\tonly pages that were fetched, or had not changed
\t-includeParseData\talso write a metadata record for each parsed page
\t-includeParseText\talso write the text of each parsed page, as a conversion record"""

FLAGS: Final = (
    Flag("-dir", value="segments", repeats=True),
    Flag("-onlySuccessfulResponses"),
    Flag("-includeParseData"),
    Flag("-includeParseText"),
)


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1)
    output, *words = arguments.positional
    segments = segments_at(map(Path, words), map(Path, arguments.get("-dir", [])))
    if not segments:
        fail("no segments", USAGE)
    options = NutchWarcOptions(
        parse_data=arguments["-includeParseData"],
        parse_text=arguments["-includeParseText"],
        only_successful=arguments["-onlySuccessfulResponses"],
    )
    log.info("WARCExporter: starting")
    paths = [segment.path for segment in segments]
    counters = export_nutch_warc(paths, Path(output), options, context=context)
    context.report("WARCExporter", counters)
    log.info("WARCExporter: finished")
    return 0
