"""readdb on the golden crawls: what it prints and writes is what Nutch printed and wrote."""

import io
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.hadoop.formats.javahash import float_to_string
from minutch.job import JobContext
from minutch.records.crawldatum import CrawlDatum
from tests.support import ties
from tests.support.commands import readdb
from tests.support.crawldb_golden import part_records
from tests.support.crawldbs import read_db
from tests.support.golden import GOLDEN, needs_golden

pytestmark = needs_golden

RUNS = (
    "crawl-small/run-default-r1",
    "crawl-small/run-default-r2",
    "crawl-small/run-rich-r2",
    "crawl-small-adaptive/run-r2",
)
LOG_PREFIX = re.compile(r"^\S+ \S+ INFO o\.a\.n\.c\.CrawlDbReader \[main\] ")


@dataclass(frozen=True)
class Command:
    """A readdb command of a golden crawl."""

    run: str
    name: str

    @property
    def console(self) -> list[str]:
        return (
            (GOLDEN / self.run / "console/dumps" / f"{self.name}.txt")
            .read_text(encoding="utf-8")
            .splitlines()
        )

    @property
    def words(self) -> list[str]:
        line = self.console[0].partition(" readdb ")[2]
        line, has_expression, expression = line.partition(" -expr ")
        return shlex.split(line) + (["-expr", expression] if has_expression else [])

    def __str__(self) -> str:
        return f"{self.run}-{self.name}".replace("/", "_")


def commands(*kinds: str) -> list[Command]:
    return [
        Command(run, console.stem)
        for run in RUNS
        for console in sorted((GOLDEN / run / "console/dumps").glob("readdb-*.txt"))
        if console.stem.split("-")[1] in kinds
    ]


def execute(command: Command, out: Path) -> str:
    """Run it with its output below `out`; returns what it prints."""
    settings = dict(word[2:].split("=") for word in command.words if word.startswith("-D"))
    words = [word for word in command.words if not word.startswith("-D")]
    words[0] = str(GOLDEN / command.run / words[0])
    words = [str(out / word) if word.startswith("dumps/") else word for word in words]
    printed = io.StringIO()
    context = JobContext(Configuration.load([], overrides=settings), out=printed, err=io.StringIO())
    assert readdb.run(words, context) == 0
    return printed.getvalue()


@pytest.mark.parametrize("command", commands("stats"), ids=str)
def test_statistics(command: Command, tmp_path: Path) -> None:
    printed = [
        line
        for line in execute(command, tmp_path).splitlines()
        if not line.startswith("Statistics for")
    ]
    nutch = [LOG_PREFIX.sub("", line) for line in command.console[1:]]
    nutch = [
        line for line in nutch if not re.match(r"CrawlDb statistics|Statistics for|\[exit", line)
    ]
    scores = sorted(entry.score for entry in entries(command).values())
    assert len(printed) == len(nutch)
    assert [pair for pair in zip(printed, nutch, strict=True) if not agree(*pair, scores)] == []


def agree(ours: str, nutch: str, scores: list[float]) -> bool:
    """Returns whether two lines of statistics are equal but for ties of averages and quantiles of
    scores.
    """
    (name, own), (other_name, other) = ours.split(":\t"), nutch.split(":\t")
    if name == "avg score":
        return name == other_name and ties.same_sum(float(own), float(other))
    if name.startswith("score quantile"):
        low, high = ties.quantile_range(scores, float(name.split()[-1]))
        return name == other_name and low <= float(own) <= high and low <= float(other) <= high
    return ours == nutch


def entries(command: Command) -> dict[str, CrawlDatum]:
    """URL -> entry of the CrawlDb that a command reads."""
    (path,) = (word for word in command.words if "crawldb" in word)
    return read_db(GOLDEN / command.run / path)


@pytest.mark.parametrize("command", commands("url"), ids=str)
def test_one_url(command: Command, tmp_path: Path) -> None:
    expected = "\n".join(
        line for line in command.console[1:] if not re.match(r"\d{4}-\d\d-\d\d |\[exit", line)
    )
    assert execute(command, tmp_path).rstrip("\n") == expected.rstrip("\n")


@pytest.mark.parametrize("command", commands("topN"), ids=str)
def test_highest_scores(command: Command, tmp_path: Path) -> None:
    (folder,) = (word for word in command.words if word.startswith("dumps/"))
    execute(command, tmp_path)
    scores = {url: float_to_string(entry.score) for url, entry in entries(command).items()}
    ours, nutch = (lines(path / folder) for path in (tmp_path, GOLDEN / command.run))
    assert ours
    assert ties.same_top(ours, nutch, scores)
    assert [line.split("\t")[0] for line in ours] == [scores[line.split("\t")[1]] for line in ours]


def lines(folder: Path) -> list[str]:
    """The lines of the one part of a folder."""
    (part,) = folder.glob("part-*")
    return part.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("command", commands("dump"), ids=str)
def test_dump(command: Command, tmp_path: Path) -> None:
    (folder,) = (word for word in command.words if word.startswith("dumps/"))
    execute(command, tmp_path)
    mine, nutch = tmp_path / folder, GOLDEN / command.run / folder
    if "crawldb" in command.words:
        names = [part.name for part in sorted(nutch.iterdir())]
        assert [part.name for part in sorted(mine.iterdir())] == names
        assert all(part_records(mine / name) == part_records(nutch / name) for name in names)
    elif "csv" in command.words:
        found, expected = file_contents(mine), file_contents(nutch)
        assert found.keys() == expected.keys()
        for name in found:
            if name.startswith("part"):
                compare_csv(found[name], expected[name])
    else:
        assert file_contents(mine) == file_contents(nutch)


def file_contents(folder: Path) -> dict[str, bytes]:
    """All files, checksums included."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def compare_csv(data: bytes, nutch: bytes) -> None:
    """Equal, save that Nutch's first column is the URL and what a longer URL before it left in its
    buffer.
    """
    mine, theirs = data.split(b"\n"), nutch.split(b"\n")
    assert mine[0] == theirs[0]
    assert len(mine) == len(theirs)
    for own, other in zip(mine[1:], theirs[1:], strict=True):
        url, quote, rest = own.partition(b'",')
        assert other.startswith(url)
        assert other.endswith(quote + rest)
