"""`minutch explain`: says why a URL was, or was not, fetched, and what comes next.

Without a URL it says what is left to do in a crawl.

It reads, writes nothing and asks no host. The decisions of generate, fetch and updatedb are taken
by their own code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from minutch.commands.arguments import Arguments, Flag, fail, parse
from minutch.cycle.fetchlist import select
from minutch.cycle.fetchlist.selector import GenerateOptions
from minutch.errors import StoreError
from minutch.inspect.explain.access import addresses_of
from minutch.inspect.explain.explainer import explain, overview
from minutch.inspect.explain.facts import Explanation, Overview, to_json
from minutch.inspect.explain.settings import ExplainOptions
from minutch.inspect.explain.textpages import explanation_lines, overview_lines
from minutch.job import JobContext
from minutch.terminal import width_of

USAGE: Final = """explain <url> [<crawl>] [options]
       explain [<crawl>] [options]

  <url>                   the URL that is asked about; without one, what is left
                          to do in the crawl
  <crawl>                 the folder of the crawl; without it ./crawl
  --json                  the same facts as JSON, with types
  --quick                 leave out what has no index: which segments lead to the
                          URL, which pages have the same content
  --resolve               look the host's name up, to ask the address guard

  What generate is given, as far as it decides which pages are taken:
  --topN <N>              at most N pages
  --adddays <days>        what will be due in so many days
  --expr <expr>           pages for which the expression is true
  --hostdb <hostdb>       the HostDb for generate.max.count.expr
  --maxNumSegments <num>  up to so many segments
  --noFilter              no URL filters
  --noNorm                no normalizers where the pages of a host are counted"""

FLAGS: Final = (
    Flag("-json"),
    Flag("-quick"),
    Flag("-resolve"),
    Flag("-topN", value="N", convert=int),
    Flag("-adddays", value="days", convert=int),
    Flag("-expr", value="expr"),
    Flag("-hostdb", value="hostdb"),
    Flag("-maxNumSegments", value="num", convert=int),
    Flag("-noFilter"),
    Flag("-noNorm"),
)
DEFAULT_CRAWL: Final = "crawl"
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def run(args: list[str], context: JobContext) -> int:
    """Runs the command. Exit code 0 for an answer, whatever it is."""
    least = 0 if Path(DEFAULT_CRAWL).is_dir() else 1
    arguments = parse(args, FLAGS, usage=USAGE, least=least, most=2)
    url, crawl = _url_and_crawl(arguments.positional)
    options = _options(arguments)
    context = replace(context, conf=context.conf.of_crawl(crawl).freeze())
    facts: Explanation | Overview
    if url is None:
        facts = overview(crawl, options, context=context)
        lines = overview_lines(facts, width_of(context.out))
    else:
        facts = explain(crawl, url, options, context=context)
        lines = explanation_lines(facts, width_of(context.out))
    for line in [to_json(facts)] if arguments["-json"] else lines:
        context.print(line)
    return 0


def _url_and_crawl(words: Sequence[str]) -> tuple[str | None, Path]:
    """Returns the URL, if there is one, and the folder of the crawl."""
    if words and not words[0].strip():
        fail("the URL is empty", USAGE)
    if len(words) > 1:
        return words[0], Path(words[1])
    if not words or Path(words[0]).is_dir():
        return None, Path(*words) if words else Path(DEFAULT_CRAWL)
    if not _SCHEME.match(words[0]) and ("/" in words[0] or "." not in words[0]):
        raise StoreError(f"{words[0]} is neither a URL nor a folder")
    return words[0], Path(DEFAULT_CRAWL)


def _options(arguments: Arguments) -> ExplainOptions:
    if arguments.get("-maxNumSegments", 1) < 1:
        fail("-maxNumSegments: expected at least 1", USAGE)
    generate = GenerateOptions(
        top_n=arguments.get("-topN", select.NO_LIMIT),
        add_days=arguments.get("-adddays", 0),
        filtering=not arguments["-noFilter"],
        normalize=not arguments["-noNorm"],
        max_segments=arguments.get("-maxNumSegments", 1),
        expression=arguments["-expr"],
        hostdb=Path(arguments["-hostdb"]) if arguments["-hostdb"] else None,
    )
    return ExplainOptions(
        generate, arguments["-quick"], addresses_of if arguments["-resolve"] else None
    )
