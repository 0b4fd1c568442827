"""init-plugin: what it writes is found as an installed package, passes its own test, and is active
only where plugin.includes says so.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from minutch.commands import cli
from minutch.conf import Configuration
from minutch.plugin.chains import URLFilters
from minutch.plugin.repository import PluginRepository
from tests.support.commands import init_plugin
from tests.support.golden import PROJECT

POINTS = init_plugin.options[0].choices


def installed(project: Path, site: Path) -> Path:
    """Puts a package where Python finds it, with the entry points that its pyproject.toml has; as
    pip does, but without its build backend, which is fetched (tests/test_installed.py does that).
    """
    about = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    name = about["name"].replace("-", "_")
    (site / name).symlink_to(project / name)
    info = site / f"{name}-{about['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {about['name']}\nVersion: {about['version']}\n")
    groups = about.get("entry-points", {}).items()
    (info / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n{key}={to}\n" for group, entries in groups for key, to in entries.items()
        )
    )
    return site


@pytest.mark.slow  # pytest in a process of its own
def test_what_it_writes_passes_its_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site").mkdir()
    for point in POINTS:
        assert cli.main(["init-plugin", f"my-{point}", "--point", point]) == 0
        out = capsys.readouterr().out
        assert f"pip install -e './my-{point}[test]'\n  pytest my-{point}\n" in out
        assert "$" not in out
        installed(tmp_path / f"my-{point}", tmp_path / "site")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
    places = os.pathsep.join((str(tmp_path / "site"), str(PROJECT)))
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", "pytest.ini", *(f"my-{p}" for p in POINTS)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"{len(POINTS)} passed" in ran.stdout, ran.stdout + ran.stderr


def test_an_installed_plugin_is_active_where_it_is_included(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["init-plugin", "short-urls", "--point", "url-filter"]) == 0
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(str(installed(tmp_path / "short-urls", tmp_path / "site")))
    importlib.invalidate_caches()

    def passes(includes: str) -> bool:
        values = {"plugin.includes": includes, "short-urls.longest": "30"}
        conf = Configuration.load([]).with_values(values)
        assert "short-urls" in PluginRepository.of(conf).available
        return URLFilters(conf).filter("https://www.example.org/" + "a" * 30) is not None

    assert passes("nutch-extensionpoints")
    assert not passes("short-(urls|words)")
    mine = tmp_path / "mine" / "short-urls"  # a folder of plugin.folders wins
    mine.mkdir(parents=True)
    manifest = (tmp_path / "short-urls/short_urls/plugin.xml").read_text()
    (mine / "plugin.xml").write_text(manifest)
    conf = Configuration.load([]).with_values({"plugin.folders": str(tmp_path / "mine")})
    assert PluginRepository.of(conf).available["short-urls"].folder == mine


def test_an_entry_point_without_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    info = tmp_path / "gone-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: gone\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[minutch.plugins]\ngone = never_there.at_all\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    PluginRepository(Configuration.load([]))
    assert "plugin gone: there is no package never_there.at_all" in caplog.text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["My-Filter", "--point", "scoring"], "My-Filter is no id: small letters and digits"),
        (["../out", "--point", "scoring"], "../out is no id"),
        (["mine"], "--point is one of url-filter, index-filter, parser"),
        (["mine", "--point", "index"], "index"),
    ],
)
def test_wrong_words(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["init-plugin", *words]) == 1
    assert message in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    assert cli.main(["init-plugin", "mine", "--point", "scoring"]) == 255
    assert capsys.readouterr().err == "error: mine is there already\n"
    assert list((tmp_path / "mine").iterdir()) == []
