"""export: writes segments, or the tables of a crawl, in another format."""

from __future__ import annotations

from typing import Final

from minutch.commands.arguments import Flag
from minutch.commands.formats import EXPORTS, run_format, usage
from minutch.job import JobContext

USAGE: Final = usage("export", "<crawl or segments>... <out>", EXPORTS)
FLAGS: Final[tuple[Flag, ...]] = ()


def run(args: list[str], context: JobContext) -> int:
    """Runs the module of the format; returns its exit code."""
    return run_format(args, EXPORTS, USAGE, context)
