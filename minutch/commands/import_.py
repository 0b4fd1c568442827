"""import: makes segments of files in another format, as if their pages had been fetched."""

from __future__ import annotations

from typing import Final

from minutch.commands.arguments import Flag
from minutch.commands.formats import IMPORTS, run_format, usage
from minutch.job import JobContext

USAGE: Final = usage("import", "<file>... <segments>", IMPORTS)
FLAGS: Final[tuple[Flag, ...]] = ()


def run(args: list[str], context: JobContext) -> int:
    """Runs the module of the format; returns its exit code."""
    return run_format(args, IMPORTS, USAGE, context)
