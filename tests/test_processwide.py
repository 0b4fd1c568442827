"""The settings of a process, and how its workers get them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import polars  # noqa: F401 - a process that has it starts workers by a fork server
import pytest

from minutch import processwide
from minutch.conf import Configuration
from minutch.job import set_up_process
from minutch.paths import store_settings
from minutch.processes import may_fork, start_worker
from minutch.urls.domains import domain_of
from minutch.work.tables.parallel import workers
from tests.support.golden import PROJECT


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = processwide.settings()
    yield
    processwide.use(before)


def _answer(connection: Connection) -> None:
    connection.send((processwide.settings(), domain_of("a.b.example.org"), workers()))


def test_a_worker_takes_them_over(tmp_path: Path) -> None:
    (tmp_path / "effective_tld_names.dat").write_text("org\nexample.org\n")
    conf = Configuration.load([tmp_path], overrides={"fs.s3a.endpoint": "http://127.0.0.1:1"})
    set_up_process(conf)
    processwide.change(cores=1)
    assert not may_fork()
    process, connection = start_worker(_answer, (), name="answer")
    settings, domain, cores = connection.recv()
    process.join()
    assert settings == processwide.settings()
    assert (domain, cores) == ("b.example.org", 1)
    assert ("fs.s3a.endpoint", "http://127.0.0.1:1") in settings.stores.properties


def test_a_configuration_replaces_those_of_another(tmp_path: Path) -> None:
    own = tmp_path / "effective_tld_names.dat"
    own.write_text("org\nexample.org\n")
    set_up_process(Configuration.load([tmp_path]))
    assert processwide.settings().suffix_list == own
    assert domain_of("a.b.example.org") == "b.example.org"
    set_up_process(Configuration.load([]))
    assert processwide.settings().suffix_list is None
    assert domain_of("a.b.example.org") == "example.org"


def test_no_other_module_keeps_settings() -> None:
    """No function of minutch or of a plugin assigns to a variable of its module."""
    found = [
        path.name
        for folder in ("minutch", "plugins")
        for path in (PROJECT / folder).rglob("*.py")
        if b"global " in (text := path.read_bytes())
        and any(isinstance(node, ast.Global) for node in ast.walk(ast.parse(text)))
    ]
    assert found == ["processwide.py"]


def test_properties_of_file_systems() -> None:
    values = {"spark.hadoop.fs.s3a.a": "1", "dfs.b": "2", "spark.jars": "x.jar,y/*"}
    found = store_settings(Configuration.load([], overrides=values))
    assert {("fs.s3a.a", "1"), ("dfs.b", "2")} <= {*found.properties}
    assert found.jars == ("x.jar", "y/*")
