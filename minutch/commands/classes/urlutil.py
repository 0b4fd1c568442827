"""URLUtil by class name: the registered domain of a URL (org.apache.nutch.util.URLUtil.main)."""

from __future__ import annotations

from typing import Final

from minutch.commands.arguments import parse
from minutch.job import JobContext
from minutch.urls.domains import domain_name

USAGE: Final = (
    "URLUtil <url>\n\nPrints the domain below its public suffix that the URL's host belongs to."
)


def run(args: list[str], context: JobContext) -> int:
    """The command: 0 if done; 255 for what is no URL, where Nutch ended with 0 and a stack
    trace.
    """
    url = parse(args, (), usage=USAGE, least=1, most=1).positional[0]
    context.print(domain_name(url))
    return 0
