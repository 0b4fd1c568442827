"""Reads the arguments of `minutch inject`; `cycle.crawldb.inject` does the work."""

from __future__ import annotations

import logging
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.cycle.crawldb.inject import InjectOptions, inject
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)
FLAGS: Final = tuple(
    map(Flag, ("-overwrite", "-update", "-noFilter", "-noNormalize", "-filterNormalizeAll"))
)

USAGE: Final = """Injector [-D...] <crawldb> <url_dir> [-overwrite|-update] [-noFilter] \
[-noNormalize] \
[-filterNormalizeAll]

  <crawldb>\tthe CrawlDb; made if there is none
  <url_dir>\ta seed file, or a directory of seed files: a URL per line, perhaps followed by \
metadata,
           \tkey=value between tabs. Blank lines and lines that begin with # are skipped.
           \tThree keys have a meaning of their own:
           \t\tnutch.score: the score of the URL
           \t\tnutch.fetchInterval: its fetch interval in seconds
           \t\tnutch.fetchInterval.fixed: a fetch interval that adaptive schedules leave alone
           \tExample:
           \t http://www.nutch.org/ \\t nutch.score=10 \\t nutch.fetchInterval=2592000 \\t \
userType=open_source

 -overwrite\treplace entries of the CrawlDb by the seeds (goes before -update)
 -update   \tmerge seeds into entries of the CrawlDb, whose metadata stays
 -noNormalize\tdo not normalize the seeds
 -noFilter \tdo not filter the seeds
 -filterNormalizeAll
           \tnormalize and filter the entries of the CrawlDb, too
 -D...     \tset a property (property=value)
 -Ddb.update.purge.404=true
           \tremove entries that are gone (404) from the CrawlDb"""


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 (and an error) where the CrawlDb stays as it was."""
    arguments = parse(args, FLAGS, usage=USAGE, least=2, most=2, ignore_case=True)
    crawldb, url_dir = map(as_path, arguments.positional)
    counters = inject(
        crawldb,
        url_dir,
        InjectOptions(
            overwrite=arguments["-overwrite"],
            update=arguments["-update"],
            normalize=not arguments["-noNormalize"],
            filtering=not arguments["-noFilter"],
            filter_normalize_all=arguments["-filterNormalizeAll"],
        ),
        context=context,
    )
    context.report("Injector", counters)
    return 0
