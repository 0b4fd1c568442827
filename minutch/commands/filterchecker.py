"""`minutch filterchecker`: which URLs pass the filters (org.apache.nutch.net.URLFilterChecker).

Prints a line `+url` or `-url` for each.
"""

from __future__ import annotations

from minutch.commands.arguments import Flag, fail, parse
from minutch.commands.lineserver import LINE_FLAGS, answer_lines
from minutch.job import JobContext
from minutch.plugin.chains import URLFilters
from minutch.plugin.repository import only

USAGE = """\
URLFilterChecker [-Dproperty=value]... [-filterName filterName] (-stdin | -listen <port> [-keepClientCnxOpen])

  -filterName <name>    the filter to check, by the id of its plugin (a pattern) or by its class; else all
  -stdin                read URLs from stdin, one on each line
  -listen <port>        read them from connections to this port
  -keepClientCnxOpen    more than one on each connection"""  # noqa: E501

FLAGS = (
    Flag("-filterName", value="filterName"),
    *LINE_FLAGS,
)


def run(args: list[str], context: JobContext) -> int:
    """Check each URL that comes in."""
    if not args:
        fail("", USAGE)
    given = parse(args, FLAGS, usage=USAGE, most=0)
    conf = context.conf
    if given["-filterName"] is not None:
        conf = only(conf, given["-filterName"], "urlfilter.order")
    filters = URLFilters(conf)
    names = "".join(f"{type(url_filter).__name__} " for url_filter in filters.filters)
    context.print(f"Checking combination of these URLFilters: {names}")

    def check(line: str) -> str:
        passed = filters.filter(line)
        return f"-{line}" if passed is None else f"+{passed}"

    return answer_lines(given, check, context)
