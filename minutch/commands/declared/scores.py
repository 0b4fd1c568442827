"""Declares scores from links, and the index."""

from __future__ import annotations

from minutch.commands.declaration import (
    FAILED_LATE,
    Argument,
    Command,
    Option,
    path,
    segment,
    segments_in,
    switch,
)
from minutch.commands.declared.cycle import DIR, RULES
from minutch.commands.declared.databases import CRAWL

# fmt: off
_LAST_PORT = 65535
_NO_COMMIT = switch("-noCommit", "do not call the commit method of indexer plugins")


def _graph(help: str) -> Option:
    return Option("-webgraphdb", "webgraphdb", path, help, required=True)


SCORES = (
    Command(
        "webgraph", java="scoring.webgraph.WebGraph",
        reads="segments: parse_data; webgraphdb", writes="webgraphdb",
        help="build the graph of links between pages, or add segments to it",
        example="minutch webgraph -webgraphdb crawl/graph -segmentDir crawl/segments",
        options=(
            _graph("the webgraph to make or to add to"),
            Option("-segment", "segment", segment, "the segments", many=True, required=True),
            Option("-segmentDir", "segmentDir", segments_in, "the directory of the segments",
                   field="segment", many=True),
            switch("-normalize", "normalize the URLs of links, existing ones too", aliases=("-n",)),
            switch("-filter", "filter the URLs of links, existing ones too", field="filtering",
                   aliases=("-f",)),
        ),
        synopsis=(
            "-webgraphdb <webgraphdb> (-segment <segment> ... | -segmentDir <segmentDir> ...)"
            " [-normalize] [-filter]",
        ),
        job="minutch.cycle.webgraph.build:webgraph", settings="WebGraphOptions",
        error_exit=FAILED_LATE,
    ),
    Command(
        "linkrank", java="scoring.webgraph.LinkRank",
        reads="webgraphdb", writes="webgraphdb",
        help="score each page by the pages that link to it",
        example="minutch linkrank -webgraphdb crawl/graph",
        options=(_graph("the webgraph whose nodes get scores"),),
        job="minutch.cycle.webgraph.linkrank:linkrank", error_exit=FAILED_LATE,
    ),
    Command(
        "scoreupdater", java="scoring.webgraph.ScoreUpdater",
        reads="webgraphdb, crawldb", writes="crawldb",
        help="write these scores to the crawldb",
        example="minutch scoreupdater -crawldb crawl/crawldb -webgraphdb crawl/graph",
        options=(
            Option("-crawldb", "crawldb", path, "the CrawlDb whose entries get scores",
                   required=True),
            _graph("the webgraph that has the scores"),
        ),
        job="minutch.cycle.webgraph.linkrank:scoreupdater",
    ),
    Command(
        "nodedumper", java="scoring.webgraph.NodeDumper",
        reads="webgraphdb", writes="a folder",
        help="list the pages, hosts or domains with the most links or highest scores",
        example="minutch nodedumper -topn 20 -webgraphdb crawl/graph -output top/",
        options=(
            _graph("the webgraph"),
            Option("-output", "output", path, "the new directory to write to", required=True),
            switch("-scores", "the score that linkrank gave a page (the default)", field="number",
                   gives="scores"),
            switch("-outlinks", "the number of links of a page; goes before -scores",
                   field="number", gives="outlinks"),
            switch("-inlinks", "the number of links to a page; goes before both", field="number",
                   gives="inlinks"),
            Option("-topn", "topn", int, "only the first pages or groups, by the highest numbers",
                   least=0),
            Option("-group", "host|domain sum|max", help="group the pages of a host or domain"),
            switch("-asEff", "name=number, as Solr's ExternalFileField reads it"),
            switch("-asSequenceFile", "a SequenceFile of Text and FloatWritable"),
        ),
        job="minutch.cycle.webgraph.dumpers:nodedumper", settings="NodeDumperOptions",
        code="minutch.commands.jobcommands:nodedumper", error_exit=FAILED_LATE,
    ),
)

INDEX = (
    Command(
        "index", java="indexer.IndexingJob",
        reads="crawldb, linkdb, segments", writes="index writers",
        help="send the pages of segments to search engines or files",
        example="minutch index crawl/crawldb -linkdb crawl/linkdb -dir crawl/segments",
        synopsis=("(<crawldb> | -nocrawldb) (<segment> ... | -dir <segments>) [general options]",),
        arguments=(
            Argument("crawldb",
                     "the CrawlDb, which is needed to delete duplicates from the index, and for"
                     " scores", path, is_optional=True),
            Argument("segment", "the segments", segment, many=True, is_optional=True),
        ),
        options=(
            switch("-nocrawldb", "use no CrawlDb", rest=""),
            DIR,
            Option("-linkdb", "linkdb", path,
                   "use a LinkDb to index anchor texts of incoming links", rest="",
                   group="General options:"),
            Option("-params", "k1=v1&k2=v2...",
                   help="parameters passed to indexer plugins (indexer.additional.params)"),
            _NO_COMMIT,
            switch("-deleteGone", "send deletion requests for 404s, redirects, duplicates"),
            *RULES,
            switch("-addBinaryContent", "index raw/binary content in field `binaryContent`"),
            switch("-base64", "use Base64 encoding for binary content"),
        ),
        job="minutch.cycle.index.indexing:index", settings="IndexOptions",
        code="minutch.commands.jobcommands:index", remote=True,
    ),
    Command(
        "clean", java="indexer.CleaningJob",
        reads="crawldb", writes="index writers",
        help="delete gone pages and duplicates from the index",
        example="minutch clean crawl/crawldb",
        arguments=(
            Argument("crawldb",
                     "the CrawlDb whose db_gone and db_duplicate entries are deleted from the"
                     " index", path),
        ),
        options=(_NO_COMMIT,),
        job="minutch.cycle.index.indexing:clean", settings="CleanOptions",
        usage_exit=1,
    ),
    Command(
        "search",
        reads="local index", writes="stdout",
        help="search the local index of a crawl",
        example="minutch search crawl/index words",
        arguments=(
            Argument("index", "an index of indexer-local, or the folder of a crawl that has one",
                     path),
            Argument("query",
                     'words, "phrases", title:word, date:2024, -without; most words have to be'
                     " there; quote it for the shell", many=True),
        ),
        options=(
            Option("-n", "hits", int, "how many hits to show; 10 is the default", field="limit"),
            Option("-from", "hit", int, "the number of the first one; 1 is the default"),
            switch("-json", "each hit as JSON on a line, with all fields of the document"),
        ),
        code="minutch.commands.search:run",
    ),
    Command(
        "serve",
        reads="crawl folder",
        help="serve a search page for a crawl, with cached pages, links and history",
        example="minutch serve crawl/ -port 8080",
        arguments=(CRAWL,),
        options=(
            Option("-port", "port", int,
                   "the port to listen on; 8080 is the default, 0 takes a free one", least=0,
                   most=_LAST_PORT),
            Option("-host", "host",
                   help="the host to listen on; localhost is the default. Whoever can connect can"
                        " read all of the crawl"),
            Option("-index", "index", path,
                   "the index, if it is not the folder `index` of the crawl"),
        ),
        code="minutch.commands.serve:run",
    ),
)
