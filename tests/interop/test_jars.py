"""Hadoop's jars come from pyspark where there is no Maven."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.interop import jars


def package(folder: Path, version: str) -> list[Path]:
    """A package pyspark with some jars; those that Hadoop needs."""
    (folder / "pyspark" / "jars").mkdir(parents=True)
    (folder / "pyspark" / "__init__.py").touch()
    names = (f"hadoop-client-api-{version}", f"hadoop-client-runtime-{version}", "slf4j-api-2.0.17")
    found = [folder / "pyspark" / "jars" / f"{name}.jar" for name in names]
    for path in (*found, folder / "pyspark" / "jars" / "spark-core_2.13-4.1.0.jar"):
        path.touch()
    return found


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINUTCH_JARS", str(tmp_path / "cache"))
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path / "installed")
    return tmp_path / "cache"


def test_jars_of_the_installed_pyspark_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "_run", lambda *_: pytest.fail("fetched"))
    expected = package(tmp_path / "installed", "3.5.0")
    assert jars._from_pyspark() == expected


def test_a_pyspark_with_an_older_hadoop_is_not_used(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetched(command: list[str], folder: Path) -> None:
        assert command[-1] == f"pyspark=={jars.PYSPARK}"
        package(folder, jars.HADOOP)

    monkeypatch.setattr(jars, "_run", fetched)
    package(tmp_path / "installed", "3.3.4")
    found = jars._from_pyspark()
    assert [path.parent for path in found] == [cache / f"pyspark-{jars.PYSPARK}"] * 3
