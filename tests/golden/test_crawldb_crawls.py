"""Every inject, updatedb and dedup of the golden crawls: from Nutch's input, Nutch's output, record
for record.
"""

import shutil
from pathlib import Path

import pytest

from tests.support import ties
from tests.support.commands import dedup, inject, updatedb
from tests.support.crawldb_golden import (
    NOW,
    RUNS,
    Step,
    context,
    copy_db,
    part_records,
    parts,
    records,
    steps,
    with_fetch_time,
)
from tests.support.golden import GOLDEN, lacks_host, needs_golden

pytestmark = needs_golden

COMMANDS = {"inject": inject.run, "updatedb": updatedb.run, "dedup": dedup.run}


def replay(step: Step, tmp_path: Path, now: int = NOW, seeds: Path | None = None) -> Path:
    """Run the step on a copy of the CrawlDb before it, perhaps with other seeds; returns the
    copy.
    """
    db = tmp_path / "crawldb"
    if step.before is not None:
        copy_db(step.before, db)
    words = [place(word, step, db) for word in step.words]
    if seeds is not None:
        words[1] = str(seeds)
    conf = GOLDEN / RUNS[str(step.run.relative_to(GOLDEN))]
    assert COMMANDS[step.command](words, context(step.settings, conf=conf, now=now)) == 0
    return db


def place(word: str, step: Step, db: Path) -> str:
    """A word of Nutch's command line, with this machine's paths."""
    if word == "crawl/crawldb":
        return str(db)
    if word.startswith("crawl/"):
        return str(step.run / word)
    return word.replace("$GOLDEN", str(GOLDEN))


def hosted(part: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Without what Nutch makes of links without a host."""
    return [(key, record) for key, record in part if not lacks_host(key)]


def compare(step: Step, db: Path, new: set[str]) -> None:
    expected = parts(step.after)
    found = parts(db)
    assert len(found) == len(expected)
    for mine, nutch in zip(map(hosted, found), map(hosted, expected), strict=True):
        wanted = [
            (key, with_fetch_time(record, NOW) if key in new else record) for key, record in nutch
        ]
        assert [key for key, _ in mine] == [key for key, _ in wanted]
        assert not [pair for pair in zip(mine, wanted, strict=True) if pair[0] != pair[1]]


@pytest.mark.parametrize("step", steps("inject"), ids=str)
def test_inject(step: Step, tmp_path: Path) -> None:
    (time,) = {int(record[4:20], 16) for record in records(step.after).values()}
    db = replay(step, tmp_path / "forward", now=time)
    seeds = backwards(Path(place(step.words[1], step, db)), tmp_path / "seeds")
    both = ties.in_any_order(
        [records(db), records(replay(step, tmp_path / "backward", now=time, seeds=seeds))]
    )
    assert (
        sum(len(possible) > 1 for possible in both.values()) <= 1
    )  # one URL is in the seeds twice
    for mine, nutch in zip(parts(db), parts(step.after), strict=True):
        assert [key for key, _ in mine] == [key for key, _ in nutch]
        assert all(record in both[key] for key, record in nutch)


def backwards(seeds: Path, folder: Path) -> Path:
    """The seeds, the last line first."""
    folder.mkdir()
    for path in seeds.iterdir():
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        (folder / path.name).write_text("".join(reversed(lines)), encoding="utf-8")
    return folder


@pytest.mark.parametrize("step", steps("dedup"), ids=str)
def test_dedup(step: Step, tmp_path: Path) -> None:
    compare(step, replay(step, tmp_path), new=set())


@pytest.mark.parametrize("step", steps("updatedb"), ids=str)
def test_updatedb(step: Step, tmp_path: Path) -> None:
    assert step.before is not None
    fetched = {
        key
        for word in step.words
        if word.startswith("crawl/segments")
        for part in (step.run / word / "crawl_fetch").iterdir()
        for key, record in part_records(part)
        if record[2:4] != "43"  # a page that was only linked to, by a redirect
    }
    new = set(records(step.after)) - set(records(step.before)) - fetched
    compare(step, replay(step, tmp_path), new)


def test_a_backup_of_the_crawldb_stays_as_old(tmp_path: Path) -> None:
    step = steps("updatedb")[0]
    assert step.before is not None
    db = replay(step, tmp_path)
    shutil.copytree(db / "old", tmp_path / "was/current")
    assert parts(tmp_path / "was") == parts(step.before)
