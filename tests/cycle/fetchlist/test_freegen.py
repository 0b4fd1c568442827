"""freegen against the fetch lists that Nutch made of the same text."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.cycle.segment.store import CRAWL_GENERATE, Segment, segments_in
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.records.crawldatum import CrawlDatum
from tests.support.commands import freegen
from tests.support.golden import needs_golden
from tests.support.nutchruns import COMMANDS, NutchRun, context_for

RUNS = [NutchRun(f"freegen/{path.name}") for path in sorted(COMMANDS.glob("freegen/*"))]
NO_URLS = re.compile("#.*|")
"""Nutch takes comments and blank lines for URLs."""


def fetch_list(segment: Segment) -> list[tuple[str, CrawlDatum]]:
    found = []
    for url, datum in segment.records(CRAWL_GENERATE):
        assert isinstance(datum, CrawlDatum)
        datum.fetch_time //= 60_000  # by the clock
        found.append((url, datum))
    return found


@needs_golden("commands/freegen")
@pytest.mark.parametrize("run", RUNS, ids=str)
def test_the_list_is_that_of_nutch(run: NutchRun, tmp_path: Path) -> None:
    [theirs] = segments_in(run.folder / "segs")
    time = datetime.strptime(theirs.name, "%Y%m%d%H%M%S").timestamp()
    context, _ = context_for(run.conf(), clock=FakeClock(int(time * 1000)))
    places = {"urls": str(run.folder / "urls"), "segs": str(tmp_path)}

    assert freegen.run([places.get(word, word) for word in run.words], context) == run.exit

    [ours] = segments_in(tmp_path)
    wanted = [(url, datum) for url, datum in fetch_list(theirs) if not NO_URLS.fullmatch(url)]
    with_tabs = [url for url, _ in wanted if re.search("\t|%09", url)]
    cut = {
        re.split("\t|%09", url)[0] for url in with_tabs
    }  # Nutch takes what follows a tab for a part of the URL
    found = fetch_list(ours)
    assert [entry for entry in found if entry[0] not in cut] == [
        e for e in wanted if e[0] not in with_tabs
    ]
    assert cut <= {url for url, _ in found}
    assert ours.name == theirs.name
    assert [path.name for path in ours.parts(CRAWL_GENERATE)] == [
        path.name for path in theirs.parts(CRAWL_GENERATE)
    ]
    for one, other in zip(
        ours.data_files(CRAWL_GENERATE), theirs.data_files(CRAWL_GENERATE), strict=True
    ):
        with SequenceFileReader(one) as mine, SequenceFileReader(other) as nutchs:
            assert (mine.compression, mine.value_class) == (nutchs.compression, nutchs.value_class)
