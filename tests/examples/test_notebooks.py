"""The notebooks of this folder run, cell by cell, against a site on loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.support.demo import PROPERTIES
from tests.support.siteserver import SiteServer

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
