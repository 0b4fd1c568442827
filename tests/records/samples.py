"""One well-filled value of every record class."""

from __future__ import annotations

from minutch.hadoop.formats.writables import (
    DoubleWritable,
    FloatWritable,
    IntWritable,
    MapWritable,
    Text,
    Writable,
)
from minutch.records import legacy as oldcontent
from minutch.records import legacy as oldfields
from minutch.records import legacy as oldparse
from minutch.records import protocol
from minutch.records.crawldatum import (
    STATUS_DB_FETCHED,
    CrawlDatum,
    NutchWritable,
    OldMapWritable,
    SelectorEntry,
)
from minutch.records.document import DELETE, Date, Long, NutchDocument, NutchField, NutchIndexAction
from minutch.records.hostdatum import HostDatum
from minutch.records.legacy import OldLink, OldPage
from minutch.records.legacyfetch import WITH_PARSE, WITH_STATUS, FetcherOutput, FetchListEntry
from minutch.records.links import Inlink, Inlinks, Outlink
from minutch.records.metadata import Metadata, MetaWrapper
from minutch.records.parsedata import (
    SUCCESS,
    SUCCESS_REDIRECT,
    ParseData,
    ParseImpl,
    ParseStatus,
    ParseText,
)
from minutch.records.protocol import Content, ProtocolStatus
from minutch.records.webgraph import OUTLINK, LinkDatum, LinkNode, LinkNodes, LoopSet, Node, Route

META = MapWritable(
    {Text("_rs_"): IntWritable(12), Text("_pst_"): ProtocolStatus.of(protocol.SUCCESS)}
)
DATUM = CrawlDatum(
    STATUS_DB_FETCHED, 2_592_000, 1.5, 1_760_000_000_000, 1_750_000_000_000, 2, b"\x01" * 16, META
)
METADATA = Metadata.of({"Content-Type": "text/html", "Set-Cookie": ["a=1", "b=2"], "grün": "ü"})
DATA = ParseData(
    ParseStatus(SUCCESS, SUCCESS_REDIRECT, ["http://a/", None, "3"]),
    "A title",
    [
        Outlink("http://a/1", "one"),
        Outlink("http://a/2", "", MapWritable({Text("rel"): Text("next")})),
    ],
    METADATA,
    Metadata.of({"k": "v"}),
)
DOCUMENT = NutchDocument(
    {
        "id": NutchField(["http://a/"]),
        "many": NutchField(["x", True, 7, Long(2**40), 0.25, Date(1_767_323_045_000)], 2.0),
    },
    0.5,
    METADATA,
)
PAGE = OldPage("http://a/ü", b"\x07" * 16, 1_088_600_000_000, 2, 30, 5, 1.5, 0.25)
ENTRY = FetchListEntry(True, PAGE, ["one", "", "zwölf"])
OLD_LINKS = [oldfields.OldOutlink("http://a/1", "one"), oldfields.OldOutlink("http://a/2")]
LEGACY: list[Writable] = [
    PAGE,
    OldLink(b"\x01" * 16, "http://a/", -5, "anchor", True),
    oldfields.OldOutlink("http://a/", "x"),
    ENTRY,
    FetchListEntry(False, PAGE),
    FetcherOutput(ENTRY, b"\x02" * 16, 1, 1_088_600_000_123),
    FetcherOutput(ENTRY, b"\x02" * 16, 0, 1_088_600_000_123, "Title", OLD_LINKS, WITH_PARSE),
    FetcherOutput(
        ENTRY,
        fetch_date=7,
        version=WITH_STATUS,
        protocol_status=ProtocolStatus(protocol.GONE, ["x"]),
    ),
    oldcontent.OldContent(
        "http://a/", "http://b/", b"\0\xff<p>", "text/html", {"Server": "x", "grün": "ü"}
    ),
    oldcontent.FetcherContent(b"\0\xff<p>"),
    oldparse.OldParseData("Title", OLD_LINKS, {"k": "v"}),
    oldparse.OldParseData("", [], {}, ParseStatus(SUCCESS, SUCCESS_REDIRECT, ["http://a/"])),
    oldparse.OldParseText("some text, ü"),
    oldparse.FetcherText("x" * 70_000),
]
"""The records of Nutch before 0.8."""
SAMPLES: list[Writable] = [
    *LEGACY,
    DATUM,
    CrawlDatum(),
    SelectorEntry("http://a/", DATUM, 3),
    Inlink("http://a/", "anchor", META),
    Inlinks([Inlink("http://a/", "x"), Inlink("http://b/", "", META)]),
    Inlinks(),
    OldMapWritable({Text("b"): FloatWritable(1.0), Text("a"): DoubleWritable(2.0)}),
    METADATA,
    MetaWrapper(DATUM, METADATA),
    NutchWritable(DATUM),
    DOCUMENT,
    NutchField(["x", True], 2.0),
    NutchIndexAction(DOCUMENT, DELETE),
    Outlink("http://a/", "x", META),
    DATA,
    ParseImpl(ParseText("text"), DATA, False),
    DATA.status,
    ParseText("some text"),
    Content("http://a/", "http://b/", b"\0\xff<p>", "text/html", METADATA),
    ProtocolStatus(protocol.MOVED, ["http://b/"], 5),
    LinkDatum("http://a/", "x", 0.5, 1_760_000_000_000, OUTLINK),
    Node(3, 4, 0.75, METADATA),
    LinkNode("http://a/", Node(1, 2)),
    LinkNodes([LinkNode("http://a/", Node()), LinkNode("http://b/", Node())]),
    LinkNodes(),
    Route("http://a/", "http://b/", True),
    LoopSet({"http://a/": None, "http://b/": None}),
    HostDatum(0.5, 1_760_000_000_000, "http://a/", 1, 2, 3, 4, 5, 6, 7, 8, META),
]
