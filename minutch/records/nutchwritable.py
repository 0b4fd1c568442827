"""org.apache.nutch.crawl.NutchWritable: any of Nutch's values behind one byte that tells its
class.
"""

from __future__ import annotations

from minutch.hadoop.formats.genericwritable import GenericWritable

_HADOOP = (
    "NullWritable BooleanWritable LongWritable ByteWritable BytesWritable FloatWritable IntWritable"
    " MapWritable Text"
)
_NUTCH = (
    "crawl.CrawlDatum crawl.Inlink crawl.Inlinks indexer.NutchIndexAction metadata.Metadata"
    " parse.Outlink parse.ParseText parse.ParseData parse.ParseImpl parse.ParseStatus"
    " protocol.Content protocol.ProtocolStatus scoring.webgraph.LinkDatum hostdb.HostDatum"
)


class NutchWritable(GenericWritable):
    """One value of the classes in `types`, in Nutch's order."""

    __slots__ = ()
    class_name = "org.apache.nutch.crawl.NutchWritable"
    types = (
        *(f"org.apache.hadoop.io.{name}" for name in f"{_HADOOP} MD5Hash".split()),
        *(f"org.apache.nutch.{name}" for name in _NUTCH.split()),
    )
