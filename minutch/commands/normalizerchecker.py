"""`minutch normalizerchecker`: shows URLs as normalized (Nutch: URLNormalizerChecker)."""

from __future__ import annotations

from minutch.commands.arguments import Flag, fail, parse
from minutch.commands.lineserver import LINE_FLAGS, answer_lines
from minutch.job import JobContext
from minutch.plugin.chains import SCOPE_DEFAULT
from minutch.plugin.checkers import normalizerchecker

USAGE = """\
URLNormalizerChecker [-Dproperty=value]... [-normalizer <normalizerName>] [-scope <scope>] \
(-stdin | -listen <port> [-keepClientCnxOpen])

  -normalizer <name>    only this normalizer, by the id of its plugin (a pattern) or by its class
  -scope <scope>        default, partition, generate_host_count, fetcher, crawldb, linkdb, inject,
                        outlink or indexer
  -stdin                read URLs from stdin, one on each line
  -listen <port>        read them from connections to this port
  -keepClientCnxOpen    more than one on each connection

An empty line is printed for a URL that is malformed or dropped."""

FLAGS = (
    Flag("-normalizer", value="normalizerName"),
    Flag("-scope", value="scope"),
    *LINE_FLAGS,
)


def run(args: list[str], context: JobContext) -> int:
    """Normalizes each URL that is read."""
    if not args:
        fail("", USAGE)
    arguments = parse(args, FLAGS, usage=USAGE, most=0)
    scope = arguments.get("-scope", SCOPE_DEFAULT)
    checker = normalizerchecker(context.conf, arguments["-normalizer"], scope)
    names = "".join(f"{name} " for name in checker.plugins)
    context.print(f"Checking combination of these URLNormalizers: {names}")
    return answer_lines(arguments, checker.check, context)
