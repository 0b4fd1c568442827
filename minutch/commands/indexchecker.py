"""`minutch indexchecker`: shows the documents of pages as they would be indexed.

Source: org.apache.nutch.indexer.IndexingFiltersChecker.
"""

from __future__ import annotations

from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.commands.pageflags import PAGE_FLAGS, page_options, show_pages
from minutch.cycle.index.indexchecker import IndexChecker, IndexCheckOptions
from minutch.job import JobContext

USAGE: Final = """\
IndexingFiltersChecker [OPTIONS] (<url> | -stdin | -listen <port> [-keepClientCnxOpen])

  -D<property>=<value>  set a property (before the other options)
  -normalize            normalize the URLs
  -followRedirects      follow redirects
  -checkRobotsTxt       fail if robots.txt forbids the page
  -dumpText             show whole values, not only their first 100 characters
  -doIndex              send the document to the index writers as well
  -md <key>=<value>     metadata of the CrawlDatum; may be repeated
  -stdin                read URLs from stdin, one on each line
  -listen <port>        read them from connections to this port
  -keepClientCnxOpen    more than one on each connection"""
FLAGS: Final = (*PAGE_FLAGS, Flag("-doIndex"))


def run(args: list[str], context: JobContext) -> int:
    """Checks one page, or those of stdin or of connections."""
    arguments = parse(args, FLAGS, usage=USAGE, least=0 if args else 1, most=1)
    options = IndexCheckOptions(**page_options(arguments), do_index=arguments["-doIndex"])
    with IndexChecker(context.conf, options, context.clock) as checker:
        return show_pages(checker, arguments, context)
