"""What Nutch runs by class name only: schedules of one page, charset and signature of files, hosts
of URLs, look-ups in a webgraph.

Source: the methods main and run of AdaptiveFetchSchedule, MimeAdaptiveFetchSchedule,
EncodingDetector, TextProfileSignature, ResolveUrls, URLUtil, NodeReader, LoopReader and
Loops.LoopSet (Nutch 1.0 to 1.11), LinkDumper.Reader.
"""

from __future__ import annotations

from minutch.commands.arguments import Arguments
from minutch.cycle.crawldb.adaptive import (
    AdaptiveFetchSchedule,
    MimeAdaptiveFetchSchedule,
    simulate,
)
from minutch.cycle.parse.charset import CharsetDetector
from minutch.cycle.parse.signature import TextProfileSignature
from minutch.cycle.webgraph.store import WebGraph
from minutch.errors import StoreError
from minutch.hadoop.formats.javahash import float_to_string
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.job import JobContext
from minutch.records.crawldatum import SECONDS_PER_DAY, STATUS_DB_UNFETCHED, CrawlDatum
from minutch.records.protocol import Content
from minutch.records.webgraph import Node
from minutch.urls.domains import domain_name
from minutch.urls.hostname import look_up_hosts


def adaptivefetchschedule(arguments: Arguments, context: JobContext) -> int:
    """Simulates the schedule for a page that changes every 30 days."""
    page = CrawlDatum(STATUS_DB_UNFETCHED, 30 * SECONDS_PER_DAY, 1.0)
    simulate(AdaptiveFetchSchedule(context.conf), "", page, context.print)
    return 0


def mimeadaptivefetchschedule(arguments: Arguments, context: JobContext) -> int:
    """Simulates the schedule for an HTML page that changes every 30 days."""
    page = CrawlDatum(STATUS_DB_UNFETCHED, 30 * SECONDS_PER_DAY, 1.0)
    page.metadata = MapWritable({Text("Content-Type"): Text("text/html; charset=utf-8")})
    schedule = MimeAdaptiveFetchSchedule(context.conf)
    simulate(schedule, "http://www.example.com", page, context.print, missed="\t missed")
    return 0


def encodingdetector(arguments: Arguments, context: JobContext) -> int:
    """Prints the charset of an HTML file, detected like that of a page without a header.

    Nutch used the detector of ICU only if `encodingdetector.charset.min.confidence` allowed it, and
    otherwise printed the default.
    """
    data = arguments["file"].read_bytes()
    found = CharsetDetector(context.conf).detect(data, media_type="text/html")
    context.print(f"Guessed encoding: {found.name.lower()}")
    return 0


def textprofilesignature(arguments: Arguments, context: JobContext) -> int:
    """Prints `<file> TAB <signature>` for each file of a folder; Nutch ended after the first."""
    folder = arguments["folder"]
    if not folder.is_dir():
        raise StoreError(f"{folder} is no folder")
    signature = TextProfileSignature(context.conf)
    for path in sorted(entry for entry in folder.iterdir() if entry.is_file()):
        data = path.read_bytes()
        # TextProfileSignature.main reads line by line and joins by \n, which the profile then sees.
        text = "\n".join(data.decode("utf-8", "replace").splitlines())
        context.print(f"{path}\t{signature.calculate(Content(content=data), text).hex()}")
    return 0


def resolveurls(arguments: Arguments, context: JobContext) -> int:
    """Looks up the hosts of a list of URLs, and prints the time that each look-up takes. It ends
    after the last one; Nutch's never did.
    """
    threads = max(1, arguments.get("-numThreads", 100))
    total = found = time = 0
    with arguments["-urls"].open(encoding="utf-8", errors="replace") as file:
        for lookup in look_up_hosts((line.rstrip("\r\n") for line in file), threads):
            total += 1
            found += lookup.found
            time += lookup.ms
            result = "Resolved" if lookup.found else "Error Resolving"
            context.print(f"{result}: {lookup.host or 'null'}, {lookup.ms} millis")
    average = time // total if total else 0
    context.print(
        f"Total: {total}, Resolved: {found}, Errored: {total - found}, Average Time: {average}"
    )
    return 0


def urlutil(arguments: Arguments, context: JobContext) -> int:
    """Prints the registered domain of a URL. Raises UrlError for an invalid one; Nutch printed a
    stack trace and returned 0.
    """
    context.print(domain_name(arguments["url"]))
    return 0


def linkdumpreader(arguments: Arguments, context: JobContext) -> int:
    """Prints the nodes that link to a page, from the dump of LinkDumper."""
    url = arguments["url"]
    found = WebGraph(arguments["webgraphdb"]).linkdump.get(url)
    context.print(f"{url}:")
    for link in found.links if found is not None else ():
        context.print(f"  {link.url} - {link.node}")
    return 0


def nodereader(arguments: Arguments, context: JobContext) -> int:
    """Prints the node of a page. As in Nutch, a page not in the webgraph is a new node."""
    url = arguments["-url"]
    node = WebGraph(arguments["-webgraphdb"]).nodes.get(url) or Node()
    context.print(f"{url}:")
    context.print(f"  inlink score: {float_to_string(node.inlink_score)}")
    context.print(f"  outlink score: {float_to_string(node.outlink_score)}")
    context.print(f"  num inlinks: {node.num_inlinks}")
    context.print(f"  num outlinks: {node.num_outlinks}")
    return 0


def loopreader(arguments: Arguments, context: JobContext) -> int:
    """Prints the loop of a page, from a webgraph with the results of Nutch's Loops."""
    loops = WebGraph(arguments["-webgraphdb"]).loops.get(arguments["-url"])
    context.print(f"{arguments['-url']}:")
    for url in loops.java_order() if loops is not None else ():
        context.print(f"  {url}")
    return 0
