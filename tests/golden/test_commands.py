"""Commands beyond the cycle as Nutch ran them on the golden crawls: what they print, what they
write, how they end.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from minutch.commands import cli, flow
from minutch.commands.installation import MARK, SOURCE
from minutch.errors import MinutchError, StoreError
from minutch.job import JobContext
from tests.support.commands import filterchecker, plugin, readdb, robotsparser, showproperties
from tests.support.crawldb_golden import part_records
from tests.support.golden import needs_golden
from tests.support.nutchruns import COMMANDS, LOG, NutchRun

pytestmark = needs_golden("commands")


def cases(command: str, *, besides: tuple[str, ...] = ()) -> list[NutchRun]:
    """All runs of a command."""
    folder = COMMANDS / command
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return [NutchRun(f"{command}/{name}") for name in names if name not in besides]


def execute(module: object, nutch: NutchRun, out: Path) -> list[str]:
    """Run a job as Nutch ran it, output below `out`; returns the lines that it prints."""
    words = [str(out / word) if word == "out" else word for word in nutch.words]
    words = [
        str(nutch.folder / word) if (nutch.folder / word).is_file() else word for word in words
    ]
    stdin = nutch.folder / "stdin.txt"
    lines = io.StringIO(stdin.read_text(encoding="utf-8") if stdin.exists() else "")
    context = JobContext(nutch.conf(), out=io.StringIO(), err=io.StringIO(), stdin=lines)
    assert module.run(words, context) == nutch.exit  # type: ignore[attr-defined]
    assert isinstance(context.out, io.StringIO)
    return context.out.getvalue().splitlines()


# readdb

DUMPS = [case for case in cases("readdb") if "-dump" in case.words or "-topN" in case.words]
SAMPLED = ("readdb/rich-sample0", "readdb/rich-sample1")


@pytest.mark.parametrize("nutch", DUMPS, ids=str)
def test_readdb_writes_nutchs_files(nutch: NutchRun, tmp_path: Path) -> None:
    execute(readdb, nutch, tmp_path)
    theirs, ours = nutch.folder / "out", tmp_path / "out"
    assert sorted(path.name for path in ours.glob("part-*")) == sorted(
        path.name for path in theirs.glob("part-*")
    )
    for part in theirs.glob("part-*"):
        mine = ours / part.name
        if part.is_dir():
            assert part_records(mine) == part_records(part)
        elif "-topN" in nutch.words:
            assert _best(mine) == _best(part)
        elif "csv" in nutch.words:
            pairs = zip(mine.read_bytes().split(b"\n"), part.read_bytes().split(b"\n"), strict=True)
            assert [our for our, their in pairs if not _is_but_for_waste(our, their)] == []
        else:
            assert mine.read_bytes() == part.read_bytes()


def _best(part: Path) -> tuple[list[str], set[str]]:
    """The scores, and what is above the least of them: which of equal ones are in the list Nutch
    leaves to chance.
    """
    lines = part.read_text(encoding="utf-8").splitlines()
    scores = [line.partition("\t")[0] for line in lines]
    return scores, {line for line in lines if not line.startswith(f"{scores[-1]}\t")}


def _is_but_for_waste(ours: bytes, theirs: bytes) -> bool:
    """Returns whether two lines of CSV are equal but for bytes of an earlier, longer URL that Nutch
    writes behind the URL.
    """
    url, comma, rest = ours.partition(b'",')
    return ours == theirs or (theirs.startswith(url) and theirs.endswith(comma + rest))


STATS = [case for case in cases("readdb") if case not in DUMPS and case.exit == 0]


@pytest.mark.parametrize("nutch", STATS, ids=str)
def test_readdb_prints_nutchs_lines(nutch: NutchRun, tmp_path: Path) -> None:
    """Nutch logs its statistics; its quantiles are estimates."""
    ours = execute(readdb, nutch, tmp_path)
    theirs = [LOG.sub("", line) for line in nutch.console[2:-1]]
    skipped = re.compile(r"score quantile|avg score|CrawlDb statistics|Statistics for")
    kept = [[line for line in lines if not skipped.match(line)] for lines in (ours, theirs)]
    assert kept[0] == kept[1]


def test_readdb_of_nothing_is_an_error(tmp_path: Path) -> None:
    """Nutch's exit code is Java's, 1; ours is that of errors."""
    nutch = NutchRun("readdb/nodb")
    assert nutch.exit == 1
    with pytest.raises(StoreError, match=r"(?:does not exist|no CrawlDb)"):
        execute(readdb, nutch, tmp_path)


# checkers


@pytest.mark.parametrize("nutch", cases("filterchecker"), ids=str)
def test_filterchecker(nutch: NutchRun, tmp_path: Path) -> None:
    if nutch.exit == 1:  # Nutch does not find a filter by its class: what the plugin says must do
        assert nutch.name.endswith("-named")
        expected = NutchRun("filterchecker/domaindenylist")
        words = [word for word in nutch.words if word != "-stdin"]
        lines = io.StringIO((expected.folder / "stdin.txt").read_text(encoding="utf-8"))
        context = JobContext(nutch.conf(), out=io.StringIO(), err=io.StringIO(), stdin=lines)
        assert filterchecker.run([*words, "-stdin"], context) == 0
        assert isinstance(context.out, io.StringIO)
        assert context.out.getvalue().splitlines() == _answers(expected)
    else:
        assert execute(filterchecker, nutch, tmp_path) == _answers(nutch)


def _answers(nutch: NutchRun) -> list[str]:
    """Returns what Nutch printed, without stack traces between the lines."""
    kept = re.compile(r"Checking combination|[+-]")
    lines = [line for line in nutch.printed if kept.match(line)]
    return [line.rstrip() + " " if line.startswith("Checking") else line for line in lines]


@pytest.mark.parametrize("nutch", cases("robotsparser"), ids=str)
def test_robotsparser(nutch: NutchRun, tmp_path: Path) -> None:
    assert execute(robotsparser, nutch, tmp_path) == nutch.printed


@pytest.mark.parametrize("nutch", cases("plugin"), ids=str)
def test_plugin(nutch: NutchRun, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the log; a plugin that is missing is an error here, where Nutch ends with 0."""
    stdin = nutch.folder / "stdin.txt"
    lines = io.StringIO(stdin.read_text(encoding="utf-8") if stdin.exists() else "")
    context = JobContext(nutch.conf(), out=io.StringIO(), err=io.StringIO(), stdin=lines)
    if nutch.errors:
        with pytest.raises(MinutchError, match="nosuch"):
            plugin.run(nutch.words, context)
    else:
        assert plugin.run(nutch.words, context) == nutch.exit
        assert isinstance(context.out, io.StringIO)
        assert context.out.getvalue().splitlines() == [
            line for line in nutch.printed if line[:1] in "+-"
        ]


def test_showproperties_prints_nutchs_lines(tmp_path: Path) -> None:
    """Compares the properties that both have: Nutch shows Hadoop's too, and minutch its own. Marks
    are left out.
    """
    nutch = NutchRun("showproperties/rich")
    ours = _by_name(
        [
            re.split(f"  {SOURCE}|  {MARK}", line)[0].rstrip()
            for line in execute(showproperties, nutch, tmp_path)
        ]
    )
    theirs = _by_name(nutch.printed)
    common = [name for name in ours if name in theirs]
    assert len(common) > 250
    assert {name for name in common if ours[name] != theirs[name]} == {
        "fetcher.queue.depth.multiplier",  # the whole list is known
        "fetcher.threads.fetch",  # a place for each host
        "ftp.password",  # secrets are hidden
        "http.tls.certificates.check",  # on by default
        "rabbitmq.publisher.server.uri",
        "selenium.driver",  # Chromium, not Firefox
        "selenium.grid.driver",
    }


def _by_name(lines: list[str]) -> dict[str, str]:
    """Name of a property -> the words of its line; a value of several lines counts by its first."""
    return {line.split()[0]: " ".join(line.split()) for line in lines[2:] if line[:1].strip()}


# usage; Nutch's `crawl` is bin/crawl

USAGES = [
    case
    for case in cases("usage", besides=("crawl",))
    if flow.find([*case.console[0].split(), "", ""][2])
]


@pytest.mark.parametrize("nutch", USAGES, ids=str)
def test_usage(nutch: NutchRun, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit codes are Nutch's, and every option that Nutch's usage names is in ours."""
    command, *words = nutch.console[0].removeprefix("$ bin/nutch ").split()
    code = cli.main([command, *words])
    printed = capsys.readouterr()
    if words:  # -help: it ends with 0
        assert code == 0
    else:
        assert code == nutch.exit, command
    theirs = "\n".join((*nutch.printed, *nutch.errors))
    options = set(re.findall(r"(?<![\w-])-(?!D)[A-Za-z][A-Za-z]+", theirs)) - {"-help", "-conf"}
    missing = {option for option in options if option not in printed.out + printed.err}
    assert missing <= OPTIONS_LEFT_OUT.get(command, set())


OPTIONS_LEFT_OUT: dict[str, set[str]] = {}
