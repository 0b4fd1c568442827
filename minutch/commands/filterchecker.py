"""`minutch filterchecker`: shows which URLs pass the URL filters (Nutch: URLFilterChecker)."""

from __future__ import annotations

from minutch.commands.arguments import Flag, fail, parse
from minutch.commands.lineserver import LINE_FLAGS, answer_lines
from minutch.job import JobContext
from minutch.plugin.checkers import filterchecker

USAGE = """\
URLFilterChecker [-Dproperty=value]... [-filterName filterName] \
(-stdin | -listen <port> [-keepClientCnxOpen])

  -filterName <name>    only this filter, by the id of its plugin (a pattern) or by its class
  -stdin                read URLs from stdin, one on each line
  -listen <port>        read them from connections to this port
  -keepClientCnxOpen    more than one on each connection"""

FLAGS = (
    Flag("-filterName", value="filterName"),
    *LINE_FLAGS,
)


def run(args: list[str], context: JobContext) -> int:
    """Checks each URL that is read."""
    if not args:
        fail("", USAGE)
    arguments = parse(args, FLAGS, usage=USAGE, most=0)
    checker = filterchecker(context.conf, arguments["-filterName"])
    names = "".join(f"{name} " for name in checker.plugins)
    context.print(f"Checking combination of these URLFilters: {names}")
    return answer_lines(arguments, checker.check, context)
