"""URLUtil: prints the registered domain of a URL (org.apache.nutch.util.URLUtil.main)."""

from __future__ import annotations

from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.job import JobContext
from minutch.urls.domains import domain_name

USAGE: Final = (
    "URLUtil <url>\n\nPrints the domain of the URL's host, one label below its public suffix."
)
FLAGS: Final[tuple[Flag, ...]] = ()


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0. Raises UrlError for an invalid URL, where Nutch printed a stack
    trace and returned 0.
    """
    url = parse(args, FLAGS, usage=USAGE, least=1, most=1).positional[0]
    context.print(domain_name(url))
    return 0
