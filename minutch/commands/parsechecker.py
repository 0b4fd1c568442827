"""`minutch parsechecker`: fetch one page, parse it and show what comes out; a page of stdin per
line.

Nothing is stored. Source: org.apache.nutch.parse.ParserChecker: data goes to stdout, what went
wrong to stderr.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from minutch.clock import Clock
from minutch.commands.arguments import Flag, parse
from minutch.commands.pageflags import PAGE_FLAGS, page_options, show_pages
from minutch.conf import Configuration
from minutch.cycle.parse.pagecheck import PageChecker, PageCheckOptions
from minutch.hadoop.formats.javahash import hash_map_order, text_hash
from minutch.hadoop.formats.javaio import encode_text
from minutch.job import JobContext
from minutch.plugin.points import Parse, ParseResult
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import Metadata
from minutch.records.parsedata import ParseData
from minutch.records.protocol import Content

log = logging.getLogger(__name__)

USAGE: Final = """\
ParserChecker [OPTIONS] (<url> | -stdin | -listen <port> [-keepClientCnxOpen])

  -D<property>=<value>  set a property (stands before the other options)
  -normalize            normalize the URLs
  -followRedirects      follow redirects
  -checkRobotsTxt       fail if robots.txt forbids the page
  -dumpText             show the text as well
  -forceAs <mimeType>   parse as this type, whatever the page's type is
  -md <key>=<value>     metadata of the CrawlDatum; may be repeated
  -stdin                fetch and parse the pages whose URLs stand on stdin, one on each line
  -listen <port>        those that come from connections to this port
  -keepClientCnxOpen    more than one on each connection"""
FLAGS: Final = (*PAGE_FLAGS, Flag("-forceAs", value="mimeType"))


def run(args: list[str], context: JobContext) -> int:
    """The command."""
    arguments = parse(args, FLAGS, usage=USAGE, least=0 if args else 1, most=1)
    options = PageCheckOptions(**page_options(arguments))
    with ParserChecker(context.conf, options, context.clock, arguments["-forceAs"]) as checker:
        return show_pages(checker, arguments, context)


class ParserChecker(PageChecker):
    """Shows what parsing finds."""

    def __init__(
        self,
        conf: Configuration,
        options: PageCheckOptions,
        clock: Clock,
        force_as: str | None = None,
    ) -> None:
        super().__init__(conf, options, clock)
        self.force_as = force_as

    def _shown(self, content: Content, datum: CrawlDatum) -> str:
        result = self._parsed(content, datum)
        log.info("signature: %s", self._signature_of(content, result).hex())
        output = []
        for url, parsed in _in_order(result):
            self._score(partial(self._scoring.pass_score_after_parsing, url, content, parsed))
            text = parsed.text if self._options.dump_text else ""
            output.append(f"{url}\n{_as_fetched(url, parsed.data)}\n{text}")
        return "".join(output)


class Headers(Metadata):
    """The headers of a response before a segment has stored it (CaseInsensitiveMetadata, a tree
    without case).
    """

    def java_names(self) -> Iterator[str]:
        """The names in alphabetic order."""
        return iter(sorted(self, key=str.lower))


def _in_order(result: ParseResult) -> list[tuple[str, Parse]]:
    """The documents of a page in the order of Java's HashMap<Text, …>, which ParseResult keeps them
    in.
    """
    documents = list(result.items())
    return [documents[i] for i in hash_map_order([text_hash(encode_text(url)) for url in result])]


def _as_fetched(url: str, data: ParseData) -> ParseData:
    return (
        replace(data, content_meta=Headers(data.content_meta))
        if url[:4].lower() == "http"
        else data
    )
