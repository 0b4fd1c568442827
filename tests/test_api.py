"""The public names of the package."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import minutch
from minutch.records.crawldatum import CrawlDatum
from tests.support.crawldbs import write_db
from tests.support.golden import GOLDEN, PROJECT


def test_every_name_is_there() -> None:
    for name in minutch.__all__:
        assert getattr(minutch, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = minutch.nothing


def test_a_job_is_a_function(tmp_path: Path) -> None:
    (tmp_path / "seeds.txt").write_text("http://example.org/")
    context = minutch.JobContext(minutch.Configuration.load([]))
    crawldb, segments = tmp_path / "crawldb", tmp_path / "segments"
    assert minutch.inject(crawldb, tmp_path / "seeds.txt", context=context)["seeds new"] == 1
    options = minutch.GenerateOptions(top_n=1)
    made = minutch.generate(crawldb, segments, options, context=context)
    assert [path.parent for path in made.segments] == [segments]


def test_a_crawl_is_looked_at_by_functions(tmp_path: Path) -> None:
    write_db(tmp_path / "crawldb", [("http://a.example/", CrawlDatum(1))])
    context = minutch.JobContext(minutch.Configuration.load([]), out=io.StringIO())
    rows = minutch.sql(tmp_path, "select url, fetch_time from crawldb", context=context).collect()
    assert rows["url"].to_list() == ["http://a.example/"]
    found = minutch.explain(tmp_path, "http://a.example/", context=context)
    assert found.entry is not None and found.entry.status == "db_unfetched"
    assert minutch.overview(tmp_path, context=context).urls == 1
    assert minutch.fsck(tmp_path, context=context).found == []
    options = minutch.ReportOptions(file=tmp_path / "report.html")
    assert minutch.report(tmp_path, options, context=context).facts.total("urls") == 1


def test_the_import_alone_is_light() -> None:
    code = (
        "import minutch, sys; print(sorted(m for m in sys.modules if m.startswith('minutch') or m"
        " == 'polars'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['minutch']"


def test_the_life_of_a_url_names_real_modules() -> None:
    import re

    from tests.support.golden import PROJECT

    for path in re.findall(r"\S+\.py", minutch.__doc__ or ""):
        assert (PROJECT / "minutch" / path).is_file(), path


def test_dir_has_the_public_names() -> None:
    assert dir(minutch) == sorted(minutch.__all__)
    assert (Path(minutch.__file__).parent / "py.typed").is_file()
    assert set(dir(minutch.jobs)) >= {"run", "inject", "crawl", "readdb"}
    with pytest.raises(AttributeError, match="minutch has no command nothing"):
        _ = minutch.jobs.nothing


def test_jobs_and_databases_from_python(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    urls = [f"http://example.org/{number}" for number in range(5)]
    seeds.write_text("\n".join(urls))
    conf = minutch.Configuration.load([], overrides={"mapreduce.job.reduces": "2"})
    counts = minutch.jobs.inject(tmp_path / "crawldb", seeds, conf=conf)
    assert counts["seeds new"] == 5
    db = minutch.CrawlDb(tmp_path / "crawldb")
    assert len(db) == 5
    assert sorted(db) == urls
    assert db[urls[0]].status_name == "db_unfetched"
    assert urls[1] in db and "http://example.org/9" not in db
    with pytest.raises(KeyError):
        _ = db["http://example.org/9"]
    assert {url: datum.score for url, datum in db.items()} == dict.fromkeys(urls, 1.0)
    out = io.StringIO()
    minutch.jobs.readdb(tmp_path / "crawldb", "-url", urls[2], out=out)
    assert out.getvalue().startswith(f"URL: {urls[2]}\n")
    with pytest.raises(minutch.MinutchError, match="Usage: Injector"):
        minutch.jobs.inject()


def test_a_linkdb_from_python() -> None:
    path = GOLDEN / "crawl-small" / "run-rich-r2" / "crawl" / "linkdb"
    if not path.is_dir():
        pytest.skip("the golden files are not beside this checkout")
    db = minutch.LinkDb(path)
    urls = list(db)
    assert len(db) == len(urls) > 0
    assert db[urls[0]] == dict(db.items())[urls[0]]
    assert urls[0] in db and "http://nowhere/" not in db


USE = """
from typing import Any
import pandas
import polars
from typing_extensions import assert_type

import minutch
from minutch import open as open_crawl

conf = {"fetcher.warc": True, "fetcher.server.delay": 0.02}
crawl = minutch.open("crawl", create=True, conf=conf)
assert_type(crawl, minutch.Crawl)
assert_type(open_crawl("crawl"), minutch.Crawl)
assert_type(crawl.sql("select 1"), polars.DataFrame)
assert_type(crawl.crawldb.scan(), polars.LazyFrame)
assert_type(crawl.crawldb.to_pandas(), pandas.DataFrame)
assert_type(crawl.tables["pages"].to_pandas(), pandas.DataFrame)
assert_type(crawl.run(rounds=2, options=minutch.CrawlOptions(size=9)), minutch.Counters)
assert_type(minutch.jobs.readdb("crawl/crawldb", "-stats"), minutch.Counters)
crawl.run(rounds="two")  # type: ignore[arg-type]
minutch.open("crawl", conf=["fetcher.warc"])  # type: ignore[arg-type]
"""


@pytest.mark.slow
@pytest.mark.parametrize("stubs", [True, False])
def test_type_checkers_know_the_results(tmp_path: Path, stubs: bool) -> None:
    """Of pandas only where its stubs are installed (PEP 561); without them it is Any."""
    pytest.importorskip("mypy", reason="mypy is in the extra dev")
    if stubs:
        (tmp_path / "pandas").mkdir()
        (tmp_path / "pandas" / "__init__.pyi").write_text("class DataFrame: ...\n")
    (tmp_path / "use.py").write_text(USE if stubs else USE.replace("pandas.DataFrame", "Any"))
    lines = ["[mypy]", "strict = True", "follow_imports = silent"]
    if not stubs:
        lines += ["[mypy-pandas.*]", "ignore_missing_imports = True"]
    (tmp_path / "mypy.ini").write_text("\n".join([*lines, ""]))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", os.devnull, "use.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": os.pathsep.join((str(PROJECT), str(tmp_path)))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
