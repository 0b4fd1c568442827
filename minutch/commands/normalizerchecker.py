"""`minutch normalizerchecker`: what the normalizers turn URLs into
(org.apache.nutch.net.URLNormalizerChecker).

An empty line stands for a URL that is malformed or dropped.
"""

from __future__ import annotations

from minutch.commands.arguments import Flag, fail, parse
from minutch.commands.lineserver import LINE_FLAGS, answer_lines
from minutch.errors import UrlError
from minutch.job import JobContext
from minutch.plugin.chains import SCOPE_DEFAULT, URLNormalizers
from minutch.plugin.repository import only

USAGE = """\
URLNormalizerChecker [-Dproperty=value]... [-normalizer <normalizerName>] [-scope <scope>] \
(-stdin | -listen <port> [-keepClientCnxOpen])

  -normalizer <name>    the normalizer to check, by the id of its plugin (a pattern) or by its class; else all
  -scope <scope>        default, partition, generate_host_count, fetcher, crawldb, linkdb, inject, outlink or indexer
  -stdin                read URLs from stdin, one on each line
  -listen <port>        read them from connections to this port
  -keepClientCnxOpen    more than one on each connection

An empty line is printed for a URL that is malformed or dropped."""  # noqa: E501

FLAGS = (
    Flag("-normalizer", value="normalizerName"),
    Flag("-scope", value="scope"),
    *LINE_FLAGS,
)


def run(args: list[str], context: JobContext) -> int:
    """Normalize each URL that comes in."""
    if not args:
        fail("", USAGE)
    given = parse(args, FLAGS, usage=USAGE, most=0)
    conf = context.conf
    if given["-normalizer"] is not None:
        conf = only(conf, given["-normalizer"], "urlnormalizer.order")
    normalizers = URLNormalizers(conf, given.get("-scope", SCOPE_DEFAULT))
    names = "".join(f"{type(normalizer).__name__} " for normalizer in normalizers.normalizers)
    context.print(f"Checking combination of these URLNormalizers: {names}")

    def check(line: str) -> str:
        try:
            return normalizers.normalize(line) or ""
        except UrlError:
            return ""

    return answer_lines(given, check, context)
