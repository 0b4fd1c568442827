"""readdb against runs of Nutch's: statistics, dumps, single entries."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from minutch.hadoop.formats.sequencefile import SequenceFileReader
from tests.support.commands import readdb
from tests.support.golden import needs_golden
from tests.support.nutchruns import NutchRun, context_for, nutch_runs

RUNS = nutch_runs("readdb", "nodb")


def statistics(lines: list[str]) -> list[str]:
    """Without the quantiles, to which Nutch's digest only comes near, the sum of floats, and the
    path.
    """
    return [
        line
        for line in lines
        if not line.startswith(("score quantile", "avg score", "Statistics for", "CrawlDb "))
    ]


def average(lines: list[str]) -> float:
    return next(float(line.split("\t")[1]) for line in lines if line.startswith("avg score"))


def rows(path: Path) -> list[list[str]]:
    return list(csv.reader(path.read_text().splitlines(), delimiter=","))


@needs_golden("commands/readdb")
@pytest.mark.parametrize("run", RUNS, ids=str)
def test_what_is_printed(run: NutchRun, tmp_path: Path) -> None:
    """Nutch logs its statistics."""
    context, printed = context_for(run.conf())
    assert (
        readdb.run(
            [str(tmp_path / "out") if word == "out" else word for word in run.words], context
        )
        == run.exit
    )
    ours, theirs = printed.getvalue().splitlines(), run.printed
    if "-stats" in run.words:
        logged = [line for message in run.logged("CrawlDbReader") for line in message.splitlines()]
        assert set(statistics(logged)) <= set(statistics(ours))
        assert average(ours) == pytest.approx(average(logged), rel=1e-6)
        ours = [line for line in ours if line in theirs]
    assert [line for line in ours if line] == [line for line in theirs if line]

    made, wanted = (
        {path.name: path for path in (at / "out").glob("part-*")} for at in (tmp_path, run.folder)
    )
    assert made.keys() == wanted.keys()
    for name, path in wanted.items():
        compare(made[name], path, run)


def compare(ours: Path, theirs: Path, run: NutchRun) -> None:
    """Equal, but for what docs/compatibility names."""
    if "csv" in run.words:  # Nutch leaves bytes of earlier, longer URLs in the first column
        for mine, other in zip(rows(ours), rows(theirs), strict=True):
            assert mine[1:] == other[1:] and other[0].startswith(mine[0])
    elif "crawldb" in run.words:
        with (
            SequenceFileReader(ours / "data") as mine,
            SequenceFileReader(theirs / "data") as other,
        ):
            assert list(mine) == list(other)
    elif "-topN" in run.words:  # the order of equal scores, and which of them the cut takes
        mine_lines, other_lines = ours.read_text().splitlines(), theirs.read_text().splitlines()
        scores = [[line.split("\t")[0] for line in lines] for lines in (mine_lines, other_lines)]
        assert scores[0] == scores[1]
        above = [line for line in other_lines if line.split("\t")[0] != scores[1][-1]]
        assert set(above) <= set(mine_lines)
    else:
        assert ours.read_bytes() == theirs.read_bytes()
