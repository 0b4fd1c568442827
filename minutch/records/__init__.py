"""Nutch's Writables: one dataclass each, with read and write side by side.

What jobs walk in bulk is there as columns, too: in a module beside it (`…_columns`), which loads
Polars, or in its own where no job does without. Begin with crawldatum. `CLASSES` says where each
Java class is; a class is imported when it is first met.

    `crawldatum`, `crawldatum_columns`    what is known of a URL
    `validators`                          tell whether a page is still the one that it stands for
    `links`, `links_columns`              links out of pages, and into them
    `hostdatum`, `hostdatum_columns`      what is known of a host
    `webgraph`                            the graph
    `protocol`                            a page as it came, and how its fetch ended
    `parsedata`, `parsedata_columns`      what a parse found
    `textblocks`                          marks of the lines of a text
    `metadata`, `metadata_columns`        named values, as they lie in other records
    `rawmap`                              a serialized MapWritable, edited as bytes
    `document`                            what goes to a search engine
    `legacy`, `legacyfetch`               records of Nutch 0.4 to 0.7
"""

from __future__ import annotations

from importlib import import_module

from minutch.hadoop.formats.registry import ALIASES, Writable, add_finder

CLASSES = {
    f"org.apache.nutch.{java}": place
    for java, place in {
        "crawl.CrawlDatum": "crawldatum:CrawlDatum",
        "crawl.Inlink": "links:Inlink",
        "crawl.Inlinks": "links:Inlinks",
        "crawl.MapWritable": "crawldatum:OldMapWritable",
        "crawl.NutchWritable": "crawldatum:NutchWritable",
        "crawl.Generator$SelectorEntry": "crawldatum:SelectorEntry",
        "hostdb.HostDatum": "hostdatum:HostDatum",
        "indexer.NutchDocument": "document:NutchDocument",
        "indexer.NutchField": "document:NutchField",
        "indexer.NutchIndexAction": "document:NutchIndexAction",
        "metadata.Metadata": "metadata:Metadata",
        "metadata.MetaWrapper": "metadata:MetaWrapper",
        "parse.Outlink": "links:Outlink",
        "parse.ParseData": "parsedata:ParseData",
        "parse.ParseImpl": "parsedata:ParseImpl",
        "parse.ParseStatus": "parsedata:ParseStatus",
        "parse.ParseText": "parsedata:ParseText",
        "protocol.Content": "protocol:Content",
        "protocol.ProtocolStatus": "protocol:ProtocolStatus",
        "scoring.webgraph.LinkDatum": "webgraph:LinkDatum",
        "scoring.webgraph.Node": "webgraph:Node",
        "scoring.webgraph.LinkDumper$LinkNode": "webgraph:LinkNode",
        "scoring.webgraph.LinkDumper$LinkNodes": "webgraph:LinkNodes",
        "scoring.webgraph.Loops$Route": "webgraph:Route",
        "scoring.webgraph.Loops$LoopSet": "webgraph:LoopSet",
    }.items()
} | {
    f"net.nutch.{java}": place
    for java, place in {
        "db.Link": "legacy:OldLink",
        "db.Page": "legacy:OldPage",
        "fetcher.FetcherContent": "legacy:FetcherContent",
        "fetcher.FetcherOutput": "legacyfetch:FetcherOutput",
        "fetcher.FetcherText": "legacy:FetcherText",
        "fetcher.Outlink": "legacy:OldOutlink",
        "pagedb.FetchListEntry": "legacyfetch:FetchListEntry",
        "parse.ParseData": "legacy:OldParseData",
        "parse.ParseText": "legacy:OldParseText",
        "protocol.Content": "legacy:OldContent",
    }.items()
}
"""Java class name → `module:class` of this folder."""

_PACKAGES_OF_OLD = ("", "nutch.", "org.apache.nutch.")
"""Prefixes of old class names besides `net.nutch.`."""


def old_names() -> dict[str, str]:
    """Returns the other names of Nutch's old classes in files → their names in CLASSES.

    Those of the class alone (WritableName, from Nutch 0.5 on), with another package, and Hadoop's
    classes when they were Nutch's. What `org.apache.nutch.…` means today stays what it is.
    """
    names: dict[str, str] = {}
    for full in filter(lambda name: name.startswith("net.nutch."), CLASSES):
        short = full.removeprefix("net.nutch.")
        names |= {full.rpartition(".")[2]: full} | {
            package + short: full for package in _PACKAGES_OF_OLD
        }
    names["net.nutch.parse.Outlink"] = "net.nutch.fetcher.Outlink"
    for java in ("LongWritable", "MD5Hash", "NullWritable", "UTF8"):
        names |= {
            f"{package}.io.{java}": f"org.apache.hadoop.io.{java}"
            for package in ("net.nutch", "org.apache.nutch")
        }
    return {name: full for name, full in names.items() if name not in CLASSES}


def find_class(class_name: str) -> type[Writable] | None:
    """Returns the class of a Java class name; None if it is not one of Nutch's."""
    module, _, name = CLASSES.get(class_name, "").partition(":")
    if not module:
        return None
    found: type[Writable] = getattr(import_module(f"{__name__}.{module}"), name)
    return found


add_finder(find_class)
ALIASES.update(old_names())
