"""updatehostdb, readhostdb and generate -hostdb as Nutch ran them: databases record for record,
texts line for line.

What differs, and why, is in docs/compatibility: percentiles (Nutch gives the
median for each), home pages (Nutch never stores one), failed connections (Nutch adds them up),
counts without a CrawlDb (Nutch loses them), hosts that are dropped (Nutch drops below the
threshold), records in the order of answers from the DNS.
"""

from __future__ import annotations

import io
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.commands.cli import main
from minutch.conf import Configuration
from minutch.cycle.fetch.frontier.queueitems import VARIABLE_DELAY_KEY
from minutch.cycle.hostdb.store import HostDb
from minutch.hadoop.formats.writables import LongWritable, Text
from minutch.job import JobContext
from minutch.records.crawldatum import CrawlDatum
from minutch.records.hostdatum import HostDatum
from minutch.urls.parts import host_of
from tests.golden.test_generate_golden import (
    decoded,
    fetch_lists,
    fetch_times,
    times_of,
    without_days,
)
from tests.support.commands import generate, readhostdb, updatehostdb
from tests.support.golden import GOLDEN, HAS_ALL, needs_golden
from tests.support.nameserver import NameServer
from tests.support.ties import tied_selection

COMMANDS = GOLDEN / "commands"
_PERCENTILE = re.compile(r"pct\d+\.")


@dataclass(frozen=True)
class Case:
    """One run of a command."""

    command: str
    name: str

    @property
    def folder(self) -> Path:
        return COMMANDS / self.command / self.name

    @property
    def console(self) -> list[str]:
        return (self.folder / "console.txt").read_text(encoding="utf-8").splitlines()

    @property
    def exit_code(self) -> int:
        return int(self.console[-1].removeprefix("[exit ").removesuffix("]"))

    def words(self, **places: Path) -> list[str]:
        """The arguments, without properties; `places` are words that stand for other paths here."""
        words = [
            _place(word) for word in shlex.split(self.console[0])[3:] if not word.startswith("-D")
        ]
        return [str(places.get(word, word)) for word in words]

    def conf(self, **more: str) -> Configuration:
        """The configuration, with `more` in it."""
        properties = [
            word[2:].partition("=")
            for word in shlex.split(self.console[0])
            if word.startswith("-D")
        ]
        folders = [Path(_place(text)) for text in self.console[1].partition(": ")[2].split(":")]
        own = [folder for folder in folders if folder.is_dir()]
        more = {name.replace("__", "."): value for name, value in more.items()}
        return Configuration.load(
            own, overrides={**{name: value for name, _, value in properties}, **more}
        )

    def __str__(self) -> str:
        return self.name


def _place(word: str) -> str:
    return word.replace("$OUT", str(COMMANDS)).replace("$GOLDEN", str(GOLDEN))


def cases(command: str) -> list[Case]:
    return (
        [Case(command, path.name) for path in sorted((COMMANDS / command).iterdir())]
        if HAS_ALL
        else []
    )


def context(conf: Configuration, now: int = 0) -> JobContext:
    return JobContext(conf, clock=FakeClock(now), out=io.StringIO(), err=io.StringIO())


@pytest.fixture(scope="module")
def names() -> Iterator[str]:
    """The address of a name server that knows nobody; addresses and localhost need none."""
    with NameServer() as server:
        yield server.address


def hosts(db: Path) -> dict[str, HostDatum]:
    return dict(HostDb(db).items())


@needs_golden("commands/usage/{name}")
@pytest.mark.parametrize("name", ["updatehostdb", "readhostdb", "generate"])
def test_usage(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    lines = Case("usage", name).console
    theirs = next(line for line in lines if line.startswith("Usage: "))
    assert lines[-1] == f"[exit {main([name])}]"
    ours = capfd.readouterr().err
    assert ours.split()[:2] == theirs.split()[:2]
    assert {*re.findall(r"-\w+", theirs)} <= {*re.findall(r"-\w+", ours)}


# -- updatehostdb ----------------------------------------------------------------------------------

BEFORE = {"rich-again": "rich-plain", "rich-again-checkfailed": "rich-checkall"}
BEFORE["rich-checkknown-nocrawldb"] = "rich-checkall"
CONNECTIONS = ("rich-again", "rich-again-checkfailed")


@needs_golden("commands/updatehostdb/{case}")
@pytest.mark.parametrize("case", cases("updatehostdb"), ids=str)
def test_updatehostdb(case: Case, tmp_path: Path, names: str) -> None:
    db = tmp_path / "hostdb"
    if case.name in BEFORE:
        shutil.copytree(COMMANDS / "updatehostdb" / BEFORE[case.name] / "hostdb", db)
    now = (
        max((datum.last_check for datum in hosts(case.folder / "hostdb").values()), default=0)
        + 86_400_000
    )
    job = context(case.conf(http__dns__servers=names), now)
    scores = case.folder / "tophosts"
    assert updatehostdb.run(case.words(hostdb=db, tophosts=scores), job) == 0
    found = hosts(db)
    if case.exit_code:  # one bad number ended the job
        assert {host: datum.score for host, datum in found.items()} == SCORES
        assert job.reports["UpdateHostDb"]["scores_that_are_no_numbers_total"] == 2
        return
    assert len(HostDb(db).parts()) == len(HostDb(case.folder / "hostdb").parts())
    expected = hosts(case.folder / "hostdb")
    _put_right(case, expected, found)
    for host, datum in expected.items():
        assert (host, _comparable(found[host], datum, now)) == (host, datum.to_bytes())
    assert found.keys() == expected.keys()


SCORES = {"www.example.org": 7.5, "localhost": 3.0, "example.net": 1.25}
STATUSES = ("unfetched", "fetched", "not_modified", "redir_temp", "redir_perm", "gone")
TYPES = Text("Content-Type.text/html")


def _put_right(case: Case, expected: dict[str, HostDatum], found: dict[str, HostDatum]) -> None:
    """Correct what Nutch has wrong."""
    before = (
        hosts(COMMANDS / "updatehostdb" / BEFORE[case.name] / "hostdb")
        if case.name in BEFORE
        else {}
    )
    if case.name in CONNECTIONS:
        for host, datum in expected.items():
            assert datum.connection_failures in (
                before[host].connection_failures,
                2 * before[host].connection_failures,
            )
            datum.connection_failures = before[host].connection_failures
    if case.name == "rich-again-checkfailed":  # twice without an address, with a threshold of 3
        assert "nohost.invalid" not in expected
        lost = expected["nohost.invalid"] = before["nohost.invalid"]
        lost.dns_failures, lost.last_check = 2, found["nohost.invalid"].last_check
    if (
        case.name == "rich-filter-normalize"
    ):  # the rules make 127.0.0.1 of 127.0.0.2; Nutch takes the host before them
        other = expected.pop("127.0.0.2")
        for name in STATUSES:
            setattr(
                expected["127.0.0.1"],
                name,
                getattr(expected["127.0.0.1"], name) + getattr(other, name),
            )
        pages = int(str(other.metadata[TYPES])) + int(str(expected["127.0.0.1"].metadata[TYPES]))
        expected["127.0.0.1"].metadata[TYPES] = LongWritable(pages)
    if case.name == "rich-checkknown-nocrawldb":
        for host, datum in expected.items():
            assert datum.num_records == 0
            for name in STATUSES:
                setattr(datum, name, getattr(before[host], name))
            if host != "nohost.invalid":
                datum.last_check = found[host].last_check


def _comparable(found: HostDatum, nutch: HostDatum, now: int) -> bytes:
    """The bytes of our record with what Nutch has for home pages, percentiles but the 50th, and
    times of look-ups.
    """
    assert nutch.homepage_url == ""
    found.homepage_url = ""
    assert (found.last_check == 0) == (nutch.last_check == 0)
    found.last_check = nutch.last_check
    for key in list(found.metadata):
        if _PERCENTILE.match(str(key)) and not str(key).startswith("pct50"):
            middle = found.metadata[Text("pct50." + str(key).partition(".")[2])]
            assert nutch.metadata[key] == middle
            found.metadata[key] = nutch.metadata[key]
    return found.to_bytes()


# -- readhostdb ------------------------------------------------------------------------------------


@needs_golden("commands/readhostdb/{case}")
@pytest.mark.parametrize("case", cases("readhostdb"), ids=str)
def test_readhostdb(case: Case, tmp_path: Path) -> None:
    job, out = context(case.conf()), tmp_path / "out"
    words = case.words(out=out)
    if case.name == "rich-tophosts":  # of the HostDb that Nutch failed to make
        words[0] = str(tmp_path / "hostdb")
        (tmp_path / "hostdb/current").mkdir(parents=True)
    assert readhostdb.run(words, job) == case.exit_code == 0
    assert isinstance(job.out, io.StringIO)
    printed = [line for line in case.console[2:-1] if " INFO " not in line]
    assert job.out.getvalue().splitlines() == printed
    files = (
        sorted(path.name for path in (case.folder / "out").glob("part-*"))
        if "-get" not in words
        else []
    )
    assert sorted(path.name for path in out.glob("part-*")) == files
    for name in files:
        expected = (case.folder / "out" / name).read_text(encoding="utf-8")
        if "-dumpHomepages" in words:  # Nutch has an empty line for each host that has none
            assert expected.strip() == ""
            expected = ""
        assert _by_record((out / name).read_text(encoding="utf-8")) == _by_record(expected)


def _by_record(text: str) -> list[tuple[str, list[str]]]:
    """Each line, its metadata in alphabetical order: Nutch prints it in the order of a table that
    grew before.
    """
    lines = (line.rpartition("\t") for line in text.splitlines())
    return [(line, sorted(metadata.split("|||"))) for line, _, metadata in lines]


# -- generate --------------------------------------------------------------------------------------


def host_score_and_delay(url: str, page: CrawlDatum) -> object:
    return page.score, host_of(url), page.metadata.get(VARIABLE_DELAY_KEY)


@needs_golden("commands/generate-hostdb/{case}")
@pytest.mark.parametrize("case", cases("generate-hostdb"), ids=str)
def test_generate(case: Case, tmp_path: Path) -> None:
    words = case.words(segs=tmp_path / "segs")
    [theirs] = fetch_lists(case.folder / "segs")
    times = without_days(words, times_of([theirs], fetch_times(Path(words[0]))))
    conf = case.conf(**{name.replace(".", "__"): value for name, value in times.items()})
    assert generate.run(words, context(conf)) == case.exit_code == 0
    [ours] = fetch_lists(tmp_path / "segs")
    if (
        case.name == "rich-count-int"
    ):  # Nutch can't make a number of an Integer, and takes generate.max.count for all
        assert len(theirs) == 109
        theirs = fetch_lists(COMMANDS / "generate-hostdb/rich-count/segs")[0]
        assert Counter(host_of(url) for url, _ in ours) == Counter(
            host_of(url) for url, _ in theirs
        )
        return
    tied = tied_selection(decoded(ours), decoded(theirs), host_score_and_delay)
    assert [record for record in ours if record[0] not in tied] == [
        record for record in theirs if record[0] not in tied
    ]
    assert len(tied) < len(ours)
