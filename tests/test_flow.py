"""Commands, extension points and plugins: each is written down once, and the places agree."""

from __future__ import annotations

import importlib
import re
from xml.etree import ElementTree

import pytest

from minutch.commands import flow
from minutch.plugin.points import POINTS
from tests.support.golden import PROJECT, SHARED

NUTCH = {
    "inject": "crawl.Injector",
    "generate": "crawl.Generator",
    "freegen": "tools.FreeGenerator",
    "fetch": "fetcher.Fetcher",
    "parse": "parse.ParseSegment",
    "readdb": "crawl.CrawlDbReader",
    "mergedb": "crawl.CrawlDbMerger",
    "readlinkdb": "crawl.LinkDbReader",
    "readseg": "segment.SegmentReader",
    "mergesegs": "segment.SegmentMerger",
    "updatedb": "crawl.CrawlDb",
    "invertlinks": "crawl.LinkDb",
    "mergelinkdb": "crawl.LinkDbMerger",
    "dump": "tools.FileDumper",
    "commoncrawldump": "tools.CommonCrawlDataDumper",
    "warc": "tools.warc.WARCExporter",
    "index": "indexer.IndexingJob",
    "dedup": "crawl.DeduplicationJob",
    "clean": "indexer.CleaningJob",
    "parsechecker": "parse.ParserChecker",
    "indexchecker": "indexer.IndexingFiltersChecker",
    "filterchecker": "net.URLFilterChecker",
    "normalizerchecker": "net.URLNormalizerChecker",
    "domainstats": "util.DomainStatistics",
    "protocolstats": "util.ProtocolStatusStatistics",
    "crawlcomplete": "util.CrawlCompletionStats",
    "webgraph": "scoring.webgraph.WebGraph",
    "linkrank": "scoring.webgraph.LinkRank",
    "scoreupdater": "scoring.webgraph.ScoreUpdater",
    "nodedumper": "scoring.webgraph.NodeDumper",
    "plugin": "plugin.PluginRepository",
    "junit": "org.junit.runner.JUnitCore",
    "startserver": "service.NutchServer",
    "updatehostdb": "hostdb.UpdateHostDb",
    "readhostdb": "hostdb.ReadHostDb",
    "sitemap": "util.SitemapProcessor",
    "showproperties": "tools.ShowProperties",
    "robotsparser": "protocol.RobotRulesParser",
}
"""Nutch's src/bin/nutch, 1.22 and 1.23-SNAPSHOT: commands, and the classes below org.apache.nutch
that they run.
"""

CLASSES = {
    "scoring.webgraph.LinkDumper",
    "scoring.webgraph.LinkDumper$Reader",
    "scoring.webgraph.NodeReader",
}
CLASSES |= {"scoring.webgraph.LoopReader"}  # until Nutch 1.11
CLASSES |= {
    "crawl.AdaptiveFetchSchedule",
    "crawl.MimeAdaptiveFetchSchedule",
    "crawl.TextProfileSignature",
}
CLASSES |= {"util.EncodingDetector", "util.URLUtil", "tools.ResolveUrls"}
CLASSES |= {"tools.arc.ArcSegmentCreator"}
"""Classes of Nutch that are run by their names alone."""

OWN = {
    "init",
    "init-plugin",
    "crawl",
    "report",
    "sql",
    "explain",
    "fsck",
    "unlock",
    "text",
    "search",
    "serve",
    "completion",
}
OWN |= {"export", "import", "simulate", "audit", "check"}
OWN |= {"arc2segment"}
"""Commands that Nutch does not have (crawl is a script there)."""


@pytest.mark.parametrize(
    "command", [*flow.commands().values(), *flow.CLASSES], ids=lambda command: command.name
)
def test_a_commands_module_runs_and_has_a_usage(command: flow.Command) -> None:
    module = importlib.import_module(command.module)
    assert callable(module.run)
    assert isinstance(module.USAGE, str)
    assert module.USAGE


def test_modules_are_named_like_their_commands() -> None:
    for command in flow.commands().values():
        if command.name != "plugin":
            assert command.module.rpartition(".")[2].removesuffix("_") == command.name.replace(
                "-", "_"
            )


def test_commands_have_nutchs_names_and_classes() -> None:
    for command in flow.commands().values():
        if command.name in OWN:
            assert command.nutch_class == "", command.name
        else:
            name = command.name
            assert name in NUTCH, f"{name}: add it to OWN or, with Nutch's class, to NUTCH above"
            assert command.nutch_class.removeprefix("org.apache.nutch.") == NUTCH[name]


def test_classes_that_are_run_by_their_names() -> None:
    assert {command.name for command in flow.CLASSES} == CLASSES
    for command in flow.CLASSES:
        assert command.nutch_class == f"org.apache.nutch.{command.name}"
        assert flow.find(command.name) is flow.find(command.nutch_class) is command


def test_commands_that_are_missing_are_named() -> None:
    assert set(flow.MISSING) == set(NUTCH) - set(flow.commands())
    assert {name: java for name, (java, _) in flow.MISSING.items()} == {
        name: NUTCH[name] for name in flow.MISSING
    }


def test_every_command_of_nutch_is_here() -> None:
    """Nutch's list of commands is found by name and by class."""
    path = SHARED / "nutch" / "commands.md"
    if not path.is_file():
        pytest.skip("the list of Nutch's commands is not beside this checkout")
    listed = re.findall(r"^\| (\w+) \| ([\w.]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    listed = [(name, java) for name, java in listed if name in NUTCH]
    assert len(listed) > 30
    for name, java in listed:
        if name not in flow.MISSING:
            assert flow.find(name) is flow.find(java) is not None, name
    assert set(flow.MISSING) == {"junit"}


def test_find_and_suggest() -> None:
    for command in flow.commands().values():
        assert flow.find(command.name) is command
        if command.nutch_class:
            assert flow.find(command.nutch_class) is command
    assert flow.find("") is None
    assert flow.suggestions("readbd")[0] == "readdb"


def test_names_and_groups_are_unique() -> None:
    names = [command.name for group in flow.COMMANDS.values() for command in group]
    assert len(names) == len(set(names))
    assert list(flow.COMMANDS) == list(flow.GROUPS)
    assert not set(names) & set(flow.REPLACED)
    assert not set(names) & set(flow.MISSING)


def test_every_extension_point_is_declared_once() -> None:
    root = ElementTree.parse(PROJECT / "plugins" / "nutch_extensionpoints" / "plugin.xml").getroot()
    assert [point.get("id") for point in root.iter("extension-point")] == list(POINTS)


def test_plugin_folders_are_named_like_their_ids() -> None:
    for manifest in sorted((PROJECT / "plugins").glob("*/plugin.xml")):
        plugin_id = ElementTree.parse(manifest).getroot().get("id", "")
        assert manifest.parent.name == plugin_id.replace("-", "_")
