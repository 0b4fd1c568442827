"""indexchecker: what it shows of a page, its options and exit codes; texts as in real Nutch's
runs.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.index.indexchecker import (
    DISCARDED,
    IndexChecker,
    IndexCheckOptions,
    indexchecker,
)
from minutch.cycle.parse.pagecheck import CheckError, CheckFailed
from minutch.errors import UsageError
from minutch.job import JobContext
from tests.support.commands import command, parsed

run = command("indexchecker").run

PAGE = "<html><head><title>Page 1</title></head><body>" + "words " * 40 + "</body></html>"
PLUGINS = "protocol-file|parse-(html|text)|index-(basic|more)|indexer-(csv|dummy)|scoring-opic"


def check(folder: Path, *args: str, stdin: str = "", **properties: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    (folder / "index-writers.xml").write_text(
        '<writers><writer id="d"'
        ' class="org.apache.nutch.indexwriter.dummy.DummyIndexWriter"><parameters><param'
        f' name="path" value="{folder}/dummy.txt"/></parameters></writer></writers>'
    )
    values = {"plugin.includes": PLUGINS} | {
        name.replace("__", "."): value for name, value in properties.items()
    }
    conf = Configuration.load([folder], overrides=values).freeze()
    context = JobContext(
        conf, FakeClock(784111777000), io.StringIO(), io.StringIO(), io.StringIO(stdin)
    )
    code = run(list(args), context)
    assert isinstance(context.out, io.StringIO)
    assert isinstance(context.err, io.StringIO)
    return code, context.out.getvalue(), context.err.getvalue()


@pytest.fixture
def page(tmp_path: Path) -> str:
    (tmp_path / "page.html").write_text(PAGE)
    return f"file:{tmp_path}/page.html"


def test_a_document_in_the_order_of_javas_hash_map(page: str, tmp_path: Path) -> None:
    code, out, _ = check(tmp_path, page)
    assert code == 0
    names = [line.partition(" :\t")[0] for line in out.splitlines() if " :\t" in line]
    known = ["date", "tstamp", "digest", "host", "id", "title", "url", "content"]
    assert [name for name in names if name in known] == [name for name in known if name in names]
    values = dict(line.split(" :\t") for line in out.splitlines() if " :\t" in line)
    assert (values["title"], values["id"]) == ("Page 1", page[:100])
    assert len(values["content"]) <= 100
    assert out.endswith("\n\n\n")
    assert not (tmp_path / "dummy.txt").exists()


def test_whole_values(page: str, tmp_path: Path) -> None:
    assert "words " * 30 in check(tmp_path, "-dumpText", page)[1]


def test_into_the_index_without_a_commit(page: str, tmp_path: Path) -> None:
    for given in (["-doIndex", page], [page]):
        properties = {} if len(given) > 1 else {"doIndex": "true"}
        assert check(tmp_path, *given, **properties)[0] == 0
        assert (tmp_path / "dummy.txt").read_text() == f"add\t{page}\n"
        (tmp_path / "dummy.txt").unlink()


def test_pages_of_stdin(page: str, tmp_path: Path) -> None:
    code, out, err = check(tmp_path, "-stdin", stdin=f"{page}\nfile:/nowhere\n{page}\n")
    assert (code, out.count("title :\tPage 1")) == (0, 2)
    assert "Fetch failed with protocol status: notfound" in err


def test_a_document_that_is_left_out(page: str, tmp_path: Path) -> None:
    properties = {
        "plugin__includes": f"{PLUGINS}|index-jexl-filter",
        "index__jexl__filter": "false",
    }
    assert check(tmp_path, page, **properties)[:2] == (0, f"{DISCARDED}\n")


def test_metadata_reaches_the_filters(page: str, tmp_path: Path) -> None:
    code, out, _ = check(tmp_path, "-md", "_repr_=http://shown.org/", page)
    assert code == 0
    assert "url :\thttp://shown.org/" in out


def test_what_goes_wrong(page: str, tmp_path: Path) -> None:
    code, _, err = check(tmp_path, "file:/nowhere")
    assert code == 255
    assert err.startswith("Fetch failed with protocol status: notfound(14)")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20))
    with pytest.raises(CheckError, match="no parser for type"):
        check(tmp_path, f"file:{tmp_path}/picture.png")
    with pytest.raises(UsageError, match="IndexingFiltersChecker"):
        check(tmp_path)


def test_from_python(page: str, tmp_path: Path) -> None:
    conf = Configuration.load([tmp_path], overrides={"plugin.includes": PLUGINS}).freeze()
    context = JobContext(conf, FakeClock(784111777000))
    assert "title :\tPage 1\n" in indexchecker(page, context=context)
    options = IndexCheckOptions(metadata={"_repr_": "http://shown.org/"}, dump_text=True)
    shown = indexchecker(page, options, context=context)
    assert "url :\thttp://shown.org/\n" in shown and "words " * 30 in shown
    with pytest.raises(CheckFailed, match="notfound"):
        indexchecker("file:/nowhere", context=context)


def test_every_option_is_known() -> None:
    given = parsed("indexchecker", "-normalize", "-doIndex", "-dumpText", "-listen", "7", "u")
    assert given["-doIndex"]
    assert given["-listen"] == 7
    assert IndexChecker.force_as is None
