"""export: segments, or the tables of a crawl, written as files of another format, for other
programs.
"""

from __future__ import annotations

from typing import Final

from minutch.commands.formats import EXPORTS, hand_over, usage
from minutch.job import JobContext

USAGE: Final = usage("export", "<crawl or segments>... <out>", EXPORTS)


def run(args: list[str], context: JobContext) -> int:
    """The command: the exit code of the format's module."""
    return hand_over(args, EXPORTS, USAGE, context)
