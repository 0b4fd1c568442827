"""A configuration for Nutch's own commands: minutch's shipped files, and no plugins but the
extension points.
"""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

from minutch.conf import Configuration

POINTS = (
    "exchange.Exchange",
    "indexer.IndexingFilter",
    "indexer.IndexWriter",
    "net.URLExemptionFilter",
    "net.URLFilter",
    "net.URLNormalizer",
    "parse.HtmlParseFilter",
    "parse.Parser",
    "protocol.Protocol",
    "publisher.NutchPublisher",
    "scoring.ScoringFilter",
    "segment.SegmentMergeFilter",
)


def write_configuration(folder: Path) -> Path:
    """Write the configuration files and a plugin folder below `folder`; returns what goes on the
    class path.
    """
    conf = folder / "conf"
    conf.mkdir()
    default = Configuration.load([]).resource("nutch-default.xml")
    assert default is not None
    (conf / "nutch-default.xml").write_bytes(default.read_bytes())
    plugin = folder / "plugins" / "nutch-extensionpoints"
    plugin.mkdir(parents=True)
    points = "".join(
        f'<extension-point id="org.apache.nutch.{name}" name="{name}"/>' for name in POINTS
    )
    (plugin / "plugin.xml").write_text(
        '<plugin id="nutch-extensionpoints" name="points" version="1" provider-name="minutch">'
        f'<runtime><library name="none.jar"/></runtime>{points}</plugin>',
        encoding="utf-8",
    )
    properties = {
        "plugin.folders": str(folder / "plugins"),
        "plugin.includes": "nutch-extensionpoints",
        "hadoop.tmp.dir": str(folder / "tmp"),
        "http.agent.name": "minutch-interop",
        # Small jobs end when they are done, not up to 1 s (or 5 s) later, and fill no buffers of
        # 100 MB.
        "mapreduce.client.progressmonitor.pollinterval": "10",
        "mapreduce.client.completion.pollinterval": "10",
        "mapreduce.task.io.sort.mb": "4",
    }
    body = "".join(
        f"<property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in properties.items()
    )
    (conf / "nutch-site.xml").write_text(f"<configuration>{body}</configuration>", encoding="utf-8")
    return conf
