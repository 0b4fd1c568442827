"""check: asks for what pages name and the crawl has not, for `audit` and for archives."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.inspect.audit.checks import CheckOptions, check
from minutch.inspect.query.crawl import open_crawl
from minutch.job import JobContext

USAGE: Final = """check <crawl> [--external] [--requisites]
\tcrawl\tthe folder of a crawl, whose pages' images, styles, scripts, files and fragments
                are checked; each is asked for once a day at most; `audit` shows what is broken
\t--external\talso ask for links to other sites
\t--requisites\tkeep what is asked for, in <crawl>/checks/segments, for archives"""
FLAGS: Final = (Flag("--external"), Flag("--requisites"))


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns its exit code."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1, most=1)
    options = CheckOptions(arguments["--external"], arguments["--requisites"])
    counters = check(open_crawl(Path(arguments.positional[0])), options, context=context)
    context.report("Check", counters)
    return 0
