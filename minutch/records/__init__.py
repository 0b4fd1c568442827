"""Nutch's Writables, one dataclass each, with read and write side by side.

`CLASSES` says where each Java class is; a class is imported when it is first met in a file.
"""

from __future__ import annotations

from importlib import import_module

from minutch.formats.registry import Writable, add_finder

CLASSES = {
    f"org.apache.nutch.{java}": place
    for java, place in {
        "crawl.CrawlDatum": "crawldatum:CrawlDatum",
        "crawl.Inlink": "links:Inlink",
        "crawl.Inlinks": "links:Inlinks",
        "crawl.MapWritable": "oldmapwritable:OldMapWritable",
        "crawl.NutchWritable": "nutchwritable:NutchWritable",
        "crawl.Generator$SelectorEntry": "selectorentry:SelectorEntry",
        "hostdb.HostDatum": "hostdatum:HostDatum",
        "indexer.NutchDocument": "document:NutchDocument",
        "indexer.NutchField": "document:NutchField",
        "indexer.NutchIndexAction": "document:NutchIndexAction",
        "metadata.Metadata": "metadata:Metadata",
        "metadata.MetaWrapper": "metadata:MetaWrapper",
        "parse.Outlink": "links:Outlink",
        "parse.ParseData": "parsedata:ParseData",
        "parse.ParseImpl": "parsedata:ParseImpl",
        "parse.ParseStatus": "parsestatus:ParseStatus",
        "parse.ParseText": "parsetext:ParseText",
        "protocol.Content": "content:Content",
        "protocol.ProtocolStatus": "protocolstatus:ProtocolStatus",
        "scoring.webgraph.LinkDatum": "webgraph:LinkDatum",
        "scoring.webgraph.Node": "webgraph:Node",
        "scoring.webgraph.LinkDumper$LinkNode": "webgraph:LinkNode",
        "scoring.webgraph.LinkDumper$LinkNodes": "webgraph:LinkNodes",
        "scoring.webgraph.Loops$Route": "webgraph:Route",
        "scoring.webgraph.Loops$LoopSet": "webgraph:LoopSet",
    }.items()
}
"""Java class name → `module:class` of this folder."""


def find_class(class_name: str) -> type[Writable] | None:
    """The class of a Java class name; None if it is none of Nutch's."""
    module, _, name = CLASSES.get(class_name, "").partition(":")
    if not module:
        return None
    found: type[Writable] = getattr(import_module(f"{__name__}.{module}"), name)
    return found


add_finder(find_class)
