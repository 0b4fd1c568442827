"""A crawl as an object: jobs as methods, and what they show."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import minutch
from minutch import api, processwide
from minutch.errors import ConfigError, MinutchError, StoreError
from minutch.job import live_line
from tests.support.demo import PROPERTIES
from tests.support.examples import few
from tests.support.siteserver import SiteServer


@pytest.fixture
def _a_program() -> Iterator[None]:
    """A process whose log nobody has configured."""
    before = processwide.settings()
    processwide.change(log=None)
    yield
    processwide.use(before)


SCRIPT = """import sys, minutch
print("begun")
crawl = minutch.open(sys.argv[1], create=True, conf={conf!r})
crawl.inject([{url!r}])
crawl.run(rounds=1)
print(crawl.sql("select status from parses")["status"].to_list())
"""


@pytest.mark.slow  # processes
@pytest.mark.parametrize("how", few(["file", "stdin", "words"]))
def test_a_script_without_a_guard_runs_once(tmp_path: Path, how: str) -> None:
    """Its workers are no second run of it: README's example has no `if __name__ == "__main__"`."""
    with SiteServer() as server:
        script = SCRIPT.format(conf=PROPERTIES, url=server.site.url("one"))
        (tmp_path / "script.py").write_text(script)
        words = {"file": [str(tmp_path / "script.py")], "stdin": ["-"], "words": ["-c", script]}
        ended = subprocess.run(
            [sys.executable, *words[how], str(tmp_path / "crawl")],
            input=script if how == "stdin" else "",
            capture_output=True,
            text=True,
            check=True,
        )
    lines = ended.stdout.splitlines()
    assert (lines.count("begun"), lines[-1]) == (1, "['success']"), ended.stderr


@pytest.mark.usefixtures("_a_program")
def test_a_crawl_is_made_filled_and_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(StoreError):
        minutch.open(tmp_path / "crawl")
    with SiteServer() as server:
        conf = PROPERTIES | {"fetcher.server.delay": 0.0, "fetcher.min.crawl.delay": 0}
        crawl = minutch.open(tmp_path / "crawl", create=True, conf=conf)
        counts = crawl.inject(
            [server.site.url("one"), f"{server.site.url('two')}\tuserKey=userVal"]
        )
        assert counts["seeds new"] == 2 == len(crawl.crawldb)
        seeds = tmp_path / "seeds.txt"
        seeds.write_text(f"{server.site.url('one')}\n", encoding="utf-8")
        assert crawl.inject(seeds, minutch.InjectOptions(overwrite=True))["seeds"] == 1
        capsys.readouterr()
        counts = crawl.round(minutch.CrawlOptions(size=1, tasks=1, threads=2))
    assert "Round 1 of 1" in capsys.readouterr().out
    assert "CrawlDb update: " in (crawl.path / "crawl.log").read_text(encoding="utf-8")
    rows = crawl.sql("select url, status from crawldb where status = 'db_fetched'")
    assert rows.columns == ["url", "status"] and rows.height == 1
    fetched = crawl.crawldb.scan().filter(pl.col("status") == "db_fetched")
    assert counts["db_fetched"] == fetched.collect().height == 1 == len(crawl.segments)
    again = minutch.open(tmp_path / "crawl", quiet=True)
    assert isinstance(again, minutch.Crawl)
    assert again.job("dedup", again.path / "crawldb") is not None
    assert capsys.readouterr().out == ""
    with pytest.raises(MinutchError, match="one line"):
        crawl.inject(["http://a.org/\nhttp://b.org/"])


def test_properties_are_texts_numbers_and_truths(tmp_path: Path) -> None:
    values = {"fetcher.warc": True, "fetcher.server.delay": 0.25, "http.content.limit": 9, "x": "y"}
    conf = minutch.open(tmp_path / "crawl", create=True, conf=values).conf
    assert [conf.get(name) for name in values] == ["true", "0.25", "9", "y"]
    with pytest.raises(ConfigError, match=r"plugin.includes: expected a text.*found \['a'\]"):
        minutch.open(tmp_path / "other", create=True, conf={"plugin.includes": ["a"]})


def test_properties_are_checked_as_on_the_command_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = {"fetcher.server.delay": "fast", "fetcher.threads.fetch": 1.5, "fetcher.parse": "yes"}
    for name, value in wrong.items():
        with pytest.raises(ConfigError, match=name):
            minutch.open(tmp_path / "crawl", create=True, conf={name: value})
    assert not (tmp_path / "crawl").exists()
    minutch.open(tmp_path / "crawl", create=True, conf={"fetcher.wacr": True})
    assert "did you mean fetcher.warc?" in caplog.text


def test_what_is_there_and_no_crawl_is_not_made_one(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="is no crawl"):
        minutch.open(tmp_path, create=True)
    with pytest.raises(StoreError, match="there is no folder"):
        minutch.open(tmp_path / "file", create=True)


def test_the_live_line_changes_in_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []
    stream = api.LiveLine(shown.append)
    live_line(stream, "fetch: 1 of 9")  # type: ignore[arg-type]
    live_line(stream, "fetch: 2 of 9")  # type: ignore[arg-type]
    stream.write("\r\x1b[2Ka line of the log\nrest")
    stream.flush()
    live_line(stream, "")  # type: ignore[arg-type]
    assert shown == ["fetch: 1 of 9", "fetch: 2 of 9", "rest", ""]
    assert capsys.readouterr().err == "a line of the log\n"
