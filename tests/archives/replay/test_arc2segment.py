"""arc2segment: Nutch's ArcSegmentCreator on the ARC file of its golden runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from minutch.commands import flow
from minutch.cycle.segment.store import segments_in
from minutch.errors import UsageError
from minutch.job import JobContext
from minutch.records.metadata import SEGMENT_NAME_KEY
from tests.support.commands import arc2segment
from tests.support.golden import needs_golden
from tests.support.nutchruns import COMMANDS, NutchRun
from tests.support.segments import conf_for, contents, fetched

RUN = NutchRun("arc/reader-mended")
golden = needs_golden("commands/arc/reader-mended/console.txt")


@golden
def test_the_pages_are_those_of_nutch(tmp_path: Path) -> None:
    """The same URLs. What Nutch had wrong is right: bodies, types, times, the page that is gone."""
    context = JobContext(RUN.conf())
    assert (
        arc2segment.run([str(COMMANDS / "arc/reader-mended/arcs"), str(tmp_path)], context)
        == RUN.exit
    )
    (mine,) = segments_in(tmp_path)
    (nutchs,) = segments_in(COMMANDS / "arc/reader-mended/segments")
    before, after = fetched(nutchs), fetched(mine)
    assert set(after) == set(before)
    assert {url: found[0].status_name for url, found in after.items()} == {
        url: "fetch_gone" if url.endswith("/gone") else "fetch_success" for url in before
    }
    assert {(found[0].score, found[0].fetch_interval) for found in after.values()} == {
        (found[0].score, found[0].fetch_interval) for found in before.values()
    }
    old_pages, pages = contents(nutchs), contents(mine)
    gone = {url for url in old_pages if url.endswith("/gone")}
    assert set(pages) == set(old_pages) - gone
    for url, page in pages.items():
        old = old_pages[url]
        assert old.content_type == "application/x-httpresponse"
        assert old.content.startswith(b"HTTP/1.")
        assert page.content
        assert page.content in old.content
        assert not page.content.startswith(b"HTTP/1.")
        assert page.metadata.get("arc.url.version") == old.metadata.get("arc.url.version")
        assert page.metadata.get(SEGMENT_NAME_KEY) == mine.name
    types = {url.rpartition("/")[2]: page.content_type for url, page in pages.items()}
    assert (types[""], types["d.txt"], types["bin"]) == ("text/html", "text/plain", "image/gif")
    assert len(pages["http://www.example.org/"].content) == 148
    assert after["http://www.example.org/a.html"][0].fetch_time == 1_326_067_201_000


@golden
def test_urls_are_filtered(tmp_path: Path) -> None:
    conf = conf_for(plugin__includes="urlfilter-regex", urlfilter__regex__rules="+\\.html$\n-.")
    context = JobContext(conf)
    assert arc2segment.run([str(COMMANDS / "arc/reader-mended/arcs"), str(tmp_path)], context) == 0
    assert set(fetched(segments_in(tmp_path)[0])) == {"http://www.example.org/a.html"}
    assert context.reports["ArcSegmentCreator"]["filtered"] == 6


def test_it_has_nutchs_name_and_usage() -> None:
    command = flow.find("org.apache.nutch.tools.arc.ArcSegmentCreator")
    assert command is not None
    assert command.job == flow.commands()["arc2segment"].job
    assert command.usage_exit == 255
    with pytest.raises(UsageError, match="Usage: arc2segment <arcFiles> <segmentsOutDir>"):
        arc2segment.run(["arcs"], JobContext(conf_for()))
