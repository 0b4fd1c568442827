"""The notebooks of this folder run, cell by cell, against a site on loopback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sysconfig
import time
from pathlib import Path
from typing import Any, Self

import polars as pl
import pytest

from tests.support.demo import PROPERTIES
from tests.support.golden import PROJECT
from tests.support.siteserver import SiteServer
from tests.support.venvs import NoPrograms, programs

FOLDER = Path(__file__).parent


def cells(name: str) -> list[str]:
    """The code of a notebook."""
    notebook = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert all(cell["outputs"] == [] for cell in notebook["cells"] if cell["cell_type"] == "code")
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_a_crawl_in_a_notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    settings, *rest = cells("crawl.ipynb")
    names: dict[str, Any] = {}
    exec(settings, names)
    with SiteServer() as server:
        names["SEEDS"] = [server.site.url("one")]
        names["CONF"] |= PROPERTIES | {"fetcher.server.delay": "0", "fetcher.min.crawl.delay": "0"}
        for source in rest:
            exec(compile(source, "crawl.ipynb", "exec"), names)
    assert "round" in capsys.readouterr().out.lower()
    found = names["crawl"].crawldb.scan().filter(pl.col("status") == "db_fetched").collect()
    assert names["counts"]["db_fetched"] == len(found) > 3
    assert names["by_code"].filter(pl.col("code") == 200)["len"][0] >= len(found)
    assert len(names["broken"]) > 0
    assert names["first"]["status"] == "db_fetched" and len(names["titles"]) == 3


class Kernel:
    """A Jupyter kernel with this Python's packages and this checkout, in a working folder."""

    def __init__(self, folder: Path) -> None:
        try:
            python = programs("ipykernel==7.1.0") / "python"
        except NoPrograms as exc:
            pytest.skip(str(exc))
        here = os.pathsep.join((str(PROJECT), sysconfig.get_path("purelib")))
        self._process = subprocess.Popen(
            [str(python), "-m", "tests.support.kernel"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": here, "IPYTHONDIR": str(folder)},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def run(self, code: str, *, interrupt: str | None = None) -> list[tuple[str, dict[str, Any]]]:
        """Runs a cell; returns the messages of its output."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"code": code, "interrupt": interrupt}) + "\n")
        self._process.stdin.flush()
        return [(kind, content) for kind, content in json.loads(self._process.stdout.readline())]


def shown(messages: list[tuple[str, dict[str, Any]]], kind: str) -> list[str]:
    """The texts of a cell's messages of one kind."""
    return [
        content["data"]["text/plain"] if "data" in content else content["text"]
        for found, content in messages
        if found == kind
    ]


@pytest.mark.slow
def test_a_crawl_in_a_real_kernel(tmp_path: Path) -> None:
    """An event loop runs in a kernel's thread, and its stderr is no terminal."""
    with SiteServer() as server, Kernel(tmp_path) as kernel:
        conf = PROPERTIES | {"fetcher.server.delay": 0.3, "fetcher.min.crawl.delay": 0}
        assert not kernel.run(f"import minutch\nconf = {conf!r}\nurls = {[server.site.url('one')]}")
        assert not kernel.run("crawl = minutch.open('crawl', create=True, conf=conf)")
        kernel.run("counts = crawl.inject(urls)")
        messages = kernel.run("counts = crawl.run(rounds=2)")
        assert not [content for kind, content in messages if kind == "error"]
        live = shown(messages, "update_display_data")
        assert [line for line in live if re.match(r"round 2 of 2, fetch: \d+ of \d+ pages, ", line)]
        assert live[-1] == "" and len(shown(messages, "display_data")) == 1
        printed = "".join(shown(messages, "stream"))
        assert "Round 2 of 2\n" in printed and "\x1b" not in printed + "".join(live)
        assert "2 rounds in 0:" in printed
        assert (tmp_path / "crawl" / "crawl.log").stat().st_size
        messages = kernel.run("crawl.sql('select count(*) as n from crawldb')")
        assert not shown(messages, "display_data") and "n" in shown(messages, "execute_result")[0]


@pytest.mark.slow
def test_the_stop_button_ends_a_fetch_that_goes_on_later(tmp_path: Path) -> None:
    with SiteServer() as server, Kernel(tmp_path) as kernel:
        conf = PROPERTIES | {"fetcher.server.delay": 3.0, "fetcher.min.crawl.delay": 0}
        kernel.run(f"import minutch\ncrawl = minutch.open('crawl', create=True, conf={conf!r})")
        kernel.run(f"_ = crawl.inject({[server.site.url('one')]})")
        began = time.monotonic()
        messages = kernel.run("counts = crawl.run(rounds=2)", interrupt="round 2 of 2, fetch: ")
        errors = [content["ename"] for kind, content in messages if kind == "error"]
        assert errors in (["KeyboardInterrupt"], ["Interrupted"])
        assert time.monotonic() - began < 40  # of the 45 and more that the round takes
        kernel.run("crawl.conf.set('fetcher.server.delay', '0')")
        messages = kernel.run("counts = crawl.run(rounds=1)")
        assert "Round 1 of 1 goes on with segment" in "".join(shown(messages, "stream"))
        assert not [content for kind, content in messages if kind == "error"]
