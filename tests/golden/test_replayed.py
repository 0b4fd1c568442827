"""Every run of commands/ is replayed by a test, or stands here with the reason why not."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.support.golden import HAS_ALL, PROJECT
from tests.support.nutchruns import COMMANDS

TESTS = {
    "classes": ("cycle/parse/test_classes.py", "cycle/crawldb/test_classes.py"),
    "clean": ("cycle/index/test_golden.py",),
    "commoncrawldump": ("archives/test_commoncrawldump.py",),
    "crawlcomplete": ("cycle/crawldb/test_statistics.py",),
    "domainstats": ("cycle/crawldb/test_statistics.py",),
    "dump": ("archives/test_dump.py",),
    "filterchecker": ("golden/test_commands.py",),
    "freegen": ("cycle/fetchlist/test_freegen.py",),
    "generate-hostdb": ("golden/test_hostdb_golden.py",),
    "index": ("cycle/index/test_golden.py",),
    "indexchecker": ("golden/test_indexchecker_golden.py",),
    "linkdumper": ("golden/test_webgraph_golden.py",),
    "linkrank": ("golden/test_webgraph_golden.py",),
    "mergesegs": ("cycle/segment/test_mergesegs.py",),
    "nodedumper": ("golden/test_webgraph_golden.py",),
    "nodereader": ("golden/test_webgraph_golden.py",),
    "parse": ("golden/test_parse_commands.py", "golden/test_parse_tika_commands.py"),
    "parsechecker": ("golden/test_parsechecker_golden.py",),
    "plugin": ("golden/test_commands.py",),
    "protocolstats": ("cycle/crawldb/test_statistics.py",),
    "readdb": ("golden/test_commands.py", "cycle/crawldb/test_readdb_runs.py"),
    "readhostdb": ("golden/test_hostdb_golden.py",),
    "readseg": ("cycle/segment/test_readseg.py",),
    "robotsparser": ("golden/test_commands.py",),
    "scoreupdater": ("golden/test_webgraph_golden.py",),
    "showproperties": ("golden/test_commands.py",),
    "sitemap": ("cycle/sitemap/test_sitemap.py",),
    "updatehostdb": ("golden/test_hostdb_golden.py",),
    "usage": ("golden/test_commands.py", "golden/test_hostdb_golden.py"),
    "warc": ("archives/test_warc.py",),
    "webgraph": ("golden/test_webgraph_golden.py",),
}
"""Which tests replay the runs of a command: all of its folder, or the cases that they name."""

NOT_REPLAYED = {
    "arc/reader-mended": "ARC files are not read",
    "arc/reader-mended-parsing": "ARC files are not read",
    "arc/trunk": "Nutch reads nothing",
    "classes/dmoz": "the directory is no more; a line says what to do instead",
    "classes/dmoz-adult": "as dmoz",
    "classes/dmoz-topicfile": "as dmoz",
    "classes/resolveurls": (
        "Nutch never ends; tests/urls/test_classes.py has what its usage promises"
    ),
    "commoncrawldump/rich-plain": "Nutch finds nothing in its own segments",
    "dump/rich-one-segment": "Nutch finds nothing: it takes the folder that has the segments",
    "dump/rich-reverse": "Nutch throws at the first folder; rich-reverse-premade has them",
    "dump/rich-flat-reverse": "Nutch throws at the first folder",
    "dump/rich-nooutdir": "the command line of rich-plain",
    "dump/rich-segmentdir": "the command line of rich-plain",
    **dict.fromkeys(
        (
            f"indexchecker/{name}"
            for name in (
                *(
                    "doc_pdf",
                    "feed_xml",
                    "gz_html",
                    "home",
                    "metatarget_html",
                    "noindex_html",
                    "options",
                    "plain_txt",
                ),
                *("rmeta_html", "stdin", "utf16_html"),
            )
        ),
        "Nutch dies of a field without a value",
    ),
    "parsechecker/doc_pdf": "a PDF without a page, which PDFBox takes",
    "parsechecker/feed_xml": "the feed's own parser; parse/rich-all-* has its documents",
    "parsechecker/plain_txt": "Tika ends text by a line end; parse/rich-all-* has the page",
    "usage/arc": "ARC files are not read",
    "usage/crawl": (
        "Nutch has no such command: `crawl` is a script there, and a class of Nutch's that is"
        " abstract"
    ),
    "usage/dmoz": "the directory is no more; a line says what to do instead",
}

_ALL = (
    r'"commands/{0}/\{{crawl\}}-all-',
    r'(?:cases|nutch_runs|runs)\("{0}"',
    r'glob\(f?"(?:{0}|\{{name\}})/\*"',
)
"""How a test takes all runs of a command."""


@cache
def _text(path: str) -> str:
    return (PROJECT / "tests" / path).read_text(encoding="utf-8")


def _is_replayed(command: str, case: str) -> bool:
    for path in TESTS.get(command, ()):
        text = _text(path)
        if any(re.search(way.format(re.escape(command)), text) for way in _ALL):
            return True
        if re.search(rf"[\"'/]{re.escape(case)}[\"'/]", text) or any(
            f'"{case.removeprefix(prefix)}"' in text and prefix in text
            for prefix in ("rich-oldnames-",)
        ):
            return True
    return False


@pytest.mark.skipif(not HAS_ALL, reason="needs all golden files")
def test_every_run_is_replayed_or_has_a_reason() -> None:
    runs = sorted(
        str(path.parent.relative_to(COMMANDS)) for path in COMMANDS.glob("*/*/console.txt")
    )
    assert len(runs) == 408
    left_out = [run for run in runs if not _is_replayed(*run.split("/"))]
    assert [run for run in left_out if run not in NOT_REPLAYED] == []
    assert sorted(NOT_REPLAYED) == sorted(run for run in runs if run in NOT_REPLAYED)
