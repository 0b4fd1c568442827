"""The command: what it takes, what it prints, and that nothing of a page reaches a terminal as it
is.
"""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path

import pytest

from minutch import jobs
from minutch.clock import FakeClock
from minutch.commands import flow
from minutch.commands.arguments import parse
from minutch.errors import MinutchError, StoreError, UsageError
from minutch.inspect.explain.settings import CrawlStores
from minutch.job import JobContext
from minutch.records.crawldatum import CrawlDatum
from minutch.terminal import visible_line
from tests.inspect.query.test_rights import FIRST, SECOND, file
from tests.inspect.query.test_rights import write as write_segment
from tests.support.commands import explain
from tests.support.crawldbs import NOW, write_db
from tests.support.examples import few
from tests.support.explainedcrawl import OTHERS, A, Made, make_crawl
from tests.support.segments import conf_for


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_crawl(tmp_path_factory.mktemp("made") / "crawl")


def answer(made: Made, *arguments: str) -> str:
    job = made.context()
    assert explain.run(list(arguments), job) == 0
    assert isinstance(job.out, io.StringIO)
    return job.out.getvalue()


def test_a_page_of_words(made: Made) -> None:
    text = answer(made, f"{A}/ok", str(made.folder))
    assert text.startswith(f"{A}/ok\n\n  Would not be fetched next: ")
    assert [line for line in text.splitlines() if line and line[0] != " "][1:] == [
        *("Record", "Due", "Next fetch list", "Fetch", "URL", "History", "Links to it"),
    ]


def test_who_refused_which_use_is_named(tmp_path: Path) -> None:
    url, usage = "http://a.org/art", "train-ai=n, search=y"
    robots = file("User-agent: GPTBot\nUser-agent: PerplexityBot\nDisallow: /art\n")
    headers = {"Content-Usage": [usage], "Link": ["<http://l/>; rel=license"]}
    write_segment(tmp_path, FIRST, {url: ({"X-Robots-Tag": ["noai"]}, {})})
    write_segment(tmp_path, SECOND, {url: (headers, {})}, {"http://a.org/robots.txt": robots})
    write_db(tmp_path / "crawldb", [(url, CrawlDatum(2))])
    job = JobContext(conf_for(), FakeClock(NOW), out=io.StringIO())
    assert explain.run([url, str(tmp_path)], job) == 0
    assert isinstance(job.out, io.StringIO)
    section = job.out.getvalue().partition("Use of it\n")[2].partition("\n\n")[0]
    assert [line.strip() for line in section.splitlines()] == [
        f"training is refused to everybody: {usage} (header Content-Usage)",
        f"search is allowed to everybody: {usage} (header Content-Usage)",
        "nothing is decided by http://l/ (header Link)",
        *(
            f"{use} is refused to {agent}: Disallow: /art (http://a.org/robots.txt line 3)"
            for use, agent in (("training", "GPTBot"), ("input", "PerplexityBot"))
        ),
    ]


def test_the_same_as_json(made: Made) -> None:
    facts = json.loads(answer(made, f"{A}/ok", str(made.folder), "--json"))
    assert facts["entry"]["fetch_time"] == "2027-02-04T08:00:00.000Z"
    assert facts["visits"][0]["size"] == 4
    assert facts["generate"] == {
        "taken": False,
        "reason": "schedule_rejected_total",
        "text": "it is not due before 2027-02-04 08:00:00 UTC, in 20 days",
        "remedy": "wait, or generate with -adddays 20",
        "place": None,
        "candidates": None,
    }


def test_the_crawl_beside(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made.folder.parent)
    assert answer(made, f"{A}/ok") == answer(made, f"{A}/ok", "crawl")
    assert answer(made).startswith("crawl: ")
    assert answer(made) == answer(made, "crawl")


def test_generates_options(made: Made) -> None:
    assert "-topN 4" in answer(made, f"{A}/waiting", str(made.folder), "-topN", "3")
    assert (
        "would be fetched next"
        in answer(made, f"{A}/picture.gif", str(made.folder), "--noFilter").lower()
    )


def test_what_has_no_index_can_be_left_out(made: Made) -> None:
    facts = json.loads(answer(made, f"{A}/dup1", str(made.folder), "--json", "--quick"))
    assert (
        facts["duplicates"] == [] and facts["leads"]["found"] == [] and not facts["leads"]["looked"]
    )


def test_nothing_of_a_page_is_a_command_to_a_terminal(made: Made) -> None:
    for url in (f"{A}/hostile", f"{A}/linked", f"{A}/\x1b[2J", "http://\x9b31m/"):
        for arguments in ((url, str(made.folder)), (url, str(made.folder), "--json")):
            lines = answer(made, *arguments).split("\n")
            assert all(visible_line(line) == line for line in lines)
    page = answer(made, f"{A}/hostile", str(made.folder))
    assert "title: \\x1b[31mred\\nline" in page


def test_the_crawl_may_come_first(made: Made) -> None:
    crawl = str(made.folder)
    assert answer(made, crawl, f"{A}/ok") == answer(made, f"{A}/ok", crawl)


def test_it_writes_nothing(made: Made) -> None:
    def files() -> dict[Path, int]:
        found = (
            path
            for path in made.folder.rglob("*")
            if path.is_file() and ".sqlite-" not in path.name
        )
        return {path: path.stat().st_mtime_ns for path in found}

    before = files()
    answer(made, f"{A}/ok", str(made.folder))
    answer(made, str(made.folder))
    assert files() == before


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (["http://a/", "nowhere"], StoreError, "there is no folder nowhere"),
        (["crwal"], StoreError, "crwal is neither a URL nor a folder"),
        (["http://a/", "."], StoreError, ". is no crawl"),
        (["http://a/", "b", "c"], UsageError, "too many arguments: c"),
        (["http://a/", "-topN", "x"], UsageError, "-topN: expected <N>"),
        (["http://a/", "-maxNumSegments", "0"], UsageError, "a positive number"),
    ],
)
def test_wrong_arguments(
    made: Made,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    error: type,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=says.replace(".", "[.]")):
        explain.run(arguments, made.context())


def test_a_crawl_without_a_crawldb(made: Made, tmp_path: Path) -> None:
    (tmp_path / "segments").mkdir()
    with pytest.raises(StoreError, match=r"Input path does not exist: .*crawldb/current"):
        explain.run(["http://a/", str(tmp_path)], made.context())


# -- without a URL ---------------------------------------------------------------------------------


def test_a_crawl(made: Made) -> None:
    facts = json.loads(answer(made, str(made.folder), "--json"))
    by_status = {
        line["name"]: line["count"] for line in facts["left"] if line["name"].startswith("db_")
    }
    entries = len(CrawlStores(made.folder).crawldb)
    assert sum(by_status.values()) == entries == facts["urls"]
    counters = jobs.run(
        "generate",
        made.folder / "crawldb",
        made.folder.parent / "elsewhere",
        conf=made.conf(),
        clock=FakeClock(NOW),
    )
    said = {
        line["name"]: line["count"] for line in facts["next"] if line["name"].endswith("_total")
    }
    assert said == {name: count for name, count in counters.items() if count}
    assert sum(said.values()) == entries
    hosts = {
        line["name"]: line["count"]
        for line in facts["next"]
        if line["text"].startswith(("of them is on", "of them are on"))
    }
    assert sum(hosts.values()) == said["selected_total"]
    assert hosts["many.example"] == 3
    unfinished = {line["name"]: line["more"] for line in facts["left"] if line["name"].isdigit()}
    assert unfinished == {
        "20270113080000": (
            f"minutch updatedb {made.folder}/crawldb {made.folder}/segments/20270113080000"
        ),
        "20270114080000": f"minutch fetch {made.folder}/segments/20270114080000",
    }
    assert [line["count"] for line in facts["last"]] == [1, 1]


def test_why_the_last_round_was_short(tmp_path: Path) -> None:
    made = make_crawl(tmp_path / "crawl")
    for name in ("20270113080000", "20270110080000", "20270114080000"):
        (made.folder / "segments" / name).rename(tmp_path / name)
    page = answer(made, str(made.folder))
    for line in (
        "28  pages were in the list of segment 20270105080000",
        "did not come (not asked for): the time limit was reached",
        "did not come (denied): robots.txt",
        "did not come (gone): HTTP 404",
        f"minutch explain {A}/denied {made.folder}",
        "answers of a.example took 42 ms on average, 42 ms at most",
    ):
        assert line in page


@pytest.mark.parametrize("how", few(["parsed", "run"]))
def test_every_command_that_shows_more_runs(made: Made, how: str) -> None:
    facts = json.loads(answer(made, str(made.folder), "--json"))
    commands = {
        line["more"] for part in ("left", "next", "last", "slow", "growing") for line in facts[part]
    }
    ran = set()
    for command in sorted(commands):
        program, name, *words = shlex.split(command)
        declared = flow.find(name)
        assert program == "minutch" and declared is not None
        parse(declared, words)
        if how == "parsed" or name in ("fetch", "updatedb", "generate"):
            continue
        ran.add(name)
        jobs.run(name, *words, conf=made.conf(), clock=FakeClock(NOW))
    assert how == "parsed" or {"explain", "readseg", "sql"} <= ran


def test_a_trap_shows(tmp_path: Path) -> None:
    made = make_crawl(tmp_path / "crawl")
    entry = OTHERS[f"{A}/waiting"]
    pages = [f"http://trap.example/calendar/{day}/" for day in range(150)]
    write_db(tmp_path / "trapped" / "crawldb", sorted((url, entry) for url in pages))
    page = answer(made, str(tmp_path / "trapped"))
    (query,) = (line for line in page.splitlines() if "starts_with" in line)
    out = io.StringIO()
    jobs.run(*shlex.split(query)[1:], conf=made.conf(), out=out)
    assert out.getvalue().count("http://trap.example/calendar/") == 20
    assert "150  pages, at least, below http://trap.example/calendar/ are unfetched" in page
    assert "150  of them are on trap.example, 12 minutes 30 seconds with pauses of 5 s" in page


def test_an_empty_crawldb(made: Made, tmp_path: Path) -> None:
    write_db(tmp_path / "crawldb", [])
    assert answer(made, str(tmp_path)).splitlines()[0] == f"{tmp_path}: 0 URLs, 0 segments"


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    made = make_crawl(tmp_path / "crawl")
    data = made.folder / "crawldb" / "current" / "part-r-00000" / "data"
    data.write_bytes(data.read_bytes()[:-3] + b"xyz")
    with pytest.raises(MinutchError, match="part-r-00000"):
        answer(made, str(made.folder))
