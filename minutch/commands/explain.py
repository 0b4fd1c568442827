"""explain: why a URL was, or was not, fetched, and what comes next; without a URL what is left to
do in a crawl.

Everything is read, nothing written, no host is asked. What generate, fetch and updatedb would do is
decided by their own code.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from minutch.commands.arguments import Arguments, Flag, fail, parse
from minutch.cycle.fetchlist import select
from minutch.cycle.fetchlist.selector import HOSTDB_PROPERTY, GenerateOptions, Selector
from minutch.errors import StoreError
from minutch.inspect.explain import words
from minutch.inspect.explain.about import Crawl, Explainer
from minutch.inspect.explain.overview import Overseer
from minutch.inspect.explain.typed import to_json
from minutch.job import JobContext

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
    """The command: exit code 0 for an answer, whatever it is; 255 for an error."""
    given = parse(args, FLAGS, usage=USAGE, most=2)
    url, folder = _subject(given.positional)
    options = _options(given, context)
    crawl = Crawl(folder)
    if url is None:
        choice = Selector.from_conf(context.conf, options, context.clock.now())
        overview = Overseer(
            crawl, context.conf, choice, _arguments(given), context.clock.now()
        ).overview()
        return _print(overview, words.crawl_page(overview), given["-json"], context)
    explainer = Explainer(
        crawl,
        context.conf,
        options,
        context.clock.now(),
        look=not given["-quick"],
        resolve=_addresses if given["-resolve"] else None,
    )
    found = explainer.explain(url)
    return _print(found, words.page(found), given["-json"], context)


def _print(facts: object, lines: Iterable[str], as_json: bool, context: JobContext) -> int:
    for line in [to_json(facts)] if as_json else lines:
        context.print(line)
    return 0


def _arguments(given: Arguments) -> list[str]:
    """generate's options as they were given."""
    words: list[str] = []
    for name, value in given.in_order:
        if name not in ("", "-json", "-quick", "-resolve"):
            words += [name] if value is True else [name, str(value)]
    return words


def _subject(words: Sequence[str]) -> tuple[str | None, Path]:
    """The URL, if there is one, and the folder of the crawl."""
    if words and not words[0].strip():
        fail("the URL is empty", USAGE)
    if len(words) > 1:
        return words[0], Path(words[1])
    if not words and not Path(DEFAULT_CRAWL).is_dir():
        fail("", USAGE)
    if not words or Path(words[0]).is_dir():
        return None, Path(*words) if words else Path(DEFAULT_CRAWL)
    if not _SCHEME.match(words[0]) and ("/" in words[0] or "." not in words[0]):
        raise StoreError(f"{words[0]} is neither a URL nor a folder")
    return words[0], Path(DEFAULT_CRAWL)


def _options(given: Arguments, context: JobContext) -> GenerateOptions:
    hostdb = given["-hostdb"] or context.conf.get_trimmed(HOSTDB_PROPERTY)
    if given.get("-maxNumSegments", 1) < 1:
        fail("-maxNumSegments: expected at least 1", USAGE)
    return GenerateOptions(
        top_n=given.get("-topN", select.NO_LIMIT),
        add_days=given.get("-adddays", 0),
        filtering=not given["-noFilter"],
        normalize=not given["-noNorm"],
        max_segments=given.get("-maxNumSegments", 1),
        expression=given["-expr"],
        hostdb=Path(hostdb) if hostdb else None,
    )


def _addresses(host: str) -> list[str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
