"""The public names of the package."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
from pathlib import Path

import pytest

import minutch
from minutch.records.crawldatum import CrawlDatum
from tests.support.crawldbs import write_db
from tests.support.golden import GOLDEN


def test_every_name_is_there() -> None:
    for name in minutch.__all__:
        assert getattr(minutch, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = minutch.nothing


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(minutch.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname not in ("jobs", None)
    }
    assert seen == minutch._WHERE


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
