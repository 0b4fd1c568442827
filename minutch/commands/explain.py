"""`minutch explain`: says why a URL was, or was not, fetched, and what comes next; without a URL,
what is left to do in a crawl. `minutch whatif`: what another configuration would make of it.

They read, write nothing and ask no host. The decisions of generate, fetch and updatedb are taken
by their own code.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from minutch.commands.arguments import Arguments
from minutch.cycle.crawl.steps import CrawlOptions
from minutch.cycle.fetchlist.selector import GenerateOptions
from minutch.errors import StoreError
from minutch.inspect.explain.access import addresses_of
from minutch.inspect.explain.explainer import explain, overview
from minutch.inspect.explain.facts import Explanation, Overview, to_json
from minutch.inspect.explain.settings import ExplainOptions
from minutch.inspect.explain.textpages import explanation_lines, overview_lines
from minutch.inspect.whatif.forecast import whatif as forecast
from minutch.inspect.whatif.prospects import text
from minutch.job import JobContext
from minutch.terminal import width_of

DEFAULT_CRAWL: Final = "crawl"
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def run(arguments: Arguments, context: JobContext) -> int:
    """Runs the command. Exit code 0 for an answer, whatever it is."""
    if not arguments.positional and not Path(DEFAULT_CRAWL).is_dir():
        arguments.fail("too few arguments: no <url>")
    url, crawl = _url_and_crawl(arguments)
    resolve = addresses_of if arguments["--resolve"] else None
    options = ExplainOptions(arguments.made(GenerateOptions), arguments["--quick"], resolve)
    # The crawl may not be named in the command line, which loaded the configuration by its words.
    context = replace(context, conf=context.conf.of_crawl(crawl).freeze())
    facts: Explanation | Overview
    if url is None:
        facts = overview(crawl, options, context=context)
        lines = overview_lines(facts, width_of(context.out))
    else:
        facts = explain(crawl, url, options, context=context)
        lines = explanation_lines(facts, width_of(context.out))
    for line in [to_json(facts)] if arguments["--json"] else lines:
        context.print(line)
    return 0


def _url_and_crawl(arguments: Arguments) -> tuple[str | None, Path]:
    """Returns the URL, if there is one, and the folder of the crawl."""
    words = arguments.positional
    if words and not words[0].strip():
        arguments.fail("the URL is empty")
    if len(words) > 1:
        # Either order: other commands take the crawl first.
        url, crawl = words if not Path(words[0]).is_dir() else reversed(words)
        return url, Path(crawl)
    if not words or Path(words[0]).is_dir():
        return None, Path(*words) if words else Path(DEFAULT_CRAWL)
    # A folder that is misspelt: it would be "not in this crawl" as a URL.
    if not _SCHEME.match(words[0]) and ("/" in words[0] or "." not in words[0]):
        raise StoreError(f"{words[0]} is neither a URL nor a folder")
    return words[0], Path(DEFAULT_CRAWL)


def whatif(arguments: Arguments, context: JobContext) -> int:
    """Runs `whatif`. Exit code 0."""
    crawl, proposal = arguments["crawl"], arguments["conf"]
    if proposal is not None and not proposal.exists():
        raise StoreError(f"{proposal}: no such file or folder")
    before, after = context.conf.proposed(crawl, proposal)
    options = arguments.made(GenerateOptions, filtering=arguments["--filter"])
    if "-topN" not in arguments.given:
        # generate alone takes all that is due; what people run is crawl, with its size of a round.
        options = replace(options, top_n=CrawlOptions().size)
    context = replace(context, conf=after.freeze())
    found = forecast(crawl, before.freeze(), after, options, context=context)
    for line in [to_json(found)] if arguments["--json"] else text(found, width_of(context.out)):
        context.print(line)
    return 0
