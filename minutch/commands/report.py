"""`minutch report`: shows what came of a crawl, as one HTML page with plots and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.inspect.report.reportfile import ReportOptions, report
from minutch.job import JobContext
from minutch.terminal import counted

USAGE: Final = """report <crawl> [-o <file>] [--compare <report>] [--force]
\tcrawl\tthe folder of a crawl
\t-o <file>\tthe file to write; <crawl>-report.html in the working directory is the default
\t--compare <report>\tan earlier report of the crawl, to show what has changed since
\t--force\treplace the file even if it is not a report"""
FLAGS: Final = (
    Flag("-o", value="file", convert=Path),
    Flag("--compare", value="report", convert=Path),
    Flag("--force"),
)


def run(args: list[str], context: JobContext) -> int:
    """Runs the command. Exit code 0."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1, most=1)
    options = ReportOptions(arguments["-o"], arguments["--compare"], arguments["--force"])
    made = report(Path(arguments.positional[0]), options, context=context)
    urls, rounds = made.facts.total("urls") or 0, made.facts.total("rounds") or 0
    context.print(f"{made.file}: {counted(urls, 'URLs')}, {counted(rounds, 'rounds')}")
    return 0
