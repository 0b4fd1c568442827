"""check: asks for what pages name and the crawl has not, for `audit` and for archives."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.inspect.audit.checks import BROKEN, MISSING, CheckOptions, check
from minutch.inspect.query.crawl import open_crawl
from minutch.job import JobContext
from minutch.processwide import command_line
from minutch.terminal import counted

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
    broken, missing = counters.get(BROKEN, 0), counters.get(MISSING, 0)
    seen = command_line(f"audit {quote(arguments.positional[0])}")
    context.print(
        f"{counted(broken, 'URLs')} broken, {counted(missing, 'fragments')} missing"
        + (f"; see  {seen}" if broken or missing else "")
    )
    return 0
