"""Reads the arguments of `minutch crawlcomplete`; `cycle.crawldb.groupcounts` does the work."""

from __future__ import annotations

import logging
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.commands.countargs import one_of, paths, positive
from minutch.cycle.crawldb.groupcounts import CrawlcompleteOptions, crawlcomplete
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """CrawlCompletionStats [-h] -inputDirs <inputDirs> -mode <mode>
       [-numReducers <numReducers>] -outputDir <outputDir> [-json]
 -h,--help                    this text
 -inputDirs <inputDirs>       the crawldbs, with commas between them
                              (e.g., "./crawl1/crawldb,./crawl2/crawldb")
 -json                        write an object of JSON for each line
 -mode <mode>                 what is counted: 'host' or 'domain'
 -numReducers <numReducers>   number of files to write, 1 if not given
 -outputDir <outputDir>       the directory to write to, which may not
                              exist yet"""

FLAGS: Final = (
    Flag("-inputDirs", "inputDirs"),
    Flag("-outputDir", "outputDir"),
    Flag("-mode", "mode"),
    Flag("-numReducers", "numReducers"),
    Flag("-json"),
)


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 and an error; 0, as in Nutch, after a line that lacks
    options.
    """
    arguments = parse(args, FLAGS, usage=USAGE, most=0)
    lacking = [name for name in ("-inputDirs", "-outputDir", "-mode") if arguments[name] is None]
    if lacking:
        fail(f"missing: {', '.join(lacking)}" if args else "", USAGE)
    mode = one_of("-mode", arguments["-mode"], ("host", "domain"))
    parts = positive("-numReducers", arguments.get("-numReducers", "1"))
    options = CrawlcompleteOptions(mode, parts, arguments["-json"])
    crawldbs, output = paths(arguments["-inputDirs"]), as_path(arguments["-outputDir"])
    counters = crawlcomplete(crawldbs, output, options, context=context)
    context.report("CrawlCompletionStats", counters)
    return 0
