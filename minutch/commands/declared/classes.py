"""Declares commands that Nutch runs by class name only."""

from __future__ import annotations

from typing import Any

from minutch.commands.declaration import FAILED_LATE, Argument, Command, Option, path
from minutch.commands.declared.segments import ARC_TO_SEGMENT


# fmt: off
def _named(java: str, code: str, **more: Any) -> Command:
    return Command(
        java, java=java,
        code=f'minutch.commands.classes:{code}', **more,
    )


_GRAPH = Option("-webgraphdb", "webgraphdb", path, "the webgraph", required=True)
_URL = Option("-url", "url", help="the page", required=True)

CLASSES = (
    Command(
        "scoring.webgraph.LinkDumper", java="scoring.webgraph.LinkDumper",
        reads="webgraphdb", writes="webgraphdb: linkdump",
        help="dump the nodes that link to each page, for look-ups",
        example="minutch scoring.webgraph.LinkDumper -webgraphdb crawl/graph",
        options=(_GRAPH,),
        job="minutch.cycle.webgraph.dumpers:linkdumper", error_exit=FAILED_LATE,
    ),
    _named(
        "scoring.webgraph.LinkDumper$Reader", "linkdumpreader",
        reads="webgraphdb: linkdump", writes="stdout",
        help="show the nodes that link to a page",
        example="minutch 'scoring.webgraph.LinkDumper$Reader' crawl/graph http://x/",
        arguments=(
            Argument("webgraphdb", "the webgraph, with the dump of LinkDumper", path),
            Argument("url", "the page"),
            Argument("ignored", many=True, is_optional=True),
        ),
        usage_exit=0,
    ),
    _named(
        "scoring.webgraph.NodeReader", "nodereader",
        reads="webgraphdb", writes="stdout",
        help="show the node of a page: numbers of links, and score",
        example="minutch scoring.webgraph.NodeReader -webgraphdb graph -url http://x/",
        options=(_GRAPH, _URL),
        usage_exit=0,
    ),
    _named(
        "scoring.webgraph.LoopReader", "loopreader",
        reads="webgraphdb: loops", writes="stdout",
        help="show the loop of a page, as found by older versions of Nutch",
        example="minutch scoring.webgraph.LoopReader -webgraphdb graph -url http://x/",
        options=(_GRAPH, _URL),
        usage_exit=0,
    ),
    _named(
        "crawl.AdaptiveFetchSchedule", "adaptivefetchschedule", writes="stdout",
        help="show when the adaptive schedule fetches a page that changes every 30 days",
        example="minutch crawl.AdaptiveFetchSchedule",
    ),
    _named(
        "crawl.MimeAdaptiveFetchSchedule", "mimeadaptivefetchschedule", writes="stdout",
        help="show the same for the schedule by media type",
        example="minutch crawl.MimeAdaptiveFetchSchedule",
    ),
    _named(
        "crawl.TextProfileSignature", "textprofilesignature",
        reads="a folder of texts", writes="stdout",
        help="print the text profile signature of each file",
        example="minutch crawl.TextProfileSignature texts/",
        arguments=(Argument("folder", "the folder of the files", path),),
    ),
    _named(
        "util.EncodingDetector", "encodingdetector",
        reads="an HTML file", writes="stdout",
        help="detect the charset of a page",
        example="minutch util.EncodingDetector page.html",
        arguments=(Argument("file", "the page", path),),
        usage_exit=1,
    ),
    _named(
        "util.URLUtil", "urlutil",
        reads="a URL", writes="stdout",
        help="print the registered domain of a URL",
        example="minutch util.URLUtil https://www.example.co.uk/",
        arguments=(Argument("url", "the URL"),),
        note="Prints the domain of the URL's host, one label below its public suffix.",
        usage_exit=0,
    ),
    Command(
        "tools.arc.ArcSegmentCreator", java="tools.arc.ArcSegmentCreator",
        reads="ARC files", writes="segments: content, crawl_fetch",
        help="make segments of the pages in ARC files",
        example="minutch tools.arc.ArcSegmentCreator arcs/ crawl/segments",
        arguments=ARC_TO_SEGMENT,
        job="minutch.archives.replay.archiveimport:arc2segment",
    ),
    _named(
        "tools.ResolveUrls", "resolveurls",
        reads="URL list", writes="stdout",
        help="check which hosts have an address",
        example="minutch tools.ResolveUrls -urls urls.txt",
        options=(
            Option("-urls", "urls", path, "a file with a URL in each line", required=True),
            Option("-numThreads", "threads", int, "the number of parallel look-ups (100)"),
        ),
        shows_usage=True,
    ),
)
