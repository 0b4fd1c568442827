"""import: files of another format made into segments, as if their pages had been fetched."""

from __future__ import annotations

from typing import Final

from minutch.commands.formats import IMPORTS, hand_over, usage
from minutch.job import JobContext

USAGE: Final = usage("import", "<file>... <segments>", IMPORTS)


def run(args: list[str], context: JobContext) -> int:
    """The command: the exit code of the format's module."""
    return hand_over(args, IMPORTS, USAGE, context)
